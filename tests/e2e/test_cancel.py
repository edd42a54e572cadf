"""Cancel at every point of a turn: one result for each use, one end, and the session goes on."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Pending, Server
from tests.e2e.home import ASKING
from tests.e2e.provider import Provider
from tests.e2e.replies import Hold, Reply
from tests.e2e.talk import ask, begin_ask, view, window, words
from tests.sizes import PATIENCE

Stop = Callable[[Server, Pending], None]


def cancel(server: Server, turn: Pending) -> None:
    """Cancel by our own method."""
    assert server.request("tiro/turn/cancel") == {"cancelled": True}
    assert turn.result()["stopReason"] == "cancelled"


def cancel_request(server: Server, turn: Pending) -> None:
    """Cancel by the standard notification."""
    server.notify("$/cancelRequest", {"id": turn.id})
    assert turn.error().code == -32800


both = pytest.mark.parametrize("stop", [cancel, cancel_request])


def check_usable(server: Server, provider: Provider) -> None:
    """One more prompt is answered, and the strict provider takes the history."""
    finished = [e for e in server.events() if e["type"] == "finished"]
    assert len({e["turnId"] for e in finished}) == len(finished)
    assert view(server)["busy"] is None
    provider.script(replies.text("still here"))
    assert ask(server, "are you there?")["text"] == "still here"
    assert provider.refused == []


def last_events(server: Server) -> list[dict[str, Any]]:
    """The events of the newest turn, which must have ended as cancelled."""
    server.wait_until(lambda: server.events()[-1]["type"] == "finished", "the end of the turn")
    turn_id = server.events()[-1]["turnId"]
    found = server.events(turn_id)
    assert [e["n"] for e in found] == list(range(1, len(found) + 1))
    assert found[-1]["stopReason"] == "cancelled"
    return found


@both
@pytest.mark.parametrize("first", [(), (b"",), (b": ping\n\n",)])
def test_b43_before_the_first_byte(
    server: Server, provider: Provider, stop: Stop, first: tuple[bytes, ...]
) -> None:
    provider.script(Reply([*first, Hold()]))
    turn = begin_ask(server, "go")
    provider.wait_for(1)
    stop(server, turn)
    assert provider.last.closed_by_client()
    last_events(server)
    assert words(server) == ["go"]
    check_usable(server, provider)


@both
def test_b43_in_mid_stream(server: Server, provider: Provider, stop: Stop) -> None:
    hold = Hold()
    provider.script(replies.stream(replies.text_chunk("half an answer"), hold))
    turn = begin_ask(server, "go")
    server.wait_event("text", delta="half an answer")
    stop(server, turn)
    assert provider.last.closed_by_client()
    last_events(server)
    partial = view(server)["messages"][-1]
    assert words(server) == ["go", "half an answer"]
    assert partial["metadata"]["tiro"]["interrupted"] is True
    if stop is cancel:
        assert turn.result()["text"] == "half an answer"
    check_usable(server, provider)


@both
def test_b43_after_blank_text_only(server: Server, provider: Provider, stop: Stop) -> None:
    provider.script(replies.stream(replies.text_chunk("\n\n"), Hold()))
    turn = begin_ask(server, "go")
    server.wait_event("text")
    stop(server, turn)
    check_usable(server, provider)


@both
def test_b43_in_the_middle_of_tool_arguments(
    server: Server, provider: Provider, stop: Stop
) -> None:
    half = replies.calls_chunk(replies.call("c1", "read_file", '{"path": "a'))
    hold = Hold()
    provider.script(replies.stream(replies.text_chunk("I look"), half, hold))
    turn = begin_ask(server, "go")
    hold.wait()
    server.wait_event("text", delta="I look")
    stop(server, turn)
    found = last_events(server)
    assert not [e for e in found if e.get("status") == "running"]
    check_usable(server, provider)


@both
def test_b03_while_a_question_is_open(server: Server, provider: Provider, stop: Stop) -> None:
    other = f"{ASKING.removesuffix('.txt')}-2.txt"  # its question waits for the first one
    for name in (ASKING, other):
        server.home.write(name, "TOPSECRET")
    server.home.write("fast.txt", "REAL RESULT")
    asked, answer = threading.Event(), threading.Event()

    def late(_: Any) -> dict[str, Any]:
        asked.set()
        answer.wait(PATIENCE)
        return {"decision": "once"}

    server.on_request("tiro/permission/request", late)
    provider.script(
        replies.tools(
            ("c1", "read_file", {"path": "fast.txt"}),
            ("c2", "read_file", {"path": ASKING}),
            ("c3", "read_file", {"path": other}),
        )
    )
    turn = begin_ask(server, "go")
    assert asked.wait(PATIENCE)
    server.wait_event("toolResult", toolUseId="c1")
    stop(server, turn)
    found = last_events(server)
    answer.set()
    check_usable(server, provider)
    told = [m for m in provider.last.messages if m["role"] == "tool"]
    assert [m["tool_call_id"] for m in told] == ["c1", "c2", "c3"]
    assert "REAL RESULT" in told[0]["content"]
    for message in told[1:]:
        assert "cancel" in message["content"].lower()
    kept = [c for role, c in window(server) if role == "tool"]
    assert [c["tool_use_id"] for c in kept] == ["c1", "c2", "c3"]
    assert "TOPSECRET" not in json.dumps(kept)
    last = {e["toolUse"]["id"]: e["status"] for e in found if e["type"] == "toolUse"}
    assert (last["c1"], last["c2"]) == ("done", "cancelled")
    assert last.get("c3") in (None, "cancelled")
    assert len([e for e in found if e["type"] == "toolResult"]) == 3


@both
def test_b43_between_a_result_and_the_next_request(
    server: Server, provider: Provider, stop: Stop
) -> None:
    server.home.write("a.txt", "REAL RESULT")
    provider.script(replies.tools(("c1", "read_file", {"path": "a.txt"})), Reply([Hold()]))
    turn = begin_ask(server, "go")
    provider.wait_for(2)
    stop(server, turn)
    assert provider.last.closed_by_client()
    last_events(server)
    check_usable(server, provider)
    told = [m for m in provider.last.messages if m["role"] == "tool"]
    assert len(told) == 1
    assert "REAL RESULT" in told[0]["content"]


@both
def test_b43_in_a_retry_wait(server: Server, provider: Provider, stop: Stop) -> None:
    provider.script(replies.error(429, "slow down", [("retry-after", "20")]))
    turn = begin_ask(server, "go")
    server.wait_event("retry")
    stop(server, turn)
    last_events(server)
    assert len(provider.chats) == 1
    check_usable(server, provider)


def test_b43_a_pattern_that_never_ends_does_not_stop_the_server(
    server: Server, provider: Provider
) -> None:
    server.home.write("evil.txt", "a" * 64 + "b\n")
    provider.script(replies.tools(("c1", "grep", {"pattern": "(a+)+$"})))
    turn = begin_ask(server, "go")
    server.wait_event("toolUse", status="running")
    assert server.request("tiro/session/getAgent")["agent"]["name"] == "build"
    if not turn.done:
        cancel(server, turn)
    check_usable(server, provider)


def test_b43_twice_and_with_nothing_running(server: Server, provider: Provider) -> None:
    assert server.request("tiro/turn/cancel") == {"cancelled": False}
    error = server.error("tiro/turn/cancel", {"turnId": "no-such-turn"})
    assert (error.code, error.kind) == (-32021, "turnNotFound")
    assert error.data["turnId"] == "no-such-turn"
    provider.script(replies.stream(replies.text_chunk("half"), Hold()))
    turn = begin_ask(server, "go")
    turn_id = server.wait_event("text", delta="half")["turnId"]
    assert server.error("tiro/turn/cancel", {"turnId": "another"}).kind == "turnNotFound"
    first = server.begin("tiro/turn/cancel", {"turnId": turn_id})
    second = server.begin("tiro/turn/cancel")
    assert first.result() == {"cancelled": True}
    assert second.result() in ({"cancelled": True}, {"cancelled": False})
    assert turn.result()["stopReason"] == "cancelled"
    assert server.error("tiro/turn/cancel", {"turnId": turn_id}).kind == "turnNotFound"
    server.notify("$/cancelRequest", {"id": turn.id})
    check_usable(server, provider)


def test_b43_cancel_right_after_start(server: Server, provider: Provider) -> None:
    for number in range(5):
        turn = begin_ask(server, f"go {number}")
        stopped = server.begin("tiro/turn/cancel")
        assert stopped.result()["cancelled"] in (True, False)
        assert turn.result()["stopReason"] in ("cancelled", "end_turn")
    for number in range(5):
        turn = begin_ask(server, f"again {number}")
        server.notify("$/cancelRequest", {"id": turn.id})
        answer = turn.message()
        assert "result" in answer or answer["error"]["code"] == -32800
    check_usable(server, provider)


def test_cancel_of_another_request_leaves_the_turn(server: Server, provider: Provider) -> None:
    hold = Hold()
    provider.script(replies.stream(replies.text_chunk("half"), hold))
    turn = begin_ask(server, "go")
    server.wait_event("text", delta="half")
    for id_ in (turn.id + 1000, "x", None):
        server.notify("$/cancelRequest", {"id": id_})
    assert view(server)["busy"]
    hold.release()
    assert turn.result()["stopReason"] == "end_turn"
