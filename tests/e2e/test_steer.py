"""`tiro/turn/steer`: said to a running turn, part of its next step, never lost."""

import threading
from dataclasses import replace
from typing import Any

import pytest

from tests.e2e import anthropic_replies, replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import ASKING, Home
from tests.e2e.provider import MODEL, Provider
from tests.e2e.replies import Hold, Reply
from tests.e2e.talk import ask, begin_ask, view, window, words
from tests.e2e.turns import events, shape
from tests.sizes import PATIENCE


def steer(server: Server, text: str, **more: Any) -> None:
    assert server.request("tiro/turn/steer", {"text": text, **more}) == {"queued": True}


def sent(provider: Provider) -> list[tuple[str, Any]]:
    """Role and what is said (or whose result it is) of the newest request's messages."""
    return [
        (m["role"], m.get("tool_call_id") or m.get("content") or "calls")
        for m in provider.last.messages
    ]


def test_in_the_first_step_it_comes_behind_the_results(server: Server, provider: Provider) -> None:
    """Twice: each is a message of its own, in order, and the pairs stay whole."""
    server.home.write("a.txt", "A")
    hold = Hold()
    provider.script(
        replies.stream(
            replies.text_chunk("I look"),
            hold,
            replies.calls_chunk(
                replies.call("c1", "read_file", {"path": "a.txt"}, 0),
                replies.call("c2", "read_file", {"path": "a.txt"}, 1),
            ),
            finish="tool_calls",
        ),
        replies.text("with tabs"),
    )
    turn = begin_ask(server, "go")
    hold.wait()
    steer(server, "use tabs")
    steer(server, "and be short", turnId=server.wait_event("started")["turnId"])
    assert words(server) == ["go"]
    hold.release()
    done = turn.result()
    assert (done["text"], done["steps"], done["lastSeq"]) == ("with tabs", 2, 7)
    assert sent(provider)[2:] == [
        ("tool", "c1"),
        ("tool", "c2"),
        ("user", "use tabs"),
        ("user", "and be short"),
    ]
    assert shape(events(server, done))[-6:] == [
        "stored:tool", "stored:user", "stored:user", "text", "stored:assistant", "finished",
    ]  # fmt: skip
    assert [role for role, _ in window(server)] == [
        "user", "assistant", "tool", "tool", "user", "user", "assistant",
    ]  # fmt: skip
    assert view(server)["metadata"] == {}


def test_results_that_do_not_fit_stay_before_it_in_part(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """U2.4, B22: said while tools run whose results no model has read yet; it goes whole itself."""
    home.write_config(
        providers={"fake": home.fake(models={MODEL: {"context_window": 8_000}})},
        permission={"bash": "allow"},
    )
    home.write("long.txt", "a line of words\n" * 3_750)
    line = "until [ -e ready ]; do sleep 0.05; done; cat long.txt"
    ids = [f"c{n}" for n in range(4)]
    provider.script(
        replies.tools(*((id_, "run_command", {"command": f"{line}; echo {id_}"}) for id_ in ids)),
        replies.text("with tabs"),
    )
    server, prompt, said = start(), "look into it, " * 900, "use tabs, " * 50
    turn = begin_ask(server, prompt)
    server.wait_event("toolUse", status="running")
    steer(server, said)
    home.write("ready", "")
    done = turn.result()
    assert (done["text"], done["stopReason"]) == ("with tabs", "end_turn")
    assert sent(provider)[-7:] == [
        ("user", prompt),
        ("assistant", "calls"),
        *(("tool", id_) for id_ in ids),
        ("user", said),
    ]
    told = [m["content"] or "" for m in provider.last.messages]
    assert all("a line of words" in text and "left out" in text for text in told[-5:-1])
    assert sum(map(len, told)) < 4 * 7_000
    assert words(server)[-2:] == [said, "with tabs"]


def test_the_other_style_takes_it_too(start: StartServer, home: Home, provider: Provider) -> None:
    """Results and what was said are one message there, the results first."""
    home.write_config(model=f"claude/{MODEL}")
    server, hold = start(), Hold()
    reply = anthropic_replies.tools(("c1", "glob", {"pattern": "*"}))
    provider.script(replace(reply, steps=[hold, *reply.steps]), anthropic_replies.text("so be it"))
    turn = begin_ask(server, "go")
    hold.wait()
    steer(server, "use tabs")
    hold.release()
    assert turn.result()["text"] == "so be it"
    newest = provider.last.messages[-1]
    assert newest["role"] == "user"
    assert [block["type"] for block in newest["content"]] == ["tool_result", "text"]
    assert newest["content"][1]["text"] == "use tabs"


def test_while_a_question_is_open(server: Server, provider: Provider) -> None:
    server.home.write(ASKING, "A")
    asked, answer = threading.Event(), threading.Event()

    def wait(_: Any) -> dict[str, Any]:
        asked.set()
        assert answer.wait(PATIENCE)
        return {"decision": "reject", "message": "not now"}

    server.on_request("tiro/permission/request", wait)
    provider.script(replies.tools(("c1", "read_file", {"path": ASKING})), replies.text("fine"))
    turn = begin_ask(server, "go")
    assert asked.wait(PATIENCE)
    steer(server, "look elsewhere")
    assert view(server)["metadata"] == {"tiro": {"queued": ["look elsewhere"]}}
    answer.set()
    assert turn.result()["text"] == "fine"
    assert sent(provider)[2:] == [("tool", "c1"), ("user", "look elsewhere")]


def test_while_a_retry_waits_and_the_turn_would_end_after_it(
    server: Server, provider: Provider
) -> None:
    provider.script(
        replies.error(429, "slow down", [("retry-after", "0.3")]),
        replies.text("an answer"),
        replies.text("eine Antwort"),
    )
    turn = begin_ask(server, "go")
    server.wait_event("retry")
    steer(server, "in German")
    assert turn.result()["text"] == "eine Antwort"
    assert words(server) == ["go", "an answer", "in German", "eine Antwort"]
    assert [len(chat.messages) for chat in provider.chats] == [1, 1, 3]


def test_a_cancel_leaves_it_for_the_next_prompt(server: Server, provider: Provider) -> None:
    """B43."""
    provider.script(replies.stream(replies.text_chunk("half"), Hold()))
    turn = begin_ask(server, "go")
    server.wait_event("text")
    steer(server, "not like this")
    server.request("tiro/turn/cancel")
    done = turn.result()
    assert (done["stopReason"], done["text"]) == ("cancelled", "half")
    assert words(server) == ["go", "half", "not like this"]
    assert shape(events(server, done))[-3:] == ["stored:assistant", "stored:user", "finished"]
    ask(server, "but so")
    assert sent(provider)[-2:] == [("user", "not like this"), ("user", "but so")]


def test_b62_a_clear_takes_it_along(server: Server, provider: Provider) -> None:
    hold = Hold()
    provider.script(replies.stream(replies.text_chunk("half"), hold))
    turn = begin_ask(server, "go")
    hold.wait()
    steer(server, "old thing")
    saved = server.request("tiro/session/clear")["savedAs"]
    turn.result()
    ask(server, "hello")
    assert sent(provider) == [("user", "hello")]
    server.request("tiro/session/load", {"path": saved})
    assert words(server) == ["go", "half", "old thing"]


@pytest.mark.parametrize("text", ["", "  \n"])
def test_a_blank_text_is_refused(server: Server, provider: Provider, text: str) -> None:
    provider.script(Reply([Hold()]))
    turn = begin_ask(server, "go")
    provider.wait_for(1)
    assert server.error("tiro/turn/steer", {"text": text}).code == -32602
    assert server.error("tiro/turn/steer", {}).code == -32602
    server.request("tiro/turn/cancel")
    turn.result()
    assert words(server) == ["go"]


def test_without_a_running_turn_nothing_is_taken(server: Server, provider: Provider) -> None:
    error = server.error("tiro/turn/steer", {"text": "hello?"})
    assert (error.code, error.kind, error.data["turnId"]) == (-32021, "turnNotFound", None)
    provider.script(Reply([Hold()]))
    turn = begin_ask(server, "go")
    provider.wait_for(1)
    error = server.error("tiro/turn/steer", {"text": "hello?", "turnId": "another"})
    assert (error.kind, error.data["turnId"]) == ("turnNotFound", "another")
    server.request("tiro/turn/cancel")
    done = turn.result()
    error = server.error("tiro/turn/steer", {"text": "hello?", "turnId": done["turnId"]})
    assert error.kind == "turnNotFound"
    assert words(server) == ["go"]


def test_at_the_end_of_a_turn_it_is_taken_or_refused_never_both(
    server: Server, provider: Provider
) -> None:
    """B45: never silence. What was refused can be sent as a prompt."""
    provider.otherwise(lambda _: replies.text("ok"))
    for number in range(20):
        turn = begin_ask(server, f"go {number}")
        answer = server.begin("tiro/turn/steer", {"text": f"also {number}"})
        turn.result()
        kept = words(server).count(f"also {number}")
        assert kept == int("result" in answer.message())
    assert view(server)["metadata"] == {}


def test_max_steps_holds(start: StartServer, home: Home, provider: Provider) -> None:
    home.write_config(turn={"max_steps": 1})
    server, hold = start(), Hold()
    provider.script(replies.stream(hold, replies.text_chunk("one")))
    turn = begin_ask(server, "go")
    hold.wait()
    steer(server, "more")
    hold.release()
    assert turn.result()["stopReason"] == "max_steps"
    assert len(provider.chats) == 1
    assert words(server) == ["go", "one", "more"]


@pytest.mark.parametrize("resumes", [False, True])
def test_a_kill_loses_nothing_that_was_taken(
    start: StartServer, provider: Provider, resumes: bool
) -> None:
    """U9, B05: an acknowledged text is in the session after a restart."""
    server = start()
    provider.script(replies.stream(replies.text_chunk("half"), Hold()))
    begin_ask(server, "go")
    server.wait_event("text")
    steer(server, "use tabs")
    steer(server, "twice")
    id_ = view(server)["id"]
    server.kill()
    again = start(settings={"session": {"resume": "latest"}} if resumes else {})
    if not resumes:
        loaded = again.request("tiro/session/load", {"id": id_})
        assert [m["content"] for m in loaded["messages"]] == ["go", "use tabs", "twice"]
        assert loaded["metadata"] == {}
    ask(again, "now")
    assert [text for _, text in sent(provider)] == ["go", "use tabs", "twice", "now"]
    again.kill()
    once_more = start()
    once_more.request("tiro/session/load", {"id": id_})
    assert words(once_more) == ["go", "use tabs", "twice", "now", "ok"]


def test_another_process_leaves_a_living_queue_alone(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """U9.8: whoever only looks at a session takes nothing out of a turn that runs elsewhere."""
    server, hold = start(), Hold()
    provider.script(replies.stream(replies.text_chunk("half"), hold))
    turn = begin_ask(server, "go")
    hold.wait()
    steer(server, "use tabs")
    other = start()
    loaded = other.request("tiro/session/load", {"id": view(server)["id"]})
    assert loaded["metadata"] == {"tiro": {"queued": ["use tabs"]}}
    hold.release()
    turn.result()
    assert words(server) == ["go", "half", "use tabs", "ok"]
    ask(other, "me too")
    assert [text for _, text in sent(provider)] == ["go", "half", "use tabs", "ok", "me too"]


def test_a_prompt_elsewhere_takes_what_a_killed_turn_could_not(
    start: StartServer, home: Home, provider: Provider
) -> None:
    server, hold = start(), Hold()
    provider.script(replies.stream(hold))
    begin_ask(server, "go")
    hold.wait()
    other = start()
    other.request("tiro/session/load", {"id": view(server)["id"]})
    steer(server, "use tabs")
    server.kill()
    ask(other, "me too")
    assert [text for _, text in sent(provider)] == ["go", "use tabs", "me too"]
    assert view(other)["metadata"] == {}
