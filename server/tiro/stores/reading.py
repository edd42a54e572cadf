"""What the files of a session say: the snapshot, and the journal replayed on it.

`read_session` is the one way to read them, for a load, for a second look after another process
wrote, for an outside edit and for the list (U9). It changes nothing, and needs no lock unless
somebody writes without a pause.
"""

import errno
import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from tiro.errors import SessionFormatError, SessionNotFoundError, StorageError
from tiro.session.changes import Add, Change, Evict, Set
from tiro.session.core import Core
from tiro.session.large import put_back
from tiro.session.messages import Message
from tiro.session.snapshot import StoredSession, read_snapshot
from tiro.session.times import from_rfc3339
from tiro.stores.blobs import Held, blobs_beside, nothing, read_blob, referred_to
from tiro.stores.disk import Disk, Signature, read_file, signature_at
from tiro.stores.journal import Journal, JournalText, read_journal
from tiro.stores.lock import wait_for

SNAPSHOT_ENDING = ".json"
JOURNAL_ENDING = ".journal"
_READ_ATTEMPTS = 5
READ_SECONDS = 10.0
"""How long one that is written without a pause is tried to be read."""


class Reading(msgspec.Struct):
    """What the files of a session said when they were read."""

    path: Path
    stored: StoredSession
    changes: list[tuple[int, Change]]
    """What the journal adds to the snapshot."""
    snapshot: Signature
    journal: Signature | None
    journal_size: int
    """The length of the journal's whole lines."""
    bad: int
    """Journal lines that could not be used."""

    @property
    def bytes(self) -> int:
        """The size of both files."""
        return self.snapshot.size + (self.journal.size if self.journal else 0)

    def restore(
        self,
        core: Core,
        missing: Sequence[Message] = (),
        held: Held = nothing,
    ) -> "Restored":
        """Bring `core` to what was read, with the large values that lie in files of their own.

        `missing` are messages that neither file holds, put between snapshot and journal; `held`
        has large values by their hashes, for those whose files cannot be read. Whoever observes
        the session is told of the replay, so the one who calls does not listen.
        """
        lost, rescued = self._put_back(held)
        restored = self.restore_stored(core, missing)
        return msgspec.structs.replace(restored, missing=len(lost), rescued=len(rescued))

    def restore_stored(self, core: Core, missing: Sequence[Message] = ()) -> "Restored":
        """The same with only the beginnings of large values: all that a list needs."""
        return restore_lenient(core, self.stored, self.changes, missing)

    def _put_back(self, held: Held) -> tuple[set[str], set[str]]:
        """Read the large values; the names of those that are missing, and that only `held` has."""
        blobs, missing, rescued = blobs_beside(self.path.parent), set[str](), set[str]()

        def read(name: str) -> str | None:
            value = read_blob(blobs / name)
            if value is None and (value := held(name)) is not None:
                rescued.add(name)
            return value

        for rows in (self.stored.messages, self.stored.archive):
            for index, message in enumerate(rows):
                if message.metadata is not None:
                    rows[index], lost = put_back(message, read)
                    missing.update(lost)
        return missing, rescued

    def keep_rules(self, rules: Sequence[Any]) -> None:
        """Leave these permissions as they are, whatever the files give."""
        self.stored.fields["rules"] = [*rules]
        self.changes = [(n, _without_rules(change)) for n, change in self.changes]

    def missing_from(self, core: Core) -> list[Message]:
        """Messages of `core` that are younger than an older file somebody put back."""
        next_seq = self.stored.fields["next_seq"]
        added = {c.message.seq for _, c in self.changes if isinstance(c, Add)}
        rows = [*core.archive_rows, *core.oldest_first()]
        return [m for m in rows if (m.seq or 0) >= next_seq and m.seq not in added]

    def contradicts(self, core: Core) -> bool:
        """Whether a message here has another one's number, as where two went on from one file.

        An edit by hand leaves the time of a message, and one that it adds has none.
        """
        added = [change.message for _, change in self.changes if isinstance(change, Add)]
        ours = {m.seq: m for m in (*core.archive_rows, *core.newest_first)}
        return any(
            (mine := ours.get(theirs.seq)) is not None
            and theirs.timestamp is not None
            and mine.timestamp != theirs.timestamp
            and mine.content != theirs.content
            for theirs in (*self.stored.archive, *self.stored.messages, *added)
        )

    @property
    def expires_at(self) -> float | None:
        """The moment after which the session has expired, in seconds since 1970; None: never."""
        fields = self.stored.fields
        created, ttl = from_rfc3339(fields["created_at"]), fields["ttl_seconds"]
        return created.timestamp() + ttl if created and ttl and ttl > 0 else None

    def saved_at(self, core: Core) -> datetime:
        """When the session that was restored from here was stored last."""
        return max(core.updated, from_rfc3339(self.stored.timestamp) or core.updated)

    @property
    def last_n(self) -> int:
        """The number of the last change in the files."""
        n: int = self.changes[-1][0] if self.changes else self.stored.fields["journal_n"]
        return n


class Restored(msgspec.Struct, frozen=True):
    """How restoring a session went."""

    dropped: int
    """Changes that spoke of messages which somebody's edit took away."""
    was_pruned: bool
    """Whether the files held more messages than max_history allows."""
    missing: int = 0
    """Large values that are not there any more."""
    rescued: int = 0
    """Large values that only the session in memory still had."""

    def detail(self, bad: int) -> dict[str, int]:
        """What a notice says of it; `bad` is the number of unusable journal lines."""
        return {"dropped": self.dropped, "bad": bad, "missing": self.missing}


def restore_lenient(
    core: Core,
    stored: StoredSession,
    changes: Iterable[tuple[int, Change]],
    missing: Sequence[Message] = (),
) -> Restored:
    """Bring `core` to a snapshot and the changes since, as far as these fit what they speak of.

    `missing` are messages to be put between the two.
    """
    dropped = 0
    core.restore(stored)
    for message in missing:
        core.commit(Add(message, ""))
    core.n = stored.fields["journal_n"]
    for n, change in changes:
        if not _replay(core, change):
            dropped += 1
        core.n = n
    if seqs := core.over_limit():
        n = core.n
        core.commit(Evict(seqs, ""))
        core.n = n  # no change of its own: whoever reads the files does the same
    return Restored(dropped, bool(seqs))


def beside(path: Path, ending: str) -> Path:
    """The path of what lies beside a snapshot: its journal, the name of who holds its lock."""
    return path.with_name(path.name.removesuffix(SNAPSHOT_ENDING) + ending)


def values_of(path: Path) -> set[str]:
    """The names of all large values that a session's two files refer to, or might.

    Raises OSError, and so where there is no snapshot.
    """
    in_journal = referred_to(_read_journal_file(beside(path, JOURNAL_ENDING))[0])
    return in_journal | referred_to(read_file(path)[0])  # where they go from the journal


def read_session(path: Path) -> Reading:
    """Read a session's files; changes nothing, and needs no lock.

    Raises SessionNotFoundError, SessionFormatError (with `path`, `reason`, `recovered`) or
    StorageError (with `path`, `errno`).
    """
    for _ in range(_READ_ATTEMPTS):
        if (reading := _read_once(path)) is not None:
            return reading
    journal = Journal(beside(path, JOURNAL_ENDING), Disk())

    def take() -> bool:
        """Read once more, if possible while those who write all the time wait for once."""
        nonlocal reading
        if journal.exists():
            with suppress(OSError):
                journal.try_lock()
        reading = _read_once(path)
        return reading is not None

    try:
        wait_for(take, READ_SECONDS)
    finally:
        journal.close()
    if reading is None:
        busy = OSError(errno.EBUSY, "Another process writes to it without a pause; try again")
        raise storage_error(path, busy, "read")
    return reading


def storage_error(path: Path, error: OSError, verb: str) -> StorageError:
    """The error for a file that cannot be read or written, with its reason by name."""
    return StorageError(
        f"{str(path)!r} could not be {'read' if verb == 'read' else 'written'}:"
        f" {error.strerror or error}",
        path=str(path),
        errno=errno_name(error),
    )


def errno_name(error: OSError) -> str:
    """An error's name, such as "ENOSPC"."""
    return errno.errorcode.get(error.errno or 0, "EIO")


@contextmanager
def _collector_paused() -> Iterator[None]:
    """No garbage is made while messages are read, but looking for it again and again costs a third.

    Reference counting goes on; the pause is over before anything else happens.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _read_once(path: Path) -> Reading | None:
    """None where the two files were not read as they belong together, for others are writing.

    A snapshot is replaced before its journal is cut. So the journal is one of this snapshot where
    that was there before and after, or holds nothing that is not in it; but one that was cut while
    it was read may look damaged.
    """
    journal_path = beside(path, JOURNAL_ENDING)
    try:
        before = signature_at(path)
        journal_data, journal = _read_journal_file(journal_path)
        data, snapshot = read_file(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        missing = f"There is no session file {str(path)!r}"
        raise SessionNotFoundError(missing, path=str(path)) from error
    except OSError as error:
        raise storage_error(path, error, "read") from error
    try:
        with _collector_paused():
            stored = read_snapshot(data)
    except SessionFormatError as error:
        raise _unreadable(path, error, journal_data) from error
    except RecursionError as error:
        reason = SessionFormatError("The JSON is nested too deeply")
        raise _unreadable(path, reason, journal_data) from error
    if stored.fields["id"] is None:
        stored.fields["id"] = path.name.removesuffix(SNAPSHOT_ENDING)
    text = _journal_of(stored, journal_data)
    is_of_it = snapshot == before or not (text.changes or text.bad)
    if not is_of_it or (text.bad and not _is_same(journal_path, journal)):
        return None
    return Reading(path, stored, text.changes, snapshot, journal, text.size, text.bad)


def _is_same(path: Path, seen: Signature | None) -> bool:
    try:
        return signature_at(path) == seen
    except OSError as error:
        raise storage_error(path, error, "read") from error


def _read_journal_file(path: Path) -> tuple[bytes, Signature | None]:
    try:
        return read_file(path)
    except FileNotFoundError:
        return b"", None


def _unreadable(path: Path, error: SessionFormatError, journal: bytes) -> SessionFormatError:
    """The same error, naming the file and counting what a repair would find in the journal too."""
    added = sum(isinstance(change, Add) for _, change in read_journal(journal, None).changes)
    reason = error.data.get("reason", error.message)
    return SessionFormatError(
        f"{str(path)!r} cannot be read as a session: {reason}",
        path=str(path),
        **error.data | {"reason": reason, "recovered": error.data.get("recovered", 0) + added},
    )


def _journal_of(stored: StoredSession, data: bytes) -> JournalText:
    """The journal of this snapshot; one with another session's id adds nothing."""
    after = stored.fields["journal_n"] or None
    text = read_journal(data, after)
    header = text.header
    if header is None:
        return text
    if header.id is not None and header.id != stored.fields["id"]:
        return JournalText(header, [], text.size, max(1, text.bad + len(text.changes)))
    stored.fields["journal_n"] = after or header.base
    return text


def _replay(core: Core, change: Change) -> int:
    """Apply one journaled change; 0 when it speaks of messages that somebody's edit took away.

    An added message whose seq such an edit has given to another one gets the next seq.
    """
    if isinstance(change, Add) and (change.message.seq or 0) < core.next_seq:
        twin = _message_with(core, change.message.seq)
        if twin is not None and twin.content == change.message.content:
            return 1
        if twin is not None:
            message = msgspec.structs.replace(change.message, seq=core.next_seq)
            return core.commit(Add(message, change.at))
    return core.commit(change)


def _without_rules(change: Change) -> Change:
    if not isinstance(change, Set):
        return change
    return Set({name: it for name, it in change.fields.items() if name != "rules"}, change.at)


def _message_with(core: Core, seq: int | None) -> Message | None:
    rows: Iterable[Message] = (*core.newest_first, *reversed(core.archive_rows))
    return next((m for m in rows if m.seq == seq), None)
