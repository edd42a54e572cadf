"""Sessions as files: which one is the current one, and what is done to the others.

Whatever makes another session the current one ends the turn and saves the old session first.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

from tiro.assistant.results import Cleared, Saved
from tiro.assistant.running_turn import entered
from tiro.assistant.turns import Turns
from tiro.errors import (
    InvalidInputError,
    SessionFormatError,
    SessionInUseError,
    SessionNotFoundError,
    StorageError,
)
from tiro.session.queued import add_queued, queued
from tiro.session.session import Session
from tiro.stores.index import SavedSession
from tiro.stores.manager import SessionManager


class SavedSessions:
    """The sessions of one directory, as the current one comes from there and goes there."""

    def __init__(self, manager: SessionManager, turns: Turns) -> None:
        self._manager = manager
        self._turns = turns
        self._unsaved: list[Session] = []  # kept alive for the manager, which tries them again

    async def new(
        self,
        id: str | None,
        title: str | None,
        agent: str | None,
        max_history: int | None,
    ) -> Session:
        """End the old session as `clear` does, and begin one with these."""
        session = self._manager.create(id=id, agent=agent, max_history=max_history)
        await self.clear()
        self._manager.set_current(session)
        if title is not None:
            session.change(title=title)
        return session

    async def clear(self) -> Cleared:
        """End the turn, save the session if it holds anything, and begin an empty one.

        What the disk refuses stays in memory, and is tried again when the server ends.
        """
        await self._turns.cancel()
        session = self._manager.current
        self._manager.reset()
        if session is None:
            return Cleared(0, None)
        saved = None
        if self._manager.autosave and (session.newest_first or session.archive_rows):
            saved = await asyncio.to_thread(self._manager.end, session)
            if not self._manager.is_stored(session):
                self._unsaved.append(session)
                saved = None
        return Cleared(len(session.newest_first), saved)

    async def save(self, path: Path | None = None) -> Saved:
        """Write the session's own file, or a copy to `path`; StorageError when it cannot be."""
        session = self._manager.get()
        written = await asyncio.to_thread(self._manager.save, session, path)
        return Saved(written, session.id or "", written.stat().st_size)

    async def load(
        self, path: Path | None = None, id: str | None = None, latest: bool | None = None
    ) -> Session:
        """Make a saved session the current one; the old one is ended and saved first.

        The target is read before the old session is touched; what cannot be read raises
        SessionFormatError or SessionNotFoundError and changes nothing.
        """
        if sum((path is not None, id is not None, bool(latest))) != 1:
            raise InvalidInputError("Give exactly one of `path`, `id` and `latest`")
        current = self._manager.current
        loaded = await asyncio.to_thread(_read, self._manager, path, id)
        file = self._manager.path_of(loaded)
        if current is not None and file is not None and self._manager.path_of(current) == file:
            await self._turns.cancel()
            await asyncio.to_thread(self._manager.end, current)
            loaded = await asyncio.to_thread(self._manager.load, file)
        else:
            await self.clear()
        self._manager.set_current(loaded)
        if queued(loaded):  # its turn was killed, unless another process runs it right now
            with contextlib.suppress(SessionInUseError):
                async with entered(self._manager.changing(loaded)):
                    add_queued(loaded)
        return loaded

    async def list(
        self, query: str | None = None, limit: int | None = None, offset: int | None = None
    ) -> tuple[Sequence[SavedSession], int]:
        """A page of the saved sessions, newest first, and how many there are."""
        count = 100 if limit is None else limit
        return await asyncio.to_thread(self._manager.list, query, count, offset or 0)

    async def delete(self, id: str) -> bool:
        """Delete a saved session; deleting the current one begins an empty one."""
        current = self._manager.current
        if current is None or current.id != id:
            return await asyncio.to_thread(self._manager.delete, id)
        self._turns.refuse_another()
        await asyncio.to_thread(self._manager.delete, id)
        self._manager.reset()
        return True


def _read(manager: SessionManager, path: Path | None, id: str | None) -> Session:
    """Read a saved session, by default the newest; the current one stays the current one.

    Raises SessionNotFoundError, and SessionFormatError for whatever else keeps it from being read:
    a folder, a pipe, a missing permission or a damaged file.
    """
    if id is not None:
        return manager.load_id(id)
    file = path or manager.latest()
    if file is None:
        raise SessionNotFoundError("No session has been saved yet", id="latest")
    try:
        return manager.load(file)
    except StorageError as error:
        reason = str(error)
        raise SessionFormatError(reason, path=str(file), reason=reason, recovered=0) from error
