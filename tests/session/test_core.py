"""Core: commit is the one place where anything changes, and replaying changes gives the same."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.session.histories import TEXTS, says, user, uses
from tiro import InvalidInputError, Message, ResizeError, Session
from tiro.session import resize
from tiro.session.changes import Change, Cover, Evict, decode_change, encode_change
from tiro.session.core import Core
from tiro.session.cut import legal_cut
from tiro.session.json_text import encode
from tiro.session.snapshot import read_snapshot
from tiro.session.summary import store


def restored(data: bytes) -> Core:
    """A session as it comes back from a file."""
    core = Core()
    core.restore(read_snapshot(data))
    return core


def _noting(full: list[Message], now: list[Message], memo: object, settings: object) -> object:
    """A resize handler that writes messages: one into the window only, one into both."""
    both = {"role": "user", "content": "both", "x-y": 1}
    return [*full, both], [{"role": "user", "content": "note"}, *now[1:], both], memo


class Histories(RuleBasedStateMachine):
    """Random acts on a session, its changes recorded as a journal would."""

    def __init__(self) -> None:
        super().__init__()
        self.session = Session(max_history=5)
        self.start = encode(self.session.snapshot())
        self.lines: list[bytes] = []
        self.added: dict[int, str] = {}
        self.covered: set[int] = set()
        self.session.observe(self._record)
        self.session.set_memo_update_handler(lambda memo, *_: {"n": memo.get("n", 0) + 1})
        self.session.set_resize_handlers("noting", _noting)
        self.session.set_resize_handlers("dropping", lambda full, now, *_: (full, now[-1:], {}))

    def _record(self, first: int, changes: tuple[Change, ...]) -> None:
        for n, change in enumerate(changes, first):
            self.lines.append(encode_change(n, change))
            if isinstance(change, Cover):
                self.covered.update(change.seqs)

    @rule(text=TEXTS, extra=st.booleans())
    def add(self, text: str, extra: bool) -> None:
        fields = {"x-y": {"class": 1}} if extra else {}
        self.session.add_message("user", text, **fields)
        self._note()

    @rule(count=st.integers(0, 3), text=TEXTS)
    def use_tools(self, count: int, text: str) -> None:
        ids = [f"{self.session.next_seq}-{n}" for n in range(count)]
        self.session.append_message(uses(*ids, text=text) if ids else says(text))
        self._note()
        for tool_use_id in ids:
            self.session.add_tool_result(tool_use_id, text)
            self._note()

    @rule(back=st.integers(0, 3))
    def rewind(self, back: int) -> None:
        rows = self.session.messages
        self.session.rewind(rows[-1 - back].seq or 0 if back < len(rows) else 0)

    @rule(text=TEXTS)
    def edit(self, text: str) -> None:
        plain = [m for m in self.session.messages if isinstance(m.content, str)]
        if plain:
            self.session.edit_message(plain[-1].seq or 0, text)

    @rule(key=st.sampled_from("ab"), value=st.none() | st.integers() | TEXTS)
    def set_state(self, key: str, value: object) -> None:
        self.session.set(key, value)

    @rule(key=st.sampled_from("ab"))
    def delete_state(self, key: str) -> None:
        self.session.delete(key)

    @rule(agent=st.sampled_from(["build", "plan", None]), limit=st.sampled_from([1, 3, 5, None]))
    def set_fields(self, agent: str | None, limit: int | None) -> None:
        self.session.change(agent=agent, max_history=limit)
        self.session.prune()

    @rule(
        force=st.sampled_from(["lite", "deep", "noting", "dropping"]),
        limit=st.sampled_from([1, 2, None]),
        mode=st.sampled_from(["lite", "memo"]),
    )
    def resize(self, force: str, limit: int | None, mode: str) -> None:
        self.session.configure(mode, {"messages": limit})
        self.session.resize(force)

    @rule(limit=st.integers(1, 4), min_keep=st.integers(0, 3))
    def trim(self, limit: int, min_keep: int) -> None:
        if min_keep < limit:
            self.session.trim_if_needed(limit, min_keep)

    @rule(is_late=st.booleans())
    def summarise(self, is_late: bool) -> None:
        """A summary of what waits is stored, or comes too late and is dropped (N4.8)."""
        waiting, before = self.session.pending(), self.session.n
        clears = self.session.clears - is_late
        store(self.session, f"summary {self.session.n}", waiting, self.session.summary, clears)
        assert not is_late or self.session.n == before

    @rule()
    def undo_resize(self) -> None:
        if self.session.undo is None:
            with pytest.raises(ResizeError):
                resize.undo(self.session)
        else:
            resize.undo(self.session)

    @rule(seq=st.integers(0, 30), pinned=st.booleans())
    def pin(self, seq: int, pinned: bool) -> None:
        if any(m.seq == seq for m in self.session.messages):
            self.session.pin(seq, pinned)
            self._the_limit_holds()

    @rule()
    def clear(self) -> None:
        self.session.clear()
        self.added.clear()

    @rule()
    def save(self) -> None:
        self._replay_gives_the_same_session()
        self.start = encode(self.session.snapshot())
        self.lines.clear()

    def teardown(self) -> None:
        self._replay_gives_the_same_session()

    def _replay_gives_the_same_session(self) -> None:
        """U9.2: snapshot and journal together are the session."""
        core = restored(self.start)
        for line in self.lines:
            n, change = decode_change(line)
            assert n == core.n + 1
            core.commit(change)
        assert encode(core.snapshot()) == encode(self.session.snapshot())

    @invariant()
    def nothing_is_lost(self) -> None:
        """U1.4, U4.1: what was added is in the window or raw in the archive."""
        rows = [*self.session.messages, *self.session.archive]
        assert self.added.keys() <= {m.seq for m in rows}

    @invariant()
    def what_left_the_window_waits_or_is_covered(self) -> None:
        """U4.3: only a memo that has read a message, or undoing its eviction, ends its wait."""
        rows = [
            m for m in self.session.archive if not m.marks().keys() & {"taken_back", "window_only"}
        ]
        waiting = {m.seq for m in rows if m.marks().get("pending")}
        assert {m.seq for m in rows} - waiting <= self.covered

    @invariant()
    def no_seq_is_given_twice(self) -> None:
        """U1.2."""
        rows = [*self.session.messages, *self.session.archive]
        live = [m.seq for m in rows if not m.marks().get("taken_back")]
        assert len(live) == len(set(live))
        assert all(seq < self.session.next_seq for seq in live if seq)

    def _note(self) -> None:
        newest = self.session.newest_message
        assert newest is not None
        self.added[newest.seq or 0] = newest.role
        self._the_limit_holds()

    def _the_limit_holds(self) -> None:
        """M3.4, U2.4, U2.8: after an add never over it, but for pins and the newest group."""
        limit = self.session.max_history
        if limit is not None and not self.session.pins:
            rows = self.session.messages
            over = len(rows) - limit
            assert over <= 0 or legal_cut(rows, over) == 0


TestHistories = Histories.TestCase


def test_max_history_keeps_exactly_the_newest() -> None:
    """U2.5, M3.1: exactly the newest messages, minus a broken head."""
    session = Session(max_history=3)
    for number in range(6):
        session.add_message("user", str(number))
    assert [m.content for m in session.messages] == ["3", "4", "5"]
    assert [m.content for m in session.archive] == ["0", "1", "2"]
    assert all(m.marks() == {"pending": True} for m in session.archive)


def test_max_history_drops_a_broken_head() -> None:
    """U2.3, M3.3: the whole broken pair goes."""
    session = Session(max_history=3)
    session.append_message(user()).append_message(uses("a"))
    session.add_tool_result("a", "1").add_message("assistant", "ok").add_message("user", "next")
    assert [m.role for m in session.messages] == ["assistant", "user"]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_max_history_below_one_is_refused(limit: int) -> None:
    """U1.8."""
    with pytest.raises(ValueError, match="max_history"):
        Session(max_history=limit)


def test_reads_are_copies() -> None:
    """U1.5."""
    session = Session()
    session.add_message("user", [{"type": "text", "text": "a"}])
    session.messages[0]["content"][0]["text"] = "changed"
    session.get_messages()[0]["content"].clear()
    assert session.messages[0].content == [{"type": "text", "text": "a"}]
    session.add_message("user", "b")
    session.messages[1].extra["name"] = "changed"
    assert session.messages[1].extra == {}


def test_an_edit_keeps_its_seq_and_the_earlier_wording() -> None:
    """U1.2, U1.4."""
    session = Session()
    session.add_message("user", "teh").edit_message(1, "the")
    assert [(m.seq, m.content) for m in session.messages] == [(1, "the")]
    (earlier,) = session.archive
    assert (earlier.seq, earlier.content) == (1, "teh")
    assert earlier.marks() == {"taken_back": True}
    assert [m.content for m in session.full_chat_history] == ["the"]


def test_seqs_go_on_after_everything() -> None:
    """U1.2, U1.12: not after clear, rewind, reload."""
    session = Session()
    session.add_message("user", "1").add_message("user", "2").rewind(0)
    session.clear()
    core = restored(encode(session.snapshot()))
    stored, _ = core.append(Message("user", "3"))
    assert stored.seq == 3


def test_updated_at_moves_strictly_forward_even_when_the_clock_does_not() -> None:
    """G1.3: also within one tick, and after the clock was set back."""
    now = datetime(2026, 11, 28, 12, tzinfo=UTC)
    times = [now, now, now, now - timedelta(hours=1)]
    session = Session(clock=lambda: times.pop(0) if len(times) > 1 else times[0])
    seen = [session.updated_at]
    for number in range(4):
        session.set("k", number)
        seen.append(session.updated_at)
    assert seen == sorted(set(seen))


def test_ten_threads_lose_nothing() -> None:
    """G4.12: 10 threads of 100 adds give exactly 1,000 messages with seqs of their own."""
    session = Session()

    def add() -> None:
        for _ in range(100):
            session.add_message("user", "x")

    threads = [threading.Thread(target=add) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [m.seq for m in session.messages] == list(range(1, 1001))


def test_a_change_to_what_is_gone_is_left_out() -> None:
    """U9.7: ops on messages that are gone are dropped and counted."""
    session = Session()
    session.add_message("user", "x")
    assert session.commit(Evict([9], session.stamp()), Evict([1], session.stamp())) == 1


def test_rewinding_to_a_message_that_is_not_there_is_refused() -> None:
    """Protocol section 3: not in the window."""
    session = Session()
    session.add_message("user", "x")
    with pytest.raises(InvalidInputError):
        session.rewind(7)
    assert session.rewind(0) == 1


@given(st.lists(st.sampled_from(["add", "pin"]), max_size=12))
def test_pinned_messages_stay_and_do_not_count(acts: list[str]) -> None:
    """U2.8."""
    session = Session(max_history=2)
    session.add_message("user", "pinned").pin(1)
    for act in acts:
        if act == "add":
            session.add_message("user", "more")
        elif session.newest_message:
            session.pin(session.newest_message.seq or 0)
    assert session.messages[0].content == "pinned"
    assert len([m for m in session.messages if m.seq not in session.pins]) <= 2
