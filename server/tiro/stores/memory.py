"""`MemoryStore`: sessions that live as long as the process; the reference for all other stores."""

import threading
from collections.abc import Mapping

from tiro.session.session import Session
from tiro.session.times import Clock, utc_now
from tiro.stores.store import (
    CLEANUP_SECONDS,
    SharedVerbs,
    Ttl,
    exists,
    expires_at,
    has_expired,
    new_session,
    not_found,
)


class MemoryStore(SharedVerbs):
    """Keeps the live objects: `get` returns the same one each time, without a `save` (G4.6)."""

    def __init__(
        self, cleanup_interval_seconds: float = CLEANUP_SECONDS, clock: Clock = utc_now
    ) -> None:
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()
        super().__init__(cleanup_interval_seconds, clock)

    def create(
        self, id: str | None = None, ttl: Ttl = None, metadata: Mapping[str, str] | None = None
    ) -> Session:
        """As `Store.create`."""
        session = new_session(id, ttl, metadata, self.clock)
        with self._lock:
            if self._living(session.get_id()) is not None:
                raise exists(session.id)
            self._sessions[session.get_id()] = session
        return session

    def get(self, id: str) -> Session:
        """As `Store.get`."""
        with self._lock:
            session = self._living(id)
        if session is None:
            raise not_found(id)
        return session

    def keep(self, session: Session) -> Session:
        """The live object of this session's id: the one that is here, or else this one."""
        with self._lock:
            return self._living(session.get_id()) or self._sessions.setdefault(
                session.get_id(), session
            )

    def save(self, session: Session) -> None:
        """Nothing, also for a session of another store (G4.7)."""

    def delete(self, id: str) -> None:
        """As `Store.delete`."""
        with self._lock:
            self._sessions.pop(id, None)

    def forget(self, session: Session) -> None:
        """Remove this very object; another one that has its id by now stays."""
        with self._lock:
            if self._sessions.get(session.get_id()) is session:
                del self._sessions[session.get_id()]

    def delete_expired(self) -> int:
        """As `Store.delete_expired`."""
        with self._lock:
            before = len(self._sessions)
            for id in list(self._sessions):
                self._living(id)
            return before - len(self._sessions)

    def count(self) -> int:
        """How many sessions live here (G5.4)."""
        with self._lock:
            return sum(self._living(id) is not None for id in list(self._sessions))

    def _living(self, id: str) -> Session | None:
        """The session with this id; one that has expired is removed at that moment (G4.5)."""
        session = self._sessions.get(id)
        if session is not None and has_expired(expires_at(session), self.clock()):
            del self._sessions[id]
            return None
        return session
