"""Edits end to end: shown, asked about, made in the editor's buffer or on the disk, or refused."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e import anthropic_replies, replies
from tests.e2e.client import Server
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.e2e.styles import Style, both_styles
from tests.e2e.talk import ask, begin_ask, window, words
from tests.e2e.turns import change_buffer, close_buffer, events, open_buffer
from tests.sizes import PATIENCE

CAPABILITIES = {
    "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}},
    "general": {"positionEncodings": ["utf-16"]},
}


@pytest.fixture(scope="module")
def shared_server(
    module_provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server whose client takes edits."""
    with Server(Home(tmp_path_factory.mktemp("edits") / "home", module_provider)) as running:
        running.initialize(capabilities=CAPABILITIES)
        yield running


class Editor:
    """A client that holds one buffer, makes edits in it, and keeps what can be undone."""

    def __init__(self, server: Server, name: str, disk: str, text: str) -> None:
        self.server, self.text, self.version = server, text, 1
        self.path = server.home.write(name, disk)
        self.uri = self.path.as_uri()
        self.undo: list[str] = []
        open_buffer(server, self.uri, text)
        server.on_request("workspace/applyEdit", self.apply)

    def type(self, text: str) -> None:
        """The user makes this of the buffer."""
        self.text, self.version = text, self.version + 1
        change_buffer(self.server, self.uri, self.version, {"text": text})

    def apply(self, params: Any) -> Any:
        """Make the edits, when they are for the version that is there."""
        (document,) = params["edit"]["documentChanges"]
        assert document["textDocument"]["uri"] == self.uri
        if document["textDocument"]["version"] != self.version:
            return {"applied": False, "failureReason": "the buffer has changed"}
        self.undo.append(self.text)
        text = self.text
        for edit in reversed(document["edits"]):
            start, end = (self.index(edit["range"][end]) for end in ("start", "end"))
            text = text[:start] + edit["newText"] + text[end:]
        self.type(text)
        return {"applied": True}

    def index(self, position: dict[str, int]) -> int:
        """The index of a position, for text without characters beyond UTF-16."""
        lines = self.text.splitlines(keepends=True)
        return sum(map(len, lines[: position["line"]])) + position["character"]


def allow(server: Server, before: Callable[[], Any] = lambda: None) -> list[dict[str, Any]]:
    """Answer every question with yes, after something happened; the questions."""
    asked: list[dict[str, Any]] = []

    def answer(params: Any) -> Any:
        asked.append(params)
        before()
        return {"decision": "once"}

    server.on_request("tiro/permission/request", answer)
    return asked


def turn(
    server: Server, provider: Provider, name: str, **given: Any
) -> tuple[str, bool, list[dict[str, Any]]]:
    """Let the model use a tool: its result, whether it failed, the events of the use."""
    provider.script(replies.tools(("c1", name, given)), replies.text("done"))
    done = ask(server, "go")
    assert done["stopReason"] == "end_turn"
    result = window(server)[-2][1]
    uses = [e for e in events(server, done) if e["type"] == "toolUse"]
    return result["content"], result.get("is_error", False), uses


def test_b55_an_edit_of_an_open_buffer_lands_in_the_buffer(
    server: Server, provider: Provider
) -> None:
    """U9 and M5: asked with a diff, made on the version, one step to undo, the disk untouched."""
    editor = Editor(server, "f.py", "A = 1\n", "B = 1\nC = 2\n")
    asked = allow(server)
    edits = [{"old_text": "B", "new_text": "é"}, {"old_text": "C = 2", "new_text": "C = 3"}]
    told, failed, uses = turn(server, provider, "multi_edit", path="f.py", edits=edits)
    diff = "--- a/f.py\n+++ b/f.py\n@@ -1,2 +1,2 @@\n-B = 1\n-C = 2\n+é = 1\n+C = 3"
    assert [(q["preview"], q["effect"], q["toolUse"]["name"]) for q in asked] == [
        (diff, "write", "multi_edit")
    ]
    assert [(e["status"], e.get("preview")) for e in uses] == [
        ("proposed", None), ("running", diff), ("done", None),
    ]  # fmt: skip
    assert (failed, "not saved yet" in told) == (False, True)
    assert (editor.text, editor.undo) == ("é = 1\nC = 3\n", ["B = 1\nC = 2\n"])
    assert editor.path.read_text() == "A = 1\n"
    close_buffer(server, editor.uri)


def test_b55_whoever_types_before_saying_yes_loses_nothing(
    server: Server, provider: Provider
) -> None:
    editor = Editor(server, "f.py", "A = 1\n", "A = 1\n")
    allow(server, lambda: editor.type("A = 1\nmine\n"))
    told, failed, _ = turn(
        server, provider, "edit_file", path="f.py", old_text="A = 1", new_text="A = 2"
    )
    assert (failed, "changed meanwhile; nothing was written" in told) == (True, True)
    assert (editor.text, editor.undo) == ("A = 1\nmine\n", [])
    close_buffer(server, editor.uri)


def test_b55_an_edit_that_the_editor_refuses_is_told(server: Server, provider: Provider) -> None:
    """The version moved on while the edit was on its way."""
    editor = Editor(server, "f.py", "A = 1\n", "A = 1\n")
    allow(server)
    apply = editor.apply

    def late(params: Any) -> Any:
        editor.version += 1  # somebody types, and the news is not out yet
        return apply(params)

    server.on_request("workspace/applyEdit", late)
    told, failed, _ = turn(server, provider, "write_file", path="g.py", content="x\n")
    assert failed is False
    told, failed, _ = turn(
        server, provider, "edit_file", path="f.py", old_text="A = 1", new_text="A = 2"
    )
    assert failed is True
    assert "did not take the change of 'f.py' (the buffer has changed); nothing was" in told
    assert editor.text == "A = 1\n"
    close_buffer(server, editor.uri)


def test_a_cancel_while_the_editor_is_silent(server: Server, provider: Provider) -> None:
    """An editor that never answers holds up neither a cancel nor the next turn."""
    editor = Editor(server, "f.py", "A = 1\n", "A = 1\n")
    asked, release = threading.Event(), threading.Event()

    def silent(params: Any) -> Any:
        asked.set()
        release.wait(PATIENCE)
        return {"applied": False}

    allow(server)
    server.on_request("workspace/applyEdit", silent)
    edit = {"path": "f.py", "old_text": "A = 1", "new_text": "A = 2"}
    provider.script(replies.tools(("c1", "edit_file", edit)))
    turn = begin_ask(server, "go")
    assert asked.wait(PATIENCE)
    server.request("tiro/turn/cancel")
    assert turn.result()["stopReason"] == "cancelled"
    assert "outcome is not known" in window(server)[-1][1]["content"]
    release.set()
    provider.script(replies.text("usable"))
    assert ask(server, "hi")["text"] == "usable"
    close_buffer(server, editor.uri)


def test_b54_a_closed_file_keeps_what_it_is(server: Server, provider: Provider) -> None:
    path = server.home.write("dos.txt", "")
    path.write_bytes(b"\xef\xbb\xbfx=1\r\n# caf\xc3\xa9\r\nend")
    path.chmod(0o755)
    allow(server)
    _, failed, _ = turn(
        server, provider, "edit_file", path="dos.txt", old_text="x=1\n# c", new_text="x=2\n# C"
    )
    assert failed is False
    assert path.read_bytes() == b"\xef\xbb\xbfx=2\r\n# Caf\xc3\xa9\r\nend"
    assert path.stat().st_mode & 0o777 == 0o755


def test_a_user_who_says_no_keeps_the_file(server: Server, provider: Provider) -> None:
    path = server.home.write("a.txt", "old")
    server.on_request("tiro/permission/request", lambda _: {"decision": "reject"})
    told, failed, uses = turn(
        server, provider, "edit_file", path="a.txt", old_text="old", new_text="new"
    )
    assert (failed, uses[-1]["status"], path.read_text()) == (True, "rejected", "old")
    assert "nothing was run or changed" in told


@both_styles
@pytest.mark.parametrize("finish", ["length", "stop"])
def test_b32_a_write_that_was_cut_leaves_the_file_alone(
    server: Server, provider: Provider, style: Style, finish: str
) -> None:
    """60 % of the arguments, whatever the server says of it: nothing is written, one repeat."""
    old = "".join(f"line {i}\n" for i in range(200))
    path = server.home.write("long.py", old)
    allow(server)
    whole = '{"path": "long.py", "content": "' + "new line\\n" * 100 + '"}'
    cut = whole[: len(whole) * 6 // 10]
    finish = anthropic_replies.STOP_REASONS[finish] if "claude" in style.model else finish
    reply = style.tools(("c1", "write_file", cut), finish=finish)
    provider.script(reply, reply, reply)
    done = ask(server, "go", model=style.model)
    assert (done["stopReason"], done["steps"]) == ("max_tokens", 2)
    assert path.read_text() == old
    results = [content for role, content in window(server) if role == "tool"]
    assert ["truncated" in result["content"] for result in results] == [True, True]
    assert not [e for e in events(server, done) if e.get("status") == "running"]
    provider.reset()
    provider.script(style.text("usable"))
    assert ask(server, "hi", model=style.model)["text"] == words(server)[-1] == "usable"
