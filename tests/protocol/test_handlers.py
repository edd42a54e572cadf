"""Every method against a fake assistant: what it is asked, what comes out, and in which order."""

import asyncio
import errno
import os
from pathlib import Path
from typing import Any

import pytest

from tests.protocol.fakes import Client, Script
from tiro.agents import events
from tiro.errors import ModelError, ModelNotConfiguredError
from tiro.protocol import types
from tiro.protocol.handlers import HANDLERS
from tiro.protocol.wire import to_wire_error
from tiro.stores.notices import Notice


async def ready(*scripts: Script, **given: Any) -> Client:
    client = Client(*scripts)
    await client.initialize(**given)
    client.outlet.bodies.clear()
    client.assistant.calls.clear()
    return client


def test_every_method_has_a_handler() -> None:
    assert set(HANDLERS) == set(types.METHODS)


async def test_every_result_has_exactly_the_fields_of_its_type() -> None:
    client = await ready()
    await client.call("tiro/session/addMessage", {"role": "user", "content": "a"})
    params: dict[str, Any] = {
        "tiro/session/content": {"seq": 1},
        "tiro/session/addMessage": {"role": "user", "content": "b"},
        "tiro/session/addToolResult": {"toolUseId": "c", "content": "r"},
        "tiro/session/setAgent": {"name": "plan"},
        "tiro/session/load": {"latest": True},
        "tiro/session/delete": {"id": "x"},
        "tiro/session/rename": {"id": "x", "title": "t"},
        "tiro/trash/restore": {"id": "x"},
        "tiro/session/search": {"query": "x"},
        "tiro/session/export": {"format": "json"},
        "tiro/session/import": {"text": "{}"},
        "tiro/session/rewind": {"toSeq": 1},
        "tiro/session/editMessage": {"seq": 1, "content": "c"},
        "tiro/session/applyResize": {"draftId": "d"},
        "tiro/session/pin": {"seq": 1, "pinned": True},
        "tiro/state/get": {"key": "k"},
        "tiro/state/set": {"key": "k", "value": None},
        "tiro/state/delete": {"key": "k"},
        "tiro/turn/start": {"prompt": "x"},
        "tiro/turn/steer": {"text": "x"},
        "tiro/models/set": {"name": "a/b"},
        "tiro/edits/undo": {"turnId": "t"},
        "tiro/edits/redo": {"turnId": "t"},
        "tiro/permissions/explain": {"tool": "read_file", "input": {"path": "a"}},
    }
    recorder = client.assistant.edits.recorder_of("t", "s")("c")
    await recorder.record(Path("/nowhere/a"), None, None)
    last = ("tiro/session/clear", "tiro/session/new", "tiro/session/load")
    for method in [*(m for m in types.METHODS if m not in last), *last]:
        result = await client.call(method, params.get(method, {}))
        kind = types.METHODS[method].result
        wanted = set(kind.__struct_encode_fields__)
        if method == "tiro/state/get":
            wanted = {"found", "value"}
        elif method == "tiro/session/export":
            wanted = {"text"}
        elif method == "tiro/turn/steer":
            wanted = {"queued"}
        assert set(result) == wanted, method


async def test_the_view_of_an_empty_session() -> None:
    client = await ready()
    view = await client.call("tiro/session/get")
    assert view["id"] is None
    assert view["messages"] == []
    assert (view["total"], view["archived"], view["turns"]) == (0, 0, 0)
    assert (view["busy"], view["path"], view["savedAt"], view["summary"]) == (None, None, None, "")
    assert view["contextSize"]["tokens"] == sum(view["contextSize"]["breakdown"].values())


async def test_a_message_keeps_its_unknown_fields_and_taken_back_ones_do_not_count() -> None:
    client = await ready()
    for text in "abc":
        message = {"role": "user", "content": text, "x-y": [text], "name": "n"}
        await client.call("tiro/session/addMessage", message)
    view = await client.call("tiro/session/rewind", {"toSeq": 1})
    assert (view["total"], view["archived"]) == (1, 0)
    assert view["messages"][0]["x-y"] == ["a"]
    assert view["messages"][0]["name"] == "n"


@pytest.mark.parametrize(
    ("params", "given"),
    [
        ({}, {}),
        ({"maxHistory": None, "title": None}, {"max_history": None, "title": None}),
        ({"maxHistory": 5, "mode": "memo"}, {"max_history": 5, "mode": "memo"}),
        ({"limit": {"chars": None}}, {"limit": {"chars": None}}),
        ({"limit": {"chars": 10, "messages": 0}}, {"limit": {"chars": 10, "messages": 0}}),
        ({"limit": None}, {"limit": None}),
        (
            {"everyNTurns": 3, "memoEnabled": None, "summaryEnabled": False},
            {"every_n_turns": 3, "memo_enabled": None, "summary_enabled": False},
        ),
    ],
)
async def test_configure_tells_null_from_missing(params: Any, given: Any) -> None:
    client = await ready()
    await client.call("tiro/session/configure", params)
    assert ("configure", given) in client.assistant.calls


@pytest.mark.parametrize(
    ("path", "wanted"),
    [("file:///tmp/a%20b.json", Path("/tmp/a b.json")), ("/tmp/a%20b", Path("/tmp/a%20b"))],
)
async def test_paths_may_be_uris(path: str, wanted: Path) -> None:
    client = await ready()
    assert (await client.call("tiro/session/save", {"path": path}))["path"] == str(wanted)
    await client.call("tiro/session/load", {"path": path})
    assert ("load", wanted, None, None) in client.assistant.calls


async def test_attachments_get_plain_paths_and_say_how_their_ranges_count() -> None:
    client = await ready()
    span = {"start": {"line": 1, "character": 3}, "end": {"line": 1, "character": 6}}
    await client.call(
        "tiro/turn/start",
        {
            "prompt": [{"type": "text", "text": "x"}],
            "attachments": [
                {"kind": "selection", "path": "file:///w/a.py", "range": span},
                {"kind": "file", "path": "/w/b.py", "text": None},
                {"kind": "text", "text": "given"},
            ],
            "agent": None,
        },
    )
    [call] = [call for call in client.assistant.calls if call[0] == "start_turn"]
    first, second, third = call[2]
    assert (first.kind, first.path, first.text) == ("selection", "/w/a.py", None)
    assert (first.range, first.encoding) == (span, "utf-16")
    assert (second.kind, second.path, second.text, second.range) == ("file", "/w/b.py", None, None)
    assert (third.kind, third.text) == ("text", "given")
    assert call[3:] == (None, None)


# --- order ----------------------------------------------------------------------------------------


async def test_requests_take_effect_in_the_order_of_their_arrival() -> None:
    """However long each of them takes; a later read sees what came before."""
    client = await ready()
    delays = iter([0.02, 0.0, 0.01, 0.0, 0.0])

    async def wait(name: str) -> None:
        await asyncio.sleep(next(delays, 0))

    client.assistant.before = wait
    for n in range(4):
        client.request("tiro/session/addMessage", {"role": "user", "content": str(n)})
    view = await client.call("tiro/session/get")
    assert [message["content"] for message in view["messages"]] == list("0123")
    assert [answer["id"] for answer in client.outlet.messages()] == sorted(
        answer["id"] for answer in client.outlet.messages()
    )


async def test_an_error_does_not_hold_up_the_ones_behind_it() -> None:
    client = await ready()
    bad = client.request("tiro/session/addMessage", {"role": "wizard", "content": "x"})
    good = client.request("tiro/session/addMessage", {"role": "user", "content": "x"})
    assert (await client.answer(bad))["error"]["data"]["kind"] == "invalidMessage"
    assert (await client.answer(good))["result"]["seq"] == 1


async def test_a_running_turn_blocks_nobody() -> None:
    client = await ready([events.Text("a"), asyncio.Event()])
    turn = client.request("tiro/turn/start", {"prompt": "x"})
    busy = (await client.call("tiro/session/get"))["busy"]
    assert set(busy) == {"turnId"}
    await client.call("tiro/state/set", {"key": "k", "value": 1})
    for method, params in (
        ("tiro/session/addMessage", {"role": "user", "content": "x"}),
        ("tiro/turn/start", {"prompt": "y"}),
    ):
        error = await client.error(method, params)
        assert (error["code"], error["data"]) == (
            -32020,
            {"kind": "turnInProgress", **busy},
        )
    assert client.answers(turn) == []
    assert await client.call("tiro/turn/cancel", busy) == {"cancelled": True}
    assert (await client.answer(turn))["result"]["stopReason"] == "cancelled"


async def test_only_what_was_asked_for_leaves_the_order_when_it_asks_a_model() -> None:
    """A summary that is written in the background must not let others into a resize's place."""
    client = await ready()
    is_resizing, may_ask, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def resize(name: str) -> None:
        if name == "resize":
            is_resizing.set()
            await may_ask.wait()
            await asyncio.create_task(asked())  # as a job of its own, which many a question is
            await may_end.wait()

    async def asked() -> None:
        client.assistant.on_asking()

    client.assistant.before = resize
    resizing = client.request("tiro/session/resize", {})
    await is_resizing.wait()
    behind = client.request("tiro/state/set", {"key": "k", "value": 1})
    await asyncio.create_task(asked())
    for _ in range(9):
        await asyncio.sleep(0)
    assert client.answers(behind) == []
    may_ask.set()
    assert (await client.answer(behind))["result"] == {}
    assert client.answers(resizing) == []
    may_end.set()
    assert "result" in await client.answer(resizing)


async def test_a_request_behind_a_start_sees_the_turn_started() -> None:
    """Sent in one go: the message comes too late for it."""
    client = await ready([events.Text("a"), asyncio.Event()])

    async def slow_start(name: str) -> None:
        if name == "start_turn":
            await asyncio.sleep(0.02)

    client.assistant.before = slow_start
    turn = client.request("tiro/turn/start", {"prompt": "x"})
    message = client.request("tiro/session/addMessage", {"role": "user", "content": "late"})
    assert (await client.answer(message))["error"]["code"] == -32020
    assert await client.call("tiro/turn/cancel") == {"cancelled": True}
    assert (await client.answer(turn))["result"]["stopReason"] == "cancelled"


async def test_a_turn_that_never_starts_lets_the_next_request_pass() -> None:
    client = await ready()

    async def refuse(name: str) -> None:
        if name == "start_turn":
            raise ModelNotConfiguredError("Set a key", tried=[{"provider": "p", "reason": "r"}])

    client.assistant.before = refuse
    turn = client.request("tiro/turn/start", {"prompt": "x"})
    assert (await client.call("tiro/session/get"))["total"] == 0
    error = (await client.answer(turn))["error"]
    assert error["code"] == -32031
    assert error["data"]["tried"] == [{"provider": "p", "reason": "r"}]
    assert client.sent("tiro/turn/event") == []


# --- turns ----------------------------------------------------------------------------------------


def kinds(client: Client) -> list[str]:
    return [event["type"] for event in client.sent("tiro/turn/event")]


async def test_a_turn_is_answered_after_its_last_event() -> None:
    client = await ready([events.Text("a"), events.Text("b"), events.Text("c")])
    result = await client.call("tiro/turn/start", {"prompt": "x"})
    assert kinds(client) == ["started", "text", "text", "finished"]
    assert "".join(e.get("delta", "") for e in client.sent("tiro/turn/event")) == "abc"
    assert result["text"] == "abc"
    assert client.outlet.messages()[-1]["result"] == result
    assert result["usage"] == {
        "inputTokens": 3, "outputTokens": 4, "cacheReadTokens": 0, "cacheWriteTokens": 0,
        "costUsd": None,
    }  # fmt: skip


async def test_a_failed_turn_ends_with_the_event_and_then_the_error() -> None:
    error = ModelError("It is down", provider="p", status=500, retryable=True)
    client = await ready([events.Text("a"), error])
    answer = await client.answer(client.request("tiro/turn/start", {"prompt": "x"}))
    last = client.sent("tiro/turn/event")[-1]
    assert (last["type"], last["stopReason"]) == ("finished", "error")
    assert answer["error"] == last["error"]
    assert answer["error"]["data"]["kind"] == "modelFailed"


async def test_cancelling_the_request_stops_the_turn_and_answers_minus_32800() -> None:
    client = await ready([events.Text("a"), asyncio.Event()])
    turn = client.request("tiro/turn/start", {"prompt": "x"})
    await client.until(lambda: "text" in kinds(client))
    client.notify("$/cancelRequest", {"id": turn})
    assert (await client.answer(turn))["error"]["code"] == -32800
    assert kinds(client)[-1] == "finished"
    assert client.sent("tiro/turn/event")[-1]["stopReason"] == "cancelled"
    assert await client.call("tiro/turn/cancel") == {"cancelled": False}
    assert (await client.call("tiro/turn/start", {"prompt": "y"}))["stopReason"] == "end_turn"


async def test_cancelling_a_request_before_its_turn_has_started() -> None:
    client = await ready([events.Text("a")], [events.Text("b")])
    begun = asyncio.Event()

    async def slow_start(name: str) -> None:
        if name == "start_turn":
            begun.set()
            await asyncio.sleep(10)

    client.assistant.before = slow_start
    turn = client.request("tiro/turn/start", {"prompt": "x"})
    await begun.wait()
    client.notify("$/cancelRequest", {"id": turn})
    assert (await client.answer(turn))["error"]["code"] == -32800
    client.assistant.before = None
    assert (await client.call("tiro/turn/start", {"prompt": "y"}))["text"] == "a"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tiro/session/clear", {}),
        ("tiro/session/new", {}),
        ("tiro/session/load", {"latest": True}),
    ],
)
@pytest.mark.parametrize("is_read", [True, False])
async def test_b62_nothing_of_an_old_turn_comes_after_the_answer(
    method: str, params: Any, is_read: bool
) -> None:
    client = await ready([events.Text("a"), events.Text("b"), asyncio.Event()])
    turn = client.request("tiro/turn/start", {"prompt": "x"})
    await client.until(lambda: "text" in kinds(client))
    old = client.assistant._turn
    client.outlet.is_read = is_read
    end = client.request(method, params)
    await client.answer(end)
    sent = client.outlet.messages()
    assert [m.get("id") for m in sent if "method" not in m] == [turn, end]
    assert sent[-1]["id"] == end
    assert [m["params"]["type"] for m in sent if "method" in m][-1] == "finished"
    client.assistant.on_event(old, 99, events.Text("late"))
    client.outlet.read_on()
    await asyncio.sleep(0.05)
    assert client.outlet.messages() == sent


async def test_a_client_that_does_not_read_still_gets_everything_in_order() -> None:
    gate = asyncio.Event()
    client = await ready([*[events.Text(str(n)) for n in range(500)], gate, events.Text("!")])
    client.outlet.is_read = False
    turn = client.request("tiro/turn/start", {"prompt": "x"})
    await client.call("tiro/state/set", {"key": "k", "value": 1})
    assert kinds(client) == [], "turn events wait while answers still go out"
    gate.set()
    await client.answer(turn)
    assert kinds(client) == ["started", "text", "finished"]
    text = "".join(map(str, range(500))) + "!"
    assert client.sent("tiro/turn/event")[1]["delta"] == text


async def test_a_client_may_do_without_turn_events() -> None:
    options = {"features": {"turnEvents": False}}
    client = await ready([events.Text("a")], initializationOptions=options)
    assert (await client.call("tiro/turn/start", {"prompt": "x"}))["text"] == "a"
    assert client.sent("tiro/turn/event") == []


async def test_shutdown_answers_the_turn_first() -> None:
    client = await ready([events.Text("a"), asyncio.Event()])
    turn = client.request("tiro/turn/start", {"prompt": "x"})
    await client.until(lambda: "text" in kinds(client))
    waiting = client.request("tiro/turn/start", {"prompt": "second"})
    end = client.request("shutdown")
    await client.answer(end)
    ids = [m["id"] for m in client.outlet.messages() if "method" not in m]
    assert ids.index(turn) < ids.index(end)
    assert ids[-1] == end
    assert (await client.answer(turn))["result"]["stopReason"] == "cancelled"
    assert len(client.answers(waiting)) == 1
    assert client.assistant.is_shut_down


async def test_shutdown_does_not_wait_for_a_turn_that_is_slow_to_start() -> None:
    client = await ready([events.Text("a"), asyncio.Event()])
    begun = asyncio.Event()

    async def slow_start(name: str) -> None:
        if name == "start_turn":
            begun.set()
            await asyncio.sleep(1000)

    client.assistant.before = slow_start
    turn = client.request("tiro/turn/start", {"prompt": "x"})
    await begun.wait()
    assert await client.call("shutdown") is None
    assert (await client.answer(turn))["result"]["stopReason"] == "cancelled"


async def test_a_turn_and_shutdown_in_one_burst() -> None:
    """Section 1: `shutdown` answers the turn with `cancelled` first, however early it comes."""
    client = await ready([events.Text("a"), asyncio.Event()])
    turn, end = client.request("tiro/turn/start", {"prompt": "x"}), client.request("shutdown")
    await client.answer(end)
    assert (await client.answer(turn))["result"]["stopReason"] == "cancelled"
    assert [m["id"] for m in client.outlet.messages() if m.get("id") in (turn, end)] == [turn, end]


@pytest.mark.parametrize("is_behind", [False, True])
async def test_b43_a_turn_that_has_not_started_is_cancelled_at_once(is_behind: bool) -> None:
    """Whether it waits for its order or for another process: it never runs."""
    client = await ready([events.Text("a")])
    free, begun = asyncio.Event(), asyncio.Event()

    async def wait(name: str) -> None:
        if name in ("start_turn", "save"):
            begun.set()
            await free.wait()

    client.assistant.before = wait
    if is_behind:
        client.request("tiro/session/save")
    turn = client.request("tiro/turn/start", {"prompt": "x"})
    await begun.wait()
    assert await client.call("tiro/turn/cancel") == {"cancelled": True}
    if is_behind:
        free.set()
    result = (await client.answer(turn))["result"]
    assert (result["stopReason"], result["text"]) == ("cancelled", "")
    assert result["lastSeq"] == result["firstSeq"] - 1
    assert client.sent("tiro/turn/event") == []
    client.assistant.before = None
    assert (await client.call("tiro/turn/start", {"prompt": "y"}))["text"] == "a"


# --- initialize and settings ----------------------------------------------------------------------


async def test_initialize_says_what_the_server_can() -> None:
    client = Client()
    result = await client.initialize()
    tiro = result["capabilities"]["experimental"]["tiro"]
    assert tiro["protocolVersion"] == 1
    assert tiro["serverVersion"] == result["serverInfo"]["version"]
    assert tiro["methods"] == sorted(types.METHODS)
    assert tiro["resume"] == {"setting": "ask", "latest": None}
    capabilities = result["capabilities"]
    assert capabilities["executeCommandProvider"]["commands"] == list(types.COMMANDS)
    assert capabilities["textDocumentSync"]["change"] == 2
    assert capabilities["textDocumentSync"]["openClose"] is True
    assert capabilities["workspace"]["workspaceFolders"]["supported"] is True
    assert capabilities["codeActionProvider"]["codeActionKinds"]


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [(None, "utf-16"), (["utf-8", "utf-16"], "utf-8"), (["utf-32"], "utf-32"), (["x"], "utf-16")],
)
async def test_the_position_encoding_is_negotiated(offered: Any, chosen: str) -> None:
    client = Client()
    general = {} if offered is None else {"positionEncodings": offered}
    result = await client.initialize(capabilities={"general": general})
    assert result["capabilities"]["positionEncoding"] == chosen
    assert client.service.editor.buffers.encoding == chosen


@pytest.mark.parametrize(
    ("given", "roots"),
    [
        ({}, []),
        ({"rootUri": "file:///w"}, ["/w"]),
        ({"rootPath": "/w"}, ["/w"]),
        ({"rootUri": "file:///w", "workspaceFolders": None}, ["/w"]),
        (
            {"rootUri": "file:///w", "workspaceFolders": [{"uri": "file:///a", "name": "a"},
                                                          {"uri": "untitled:x", "name": "x"}]},
            ["/a"],
        ),
    ],
)  # fmt: skip
async def test_workspace_roots(given: Any, roots: list[str]) -> None:
    client = Client()
    await client.initialize(**given)
    assert client.service.editor.workspace_roots() == [Path(root) for root in roots]
    assert client.assistant.calls[0] == ("configure_client", {}, [Path(r) for r in roots], True)


async def test_settings_arrive_with_the_options_and_later_with_or_without_a_level() -> None:
    settings = {"model": "a/b"}
    client = await ready(
        initializationOptions={"settings": settings, "workspaceTrusted": False, "other": 1}
    )
    client.notify("workspace/didChangeConfiguration", {"settings": {"tiro": {"agent": "plan"}}})
    client.notify("workspace/didChangeConfiguration", {"settings": {"agent": "build"}})
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    client.notify(
        "workspace/didChangeWorkspaceFolders",
        {"event": {"added": [{"uri": "file:///n", "name": "n"}], "removed": []}},
    )
    await client.call("tiro/session/getAgent")
    calls = [call for call in client.assistant.calls if call[0] == "configure_client"]
    assert calls == [
        ("configure_client", {"agent": "plan"}, [], False),
        ("configure_client", {"agent": "build"}, [], False),
        ("configure_client", {"agent": "build"}, [Path("/n")], False),
    ]


@pytest.mark.parametrize("options", [None, [], "x", {"settings": []}, {"features": {"x": 1}}, 1])
async def test_odd_options_do_not_keep_a_client_out(options: Any) -> None:
    client = Client()
    await client.initialize(initializationOptions=options)
    assert await client.call("tiro/session/getAgent") == {"agent": None}
    told = client.sent("window/showMessage")
    assert len(told) == (1 if options == {"settings": []} else 0)


async def test_problems_are_told_once_and_only_after_the_handshake() -> None:
    client = Client()
    client.assistant.problems = ["config.yaml, line 3: no"]
    await client.call("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
    assert client.sent("window/showMessage") == []
    client.notify("initialized", {})
    client.notify("workspace/didChangeConfiguration", {"settings": {}})
    await client.call("tiro/session/getAgent")
    assert client.sent("window/showMessage") == [{"type": 2, "message": "config.yaml, line 3: no"}]


async def test_the_server_loads_by_itself_only_where_it_is_told_to() -> None:
    for setting in ("ask", "new", "latest"):
        client = Client()
        client.assistant.setup.settings.session.resume = setting
        client.assistant.files["old"] = client.assistant.session
        result = await client.initialize()
        assert result["capabilities"]["experimental"]["tiro"]["resume"] == {
            "setting": setting,
            "latest": {"id": "old", "title": "About old", "savedAt": "2026-01-01T00:00:00.000Z"},
        }
        loads = [call for call in client.assistant.calls if call[0] == "load"]
        assert bool(loads) == (setting == "latest")


@pytest.mark.parametrize("options", [None, {"features": {"turnEvents": True}}])
async def test_a_change_that_nobody_asked_for_is_told(options: Any) -> None:
    client = await ready(initializationOptions=options)
    notice = Notice("save_failed", client.assistant.session, {"reason": "the disk is full"})
    client.assistant.on_changed(notice)
    [told] = client.sent("tiro/session/changed")
    assert (told["reason"], told["id"], told["total"]) == ("saveFailed", None, 0)
    assert told["why"] == "the disk is full"
    assert set(told["contextSize"]) >= {"tokens", "breakdown"}
    said = client.sent("window/showMessage")
    assert len(said) == (0 if options else 1), "a client that does not know ours is told in words"
    assert all("the disk is full" in one["message"] for one in said)


async def test_an_event_that_cannot_be_shown_does_not_stop_the_turn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    shown = events.ToolUse(tool_use=events.ToolUseShown("c", "n", deep), status="proposed")
    client = await ready([shown, events.Text("a")])
    assert (await client.call("tiro/turn/start", {"prompt": "x"}))["text"] == "a"
    assert kinds(client) == ["started", "text", "finished"]
    assert "could not be shown" in caplog.text


@pytest.mark.parametrize("count", [1, 2])
async def test_a_turn_that_waits_for_its_order_is_cancelled_at_once(count: int) -> None:
    """B43: whatever holds the order, the turn is answered, before the cancel is."""
    client = await ready([])
    free, begun = asyncio.Event(), asyncio.Event()

    async def wait(name: str) -> None:
        if name == "set_agent":
            begun.set()
            await free.wait()

    client.assistant.before = wait
    held = client.request("tiro/session/setAgent", {"name": "plan"})
    await begun.wait()
    turns = [client.request("tiro/turn/start", {"prompt": "x"}) for _ in range(count)]
    read = client.request("tiro/session/getId")
    cancel = client.request("tiro/turn/cancel")
    for turn in turns:
        assert (await client.answer(turn))["result"]["stopReason"] == "cancelled"
    assert (await client.answer(cancel))["result"] == {"cancelled": True}
    ids = [m["id"] for m in client.outlet.messages() if "result" in m]
    assert (sorted(ids[:-1]), ids[-1]) == (turns, cancel)
    free.set()
    await client.answer(held)
    await client.answer(read)
    ended = client.request("tiro/turn/start", {"prompt": "x"})
    assert (await client.answer(ended))["result"]["stopReason"] == "end_turn"


def test_what_the_system_refuses_is_told_with_its_file_and_reason() -> None:
    told = to_wire_error(OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), "/a"))
    assert told.data == {"kind": "storeFailed", "path": "/a", "errno": "ENAMETOOLONG"}
    assert told.message.startswith("'/a' could not be used: File name too long")
    assert to_wire_error(TimeoutError()).code == types.INTERNAL_ERROR
