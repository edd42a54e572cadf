"""The files of one session: what we last saw of them, and every way to write them (U9).

`<name>.json` is the snapshot, `<name>.journal` what came since. Their signatures are remembered,
so that nobody's work is overwritten unseen. Who writes holds the session's lock.
"""

import contextlib
import enum
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from tiro.session.changes import Change
from tiro.session.core import Core
from tiro.session.json_text import encode
from tiro.session.large import LARGE_BYTES
from tiro.stores.blobs import References
from tiro.stores.disk import (
    Disk,
    Signature,
    claim_file,
    copy_aside,
    set_aside,
    signature_at,
    signature_of,
)
from tiro.stores.journal import Journal, header_line
from tiro.stores.lock import remove_holder
from tiro.stores.reading import JOURNAL_ENDING, Reading, beside

HOLDER_ENDING = ".lock"


class State(enum.Enum):
    """How the files compare with what we remember of them."""

    SAME = "same"
    CHANGED = "changed"
    """Another process wrote, or somebody edited the snapshot by hand."""
    GONE = "gone"
    """There is no snapshot any more."""


def encode_snapshot(core: Core, now: datetime, references: References | None = None) -> bytes:
    """The session file: one JSON object, a line for each field and each message.

    With `references` large values are stored there, once, and referred to; else all is whole.
    10,000 messages cost a few milliseconds, and a large value that is known a call to the system.
    """
    fields = core.snapshot()
    messages, archive = fields.pop("messages"), fields.pop("archive")
    local = now.astimezone()
    fields["timestamp"] = f"{local:%Y-%m-%dT%H:%M:%S%z}"
    lines = [b'"%b":%b' % (name.encode(), encode(value)) for name, value in fields.items()]
    lines.append(b'"messages":[%b]' % _encode_messages(messages, references))
    lines.append(b'"archive":[%b]' % _encode_messages(archive, references))
    return b"{" + b",\n".join(lines) + b"}\n"


class SessionFiles:
    """The files of one live session, as we last saw them."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self.path = path
        self.disk = disk
        self.journal = Journal(beside(path, JOURNAL_ENDING), disk)
        self.holder_path = beside(path, HOLDER_ENDING)
        self.snapshot: Signature | None = None
        self.found: Signature | None = None
        """The snapshot's signature when we last looked."""
        self.snapshot_n = 0
        """The last change in the snapshot."""
        self.stored_n = 0
        """The last change in snapshot and journal, which so survives a kill."""
        self.journaled: tuple[int, Change] | None = None
        """The last change that we read from the journal or wrote to it."""
        self._journal: Signature | None = None
        self.journal_size = 0
        self._bad = False

    def remember(self, reading: Reading) -> None:
        """Take what was read as what we have seen."""
        self.snapshot = reading.snapshot
        self.snapshot_n = reading.stored.fields["journal_n"]
        self.stored_n = reading.last_n
        self.remember_journal(reading)

    def remember_journal(self, reading: Reading) -> None:
        """Take only the journal as seen: the snapshot stays one that is still to be taken in."""
        self._journal, self.journal_size = reading.journal, reading.journal_size
        self._bad = reading.bad > 0
        self.journaled = reading.changes[-1] if reading.changes else None

    @property
    def has_bad_journal(self) -> bool:
        """Whether lines of the journal could not be used, so that nothing may follow on them."""
        return self._bad

    @property
    def snapshot_bytes(self) -> int:
        """The size of the snapshot."""
        return self.snapshot.size if self.snapshot else 0

    def claim(self, data: bytes, n: int, stamp: str, *, for_turn: bool = False) -> bool:
        """Make the snapshot, up to change `n`, as a new file; False where its name is taken.

        A journal that a deleted session left there is set aside first: once the snapshot is
        there, others may load it and write to its journal. A turn has the lock by then.
        """
        if not self._set_leftover_aside(stamp):
            return False
        if for_turn and not self._has_lock():
            return False
        written = None
        try:
            written = claim_file(self.disk, self.path, data)
        finally:
            if written is None and for_turn:
                self.tidy()
                self.journal.close()
        if written is None:
            return False
        self.snapshot, self.snapshot_n, self.stored_n = written, n, n
        return True

    def look(self) -> State:
        """Compare the files with what we remember; two calls to the system."""
        self.found = signature_at(self.path)
        if self.found is None:
            return State.GONE
        if self.found == self.snapshot and self.journal_is_same():
            return State.SAME
        return State.CHANGED

    def news(self) -> Signature | None:
        """The snapshot's signature, where it or the journal is not what we have seen.

        Remembers nothing, so that anybody may ask at any time.
        """
        found, journal = signature_at(self.path), signature_at(self.journal.path)
        is_same = found == self.snapshot and _sized(journal) == _sized(self._journal)
        return None if is_same else found

    def are_free(self) -> bool:
        """Whether nobody writes to them just now, this process included."""
        journal = Journal(self.journal.path, self.disk)
        try:
            return not journal.exists() or journal.try_lock()
        finally:
            journal.close()

    def are_as_read(self, reading: Reading) -> bool:
        """Whether what stands there is what was read."""
        journal = signature_at(self.journal.path)
        is_same = _sized(journal) == _sized(reading.journal)
        return is_same and (self.path, self.found) == (reading.path, reading.snapshot)

    def journal_is_same(self) -> bool:
        """Whether nobody else wrote to the journal; an empty one says as much as none."""
        found = self.journal.signature() or signature_at(self.journal.path)
        return _sized(found) == _sized(self._journal)

    def append(
        self, id: str | None, first_n: int, changes: tuple[Change, ...], lines: bytes
    ) -> None:
        """Append changes as these lines, in one write call, or raise OSError with none appended."""
        if self._journal is not None and self._journal.size > self.journal_size:
            self.journal.cut(self.journal_size)  # a torn line, never answered
        if self.journal_size == 0:
            lines = header_line(id, first_n - 1) + lines
        try:
            self.journal.append(lines, self.journal_size)
            self.journal_size += len(lines)
            self.stored_n = first_n + len(changes) - 1
            self.journaled = self.stored_n, changes[-1]
        finally:
            self._journal = self.journal.signature()

    def replace(self, temporary: Path, n: int) -> None:
        """Put a finished snapshot, up to change `n`, in place, for good."""
        written = signature_of(os.stat(temporary))
        self.disk.replace(temporary, self.path)
        self.snapshot, self.snapshot_n = written, n
        self.stored_n = max(n, self.stored_n)
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

    def tidy(self) -> None:
        """Remove what a session at rest does not need, so that it is one file; needs the lock."""
        signature = self.journal.signature()
        if signature is not None and signature.size == 0:
            with contextlib.suppress(OSError):
                os.unlink(self.journal.path)
        remove_holder(self.holder_path)  # that of a killed process

    def _has_lock(self) -> bool:
        """Take the lock; where none can be had, the signatures must do."""
        try:
            return self.journal.try_lock()
        except OSError:
            return True

    def _set_leftover_aside(self, stamp: str) -> bool:
        """Clear the journal's name; False where somebody writes there or has the name by now."""
        leftover = signature_at(self.journal.path)
        if leftover is None or not leftover.size:
            return True
        is_free = True
        with contextlib.suppress(OSError):  # no lock can be had
            is_free = self.journal.try_lock()
        try:
            if not is_free or os.path.lexists(self.path):
                return False
            set_aside(self.disk, self.journal.path, stamp)
            return True
        finally:
            self.journal.close()


def _sized(signature: Signature | None) -> Signature | None:
    return signature if signature is not None and signature.size else None


def _encode_messages(messages: list[Any], references: References | None) -> bytes:
    """A line for each message. Only one whose line is long can hold a large value."""
    if not messages:
        return b""
    if references is not None:
        messages = references.shorten_known(messages)
    lines = _encode_lines(messages)
    if references is not None and _has_long_line(lines):
        parts = lines.split(b"\n")
        for index, line in enumerate(parts):
            if len(line) > LARGE_BYTES:
                parts[index] = encode(references.shorten(messages[index]))
        lines = b"\n".join(parts)
    return b"\n" + lines.replace(b"\n", b",\n") + b"\n"  # inside JSON text no raw line break stands


def _encode_lines(messages: list[Any]) -> bytes:
    try:
        return _ENCODER.encode_lines(messages)[:-1]
    except (UnicodeEncodeError, ValueError, OverflowError):
        return b"\n".join(map(encode, messages))


def _has_long_line(lines: bytes) -> bool:
    """Whether a line is longer than the smallest large value; looks at few of the bytes."""
    start = 0
    while len(lines) - start > LARGE_BYTES:
        start = lines.rfind(b"\n", start, start + LARGE_BYTES + 1) + 1
        if start == 0:
            return True
    return False


_ENCODER = msgspec.json.Encoder(enc_hook=str)
