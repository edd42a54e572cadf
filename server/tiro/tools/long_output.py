"""An output that is too long to be held: it is put away while it comes, and only in part.

What is put away goes through a thread, so that a slow disk delays the command that prints and
nobody else.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol

from tiro.tools.silent_disk import in_thread

logger = logging.getLogger(__name__)

MAX_WHOLE_BYTES = 64_000_000
"""Up to here all of an output is put away, and of what comes then the end."""
PIECE_CHARS = 1 << 20
"""So much is gathered before it is put away."""
END_SECONDS = 30.0
"""How long a disk may take for what is left at the end."""


class OutputKeeper(Protocol):
    """Keeps the output of one tool use, which comes in order; called in threads, one at a time."""

    def add(self, text: str) -> None:
        """Keep the next piece; raises OSError."""
        ...

    def end(self) -> list[dict[str, Any]]:
        """Keep the last of it; where all of it is, as a session remembers it. Raises OSError."""
        ...


class LongOutput:
    """The whole of one output; its keeper is asked for when the first piece comes."""

    def __init__(
        self, keeper: Callable[[], OutputKeeper | None], max_bytes: int = MAX_WHOLE_BYTES
    ) -> None:
        self.max_bytes = max_bytes
        """More is not to be added."""
        self._ask = keeper
        self._keeper: OutputKeeper | None = None
        self._is_asked = self._has_failed = False
        self._waiting: list[str] = []
        self._chars = 0
        self._work: asyncio.Task[None] | None = None

    def add(self, text: str) -> asyncio.Task[None] | None:
        """Take the next piece; where too much waits by now, what to wait for before the next."""
        if not self._is_asked:
            self._is_asked, self._keeper = True, self._ask()
        if self._keeper is None or self._has_failed:
            return None
        self._waiting.append(text)
        self._chars += len(text)
        if self._chars < PIECE_CHARS:
            return None
        if self._work is None or self._work.done():
            self._work = asyncio.ensure_future(self._put_away(self._keeper))
            return None
        return self._work

    async def end(self, rest: str) -> tuple[dict[str, Any], ...]:
        """Take the last piece; where all of it is kept, nothing where it is not."""
        self.add(rest)
        if self._work is not None:
            await asyncio.wait({self._work}, timeout=END_SECONDS)
        if self._keeper is None or (self._work is not None and not self._work.done()):
            return ()
        try:
            async with asyncio.timeout(END_SECONDS):
                await self._put_away(self._keeper)
                return () if self._has_failed else tuple(await in_thread(self._keeper.end))
        except (OSError, TimeoutError) as error:
            logger.warning("A long output is not kept: %s", error)
            return ()

    async def _put_away(self, keeper: OutputKeeper) -> None:
        """Put away what waits, as long as there is enough; gives up where the disk refuses."""
        text, self._waiting, self._chars = "".join(self._waiting), [], 0
        try:
            await in_thread(keeper.add, text)
        except OSError as error:
            logger.warning("A long output is not kept: %s", error)
            self._has_failed = True
