"""Protocol section 1: whole messages in, exactly one reply for each id."""

import asyncio
import errno
from typing import Any

import pytest

from tests.protocol.fakes import Client
from tiro import errors
from tiro.errors import StorageError, TiroError
from tiro.protocol import types
from tiro.protocol.frames import MAX_OWN_BYTES
from tiro.protocol.rpc import ClientRefusedError

ODD = {"jsonrpc": "2.0", "id": 9, "method": "x", "class": 1, "x-y": {"a_b": 2}, "type_name": "t"}
CANCELLED, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32800, -32600, -32601, -32602


async def ready(*scripts: Any) -> Client:
    client = Client(*scripts)
    await client.initialize()
    client.outlet.bodies.clear()
    return client


def code(answer: Any) -> int:
    assert "data" not in answer["error"]
    found: int = answer["error"]["code"]
    return found


# --- what is no request ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "id_"),
    [
        ([], None),
        ([{"jsonrpc": "2.0", "id": 1, "method": "tiro/status"}], None),
        (1, None),
        ("x", None),
        (None, None),
        ({}, None),
        ({"jsonrpc": "2.0"}, None),
        ({"jsonrpc": "2.0", "id": 5}, 5),
        ({"jsonrpc": "2.0", "id": 5, "params": {}}, 5),
        ({"id": 5, "method": "tiro/status"}, 5),
        ({"jsonrpc": "1.0", "id": "a", "method": "tiro/status"}, "a"),
        ({"jsonrpc": 2.0, "id": 5, "method": "tiro/status"}, 5),
        ({"jsonrpc": "2.0", "id": 5, "method": 7}, 5),
        ({"jsonrpc": "2.0", "id": 5, "method": None}, 5),
        ({"jsonrpc": "2.0", "method": 7}, None),
        ({"jsonrpc": "2.0", "id": [1], "method": "tiro/status"}, None),
        ({"jsonrpc": "2.0", "id": {}, "method": "tiro/status"}, None),
        ({"jsonrpc": "2.0", "id": True, "method": "tiro/status"}, None),
        ({"jsonrpc": "2.0", "id": None, "method": "tiro/status"}, None),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "tiro/status"}, None),
        ({"jsonrpc": "1.0", "id": 5, "result": 1}, 5),
    ],
)
async def test_what_is_no_request_is_refused_once(message: Any, id_: Any) -> None:
    client = await ready()
    client.send(message)
    [answer] = client.outlet.messages()
    assert (answer["id"], code(answer)) == (id_, INVALID_REQUEST)


async def test_answers_to_nothing_and_unusable_notifications_are_not_answered() -> None:
    client = await ready()
    for message in (
        {"jsonrpc": "2.0", "id": 77, "result": 1},
        {"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "no"}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "unreadable"}},
        {"jsonrpc": "2.0", "method": "tiro/none", "params": [1]},
        {"jsonrpc": "2.0", "method": "tiro/session/get", "params": [1]},
        {"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": 1}},
        {"jsonrpc": "2.0", "method": "$/unknown"},
        {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": [1]}},
        {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 12345}},
        {"jsonrpc": "2.0", "method": "$/setTrace", "params": {"value": "loud"}},
    ):
        client.send(message)
    await asyncio.sleep(0)
    assert client.outlet.bodies == []


# --- ids ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id_", [0, -1, 1, 2**31, 2**63, 10**40, "", "a", "1", "ü\U0001f642"])
async def test_an_id_comes_back_as_it_came(id_: Any) -> None:
    client = await ready()
    assert "result" in await client.answer(client.request("tiro/status", id_=id_))


async def test_1_and_the_string_1_are_two_ids() -> None:
    client = await ready([asyncio.Event()])
    turn = client.request("tiro/turn/start", {"prompt": "x"}, id_=1)
    client.request("tiro/status", id_="1")
    await client.answer("1")
    client.notify("$/cancelRequest", {"id": "1"})
    assert client.answers(turn) == []
    client.notify("$/cancelRequest", {"id": 1})
    assert code(await client.answer(1)) == CANCELLED


async def test_two_requests_with_one_id_get_one_answer_each() -> None:
    client = await ready()
    client.request("tiro/session/getId", id_=5)
    client.request("tiro/session/getAgent", id_=5)
    await client.until(lambda: len(client.answers(5)) == 2)
    assert [set(answer["result"]) for answer in client.answers(5)] == [{"id"}, {"agent"}]


async def test_an_answer_never_settles_a_request_of_the_client() -> None:
    """pygls keeps both directions in one table, so a stray answer broke a running request."""
    client = await ready([asyncio.Event()])
    turn = client.request("tiro/turn/start", {"prompt": "x"}, id_=5)
    await client.until(lambda: client.sent("tiro/turn/event"))
    client.send({"jsonrpc": "2.0", "id": 5, "result": "mine"})
    assert await client.call("tiro/turn/cancel") == {"cancelled": True}
    assert (await client.answer(turn))["result"]["stopReason"] == "cancelled"


# --- states ---------------------------------------------------------------------------------------


async def test_before_initialize_requests_are_refused_and_notifications_dropped() -> None:
    client = Client()
    for method in ("tiro/session/get", "tiro/unknown", "shutdown", "textDocument/codeAction"):
        assert (await client.error(method, [1]))["code"] == -32002
    client.notify("initialized", {})
    client.notify(
        "textDocument/didOpen", {"textDocument": {"uri": "file:///a", "text": "", "version": 1}}
    )
    assert client.service.editor.buffers.paths() == []
    assert (await client.initialize())["serverInfo"]["name"] == "tiro"


async def test_a_second_initialize_is_refused() -> None:
    client = await ready()
    error = await client.error("initialize", {"processId": None, "capabilities": {}})
    assert error["code"] == INVALID_REQUEST
    assert await client.call("tiro/session/getAgent") == {"agent": None}


async def test_a_refused_initialize_can_be_repeated() -> None:
    client = Client()
    for params in ({"processId": None, "rootUri": None}, {"processId": "x", "capabilities": {}}):
        error = await client.error("initialize", params)
        assert error["code"] == INVALID_PARAMS
        assert (await client.error("tiro/status"))["code"] == -32002
    await client.initialize()


async def test_after_shutdown_every_request_is_refused() -> None:
    client = await ready()
    assert await client.call("shutdown") is None
    for method in ("tiro/session/get", "tiro/unknown", "initialize", "shutdown"):
        assert (await client.error(method))["code"] == INVALID_REQUEST


@pytest.mark.parametrize("is_shut_down", [True, False])
async def test_exit_tells_whether_shutdown_came_first(is_shut_down: bool) -> None:
    client = await ready()
    codes: list[int] = []
    client.protocol.on_exit = codes.append
    if is_shut_down:
        await client.call("shutdown", {})
    client.notify("exit")
    assert codes == [0 if is_shut_down else 1]


# --- methods and params ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method",
    ["tiro/none", "", "tiro/session/none", "tiro/turn/none", "initialized/x", "$/x",
     "textDocument/hover", "tiro/turn/event"],
)  # fmt: skip
async def test_an_unknown_method_is_minus_32601(method: str) -> None:
    client = await ready()
    assert (await client.error(method, [1]))["code"] == NO_METHOD


@pytest.mark.parametrize("params", [[], [1], "x", 1, True, False, 0, ""])
@pytest.mark.parametrize("method", ["tiro/session/get", "shutdown", "textDocument/codeAction"])
async def test_params_are_one_object(params: Any, method: str) -> None:
    client = await ready()
    assert (await client.error(method, params))["code"] == INVALID_PARAMS
    assert "result" in await client.answer(client.request("tiro/status")), "and it still works"


async def test_no_params_null_and_an_empty_object_are_the_same() -> None:
    client = await ready()
    messages: list[dict[str, Any]] = [{}, {"params": None}, {"params": {}}]
    for message in messages:
        client.send({"jsonrpc": "2.0", "id": 1, "method": "tiro/session/getAgent", **message})
    await client.until(lambda: len(client.answers(1)) == 3)
    assert all(answer["result"] == {"agent": None} for answer in client.answers(1))


@pytest.mark.parametrize(
    ("method", "params", "path"),
    [
        ("tiro/session/get", {"limit": "x"}, "$.limit"),
        ("tiro/session/get", {"limit": -1}, "$.limit"),
        ("tiro/session/get", {"limit": True}, "$.limit"),
        ("tiro/session/get", {"limit": 2**63}, "$.limit"),
        ("tiro/session/get", {"beforeSeq": 1.5}, "$.beforeSeq"),
        ("tiro/session/new", {"maxHistory": 0}, "$.maxHistory"),
        ("tiro/session/new", {"maxHistory": 2**63}, "$.maxHistory"),
        ("tiro/session/configure", {"maxHistory": 2**63}, "$.maxHistory"),
        ("tiro/session/configure", {"maxHistory": True}, "$.maxHistory"),
        ("tiro/session/configure", {"limit": {"chars": "x"}}, "$.limit.chars"),
        ("tiro/session/configure", {"mode": "deep"}, "$.mode"),
        ("tiro/session/addMessage", {"role": "user", "content": 5}, "$.content"),
        ("tiro/session/addMessage", {"role": "user", "content": None}, "$.content"),
        ("tiro/session/addMessage", {"content": ""}, "$"),
        ("tiro/session/setAgent", {}, "$"),
        ("tiro/state/set", {"key": "a"}, "$"),
        ("tiro/turn/start", {"prompt": {"type": "text"}}, "$.prompt"),
        (
            "tiro/turn/start",
            {"prompt": "x", "attachments": [{"kind": "odd"}]},
            "$.attachments[0].kind",
        ),
        ("tiro/turn/start", {"prompt": "", "attachments": []}, ""),
        ("tiro/session/load", {}, ""),
        ("tiro/session/load", {"path": "relative.json"}, ""),
        ("workspace/executeCommand", {}, "$"),
        ("workspace/executeCommand", {"command": "none"}, "$.command"),
    ],
)
async def test_a_wrong_field_is_named(method: str, params: Any, path: str) -> None:
    client = await ready()
    error = await client.error(method, params)
    assert error["code"] == INVALID_PARAMS
    assert f"{path}`" in error["message"] or not path


async def test_unknown_fields_are_ignored_and_null_means_missing() -> None:
    client = await ready()
    view = await client.call(
        "tiro/session/get", {"limit": None, "beforeSeq": None, "all": None, "class": 1, "x-y": ODD}
    )
    assert view["messages"] == []
    assert ("page", None, None, None) in client.assistant.calls


async def test_odd_keys_survive_both_ways() -> None:
    """House 6.1 and 6.2: pygls loses such keys, and a nested `jsonrpc` breaks the message."""
    client = await ready()
    big = {**ODD, "n": 2**80, "f": 1.5, "nested": [ODD]}
    block = {"type": "tool_use", "id": "c", "name": "n", "input": big}
    await client.call("tiro/session/addMessage", {"role": "assistant", "content": [block], **ODD})
    message = (await client.call("tiro/session/get"))["messages"][0]
    assert message["content"] == [block]
    assert list(message["content"][0]["input"]) == list(big)
    assert {key: message[key] for key in ODD} == ODD
    await client.call("tiro/state/set", {"key": "k", "value": big})
    assert await client.call("tiro/state/get", {"key": "k"}) == {"found": True, "value": big}
    assert await client.call("tiro/state/get") == {"state": {"k": big}}


# --- errors ---------------------------------------------------------------------------------------


def every_error() -> set[type[TiroError]]:
    found, left = set(), [TiroError]
    while left:
        children = left.pop().__subclasses__()
        found |= set(children)
        left += children
    return {kind for kind in found if kind.__module__ == errors.__name__}


def test_every_error_has_its_code_and_kind() -> None:
    """Protocol section 1, the table, and habit 10: a test proves the table complete."""
    assert set(types.ERRORS) == every_error()
    codes = [found for found in types.ERRORS.values() if found[1] is not None]
    assert sorted(codes, reverse=True) == [
        (-32010, "sessionFileInvalid"),
        (-32011, "sessionInUse"),
        (-32012, "storeFailed"),
        (-32013, "sessionExists"),
        (-32014, "sessionNotFound"),
        (-32020, "turnInProgress"),
        (-32021, "turnNotFound"),
        (-32030, "agentNotFound"),
        (-32031, "modelNotConfigured"),
        (-32032, "modelFailed"),
        (-32033, "contextOverflow"),
        (-32034, "budgetExceeded"),
        (-32040, "invalidMessage"),
        (-32041, "resizeFailed"),
        (-32050, "editConflict"),
    ]


async def failing(error: BaseException) -> Any:
    client = await ready()

    async def fail(name: str) -> None:
        raise error

    client.assistant.before = fail
    return await client.error("tiro/session/getId")


@pytest.mark.parametrize("kind", sorted(every_error(), key=str))
async def test_an_error_is_told_in_its_own_words(kind: type[TiroError]) -> None:
    code_, name = types.ERRORS[kind]
    told = await failing(kind("Do that instead", retry_after_seconds=3, path="/p"))
    data = {"retryAfterSeconds": 3, "path": "/p"}
    assert told == {
        "code": code_,
        "message": "Do that instead",
        "data": data if name is None else {"kind": name, **data},
    }


async def test_a_subclass_counts_as_its_parent() -> None:
    class FullError(StorageError):
        """The disk is full."""

    try:
        assert (await failing(FullError("Make room")))["code"] == -32012
    finally:
        del FullError


@pytest.mark.parametrize(
    "error", [RuntimeError("/secret/path sk-123"), ValueError("x"), KeyError("k")]
)
async def test_anything_else_is_one_plain_sentence(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """House 6.6: pygls sends the traceback and its paths to the editor."""
    assert await failing(error) == {
        "code": -32603,
        "message": "The server failed; its log says why",
    }
    assert "A request failed" in caplog.text


async def test_what_the_system_refuses_is_told_with_file_and_reason() -> None:
    assert await failing(OSError(errno.EACCES, "Permission denied", "/p")) == {
        "code": -32012,
        "message": "'/p' could not be used: Permission denied; put that right and try again",
        "data": {"kind": "storeFailed", "path": "/p", "errno": "EACCES"},
    }


async def test_a_result_that_cannot_be_encoded_is_answered_too() -> None:
    """House 6.5: with pygls such a request is never answered."""
    client = await ready()
    deep: list[Any] = []
    client.assistant.session.state["deep"] = deep
    for _ in range(100_000):
        deep.append([])
        deep = deep[0]
    assert (await client.error("tiro/state/get"))["code"] == -32603


# --- cancelling -----------------------------------------------------------------------------------


async def test_a_request_that_waits_is_cancelled_and_never_runs() -> None:
    client = await ready()
    gate = asyncio.Event()

    async def wait(name: str) -> None:
        if name == "state_set":
            await gate.wait()

    client.assistant.before = wait
    first = client.request("tiro/state/set", {"key": "a", "value": 1})
    second = client.request("tiro/state/set", {"key": "b", "value": 2})
    client.notify("$/cancelRequest", {"id": second})
    assert code(await client.answer(second)) == CANCELLED
    gate.set()
    assert (await client.answer(first))["result"] == {}
    assert await client.call("tiro/state/get") == {"state": {"a": 1}}


async def test_a_change_that_has_begun_is_finished_and_answered() -> None:
    client = await ready()
    gate, begun = asyncio.Event(), asyncio.Event()

    async def wait(name: str) -> None:
        begun.set()
        await gate.wait()

    client.assistant.before = wait
    change = client.request("tiro/state/set", {"key": "a", "value": 1})
    await begun.wait()
    for _ in range(3):
        client.notify("$/cancelRequest", {"id": change})
        await asyncio.sleep(0)
    gate.set()
    assert (await client.answer(change))["result"] == {}
    assert len(client.answers(change)) == 1


async def test_a_resize_can_be_cancelled() -> None:
    client = await ready()
    begun = asyncio.Event()

    async def wait(name: str) -> None:
        begun.set()
        await asyncio.Event().wait()

    client.assistant.before = wait
    resize = client.request("tiro/session/resize", {"force": True})
    await begun.wait()
    client.notify("$/cancelRequest", {"id": resize})
    assert code(await client.answer(resize)) == CANCELLED


# --- our own requests and notifications -----------------------------------------------------------


async def test_our_request_gets_the_plain_answer() -> None:
    client = await ready()
    asking = asyncio.ensure_future(client.protocol.ask("tiro/permission/request", {"a": 1}))
    [request] = await client.until(client.outlet.messages)
    assert request["params"] == {"a": 1}
    client.send({"jsonrpc": "2.0", "id": request["id"], "result": ODD})
    client.send({"jsonrpc": "2.0", "id": request["id"], "result": "twice"})
    assert await asking == ODD


async def test_our_request_refused_cancelled_or_never_answered() -> None:
    client = await ready()
    refused = asyncio.ensure_future(client.protocol.ask("x", {}))
    dropped = asyncio.ensure_future(client.protocol.ask("y", {}))
    cancelled = asyncio.ensure_future(client.protocol.ask("z", {}))
    sent = await client.until(lambda: len(client.outlet.bodies) == 3 and client.outlet.messages())
    error = {"code": -1, "message": "no"}
    client.send({"jsonrpc": "2.0", "id": sent[0]["id"], "error": error})
    with pytest.raises(ClientRefusedError):
        await refused
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert client.sent("$/cancelRequest") == [{"id": sent[2]["id"]}]
    client.protocol.drop_asked()
    with pytest.raises(ClientRefusedError):
        await dropped
    client.protocol.state = "shut_down"
    with pytest.raises(ClientRefusedError):
        await client.protocol.ask("x", {})


@pytest.mark.parametrize(
    "params",
    [
        {"text": "x" * 3_000_000, "keep": 1},
        {"list": list(range(1_000_000))},
        {"dict": {f"key{n}": "x" * 10 for n in range(100_000)}},
        {"control": "\x01" * 900_000, "emoji": "\U0001f642" * 900_000},
        {"deep": [[[["x" * 30] * 20] * 20] * 20] * 20},
        {"x" * 2_000_000: 1},
    ],
)
async def test_nothing_of_ours_is_larger_than_1_mb(params: Any) -> None:
    client = await ready()
    client.protocol.notify("tiro/turn/event", params)
    asking = asyncio.ensure_future(client.protocol.ask("tiro/permission/request", params))
    await client.until(lambda: len(client.outlet.bodies) == 2)
    assert max(client.outlet.sizes) <= MAX_OWN_BYTES == 1_000_000
    assert [m["method"] for m in client.outlet.messages()] == [
        "tiro/turn/event",
        "tiro/permission/request",
    ]
    asking.cancel()


async def test_an_answer_may_be_larger() -> None:
    client = await ready()
    await client.call("tiro/state/set", {"key": "k", "value": "x" * 2_000_000})
    assert len((await client.call("tiro/state/get", {"key": "k"}))["value"]) == 2_000_000
