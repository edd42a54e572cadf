"""`ShelfManager`: the sessions of a server in SQLite or on a Redis server, like those in files.

Clients know a session by its id and its path. There are no files here, so a path is only a name:
`<store>/<id>.json`, where nothing lies; real files can still be loaded, and copies written.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from tiro.errors import SessionNotFoundError, StorageError
from tiro.session.core import Core
from tiro.session.session import Session
from tiro.stores.about import About
from tiro.stores.index import SavedSession, Version
from tiro.stores.lock import Holder, held_by, wait_for
from tiro.stores.manager import SessionManager
from tiro.stores.names import check_id
from tiro.stores.notices import Notice
from tiro.stores.shelf import Row, SharedKept, SharedShelf
from tiro.stores.shelf_trash import ShelfTrash
from tiro.stores.shelf_upkeep import ShelfUpkeep
from tiro.stores.store import has_expired
from tiro.stores.trash import Trash
from tiro.stores.upkeep import Upkeep


class ShelfManager(SessionManager):
    """A manager whose sessions are on a shelf; `directory` is what clients call that."""

    def __init__(
        self,
        shelf: SharedShelf,
        directory: Path,
        *,
        on_notice: Callable[[Notice], None] | None = None,
        cache_directory: str | Path | None = None,
        **options: Any,
    ) -> None:
        super().__init__(directory, on_notice=on_notice, cache_directory=cache_directory, **options)
        self.shelf = shelf
        shelf.keys = self
        self._index = _Listing(self)

    def load(self, file: str | Path) -> Session:
        """The session with this path, which is one of ours or a real file's.

        Raises SessionNotFoundError, SessionFormatError, StorageError.
        """
        path = Path(file).absolute()
        if path.parent != self.directory:
            return super().load(path)
        return self._live_from(self._kept_at(path))

    def load_id(self, id: str) -> Session:
        """The saved session with this id; raises as `load`, and InvalidSessionIdError."""
        return self._live_from(self._found(id))

    def read(self, id: str) -> Core:
        """The saved session with this id, to look at; raises as `load_id`."""
        core = Core(self.clock)
        self._found(id).restore(core)
        return core

    def look_at(self, path: str) -> tuple[Core, datetime]:
        """The saved session with this path, to look at, and when it was saved; raises as `load`."""
        core = Core(self.clock)
        self._kept_at(Path(path)).restore(core)
        return core, core.updated

    @property
    def trash(self) -> Trash:
        """As in `SessionManager`."""
        return ShelfTrash(self)

    def delete(self, id: str) -> bool:
        """Remove a saved session for good; False where there is none.

        Live objects of it are no longer stored. Raises SessionInUseError while another process
        answers in it, StorageError, InvalidSessionIdError.
        """
        return self._take_away(id, lambda: self.shelf.delete(id))

    def discard(self, id: str, seen: SavedSession | None = None) -> bool:
        """Move a saved session to the trash; False where there is none. As in `SessionManager`."""
        return self._take_away(id, lambda: self.shelf.trash.put(id, self.now()), seen)

    def delete_expired(self) -> int:
        """Remove all saved sessions whose time is over; how many there were (G4.9)."""
        return self.shelf.delete_expired(self.now())

    def close(self) -> None:
        """Store all that is not stored yet; may be called any number of times."""
        super().close()
        self.shelf.close()

    def id_at(self, path: Path) -> str | None:
        """The id of the session with this path; None where there is none."""
        stem = path.name.removesuffix(path.suffix)
        if self.path_of_id(stem).name == path.name:
            return stem
        return next((row.id for row in self._index.sessions() if row.path == str(path)), None)

    def as_saved(self, id: str, about: About, expires_at: float | None) -> SavedSession:
        """A session on the shelf as clients know it."""
        return SavedSession(
            id=id,
            path=str(self.path_of_id(id)),
            error=None,
            expires_at=expires_at,
            **msgspec.structs.asdict(about),
        )

    def kept(self, id: str) -> SharedKept | None:
        """What is kept under this id, unless it has expired."""
        found = self.shelf.find(id)
        return None if found is None or has_expired(found.expires_at, self.now()) else found

    # Helpers

    def _new_upkeep(self, session: Core) -> Upkeep:
        return ShelfUpkeep(session, self, self.shelf, self.directory)

    def _take_away(
        self, id: str, take: Callable[[], bool], seen: SavedSession | None = None
    ) -> bool:
        if not self.shelf.has(id):
            check_id(id)
            self.live.forget(id)
            return False
        lock = self.shelf.lock(id)
        if not wait_for(lock.try_take):
            raise held_by(lock.holder() or Holder())
        try:
            if seen is not None and not self._index.is_as(seen):
                return False
            with self.live.letting_go(id):
                return take()
        finally:
            lock.release()

    def _live_from(self, kept: SharedKept) -> Session:
        session = self._make(None, None, None)
        upkeep = self.live.upkeep_of(session)
        assert isinstance(upkeep, ShelfUpkeep)
        upkeep.restore(session, kept)
        return session

    def _kept_at(self, path: Path) -> SharedKept:
        id = self.id_at(path)
        kept = None if id is None else self.kept(id)
        if kept is None:
            raise SessionNotFoundError(f"There is no session {str(path)!r}", path=str(path))
        return kept

    def _found(self, id: str) -> SharedKept:
        kept = self.kept(id)
        if kept is None:
            check_id(id)
            raise SessionNotFoundError(f"No saved session has the id {id!r}", id=id)
        return kept

    def _is_there(self, id: str) -> bool:
        """As in files; what has expired makes room (G4.3)."""
        try:
            with self.shelf.hurried():
                found = self.shelf.find(id) if self.shelf.has(id) else None
                return found is not None and not (
                    has_expired(found.expires_at, self.now()) and found.delete()
                )
        except StorageError:
            return False  # a taken id is seen when the session is stored

    def _is_saved(self, id: str) -> bool:
        try:
            return self.shelf.has(id)
        except StorageError:
            return False


class _Listing:
    """The list of saved sessions, asked of the shelf each time."""

    def __init__(self, manager: ShelfManager) -> None:
        self._manager = manager

    def sessions(self) -> list[SavedSession]:
        """All saved sessions, newest first."""
        as_saved = self._manager.as_saved
        return [as_saved(row.id, row.about, row.expires_at) for row in self._rows()]

    def versions(self) -> list[tuple[str, Version | None]]:
        """The path of every session with what tells its version, newest first."""
        path_of = self._manager.path_of_id
        return [(str(path_of(row.id)), _version(row)) for row in self._rows()]

    def expired(self) -> list[SavedSession]:
        """None: they are not listed."""
        return []

    def values_of(self, saved: SavedSession) -> Mapping[str, int]:
        """None: all that a session holds is in its size."""
        return {}

    def is_open(self, saved: SavedSession) -> bool:
        """As in `Listing`: whether another server answers in it."""
        return self._manager.shelf.lock(saved.id).holder() is not None

    def is_as(self, seen: SavedSession) -> bool:
        """As in `Listing`."""
        return seen in self.sessions()

    def close(self) -> None:
        """Nothing: nothing is kept of it."""

    def _rows(self) -> Sequence[Row]:
        return self._manager.shelf.rows(self._manager.now())


def _version(row: Row) -> Version:
    """A session's birth and last change, in the form of a file's signature."""
    return (row.n, int(row.birth, 16) & 0x7FFF_FFFF_FFFF_FFFF, 0), None
