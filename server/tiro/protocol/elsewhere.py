"""Notices what becomes of sessions while nothing goes on here: what others write, what expires.

A person asks in one editor and looks at another, which should show it. Clients need not ask:
they hear `tiro/session/changed` with the reason `changedOnDisk`, as for any such change (U9.8),
and `expired` when the time of the current session is over (G4.4).
"""

import asyncio
import itertools
import logging
from typing import TYPE_CHECKING

from tiro.protocol.connection import Connection
from tiro.tools.silent_disk import Patience

if TYPE_CHECKING:
    from tiro.assistant.assistant import Assistant

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Two calls to the system each time; a person needs longer to come from another editor."""
PLACE = "sessions"
LOOKS_PER_CLEANUP = 300
"""So often are expired sessions removed: every five minutes (G4.10)."""

LOOKS_PER_DAY = 86_400
FIRST_TIDYING = 60
"""The look at which old sessions go as `retention` says, every day: a minute after the start."""


class Elsewhere:
    """Looks now and then: beside the client's requests, and in their order for what it found.

    A disk that falls silent holds up nobody, unless it does between the two.
    """

    def __init__(self, connection: Connection, assistant: "Assistant") -> None:
        self._connection, self._assistant = connection, assistant
        self._patience = Patience()
        self._failed = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look until the connection ends."""
        self._task = asyncio.create_task(self._look_on())

    async def _look_on(self) -> None:
        for look in itertools.count(1):
            await asyncio.sleep(LOOK_SECONDS)
            if self._connection.is_closing:
                break
            try:
                if look % LOOKS_PER_CLEANUP == 0:
                    await asyncio.to_thread(self._assistant.manager.delete_expired)
                if look % LOOKS_PER_DAY == FIRST_TIDYING:
                    await self._assistant.deletion.keep_order(self._connection.order)
                if self._is_idle():
                    await self._look()
            except Exception as error:  # the disk may be well again at the next look
                if not self._failed:
                    reason = str(error).strip()
                    logger.warning("The changes of others to the session are not seen: %s", reason)
                self._failed = True
            else:
                self._failed = False

    async def _look(self) -> None:
        manager, ask = self._assistant.manager, self._patience.ask
        if self._assistant.saved.has_expired():
            async with self._connection.order:
                await self._assistant.end_expired()
            return
        news = await asyncio.to_thread(ask, PLACE, manager.read_news)
        if news is None:
            return
        async with self._connection.order:
            if self._is_idle():
                await asyncio.to_thread(ask, PLACE, lambda: manager.take_news(news))

    def _is_idle(self) -> bool:
        """Whether a session is there for others to write to, and nothing goes on in it."""
        manager = self._assistant.manager
        is_stored = manager.current is not None and manager.path_of(manager.current) is not None
        is_quiet = self._assistant.running_turn_id is None and not self._connection.is_closing
        return is_stored and is_quiet
