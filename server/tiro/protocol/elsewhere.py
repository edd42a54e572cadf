"""Notices what other processes write to the current session, while nothing goes on here (U9.8).

A person asks in one editor and looks at another, which should show it. Clients need not ask:
they hear `tiro/session/changed` with the reason `changedOnDisk`, as for any such change.
"""

import asyncio
from typing import TYPE_CHECKING

from tiro.protocol.connection import Connection

if TYPE_CHECKING:
    from tiro.assistant.assistant import Assistant

LOOK_SECONDS = 1.0
"""Two calls to the system each time; a person needs longer to come from another editor."""


class Elsewhere:
    """Looks now and then, in order with the requests of the client."""

    def __init__(self, connection: Connection, assistant: "Assistant") -> None:
        self._connection, self._assistant = connection, assistant
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look until the connection ends."""
        self._task = asyncio.create_task(self._look())

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            async with self._connection.order:
                if self._connection.is_closing:
                    return
                if self._assistant.running_turn_id is None:
                    await asyncio.to_thread(self._assistant.manager.look_again)
