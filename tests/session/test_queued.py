"""Texts that wait: kept in the session, made messages in one write, and nothing else touched."""

from typing import Any

import pytest

from tests.fakes import FixedClock
from tests.session.histories import result, says, user, uses
from tiro import InvalidInputError, Session
from tiro.session.changes import Add, Change, Set
from tiro.session.core import Core
from tiro.session.messages import Message
from tiro.session.queued import add_queued, queue, queued


def test_texts_wait_in_order_beside_what_else_the_metadata_holds() -> None:
    core = Core(FixedClock())
    core.change(metadata={"a": 1, "tiro": {"other": True}})
    queue(core, "one")
    queue(core, "two")
    assert queued(core) == ["one", "two"]
    assert core.metadata == {"a": 1, "tiro": {"other": True, "queued": ["one", "two"]}}
    assert [m.content for m in add_queued(core)] == ["one", "two"]
    assert core.metadata == {"a": 1, "tiro": {"other": True}}
    assert add_queued(core) == []


def test_a_queue_that_has_gone_leaves_no_trace() -> None:
    core = Core()
    queue(core, "x")
    add_queued(core)
    assert core.metadata == {}


def test_messages_are_added_and_taken_from_the_queue_in_one_commit() -> None:
    """A kill between two writes would lose a text or say it twice."""
    core = Core()
    core.append(Message("user", "first"))
    queue(core, "a")
    queue(core, "b")
    commits: list[tuple[Change, ...]] = []
    core.observe(lambda _, changes: commits.append(changes))
    added = add_queued(core)
    assert [[type(change) for change in commit] for commit in commits] == [[Add, Add, Set]]
    assert [(m.seq, m.role) for m in added] == [(2, "user"), (3, "user")]
    assert [m.content for m in core.oldest_first()] == ["first", "a", "b"]
    assert core.next_seq == 4
    assert all(m.timestamp for m in added)


def test_max_history_holds_for_queued_messages_too() -> None:
    """M3.4."""
    core = Core()
    core.change(max_history=2)
    core.append(Message("user", "old"))
    for text in ("a", "b"):
        queue(core, text)
    add_queued(core)
    assert [m.content for m in core.oldest_first()] == ["a", "b"]
    assert [m.content for m in core.pending()] == ["old"]


@pytest.mark.parametrize(("limit", "left"), [(2, [2, 3, 4]), (3, [2, 3, 4]), (4, [1, 2, 3, 4])])
def test_no_text_pushes_results_out_that_no_model_has_read(limit: int, left: list[int]) -> None:
    """U2.4."""
    core = Core()
    core.change(max_history=limit)
    for message in (user(), uses("a"), result("a")):
        core.append(message)
    queue(core, "x")
    add_queued(core)
    assert [m.seq for m in core.oldest_first()] == left
    core.append(says())
    assert len(core.oldest_first()) <= limit


def test_a_queue_that_somebody_wrote_by_hand_does_no_harm() -> None:
    odds: list[Any] = ["x", [], {"queued": "x"}, {"queued": [1, None]}, None]
    for odd in odds:
        core = Core()
        core.change(metadata={"tiro": odd})
        assert queued(core) == []
        assert add_queued(core) == []
        queue(core, "x")
        assert [m.content for m in add_queued(core)] == ["x"]


def test_what_waits_is_bounded() -> None:
    """Each text writes all that wait again: 400 of 2 kB made a journal of 160 MB."""
    session = Session()
    queue(session, "x" * 500_000)
    with pytest.raises(InvalidInputError, match="wait"):
        queue(session, "y")
    add_queued(session)
    for n in range(50):
        queue(session, str(n))
    with pytest.raises(InvalidInputError, match="wait"):
        queue(session, "y")
