"""The six verbs over any shelf: what stores have in common that outlive the process.

A shelf keeps each session as a snapshot and the changes since then, by number. A save writes only
the changes that came since the last one, so its cost does not grow with the history; now and then
they are folded into a new snapshot. Every write says which state it follows on, so that a stale
writer is told and never wins.
"""

import threading
from collections.abc import Mapping
from weakref import WeakKeyDictionary

from tiro.errors import SessionChangedError
from tiro.session.changes import Change
from tiro.session.core import Core
from tiro.session.session import Session
from tiro.session.times import Clock, utc_now
from tiro.stores.shelf import Kept, Shelf, is_long
from tiro.stores.store import (
    CLEANUP_SECONDS,
    SharedVerbs,
    Ttl,
    exists,
    has_expired,
    new_session,
    not_found,
)

MOST_CHANGES = 10_000
"""How many changes of an unsaved session are remembered one by one; more are saved as a whole."""


class KeptStore(SharedVerbs):
    """A store over a shelf. `get` returns a new object each time; `save` makes changes last."""

    def __init__(
        self,
        shelf: Shelf,
        cleanup_interval_seconds: float = CLEANUP_SECONDS,
        clock: Clock = utc_now,
    ) -> None:
        self.shelf = shelf
        self._following: WeakKeyDictionary[Core, _Followed] = WeakKeyDictionary()
        self._lock = threading.Lock()
        super().__init__(cleanup_interval_seconds, clock)

    def create(
        self, id: str | None = None, ttl: Ttl = None, metadata: Mapping[str, str] | None = None
    ) -> Session:
        """As `Store.create`."""
        session = new_session(id, ttl, metadata, self.clock)
        self._follow(session, self._insert(session))
        return session

    def get(self, id: str) -> Session:
        """As `Store.get`; raises StorageError, SessionFormatError for what cannot be read."""
        kept = self._living(id)
        if kept is None:
            raise not_found(id)
        session = Session(id=id, clock=self.clock)
        kept.restore(session)
        self._follow(session, kept)
        return session

    def save(self, session: Session) -> None:
        """As `Store.save`; a session that is not of this store is stored as a new one.

        Raises SessionExistsError where such a one's id is taken, SessionNotFoundError for one that
        was deleted meanwhile, StorageError or SessionInUseError (session files that another process
        answers in) where nothing could be written: save it again then.
        """
        with session.lock:
            with self._lock:
                followed = self._following.get(session)
            if followed is None:
                session.get_id()
                self._follow(session, self._insert(session))
            elif not followed.save(session):
                raise self._overtaken(session.get_id())

    def delete(self, id: str) -> None:
        """As `Store.delete`; raises StorageError, SessionInUseError with nothing removed."""
        self.shelf.delete(id)

    def delete_expired(self) -> int:
        """As `Store.delete_expired`."""
        return self.shelf.delete_expired(self.clock())

    def count(self) -> int:
        """How many sessions live here (G5.4)."""
        return self.shelf.count(self.clock())

    def close(self) -> None:
        """End the clean-up, let go of files and connections; the store stays usable (G4.11)."""
        super().close()
        self.shelf.close()

    def _insert(self, session: Core) -> Kept:
        """Keep a new session in the place of none, or of one that has expired (G4.3)."""
        while (kept := self.shelf.insert(session)) is None:
            if self._living(session.id or "") is not None:
                raise exists(session.id)
        return kept

    def _living(self, id: str) -> Kept | None:
        """What is kept under this id; what has expired is removed at that moment (G4.5)."""
        kept = self.shelf.find(id)
        if kept is not None and has_expired(kept.expires_at, self.clock()):
            kept.delete()
            return None
        return kept

    def _follow(self, session: Core, kept: Kept) -> None:
        followed = _Followed(kept, session.n)
        session.observe(followed.take)
        with self._lock:
            self._following[session] = followed

    def _overtaken(self, id: str) -> Exception:
        if self.shelf.find(id) is None:
            return not_found(id)
        return SessionChangedError(
            f"Somebody else saved the session {id!r} since it was read; get it again and repeat"
            " the change",
            id=id,
        )


class _Followed:
    """A live session of a store: what is kept of it, and what has changed since."""

    def __init__(self, kept: Kept, n: int) -> None:
        self._kept = kept
        self._stored_n = n
        self._changes: list[Change] = []
        self._is_long = False

    def take(self, _first_n: int, changes: tuple[Change, ...]) -> None:
        """Remember these changes until they are saved."""
        self._is_long = self._is_long or len(self._changes) >= MOST_CHANGES
        if self._is_long:
            self._changes.clear()
        else:
            self._changes.extend(changes)

    def save(self, session: Core) -> bool:
        """Write what is not stored yet, under the session's lock; False if others wrote since."""
        kept = self._kept
        if session.n == self._stored_n:
            return True
        if self._is_long or is_long(kept):
            is_stored = kept.replace(session)
        else:
            is_stored = kept.append(session, self._stored_n + 1, tuple(self._changes))
        if is_stored:
            self._stored_n, self._is_long = session.n, False
            self._changes.clear()
        return is_stored
