"""`log: {level, file}` in a real server: what is told, and never what is said (B41, B52)."""

import json
from pathlib import Path

from tests.e2e import replies
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import API_KEY, Provider
from tests.e2e.talk import ask, begin_ask

SAID = ["prompt-zebra", "answer-walrus", "file-octopus", "draft-lemur"]


def log_of(home: Home, name: str = "tiro.log") -> Path:
    return home.root / "state" / "tiro" / name


def test_log_is_off_by_default(start: StartServer, home: Home, provider: Provider) -> None:
    provider.script(replies.error(401, "no"), replies.text("fine"))
    server = start()
    begin_ask(server).error()
    ask(server)
    server.shutdown()
    assert server.stderr_text() == ""
    assert not (home.root / "state").exists()


def test_log_tells_the_work_and_nothing_that_is_said(
    start: StartServer, home: Home, provider: Provider
) -> None:
    home.write_config(log={"level": "debug", "file": "tiro.log"})
    home.write("notes.txt", f"{SAID[2]} {API_KEY}")
    provider.script(
        replies.tools(("call_1", "read_file", {"path": "notes.txt"})),
        replies.text(SAID[1]),
        replies.error(401, f"Bad key {API_KEY}, {SAID[1]}"),
    )
    server = start()
    ask(server, f"{SAID[0]} {API_KEY}")
    begin_ask(server, SAID[0]).error()
    server.request("tiro/session/contextSize", {"draft": SAID[3]})
    server.send_body(b'{"jsonrpc": "2.0", "method": "tiro/turn/start", "params": "prompt-zebra"}')
    server.shutdown()
    text = log_of(home).read_text("utf-8")
    assert "Tiro 0." in text
    assert "tiro/turn/start" in text
    assert "HTTP Request: POST http://127.0.0.1" in text
    assert "401" in text
    assert API_KEY not in text
    assert not [word for word in SAID if word in text]
    assert server.stderr_text() == ""


def test_editor_may_change_it_while_it_runs(start: StartServer, home: Home) -> None:
    server = start()
    for name in ("one.log", "two.log"):
        settings = {"log": {"level": "debug", "file": name}}
        server.notify("workspace/didChangeConfiguration", {"settings": {"tiro": settings}})
        server.request("tiro/session/getId")  # in order, so answered after the change
        server.request("tiro/session/statistics")
    server.shutdown()
    assert "tiro/session/statistics" in log_of(home, "one.log").read_text()
    assert "shutdown" not in log_of(home, "one.log").read_text()
    assert "shutdown" in log_of(home, "two.log").read_text()


def test_log_that_cannot_be_written_is_told_once(start: StartServer, home: Home) -> None:
    home.write_config(log={"file": str(home.root)})
    server = start()
    told = server.wait_notification("window/showMessage")["message"]
    assert told.startswith(f"The log {str(home.root)!r} cannot be written: Is a directory")
    server.request("tiro/session/getId")  # in order, behind all that is told at the start
    assert json.dumps(server.named("window/showMessage")).count("The log") == 1
    assert server.shutdown() == 0


def test_two_servers_share_a_file(start: StartServer, home: Home) -> None:
    home.write_config(log={"level": "info", "file": str(home.root / "shared.log")})
    servers = [start(), start()]
    for server in servers:
        server.shutdown()
    lines = (home.root / "shared.log").read_text().splitlines()
    begun = [line for line in lines if "begins to serve" in line]
    assert len({line.split("[")[1].split("]")[0] for line in begun}) == 2
