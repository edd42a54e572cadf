"""A session as files: `<name>.json`, the snapshot, and `<name>.journal`, what came since (U9).

`read_session` is the one way to read them, for a load, for a second look after another process
wrote, for an outside edit and for the list. `SessionFiles` writes them and remembers their
signatures, so that nobody's work is overwritten unseen; its callers hold the session's lock.
"""

import contextlib
import enum
import errno
import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from tiro.errors import SessionFormatError, SessionNotFoundError, StorageError
from tiro.session.changes import Add, Change, Evict
from tiro.session.core import Core, from_rfc3339
from tiro.session.messages import Message, encode
from tiro.session.snapshot import StoredSession, read_snapshot
from tiro.stores.disk import (
    Disk,
    Signature,
    claim_file,
    copy_aside,
    read_file,
    set_aside,
    signature_at,
    signature_of,
)
from tiro.stores.journal import Journal, JournalText, header_line, read_journal

SNAPSHOT_ENDING = ".json"
_READ_ATTEMPTS = 20


class Reading(msgspec.Struct):
    """What the files of a session said when they were read."""

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

    def restore(self, core: Core, missing: Sequence[Message] = ()) -> int:
        """Bring `core` to what was read; returns how many changes spoke of what is gone.

        `missing` are messages that neither file holds, put between snapshot and journal. Whoever
        observes the session is told of the replay, so the one who calls does not listen.
        """
        dropped = 0
        core.restore(self.stored)
        for message in missing:
            core.commit(Add(message, ""))
        core.n = self.stored.fields["journal_n"]
        for n, change in self.changes:
            if not _replay(core, change):
                dropped += 1
            core.n = n
        if seqs := core.over_limit():
            core.commit(Evict(seqs, ""))
            core.n -= 1  # who reads the files again prunes them again
        return dropped

    def saved_at(self, core: Core) -> datetime:
        """When the session that was restored from here was stored last."""
        return max(core.updated, from_rfc3339(self.stored.timestamp) or core.updated)

    @property
    def last_n(self) -> int:
        """The number of the last change in the files."""
        n: int = self.changes[-1][0] if self.changes else self.stored.fields["journal_n"]
        return n


class State(enum.Enum):
    """How the files compare with what we remember of them."""

    SAME = "same"
    CHANGED = "changed"
    """Another process wrote, or somebody edited the snapshot by hand."""
    GONE = "gone"
    """There is no snapshot any more."""


def beside(path: Path, ending: str) -> Path:
    """The path of the journal (`.journal`) or the holder's name (`.lock`) beside a snapshot."""
    return path.with_name(path.name.removesuffix(SNAPSHOT_ENDING) + ending)


def read_session(path: Path) -> Reading:
    """Read a session's files; changes nothing, and needs no lock.

    Raises SessionNotFoundError, SessionFormatError (with `path`, `reason`, `recovered`) or
    StorageError (with `path`, `errno`).
    """
    try:
        data, snapshot, journal_data, journal = _read_both(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SessionNotFoundError(f"There is no session file {str(path)!r}", path=str(path)) from (
            error
        )
    except OSError as error:
        raise storage_error(path, error, "read") from error
    try:
        stored = read_snapshot(data)
    except SessionFormatError as error:
        added = sum(isinstance(c, Add) for _, c in read_journal(journal_data, None).changes)
        reason = error.data.get("reason", error.message)
        raise SessionFormatError(
            f"{str(path)!r} cannot be read as a session: {reason}",
            path=str(path),
            reason=reason,
            recovered=error.data.get("recovered", 0) + added,
        ) from error
    if stored.fields["id"] is None:
        stored.fields["id"] = path.name.removesuffix(SNAPSHOT_ENDING)
    text = _journal_of(stored, journal_data)
    return Reading(stored, text.changes, snapshot, journal, text.size, text.bad)


def encode_snapshot(core: Core, now: datetime) -> bytes:
    """The session file: one JSON object, a line for each field and each message.

    10,000 messages cost a few milliseconds.
    """
    fields = core.snapshot()
    messages, archive = fields.pop("messages"), fields.pop("archive")
    local = now.astimezone()
    fields["timestamp"] = f"{local:%Y-%m-%dT%H:%M:%S%z}"
    lines = [b'"%b":%b' % (name.encode(), encode(value)) for name, value in fields.items()]
    lines.append(b'"messages":[%b]' % _encode_messages(messages))
    lines.append(b'"archive":[%b]' % _encode_messages(archive))
    return b"{" + b",\n".join(lines) + b"}\n"


def storage_error(path: Path, error: OSError, verb: str) -> StorageError:
    """The error for a file that cannot be read or written, with its reason by name."""
    return StorageError(
        f"{str(path)!r} could not be {'read' if verb == 'read' else 'written'}:"
        f" {error.strerror or error}",
        path=str(path),
        errno=errno_name(error),
    )


class SessionFiles:
    """The files of one live session, as we last saw them."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self.path = path
        self.disk = disk
        self.journal = Journal(beside(path, ".journal"), disk)
        self.holder_path = beside(path, ".lock")
        self.snapshot: Signature | None = None
        self._journal: Signature | None = None
        self.journal_size = 0
        self._bad = False

    def remember(self, reading: Reading) -> None:
        """Take what was read as what we have seen."""
        self.snapshot, self._journal = reading.snapshot, reading.journal
        self.journal_size = reading.journal_size
        self._bad = reading.bad > 0

    def claim(self, data: bytes, stamp: str) -> bool:
        """Make the snapshot as a new file; False where its name is taken.

        A journal that a deleted session left there is set aside.
        """
        written = claim_file(self.disk, self.path, data)
        if written is None:
            return False
        self.snapshot = written
        leftover = signature_at(self.journal.path)
        if leftover is not None and leftover.size:
            set_aside(self.disk, self.journal.path, stamp)
        return True

    def signatures(self) -> tuple[Signature | None, Signature | None]:
        """The signatures of snapshot and journal as they are now."""
        return signature_at(self.path), _sized(signature_at(self.journal.path))

    def look(self) -> State:
        """Compare the files with what we remember; two calls to the system."""
        snapshot = signature_at(self.path)
        if snapshot is None:
            return State.GONE
        journal = self.journal.signature() or signature_at(self.journal.path)
        if snapshot == self.snapshot and _sized(journal) == _sized(self._journal):
            return State.SAME
        return State.CHANGED

    def append(self, id: str | None, first_n: int, lines: bytes) -> None:
        """Append change lines, in one write call; raises OSError with nothing appended."""
        if self._journal is not None and self._journal.size > self.journal_size:
            self.journal.cut(self.journal_size)  # a torn line, never answered
        if self.journal_size == 0:
            lines = header_line(id, first_n - 1) + lines
        try:
            self.journal.append(lines, self.journal_size)
            self.journal_size += len(lines)
        finally:
            self._journal = self.journal.signature()

    def replace(self, temporary: Path) -> None:
        """Put a finished snapshot in place."""
        written = signature_of(os.stat(temporary))
        self.disk.replace(temporary, self.path)
        self.snapshot = written

    def sync_directory(self) -> None:
        """Wait until the names of the files are on the disk itself."""
        self.disk.sync_directory(self.path.parent)

    def empty_journal(self, stamp: str) -> None:
        """Cut the journal, all of which is in the snapshot; a bad one is copied aside first."""
        found = signature_at(self.journal.path)
        if found is not None and found.size:
            if self._bad:
                copy_aside(self.disk, self.journal.path, stamp)
            self.journal.cut(0)
            found = self.journal.signature()
        self.journal_size, self._bad, self._journal = 0, False, found

    def remove_journal(self) -> None:
        """Remove an empty journal, so that a session at rest is one file; needs the lock."""
        signature = self.journal.signature()
        if signature is not None and signature.size == 0:
            with contextlib.suppress(OSError):
                os.unlink(self.journal.path)
        self.journal.close()


def errno_name(error: OSError) -> str:
    """An error's name, such as "ENOSPC"."""
    return errno.errorcode.get(error.errno or 0, "EIO")


def _read_both(path: Path) -> tuple[bytes, Signature, bytes, Signature | None]:
    """Both files as they belong together, though another process may be replacing them."""
    journal_path = beside(path, ".journal")
    for _ in range(_READ_ATTEMPTS):
        data, snapshot = read_file(path)
        try:
            journal_data, journal = read_file(journal_path)
        except FileNotFoundError:
            journal_data, journal = b"", None
        if signature_at(path) == snapshot:
            break  # a journal is cut only after its snapshot was replaced
    return data, snapshot, journal_data, journal


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


def _message_with(core: Core, seq: int | None) -> Message | None:
    rows: Iterable[Message] = (*core.newest_first, *reversed(core.archive_rows))
    return next((m for m in rows if m.seq == seq), None)


def _sized(signature: Signature | None) -> Signature | None:
    """An empty journal says as much as none: it is removed when its session comes to rest."""
    return signature if signature is not None and signature.size else None


def _encode_messages(messages: list[Any]) -> bytes:
    if not messages:
        return b""
    try:
        lines = _ENCODER.encode_lines(messages)[:-1]
    except (UnicodeEncodeError, ValueError, OverflowError):
        lines = b"\n".join(map(encode, messages))
    return b"\n" + lines.replace(b"\n", b",\n") + b"\n"  # inside JSON text no raw line break stands


_ENCODER = msgspec.json.Encoder(enc_hook=str)
