"""Where the tasks of a turn put what happened, and the turn takes it out, in order.

The tasks (the model's stream, the tools, the watch for a cancel) never touch the session or an
event: the turn alone does, one item after the other.
"""

import asyncio
from collections import deque
from typing import Generic, TypeVar

from tiro.models.model import TextDelta, ThinkingDelta

Item = TypeVar("Item")

BREATH = 64
"""After so many items that nobody has taken yet, a busy task lets the turn run."""


class Inbox(Generic[Item]):
    """A queue with one reader; neighbouring text deltas are joined when they are taken."""

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._filled = asyncio.Event()
        self._is_closed = False

    def put(self, item: Item) -> None:
        """Append an item; after `close` it is dropped."""
        if not self._is_closed:
            self._items.append(item)
            self._filled.set()

    async def breathe(self) -> None:
        """Let the reader run, when a busy task has put in much that nobody has taken yet."""
        if len(self._items) >= BREATH:
            await asyncio.sleep(0)

    async def filled(self) -> None:
        """Wait until there is an item."""
        await self._filled.wait()

    def take(self) -> Item | None:
        """The oldest item, or None; text that waits behind it is joined to it."""
        if not self._items:
            self._filled.clear()
            return None
        item = self._items.popleft()
        if isinstance(item, TextDelta):
            return self._joined(item, TextDelta)
        if isinstance(item, ThinkingDelta) and item.signature is None:
            return self._joined(item, ThinkingDelta)
        return item

    def close(self) -> None:
        """Take no more items; what is in it can still be taken."""
        self._is_closed = True

    def _joined(self, first: Item, kind: type[TextDelta] | type[ThinkingDelta]) -> Item:
        pieces = [first.text]  # type: ignore[attr-defined]  # the caller has looked
        while self._items and isinstance(item := self._items[0], kind):
            if isinstance(item, ThinkingDelta) and item.signature is not None:
                break
            pieces.append(item.text)
            self._items.popleft()
        return first if len(pieces) == 1 else kind("".join(pieces))  # type: ignore[return-value]
