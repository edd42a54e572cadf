"""Every session in SQLite or on a Redis server read: what is damaged, and what can be mended.

What `verify` is to files. Each session is replayed as a load would; what cannot be is put together
from what can be read, and what was there is kept beside. One that is in use stays as it is.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from tiro.errors import SessionFormatError, SessionInUseError, StorageError
from tiro.session.core import Core
from tiro.session.snapshot import StoredSession, read_snapshot
from tiro.stores.journal import header_line, read_journal
from tiro.stores.lock import Holder, held_by, wait_for
from tiro.stores.reading import restore_lenient
from tiro.stores.salvage import salvaged, told_of
from tiro.stores.shelf import TurnLock, replay
from tiro.stores.store import has_expired
from tiro.stores.vacuum import Vacuumed
from tiro.stores.verify import Damage, Finding, Verified, mended, told


class Found(NamedTuple):
    """All that lies under one session's id, unread."""

    id: str
    birth: str
    """What tells it from a later session of the same id."""
    n: int
    """The number of its last change."""
    expires_at: float | None
    snapshot: bytes | None
    changes: Sequence[bytes]
    """The lines of those since the snapshot, save by save."""
    is_listed: bool
    """Whether a list shows it."""


class RawShelf(Protocol):
    """A shelf whose sessions are looked at without being read; StorageError for what it refuses."""

    @property
    def name(self) -> str:
        """What a user calls it."""
        ...

    def problems(self, stamp: str) -> Sequence[Damage]:
        """What is wrong with all of it, apart from the sessions in it."""
        ...

    def places(self) -> Sequence[str]:
        """What finds each session, also those of which only something is left."""
        ...

    def read(self, place: str) -> Found | None:
        """What lies there; None for nothing."""
        ...

    def put(self, found: Found, session: Core | None, stamp: str) -> str | None:
        """Put this session, or none, in the place of what was found; where that is kept now.

        None, and nothing is done, where others wrote meanwhile.
        """
        ...

    def lock(self, id: str) -> TurnLock:
        """The lock of the session with this id."""
        ...

    def vacuum(self, *, now: datetime) -> Vacuumed:
        """Remove what nobody needs."""
        ...

    def unneeded(self, *, now: datetime) -> Vacuumed:
        """What a vacuum would remove."""
        ...


def verify_shelf(shelf: RawShelf, *, now: datetime) -> Verified:
    """Read every session of a shelf.

    Raises SessionFormatError where a newer Tiro wrote it, StorageError where it is out of reach.
    """
    return _looked(shelf, now, told)


def repair_shelf(shelf: RawShelf, *, now: datetime) -> Verified:
    """The same, and mend what can be."""
    return _looked(shelf, now, mended)


def _looked(shelf: RawShelf, now: datetime, tell: Callable[[Damage], Finding]) -> Verified:
    look = _Look(shelf, now)
    findings = list(map(tell, look.at_all()))
    return Verified(look.sessions, findings)


def salvaged_session(found: Found) -> Core | None:
    """What can be read of a session, as one that follows on it; None for nothing."""
    data = found.snapshot or b""
    stored = _stored(data)
    is_worth_keeping = stored is not None
    if stored is None:
        salvage = salvaged(data)
        is_worth_keeping = salvage.is_worth_keeping
        stored = read_snapshot(salvage.encoded(found.id))
    stored.fields["id"] = found.id
    base = stored.fields["journal_n"]
    journal = read_journal(header_line(found.id, base) + b"".join(found.changes), base or None)
    if not is_worth_keeping and not journal.changes:
        return None
    core = Core()
    restore_lenient(core, stored, journal.changes)
    core.n = max(core.n, found.n) + 1  # who still has the damaged one at hand is told of the change
    return core


class _Look:
    """One look through a shelf."""

    def __init__(self, shelf: RawShelf, now: datetime) -> None:
        self._shelf, self._now = shelf, now
        self._stamp = f"{now.astimezone():%Y%m%d-%H%M%S}"
        self.sessions = 0

    def at_all(self) -> Iterator[Damage]:
        """What is wrong with the shelf, then with the sessions on it."""
        yield from self._shelf.problems(self._stamp)
        for place in self._shelf.places():
            try:
                found = self._shelf.read(place)
            except StorageError as error:
                yield Damage(f"{self._shelf.name}, {place!r}", str(error))
                continue
            if found is not None and not has_expired(found.expires_at, self._now):
                self.sessions += 1
                yield from self._at_session(place, found)

    def _at_session(self, place: str, found: Found) -> Iterator[Damage]:
        name = f"{self._shelf.name}, session {found.id!r}"
        error = _error(found)
        if error is not None:
            reason = str(error.data.get("reason", error))
            if error.data.get("is_newer"):
                yield Damage(name, reason)
                return
            remedy = "what can be read is put in its place, and what is there is kept aside"
            yield Damage(
                name, f"{reason[:1].lower()}{reason[1:]}", remedy, lambda: self._mend(place)
            )
        elif not found.is_listed:
            yield Damage(name, "no list shows it", "it is listed again", lambda: self._mend(place))

    def _mend(self, place: str) -> str:
        shelf, found = self._shelf, self._shelf.read(place)
        if found is None:
            return "it is gone by now"
        lock = shelf.lock(found.id)
        if not wait_for(lock.try_take):
            raise held_by(lock.holder() or Holder())
        try:
            found = shelf.read(place) or found
            session = salvaged_session(found)
            kept = shelf.put(found, session, self._stamp)
        finally:
            lock.release()
        if kept is None:
            raise SessionInUseError("Others wrote to it just now; try again")
        if session is None:
            return f"nothing of it could be read: what was there is kept as {kept!r}"
        data = found.snapshot or b""
        return told_of(session, repr(kept), () if _stored(data) else salvaged(data).lost)


def _stored(data: bytes) -> StoredSession | None:
    try:
        return read_snapshot(data)
    except (SessionFormatError, RecursionError):
        return None


def _error(found: Found) -> SessionFormatError | None:
    """Why a session cannot be loaded."""
    if found.snapshot is None:
        reason = "What was said before its last changes is gone"
        return SessionFormatError(reason, reason=reason)
    try:
        replay(Core(), found.snapshot, found.changes, found.n)
    except SessionFormatError as error:
        return error
    except RecursionError:
        reason = "The JSON is nested too deeply"
        return SessionFormatError(reason, reason=reason)
    return None
