"""Resizing without a model (A2, A4 for lite)."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.session.histories import result, says, sound_histories, steered, talk, user, uses
from tiro import Message, Session
from tiro.session.cut import group_of, opens_turn
from tiro.session.front import front_of
from tiro.session.meter import Meter
from tiro.session.policy import Budget, ResizeDecision, judge
from tiro.session.resize import planned, resize, to_evict


def test_an_unknown_type_is_a_key_error_that_names_it() -> None:
    """A4.2, A4.6: nothing has changed."""
    session = talk(1)
    with pytest.raises(KeyError, match="archive"):
        session.resize("archive")
    assert session.memo == {}


def test_a_resize_keeps_the_newest_and_archives_the_rest() -> None:
    """A4.7, A4.10, U1.4."""
    session = talk(5)
    session.set_limit(messages=4)
    assert len(session.resize("lite")) == 4
    assert len(session.archive) == 6
    assert len(session.full_chat_history) == 10
    assert session.memo["last_resize"] == {"type": "lite", "turn": 5, "reason": "force"}
    assert session._last_resize_turn == 5
    assert session._memo_cursor == 10


def test_count_and_characters_both_prune() -> None:
    """A4.11: a count within its limit does not switch the character prune off."""
    session = talk(5, 100)
    session.set_limit(chars=250, messages=50)
    assert len(session.resize("lite")) == 2


def test_the_newest_message_stays_however_long() -> None:
    """A4.10."""
    session = talk(2)
    session.add_message("user", "x" * 5000).set_limit(chars=100)
    assert [len(m.content) for m in session.resize("deep")] == [5000]


def test_an_oversized_message_causes_no_endless_work() -> None:
    """A4.13: the triggers stay quiet until something is appended."""
    session = talk(1)
    session.add_message("user", "x" * 5000).set_limit(chars=100)
    assert session.judge_resize() is not None
    session.resize()
    assert session.judge_resize() is None
    session.add_message("user", "y")
    assert session.judge_resize() is not None


def test_a_token_budget_decides_first_and_keeps_half() -> None:
    """U8.2, U8.3."""
    session = talk(20, 1000)
    session.set_limit(chars=10)
    spent = Meter().measure(session.messages).tokens

    async def resized(tokens: int) -> tuple[Any, Any]:
        budget = Budget(tokens=tokens, fixed=100)
        decision = await judge(session, session.settings, budget=budget)
        return decision, await resize(session, session.settings, budget=budget)

    decision, outcome = asyncio.run(resized(spent))
    assert decision == ResizeDecision("deep", "token_budget", 200)
    assert outcome.evicted >= 20
    assert Meter().measure(session.messages).tokens <= spent // 2
    assert len(session.full_chat_history) == 40


@given(
    messages=sound_histories(),
    steers=st.integers(0, 2),
    tokens=st.integers(1, 300),
    fixed=st.integers(0, 300),
    window=st.integers(0, 400),
    from_end=st.integers(0, 8),
    pin=st.none() | st.integers(1, 20),
)
def test_a_budget_is_kept_or_nothing_more_can_go(
    messages: list[Message],
    steers: int,
    tokens: int,
    fixed: int,
    window: int,
    from_end: int,
    pin: int | None,
) -> None:
    """U2.2, U2.4, U2.8, U8.3, B20, B22: what a turn's user said, pins and the newest group stay."""
    session = Session(max_history=1000)
    is_unread = steers > 0 and messages[-1:] != [] and messages[-1].role == "tool"
    unread = group_of(messages, len(messages) - 1) if is_unread else set()
    messages = [*messages, *(steered() for _ in range(steers))]
    for message in messages:
        session.append_message(message)
    session.pins = [pin] if pin is not None and pin <= len(messages) else []
    rows, hold_from = session.oldest_first(), len(messages) + 1 - from_end
    budget = Budget(tokens, fixed, window, hold_from)
    gone = set(to_evict(session, session.settings, budget))
    said = {m.seq for m in rows if opens_turn(m)}
    held = session.held() | {seq for seq in said if seq and seq >= hold_from}
    held |= {rows[index].seq or 0 for index in unread}  # no model has read it
    assert not gone & held
    for index in range(len(rows)):
        group = {rows[member].seq for member in group_of(rows, index)}
        assert group <= gone or not group & gone
    free = [m for m in rows if m.seq not in held | gone]
    newest = group_of(rows, len(rows) - 1) if rows else set()
    if any(rows.index(m) not in newest for m in free):
        size = session.meter.message
        taken = sum(size(m) for m in rows if m.seq in held)
        assert sum(map(size, free)) <= budget.kept(taken)
        left = [m for m in rows if m.seq not in gone]
        front = front_of(session, left, reversed([m for m in rows if m.seq in gone]))
        if front is not None and left[0].seq in held:
            assert sum(map(size, free)) <= budget.kept(taken + size(front))
        elif front is not None and any(map(opens_turn, left)):
            assert sum(map(size, [front, *free])) <= budget.kept(taken)
    asyncio.run(resize(session, session.settings, budget=budget))
    assert {m.seq for m in session.full()} == {m.seq for m in rows}
    session.quiet_length = None
    assert asyncio.run(planned(session, session.settings, budget=budget)) is None


@pytest.mark.parametrize("held", [None, 3])
def test_no_answer_stays_whose_prompt_would_be_sent_again(held: int | None) -> None:
    """U3.2, U8.3: the view would put it in front, and it is what has to go."""
    session = Session()
    session.add_message("user", "word " * 500).add_message("assistant", "yes")
    session.add_message("user", "go on")
    budget = Budget(300, 0, hold_from=held)
    assert to_evict(session, session.settings, budget) == [1, 2]
    session.edit_message(1, "a short one")
    session.add_message("assistant", "word " * 250)
    assert to_evict(session, session.settings, Budget(900, 0, hold_from=held)) == []


def test_a_resize_separates_no_group() -> None:
    """U2.2, A4.10."""
    session = Session()
    for message in (user(), uses("a", "b"), result("a"), result("b"), says()):
        session.append_message(message)
    session.set_limit(messages=3)
    assert [m.role for m in session.resize("lite")] == ["assistant"]


def test_limits_have_precedence_over_resize_settings() -> None:
    """A2.9: in whatever order they were set."""
    for limit_first in (True, False):
        session = Session()
        acts = [
            lambda s: s.set_limit(messages=3),
            lambda s: s.set_settings("session.resize.max_keep_messages_count", 9),
        ]
        for act in acts if limit_first else reversed(acts):
            act(session)
        assert session.settings.limit("messages") == 3


@pytest.mark.parametrize(("value", "limit"), [("500", 500), (7.9, 7), ("x", 900), (True, 900)])
def test_an_entry_of_the_limit_is_read_like_every_number(value: Any, limit: int) -> None:
    """A2.12: what cannot be read is as if it were not there, and does not switch a limit off."""
    session = Session().set_settings("session.limit", {"chars": value})
    session.set_settings("session.resize.max_messages_text_length", 900)
    assert session.settings.limit("chars") == limit


@pytest.mark.parametrize("wrong", ["x", True, [1], float("nan"), float("inf"), object()])
def test_an_unreadable_setting_is_its_default(wrong: Any) -> None:
    """A2.12."""
    session = Session()
    session.set_settings("session.resize.every_n_turns", wrong)
    assert session.settings.integer("session.resize.every_n_turns") == 8


def test_limits_merge_with_those_of_the_parent() -> None:
    """A2.7, A2.12: one entry shadows only itself, and None is off."""
    session = Session({"session.limit": {"chars": 100, "messages": 7}})
    session.set_limit(messages=5)
    assert session.settings.limit("chars") == 100
    assert session.settings.limit("messages") == 5
    session.configure(limit={"chars": None})
    assert session.settings.limit("chars") is None


def test_settings_inherit_and_shadow() -> None:
    """A2.12."""
    parent = {"session.mode": "memo", "session": {"resize": {"every_n_turns": 3}}}
    session = Session(parent)
    assert session.settings["session.mode"] == "memo"
    assert session.settings["session.resize.every_n_turns"] == 3
    session.configure(mode="lite")
    assert session.settings["session.mode"] == "lite"
    assert not session.settings.memo_is_enabled()


def test_a_mode_frees_the_memo_setting() -> None:
    """A2.13, A2.10: a later change of the mode still takes effect."""
    session = Session()
    session.set_settings("session.memo.enabled", False).use_memo()
    assert session.settings.memo_is_enabled()
    session.set_settings("session.mode", "lite")
    assert not session.settings.memo_is_enabled()
    session.set_settings("session.memo.enabled", True)
    assert session.settings.memo_is_enabled()


@pytest.mark.parametrize(
    ("content", "length"),
    [
        ("abc", 3),
        (["ab", {"text": "cde"}, {"b": "é"}], 2 + 3 + len('{"b": "é"}')),
        ({"type": "x"}, len(str({"type": "x"}))),
    ],
)
def test_the_length_of_a_message(content: Any, length: int) -> None:
    """A3.7."""
    session = Session()
    session.append_message({"role": "user", "content": content})
    assert session.text_length() == len("user") + 1 + length
