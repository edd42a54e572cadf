"""`tiro serve --record FILE`: all that goes over both wires, and never a secret (B52, B53)."""

import json
import resource
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import API_KEY, MODEL, Provider
from tests.e2e.replies import Hold, Reply
from tests.e2e.talk import ask, begin_ask
from tiro.recording.exchanges import Recording, read_recording
from tiro.recording.lines import End, read_lines

StartRecorded = Callable[..., Server]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bug.jsonl"


@pytest.fixture
def start_recorded(start: StartServer, path: Path) -> StartRecorded:
    command = [sys.executable, "-m", "tiro", "serve", "--record", str(path)]
    return lambda **given: start(command=command, **given)


def test_everything_is_in_it(start_recorded: StartRecorded, provider: Provider, path: Path) -> None:
    provider.script(replies.text("Hello", " there"))
    server = start_recorded()
    ask(server, "hi")
    server.send_body(b"{no JSON")
    server.shutdown()
    found = read_recording(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    received = [line.data for line in found.messages_in]
    assert [json.loads(body)["method"] for body in received if body != b"{no JSON"] == [
        *("initialize", "initialized", "tiro/turn/start", "shutdown", "exit")
    ]
    assert b"{no JSON" in received
    sent = [json.loads(line.data) for line in found.messages_out]
    assert len(sent) == server.frames
    (exchange,) = found.exchanges
    assert exchange.request.url == f"{provider.base_url}/chat/completions"
    assert json.loads(exchange.request.data) == provider.last.body
    assert exchange.response is not None
    assert exchange.response.status == 200
    assert [len(chunk.data) for chunk in exchange.chunks] == [n for _, n in provider.last.sent]
    assert isinstance(read_lines(path)[1][-1], End)


def test_no_secret_is_in_it(
    start_recorded: StartRecorded, home: Home, provider: Provider, path: Path
) -> None:
    """Keys of the environment, of files, of an editor, in addresses, echoed, spelled in pieces."""
    secrets = ["hdr-5ec4e7-aa", "pw-5ec4e7-bb", "query-5ec4e7-cc", "editor-5ec4e7-dd", API_KEY]
    address = provider.base_url.replace("//", "//user:pw-5ec4e7-bb@") + "?key=query-5ec4e7-cc"
    home.write_config(providers={"fake": home.fake(headers={"X-Org": "hdr-5ec4e7-aa"})})
    settings = {"providers": {"other": {"api": "openai", "base_url": address}}}
    settings["providers"]["other"] |= {"api_key": "editor-5ec4e7-dd"}
    half = replies.text_chunk(f"It is {API_KEY}, no?")
    at = half.index(API_KEY.encode()) + 7
    provider.script(
        replies.error(401, f"Incorrect key {API_KEY} of hdr-5ec4e7-aa"),
        replies.text("It is ", API_KEY[:9], API_KEY[9:12], API_KEY[12:], ", no?"),
        replies.stream(half[:at], half[at:]),
        replies.tools(("call_1", "read_file", {"path": "keys.txt"})),
        replies.text("Done"),
    )
    home.write("keys.txt", "\n".join(secrets))
    server = start_recorded(settings=settings)
    assert begin_ask(server, "one").error().kind == "modelFailed"
    for prompt in ("two", f"three {API_KEY}", "four"):
        ask(server, prompt)
    begin_ask(server, "five", model=f"other/{MODEL}").message()
    server.shutdown()
    assert json.loads(provider.last.raw)["model"] == MODEL
    whole = path.read_text("utf-8")
    texts = [whole, *_streamed(read_recording(path))]
    assert not [secret for secret in secrets for text in texts if secret in text]
    assert "[secret]" in whole


def test_kill_leaves_whole_lines(
    start_recorded: StartRecorded, provider: Provider, path: Path
) -> None:
    hold = Hold()
    provider.script(Reply([replies.ROLE, replies.text_chunk("before the kill"), hold]))
    server = start_recorded()
    begin_ask(server, "hi")
    server.wait_event("text")
    hold.wait()
    while "before the kill" not in "".join(_streamed(read_recording(path))):
        pass  # the recorder is a few milliseconds behind
    server.kill()
    _, lines = read_lines(path)
    assert path.read_bytes().endswith(b"\n")
    assert not isinstance(lines[-1], End)


def test_full_disk_ends_the_recording_and_nothing_else(
    start_recorded: StartRecorded, provider: Provider, path: Path
) -> None:
    server = start_recorded()
    limit = (path.stat().st_size + 3000, resource.RLIM_INFINITY)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limit)
    provider.otherwise(lambda _: replies.text("still here"))
    for prompt in ("one", "two"):
        assert ask(server, prompt)["text"] == "still here"
    assert server.shutdown() == 0
    assert server.stderr_text().count("The recording") == 1
    assert "File too large" in server.stderr_text()
    assert read_lines(path)[1]
    assert path.read_bytes().endswith(b"\n")


def test_directory_gets_a_file_for_each_start(start: StartServer, home: Home) -> None:
    """An editor starts its server again, always with the same words; and no shell expands `~`."""
    command = [sys.executable, "-m", "tiro", "serve", "--record", "~/bugs"]
    (home.root / "bugs").mkdir()
    for _ in range(2):
        start(command=command).shutdown()
    files = list((home.root / "bugs").iterdir())
    assert len(files) == 2
    assert all(read_recording(file).messages_out for file in files)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("there.jsonl", "already; give --record another name"),
        ("no/where.jsonl", "cannot be written"),
    ],
)
def test_file_that_cannot_be_made_is_told_before_the_start(
    start: StartServer, tmp_path: Path, name: str, why: str
) -> None:
    (tmp_path / "there.jsonl").write_text("mine")
    command = [sys.executable, "-m", "tiro", "serve", "--record", str(tmp_path / name)]
    server = start(command=command, initialize=False)
    assert server.wait_exit() == 1
    assert server.frames == 0
    assert server.stderr_text().startswith("tiro: ")
    assert why in server.stderr_text()
    assert len(server.stderr_text().splitlines()) == 1
    assert (tmp_path / "there.jsonl").read_text() == "mine"


def _streamed(recording: Recording) -> list[str]:
    """What a reader can put together from the pieces of each answer and of the turns."""
    texts = []
    for exchange in recording.exchanges:
        body = b"".join(chunk.data for chunk in exchange.chunks).decode()
        events = [line[6:] for line in body.splitlines() if line.startswith("data: {")]
        texts.append("".join(_text_of(json.loads(event)) for event in events))
    sent = [json.loads(line.data) for line in recording.messages_out]
    texts.append("".join(m["params"].get("delta", "") for m in sent if "params" in m))
    return texts


def _text_of(event: dict[str, Any]) -> str:
    return "".join(choice["delta"].get("content") or "" for choice in event.get("choices", []))
