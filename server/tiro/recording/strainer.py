"""Secrets out of bytes that come in pieces: a secret may lie across them.

It may be cut by the network, in the middle of its bytes, or by a model that spells it token by
token, each token in a JSON string of its own under the same key. So a piece is given out only when
nothing in it can be the beginning of a secret any more; where each piece ends stays as it was.
Secrets are the values that are known, and what looks like a key.
"""

import re
from collections import deque
from collections.abc import Iterable

from tiro.recording.shapes import CONTEXT, LONGEST, open_shape, shapes_in, tells_most
from tiro.session.secrets import REDACTED, spellings

SHORTEST_START = 4
"""Fewer bytes of a secret than this tell nothing, and are waited for by nobody."""
MAX_HELD_BYTES = 1 << 20
"""With more than this waiting for its rest, what might be the start of a secret is cut."""

_KEPT_BYTES = 4096
_MOST_KEYS = 1000
_CUT = REDACTED.encode()
_KEY = rb'"([\w-]{1,40})"\s*+:\s*+"'
_VALUE = re.compile(_KEY + rb'([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.DOTALL)
"""A JSON string under a key; in what is no JSON it finds harmless things or nothing."""
_OPEN_VALUE = re.compile(_KEY + rb'[^"\\]*+(?:\\.[^"\\]*+)*+\\?\Z', re.DOTALL)
"""Such a string whose end has not come yet."""

_Position = int
"""A place in the whole stream, from 0."""


class Secrets:
    """The values to keep out, each in every spelling in which it may be met."""

    def __init__(self) -> None:
        self.spellings: tuple[bytes, ...] = ()
        self.longest = 0

    def add(self, secrets: Iterable[str]) -> None:
        """Keep these out too; may be called from any thread."""
        found = {spelled.encode("utf-8", "replace") for spelled in spellings(secrets)}
        found.update(self.spellings)
        self.longest = max(map(len, found), default=0)
        self.spellings = tuple(sorted(found, key=len, reverse=True))

    def strained(self, data: bytes) -> bytes:
        """These bytes, which are complete, without secrets."""
        strainer = Strainer(self)
        strainer.feed(data)
        return b"".join(strainer.take_all())


class _Joined:
    """The end of all strings under one key, one after the other, and where its bytes stand."""

    def __init__(self) -> None:
        self.tail = b""
        self.positions: list[_Position] = []
        self.open: list[_Position] = []
        """The positions of what may be the start of a secret."""
        self.begun: list[_Position] = []
        """The positions of what may become a key by its shape."""


class Strainer:
    """One stream of bytes; `feed` takes pieces, `take` gives those that are settled, in order."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._bytes = bytearray()
        self._start: _Position = 0
        self._given: _Position = 0
        self._searched: _Position = 0
        self._lexed: _Position = 0
        self._ends: deque[_Position] = deque()
        self._cuts: list[tuple[_Position, _Position]] = []
        self._joined: dict[bytes, _Joined] = {}
        self._begun: _Position = 0
        """Where at the end something begins that may become a key by its shape."""

    @property
    def _end(self) -> _Position:
        return self._start + len(self._bytes)

    def feed(self, piece: bytes) -> None:
        """Take the next piece."""
        self._bytes += piece
        self._ends.append(self._end)
        self._search()
        self._lex()

    def take(self) -> list[bytes]:
        """The pieces that hold no beginning of a secret any more."""
        if self._end - self._given > MAX_HELD_BYTES:
            return self.take_all()
        starts = [run[0] for run in [*self._open_runs(), *self._begun_runs()]]
        if value := _OPEN_VALUE.search(self._bytes, max(0, self._lexed - self._start)):
            starts.append(self._start + value.start())
        return self._take_until(min(starts, default=self._end))

    def take_all(self) -> list[bytes]:
        """All pieces; what may be the beginning of a secret is cut as if it were one."""
        for run in self._open_runs():
            self._cut(run)
        for run in self._begun_runs():
            if tells_most(bytes(self._bytes[at - self._start] for at in run)):
                self._cut(run)
        return self._take_until(self._end)

    def _search(self) -> None:
        """Find secrets whose bytes stand together."""
        for spelled in self._secrets.spellings:
            at = self._bytes.find(spelled, max(0, self._searched - self._start - len(spelled) + 1))
            while at >= 0:
                self._cuts.append((self._start + at, self._start + at + len(spelled)))
                at = self._bytes.find(spelled, at + len(spelled))
        at = max(self._start, min(self._begun, self._searched - CONTEXT))
        data = bytes(memoryview(self._bytes)[at - self._start :])
        self._cuts += [(at + first, at + last) for first, last in shapes_in(data)]
        self._begun = max(at + open_shape(data), self._end - LONGEST)
        self._searched = self._end

    def _lex(self) -> None:
        """Find secrets spelled in several strings under one key."""
        if len(self._joined) > _MOST_KEYS:
            self._joined.clear()
        for found in _VALUE.finditer(self._bytes, max(0, self._lexed - self._start)):
            joined = self._joined.setdefault(found[1], _Joined())
            self._join(joined, found[2], self._start + found.start(2))
            self._lexed = self._start + found.end()

    def _join(self, joined: _Joined, value: bytes, at: _Position) -> None:
        reach = max(self._secrets.longest, CONTEXT)
        head = value[: LONGEST if joined.begun else reach]
        seen, tail = joined.tail + head, len(joined.tail)
        positions = joined.positions + list(range(at, at + len(head)))
        for spelled in self._secrets.spellings:
            found = seen.find(spelled, max(0, tail - len(spelled) + 1)) if tail else -1
            if 0 <= found < tail:
                self._cut(positions[found : found + len(spelled)])
        for first, last in shapes_in(seen) if tail else ():
            if first < tail < last:
                self._cut(positions[first:last])
        if len(value) > len(head):
            more = value[-LONGEST:]
            seen, at = more, at + len(value) - len(more)
            positions = list(range(at, at + len(more)))
        begun = max(open_shape(seen), len(seen) - LONGEST)
        joined.begun = positions[begun:]
        kept = min(begun, max(0, len(seen) - reach))
        joined.tail, joined.positions = seen[kept:], positions[kept:]
        length = self._start_at_end(joined.tail)
        joined.open = joined.positions[len(joined.positions) - length :]

    def _open_runs(self) -> list[list[_Position]]:
        """What may be the start of a secret and has not met its rest, as far as it is not given."""
        length = self._start_at_end(bytes(self._bytes[-self._secrets.longest :]))
        runs = [joined.open for joined in self._joined.values()]
        runs.append(list(range(self._end - length, self._end)))
        waiting = ([at for at in run if at >= self._given] for run in runs if run)
        return [run for run in waiting if run]

    def _begun_runs(self) -> list[list[_Position]]:
        """What may become a key by its shape, as far as it is not given."""
        runs = [joined.begun for joined in self._joined.values()]
        runs.append(list(range(max(self._begun, self._given), self._end)))
        waiting = ([at for at in run if at >= self._given] for run in runs if run)
        return [run for run in waiting if run]

    def _start_at_end(self, data: bytes) -> int:
        """How many bytes at the end are the start of a secret and not all of it."""
        longest = 0
        for spelled in self._secrets.spellings:
            at = data.find(spelled[:SHORTEST_START], max(0, len(data) - len(spelled) + 1))
            while at >= 0 and not spelled.startswith(data[at:]):
                at = data.find(spelled[:SHORTEST_START], at + 1)
            if at >= 0:
                longest = max(longest, len(data) - at)
        return longest

    def _cut(self, positions: list[_Position]) -> None:
        """Cut what stands at these places, which are in order, run by run."""
        start = previous = positions[0]
        for position in [*positions[1:], -1]:
            if position != previous + 1:
                self._cuts.append((start, previous + 1))
                start = position
            previous = position

    def _take_until(self, safe: _Position) -> list[bytes]:
        cuts = _merged(self._cuts)
        taken = []
        while self._ends and self._ends[0] <= safe:
            end = self._ends.popleft()
            taken.append(self._piece(self._given, end, cuts))
            self._given = end
        self._cuts = [cut for cut in cuts if cut[1] > self._given]
        self._forget()
        return taken

    def _piece(
        self, start: _Position, end: _Position, cuts: list[tuple[_Position, _Position]]
    ) -> bytes:
        parts, at = [], start
        for first, last in cuts:
            if last <= start or first >= end:
                continue
            parts.append(self._between(at, max(at, first)))
            if first >= start:
                parts.append(_CUT)
            at = min(last, end)
        return b"".join([*parts, self._between(at, end)])

    def _between(self, start: _Position, end: _Position) -> bytes:
        return bytes(memoryview(self._bytes)[start - self._start : end - self._start])

    def _forget(self) -> None:
        """Drop what nothing can begin in any more."""
        lexed = max(self._lexed, self._end - _KEPT_BYTES)
        searched = min(self._begun, self._end - max(self._secrets.longest, CONTEXT))
        kept = min(self._given, lexed, searched)
        if kept > self._start:
            del self._bytes[: kept - self._start]
            self._start = kept


def _merged(cuts: list[tuple[_Position, _Position]]) -> list[tuple[_Position, _Position]]:
    merged: list[tuple[_Position, _Position]] = []
    for first, last in sorted(cuts):
        if merged and first < merged[-1][1]:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return merged
