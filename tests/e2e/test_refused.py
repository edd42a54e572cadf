"""What a user hears of a summary or a memo that was written in the background and not taken."""

import json
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import Provider, Recorded
from tests.e2e.talk import add, ask, fill, until
from tests.sizes import PATIENCE
from tiro.assistant.memo_upkeep import REQUESTS

GOOD = '{"memo": {"read": 1}}'
WORDS = "some words and more of them "


def told(server: Server) -> list[str]:
    """What the server had an editor show, in order."""
    return [shown["message"] for shown in server.named("window/showMessage")]


def is_in_progress(server: Server) -> bool:
    return bool(server.request("tiro/memo/get")["summaryInProgress"])


def summarising(server: Server) -> None:
    """A session whose next turn pushes messages out of the window."""
    server.request("tiro/session/configure", {"maxHistory": 2, "summaryEnabled": True})
    fill(server, *(f"question {n}" for n in range(6)))


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (replies.text(" \n"), "it is empty"),
        (replies.text("half", finish="length"), "it was cut off"),
        (replies.text("No.", finish="content_filter"), "refused"),
        (replies.error(400, "no such thing"), "no such thing"),
    ],
)
def test_the_first_of_several_refused_summaries_is_told(
    start: StartServer, provider: Provider, reply: replies.Reply, reason: str
) -> None:
    """Issue of the memory, 5; N3.7: the reason, in words, once; the messages go on waiting."""
    server = start()
    summarising(server)
    provider.otherwise(lambda r: replies.text("ok") if r.tool_names else reply)
    for n in range(3):
        ask(server, f"turn {n}")
        until(lambda: not is_in_progress(server))
    assert len(shown := told(server)) == 1
    assert reason in shown[0]
    assert "summary of this conversation is not up to date" in shown[0]
    assert server.request("tiro/memo/get")["summary"] == ""


def test_a_summary_that_fails_for_the_same_reason_again_is_told_again(
    start: StartServer, provider: Provider
) -> None:
    """It had worked in between, so it is the first one in a row."""
    server, summaries = start(), [" \n", "A summary of all that was said.", " \n", " \n"]
    left = [3, 2, 1, 0]
    summarising(server)
    provider.otherwise(lambda r: replies.text("ok" if r.tool_names else summaries.pop(0)))
    while left:
        ask(server, "go on")
        until(lambda: len(summaries) == left[0] and not is_in_progress(server))
        left.pop(0)
    until(lambda: len(told(server)) == 2)
    assert len(set(told(server))) == 1


def test_a_summary_that_comes_too_late_is_no_failure(
    start: StartServer, provider: Provider
) -> None:
    """N4.8: who began a new session need not hear of the old one's summary."""
    server, hold = start(), replies.Hold()
    summarising(server)
    late = replies.Reply([replies.ROLE, hold, *replies.text("late").steps[1:]])
    provider.script(replies.text("ok"), late)
    ask(server, "hello")
    hold.wait()
    server.request("tiro/session/clear")
    hold.release()
    provider.chats[1].answered.wait(PATIENCE)
    ask(server, "hello again")
    assert told(server) == []


def test_a_memo_that_was_refused_after_the_turn_is_told(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """Issue of the memory, 5: what is read into the memo after the reply has no event of a turn."""
    models = {"fake-model": {"context_window": 4_000}}
    home.write_config(
        providers={"fake": home.fake(models=models)},
        session={"memo": {"enabled": True}, "max_history": None},
    )
    server, memos = start(), [GOOD, "This is no JSON"]

    def answer(request: Recorded) -> replies.Reply:
        return replies.text("ok" if request.tool_names else memos.pop(0))

    provider.otherwise(answer)
    for n in range(60):
        add(server, "user", f"OLD-{n} {WORDS * 30}")
    ask(server, "one")
    until(lambda: bool(told(server)))
    assert memos == []
    assert len(shown := told(server)) == 1
    assert "memo of this conversation is not up to date" in shown[0]
    assert "it is no JSON object" in shown[0]
    memo: Any = server.request("tiro/memo/get")["memo"]
    assert "This is no JSON" not in json.dumps(memo)
    assert memo["read"] == 1
    for script in (["Nor is this"], [GOOD] * REQUESTS + ["No JSON again"]):
        memos[:] = [GOOD, *script]  # the first one is read before the reply
        for n in range(40):
            add(server, "user", f"NEW-{n} {WORDS * 30}")
        ask(server, "two")
        until(lambda: not memos)
    until(lambda: len(told(server)) > 1)
    assert len(told(server)) == 2, (
        "the second in a row is not told, the first after one that came is"
    )
