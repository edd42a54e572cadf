"""Changing an open buffer: the smallest edits, on the version that was seen; what came of it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.protocol.fakes import Client
from tiro.errors import EditConflictError, ToolError
from tiro.protocol import buffer_edits, types
from tiro.protocol.buffer_edits import text_edits
from tiro.protocol.buffers import ContentChange, changed

PATH = Path("/w/é.py")
URI = "file:///w/%C3%A9.py"
EDITS = {"workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}}}
CHANGES_ONLY = {"workspace": {"applyEdit": True}}
TEXTS = st.text(alphabet="ab\r\n\U0001f600é", max_size=30)


def applied(old: str, edits: list[dict[str, Any]], encoding: str) -> str:
    """What a client makes of the edits: all places are those of the old text."""
    for edit in reversed(edits):
        start, end = (types.Position(**edit["range"][end]) for end in ("start", "end"))
        change = ContentChange(edit["newText"], types.Range(start, end))
        old = changed(old, change, encoding)
    return old


@hypothesis.given(TEXTS, TEXTS, st.sampled_from(["utf-8", "utf-16", "utf-32"]))
@hypothesis.example("a\rb", "a\r\nb", "utf-16")
@hypothesis.example("a\r\nb", "a\rb", "utf-16")
@hypothesis.example("a\r\nb", "a\nb", "utf-16")
def test_edits_make_the_new_text(old: str, new: str, encoding: str) -> None:
    edits = text_edits(old, new, encoding)
    assert applied(old, edits, encoding) == new
    assert bool(edits) == (old != new)


def test_edits_touch_only_what_differs() -> None:
    """So point and markers elsewhere stay where they are."""
    old = "".join(f"line {i}\r\n" for i in range(100))
    new = old.replace("line 7\r", "line seven\r").replace("line 60\r\n", "")
    edits = text_edits(old, new, "utf-16")
    assert [(e["range"]["start"], e["range"]["end"], e["newText"]) for e in edits] == [
        ({"line": 7, "character": 5}, {"line": 7, "character": 6}, "seven"),
        ({"line": 60, "character": 0}, {"line": 61, "character": 0}, ""),
    ]


async def ready(capabilities: dict[str, Any], text: str = "one\ntwo\n") -> Client:
    client = Client()
    await client.initialize(capabilities=capabilities)
    document = {"uri": URI, "languageId": "x", "version": 7, "text": text}
    client.notify("textDocument/didOpen", {"textDocument": document})
    return client


def told(client: Client, text: str, version: int = 8) -> None:
    """The editor tells what the buffer holds now."""
    client.notify(
        "textDocument/didChange",
        {"textDocument": {"uri": URI, "version": version}, "contentChanges": [{"text": text}]},
    )


async def edited(
    client: Client, react: Callable[[int], None], old: str = "one\ntwo\n", new: str = "1\ntwo\n"
) -> Any:
    """The params of the one request, once the edit is done; the error of the edit is raised."""
    editing = asyncio.ensure_future(client.service.editor.apply_edit(PATH, old, new))

    def found() -> Any:
        messages = client.outlet.messages()
        return [m for m in messages if m.get("method") == "workspace/applyEdit"]

    asked = await client.until(found)
    react(asked[0]["id"])
    await editing
    return asked[0]["params"]


def answers(client: Client, result: Any, text: str | None = None) -> Callable[[int], None]:
    def react(id_: int) -> None:
        if text is not None:
            told(client, text)
        client.send({"jsonrpc": "2.0", "id": id_, "result": result})

    return react


async def test_an_edit_goes_to_the_version_that_was_seen() -> None:
    """B55: one document edit is one step of the editor's own undo."""
    client = await ready(EDITS)
    params = await edited(client, answers(client, {"applied": True}, "1\ntwo\n"))
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 3}}
    assert params["edit"] == {
        "documentChanges": [
            {
                "textDocument": {"uri": URI, "version": 7},
                "edits": [{"range": span, "newText": "1"}],
            }
        ]
    }
    assert client.service.editor.open_text(PATH) == "1\ntwo\n"


async def test_version_numbers_out_of_order_are_taken_as_they_come() -> None:
    """B55: the newest news hold, and an edit is for the version that they name."""
    client = await ready(EDITS)
    told(client, "typed\n", version=5)
    react = answers(client, {"applied": True}, "1\n")
    params = await edited(client, react, "typed\n", "1\n")
    assert params["edit"]["documentChanges"][0]["textDocument"]["version"] == 5


async def test_a_client_without_document_changes_gets_plain_ones() -> None:
    client = await ready(CHANGES_ONLY)
    params = await edited(client, answers(client, {"applied": True}, "1\ntwo\n"))
    assert list(params["edit"]) == ["changes"]
    assert list(params["edit"]["changes"]) == [URI]


async def test_the_new_text_may_come_after_the_answer() -> None:
    client = await ready(EDITS)

    def react(id_: int) -> None:
        client.send({"jsonrpc": "2.0", "id": id_, "result": {"applied": True}})
        asyncio.get_running_loop().call_later(0.01, told, client, "1\ntwo\n")

    await edited(client, react)
    assert client.service.editor.open_text(PATH) == "1\ntwo\n"


async def test_line_ends_are_the_editors_matter() -> None:
    """An editor may give all lines the line end of the document."""
    client = await ready(EDITS, "one\r\ntwo\r\n")
    react = answers(client, {"applied": True}, "1\r\n2\r\ntwo\r\n")
    await edited(client, react, "one\r\ntwo\r\n", "1\n2\ntwo\r\n")


@pytest.mark.parametrize(
    ("result", "text", "error", "why"),
    [
        ({"applied": False, "failureReason": "version"}, None, ToolError, "(version)"),
        ({"applied": False}, None, ToolError, "no reason"),
        (None, None, ToolError, "no reason"),
        ({"applied": False}, "one\ntwo\nthree\n", EditConflictError, "changed in the editor"),
    ],
)
async def test_an_edit_that_was_not_made(
    result: Any, text: str | None, error: type[Exception], why: str
) -> None:
    client = await ready(EDITS)
    with pytest.raises(error) as raised:
        await edited(client, answers(client, result, text))
    assert why in str(raised.value)
    assert "nothing was written" in str(raised.value)


async def test_an_error_of_the_client_is_told() -> None:
    client = await ready(EDITS)
    error = {"code": -32603, "message": "read-only buffer"}
    with pytest.raises(ToolError, match="read-only buffer") as raised:
        await edited(client, lambda id_: client.send({"jsonrpc": "2.0", "id": id_, "error": error}))
    assert "outcome" not in raised.value.data


async def test_a_silent_editor_leaves_the_outcome_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a hang nor a claim: the edit may still be made."""
    monkeypatch.setattr(buffer_edits, "EDIT_SECONDS", 0.05)
    client = await ready(EDITS)
    with pytest.raises(ToolError, match="did not say") as raised:
        await edited(client, lambda _: None)
    assert raised.value.data == {"outcome": "unknown"}
    assert client.sent("$/cancelRequest"), "the editor is told that nobody waits any more"


async def test_a_silent_editor_that_made_the_edit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffer_edits, "EDIT_SECONDS", 0.05)
    client = await ready(EDITS)
    await edited(client, lambda _: told(client, "1\ntwo\n"))


async def test_an_edit_that_never_arrives_is_not_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffer_edits, "NEWS_SECONDS", 0.05)
    client = await ready(EDITS)
    with pytest.raises(ToolError, match="did not say") as raised:
        await edited(client, answers(client, {"applied": True}))
    assert raised.value.data == {"outcome": "unknown"}


async def test_whoever_types_on_after_the_edit_does_not_undo_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(buffer_edits, "NEWS_SECONDS", 0.05)
    client = await ready(EDITS)
    await edited(client, answers(client, {"applied": True}, "1\ntwo\nand more\n"))


@pytest.mark.parametrize("is_closed", [True, False])
async def test_a_buffer_that_moved_on_is_not_touched(is_closed: bool) -> None:
    """B55: the user types between the question and the edit."""
    client = await ready(EDITS)
    if is_closed:
        client.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
    else:
        told(client, "one, and more\ntwo\n")
    with pytest.raises(EditConflictError):
        await client.service.editor.apply_edit(PATH, "one\ntwo\n", "1\ntwo\n")
    assert not client.sent("workspace/applyEdit")


async def test_an_edit_over_the_limit_of_a_message_is_refused_whole() -> None:
    """A request of ours has at most 1 MB, and a text must never be cut on its way."""
    client = await ready(EDITS)
    with pytest.raises(ToolError, match="too large"):
        await client.service.editor.apply_edit(PATH, "one\ntwo\n", "x" * 1_000_000)
    assert not client.sent("workspace/applyEdit")


async def test_who_can_be_edited() -> None:
    assert (await ready(EDITS)).service.editor.can_edit()
    assert not (await ready({})).service.editor.can_edit()
