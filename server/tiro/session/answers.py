"""Where the answers to the tool uses of a window stand: no cut looks for them each time."""

from collections.abc import Iterable

from tiro.session.messages import Message, seq_of, tool_results_of

SPARE = 1000
"""How many more than there were are known before those that left the window are let go."""


class Answers:
    """The newest message that answers each tool use; read from the window when first needed."""

    def __init__(self) -> None:
        self._seqs: dict[str, int] | None = None
        self._newest = self._most = 0

    def see(self, message: Message) -> None:
        """A message was added; O(1)."""
        if self._seqs is None:
            return
        if seq_of(message) <= self._newest or len(self._seqs) > self._most:
            self.forget()
            return
        self._newest = seq_of(message)
        for result in tool_results_of(message):
            self._seqs[result.tool_use_id] = self._newest

    def forget(self) -> None:
        """The window became another one."""
        self._seqs, self._newest = None, 0

    def last(self, window: Iterable[Message], ids: Iterable[str]) -> int | None:
        """No message with a greater seq answers one of these; None where no seq can tell.

        `window` is oldest first. O(ids), the first time O(window).
        """
        if self._seqs is None:
            self._seqs = self._read(window)
        seqs = self._seqs
        return None if seqs is None else max((seqs.get(id, 0) for id in ids), default=0)

    def _read(self, window: Iterable[Message]) -> dict[str, int] | None:
        """Read all of it; None where its messages do not stand in the order of their seqs."""
        seqs, newest = dict[str, int](), 0
        for message in window:
            if seq_of(message) <= newest:
                return None
            newest = seq_of(message)
            for result in tool_results_of(message):
                seqs[result.tool_use_id] = newest
        self._newest, self._most = newest, 2 * len(seqs) + SPARE
        return seqs
