"""Protocol section 7: everything through `workspace/executeCommand`, for any LSP client."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.protocol.fakes import Client
from tests.protocol.test_editor import SHOWS, answering
from tiro.agents import events

SPAN = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 2}}
HERE = {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 0}}


async def ready(*scripts: Any, **given: Any) -> Client:
    client = Client(*scripts)
    await client.initialize(**given)
    client.outlet.bodies.clear()
    return client


def command(client: Client, name: str, *arguments: Any) -> Any:
    params = {"command": name, "arguments": list(arguments)} if arguments else {"command": name}
    return client.request("workspace/executeCommand", params)


async def result(client: Client, name: str, *arguments: Any) -> Any:
    answer = await client.answer(command(client, name, *arguments))
    assert "error" not in answer, answer
    return answer["result"]


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("tiro.clearSession", "tiro/session/clear"),
        ("tiro.newSession", "tiro/session/new"),
        ("tiro.saveSession", "tiro/session/save"),
        ("tiro.listSessions", "tiro/session/list"),
        ("tiro.showCurrentAgent", "tiro/session/getAgent"),
        ("tiro.cancel", "tiro/turn/cancel"),
        ("tiro.resizeSession", "tiro/session/resize"),
        ("tiro.compactSession", "tiro/session/compact"),
        ("tiro.contextSize", "tiro/session/contextSize"),
    ],
)
async def test_a_command_returns_the_result_of_its_method(name: str, method: str) -> None:
    client = await ready()
    shown = await result(client, name)
    assert set(shown) == set(await client.call(method))


async def test_show_session_returns_the_text_or_null() -> None:
    client = await ready()
    assert await result(client, "tiro.showSession") is None
    await client.call("tiro/session/addMessage", {"role": "user", "content": "hi"})
    text = "Session Summary:\n\n[USER] hi"
    assert await result(client, "tiro.showSession") == text


async def test_show_session_opens_a_long_text_where_the_client_can() -> None:
    client = await ready(capabilities=SHOWS)
    for n in range(10):
        await client.call("tiro/session/addMessage", {"role": "user", "content": f"line {n}"})
    showing = command(client, "tiro.showSession")
    await answering(client, "window/showDocument", lambda _: {"result": {"success": True}})
    assert "line 9" in (await client.answer(showing))["result"]
    client.service.editor.close()


@pytest.mark.parametrize(
    ("argument", "call"),
    [("an-id", (None, "an-id", None)), ("/s/a.json", ("/s/a.json", None, None)),
     ("file:///s/a.json", ("/s/a.json", None, None))],
)  # fmt: skip
async def test_load_takes_an_id_or_a_path(argument: str, call: Any) -> None:
    client = await ready()
    await result(client, "tiro.loadSession", argument)
    [(_, path, id_, latest)] = [c for c in client.assistant.calls if c[0] == "load"]
    assert (path and str(path), id_, latest) == call


async def test_load_asks_for_one_of_the_newest_five() -> None:
    client = await ready()
    for n in range(7):
        client.assistant.files[f"s{n}"] = client.assistant.session
    loading = command(client, "tiro.loadSession")
    asked = await answering(
        client,
        "window/showMessageRequest",
        lambda params: {"result": params["actions"][2]},
    )
    assert len(asked["actions"]) == 5
    assert "About s2" in asked["actions"][2]["title"]
    assert "error" not in await client.answer(loading)
    assert ("load", None, "s2", None) in client.assistant.calls


async def test_a_dismissed_question_gives_null_and_nothing_waits_for_it() -> None:
    client = await ready()
    selecting = command(client, "tiro.selectAgent")
    await client.until(lambda: client.sent("window/showMessageRequest"))
    assert await client.call("tiro/session/getAgent") == {"agent": None}
    await answering(client, "window/showMessageRequest", lambda _: {"result": None})
    assert (await client.answer(selecting))["result"] is None
    assert await result(client, "tiro.loadSession", None) is None, "no session, no question"


async def test_search_shows_its_hits_and_export_its_text_where_the_client_can() -> None:
    client = await ready(capabilities=SHOWS)
    assert await result(client, "tiro.searchSessions", "needle") == {"hits": []}
    assert ("search", "needle", None) in client.assistant.calls
    client.assistant.exported = "# A long text\n" * 5
    exporting = command(client, "tiro.exportSession")
    asked = await answering(client, "window/showDocument", lambda _: {"result": {}})
    assert asked["uri"].endswith("session.md")
    assert (await client.answer(exporting))["result"]["text"] == client.assistant.exported
    client.service.editor.close()


async def test_export_and_import_take_a_path() -> None:
    client = await ready()
    path = await result(client, "tiro.exportSession", "yaml", "/s/out.yaml")
    assert path == {"path": "/s/out.yaml"}
    shown = await result(client, "tiro.importSession", "/s/out.yaml")
    assert shown["notes"] == ["a note"]
    calls = [call for call in client.assistant.calls if call[0] in ("export", "import_from")]
    assert [str(call) for call in calls] == [
        str(("export", "yaml", None, Path("/s/out.yaml"), None)),
        str(("import_from", Path("/s/out.yaml"), None, None, False)),
    ]


@pytest.mark.parametrize("name", ["tiro.ask", "tiro.searchSessions", "tiro.importSession"])
@pytest.mark.parametrize("arguments", [(), (None,), (" ",), (1,)])
async def test_a_missing_argument_is_bad_params(name: str, arguments: Any) -> None:
    client = await ready()
    answer = await client.answer(command(client, name, *arguments))
    assert answer["error"]["code"] == -32602
    assert "$.arguments[0]" in answer["error"]["message"]


async def test_select_agent_by_name_and_by_choice() -> None:
    client = await ready()
    assert (await result(client, "tiro.selectAgent", "plan"))["agent"]["name"] == "plan"
    error = (await client.answer(command(client, "tiro.selectAgent", "none")))["error"]
    assert error["data"]["kind"] == "agentNotFound"
    selecting = command(client, "tiro.selectAgent")
    asked = await answering(
        client, "window/showMessageRequest", lambda _: {"result": {"title": "build"}}
    )
    assert [action["title"] for action in asked["actions"]] == ["build", "plan"]
    assert (await client.answer(selecting))["result"]["agent"]["name"] == "build"


async def test_ask_answers_like_turn_start_and_shows_long_answers() -> None:
    client = await ready([events.Text("long answer\n" * 50)], capabilities=SHOWS)
    asking = command(client, "tiro.ask", "why?", [{"kind": "text", "text": "this"}])
    await answering(client, "window/workDoneProgress/create", lambda _: {"result": None})
    await answering(client, "window/showDocument", lambda _: {"result": {"success": True}})
    answer = (await client.answer(asking))["result"]
    assert answer["text"] == "long answer\n" * 50
    [call] = [c for c in client.assistant.calls if c[0] == "start_turn"]
    assert call[1] == "why?"
    assert call[2][0].text == "this"
    client.service.editor.close()


async def test_cancel_ends_an_ask() -> None:
    client = await ready([events.Text("a"), asyncio.Event()])
    asking = command(client, "tiro.ask", "why?")
    await client.until(lambda: client.sent("tiro/turn/event"))
    assert await result(client, "tiro.cancel") == {"cancelled": True}
    assert (await client.answer(asking))["result"]["stopReason"] == "cancelled"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("tiro.ask", []),
        ("tiro.ask", [None]),
        ("tiro.ask", ["  "]),
        ("tiro.ask", [5]),
        ("tiro.ask", ["x", "no attachments"]),
        ("tiro.loadSession", [5]),
        ("tiro.selectAgent", [{}]),
        ("tiro.unknown", []),
        ("tiro.undoEdits", []),
        ("tiro.redoEdits", []),
    ],
)
async def test_unusable_arguments_and_unknown_commands(name: str, arguments: list[Any]) -> None:
    client = await ready()
    answer = await client.answer(command(client, name, *arguments))
    assert answer["error"]["code"] == -32602


# --- code actions ---------------------------------------------------------------------------------


async def actions(client: Client, span: Any, *diagnostics: Any, only: Any = None) -> Any:
    return await client.call(
        "textDocument/codeAction",
        {
            "textDocument": {"uri": "file:///w/a.py"},
            "range": span,
            "context": {"diagnostics": list(diagnostics), "only": only},
        },
    )


async def test_code_actions_on_a_selection() -> None:
    client = await ready()
    found = await actions(client, SPAN)
    assert [action["title"] for action in found] == ["Ask Tiro about this", "Explain"]
    for action in found:
        assert action["command"]["command"] == "tiro.ask"
        prompt, [attachment] = action["command"]["arguments"]
        assert prompt.strip()
        assert attachment == {"kind": "selection", "path": "/w/a.py", "range": SPAN}
    assert await actions(client, HERE) == []


async def test_a_diagnostic_can_be_fixed() -> None:
    client = await ready()
    diagnostic = {"range": HERE, "message": "x is not defined"}
    [fix] = await actions(client, HERE, diagnostic)
    assert (fix["title"], fix["kind"]) == ("Fix this diagnostic", "quickfix")
    assert "line 2: x is not defined" in fix["command"]["arguments"][0]
    answer = await client.answer(
        command(client, fix["command"]["command"], *fix["command"]["arguments"])
    )
    assert answer["result"]["stopReason"] == "end_turn"


@pytest.mark.parametrize(
    ("only", "titles"),
    [(["quickfix"], ["Fix this diagnostic"]), (["tiro"], ["Ask Tiro about this", "Explain"]),
     (["refactor"], []), ([""], ["Ask Tiro about this", "Explain", "Fix this diagnostic"])],
)  # fmt: skip
async def test_only_the_wanted_kinds_are_offered(only: Any, titles: list[str]) -> None:
    client = await ready()
    found = await actions(client, SPAN, {"range": HERE, "message": "m"}, only=only)
    assert [action["title"] for action in found] == titles
