"""Judging: when a session is to be resized (A3)."""

import asyncio
import re
from typing import Any

import pytest

from tests.session.histories import talk
from tiro.session.settings import SessionSettings


def decision(kind: str, reason: str, severity: int) -> dict[str, Any]:
    return {"type": kind, "reason": reason, "severity": severity}


@pytest.mark.parametrize(
    ("force", "expected"),
    [
        (True, {"type": "deep", "reason": "force", "severity": 1000}),
        ("lite", {"type": "lite", "reason": "force", "severity": 1000}),
        ("archive", {"type": "archive", "reason": "force", "severity": 1000}),
        (False, None),
        ("", None),
        (None, None),
    ],
)
def test_force_decides(force: Any, expected: dict[str, Any] | None) -> None:
    """A3.1, A3.3: also over a policy."""
    session = talk(1).set_policy_handler(lambda *_: None)
    assert session.judge_resize(force) == expected
    assert asyncio.run(session.async_judge_resize(force)) == expected


def test_the_first_limit_that_is_passed_decides() -> None:
    """A3.6: characters, count, turns, in this order."""
    session = talk(8)
    assert session.judge_resize() == decision("lite", "every_n_turns", 10)
    session.set_limit(messages=15)
    assert session.judge_resize() == decision("lite", "max_keep_messages_count", 50)
    session.set_limit(messages=16)
    assert session.judge_resize() == decision("lite", "every_n_turns", 10)
    session.set_limit(chars=session.text_length())
    assert session.judge_resize() == decision("deep", "max_messages_text_length", 100)
    session.set_limit(chars=session.text_length() + 1)
    assert session.judge_resize() == decision("lite", "every_n_turns", 10)
    assert talk(7).judge_resize() is None


@pytest.mark.parametrize("off", [0, -1, None])
def test_zero_switches_a_trigger_off(off: int | None) -> None:
    """A3.8, A4.12."""
    session = talk(20, 1000)
    session.set_settings("session.limit", {"chars": off, "messages": off})
    session.set_settings("session.resize.max_messages_text_length", off)
    session.set_settings("session.resize.max_keep_messages_count", off)
    session.set_settings("session.resize.every_n_turns", off)
    assert session.judge_resize() is None
    session.resize(True)
    assert len(session.messages) == 40


@pytest.mark.parametrize("answer", [7, {"reason": "no type"}, ["deep"], True])
def test_a_bad_policy_answer_is_a_type_error(answer: Any) -> None:
    """A3.5, A10.1: naming the value, and nothing has changed."""
    session = talk(1)
    session.set_policy_handler(lambda full, current, settings: answer)
    before = session.snapshot()
    for act in (session.judge_resize, session.resize):
        with pytest.raises(TypeError, match=re.escape(repr(answer))):
            act()
    assert session.snapshot() == before


async def _lite(full: Any, current: Any, settings: SessionSettings) -> str:
    return "lite"


@pytest.mark.parametrize("policy", [_lite, lambda full, current, settings: {"type": "lite"}])
def test_a_policy_may_be_sync_or_async(policy: Any) -> None:
    """A3.4, A7.1, A7.2: also called inside a running loop."""
    session = talk(1)
    session.set_policy_handler(policy)
    assert session.judge_resize() == {"type": "lite"}

    async def inside() -> tuple[Any, Any]:
        return session.judge_resize(), session.resize(True)

    assert asyncio.run(inside()) == ({"type": "lite"}, session.messages)


def test_a_policy_sees_both_histories_and_the_settings() -> None:
    """A3.4, A1.10: as copies."""
    session = talk(3)
    session.set_limit(messages=2).resize("lite")

    def policy(full: Any, current: Any, settings: SessionSettings) -> Any:
        seen = (len(full), len(current), settings["session.limit"])
        full.clear()
        current.clear()
        return {"type": "x", "meta": seen}

    assert session.set_policy_handler(policy).judge_resize() == {
        "type": "x",
        "meta": (6, 2, {"messages": 2}),
    }
    assert (len(session.full_chat_history), len(session.messages)) == (6, 2)


def test_a_dict_of_a_policy_is_taken_unchanged() -> None:
    """A3.2, A3.5: whatever else is in it, of whatever type."""
    given = {"type": "x", "severity": "high", "reason": ["a"], "why": None}
    assert talk(1).set_policy_handler(lambda *_: dict(given)).judge_resize() == given
