"""What a shelf is: where sessions lie as a snapshot each and the changes since, by number.

Every write says which state it follows on and does nothing when others wrote since. What several
servers share has a lock for their turns besides, and a list.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import NamedTuple, Protocol

from tiro.errors import SessionFormatError
from tiro.session.changes import Change, decode_change
from tiro.session.core import Core
from tiro.session.snapshot import read_snapshot
from tiro.stores.about import About, Heading
from tiro.stores.lock import Holder

SMALL_BYTES = 64_000
"""Changes of up to this size are not folded into a snapshot."""


class Kept(Protocol):
    """One session on a shelf, as it was last seen there; its writes are called one at a time.

    They raise StorageError, and SessionInUseError while another process answers in the session.
    """

    @property
    def expires_at(self) -> float | None:
        """The moment after which it has expired, in seconds since 1970; None: never."""
        ...

    @property
    def snapshot_bytes(self) -> int:
        """The size of the snapshot."""
        ...

    @property
    def changes_bytes(self) -> int:
        """The size of the changes since."""
        ...

    def restore(self, session: Core) -> None:
        """Bring a session to what was read."""
        ...

    def append(self, session: Core, first_n: int, changes: tuple[Change, ...]) -> bool:
        """Add the changes from this number on; False, and nothing done, if others wrote since."""
        ...

    def replace(self, session: Core) -> bool:
        """Write the whole session; False, and nothing done, if others wrote since."""
        ...

    def delete(self) -> bool:
        """Remove it, whatever others wrote to it; False if it is gone, or another has its id."""
        ...


class KeptTexts:
    """What a shelf read of one session: the texts until it is restored, then what they hold."""

    def __init__(self, n: int, texts: tuple[bytes, list[bytes]]) -> None:
        """A snapshot and its changes, up to change `n`."""
        self.heading: Heading | None = None
        self.n = n
        self.snapshot_bytes = len(texts[0])
        self.changes_bytes = sum(map(len, texts[1]))
        self._texts: tuple[bytes, list[bytes]] | None = texts

    def restore(self, session: Core) -> None:
        """Bring a session to what was read; called once. Raises SessionFormatError."""
        assert self._texts is not None
        replay(session, *self._texts, self.n)
        self._texts, self.heading = None, Heading(session)


class Shelf(Protocol):
    """Where sessions are kept. What it cannot read or write raises StorageError."""

    def insert(self, session: Core) -> Kept | None:
        """Keep a new session, all of it; None, and nothing done, where its id is taken."""
        ...

    def find(self, id: str) -> Kept | None:
        """Read the session with this id, also one that has expired."""
        ...

    def delete(self, id: str) -> bool:
        """Remove the session with this id; False where there is none.

        Raises SessionInUseError while another process answers in it.
        """
        ...

    def delete_expired(self, now: datetime) -> int:
        """Remove all that have expired by then; how many those were."""
        ...

    def count(self, now: datetime) -> int:
        """How many there are that have not expired by then."""
        ...

    def close(self) -> None:
        """Let go of files and connections; whatever is called next opens them again."""
        ...


class SharedKept(Kept, Protocol):
    """One session on a shelf that servers share."""

    @property
    def birth(self) -> str:
        """What tells it from a later session of the same id."""
        ...

    @property
    def n(self) -> int:
        """The last change in it."""
        ...

    def is_current(self) -> bool:
        """Whether it is still there as it was last seen; costs little."""
        ...


class Row(NamedTuple):
    """One session in a list, and what tells its versions apart."""

    id: str
    birth: str
    n: int
    about: About
    expires_at: float | None


class Keys(Protocol):
    """Knows what no shelf may hold: the exact values of configured keys (U9.11)."""

    def redact(self, data: bytes) -> bytes:
        """The same JSON without them."""
        ...

    def redact_text(self, text: str) -> str:
        """The same text without them."""
        ...


class NoKeys:
    """Knows none."""

    def redact(self, data: bytes) -> bytes:
        """The same JSON."""
        return data

    def redact_text(self, text: str) -> str:
        """The same text."""
        return text


class TurnLock(Protocol):
    """The lock of one session: servers answer in it in turn (U9.8)."""

    @property
    def renew_seconds(self) -> float | None:
        """How often it has to be renewed while it is held; None: never."""
        ...

    def try_take(self) -> bool:
        """Take it if it is free."""
        ...

    def renew(self) -> None:
        """Go on holding it."""
        ...

    def release(self) -> None:
        """Give it back."""
        ...

    def holder(self) -> Holder | None:
        """Who holds it; None where it is free."""
        ...


class DeletedRow(NamedTuple):
    """A session that was deleted, in a list."""

    key: str
    id: str
    deleted_at: datetime
    expires_at: float | None
    about: About


class RawTrash(Protocol):
    """What was deleted from a shelf; each verb is one step, done whole or not at all."""

    def put(self, id: str, now: datetime) -> bool:
        """Take the session with this id from the shelf; False where there is none."""
        ...

    def rows(self) -> Sequence[DeletedRow]:
        """All that is in it, deleted last first."""
        ...

    def restore(self, key: str) -> bool:
        """Put it on the shelf as it was; False, and nothing done, if it is gone or its id taken."""
        ...

    def read(self, key: str) -> KeptTexts | None:
        """What is kept of it; None where it is gone."""
        ...

    def remove(self, key: str) -> bool:
        """Remove it for good; False where it is gone."""
        ...


class SharedShelf(Protocol):
    """A shelf that servers share."""

    keys: Keys

    busy_seconds: float
    """How long another program may be at it before that is a fault."""

    @property
    def trash(self) -> RawTrash:
        """What was deleted from it."""
        ...

    def insert(self, session: Core) -> SharedKept | None:
        """As `Shelf.insert`."""
        ...

    def find(self, id: str) -> SharedKept | None:
        """As `Shelf.find`."""
        ...

    def has(self, id: str) -> bool:
        """Whether there is a session with this id, also one that has expired."""
        ...

    def delete(self, id: str) -> bool:
        """As `Shelf.delete`."""
        ...

    def delete_expired(self, now: datetime) -> int:
        """As `Shelf.delete_expired`."""
        ...

    def rows(self, now: datetime) -> Sequence[Row]:
        """All that have not expired by then, those saved last first."""
        ...

    def lock(self, id: str) -> TurnLock:
        """The lock of the session with this id."""
        ...

    def hurried(self) -> AbstractContextManager[None]:
        """Within it this thread waits for no other program that has locked what it needs.

        For as long as a session's lock is held: whoever changes the session waits for that.
        """
        ...

    def ping(self) -> None:
        """Raise StorageError where nothing can be read."""
        ...

    def close(self) -> None:
        """As `Shelf.close`."""
        ...


def is_long(kept: Kept) -> bool:
    """Whether its changes should be folded into a new snapshot: now and then, more and more seldom.

    So all saves together cost a small multiple of what was said.
    """
    return kept.changes_bytes > max(SMALL_BYTES, kept.snapshot_bytes)


def replay(session: Core, snapshot: bytes, changes: Iterable[bytes], n: int) -> None:
    """Bring a session to a snapshot and the lines of changes since, the last of number `n`.

    Raises SessionFormatError where they do not belong together.
    """
    stored, trial = read_snapshot(snapshot), Core()
    trial.restore(stored)
    trial = trial.fork()  # what turns out to be damaged leaves the session as it was
    try:
        rows = [decode_change(line) for lines in changes for line in lines.splitlines()]
        for _, change in rows:
            trial.commit(change)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(trial.id, f"A change cannot be read: {error}") from error
    base = stored.fields["journal_n"]
    wanted = range(base + 1, n + 1)  # of any length, where a number is damaged
    missing = max(0, n - base) - len({number for number, _ in rows if number in wanted})
    if missing or len(rows) != n - base:
        raise _damaged(trial.id, f"Changes are missing: {missing} of {n}")
    session.restore(stored)
    for _, change in rows:
        session.commit(change)
    session.n = n


def _damaged(id: str | None, reason: str) -> SessionFormatError:
    return SessionFormatError(f"The session {id!r} is damaged: {reason}", reason=reason)
