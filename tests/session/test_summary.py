"""The background summary, the trim before a turn, and compaction (part N, M7.1)."""

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.session.histories import result, says, sound_histories, user, uses
from tiro import Message, ResizeError, Session
from tiro.session.cut import legal_cut
from tiro.session.dialogue import dialogue, runs
from tiro.session.prompts import COMPACTION_PROMPT
from tiro.session.summary import Summarizer, before_turn, usable


class Provider:
    """Answers with scripted replies, the last one again and again; an event is waited for."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.calls: list[dict[str, Any]] = []

    async def chat(self, **given: Any) -> Any:
        self.calls.append(given)
        reply = self.replies[0] if len(self.replies) == 1 else self.replies.pop(0)
        if isinstance(reply, asyncio.Event):
            await reply.wait()
            return "after the wait"
        if isinstance(reply, BaseException):
            raise reply
        return reply

    def asked(self, call: int = -1) -> str:
        text = self.calls[call]["messages"][-1]["content"]
        assert isinstance(text, str)
        return text


class Manager:
    """Notes what was saved."""

    def __init__(self) -> None:
        self.saved: list[str] = []

    def save(self, session: Session) -> None:
        self.saved.append(session.summary)


def talk(turns: int) -> Session:
    session = Session()
    for turn in range(turns):
        session.add_message("user", f"question {turn}").add_message("assistant", f"answer {turn}")
    return session


async def ended(session: Session) -> None:
    """Wait until no summary is in progress."""
    for _ in range(1_000):
        await asyncio.sleep(0)
        if not session.summary_in_progress:
            return
    raise AssertionError("the summary is still in progress")


# --- trim -----------------------------------------------------------------------------------


def test_a_window_within_the_limit_is_not_trimmed() -> None:
    """N2.1: exactly the limit does not trim."""
    session = talk(3)
    before = session.n
    assert session.trim_if_needed(6, 2) == ([], False)
    assert session.n == before


@pytest.mark.parametrize("min_keep", [-1, 6, 7])
def test_a_min_keep_that_makes_no_sense_is_refused(min_keep: int) -> None:
    """N2.5."""
    with pytest.raises(ValueError, match="min_keep"):
        talk(5).trim_if_needed(6, min_keep)


def test_a_trim_keeps_whole_turns() -> None:
    """N2.2, N2.3, N2.4, N2.7: the base cut moves back to the previous user message."""
    session = Session()
    for message in (user("1"), uses("a"), result("a"), says(), user("5"), says()):
        session.append_message(message)
    evicted, did = session.trim_if_needed(4, 1)
    assert ([m.seq for m in evicted], did) == ([1, 2, 3, 4], True)
    assert [m.seq for m in session.pending()] == [1, 2, 3, 4]


def test_the_cut_moves_forward_when_there_is_no_earlier_prompt() -> None:
    """N2.4, answer 23; and without any prompt nothing is trimmed."""
    session = Session()
    for message in (user("1"), says(), says(), says(), user("5")):
        session.append_message(message)
    evicted, _ = session.trim_if_needed(4, 3)
    assert [m.seq for m in evicted] == [1, 2, 3, 4]
    session = Session()
    for message in (says(), says(), says()):
        session.append_message(message)
    assert session.trim_if_needed(2, 1) == ([], False)


def test_min_keep_zero_evicts_everything() -> None:
    """N2.5."""
    session = talk(3)
    evicted, did = session.trim_if_needed(2, 0)
    assert (len(evicted), did, session.messages) == (6, True, [])


@given(sound_histories(), st.integers(1, 12), st.integers(0, 11))
def test_every_trim_is_legal(messages: list[Message], limit: int, min_keep: int) -> None:
    """N2.2, N2.3, N2.4, N2.5."""
    session = Session()
    for message in messages:
        session.append_message(message)
    if min_keep >= limit:
        return
    before = [m.seq for m in session.messages]
    evicted, did = session.trim_if_needed(limit, min_keep)
    kept = [m.seq for m in session.messages]
    assert [m.seq for m in evicted] + kept == before
    assert did == bool(evicted)
    assert not evicted or not kept or session.messages[0].role == "user"
    assert not kept or legal_cut(messages, len(evicted)) == len(evicted)


# --- the job --------------------------------------------------------------------------------


async def test_a_trim_starts_the_job_and_the_turn_does_not_wait() -> None:
    """N4.1, N4.2, N4.6, N4.7, N3.6: the old summary is used until the new one is stored."""
    session, gate, manager = talk(30), asyncio.Event(), Manager()
    session.change(summary="old")
    provider = Provider(gate, "second")
    summarizer = Summarizer(provider, "main")
    assert before_turn(session, summarizer, manager)
    assert (len(session.messages), session.summary) == (10, "old")
    assert session.summary_in_progress
    await asyncio.sleep(0)
    session.add_message("user", "meanwhile")
    assert not before_turn(session, summarizer, manager), "N4.7: no second task"
    gate.set()
    await ended(session)
    assert session.summary == "after the wait"
    assert manager.saved == ["after the wait"]
    assert session.pending() == []
    assert [m["role"] for m in provider.calls[0]["messages"]] == ["system", "user"]
    assert provider.calls[0]["tools"] is None
    assert provider.calls[0]["model"] == "main"
    assert "old" in provider.asked(0)
    assert "user: question 0\nassistant: answer 0" in provider.asked(0)


async def test_what_is_evicted_while_a_job_runs_is_queued() -> None:
    """N4.4: the next one reads the queue with the new summary; never two at once."""
    session, gate = talk(30), asyncio.Event()
    provider = Provider(gate, "second")
    before_turn(session, Summarizer(provider, "m"))
    await asyncio.sleep(0)
    session.trim_if_needed(4, 2)
    assert len(provider.calls) == 1
    gate.set()
    await ended(session)
    assert (len(provider.calls), session.summary) == (2, "second")
    assert "after the wait" in provider.asked()
    assert "question 29" not in provider.asked()
    assert "question 27" in provider.asked()
    assert session.pending() == []


UNUSABLE: list[Any] = [
    "",
    "  \n",
    SimpleNamespace(text="", stop_reason="end_turn", tool_uses=[]),
    SimpleNamespace(text=None, stop_reason="tool_use", tool_uses=[{"name": "x"}]),
    SimpleNamespace(text="I will not", stop_reason="refusal", tool_uses=[]),
    SimpleNamespace(text="half of", stop_reason="max_tokens", tool_uses=[]),
    '{"summary": "text"}',
    {"summary": "text"},
    None,
    RuntimeError("provider is down"),
]


@pytest.mark.parametrize("reply", UNUSABLE)
async def test_an_unusable_answer_changes_nothing(
    reply: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """N3.7, N3.8, B19: the old summary stays, the batch waits, and the next turn tries again."""
    session, provider = talk(30), Provider(reply, "good")
    session.change(summary="old")
    with caplog.at_level(logging.WARNING):
        before_turn(session, summarizer := Summarizer(provider, "m"))
        await ended(session)
    assert len(caplog.records) == 1
    assert (session.summary, len(session.pending())) == ("old", 50)
    assert len(provider.calls) == 1, "at most one request a turn"
    session.add_message("user", "next")
    assert before_turn(session, summarizer)
    await ended(session)
    assert (session.summary, session.pending()) == ("good", [])
    assert "question 0" in provider.asked()


def test_a_summary_longer_than_what_it_replaces_is_refused() -> None:
    """The quality check, where what it replaces was over 2,000 characters."""
    assert usable("x" * 3_000, "", 1_999) == "x" * 3_000
    with pytest.raises(ResizeError, match="longer"):
        usable("x" * 3_001, "", 3_000)


async def test_a_cancelled_job_leaves_all_as_it_was() -> None:
    """N3.7."""
    session, gate = talk(30), asyncio.Event()
    before_turn(session)
    summarizer = Summarizer(Provider(gate), "m")
    task = summarizer.fire_and_forget(session, None, session.pending(), "")
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert (session.summary_in_progress, session.summary) == (False, "")
    assert len(session.pending()) == 50


@pytest.mark.parametrize("act", ["clear", "compact", "set"])
async def test_a_late_summary_is_dropped(act: str) -> None:
    """N4.8, U4.4: the session was cleared, compacted, or given a summary meanwhile."""
    session, gate = talk(30), asyncio.Event()
    before_turn(session, Summarizer(Provider(gate), "m"))
    await asyncio.sleep(0)
    if act == "clear":
        session.clear()
        session.add_message("user", "new")
    elif act == "compact":
        await session.async_compact(Summarizer(Provider("compacted"), "m"))
    else:
        session.update_summary("mine")
    gate.set()
    for _ in range(20):
        await asyncio.sleep(0)
    expected = {"clear": "", "compact": "compacted", "set": "mine"}
    assert session.summary == expected[act]
    assert session.summary_in_progress is False  # else there would never be another one


async def test_a_backlog_that_is_too_long_is_summarised_in_several() -> None:
    """U4.3, B21: in order, each with the summary before it."""
    session = talk(40)
    session.trim_if_needed(10, 0)
    provider = Provider("one", "two", "three", "four")
    before_turn(session, Summarizer(provider, "m", max_characters=700))
    await ended(session)
    assert len(provider.calls) > 2
    assert session.pending() == []
    asked = [provider.asked(n) for n in range(len(provider.calls))]
    assert all(len(text) < 900 for text in asked)
    assert "question 0" in asked[0]
    assert "one" in asked[1]
    assert "answer 39" in asked[-1]


async def test_the_summary_model_goes_before_the_main_one() -> None:
    """N3.1."""
    provider, heard = Provider("text"), list[str]()
    await Summarizer(provider, "main", "small").summarize_async(
        [{"role": "user", "content": "hi"}], None, heard.append
    )
    assert (heard, provider.calls[0]["model"]) == (["text"], "small")
    assert provider.asked() == "user: hi"


def test_no_summariser_no_job() -> None:
    """U8.1; and it is no error without an event loop."""
    session = talk(30)
    assert not before_turn(session)
    assert len(session.pending()) == 50


# --- the text -------------------------------------------------------------------------------


def test_the_dialogue_shows_what_is_no_text_by_its_name() -> None:
    """N3.9, N8.3."""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "x", "data": "A" * 99}}
    messages = [
        Message("system", "rules"),
        Message("user", [{"type": "text", "text": "look"}, picture]),
        uses("a", text="I look"),
        result("a", "found it"),
        Message("assistant", [{"type": "thinking", "thinking": "hm"}]),
        Message("assistant", "", tool_calls=[{"id": "b", "function": {"name": "grep"}}]),
    ]
    assert dialogue(messages) == (
        'user: look\n[image]\nassistant: I look\n[glob {"n": "a"}]\ntool: found it\n'
        "assistant: [grep {}]"
    )


def test_long_results_are_shortened_first_then_the_middle_is_cut() -> None:
    """N8.3: each cut is marked, beginning and end stay."""
    rows = [user("first"), uses("a"), result("a", "r" * 9_000), user("last")]
    shorter = dialogue(rows, 2_000)
    assert "first" in shorter and "last" in shorter and "left out" in shorter  # noqa: PT018
    assert len(shorter) < 1_000
    cut = dialogue([user("first"), user("x" * 9_000), user("last")], 1_000)
    assert len(cut) <= 1_000
    assert cut.startswith("user: first")
    assert cut.endswith("user: last")


@given(sound_histories(), st.integers(10, 200))
def test_runs_are_whole_and_in_order(messages: list[Message], limit: int) -> None:
    """U4.3."""
    parts = list(runs(messages, limit))
    assert [message for part in parts for message in part] == messages
    assert all(len(part) == 1 or len(dialogue(part)) <= limit for part in parts)


# --- compaction -----------------------------------------------------------------------------


async def test_compaction_folds_window_and_queue_into_the_summary() -> None:
    """M7.1: nothing is deleted, pins stay, and undo brings it all back."""
    session, provider = talk(4), Provider("all of it")
    session.set_agent("plan").change(summary="old")
    session.trim_if_needed(6, 4)
    session.pin(5)
    assert await session.async_compact(Summarizer(provider, "m")) == 3
    assert [m.seq for m in session.messages] == [5]
    assert (session.summary, session.pending(), session.agent) == ("all of it", [], "plan")
    assert len(session.full_chat_history) == 8
    assert provider.calls[0]["messages"][0]["content"] == COMPACTION_PROMPT
    assert "old" in provider.asked()
    assert "question 0" in provider.asked()


@pytest.mark.parametrize("reply", UNUSABLE)
async def test_a_compaction_that_fails_changes_nothing(reply: Any) -> None:
    """M7.1, B18, B19."""
    session = talk(4)
    before = session.snapshot()
    with pytest.raises((ResizeError, RuntimeError)):
        await session.async_compact(Summarizer(Provider(reply), "m"))
    assert session.snapshot() == before


async def test_with_nothing_to_compact_no_model_is_called() -> None:
    """M7.1."""
    provider = Provider("text")
    assert await Session().async_compact(Summarizer(provider, "m")) == 0
    assert provider.calls == []


async def test_messages_that_say_nothing_need_no_model() -> None:
    """U3.6, M7.1: no provider takes an empty prompt."""
    session, provider = Session(), Provider("text")
    session.add_message("user", "").add_message("assistant", [])
    assert await session.async_compact(Summarizer(provider, "m")) == 2
    assert (provider.calls, session.messages, session.summary) == ([], [], "")


async def test_messages_added_during_a_compaction_stay() -> None:
    """U4.5."""
    session, gate = talk(2), asyncio.Event()
    compacting = asyncio.create_task(session.async_compact(Summarizer(Provider(gate), "m")))
    await asyncio.sleep(0)
    session.add_message("user", "late")
    gate.set()
    assert await compacting == 4
    assert [m["content"] for m in session.messages] == ["late"]
