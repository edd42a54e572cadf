"""The library's face: what a Python programmer sees of one conversation."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from tiro import Session

DIALOGUE = [("user", "one"), ("assistant", "two"), ("user", "three")]


def talk(**options: Any) -> Session:
    session = Session(**options)
    for role, content in DIALOGUE:
        session.add_message(role, content)
    return session


def test_a_message_has_seq_timestamp_role_content_and_what_it_came_with() -> None:
    """U1.1, M1.3, M2.4."""
    session = Session()
    assert session.add_message("user", "hi", name="Ann", mood="calm", metadata={"x": 1}) is session
    (message,) = session.messages
    assert (message["seq"], message["role"], message["content"]) == (1, "user", "hi")
    assert message["timestamp"]
    assert (message["name"], message["metadata"]) == ("Ann", {"x": 1})
    assert message.extra == {"mood": "calm"}


def test_lists_come_oldest_first_and_the_newest_has_a_name() -> None:
    """M1.5, M2.6, U1.5."""
    session = talk()
    texts = [message["content"] for message in session.get_messages()]
    assert texts == ["one", "two", "three"]
    assert len(session.get_messages()) == len(session.messages)
    assert session.newest_message is not None
    assert session.newest_message["content"] == "three"
    assert Session().newest_message is None


def test_the_four_fields_of_an_editor_session() -> None:
    """M1.1, M2.7."""
    session = Session(max_history=5, id="s", agent="build")
    assert (session.messages, session.max_history, session.id) == ([], 5, "s")
    assert session.get_agent() == "build"
    assert session.set_agent("plan").get_agent() == "plan"
    assert session.set_agent(None).agent is None


MEMORIES: dict[str, tuple[Callable[[Session], Any], Callable[[Session], Any]]] = {
    "memo": (lambda s: s.change(memo={"k": 1}), lambda s: s.memo),
    "summary": (lambda s: s.update_summary("text"), lambda s: s.summary),
    "state": (lambda s: s.set("k", "v"), lambda s: s.state),
    "window": (lambda s: s.add_message("user", "x"), lambda s: s.get_messages()),
}


@pytest.mark.parametrize("name", MEMORIES)
def test_setting_one_memory_never_changes_another(name: str) -> None:
    """U1.7."""
    session = talk()
    before = {other: repr(read(session)) for other, (_, read) in MEMORIES.items()}
    MEMORIES[name][0](session)
    after = {other: repr(read(session)) for other, (_, read) in MEMORIES.items()}
    assert {other for other in MEMORIES if before[other] != after[other]} == {name}


@pytest.mark.parametrize("max_history", [None, 10**9])
def test_no_limit_that_nobody_asked_for(max_history: int | None) -> None:
    """M3.2, U1.8."""
    session = Session(max_history=max_history)
    for n in range(2_500):
        session.add_message("user", str(n))
    assert len(session.messages) == 2_500
    assert session.archive == []


def test_adding_and_dropping_cost_the_same_in_a_long_history() -> None:
    """U1.3: the window is pruned at each add; operations are counted, so no clock decides."""

    def steps_of_an_add(length: int) -> int:
        session = Session(max_history=length)
        for n in range(length):
            session.add_message("user", str(n))
        steps = 0

        def count(frame: Any, event: str, argument: Any) -> None:
            nonlocal steps
            steps += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            session.add_message("user", "one more")
        finally:
            sys.setprofile(None)
        assert len(session.archive) == 1
        return steps

    assert steps_of_an_add(2_000) <= steps_of_an_add(20) + 5


def test_repr_says_which_session_it_is_and_nothing_that_was_said() -> None:
    session = Session(id="s1", agent="plan").add_message("user", "a secret")
    assert repr(session) == "<Session 's1', messages: 1, agent: 'plan'>"
