"""`HybridStore`: a memory store in front of one that lasts, kept in step with it (G5.3).

What is read once stays a live object. A save goes through to the store behind at once, or a little
later together with others; while that one is out of reach, saves wait in memory, up to a bound,
and are made up for in the background as soon as it is back.
"""

import logging
import threading
import time
from collections.abc import Mapping

from tiro.errors import (
    SessionChangedError,
    SessionExistsError,
    SessionFormatError,
    SessionInUseError,
    SessionNotFoundError,
    StorageError,
)
from tiro.session.session import Session
from tiro.stores.memory import MemoryStore
from tiro.stores.schedule import Schedule
from tiro.stores.store import (
    CLEANUP_SECONDS,
    SharedVerbs,
    Store,
    Ttl,
    exists,
    expires_at,
    has_expired,
)

RETRY_SECONDS = 1.0
MOST_WAITING = 1_000
MOST_REFUSALS = 3
"""So many StorageErrors in a row, and it is the store behind that is out of reach."""
_TURNS = 64

_OVERTAKEN = (SessionChangedError, SessionExistsError, SessionNotFoundError)
"""Others have changed it, taken its id or deleted it: a save that is lost, and has to be told."""
_REFUSED = (StorageError, SessionInUseError, SessionFormatError)
"""It cannot be written now: it waits on."""

log = logging.getLogger(__name__)


class HybridStore(SharedVerbs):
    """`back` is where sessions last; closing this store closes both.

    With `write_behind_seconds` a save is answered before it lasts: a process that is killed loses
    what is younger than that. At most `most_waiting` sessions wait; the next save waits itself.
    What others did to a session meanwhile is told by its next `save` or `get`.
    """

    def __init__(
        self,
        front: MemoryStore,
        back: Store,
        *,
        write_behind_seconds: float | None = None,
        retry_seconds: float = RETRY_SECONDS,
        most_waiting: int = MOST_WAITING,
        cleanup_interval_seconds: float = CLEANUP_SECONDS,
    ) -> None:
        self._front, self._back = front, back
        self._delay_seconds = write_behind_seconds
        self._retry_seconds = retry_seconds
        self._most_waiting = most_waiting
        self._lock = threading.Lock()
        self._turns = [threading.RLock() for _ in range(_TURNS)]
        """By an id's hash: who makes, deletes or writes what waits does so in turn."""
        self._waiting: dict[str, _Waiting] = {}
        """By id: what the store behind does not have yet."""
        self._untold: dict[str, Exception] = {}
        self._due = 0.0
        self._schedule = Schedule()
        super().__init__(cleanup_interval_seconds, front.clock)

    @property
    def waiting(self) -> int:
        """How many sessions the store behind does not have as they are here."""
        with self._lock:
            return len(self._waiting)

    def create(
        self, id: str | None = None, ttl: Ttl = None, metadata: Mapping[str, str] | None = None
    ) -> Session:
        """As `Store.create`; while the store behind is out of reach, of what is here."""
        with self._turn(id):
            waiting = self._waiting_of(id)
            if waiting and not has_expired(expires_at(waiting.session), self.clock()):
                raise exists(id)
            try:
                session = self._back.create(id, ttl, metadata)
                self._front.delete(session.get_id())  # others deleted it: this is another one
                return self._front.keep(session)
            except StorageError as error:
                log.warning("Made in memory for now: %s", error)
                session = self._front.create(id, ttl, metadata)
                self._wait_for_back(session, self._retry_seconds)
                return session

    def get(self, id: str) -> Session:
        """As `Store.get`: the same live object as long as nobody else changed the session."""
        self._tell(id)
        try:
            return self._front.get(id)
        except SessionNotFoundError:
            return self._front.keep(self._back.get(id))

    def save(self, session: Session) -> None:
        """As `Store.save`; StorageError only where too many sessions wait already.

        What else the store behind raises is raised here, where it is saved at once.
        """
        self._tell(session.get_id())
        is_full = self.waiting >= self._most_waiting
        if self._delay_seconds is not None and not is_full:
            self._wait_for_back(session, self._delay_seconds)
            return
        try:
            self._write(session)
        except StorageError as error:
            if is_full:
                raise
            log.warning("Kept in memory for now: %s", error)
            self._wait_for_back(session, self._retry_seconds)

    def delete(self, id: str) -> None:
        """As `Store.delete`; StorageError, and nothing is done, while `back` is out of reach.

        Likewise SessionInUseError, where `back` raises it.
        """
        with self._turn(id):
            self._back.delete(id)
            with self._lock:
                self._waiting.pop(id, None)
                self._untold.pop(id, None)
            self._front.delete(id)

    def delete_expired(self) -> int:
        """As `Store.delete_expired`."""
        here = self._front.delete_expired()
        return max(here, self._back.delete_expired())

    def flush(self) -> None:
        """Write all that waits, as far as that can be done now; the rest waits on.

        Raises the first StorageError, SessionInUseError or SessionFormatError that one met.
        """
        with self._lock:
            ids = list(self._waiting)
        refusal, in_a_row = None, 0
        for id in ids:
            try:
                self._write_waiting(id)
                in_a_row = 0
            except _REFUSED as error:
                refusal = refusal or error
                in_a_row += isinstance(error, StorageError)
                if in_a_row >= MOST_REFUSALS:
                    break
        if refusal is not None:
            raise refusal

    def count(self) -> int:
        """How many sessions live here (G5.4); at least those in memory.

        Where the store behind is out of reach, or does not count, only those.
        """
        count = getattr(self._back, "count", None)
        try:
            return max(self._front.count(), count() if count is not None else 0)
        except StorageError:
            return self._front.count()

    def close(self) -> None:
        """End what goes on in the background and write all that waits; the store stays usable.

        Raises what `flush` does where that cannot be done: it still waits then.
        """
        super().close()
        self._schedule.close()
        self._schedule = Schedule()
        try:
            self.flush()
        finally:
            self._front.close()
            self._back.close()

    def due(self) -> float | None:
        """When the background has something to write, by the monotonic clock."""
        with self._lock:
            return self._due if self._waiting else None

    def run(self, now: float) -> None:
        """Write all that waits; while that cannot be done, try again later."""
        try:
            self.flush()
        except Exception as error:  # a store of somebody else's making may raise anything
            with self._lock:
                self._due = now + self._retry_seconds
            if not isinstance(error, _REFUSED):
                raise
            log.info("Still not written: %s", error)

    def _wait_for_back(self, session: Session, seconds: float) -> None:
        with self._lock:
            if not self._waiting:
                self._due = time.monotonic() + seconds
            self._waiting[session.get_id()] = _Waiting(session)
        self._schedule.add(id(self), self)

    def _write_waiting(self, id: str) -> None:
        """Write what waits under this id, if it still does; what was overtaken is told later."""
        with self._turn(id):
            waiting = self._waiting_of(id)
            if waiting is None:
                return
            try:
                self._write(waiting.session)
            except _OVERTAKEN as error:
                if not has_expired(expires_at(waiting.session), self.clock()):
                    log.warning("Not saved: %s", error)
                    with self._lock:
                        self._untold[id] = error
            except _REFUSED:
                with self._lock:  # the next time, all others come first
                    if self._waiting.get(id) is waiting:
                        self._waiting[id] = self._waiting.pop(id)
                raise

    def _write(self, session: Session) -> None:
        """Save what is here in the store behind; what others overtook is not to be had here."""
        id = session.get_id()
        waiting = self._waiting_of(id)
        try:
            self._back.save(session)
        except _OVERTAKEN:
            self._front.forget(session)
            self._end_wait(id, waiting)
            raise
        self._end_wait(id, waiting)

    def _turn(self, id: str | None) -> threading.RLock:
        return self._turns[hash(id) % _TURNS]

    def _waiting_of(self, id: str | None) -> "_Waiting | None":
        with self._lock:
            return self._waiting.get(id or "")

    def _end_wait(self, id: str, waiting: "_Waiting | None") -> None:
        """It has been written, unless it changed again meanwhile and so waits anew."""
        with self._lock:
            if waiting is not None and self._waiting.get(id) is waiting:
                del self._waiting[id]

    def _tell(self, id: str) -> None:
        """Raise what the background could not tell anybody, once."""
        with self._lock:
            error = self._untold.pop(id, None)
        if error is not None:
            raise error


class _Waiting:
    """A session that waits to be written; another one each time that it is saved."""

    def __init__(self, session: Session) -> None:
        self.session = session
