"""Secrets out of bytes that come in pieces: a secret may lie across them.

It may be cut by the network, in the middle of its bytes, or by a model that spells it token by
token, each token in a JSON string of its own under the same key. So a piece is given out only when
nothing in it can be the beginning of a secret any more; where each piece ends stays as it was.
Secrets are the values that are known, and what looks like a key.
"""

import itertools
import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator

from tiro.recording.shapes import (
    CONTEXT,
    LONGEST,
    fresh_starts,
    goes_on,
    open_shape,
    plain,
    settled,
    shapes_in,
    tells_most,
)
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
_INDEX_OR_VALUE = re.compile(
    rb'"index"\s*+:\s*+(?P<index>\d++)(?=[\s,}])|' + _VALUE.pattern, re.DOTALL
)
"""Or the number of the block, or of the tool use, whose strings follow."""
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
        self.longest = 2 * max(map(len, found), default=0)  # JSON in JSON doubles backslashes
        self.spellings = tuple(sorted(found, key=len, reverse=True))

    def found_in(self, data: bytes, since: int) -> Iterator[tuple[int, int]]:
        """Where one stands that ends behind `since`, however JSON writes it."""
        start = max(0, since - self.longest)
        window = data[start:]
        text, places = plain(window)
        for spelled in self.spellings:
            for where, at in ((window, range(len(window) + 1)), (text, places)):
                first = where.find(spelled)
                while first >= 0:
                    last = first + len(spelled)
                    if start + at[last] > since:
                        yield start + at[first], start + at[last]
                    first = where.find(spelled, last)
                if text is window:
                    break

    def strained(self, data: bytes) -> bytes:
        """These bytes, which are complete, without secrets."""
        strainer = Strainer(self)
        strainer.feed(data)
        return b"".join(strainer.take_all())


class _Joined:
    """The end of all strings of one text, one after the other, and where its bytes stand."""

    def __init__(self) -> None:
        self.tail = bytearray()
        self.positions: list[_Position] = []
        self.open: list[_Position] = []
        """The positions of what may be the start of a secret."""
        self.begun = 0
        """Where in the tail something begins that may become a key by its shape."""
        self.searched = 0
        """How much of the tail was searched for shapes; the rest goes on with what has begun."""

    @property
    def waiting(self) -> list[_Position]:
        """The positions of what may become a key by its shape."""
        return self.positions[self.begun :]

    def add(self, value: bytes, at: _Position) -> bool:
        """Take more of a string; whether that only goes on with what has begun."""
        length = len(self.tail) - self.begun
        is_more = length > 0 and goes_on(bytes(self.tail[self.begun :][:11]), length, value)
        self.tail += value
        self.positions += range(at, at + len(value))
        return is_more

    def shapes(self) -> Iterator[list[_Position]]:
        """The positions of what looks like a key, was not searched, and is in several strings."""
        data = bytes(self.tail)
        for start in [0, *self._fresh(data)]:
            for first, last in shapes_in(data[start:]):
                found = self.positions[start + first : start + last]
                if start + last > self.searched and found[-1] - found[0] >= len(found):
                    yield found

    def settle(self, reach: int) -> None:
        """Find what has begun, and drop what nothing can reach back to."""
        data = bytes(self.tail)
        starts = (start + open_shape(data[start:]) for start in [0, *self._fresh(data)])
        begun = max(min(starts), len(data) - LONGEST)
        kept = min(begun, max(0, len(data) - reach))
        del self.tail[:kept], self.positions[:kept]
        self.begun, self.searched = begun - kept, len(self.tail)

    def _fresh(self, data: bytes) -> list[int]:
        """Where a string begins like a key: it may be a new text, and begins no word's middle."""
        at = self.positions
        return [one for one in fresh_starts(data) if one and at[one] != at[one - 1] + 1]


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
        self._joined: dict[tuple[bytes, bytes], _Joined] = {}
        self._index = b""
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
        starts = [run[0] for run in self._open_runs()]
        for joined in self._joined.values():
            starts += self._first_waiting(joined)
        if self._begun < self._end:
            starts.append(max(self._begun, self._given))
        if value := _OPEN_VALUE.search(self._bytes, max(0, self._lexed - self._start)):
            starts.append(self._start + value.start())
        return self._take_until(min(starts, default=self._end))

    def take_all(self) -> list[bytes]:
        """All pieces; what may be the beginning of a secret is cut as if it were one."""
        for run in self._open_runs():
            self._cut(run)
        for joined in self._joined.values():
            for found in joined.shapes() if joined.searched < len(joined.tail) else ():
                self._cut(found)
            joined.searched = len(joined.tail)
        for run in self._begun_runs():
            if tells_most(bytes(self._bytes[at - self._start] for at in run)):
                self._cut(run)
        return self._take_until(self._end)

    def _search(self) -> None:
        """Find secrets whose bytes stand together."""
        since = max(self._start, self._searched - self._secrets.longest)
        fresh = bytes(memoryview(self._bytes)[since - self._start :])
        for first, last in self._secrets.found_in(fresh, self._searched - since):
            self._cuts.append((since + first, since + last))
        begun = max(self._begun, self._start)
        length = self._searched - begun
        more = bytes(memoryview(self._bytes)[self._searched - self._start :])
        head = bytes(memoryview(self._bytes)[begun - self._start :][:11])
        if length <= 0 or not goes_on(head, length, more):
            self._search_shapes()
        self._searched = self._end

    def _search_shapes(self) -> None:
        at = max(self._start, min(self._begun, self._searched - CONTEXT))
        data = bytes(memoryview(self._bytes)[at - self._start :])
        self._cuts += [(at + first, at + last) for first, last in shapes_in(data)]
        self._begun = max(at + open_shape(data), self._end - LONGEST)

    def _lex(self) -> None:
        """Find secrets spelled in several strings of one text: under one key, of one block."""
        if len(self._joined) > _MOST_KEYS:
            self._joined.clear()
        for found in _INDEX_OR_VALUE.finditer(self._bytes, max(0, self._lexed - self._start)):
            if found["index"] is not None:
                self._index = found["index"]
            else:
                joined = self._joined.setdefault((found[2], self._index), _Joined())
                self._join(joined, found[3], self._start + found.start(3))
            self._lexed = self._start + found.end()

    def _join(self, joined: _Joined, value: bytes, at: _Position) -> None:
        reach = max(self._secrets.longest, CONTEXT)
        head = value[:LONGEST]
        tail = len(joined.tail)
        is_more = joined.add(head, at)
        for first, last in self._secrets.found_in(bytes(joined.tail), tail) if tail else ():
            if first < tail:
                self._cut(joined.positions[first:last])
        if not is_more or len(head) < len(value):
            for found in joined.shapes():
                self._cut(found)
            if len(head) < len(value):
                more = value[-LONGEST:]
                joined.tail, joined.positions = bytearray(), []
                joined.add(more, at + len(value) - len(more))
            joined.settle(reach)
        length = self._start_at_end(bytes(joined.tail[-reach:]))
        joined.open = joined.positions[len(joined.positions) - length :]

    def _open_runs(self) -> list[list[_Position]]:
        """What may be the start of a secret and has not met its rest, as far as it is not given."""
        length = self._start_at_end(
            bytes(self._bytes[max(0, len(self._bytes) - self._secrets.longest) :])
        )
        runs = [joined.open for joined in self._joined.values()]
        runs.append(list(range(self._end - length, self._end)))
        waiting = ([at for at in run if at >= self._given] for run in runs if run)
        return [run for run in waiting if run]

    def _first_waiting(self, joined: _Joined) -> list[_Position]:
        """Where that stands which may become a key, as far as it is not given."""
        at = bisect_left(joined.positions, self._given, joined.begun)
        return joined.positions[at : at + 1]

    def _begun_runs(self) -> list[list[_Position]]:
        """What may become a key by its shape, as far as it is not given."""
        runs = [joined.waiting for joined in self._joined.values()]
        runs.append(list(range(max(self._begun, self._given), self._end)))
        waiting = ([at for at in run if at >= self._given] for run in runs if run)
        return [run for run in waiting if run]

    def _start_at_end(self, data: bytes) -> int:
        """How many bytes at the end are the start of a secret and not all of it."""
        text, places = plain(settled(data))
        return max(len(data) - places[len(text) - self._start_in(text)], self._start_in(data))

    def _start_in(self, data: bytes) -> int:
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
        begin = bisect_right(cuts, start, key=lambda cut: cut[1])
        for first, last in itertools.islice(cuts, begin, None):
            if first >= end:
                break
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
