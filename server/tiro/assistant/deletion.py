"""Saved sessions that nobody wants: to the trash, out of it, and gone for good."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tiro.stores.names import check_id
from tiro.stores.trash import Deleted, Restored

if TYPE_CHECKING:
    from tiro.assistant.assistant import Assistant


class Deletion:
    """What is done to saved sessions besides using them."""

    def __init__(self, assistant: "Assistant") -> None:
        self._assistant = assistant
        self._manager = assistant.manager

    async def discard(self, id: str) -> bool:
        """Move a saved session to the trash; deleting the current one begins an empty one.

        False where there is none. Raises TurnInProgressError, SessionInUseError, StorageError,
        InvalidSessionIdError.
        """
        return await self._take_away(id, self._manager.discard)

    async def delete(self, id: str) -> bool:
        """Remove a saved session for good, and what the trash holds of that id; as `discard`."""
        was_saved = await self._take_away(id, self._manager.delete)
        was_in_trash = await asyncio.to_thread(self._manager.trash.empty, id)
        return was_saved or was_in_trash > 0

    async def deleted(self, limit: int | None, offset: int | None) -> tuple[Sequence[Deleted], int]:
        """A page of the trash, deleted last first, and how much is in it."""
        count = 100 if limit is None else limit
        return await asyncio.to_thread(self._manager.trash.page, count, offset or 0)

    async def restore(self, id: str) -> Restored:
        """Bring a session back from the trash; raises SessionNotFoundError, StorageError."""
        return await asyncio.to_thread(self._manager.trash.restore, id)

    async def empty(self, id: str | None) -> int:
        """Empty the trash, or remove what has this id; how many sessions that were."""
        return await asyncio.to_thread(self._manager.trash.empty, id)

    async def _take_away(self, id: str, take: Callable[[str], bool]) -> bool:
        check_id(id)
        current = self._manager.current
        is_current = current is not None and current.id == id
        if is_current:
            self._assistant.turns.refuse_another()
        is_done = await asyncio.to_thread(take, id)
        if is_current:
            self._manager.reset()
        if is_done:
            await asyncio.to_thread(self._manager.trash.tidy)
            await self._assistant.saved.forget_deleted()
        return is_done or is_current
