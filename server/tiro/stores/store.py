"""What a store is: six verbs that any object may have, and what all stores of ours share (G4, G5).

    with MemoryStore() as store:
        session = store.create(ttl=3600, metadata={"user": "ada"})
        session.set("task.current", "find the file")
        store.save(session)

Whoever holds a store may share it between threads, and its sessions too (G4.12).
"""

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Protocol, Self, TypeAlias
from uuid import uuid4

from tiro.errors import SessionExistsError, SessionNotFoundError
from tiro.session.core import Core
from tiro.session.session import Session
from tiro.session.times import Clock, utc_now
from tiro.stores.cleanup import Cleanup

CLEANUP_SECONDS = 300.0

Ttl: TypeAlias = float | timedelta | None
"""How long a session lives, from its creation on, in seconds; None, 0 or less: for ever (G4.4)."""


class Store(Protocol):
    """Where sessions live. Any object with these six methods is one (G5.2)."""

    def create(
        self, id: str | None = None, ttl: Ttl = None, metadata: Mapping[str, str] | None = None
    ) -> Session:
        """Make a session that is stored; without an id it gets a UUID.

        Raises SessionExistsError for the id of a session that has not expired (G4.3).
        """
        ...

    def get(self, id: str) -> Session:
        """The session with this id; SessionNotFoundError where there is none or it has expired."""
        ...

    def save(self, session: Session) -> None:
        """Store what has changed in the session since it was read or saved.

        A store that others write to too raises SessionChangedError, with nothing written, when
        somebody did since then.
        """
        ...

    def delete(self, id: str) -> None:
        """Remove the session with this id; an unknown one is no error (G4.8)."""
        ...

    def delete_expired(self) -> int:
        """Remove every session that has expired and no other (G4.9); how many there were."""
        ...

    def close(self) -> None:
        """End the clean-up in the background; the store stays usable (G4.11)."""
        ...


class SharedVerbs(ABC):
    """What all stores of ours have besides their own five verbs.

    That is the clean-up in the background, `close` any number of times, `with`, and an async twin
    of each verb. `clock` says what time it is, for sessions and their expiry.
    """

    def __init__(
        self, cleanup_interval_seconds: float = CLEANUP_SECONDS, clock: Clock = utc_now
    ) -> None:
        self.clock = clock
        self._cleanup = Cleanup(self, cleanup_interval_seconds)

    @abstractmethod
    def create(
        self, id: str | None = None, ttl: Ttl = None, metadata: Mapping[str, str] | None = None
    ) -> Session:
        """As `Store.create`."""

    @abstractmethod
    def get(self, id: str) -> Session:
        """As `Store.get`."""

    @abstractmethod
    def save(self, session: Session) -> None:
        """As `Store.save`."""

    @abstractmethod
    def delete(self, id: str) -> None:
        """As `Store.delete`."""

    @abstractmethod
    def delete_expired(self) -> int:
        """As `Store.delete_expired`."""

    def close(self) -> None:
        """End the clean-up in the background; the store stays usable (G4.11)."""
        self._cleanup.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def async_create(
        self, id: str | None = None, ttl: Ttl = None, metadata: Mapping[str, str] | None = None
    ) -> Session:
        """`create` in a thread."""
        return await asyncio.to_thread(self.create, id, ttl, metadata)

    async def async_get(self, id: str) -> Session:
        """`get` in a thread."""
        return await asyncio.to_thread(self.get, id)

    async def async_save(self, session: Session) -> None:
        """`save` in a thread."""
        await asyncio.to_thread(self.save, session)

    async def async_delete(self, id: str) -> None:
        """`delete` in a thread."""
        await asyncio.to_thread(self.delete, id)

    async def async_delete_expired(self) -> int:
        """`delete_expired` in a thread."""
        return await asyncio.to_thread(self.delete_expired)

    async def async_close(self) -> None:
        """`close` in a thread."""
        await asyncio.to_thread(self.close)


def new_session(
    id: str | None, ttl: Ttl, metadata: Mapping[str, str] | None, clock: Clock
) -> Session:
    """A session as `create` makes it, stored nowhere yet."""
    session = Session(id=id, clock=clock, new_id=lambda: str(uuid4()))
    session.ttl_seconds = _seconds(ttl)
    session.metadata = dict(metadata or {})
    return session


def expires_at(session: Core) -> float | None:
    """The moment after which the session has expired, in seconds since 1970; None: never."""
    ttl = session.ttl_seconds
    return session.created.timestamp() + ttl if ttl is not None and ttl > 0 else None


def has_expired(moment: float | None, now: datetime) -> bool:
    """Whether that moment has passed."""
    return moment is not None and now.timestamp() > moment


def exists(id: str | None) -> SessionExistsError:
    """The error for an id that is taken."""
    return SessionExistsError(f"A session with the id {id!r} exists already", id=id)


def not_found(id: str) -> SessionNotFoundError:
    """The error for a session that is not there, or not any more."""
    return SessionNotFoundError(f"No session has the id {id!r}, or it has expired", id=id)


def _seconds(ttl: Ttl) -> float | None:
    seconds = ttl.total_seconds() if isinstance(ttl, timedelta) else ttl
    return float(seconds) if seconds is not None and 0 < seconds < math.inf else None
