"""Protocol section 4: what a running turn refuses, allows and leaves behind (B45, B62)."""

import json
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import ASKING
from tests.e2e.provider import Provider
from tests.e2e.talk import add, ask, begin_ask, result, use, view, words
from tests.e2e.turns import (
    events,
)
from tests.sizes import PATIENCE


def test_b45_what_a_running_turn_refuses(server: Server, provider: Provider) -> None:
    add(server, "user", "one")
    add(server, "assistant", [use("open")])
    hold = replies.Hold()
    provider.script(replies.stream(replies.text_chunk("half"), hold))
    turn = begin_ask(server, "A")
    server.wait_event("text", since=0, delta="half")
    turn_id = view(server)["busy"]["turnId"]
    before = words(server)
    id_ = view(server)["id"]
    for method, params in (
        ("turn/start", {"prompt": "B"}),
        ("turn/start", {"prompt": "C"}),
        ("session/addMessage", {"role": "user", "content": "B"}),
        ("session/addToolResult", {"toolUseId": "open", "content": "x"}),
        ("session/rewind", {"toSeq": 1}),
        ("session/editMessage", {"seq": 1, "content": "uno"}),
        ("session/resize", {"force": "lite"}),
        ("session/delete", {"id": id_}),
    ):
        error = server.error(f"tiro/{method}", params)
        assert (error.code, error.kind) == (-32020, "turnInProgress"), method
        assert error.data["turnId"] == turn_id
    assert words(server) == before
    hold.release()
    assert turn.result()["text"] == "half"
    assert len(provider.chats) == 1
    assert words(server) == [*before, "half"]


def test_b45_what_a_running_turn_allows(server: Server, provider: Provider) -> None:
    other = server.request("tiro/session/new", {"id": "other"})["id"]
    add(server, "user", "x")
    server.request("tiro/session/new", {})
    hold = replies.Hold()
    provider.script(replies.stream(replies.text_chunk("half"), hold))
    turn = begin_ask(server, "A")
    server.wait_event("text", delta="half")
    id_ = server.request("tiro/session/getId")["id"]
    assert "[USER] A" in server.request("tiro/session/show")["text"]
    assert server.request("tiro/session/statistics")["user"] == 1
    assert server.request("tiro/session/save")["id"] == id_
    assert server.request("tiro/state/set", {"key": "k", "value": 1}) == {}
    assert server.request("tiro/session/contextSize")["tokens"] > 0
    assert server.request("tiro/session/delete", {"id": other}) == {"deleted": True}
    assert server.request("tiro/session/judgeResize") == {"decision": None}
    assert id_ in [r["id"] for r in server.request("tiro/session/list")["sessions"]]
    assert server.request("tiro/session/setAgent", {"name": "plan"})["agent"]["name"] == "plan"
    assert server.request("tiro/models/set", {"name": "fake/next"}) == {"model": "fake/next"}
    server.request("tiro/session/configure", {"title": "T"})
    hold.release()
    done = turn.result()
    assert events(server, done)[0]["agent"] == "build"
    assert view(server)["state"] == {"k": 1}
    done = ask(server, "B")
    assert events(server, done)[0]["agent"] == "plan"
    assert provider.last.body["model"] == "next"


@pytest.mark.parametrize("how", ["clear", "new", "load"])
def test_b62_nothing_of_the_old_turn_comes_after_the_answer(
    server: Server, provider: Provider, how: str
) -> None:
    add(server, "user", "saved before")
    saved = server.request("tiro/session/save")["id"]
    server.request("tiro/session/clear")
    hold = replies.Hold()
    provider.script(replies.stream(replies.text_chunk("half an answer "), hold))
    turn = begin_ask(server, "old prompt")
    server.wait_event("text", delta="half an answer ")
    old = view(server)["id"]
    change = server.begin(f"tiro/session/{how}", {"id": saved} if how == "load" else {})
    change.result()
    assert turn.done, "turn/start is answered before"
    assert turn.result()["stopReason"] == "cancelled"
    assert turn.result()["text"] == "half an answer "
    assert provider.last.closed_by_client()
    hold.release()
    provider.script(replies.text("hello yourself"))
    done = ask(server, "hello")
    late = [
        n["params"] for n in server.notifications[change.mark :] if n["method"] == "tiro/turn/event"
    ]
    assert all(e["turnId"] == done["turnId"] for e in late)
    before = ["saved before"] if how == "load" else []
    assert [m["content"] for m in provider.last.messages] == [*before, "hello"]
    assert words(server) == [*before, "hello", "hello yourself"]
    old_session = server.request("tiro/session/load", {"id": old})
    assert old_session["messages"][0]["content"] == "old prompt"
    partial = old_session["messages"][1]
    assert partial["metadata"]["tiro"]["interrupted"] is True
    assert words(server) == ["old prompt", "half an answer "]


def test_b62_clear_while_a_question_is_open(server: Server, provider: Provider) -> None:
    server.home.write(ASKING, "TOPSECRET")
    answer = replies.Hold()

    def late(_: Any) -> dict[str, Any]:
        answer.reached.set()
        answer.released.wait(PATIENCE)
        return {"decision": "once"}

    server.on_request("tiro/permission/request", late)
    provider.script(replies.tools(("c1", "read_file", {"path": ASKING})))
    turn = begin_ask(server, "old prompt")
    answer.wait()
    old = view(server)["id"]
    server.request("tiro/session/clear")
    assert turn.result()["stopReason"] == "cancelled"
    answer.release()
    ask(server, "hello")
    assert [m["content"] for m in provider.last.messages] == ["hello"]
    kept = server.request("tiro/session/load", {"id": old})["messages"]
    assert kept[-1]["content"]["tool_use_id"] == "c1"
    assert "TOPSECRET" not in json.dumps(kept)


def test_results_that_a_client_adds_are_sent(server: Server, provider: Provider) -> None:
    add(server, "user", "go")
    add(server, "assistant", [use("a"), use("b")])
    add(server, "tool", result("b", "B"))
    ask(server, "next")
    told = [m for m in provider.last.messages if m["role"] == "tool"]
    assert [m["tool_call_id"] for m in told] == ["a", "b"]
    assert told[1]["content"] == "B"
    assert "interrupt" in told[0]["content"].lower()


def test_untrusted_workspaces_offer_reading_only(start: StartServer, provider: Provider) -> None:
    server = start(initialize=False)
    server.initialize(trusted=False)
    ask(server)
    assert set(provider.last.tool_names) == {"read_file", "list_files", "glob", "grep"}
