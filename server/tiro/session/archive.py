"""The archive: what left a session's window, by seq, with what each turn asks of it counted.

It grows for ever, so nothing that happens in a turn reads all of it.
"""

import bisect
from collections.abc import Collection, Iterable
from itertools import islice

from tiro.session.messages import Message, seq_of


class Archive:
    """Messages by seq; whoever puts them into `rows` itself calls `put`."""

    def __init__(self, rows: Iterable[Message] = ()) -> None:
        self.put(rows)

    def put(self, rows: Iterable[Message]) -> None:
        """Hold these messages, and no others; O(rows)."""
        self.rows = list(rows)
        self.count = sum(not _is_taken_back(row) for row in self.rows)
        """How many are part of the history: they were not taken back."""
        self._waiting = sum(_is_pending(row) for row in self.rows)

    def keep(self, message: Message) -> None:
        """Put a message at its place by seq; O(1) for the newest there."""
        if not self.rows or seq_of(self.rows[-1]) <= seq_of(message):
            self.rows.append(message)
        else:
            bisect.insort(self.rows, message, key=seq_of)
        self.count += not _is_taken_back(message)
        self._waiting += _is_pending(message)

    def pending(self) -> list[Message]:
        """Those that no summary covers yet, oldest first; reads back to the oldest of them."""
        waiting = filter(_is_pending, reversed(self.rows))
        return list(islice(waiting, self._waiting))[::-1]

    def cover(self, seqs: Collection[int]) -> None:
        """Let those with these seqs wait no more; reads back to the oldest that waits."""
        newest_first = range(len(self.rows) - 1, -1, -1)
        waiting = (index for index in newest_first if _is_pending(self.rows[index]))
        for index in list(islice(waiting, self._waiting)):
            if self.rows[index].seq in seqs:
                self.rows[index] = self.rows[index].marked(pending=None)
                self._waiting -= 1

    def fork(self) -> "Archive":
        """A copy that is changed on its own; O(1) but for its list."""
        forked = Archive()
        forked.rows, forked.count, forked._waiting = self.rows.copy(), self.count, self._waiting
        return forked


def _is_taken_back(row: Message) -> bool:
    return "taken_back" in row.marks()


def _is_pending(row: Message) -> bool:
    return bool(row.marks().get("pending"))
