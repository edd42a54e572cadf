"""What happens in each turn reads the window, however long the archive is: counted, not timed."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, SupportsIndex

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.session.histories import result, says, user, uses
from tiro import Message, Session
from tiro.agents.prompt import request_size
from tiro.assistant.window import page, piece
from tiro.session.answers import SPARE, Answers
from tiro.session.archive import Archive
from tiro.session.changes import Cover, TakeBack
from tiro.session.json_text import encode
from tiro.session.provider_view import provider_view
from tiro.session.resize import undo
from tiro.session.snapshot import read_snapshot
from tiro.session.transcript import first_line

MOST = 30
"""More than any of these may read of an archive of hundreds."""


class Counted(list[Message]):
    """A list that counts which of its messages are read."""

    touched = 0

    def __iter__(self) -> Iterator[Message]:
        for row in super().__iter__():
            self.touched += 1
            yield row

    def __reversed__(self) -> Iterator[Message]:
        for row in super().__reversed__():
            self.touched += 1
            yield row

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        self.touched += len(found) if isinstance(index, slice) else 1
        return found

    def index(self, *_: Any) -> int:
        raise NotImplementedError("it reads all")

    def pop(self, index: SupportsIndex = -1) -> Message:
        raise NotImplementedError("an archive loses nothing")


def talked(turns: int) -> tuple[Session, Counted]:
    """A session whose window of 10 begins with an answer, and its archive of all before."""
    session = Session(max_history=10)
    for n in range(turns):
        for message in (user(f"do {n}"), uses(f"c{n}"), result(f"c{n}"), says(f"done {n}")):
            session.append_message(message)
    session.commit(Cover([m.seq or 0 for m in session.pending()], session.stamp()))
    session.append_message(user("and"))
    assert session.oldest_first()[0].role == "assistant"
    rows = Counted(session.archive_rows)
    session.evicted.rows = rows
    rows.touched = 0
    return session, rows


EACH_TURN: dict[str, Callable[[Session], object]] = {
    "add": lambda session: session.append_message(says("sure")),
    "request": lambda session: provider_view(session.oldest_first(), session.archive_rows),
    "contextSize": lambda session: request_size(session, "prompt", context_window=8_000),
    "contextSize of too much": lambda session: request_size(session, "p " * 900, context_window=9),
    "page": lambda session: page(session, 10, None, everything=False),
    "content": lambda session: piece(session, session.next_seq - 1, None, 0, None),
    "what waits for a summary": lambda session: session.pending(),
    "what left": lambda session: session.archived,
    "first line": lambda session: first_line(session.each()),
    "resize": lambda session: session.judge_resize(),
}


@pytest.mark.parametrize("what", EACH_TURN)
def test_what_each_turn_does_reads_no_long_archive(what: str) -> None:
    """P10: flat from 100 to 100,000 messages."""
    session, rows = talked(100)
    EACH_TURN[what](session)
    assert rows.touched <= MOST


class Window(deque[Message]):
    """A window that counts which of its messages are read."""

    touched = 0

    def __getitem__(self, index: Any) -> Any:
        self.touched += 1
        return super().__getitem__(index)

    def __iter__(self) -> Iterator[Message]:
        for row in super().__iter__():
            self.touched += 1
            yield row

    def __reversed__(self) -> Iterator[Message]:
        for row in super().__reversed__():
            self.touched += 1
            yield row


def test_an_add_to_a_full_window_does_not_read_it() -> None:
    """P10: with tool uses at both of its ends, and the answers of the oldest one behind the cut."""
    session = Session(max_history=400)
    for n in range(200):
        for message in (user(f"do {n}"), uses(f"c{n}"), result(f"c{n}"), says(f"done {n}")):
            session.append_message(message)
    window = Window(session.newest_first)
    session.newest_first, before = window, len(session.archive_rows)
    for n in range(200, 300):
        for message in (user(f"do {n}"), uses(f"c{n}"), result(f"c{n}"), says(f"done {n}")):
            window.touched = 0
            session.append_message(message)
            assert window.touched <= MOST
    assert session.newest_first is window
    assert len(session.archive_rows) == before + 400


def test_a_stored_summary_reads_back_to_what_it_covers() -> None:
    session, rows = talked(100)
    for n in range(6):
        session.append_message(says(f"more {n}"))
    waiting = session.pending()
    assert waiting
    rows.touched = 0
    session.commit(Cover([m.seq or 0 for m in waiting], session.stamp()))
    assert session.pending() == []
    assert rows.touched <= MOST


def test_its_counts_are_those_of_its_rows() -> None:
    """U4.3: also where what waits lies far back, and where a wording was taken back."""
    session = Session(max_history=4)
    for n in range(9):
        session.append_message(user(f"{n}"))
    session.commit(Cover([2, 3, 77], session.stamp()))
    assert [m.seq for m in session.pending()] == [1, 4, 5]
    session.edit_message(8, "other words")
    session.commit(TakeBack([9], session.stamp()))
    assert session.archived == 5
    fork = session.fork()
    fork.append_message(user("only there"))
    fork.append_message(user("and this"))
    assert (fork.archived, session.archived) == (6, 5)
    assert list(session.each()) == session.full()
    again = Archive(session.archive_rows)
    assert again.pending() == session.pending()
    assert again.count == session.archived


def full(session: Session) -> list[int | None]:
    """The seqs in the window."""
    return [m.seq for m in session.oldest_first()]


Act = Message | int | str


def do(session: Session, act: Act) -> None:
    """Add a message, rewind to a seq, resize, or undo that."""
    if isinstance(act, Message):
        session.append_message(act)
    elif isinstance(act, int):
        if act in full(session):
            session.rewind(act)
    elif act == "resize":
        session.resize("lite")
    elif session.undo is not None:
        undo(session)


def both_ways(acts: list[Act], limit: int) -> None:
    """The window is always the one of a session that remembers nothing."""
    quick, slow = (Session(max_history=limit).set_limit(messages=2) for _ in range(2))
    for act in acts:
        for session in (quick, slow):
            do(session, act)
        slow.restore(read_snapshot(encode(slow.snapshot())))
        assert full(quick) == full(slow)


ACTS = st.lists(
    st.one_of(
        st.builds(user),
        st.builds(says),
        st.builds(lambda ids: uses(*ids), st.lists(st.sampled_from("abc"), max_size=2)),
        st.sampled_from("abc").map(result),
        st.integers(1, 20),
        st.sampled_from(["resize", "undo"]),
    ),
    max_size=25,
)


@given(ACTS, st.integers(1, 6))
def test_a_cut_is_the_same_whatever_is_remembered(acts: list[Act], limit: int) -> None:
    """U2.3, U2.4: ids that come again, answers given twice, answers taken back."""
    both_ways(acts, limit)


def test_answers_that_left_are_let_go() -> None:
    answers = Answers()
    window = [msgspec.structs.replace(result("first"), seq=1)]
    assert answers.last(window, ["first"]) == 1
    for seq in range(2, 2 * SPARE):
        answers.see(msgspec.structs.replace(result(f"c{seq}"), seq=seq))
    assert answers.last([], ["first"]) == 0


def test_a_window_in_another_order_is_searched() -> None:
    rows = [msgspec.structs.replace(user(), seq=seq) for seq in (2, 1)]
    assert Answers().last(rows, ["a"]) is None
