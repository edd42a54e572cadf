"""The trash of sessions on a shelf, as clients know sessions (`Trash`)."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol

from tiro.session.core import Core
from tiro.stores.about import About
from tiro.stores.index import SavedSession
from tiro.stores.live import Live
from tiro.stores.names import with_suffixes
from tiro.stores.shelf import DeletedRow, RawTrash, SharedShelf
from tiro.stores.store import has_expired
from tiro.stores.trash import Deleted, Restored, not_in_trash


class Home(Protocol):
    """What the trash asks of the manager of the sessions."""

    shelf: SharedShelf
    live: Live

    def now(self) -> datetime:
        """The time of the manager's clock."""
        ...

    def path_of_id(self, id: str) -> Path:
        """What clients call the place of the session with this id."""
        ...

    def as_saved(self, id: str, about: About, expires_at: float | None) -> SavedSession:
        """A session as clients know it."""
        ...


class ShelfTrash:
    """The deleted sessions of one shelf."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def page(self, limit: int | None = 100, offset: int = 0) -> tuple[list[Deleted], int]:
        """As `Trash.page`."""
        rows = self._rows()
        end = None if limit is None else offset + limit
        return [self._deleted(row) for row in rows[offset:end]], len(rows)

    def restore(self, id: str) -> Restored:
        """As `Trash.restore`."""
        key = next((row.key for row in self._rows() if row.id == id), None)
        if key is None:
            raise not_in_trash(id)
        is_live = bool(self._home.live.of_id(id))
        if is_live or not self._raw.restore(key):
            return self._restored(self._insert(key, id), id)
        return self._restored(id, id)

    def empty(self, id: str | None = None) -> int:
        """As `Trash.empty`."""
        return self._remove([row for row in self._raw.rows() if id in (None, row.id)])

    def drop_older(self, moment: datetime) -> int:
        """As `Trash.drop_older`; and what has expired meanwhile goes, too."""
        now = self._home.now()
        return self._remove(
            [
                row
                for row in self._raw.rows()
                if row.deleted_at < moment or has_expired(row.expires_at, now)
            ]
        )

    def tidy(self) -> None:
        """Nothing: a session leaves a shelf whole."""

    @property
    def _raw(self) -> RawTrash:
        return self._home.shelf.trash

    def _rows(self) -> Sequence[DeletedRow]:
        now = self._home.now()
        return [row for row in self._raw.rows() if not has_expired(row.expires_at, now)]

    def _insert(self, key: str, id: str) -> str:
        """Put it on the shelf under the next id that is free; SessionNotFoundError if it is gone.

        It leaves the trash after that: whatever ends this process, it is there at least once.
        """
        kept = self._raw.read(key)
        if kept is None:
            raise not_in_trash(id)
        core = Core()
        kept.restore(core)
        for new_id in with_suffixes(id):
            core.id = new_id
            if not self._home.live.of_id(new_id) and self._home.shelf.insert(core):
                self._raw.remove(key)
                return new_id
        raise AssertionError("suffixes never end")

    def _remove(self, rows: Sequence[DeletedRow]) -> int:
        return sum(self._raw.remove(row.key) for row in rows)

    def _restored(self, id: str, was_id: str) -> Restored:
        return Restored(id, str(self._home.path_of_id(id)), was_id)

    def _deleted(self, row: DeletedRow) -> Deleted:
        return Deleted(row.deleted_at, self._home.as_saved(row.id, row.about, row.expires_at))
