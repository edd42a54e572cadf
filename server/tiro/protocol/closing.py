"""The end of one client's requests, in order: what runs is answered, then the assistant finishes.

The turn is cancelled and answered first; a question that is still open counts as refused; what has
been received before is answered; what takes too long is cancelled. It happens once, whether the
client says `shutdown` or is simply gone.
"""

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from tiro.errors import TiroError
from tiro.protocol.connection import Connection

if TYPE_CHECKING:
    from tiro.assistant.assistant import Assistant

logger = logging.getLogger(__name__)

ANSWER_SECONDS = 0.6
"""How long requests that have been received may still take."""


class Closing:
    """Ends the requests of a connection; `close` may be called any number of times."""

    def __init__(self, connection: Connection, assistant: "Assistant") -> None:
        self._connection, self._assistant = connection, assistant
        self._task: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Take no new requests, and wait until everything has come to its end."""
        if self._task is None:
            self._task = asyncio.create_task(self._close())
        await asyncio.shield(self._task)

    async def _close(self) -> None:
        protocol = self._connection.protocol
        protocol.state = "shut_down"
        self._connection.is_closing = True
        cancelling = asyncio.create_task(self._connection.cancel_turn(self._assistant.turns))
        await asyncio.sleep(0)  # the turn hears of its end before its question is refused
        protocol.drop_asked()
        with contextlib.suppress(TiroError):
            await cancelling
        await self._connection.turns_answered()
        await protocol.answered(ANSWER_SECONDS)
        try:
            await self._assistant.shutdown()
        except Exception:
            logger.exception("Not everything could be finished")
