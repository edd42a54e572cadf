"""What we ask of the editor: permissions, choices, documents, progress. No answer means no."""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
import pytest

from tests.protocol.fakes import Client
from tiro.agents import events
from tiro.protocol import editor as editor_module
from tiro.protocol.shown_texts import ShownTexts
from tiro.stores.processes import mark
from tiro.tools.editor import Diagnostic, PermissionAnswer, PermissionRequest

REQUEST = PermissionRequest(
    tool_use_id="c1", name="read_file", input={"path": "/etc/x", "n": 2**70}, agent="build",
    rule="external_directory: ask", effect="read", always=["read: /etc/x allow"], preview=None,
)  # fmt: skip
OURS = {"features": {"permissionRequest": True}}
SHOWS = {"window": {"showDocument": {"support": True}, "workDoneProgress": True}}


async def ready(**given: Any) -> Client:
    client = Client()
    await client.initialize(**given)
    client.outlet.bodies.clear()
    return client


async def answering(client: Client, method: str, reply: Callable[[Any], dict[str, Any]]) -> Any:
    """Answer the next request of ours; its params."""
    seen: list[Any] = []

    def found() -> Any:
        seen[:] = [m for m in client.outlet.messages() if m.get("method") == method and "id" in m]
        return seen

    await client.until(found)
    client.send({"jsonrpc": "2.0", "id": seen[-1]["id"], **reply(seen[-1]["params"])})
    return seen[-1]["params"]


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ({"result": {"decision": "once"}}, PermissionAnswer("once")),
        ({"result": {"decision": "always", "more": 1}}, PermissionAnswer("always")),
        (
            {"result": {"decision": "reject", "message": "not now"}},
            PermissionAnswer("reject", "not now"),
        ),
        ({"result": {"decision": "yes"}}, PermissionAnswer("reject")),
        ({"result": None}, PermissionAnswer("reject")),
        ({"result": []}, PermissionAnswer("reject")),
        ({"error": {"code": -32601, "message": "no such method"}}, PermissionAnswer("reject")),
        ({"error": "odd"}, PermissionAnswer("reject")),
    ],
)
async def test_a_client_of_ours_is_asked_directly(reply: Any, answer: PermissionAnswer) -> None:
    client = await ready(initializationOptions=OURS)
    asking = asyncio.ensure_future(client.service.editor.ask_permission(REQUEST))
    params = await answering(client, "tiro/permission/request", lambda _: reply)
    assert await asking == answer
    assert params == {
        "turnId": "",
        "toolUse": {
            "id": "c1",
            "name": "read_file",
            "input": {"path": "/etc/x", "n": str(2**70)},
        },
        "agent": "build",
        "rule": "external_directory: ask",
        "always": ["read: /etc/x allow"],
        "effect": "read",
    }


PROBLEM = {
    "path": "/w/a.py", "severity": "warning", "message": "unused", "code": 7, "more": 1,
    "range": {"start": {"line": 2, "character": 4}, "end": {"line": 2, "character": 9}},
}  # fmt: skip


async def test_the_diagnostics_of_a_client_that_tells_them() -> None:
    client = await ready(initializationOptions={"features": {"diagnostics": True}})
    editor = client.service.editor
    assert editor.can_diagnose()
    asking = asyncio.ensure_future(editor.diagnostics(Path("/w/a.py")))
    result = {"diagnostics": [PROBLEM, {**PROBLEM, "path": "untitled:1"}]}
    params = await answering(client, "tiro/editor/diagnostics", lambda _: {"result": result})
    assert params == {"path": "/w/a.py"}
    assert await asking == [
        Diagnostic(
            path=Path("/w/a.py"), line=2, column=4, severity="warning", message="unused", code="7"
        )
    ]


@pytest.mark.parametrize(
    "reply",
    [
        {"result": None},
        {"result": {"diagnostics": [{**PROBLEM, "severity": "bad"}]}},
        {"error": {"code": -32603, "message": "no"}},
    ],
)
async def test_no_usable_answer_is_no_diagnostics(reply: Any) -> None:
    client = await ready(initializationOptions={"features": {"diagnostics": True}})
    asking = asyncio.ensure_future(client.service.editor.diagnostics(None))
    assert await answering(client, "tiro/editor/diagnostics", lambda _: reply) == {}
    assert await asking is None


async def test_a_client_that_did_not_announce_them_is_not_asked() -> None:
    client = await ready(initializationOptions=OURS)
    assert not client.service.editor.can_diagnose()
    assert await client.service.editor.diagnostics(None) is None
    assert client.sent("tiro/editor/diagnostics") == []


@pytest.mark.parametrize(
    ("choice", "decision"),
    [("Allow once", "once"), ("Always allow in this session", "always"), ("Reject", "reject"),
     ("odd", "reject"), (None, "reject")],
)  # fmt: skip
async def test_any_other_client_is_asked_with_a_message(choice: Any, decision: str) -> None:
    client = await ready()
    asking = asyncio.ensure_future(client.service.editor.ask_permission(REQUEST))
    result = None if choice is None else {"title": choice}
    params = await answering(client, "window/showMessageRequest", lambda _: {"result": result})
    assert (await asking).decision == decision
    assert len(params["actions"]) == 3
    assert "read_file" in params["message"]


async def test_any_other_client_is_shown_all_that_it_is_asked_about() -> None:
    """A question is short; what would be done can be read whole in a window beside it."""
    client = await ready(capabilities=SHOWS)
    preview = "+line\n" * 500 + "+the last"
    request = msgspec.structs.replace(REQUEST, preview=preview)
    asking = asyncio.ensure_future(client.service.editor.ask_permission(request))
    shown = await answering(client, "window/showDocument", lambda _: {"result": {"success": True}})
    path = Path(unquote(urlsplit(shown["uri"]).path))
    assert await asyncio.to_thread(path.read_text) == preview
    params = await answering(client, "window/showMessageRequest", lambda _: {"result": None})
    assert params["message"].endswith(f" … [{len(preview) - 1000:,} more characters]")
    assert (await asking).decision == "reject"
    client.service.editor.close()


async def test_a_question_is_withdrawn_when_its_turn_is_cancelled() -> None:
    client = await ready(initializationOptions=OURS)
    asking = asyncio.ensure_future(client.service.editor.ask_permission(REQUEST))
    await client.until(lambda: client.sent("tiro/permission/request"))
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    [request] = [m for m in client.outlet.messages() if m.get("method", "").startswith("tiro/p")]
    assert client.sent("$/cancelRequest") == [{"id": request["id"]}]


async def test_an_open_question_counts_as_rejected_at_the_end() -> None:
    client = await ready(initializationOptions=OURS)
    asking = asyncio.ensure_future(client.service.editor.ask_permission(REQUEST))
    await client.until(lambda: client.sent("tiro/permission/request"))
    await client.call("shutdown")
    assert await asking == PermissionAnswer("reject")


async def test_a_large_request_is_cut_to_1_mb() -> None:
    client = await ready(initializationOptions=OURS)
    large = PermissionRequest(
        tool_use_id="c", name="write_file", input={"text": "x" * 3_000_000}, agent="a", rule="r",
        effect="write", preview="p" * 3_000_000,
    )  # fmt: skip
    asking = asyncio.ensure_future(client.service.editor.ask_permission(large))
    await answering(client, "tiro/permission/request", lambda _: {"result": {"decision": "once"}})
    assert (await asking).decision == "once"
    assert max(client.outlet.sizes) <= 1_000_000


async def test_a_client_that_never_answers_holds_nothing_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(editor_module, "ANSWER_SECONDS", 0.01)
    client = await ready(capabilities=SHOWS)
    await client.service.editor.show_text("a.txt", "long\n" * 100)
    async with client.service.editor.progress("Long") as report:
        report("half", 0.5)
    assert len(client.sent("window/showDocument")) == 1
    assert len(client.sent("window/workDoneProgress/create")) == 1
    assert client.sent("$/progress") == []
    client.service.editor.close()


# --- buffers and roots ----------------------------------------------------------------------------


async def test_open_buffers_have_their_live_text() -> None:
    client = await ready()
    document = {"uri": "file:///w/%C3%A9.py", "languageId": "x", "version": 1, "text": "a\nb"}
    client.notify("textDocument/didOpen", {"textDocument": document})
    client.notify(
        "textDocument/didChange",
        {
            "textDocument": {"uri": document["uri"], "version": 2},
            "contentChanges": [
                {
                    "range": {
                        "start": {"line": 1, "character": 0},
                        "end": {"line": 1, "character": 1},
                    },
                    "rangeLength": 1,
                    "text": "new",
                }
            ],
        },
    )
    editor = client.service.editor
    assert editor.open_paths() == [Path("/w/é.py")]
    assert editor.open_text(Path("/w/é.py")) == "a\nnew"
    assert editor.open_text(Path("/w/other.py")) is None
    client.notify("textDocument/didSave", {"textDocument": {"uri": document["uri"]}})
    client.notify("textDocument/didClose", {"textDocument": {"uri": document["uri"]}})
    assert editor.open_paths() == []


# --- telling --------------------------------------------------------------------------------------


async def test_a_long_text_is_shown_in_a_private_file_that_goes_at_the_end() -> None:
    client = await ready(capabilities=SHOWS)
    editor = client.service.editor
    showing = asyncio.ensure_future(editor.show_text("session.txt", "line\n" * 50))
    params = await answering(client, "window/showDocument", lambda _: {"result": {"success": True}})
    await showing
    path = Path(unquote(urlsplit(params["uri"]).path))
    assert await asyncio.to_thread(path.read_text) == "line\n" * 50
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.stat(path.parent).st_mode & 0o777 == 0o700
    editor.close()
    with pytest.raises(FileNotFoundError):
        os.stat(path.parent)


@pytest.mark.skipif(not mark(), reason="the system does not tell this machine from others")
def test_what_killed_servers_have_shown_goes_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        pass
    gone = f"tiro-shown-{dead.pid}-{mark()}-x"
    stay = [
        f"tiro-shown-{os.getppid()}-{mark()}-x",
        f"tiro-shown-{dead.pid}-m00000000-x",
        f"tiro-shown-{dead.pid}",
        f"tiro-shown-x-{mark()}-y",
        f"tiro-rescued-{dead.pid}-{mark()}-x",
    ]
    for name in (gone, *stay):
        (tmp_path / name).mkdir()
        (tmp_path / name / "text").write_text("shown")
    shown = ShownTexts()
    path = shown.write("a.txt", "text")
    assert {folder.name for folder in tmp_path.iterdir()} == {*stay, path.parent.name}
    other = ShownTexts()
    other.write("a.txt", "text")
    other.close()
    assert path.read_text() == "text"
    shown.close()
    assert {folder.name for folder in tmp_path.iterdir()} == set(stay)


async def test_a_short_text_or_a_client_that_cannot_is_left_alone() -> None:
    client = await ready(capabilities=SHOWS)
    await client.service.editor.show_text("a.txt", "short")
    other = await ready()
    await other.service.editor.show_text("a.txt", "long\n" * 100)
    assert client.outlet.bodies == other.outlet.bodies == []


async def test_a_message_is_told_once() -> None:
    client = await ready()
    for _ in range(3):
        client.service.editor.say_once("the disk is full")
    client.service.editor.say("something else")
    client.service.editor.say("something else")
    assert [told["type"] for told in client.sent("window/showMessage")] == [2, 2, 2]


async def test_long_work_is_shown_as_progress() -> None:
    client = await ready(capabilities=SHOWS)
    gate = asyncio.Event()
    client.assistant.scripts.append(
        [events.Progress("Loading", 0.0), events.Progress("Loading", 0.5), gate, events.Text("a")]
    )
    turn = client.request("tiro/turn/start", {"prompt": "x"})
    created = await answering(client, "window/workDoneProgress/create", lambda _: {"result": None})
    await client.until(lambda: len(client.sent("$/progress")) == 3)
    gate.set()
    await client.answer(turn)
    await client.until(lambda: len(client.sent("$/progress")) == 4)
    told = client.sent("$/progress")
    assert {t["token"] for t in told} == {created["token"]}
    assert [t["value"]["kind"] for t in told] == ["begin", "report", "report", "end"]
    assert [t["value"].get("percentage") for t in told] == [None, 0, 50, None]
    assert "progress" not in [event["type"] for event in client.sent("tiro/turn/event")]


async def test_a_long_search_is_shown_and_holds_nobody_up() -> None:
    """It begins after what was asked before it; what is asked later need not wait for it."""
    client = await ready(capabilities=SHOWS)
    gate, began = asyncio.Event(), asyncio.Event()

    async def hold(name: str) -> None:
        if name == "search":
            began.set()
            await gate.wait()

    client.assistant.before = hold
    client.request("tiro/session/addMessage", {"role": "user", "content": "before"})
    search = client.request("tiro/session/search", {"query": "x"})
    await answering(client, "window/workDoneProgress/create", lambda _: {"result": None})
    await began.wait()
    assert [call[0] for call in client.assistant.calls][-2:] == ["add_message", "search"]
    assert (await client.call("tiro/session/get"))["total"] == 1
    assert client.answers(search) == []
    gate.set()
    assert (await client.answer(search))["result"] == {"hits": []}
    await client.until(lambda: len(client.sent("$/progress")) == 3)
    told = client.sent("$/progress")
    assert [t["value"]["kind"] for t in told] == ["begin", "report", "end"]
    assert told[1]["value"]["percentage"] == 25


async def test_a_search_can_be_cancelled() -> None:
    client = await ready()
    began = asyncio.Event()

    async def hold(name: str) -> None:
        began.set()
        await asyncio.Event().wait()

    client.assistant.before = hold
    search = client.request("tiro/session/search", {"query": "x"})
    await began.wait()
    client.notify("$/cancelRequest", {"id": search})
    assert (await client.answer(search))["error"]["code"] == -32800


async def test_a_client_without_progress_is_not_asked_for_it() -> None:
    client = await ready()
    client.assistant.scripts.append([events.Progress("Loading", 0.5), events.Text("a")])
    await client.call("tiro/turn/start", {"prompt": "x"})
    assert client.sent("window/workDoneProgress/create") == client.sent("$/progress") == []


async def test_a_client_that_refuses_a_token_gets_no_progress() -> None:
    client = await ready(capabilities=SHOWS)

    async def work() -> None:
        async with client.service.editor.progress("Long") as report:
            report("half", 0.5)

    working = asyncio.ensure_future(work())
    error = {"code": -32600, "message": "no"}
    await answering(client, "window/workDoneProgress/create", lambda _: {"error": error})
    await working
    assert client.sent("$/progress") == []
