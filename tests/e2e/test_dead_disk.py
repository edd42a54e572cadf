"""Files on a disk that answers no more: the server goes on, says so, and ends when told."""

import time
from pathlib import Path

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.home import SERVER, Home
from tests.e2e.provider import Provider
from tests.e2e.talk import add, ask, window, words
from tests.sizes import PATIENCE

HANGING = """
import os, sys, threading

DEAD, FROM = {dead!r}, {start!r}

def wait(path, *_, **__):
    path = named(f"/proc/self/fd/{{path}}") if isinstance(path, int) else path
    if isinstance(path, (str, os.PathLike)) and os.fspath(path).startswith(DEAD):
        if not FROM or exists(FROM):
            open(ASKED, "w").close()
            threading.Event().wait()

ASKED = {asked!r}
exists, named = os.path.exists, os.readlink

def hanging(call):
    return lambda path=".", *a, **k: (wait(path), call(path, *a, **k))[1]

for name in ("open", "stat", "lstat", "scandir", "listdir", "readlink", "mkdir", "write"):
    setattr(os, name, hanging(getattr(os, name)))
sys.addaudithook(lambda event, args: wait(args[0]) if event == "open" else None)
"""
"""What a mount behind a dead network does, for one process: each call waits for ever."""


def hanging(root: Path, dead: Path, start: Path | str = "") -> dict[str, str]:
    """The environment of a process for which `dead` is one, as soon as `start` is there.

    It makes a file `asked` when something was asked of it.
    """
    site, asked = root / "site", str(root / "asked")
    site.mkdir()
    code = HANGING.format(dead=str(dead), start=str(start), asked=asked)
    (site / "sitecustomize.py").write_text(code)
    return {"PYTHONPATH": f"{site}:{SERVER}"}


def test_a_workspace_on_a_dead_disk_holds_up_nobody(tmp_path: Path) -> None:
    """initialize, status and shutdown are answered; what could not be read is told."""
    dead = tmp_path / "dead"
    with Server(Home(tmp_path / "home"), env=hanging(tmp_path, dead)) as server:
        server.initialize(roots=[dead / "project"])
        said = server.wait_notification(
            "window/showMessage", lambda params: "does not answer" in params["message"]
        )
        assert ".tiro/config.yaml" in said["message"]
        problems = server.request("tiro/status")["problems"]
        assert sum("does not answer" in problem for problem in problems) == 3
        assert server.request("tiro/session/addMessage", {"role": "user", "content": "x"})["stored"]
        assert server.request("tiro/agents/list")["default"] == "build"
        assert server.shutdown() == 0


def test_sessions_on_a_disk_that_falls_silent_are_still_shown(tmp_path: Path) -> None:
    """The watch over what others write waits beside the requests, which memory can answer."""
    home, silent = Home(tmp_path / "home"), tmp_path / "silent"
    with Server(home, env=hanging(tmp_path, home.sessions, silent)) as server:
        server.initialize()
        add(server, "user", "x")
        server.request("tiro/session/save")
        silent.touch()
        wait_for(tmp_path / "asked")
        assert words(server) == ["x"]
        assert server.request("tiro/agents/list")["default"] == "build"


def test_what_a_client_names_on_a_silent_disk_holds_up_nobody(tmp_path: Path) -> None:
    """Each request that names such a path is refused in words, and the session goes on."""
    home, dead, silent = Home(tmp_path / "home"), tmp_path / "dead", tmp_path / "silent"
    dead.mkdir()
    (dead / "a.txt").write_text("x")
    path = str(dead / "a.txt")
    attached = {"attachments": [{"kind": "file", "path": path}]}
    read = {"tool": "read_file", "input": {"path": path}}
    with Server(home, env=hanging(tmp_path, dead, silent)) as server:
        server.initialize(roots=[home.workspace, dead])
        silent.touch()
        for method, params in (
            ("tiro/turn/start", {"prompt": "x", **attached}),
            ("tiro/session/explain", {"draft": "x", **attached}),
            ("tiro/session/load", {"path": path}),
            ("tiro/session/import", {"path": path}),
            ("tiro/session/save", {"path": path}),
            ("tiro/session/export", {"format": "json", "path": path}),
            ("tiro/permissions/explain", read),
            ("tiro/edits/next", {}),
        ):
            error = server.error(method, params)
            assert (method, "does not answer" in error.message) == (method, True), error.message
        assert words(server) == []
        assert server.request("tiro/session/addMessage", {"role": "user", "content": "x"})["stored"]
        assert server.shutdown() == 0


def test_an_undo_on_a_silent_disk_keeps_no_other_from_being_done(
    tmp_path: Path, provider: Provider
) -> None:
    """It is refused in words, before it keeps all others waiting, in other processes too."""
    home, dead = Home(tmp_path / "home", provider), tmp_path / "dead"
    dead.mkdir()
    silent, there, turns = tmp_path / "silent", home.workspace / "b.txt", []
    with Server(home, env=hanging(tmp_path, dead, silent)) as server:
        server.initialize(roots=[home.workspace, dead])
        server.on_request("tiro/permission/request", lambda _: {"decision": "once"})
        for path in (dead / "a.txt", there):
            use = ("u1", "write_file", {"path": str(path), "content": "x"})
            provider.script(replies.tools(use), replies.text("ok"))
            turns.append(ask(server, "go")["turnId"])
        gone = {"removed": [{"uri": dead.as_uri(), "name": "dead"}], "added": []}
        server.notify("workspace/didChangeWorkspaceFolders", {"event": gone})
        assert words(server)
        silent.touch()
        error = server.error("tiro/edits/undo", {"turnId": turns[0]})
        assert "does not answer" in error.message
        assert server.request("tiro/edits/undo", {"turnId": turns[1]})["paths"] == [str(there)]
        assert not there.exists()
        server.shutdown()


def test_tool_uses_on_a_silent_disk_end_and_hold_up_nobody(
    tmp_path: Path, provider: Provider
) -> None:
    """Each has a result that names the path; more of them than a pool has threads starve nobody."""
    home, dead, silent = Home(tmp_path / "home", provider), tmp_path / "dead", tmp_path / "silent"
    dead.mkdir()
    (dead / "a.txt").write_text("x")
    reads = [(f"r{n}", "read_file", {"path": str(dead / f"{n}.txt")}) for n in range(6)]
    look = [("g", "grep", {"pattern": "x", "path": str(dead)}), ("l", "list_files", {"path": "."})]
    write = ("w", "write_file", {"path": str(dead / "a.txt"), "content": "y"})
    with Server(home, env=hanging(tmp_path, dead, silent)) as server:
        server.initialize(roots=[home.workspace, dead])
        server.on_request("tiro/permission/request", lambda _: {"decision": "once"})
        silent.touch()
        provider.script(replies.tools(*reads, *look), replies.text("ok"))
        turn = server.begin("tiro/turn/start", {"prompt": "go"})
        wait_for(tmp_path / "asked")
        assert server.request("tiro/session/list")["sessions"]
        assert server.request("tiro/status")["version"]
        assert turn.result()["stopReason"] == "end_turn"
        results = tool_results(server)
        assert results.keys() == {use[0] for use in (*reads, *look)}
        for text in results.values():
            assert str(dead) in text
            assert "does not answer" in text
        provider.script(replies.tools(write), replies.text("ok"))
        turn = server.begin("tiro/turn/start", {"prompt": "go"})
        server.wait_notification("tiro/turn/event", lambda p: "w" in str(p.get("toolUse")))
        assert server.request("tiro/turn/cancel")["cancelled"]
        assert turn.result()["stopReason"] == "cancelled"
        assert server.shutdown() == 0


def test_what_waits_for_a_silent_disk_at_the_end_is_answered(tmp_path: Path) -> None:
    """Every id gets its answer: the request that must not be left half done, and `shutdown`."""
    home, silent = Home(tmp_path / "home"), tmp_path / "silent"
    with Server(home, env=hanging(tmp_path, home.sessions, silent)) as server:
        server.initialize()
        add(server, "user", "x")
        silent.touch()
        saving = server.begin("tiro/session/save")
        wait_for(tmp_path / "asked")
        ending = server.begin("shutdown")
        assert saving.error().code == -32800
        server.notify("exit")
        assert ending.error().code == -32800
        assert server.wait_exit() == 0


def test_exit_ends_a_server_whose_turn_waits_for_a_silent_disk(
    tmp_path: Path, provider: Provider
) -> None:
    """What a turn stores is stored before anybody hears of it: meanwhile nothing is answered."""
    home, silent = Home(tmp_path / "home", provider), tmp_path / "silent"
    with Server(home, env=hanging(tmp_path, home.sessions, silent)) as server:
        server.initialize()
        hold = replies.Hold()
        provider.script(replies.stream(replies.text_chunk("a"), hold, replies.text_chunk("b")))
        server.begin("tiro/turn/start", {"prompt": "x"})
        server.wait_event("text")
        silent.touch()
        hold.release()
        wait_for(tmp_path / "asked")
        server.notify("exit")
        assert server.wait_exit() == 1


def tool_results(server: Server) -> dict[str, str]:
    """Each tool use's id and the text of its result."""
    blocks = [content for role, content in window(server) if role == "tool"]
    return {block["tool_use_id"]: block["content"] for block in blocks}


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert path.exists()
