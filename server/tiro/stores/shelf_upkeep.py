"""Keeps one live session of a server on a shelf: the counterpart of `autosave` for files.

Each change is stored before its answer goes out. What others wrote is taken in; where both sides
wrote, both are kept, ours under a new id. A shelf that is out of reach fails no change: the session
goes on in memory, the user is told once, and all is stored when the shelf is back (U9.5, U9.8).
"""

import logging
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from tiro.errors import SessionFormatError, SessionInUseError, StorageError
from tiro.session.changes import Change
from tiro.session.core import Core
from tiro.session.history import time_id
from tiro.session.json_text import encode
from tiro.stores.lock import Holder, held_by, never, wait_for
from tiro.stores.names import with_suffixes
from tiro.stores.shelf import SharedKept, SharedShelf, TurnLock, is_long
from tiro.stores.upkeep import forget_lost_agent

IDLE_SECONDS = 0.25
RETRY_SECONDS = 1.0
REFUSED = (StorageError, SessionFormatError)
"""What a shelf raises that cannot be written: it is out of reach, or a newer Tiro's."""
PAUSE_SECONDS = 0.1
"""Between two attempts while another program is at the shelf."""

log = logging.getLogger(__name__)


class Home(Protocol):
    """What the upkeep of a session asks of its manager."""

    autosave: bool

    def now(self) -> datetime:
        """The time of the manager's clock."""
        ...

    def told(self, reason: str, session: Core, detail: dict[str, Any]) -> None:
        """Tell the user something about where the session is stored; never raises."""
        ...

    def restored(self, session: Core) -> None:
        """Finish a session that was just read."""
        ...

    def path_of_id(self, id: str) -> Path:
        """What clients call the place of the session with this id."""
        ...

    def schedule(self, upkeep: Any, session: Core) -> None:
        """Have `run` called when it is due."""
        ...


class ShelfUpkeep:
    """What is stored of one live session, and how far that is behind it."""

    def __init__(self, session: Core, home: Home, shelf: SharedShelf, directory: Path) -> None:
        self.directory = directory
        self.saved_at: datetime | None = None
        self.outputs = None  # a shelf has no files
        self._session = weakref.ref(session)
        self._home = home
        self._shelf = shelf
        self._kept: SharedKept | None = None
        self._id: str | None = None
        """The id under which it is kept."""
        self._wanted: str | None = None
        """The id that it had before one was looked for that is free."""
        self._stored_n = 0
        self._holds = 0
        self._lock: TurnLock | None = None
        self._renew_at = 0.0
        self._quiet = 0
        self._is_detached = False
        self._is_failing = False
        self._was_folded = False
        """A new snapshot was tried: it is not again before there is more to fold."""
        self._is_at_rest = False
        """It was brought to rest: nothing is tried again before the next change."""
        self._retry_at = 0.0
        self._busy_since: float | None = None
        """Since when another program keeps us from storing, which is not told yet."""
        self._last_change = 0.0
        session.observe(self._changed)

    @property
    def path(self) -> Path | None:
        """What clients call the place of the session; None before anything of it is stored."""
        return None if self._id is None else self._home.path_of_id(self._id)

    def is_stored(self, session: Core) -> bool:
        """Whether everything in the session survives a kill of this process."""
        with session.lock:
            return self._kept is not None and self._stored_n == session.n

    def is_gone(self) -> bool:
        """Whether it was stored and is not there any more: somebody deleted it."""
        kept, id = self._kept, self._id
        with suppress(StorageError):
            return kept is not None and id is not None and not self._shelf.has(id)
        return False

    def stored_bytes(self) -> int:
        """The size of what is stored of it."""
        kept = self._kept
        return 0 if kept is None else kept.snapshot_bytes + kept.changes_bytes

    def restore(self, session: Core, kept: SharedKept) -> None:
        """Restore the session from what was read, and keep it there from now on."""
        with session.lock:
            self._take(session, kept)
            self._id, self.saved_at = session.id, session.updated

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Changes made inside are not stored: they come from the shelf, or are stored with all."""
        self._quiet += 1
        try:
            yield
        finally:
            self._quiet -= 1

    def detach(self, session: Core) -> None:
        """Let go for good: whatever happens to the session is no longer stored."""
        with session.lock:
            self._is_detached, self._is_failing = True, False
            self._kept = self._id = None
            self._free()

    # Taking turns with other processes (U9.8)

    def enter(self, session: Core, is_given_up: Callable[[], bool] = never) -> None:
        """Take the lock, waiting up to a second, and see what others wrote meanwhile.

        Raises SessionInUseError (with `pid` and `host`) while another process holds it.
        """

        def take() -> bool:
            with session.lock, self._shelf.hurried():
                if not self._holds:
                    if not self._take_lock(session):
                        return False
                    try:
                        self._catch_up(session)
                    except BaseException:
                        self._free()
                        raise
                self._holds += 1
                return True

        if not wait_for(take, is_given_up=is_given_up):
            raise held_by(self._holder())

    def leave(self, session: Core) -> None:
        """Give the lock back."""
        with session.lock:
            self._holds -= 1
            if not self._holds:
                self._free()

    def name_holder(self, session: Core) -> None:
        """Nothing: who takes the lock leaves its name with it."""

    def sync(self, session: Core) -> None:
        """Nothing: what the shelf has answered is there for good."""

    def read_news(self, session: Core) -> SharedKept | None:
        """What others wrote while nothing goes on here; raises StorageError."""
        kept, id = self._kept, self._id
        if kept is None or id is None or self._is_busy(session) or kept.is_current():
            return None
        if self._shelf.lock(id).holder() is not None:
            return None  # while another process has its turn; at its end there is more to see
        return self._shelf.find(id)

    def take_news(self, session: Core, news: SharedKept) -> None:
        """Take in what was just read, if it is still what stands there; raises StorageError."""
        with session.lock, self._shelf.hurried():
            kept = self._kept
            if kept is None or self._is_busy(session) or news.birth != kept.birth:
                return
            if not news.is_current():
                return
            try:
                self._take_over(session, news)
            except SessionFormatError as error:
                log.warning("What others wrote cannot be read: %s", error)

    # Storing at other times than at a change

    def save(self, session: Core) -> Path:
        """Store all that is not stored yet, as soon as no other program keeps us from it.

        Raises StorageError, SessionInUseError.
        """
        self._store_now(session, self._shelf.busy_seconds)
        assert self.path is not None
        return self.path

    def finish(self, session: Core) -> None:
        """Store what a session at rest should have stored; never raises."""
        if self._home.autosave and not self._is_detached and self._has_anything(session):
            with suppress(*REFUSED, SessionInUseError):
                self._store_now(session, 0)
        self._is_at_rest = not self._is_failing
        if self._is_failing:
            self._home.schedule(self, session)

    def due(self) -> float | None:
        """When `run` has something to do, by the monotonic clock; None for nothing."""
        times = []
        if self._is_at_rest:
            return None
        if self._is_failing and self._home.autosave:
            times.append(self._retry_at)
        elif self._kept is not None and not self._was_folded and is_long(self._kept):
            times.append(self._last_change + IDLE_SECONDS)
        if self._lock is not None and self._lock.renew_seconds is not None:
            times.append(self._renew_at)
        return min(times, default=None)

    def run(self, session: Core, now: float) -> None:
        """Do what is due: renew the lock, try again to store, write a new snapshot when idle."""
        lock = self._lock
        if lock is not None and lock.renew_seconds is not None and now >= self._renew_at:
            self._renew_at = now + lock.renew_seconds
            with suppress(StorageError):
                lock.renew()
            with session.lock:
                if self._lock is not lock:  # it was given back meanwhile
                    _release(lock)
        if self._is_failing and now >= self._retry_at:
            self._retry(session)
        elif now >= self._last_change + IDLE_SECONDS:
            with session.lock, self._shelf.hurried():
                self._fold(session)

    # What follows runs under the session's lock. First: storing a change.

    def _changed(self, first_n: int, changes: tuple[Change, ...]) -> None:
        session = self._session()
        if session is not None:
            forget_lost_agent(session, changes)
        if session is None or self._quiet or self._is_detached or not self._home.autosave:
            return
        self._last_change = time.monotonic()
        self._is_at_rest = self._was_folded = False
        if not self._is_failing:
            try:
                with self._shelf.hurried():
                    self._store(session, first_n, changes)
            except REFUSED as error:
                self._failed(session, error)
            except Exception as error:  # a fault of ours must not undo the change just made
                log.exception("A change could not be stored")
                fault = f"A fault of Tiro, {type(error).__name__}; its log tells more"
                self._failed(session, StorageError(fault))
        if self.due() is not None:
            self._home.schedule(self, session)

    def _store(self, session: Core, first_n: int, changes: tuple[Change, ...]) -> None:
        kept = self._kept
        if kept is None or first_n != self._stored_n + 1:
            if self._has_anything(session):
                self._store_all(session)
        elif kept.append(session, first_n, changes):
            self._worked(session)
        else:
            self._overtaken(session)

    def _store_now(self, session: Core, patience: float) -> None:
        until = time.monotonic() + patience
        while True:
            self.enter(session)
            try:
                with session.lock, self._shelf.hurried():
                    self._store_all(session)
                return
            except REFUSED as error:
                if not _is_locked(error) or time.monotonic() >= until:
                    self._failed(session, error)
                    raise
            finally:
                self.leave(session)
            time.sleep(PAUSE_SECONDS)

    def _store_all(self, session: Core) -> None:
        """Store the session whole, if anything of it is not stored yet."""
        if self._kept is None:
            self._claim(session)
        elif session.n == self._stored_n and not self._is_failing:
            return
        elif self._kept.replace(session):
            self._worked(session)
        else:
            self._overtaken(session)

    def _overtaken(self, session: Core) -> None:
        """What is kept is not what we saw last, and we have changes of our own: keep both sides."""
        assert self._kept is not None
        found = self._shelf.find(session.id or "")
        if found is None:
            self._claim(session)  # somebody deleted it while we went on
        elif found.birth == self._kept.birth and found.n <= self._stored_n:
            self._kept = found  # the shelf lost what it had answered; all of it is here
            if not found.replace(session):
                raise StorageError(f"The session {session.id!r} is changed by others all the time")
            self._worked(session)
        else:
            self._claim(session, skip=1)

    def _claim(self, session: Core, skip: int = 0) -> None:
        """Keep the session as a new one, under the first free id."""
        self._wanted = wanted = self._wanted or session.id
        self._kept, before = None, session.id or time_id(self._home.now())
        for id in islice(with_suffixes(before), skip, None):
            if session.id != id:
                with self.silent():
                    session.change(id=id)
            kept = self._shelf.insert(session)
            if kept is not None:
                break
        self._kept, self._id, self._wanted = kept, session.id, None
        if self._holds:
            self._free()
            self._take_lock(session)
        self._worked(session)
        if wanted is not None and wanted != session.id:
            self._home.told("renamed", session, {"old_id": wanted, "path": str(self.path)})

    # What others wrote

    def _catch_up(self, session: Core) -> None:
        """See what others wrote before anything is changed here."""
        kept = self._kept
        if kept is None or self._is_failing:
            return
        try:
            if kept.is_current():
                return
            found = self._shelf.find(self._id or "")
            if found is None:
                return  # it was deleted; the next change stores it anew
            if session.n != self._stored_n or found.birth != kept.birth or found.n < kept.n:
                if self._home.autosave:  # else ours wait for an explicit save
                    self._overtaken(session)
            else:
                self._take_over(session, found)
        except StorageError as error:
            self._failed(session, error)
        except SessionFormatError as error:
            log.warning("The session could not be read again: %s", error)

    def _take_over(self, session: Core, found: SharedKept) -> None:
        before = encode(session.snapshot())
        self._take(session, found)
        if encode(session.snapshot()) != before:
            detail = {"dropped": 0, "bad": 0, "missing": 0}
            self._home.told("changed_on_disk", session, detail)

    def _take(self, session: Core, found: SharedKept) -> None:
        with self.silent():
            found.restore(session)
        self._home.restored(session)
        self._kept, self._stored_n, self._was_folded = found, session.n, False

    # The lock

    def _take_lock(self, session: Core) -> bool:
        """Take the lock if it is free. Where none can be had, the numbers of changes must do."""
        if self._id is None or self._is_failing or not self._home.autosave:
            return True
        lock = self._shelf.lock(self._id)
        try:
            if not lock.try_take():
                return False
        except StorageError as error:  # it may be taken all the same: it is given back, too
            log.warning("No lock can be had: %s", error)
        self._lock, self._is_at_rest = lock, False
        if lock.renew_seconds is not None:
            self._renew_at = time.monotonic() + lock.renew_seconds
            self._home.schedule(self, session)
        return True

    def _free(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            _release(lock)

    def _holder(self) -> Holder:
        with suppress(StorageError):
            return self._shelf.lock(self._id or "").holder() or Holder()
        return Holder()

    # What went wrong, and what went well again

    def _retry(self, session: Core) -> None:
        self._try_later()
        try:
            with self._shelf.hurried():
                self._shelf.ping()  # nobody waits for the session's lock meanwhile
                with session.lock:
                    if self._is_failing:
                        self._store_all(session)
        except REFUSED as error:
            log.info("Still out of reach: %s", error)
            self._failed(session, error)

    def _failed(self, session: Core, error: StorageError | SessionFormatError) -> None:
        """Try again later, and tell it; where another program is at it, only after a while."""
        self._try_later()
        if _is_locked(error):
            self._retry_at = time.monotonic() + PAUSE_SECONDS
            self._busy_since = self._busy_since or time.monotonic()
            if time.monotonic() < self._busy_since + self._shelf.busy_seconds:
                self._home.schedule(self, session)
                return
            self._try_later()
        reason = error.data.get("reason") or str(error)
        detail = {"path": str(self.path or self.directory), "errno": "EIO", "reason": reason}
        self._home.told("save_failed", session, detail)
        self._home.schedule(self, session)

    def _try_later(self) -> None:
        self._is_failing, self._retry_at = True, time.monotonic() + RETRY_SECONDS

    def _worked(self, session: Core) -> None:
        self._stored_n, self.saved_at = session.n, self._home.now()
        self._is_failing, self._busy_since = False, None
        self._home.told("save_resumed", session, {})

    def _fold(self, session: Core) -> None:
        """Write a new snapshot where the changes since the last one are many."""
        if self._kept is None or self._is_failing or not is_long(self._kept):
            return
        self._was_folded = True
        if session.n != self._stored_n:
            return
        try:
            if not self._kept.replace(session):
                log.info("Others wrote to the session meanwhile")
        except StorageError as error:
            self._failed(session, error)

    def _is_busy(self, session: Core) -> bool:
        return self._holds > 0 or self._is_failing or session.n != self._stored_n

    def _has_anything(self, session: Core) -> bool:
        return self._id is not None or bool(session.newest_first or session.archive_rows)


def _is_locked(error: StorageError | SessionFormatError) -> bool:
    """Whether another program is at the shelf, and likely to be done soon."""
    return error.data.get("errno") == "EBUSY"


def _release(lock: TurnLock) -> None:
    with suppress(StorageError):
        lock.release()
