"""Notices what other processes write to the current session, while nothing goes on here (U9.8).

A person asks in one editor and looks at another, which should show it. Clients need not ask:
they hear `tiro/session/changed` with the reason `changedOnDisk`, as for any such change.
"""

import asyncio
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
        while not self._connection.is_closing:
            await asyncio.sleep(LOOK_SECONDS)
            if not self._is_idle():
                continue
            try:
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
