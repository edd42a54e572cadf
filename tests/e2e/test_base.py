"""Protocol section 1: framing, handshake, ids, params, errors, and how the server ends."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.client import Pending, Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.talk import add, view, window

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, BAD_PARAMS = -32700, -32600, -32601, -32602

METHODS = {
    *(f"tiro/session/{name}" for name in (
        "get", "content", "show", "statistics", "new", "clear", "addMessage", "addToolResult",
        "getId", "getAgent", "setAgent", "configure", "contextSize", "save", "load", "list",
        "delete", "rewind", "editMessage", "judgeResize", "resize",
    )),
    "tiro/state/get", "tiro/state/set", "tiro/state/delete", "tiro/turn/start", "tiro/turn/cancel",
    "tiro/agents/list", "tiro/models/list", "tiro/models/set", "tiro/status",
}  # fmt: skip

COMMANDS = {
    "tiro.showSession", "tiro.clearSession", "tiro.newSession", "tiro.saveSession",
    "tiro.loadSession", "tiro.listSessions", "tiro.showCurrentAgent", "tiro.selectAgent",
    "tiro.ask", "tiro.cancel", "tiro.resizeSession", "tiro.contextSize",
}  # fmt: skip


def orphan(server: Server, send: Callable[[], None]) -> dict[str, Any]:
    """Send something and give the one error with id null that it gets."""
    before = len(server.orphans)
    send()
    server.wait_until(lambda: len(server.orphans) > before, "an error with id null")
    server.request("tiro/session/getAgent")
    assert len(server.orphans) == before + 1, server.orphans[before:]
    found = server.orphans[-1]
    assert found["id"] is None
    error: dict[str, Any] = found["error"]
    return error


# The handshake


def test_initialize_is_answered_before_what_it_does_not_need_is_loaded(tmp_path: Path) -> None:
    """The bar is 1.25 x a bare pygls: what is loaded until then decides it, not a clock."""
    with Server(Home(tmp_path), env={"PYTHONPROFILEIMPORTTIME": "1"}) as server:
        server.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        loaded = {line.rpartition("|")[2].strip() for line in server.stderr_text().splitlines()}
        server.kill()
    assert {"tiro.protocol.server", "lsprotocol.types"} <= loaded
    heavy = {"httpx", "yaml", "sqlite3", "importlib.metadata", "email", "zipfile", "secrets"}
    assert not heavy & loaded


def test_initialize_tells_what_the_server_can(start: StartServer) -> None:
    server = start()
    given = server.initialize_result["capabilities"]
    tiro = given["experimental"]["tiro"]
    assert tiro["protocolVersion"] == 1
    assert tiro["serverVersion"]
    assert set(tiro["methods"]) >= METHODS
    assert tiro["resume"] == {"setting": "ask", "latest": None}
    assert set(given["executeCommandProvider"]["commands"]) >= COMMANDS
    sync = given["textDocumentSync"]
    assert (sync["change"] if isinstance(sync, dict) else sync) == 2
    assert given["positionEncoding"] in ("utf-8", "utf-16", "utf-32")
    with pytest.raises(AssertionError):
        server.wait_notification("window/showMessage", timeout=0.1)


def test_before_initialize_only_initialize_is_answered(start: StartServer) -> None:
    server = start(initialize=False)
    for method in ("tiro/session/get", "tiro/none", "shutdown", "workspace/executeCommand"):
        assert server.error(method, {}).code == -32002
    server.notify("tiro/none")
    server.notify("textDocument/didOpen", {})
    server.initialize()
    assert server.request("tiro/session/getAgent") == {"agent": None}
    assert server.error("initialize", server.hello()).code == INVALID_REQUEST
    assert server.request("tiro/session/getAgent") == {"agent": None}


def test_after_shutdown_everything_is_refused(start: StartServer) -> None:
    server = start()
    assert server.request("shutdown") is None
    for method in ("tiro/session/get", "tiro/none", "shutdown", "initialize"):
        assert server.error(method, {}).code == INVALID_REQUEST
    server.notify("exit")
    assert server.wait_exit() == 0


def test_exit_without_shutdown_is_code_1(start: StartServer) -> None:
    server = start()
    add(server, "user", "kept")
    server.notify("exit")
    assert server.wait_exit() == 1
    assert len(server.home.session_files()) == 1


@pytest.mark.parametrize("wrapped", [True, False])
def test_settings_change_with_or_without_a_tiro_level(server: Server, wrapped: bool) -> None:
    inner = {"session": {"max_history": 2}}
    server.notify(
        "workspace/didChangeConfiguration", {"settings": {"tiro": inner} if wrapped else inner}
    )
    server.request("tiro/session/clear")
    assert view(server)["maxHistory"] == 2
    assert [add(server, "user", text)["total"] for text in "abc"] == [1, 2, 2]
    server.notify("workspace/didChangeConfiguration", {"settings": {"tiro": {}}})
    server.request("tiro/session/clear")
    assert view(server)["maxHistory"] == 100


def test_settings_of_initialize_beat_the_config_file(start: StartServer, home: Home) -> None:
    home.write_config(session={"max_history": 7})
    assert view(start())["maxHistory"] == 7
    assert view(start(settings={"session": {"max_history": 5}}))["maxHistory"] == 5


def test_a_wrong_setting_is_told_once_and_named(start: StartServer, home: Home) -> None:
    home.write_config(session={"max_history": "many"}, nonsense=True)
    server = start()
    assert view(server)["maxHistory"] == 100
    problems = " ".join(server.request("tiro/status")["problems"])
    assert "max_history" in problems
    assert "nonsense" in problems
    assert "config.yaml" in problems


# Frames


@pytest.mark.parametrize(
    "head",
    [
        "content-length: {}\r\n\r\n",
        "CONTENT-LENGTH:{}\r\n\r\n",
        "Content-Length:   {}  \r\n\r\n",
        "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
        "Content-Length: {}\r\ncontent-type: application/json\r\nX-Other: a: b\r\n\r\n",
    ],
)
def test_header_names_and_white_space_are_free(server: Server, head: str) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": f"head{head}", "method": "tiro/session/getAgent"})
    server.send_raw(head.format(len(body)).encode() + body.encode())
    assert Pending(server, f"head{head}", "getAgent").result() == {"agent": None}


def test_a_frame_may_come_in_pieces_and_two_at_once(server: Server) -> None:
    def frame(id_: str) -> bytes:
        body = {"jsonrpc": "2.0", "id": id_, "method": "tiro/state/set",
                "params": {"key": "k", "value": "é漢\U0001f642"}}  # fmt: skip
        raw = json.dumps(body, ensure_ascii=False).encode()
        return b"Content-Length: %d\r\n\r\n%b" % (len(raw), raw)

    for byte in frame("slow"):
        server.send_raw(bytes([byte]))
    server.send_raw(frame("two-a") + frame("two-b"))
    for id_ in ("slow", "two-a", "two-b"):
        assert Pending(server, id_, "set").result() == {}
    assert server.request("tiro/state/get", {"key": "k"})["value"] == "é漢\U0001f642"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"jsonrpc": "2.0", "id": 10,',
        b'{"jsonrpc": "2.0", "id": 10, "method": "\xff"}',
        b'{"jsonrpc": "2.0", "id": 10, "method": "x", "params": {"a": "\xed\xa0\xbd"}}',
        b"not json",
        b'{"jsonrpc": "2.0", "id": 1, "method": "tiro/session/getId"} trailing',
    ],
)  # fmt: skip
def test_what_is_no_json_is_a_parse_error_without_id(server: Server, body: bytes) -> None:
    assert orphan(server, lambda: server.send_body(body))["code"] == PARSE_ERROR


def nested(levels: int) -> bytes:
    """A state/set request whose root counts as level 1 and whose deepest list as `levels`."""
    params = {"key": "k", "value": "VALUE"}
    body = {"jsonrpc": "2.0", "id": f"deep{levels}", "method": "tiro/state/set", "params": params}
    lists = "[" * (levels - 2) + "]" * (levels - 2)
    return json.dumps(body).replace('"VALUE"', lists).encode()


def test_nesting_over_200_is_a_parse_error(server: Server) -> None:
    server.send_body(nested(200))
    assert Pending(server, "deep200", "state/set").result() == {}
    for levels in (201, 900, 100_000):
        error = orphan(server, lambda levels=levels: server.send_body(nested(levels)))  # type: ignore[misc]
        assert error["code"] == PARSE_ERROR
    text = '["' * 300 + "\\" * 7
    assert server.request("tiro/state/set", {"key": "k", "value": text}) == {}
    assert server.request("tiro/state/get", {"key": "k"})["value"] == text


@pytest.mark.parametrize(
    "body",
    [b"[]", b'[{"jsonrpc": "2.0", "id": 1, "method": "tiro/session/getId"}]', b"[1, 2]",
     b"5", b'"text"', b"null", b"true"],
)  # fmt: skip
def test_a_batch_or_no_object_is_refused_once(server: Server, body: bytes) -> None:
    assert orphan(server, lambda: server.send_body(body))["code"] == INVALID_REQUEST


@pytest.mark.parametrize("id_", [[1], {"a": 1}, True, False])
def test_an_id_that_is_no_id_is_refused(server: Server, id_: Any) -> None:
    request = {"jsonrpc": "2.0", "id": id_, "method": "tiro/session/getAgent"}
    assert orphan(server, lambda: server.send(request))["code"] == INVALID_REQUEST


@pytest.mark.parametrize("id_", [0, -5, "", "text", "é\U0001f642", 2**53 + 1, 2**62, "null", " 1"])
def test_every_id_comes_back_as_it_was(server: Server, id_: Any) -> None:
    assert server.begin("tiro/session/getAgent", {}, id_).result() == {"agent": None}


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "id": "m1"},
        {"jsonrpc": "2.0", "id": "m2", "params": {}},
        {"jsonrpc": "2.0", "id": "m3", "method": None},
        {"jsonrpc": "2.0", "id": "m4", "method": 5},
        {"jsonrpc": "1.0", "id": "m5", "method": "tiro/session/getAgent"},
        {"id": "m6", "method": "tiro/session/getAgent"},
        {"jsonrpc": 2.0, "id": "m7", "method": "tiro/session/getAgent"},
        {"jsonrpc": None, "id": "m8", "method": "tiro/session/getAgent"},
    ],
)
def test_what_is_no_request_is_refused_with_its_id(server: Server, message: Any) -> None:
    server.send(message)
    assert Pending(server, message["id"], "?").error().code == INVALID_REQUEST


def test_notifications_and_stray_answers_are_never_answered(server: Server) -> None:
    orphans, answers = len(server.orphans), server.answered
    for method in ("tiro/none", "$/other", "tiro/session/getId", "textDocument/didClose"):
        server.notify(method, {})
        server.notify(method, [1])
    server.notify("$/cancelRequest", {"id": 999_999})
    server.notify("$/setTrace", {"value": "verbose"})
    server.send({"jsonrpc": "2.0", "id": "never-asked", "result": 5})
    server.send({"jsonrpc": "2.0", "id": 77, "error": {"code": 1, "message": "x"}})
    server.request("tiro/session/getAgent")
    assert server.answered == answers + 1
    assert len(server.orphans) == orphans


@pytest.mark.parametrize("method", ["tiro/none", "$/none", "tiro/session/", "", "TIRO/SESSION/GET"])
def test_an_unknown_method_is_told_so(server: Server, method: str) -> None:
    assert server.error(method, {}).code == NO_METHOD


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 99999999999\r\n\r\n",
        b"Content-Length: 67108865\r\n\r\n",
        b"Content-Length: -5\r\n\r\n{}",
        b"Content-Length: five\r\n\r\n{}",
        b"Content-Length: \r\n\r\n{}",
        b"Content-Type: application/json\r\n\r\n{}",
        b"\r\n\r\n{}",
        b"hello there\r\n\r\n",
    ],
)
def test_a_broken_header_block_ends_the_server(start: StartServer, head: bytes) -> None:
    server = start()
    add(server, "user", "kept")
    server.send_raw(head)
    assert server.wait_exit() == 1
    assert [error["error"]["code"] for error in server.orphans] == [PARSE_ERROR]
    assert len(server.home.session_files()) == 1


def test_line_feeds_alone_never_leave_a_request_unanswered(start: StartServer) -> None:
    server = start()
    body = b'{"jsonrpc": "2.0", "id": "lf", "method": "tiro/session/getAgent"}'
    server.send_raw(b"Content-Length: %d\n\n%b" % (len(body), body))
    server.send_body(body.replace(b'"lf"', b'"next"'))
    server.wait_until(
        lambda: bool(server.answers_to("lf") and server.answers_to("next")) or bool(server.orphans),
        "answers, or a parse error",
    )
    if server.orphans:
        assert server.orphans[0]["error"]["code"] == PARSE_ERROR
        assert server.wait_exit() == 1


# Params


@pytest.mark.parametrize("params", [[], [1], "text", 5, True, 1.5])
@pytest.mark.parametrize(
    "method", ["tiro/session/getAgent", "tiro/session/get", "tiro/turn/cancel"]
)
def test_params_are_one_object(server: Server, method: str, params: Any) -> None:
    assert server.error(method, params).code == BAD_PARAMS


@pytest.mark.parametrize("method", ["tiro/session/get", "tiro/status", "tiro/session/list"])
def test_no_params_null_and_an_empty_object_are_the_same(server: Server, method: str) -> None:
    assert server.request(method) == server.request(method, None) == server.request(method, {})


def test_null_in_an_optional_field_means_missing(server: Server) -> None:
    add(server, "user", "a")
    same = server.request("tiro/session/get", {"limit": None, "beforeSeq": None, "all": None})
    assert [m["content"] for m in same["messages"]] == ["a"]
    assert server.request("tiro/session/list", {"query": None, "limit": None})["total"] >= 1
    assert server.request("tiro/session/save", {"path": None})["id"]
    assert server.request("tiro/turn/cancel", {"turnId": None}) == {"cancelled": False}


def test_unknown_fields_are_ignored(server: Server) -> None:
    assert server.request("tiro/session/getAgent", {"class": 1, "x-y": {}}) == {"agent": None}


@pytest.mark.parametrize(
    ("method", "params", "part"),
    [
        ("tiro/session/get", {"limit": "ten"}, "limit"),
        ("tiro/session/get", {"beforeSeq": 1.5}, "beforeSeq"),
        ("tiro/session/get", {"limit": True}, "limit"),
        ("tiro/session/editMessage", {"content": "x"}, "seq"),
        ("tiro/session/editMessage", {"seq": "1", "content": "x"}, "seq"),
        ("tiro/session/rewind", {}, "toSeq"),
        ("tiro/session/delete", {"id": 5}, "id"),
        ("tiro/session/delete", {}, "id"),
        ("tiro/session/setAgent", {"name": 5}, "name"),
        ("tiro/session/configure", {"limit": {"chars": "many"}}, "limit.chars"),
        ("tiro/session/configure", {"mode": "other"}, "mode"),
        ("tiro/state/set", {"key": 5, "value": 1}, "key"),
        ("tiro/turn/start", {}, "prompt"),
        ("tiro/turn/start", {"prompt": "x", "attachments": {}}, "attachments"),
        ("tiro/turn/start", {"prompt": "x", "attachments": [{"kind": 5}]}, "attachments[0]"),
    ],
)
def test_wrong_params_name_the_field(
    server: Server, method: str, params: dict[str, Any], part: str
) -> None:
    error = server.error(method, params)
    assert error.code == BAD_PARAMS
    assert part in error.message


def test_values_come_back_value_for_value(server: Server) -> None:
    value = {
        "z": 2**70, "a": -(2**64), "jsonrpc": "2.0", "id": 1, "method": "x", "class": 2,
        "x-y": 0.1, "type_name": 1e300, "": None, "nested": [{"b": 1, "a": [True, "é\U0001f642"]}],
    }  # fmt: skip
    server.request("tiro/state/set", {"key": "odd", "value": value})
    back = server.request("tiro/state/get", {"key": "odd"})
    assert back == {"found": True, "value": value}
    assert json.dumps(back["value"]) == json.dumps(value)
    block = {"type": "tool_use", "id": "c1", "name": "read_file", "input": value}
    add(server, "assistant", [block, {"type": "novel", "jsonrpc": "2.0", "x-y": value}])
    shown = view(server)["messages"][-1]["content"]
    assert json.dumps(shown[0]) == json.dumps(block)
    assert json.dumps(shown[1]["x-y"]) == json.dumps(value)
    path = server.request("tiro/session/save")["path"]
    loaded = server.request("tiro/session/load", {"path": path})
    assert json.dumps(loaded["messages"][-1]["content"][0]) == json.dumps(block)
    assert json.dumps(loaded["state"]["odd"]) == json.dumps(value)


def test_b12_lone_surrogates_and_nul_never_reach_the_wire(server: Server) -> None:
    raw = (
        b'{"jsonrpc": "2.0", "id": "b12", "method": "tiro/session/addMessage", "params":'
        b' {"role": "user", "content": "a\\ud83d b\\u0000c \\ud83d\\ude42 \\ude42\\ud83d"}}'
    )
    server.send_body(raw)
    assert Pending(server, "b12", "addMessage").result()["total"] == 1
    fixed = "a\ufffd b\ufffdc \U0001f642 \ufffd\ufffd"
    assert window(server) == [("user", fixed)]
    assert fixed in server.request("tiro/session/show")["text"]
    path = Path(server.request("tiro/session/save")["path"])
    text = path.read_bytes().decode("utf-8")
    assert "\\ud83d" not in text.lower()
    content = json.loads(text)["messages"][0]["content"]
    assert content == "a\ufffd b\x00c \U0001f642 \ufffd\ufffd"  # files keep the NUL
    assert (
        server.request("tiro/session/load", {"path": str(path)})["messages"][0]["content"] == fixed
    )


def test_numbers_that_are_no_json_do_no_harm(server: Server) -> None:
    for number in (b"NaN", b"Infinity", b"1e999"):
        server.send_body(
            b'{"jsonrpc": "2.0", "id": "%b", "method": "tiro/state/set",'
            b' "params": {"key": "k", "value": %b}}' % (number, number)
        )
    server.request("tiro/state/get")  # the driver refuses NaN on the wire
    assert server.request("tiro/session/getAgent") == {"agent": None}


def test_a_request_sees_all_that_came_before_it(server: Server) -> None:
    pending = [
        server.begin("tiro/session/addMessage", {"role": "user", "content": f"m{n}"})
        for n in range(40)
    ]
    seen = server.begin("tiro/session/get")
    assert [p.result()["seq"] for p in pending] == list(range(1, 41))
    assert [m["content"] for m in seen.result()["messages"]] == [f"m{n}" for n in range(40)]


def test_changes_take_effect_in_the_order_of_their_arrival(server: Server) -> None:
    server.request("tiro/session/new", {"id": "in-order"})
    add(server, "user", "first")

    def say(text: str) -> Pending:
        return server.begin("tiro/session/addMessage", {"role": "user", "content": text})

    steps = [
        say("second"),
        server.begin("tiro/session/rewind", {"toSeq": 1}),
        say("third"),
        server.begin("tiro/session/get"),
        server.begin("tiro/session/clear"),
        say("elsewhere"),
        server.begin("tiro/session/get"),
        server.begin("tiro/session/load", {"id": "in-order"}),
        say("fourth"),
        server.begin("tiro/session/get"),
    ]
    seen = [[m["content"] for m in steps[n].result()["messages"]] for n in (3, 6, 9)]
    assert seen == [["first", "third"], ["elsewhere"], ["first", "third", "fourth"]]
    assert all("result" in step.message() for step in steps)


def test_a_message_of_10_mb_is_no_trouble(server: Server) -> None:
    text = "0123456789\n" * 1_000_000
    assert add(server, "user", text)["stored"] is True
    assert view(server)["messages"][0]["content"] == text
    assert server.request("tiro/session/content", {"seq": 1, "offset": 5, "limit": 3}) == {
        "text": "567",
        "totalChars": len(text),
    }
    path = Path(server.request("tiro/session/save")["path"])
    assert max(file.stat().st_size for file in path.parent.rglob("*")) >= len(text)  # a blob
