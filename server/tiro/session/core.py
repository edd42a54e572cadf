"""`Core`: the state of one session, and `commit`, the one place where it changes.

The window is a deque with the newest message first, so adding a message and dropping the oldest
are both O(1); everybody outside asks for `oldest_first()`. What leaves the window goes to the
archive; only `Clear` removes anything for good. Whoever wants to know of changes (the journal)
observes them: observers are called under the session's lock, in the order of the changes.
"""

import bisect
import copy
import heapq
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, timedelta
from itertools import islice
from typing import Any, Self, assert_never, overload

import msgspec

from tiro.session.answers import Answers
from tiro.session.archive import Archive
from tiro.session.changes import (
    Add,
    Change,
    Clear,
    Cover,
    DeleteState,
    Edit,
    Evict,
    Readmit,
    Replace,
    Set,
    SetState,
    TakeBack,
)
from tiro.session.cut import group_of, legal_cut, unread_group
from tiro.session.handlers import Handlers
from tiro.session.large import OUTPUT, PARTS
from tiro.session.messages import ENTRY, Message, Usage, flat, seq_of
from tiro.session.meter import Meter
from tiro.session.settings import SessionSettings, is_plain
from tiro.session.snapshot import FIELDS, SCHEMA_VERSION, StoredSession
from tiro.session.times import Clock, exact_rfc3339, from_rfc3339, rfc3339, utc_now

Observer = Callable[[int, tuple[Change, ...]], None]


class OldestFirst(Sequence[Message]):
    """A view of a newest-first deque from its other end; both ends are O(1)."""

    def __init__(self, newest_first: deque[Message]) -> None:
        self._deque = newest_first

    def __len__(self) -> int:
        return len(self._deque)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return list(reversed(self._deque))[index]
        return self._deque[-1 - index]


class Core:
    """The state of one session. Fields have the names of the session file (U7.1).

    Fields are read directly and changed by `commit` only. `n` is the number of the last change.
    """

    id: str | None
    title: str | None
    agent: str | None
    model: str | None
    max_history: int | None
    next_seq: int
    turns: int
    last_resize_turn: int
    memo_cursor: int
    memo: Any
    summary: str
    state: dict[str, Any]
    metadata: dict[str, Any]
    pins: list[int]
    rules: list[Any]
    usage: Usage
    ttl_seconds: float | None
    undo: dict[str, Any] | None

    def __init__(
        self,
        clock: Clock = utc_now,
        parent_settings: SessionSettings | Mapping[str, Any] | None = None,
    ) -> None:
        self.clock = clock
        self.parent_settings = parent_settings
        self.handlers = Handlers()
        self.summary_in_progress = False
        self.summary_job = 0
        """The number of the newest background summary; only that one may say that it is over."""
        self.lock = threading.RLock()
        self.newest_first: deque[Message] = deque()
        self.evicted = Archive()
        self._answers = Answers()
        self.unknown: dict[str, Any] = {}
        self.own_settings: dict[str, Any] = {}
        self.live_settings: dict[str, Any] = {}
        """Own settings that no file can hold, such as a model: they stay in memory."""
        self.n = 0
        self.meter = Meter()
        self.has_instructions = False
        """Whether the history ever held a system or developer message (U3.9)."""
        self.quiet_length: int | None = None
        """Text length at which a resize could do no more; triggers rest until an add (A4.13)."""
        self.memo_seq = 0
        """The next seq when the memo was last brought up to date; 0: not in this process."""
        self.memo_goal = 0
        """Below which seq the memo still has to read what a resize left unread; 0: nothing."""
        self.memo_is_slow = False
        """Whether the memo took too long for a reply to wait for it, and was not read since."""
        self.memo_refused: str | None = None
        """Why the memo was not brought up to date before the last reply that tried; it is told."""
        self.most_tokens: int | None = None
        """What a request may have at most until the turn ends in which a provider refused one."""
        self.clears = 0
        """How often the session became another one: what was begun before then is void."""
        self.created = self.updated = clock().astimezone(UTC)
        self._observers: list[Observer] = []
        self._set_defaults()

    def _set_defaults(self) -> None:
        for name, (_, default) in FIELDS.items():
            if name not in _KEPT_APART:
                setattr(self, name, default.copy() if isinstance(default, dict | list) else default)

    @property
    def archive_rows(self) -> list[Message]:
        """What left the window, by seq; not to be changed."""
        return self.evicted.rows

    @property
    def archived(self) -> int:
        """How many messages have left the window, without those that were taken back; O(1)."""
        return self.evicted.count

    def oldest_first(self) -> list[Message]:
        """The messages of the window, oldest first; O(window)."""
        return list(reversed(self.newest_first))

    def full(self) -> list[Message]:
        """The full history, oldest first, without what was taken back or is window-only."""
        rows = [*self.archive_rows, *reversed(self.newest_first)]
        kept = [m for m in rows if not m.marks().keys() & _NOT_SAID]
        return sorted(kept, key=seq_of)

    def each(self) -> Iterator[Message]:
        """The messages of `full`, read only as far as they are asked for; under the lock."""
        rows = heapq.merge(self.archive_rows, reversed(self.newest_first), key=seq_of)
        return (m for m in rows if not m.marks().keys() & _NOT_SAID)

    @property
    def settings(self) -> SessionSettings:
        """The session's settings as they are now: its own before the parent's."""
        return SessionSettings({**self.own_settings, **self.live_settings}, self.parent_settings)

    def set_setting(self, key: str, value: Any) -> None:
        """Set one of the session's own settings by its dotted key."""
        with self.lock:
            stored, live = (
                {k: v for k, v in own.items() if k != key}
                for own in (self.own_settings, self.live_settings)
            )
            (stored if is_plain(value) else live)[key] = value
            self.live_settings = live
            self.change(settings=stored)

    def change(self, **fields: Any) -> None:
        """Commit new values for fields of the session file."""
        with self.lock:
            self.commit(Set(fields, self.stamp()))

    def pending(self) -> list[Message]:
        """Evicted messages that no stored summary or memo covers yet, oldest first (U4.3).

        Reads back to the oldest of them: O(1) where there is none, however long the history is.
        """
        return self.evicted.pending()

    def stamp(self) -> str:
        """The time of the next change: the clock's, or just after the last change (G1.3).

        It has microseconds, to be the same when read again; a message's own time has none.
        """
        now = self.clock().astimezone(UTC)
        if now <= self.updated:
            now = self.updated + timedelta(microseconds=1)
        self.updated = now
        return exact_rfc3339(now)

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Call `observer(first_n, changes)` after each commit; the result ends that."""
        self._observers.append(observer)
        return lambda: self._observers.remove(observer)

    def commit(self, *changes: Change) -> int:
        """Apply changes in order and tell the observers; the one place where a session changes.

        Returns how many were applied: a change to a message that is not there is left out (only
        a journal replayed on a file that somebody edited has such). O(1) for an add or an
        eviction of the oldest messages.
        """
        with self.lock:
            done = tuple(change for change in changes if self._apply(change))
            self._tell(done)
            return len(done)

    def append(self, message: Message) -> tuple[Message, int]:
        """Add a message as the newest one and evict what passes max_history (M3.1).

        Returns the message as stored and the number of messages evicted. O(1) plus what it evicts.
        """
        with self.lock:
            at = self.stamp()
            stored = msgspec.structs.replace(
                message, seq=self.next_seq, timestamp=message.timestamp or rfc3339(self.updated)
            )
            changes: list[Change] = [Add(stored, at)]
            self._apply(changes[0])
            if seqs := self.over_limit():
                changes.append(Evict(seqs, at))
                self._apply(changes[1])
            self._tell(tuple(changes))
            return stored, len(seqs)

    def fork(self) -> Self:
        """A copy to try changes on: nobody observes it, and none of them reaches this one.

        It shares the values that are never changed in place, so it costs no more than its lists.
        """
        with self.lock:
            forked = copy.copy(self)
            for name, value in vars(self).items():
                if isinstance(value, list | dict | deque):
                    setattr(forked, name, value.copy())
        forked.lock, forked._observers = threading.RLock(), []
        forked.meter, forked.evicted = self.meter.fork(), self.evicted.fork()
        forked._answers = Answers()
        return forked

    def prune(self) -> int:
        """Evict what passes max_history now; how many that were."""
        with self.lock:
            seqs = self.over_limit()
            return len(seqs) if seqs and self.commit(Evict(seqs, self.stamp())) else 0

    def over_limit(self) -> list[int]:
        """The seqs that have to leave the window for max_history, oldest first (U2.3 to U2.5)."""
        if self.max_history is None or len(self.newest_first) <= self.max_history:
            return []
        free: Sequence[Message] = OldestFirst(self.newest_first)
        pinned = self.held()
        unread = {seq_of(free[index]) for index in unread_group(free)} - pinned
        if held := pinned | unread:
            free = [m for m in self.oldest_first() if m.seq not in held]
        end = len(free) - max(0, self.max_history - len(unread))
        start = legal_cut(free, end, last_answer=self._last_answer)
        return [seq_of(free[index]) for index in range(start)]

    def _last_answer(self, ids: Iterable[str]) -> int | None:
        return self._answers.last(reversed(self.newest_first), ids)

    def held(self) -> set[int]:
        """The seqs of all groups that hold a pinned message (U2.8)."""
        if not self.pins:
            return set()
        rows = self.oldest_first()
        pinned = [index for index, m in enumerate(rows) if m.seq in self.pins]
        return {seq_of(rows[member]) for index in pinned for member in group_of(rows, index)}

    def snapshot(self) -> dict[str, Any]:
        """The session in the form of its file, without `timestamp`; shares its values."""
        with self.lock:
            fields = {name: getattr(self, name) for name in FIELDS if name not in _KEPT_APART}
            return {
                "schema_version": SCHEMA_VERSION,
                **fields,
                "created_at": exact_rfc3339(self.created),
                "updated_at": exact_rfc3339(self.updated),
                "journal_n": self.n,
                "settings": self.own_settings,
                **self.unknown,
                "messages": [flat(m) for m in reversed(self.newest_first)],
                "archive": [flat(m) for m in self.archive_rows],
            }

    def restore(self, stored: StoredSession) -> None:
        """Take over the state that was read from a file; observers are not told."""
        with self.lock:
            fields = dict(stored.fields)
            goes_on = fields["id"] == self.id and fields["next_seq"] >= self.next_seq
            self.n = fields.pop("journal_n")
            self.own_settings = fields.pop("settings")
            saved = from_rfc3339(stored.timestamp)
            self.created = from_rfc3339(fields.pop("created_at")) or saved or self.clock()
            self.updated = from_rfc3339(fields.pop("updated_at")) or saved or self.created
            for name, value in fields.items():
                setattr(self, name, value)
            at = stored.timestamp or rfc3339(self.updated)  # U7.5
            self.newest_first = deque(reversed(_timed(stored.messages, at)))
            self.evicted.put(_timed(stored.archive, at))
            self._answers.forget()
            self.unknown = dict(stored.unknown)
            self.meter.clear()
            roles = {m.role for rows in (stored.messages, stored.archive) for m in rows}
            self.has_instructions = not roles.isdisjoint(("system", "developer"))
            if goes_on:  # another process has added to it
                self.quiet_length, self.memo_seq, self.memo_goal = None, 0, 0
            else:
                self._forget_progress()

    def _tell(self, changes: tuple[Change, ...]) -> None:
        if not changes:
            return
        first = self.n + 1
        self.n += len(changes)
        for observer in tuple(self._observers):
            observer(first, changes)

    def _apply(self, change: Change) -> bool:
        """Apply one change; False when it speaks of messages that are not there."""
        applied = True
        if isinstance(change, Add):
            self._add(change.message)
        elif isinstance(change, Evict):
            applied = self._move(change.seqs, pending=True)
        elif isinstance(change, TakeBack):
            applied = self._move(change.seqs, taken_back=True)
            self.memo_cursor = min(self.memo_cursor, len(self.full()))
        elif isinstance(change, Edit):
            applied = self._edit(change)
        elif isinstance(change, Cover):
            self.evicted.cover(set(change.seqs))
        elif isinstance(change, Readmit):
            self._readmit(change)
        elif isinstance(change, Replace):
            self._replace(change)
        else:
            self._apply_to_fields(change)
        self.updated = max(self.updated, from_rfc3339(change.at) or self.updated)
        return applied

    def _apply_to_fields(self, change: Set | SetState | DeleteState | Clear) -> None:
        if isinstance(change, Set):
            self._set(change.fields)
        elif isinstance(change, SetState):
            self.state[change.key] = change.value
        elif isinstance(change, DeleteState):
            self.state.pop(change.key, None)
        elif isinstance(change, Clear):
            self._clear(change.keep_memo)
        else:
            assert_never(change)

    def _add(self, message: Message) -> None:
        self.newest_first.appendleft(message)
        self._answers.see(message)
        self.next_seq = max(self.next_seq, seq_of(message) + 1)
        self.quiet_length = None
        if message.role == "assistant":
            self.turns += 1
        elif message.role in ("system", "developer"):
            self.has_instructions = True

    def _move(self, seqs: Iterable[int], **marks: Any) -> bool:
        """Take messages out of the window into the archive, with these marks."""
        leaving, moved = set(seqs), []
        while self.newest_first and self.newest_first[-1].seq in leaving:
            moved.append(self.newest_first.pop())
        if len(moved) < len(leaving):
            moved += [m for m in reversed(self.newest_first) if m.seq in leaving]
            self.newest_first = deque(m for m in self.newest_first if m.seq not in leaving)
        for message in moved:
            self.meter.forget(seq_of(message))
            self.evicted.keep(message.marked(**marks))
        if self.pins:
            self.pins = [seq for seq in self.pins if seq not in leaving]
        return bool(moved)

    def _edit(self, change: Edit) -> bool:
        for index, message in enumerate(self.newest_first):
            if message.seq == change.seq:
                self.evicted.keep(message.marked(taken_back=True))
                edited = msgspec.structs.replace(message, content=change.content, tool_calls=None)
                # What was edited is not what a model thought or a tool said any more.
                marks = dict.fromkeys(("model", OUTPUT, PARTS, ENTRY))
                self.newest_first[index] = edited.marked(**marks)
                return True
        return False

    def _readmit(self, change: Readmit) -> None:
        """Take messages back into the window, at their place by seq."""
        back, left = set(change.seqs), list[Message]()
        window = self.oldest_first()
        back -= {message.seq for message in window}
        for message in self.archive_rows:
            if message.marks().get("taken_back"):
                left.append(message)
            elif message.seq in back:
                bisect.insort(window, message.marked(pending=None), key=seq_of)
            elif message.seq in change.pending:
                left.append(message.marked(pending=True))
            else:
                left.append(message)
        self.newest_first = deque(reversed(window))
        self.evicted.put(left)
        self._answers.forget()

    def _replace(self, change: Replace) -> None:
        rows = [*change.messages, *change.archive]
        self.newest_first = deque(reversed(change.messages))
        self.evicted.put(change.archive)
        self._answers.forget()
        self.meter.clear()
        self.next_seq = max([self.next_seq, *(seq_of(message) + 1 for message in rows)])
        shown = {message.seq for message in change.messages}
        self.pins = [seq for seq in self.pins if seq in shown]
        self.has_instructions = any(m.role in ("system", "developer") for m in rows)
        self.quiet_length = None

    def _set(self, fields: dict[str, Any]) -> None:
        for name, value in fields.items():
            if name == "settings":
                self.own_settings = value
            elif name == "usage":
                self.usage = msgspec.convert(value, Usage) if isinstance(value, dict) else value
            elif name in FIELDS and name not in _KEPT_APART:
                setattr(self, name, value)

    def _clear(self, keep_memo: bool) -> None:
        self.newest_first.clear()
        self.evicted.put(())
        self._answers.forget()
        self.meter.clear()
        self.summary, self.undo, self.pins = "", None, []
        self.turns = self.last_resize_turn = self.memo_cursor = 0
        self._forget_progress()
        if not keep_memo:
            self.memo = {}

    def _forget_progress(self) -> None:
        """The session is another one now: what was begun on the old one is void (U4.4)."""
        self.quiet_length, self.memo_seq, self.memo_goal = None, 0, 0
        self.summary_in_progress = False
        self.clears += 1


def newest(core: Core, count: int) -> list[Message]:
    """The newest `count` messages of the window, oldest first; O(count)."""
    return list(islice(core.newest_first, count))[::-1]


def _timed(messages: list[Message], at: str) -> list[Message]:
    """The messages, those without a time with this one."""
    return [m if m.timestamp else msgspec.structs.replace(m, timestamp=at) for m in messages]


_NOT_SAID = frozenset({"taken_back", "window_only"})
"""Marks of what is no part of the full history."""
_KEPT_APART = frozenset({"journal_n", "created_at", "updated_at", "settings"})
"""Fields of the file that Core keeps under a name or in a form of its own."""
