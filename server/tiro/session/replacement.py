"""Histories that a handler of the caller's returned, as the session's new ones (U1.4, U1.6)."""

from collections.abc import Collection, Iterator

import msgspec

from tiro.session.changes import Replace
from tiro.session.core import Core
from tiro.session.messages import Message, seq_of
from tiro.session.times import rfc3339


def replacement(
    core: Core, next_seq: int, full: list[Message], window: list[Message], at: str
) -> Replace:
    """What a handler returned, as the session's new histories (U1.4, U1.6).

    Messages that it made get the next seqs; what it put into the window only is marked so. Pinned
    messages that it dropped are put back, and what was added meanwhile follows.
    """
    rows = {m.seq: m for m in [*core.archive_rows, *core.newest_first] if not _taken_back(m)}
    numbers = _Numbers(core.next_seq, rows.keys(), rfc3339(core.updated))
    full, window = numbers.of_full(full), numbers.of_window(window)
    in_full = {message.seq for message in full}
    later = [m for m in core.oldest_first() if seq_of(m) >= next_seq]
    full += [message for message in later if message.seq not in in_full]
    in_full |= {message.seq for message in later}
    window = [m if m.seq in in_full else m.marked(window_only=True) for m in window]
    shown = {message.seq for message in window}
    held = core.held()
    back = [m for m in core.oldest_first() if m.seq not in shown and (m.seq in held or m in later)]
    window = _in_order(window, back)
    shown |= {message.seq for message in back}
    left = {message.seq for message in core.newest_first} - shown
    kept_apart = [m for m in core.archive_rows if m.marks().keys() & {"taken_back", "window_only"}]
    archive = [m.marked(pending=True) if m.seq in left else m for m in full if m.seq not in shown]
    return Replace(window, sorted([*kept_apart, *archive], key=seq_of), at)


class _Numbers:
    """Gives messages that a handler made a seq of their own, the same one in both histories."""

    def __init__(self, next_seq: int, known: Collection[int | None], at: str) -> None:
        self._next, self._known, self._at = next_seq, known, at
        self._made: list[tuple[Message, Message]] = []

    def of_full(self, messages: list[Message]) -> list[Message]:
        """The full history; each message that is new, or there twice, gets the next seq."""
        numbered = [
            self._kept(message, seen) or self._new(message) for message, seen in _seen(messages)
        ]
        made = [(old, new) for old, new in zip(messages, numbered, strict=True) if old is not new]
        self._made = made
        return numbered

    def of_window(self, messages: list[Message]) -> list[Message]:
        """The window; what the full history has as well is the same message there."""
        return [
            self._kept(message, seen) or self._same(message) or self._new(message)
            for message, seen in _seen(messages)
        ]

    def _kept(self, message: Message, seen: set[int | None]) -> Message | None:
        return message if message.seq in self._known and message.seq not in seen else None

    def _same(self, message: Message) -> Message | None:
        for index, (old, new) in enumerate(self._made):
            if old is message or old == message:
                del self._made[index]
                return new
        return None

    def _new(self, message: Message) -> Message:
        seq, self._next = self._next, self._next + 1
        at = message.timestamp or self._at
        return msgspec.structs.replace(message, seq=seq, timestamp=at)


def _seen(messages: list[Message]) -> Iterator[tuple[Message, set[int | None]]]:
    """Each message with the seqs of those before it; one set, which grows along."""
    seqs: set[int | None] = set()
    for message in messages:
        yield message, seqs
        seqs.add(message.seq)


def _in_order(window: list[Message], more: list[Message]) -> list[Message]:
    """The window in its own order, further messages put in where their seq belongs."""
    for message in more:
        places = (i for i, other in enumerate(window) if seq_of(other) > seq_of(message))
        window.insert(next(places, len(window)), message)
    return window


def _taken_back(message: Message) -> bool:
    return bool(message.marks().get("taken_back"))
