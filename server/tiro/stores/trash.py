"""The trash: where deleted sessions wait until it is emptied, in no list, no search and no load.

A session comes back as it was, under its own id, or the next free one where that is taken by now.
"""

from datetime import datetime
from typing import Protocol

import msgspec

from tiro.errors import SessionNotFoundError
from tiro.stores.index import SavedSession


class Deleted(msgspec.Struct, frozen=True):
    """A session in the trash."""

    deleted_at: datetime
    saved: SavedSession


class Restored(msgspec.Struct, frozen=True):
    """A session that came back."""

    id: str
    path: str
    was_id: str
    """Its id before; another one where that was taken by then."""


class Trash(Protocol):
    """The trash of one manager's sessions. What cannot be read or written raises StorageError."""

    def page(self, limit: int | None = 100, offset: int = 0) -> tuple[list[Deleted], int]:
        """What is in it, deleted last first, and how much that is in all."""
        ...

    def restore(self, id: str) -> Restored:
        """Bring the session with this id back, the one deleted last; raises SessionNotFoundError.

        Whatever ends this process meanwhile: the session is saved, or in the trash still.
        """
        ...

    def empty(self, id: str | None = None) -> int:
        """Remove all for good, or all with this id; how many those were."""
        ...

    def drop_older(self, moment: datetime) -> int:
        """Remove for good what was deleted before this moment; how many those were."""
        ...

    def tidy(self) -> None:
        """See that what went into it left nothing behind; never raises."""
        ...


def not_in_trash(id: str) -> SessionNotFoundError:
    """The error for a session that is not in the trash, or not any more."""
    return SessionNotFoundError(f"No session in the trash has the id {id!r}", id=id)
