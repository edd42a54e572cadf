"""The raw driver sees what is no frame, what is no strict JSON, and who was answered twice."""

import sys
import textwrap
from pathlib import Path

import pytest

from tests.e2e.client import RpcError, Server
from tests.e2e.home import Home

ECHO = """
    import json, sys
    def say(value):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n%b" % (len(body), body))
        sys.stdout.buffer.flush()
    def hear():
        size = 0
        while line := sys.stdin.buffer.readline().strip():
            size = int(line.split(b":")[1])
        return json.loads(sys.stdin.buffer.read(size)) if size else None
    while (message := hear()) is not None:
        answer = {"jsonrpc": "2.0", "id": message.get("id")}
        params = message.get("params")
        if message["method"] == "echo": say(answer | {"result": params})
        if message["method"] == "fail": say(answer | {"error": {"code": -1, "message": "no"}})
        if message["method"] == "twice": say(answer | {"result": 1}); say(answer | {"result": 2})
        if message["method"] == "raw": say(params.encode("latin-1")); say(answer | {"result": 0})
        if message["method"] == "print": print(params, flush=True)
        if message["method"] == "ask":
            say({"jsonrpc": "2.0", "id": "q", "method": "question", "params": params})
            say(answer | {"result": hear()["result"]})
        if message["method"] == "tell": say({"jsonrpc": "2.0", "method": "told", "params": params})
        if message["method"] == "exit": sys.exit(3)
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def run(home: Home) -> Server:
    return Server(home, command=[sys.executable, "-c", textwrap.dedent(ECHO)])


def test_requests_notifications_and_questions(home: Home) -> None:
    with run(home) as server:
        assert server.request("echo", {"a": "é\U0001f642"}) == {"a": "é\U0001f642"}
        with pytest.raises(RpcError, match="no"):
            server.request("fail")
        server.on_request("question", lambda params: [params, "answered"])
        assert server.request("ask", 5) == [5, "answered"]
        server.notify("tell", {"n": 1})
        assert server.wait_notification("told") == {"n": 1}
        server.check()
        server.notify("exit")
        assert server.wait_exit() == 3
    with run(home) as server:
        server.kill()
        assert server.process.returncode == -9


@pytest.mark.parametrize(
    ("method", "params", "part"),
    [
        ("print", "hello", "no frame"),
        ("raw", '{"jsonrpc": "2.0", "method": "x", "params": "\\ud83d"}', "surrogate"),
        ("raw", '{"jsonrpc": "2.0", "method": "x", "params": "\\u0000"}', "NUL"),
        ("raw", '{"jsonrpc": "2.0", "method": "x", "params": NaN}', "NaN"),
        ("raw", '{"jsonrpc": "2.0", "method": "x", "params": "\xff"}', "utf-8"),
        ("raw", "[1]", "no JSON-RPC"),
        ("raw", '{"jsonrpc": "2.0", "id": 4}', "one of result, error"),
    ],
)
def test_violations_are_written_down(home: Home, method: str, params: str, part: str) -> None:
    with run(home) as server:
        server.notify(method, params)
        server.request("echo") if method == "raw" else server.notify("tell")
        server.wait_until(lambda: bool(server.violations), "a violation")
        with pytest.raises(AssertionError, match=part):
            server.check()


def test_a_second_answer_is_seen(home: Home) -> None:
    with run(home) as server:
        assert server.request("twice") == 1
        server.request("echo")
        with pytest.raises(AssertionError, match="answered twice"):
            server.check()


def test_a_paused_reader_takes_nothing(home: Home) -> None:
    with run(home) as server:
        server.request("echo")
        server.pause_reading()
        server.notify("tell", "x" * 1000)  # the read that was under way may still take this one
        server.notify("tell", "y" * 300_000)
        assert not any(n["params"][0] == "y" for n in server.notifications)
        server.resume_reading()
        server.wait_until(lambda: len(server.named("told")) == 2, "two notifications")
        server.check()
