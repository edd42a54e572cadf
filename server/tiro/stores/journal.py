"""The journal: an append-only file of the changes since a snapshot, one line each (U9.2).

Line 1 says whose it is; every other line is a change with its number. One write call stores a
commit, so a kill loses nothing that was answered. A write that fell short is cut away again, and
a descriptor whose fsync failed is never used again (U9.5).
"""

import bisect
import contextlib
import errno
import os
import stat
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path

import msgspec

from tiro.session.changes import Add, Change, decode_change, encode_change
from tiro.session.json_text import encode
from tiro.stores.disk import FILE_MODE, Disk, Signature, signature_of
from tiro.stores.lock import try_lock, unlock


class Header(msgspec.Struct, frozen=True):
    """The first line: the format's number, the session's id, and the change it starts after."""

    journal: int
    id: str | None = None
    base: int = 0


class JournalText(msgspec.Struct, frozen=True):
    """What a journal's bytes say."""

    header: Header | None
    """None where the first line is missing or broken."""
    changes: list[tuple[int, Change]]
    """The changes that follow on the snapshot, in order."""
    size: int
    """Length up to the last whole line; what is behind it is a torn write, never answered."""
    bad: int
    """Lines that could not be used: broken ones, and all but adds behind a break or a gap."""


def read_journal(data: bytes, after: int | None) -> JournalText:
    """Read a journal's bytes: the changes with a number above `after` (U9.2, U9.4).

    `after` is the snapshot's `journal_n`; None, for a snapshot without one, means the journal's
    own base. A torn last line is left out. Behind a broken line or a gap in the numbers only adds
    are taken, the rest is counted as bad. So is a lost header, whose place the numbers take.
    """
    size = data.rfind(b"\n") + 1
    lines = data[:size].split(b"\n")[:-1]
    header = _read_header(lines[0]) if lines else None
    last = after if after is not None else header.base if header else 0
    is_lost = header is None and bool(lines)
    reader = _LineReader(last, is_sound=not is_lost or after is not None)
    for line in lines[1:] if header or (is_lost and not _is_change(lines[0])) else lines:
        reader.take(line)
    bad = reader.bad + is_lost if reader.is_sound else max(1, reader.bad + is_lost)
    return JournalText(header, reader.changes, size, bad)


def header_line(id: str | None, base: int) -> bytes:
    """The first line of a journal that follows on change number `base`."""
    return encode({"journal": 1, "id": id, "base": base}) + b"\n"


def change_lines(first_n: int, changes: tuple[Change, ...]) -> bytes:
    """The lines of consecutive changes."""
    if len(changes) == 1:
        return encode_change(first_n, changes[0]) + b"\n"
    return b"".join(encode_change(first_n + i, c) + b"\n" for i, c in enumerate(changes))


class Journal:
    """The journal file of one session, open for appending. Its users take turns by a lock."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self.path = path
        self._disk = disk
        self._descriptor: int | None = None
        self._is_new = False

    def __del__(self) -> None:
        self.close()

    def exists(self) -> bool:
        """Whether there is such a file."""
        return self._descriptor is not None or os.path.lexists(self.path)

    def try_lock(self) -> bool:
        """Take the session's lock if it is free; makes the file where there is none."""
        while True:
            descriptor = self._open()
            if not try_lock(descriptor):
                return False
            if self._is_in_place(descriptor):
                return True
            self.close()  # it was moved or deleted before we had the lock, which is on nothing

    def unlock(self) -> None:
        """Give the lock back."""
        if self._descriptor is not None:
            unlock(self._descriptor)

    def signature(self) -> Signature | None:
        """The signature of the open file; None where none is open."""
        if self._descriptor is None:
            return None
        return signature_of(os.fstat(self._descriptor))

    def append(self, data: bytes, size: int) -> None:
        """Put `data` behind the first `size` bytes, which are all there are, in one write call.

        On OSError the file is cut back to `size`, or has a torn tail that readers leave out.
        """
        descriptor = self._open()
        try:
            taken = self._disk.write(descriptor, data)
            if taken != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        except OSError:
            with contextlib.suppress(OSError):
                self._disk.truncate(descriptor, size)
            raise

    def cut(self, size: int) -> None:
        """Cut the file to its first `size` bytes."""
        self._disk.truncate(self._open(), size)

    def sync_later(self) -> Callable[[], None] | None:
        """What waits until all lines are on the disk, to be called without any lock held.

        After it raised, this journal must be closed: what the system says of that descriptor
        from then on cannot be trusted.
        """
        if self._descriptor is None:
            return None
        descriptor, is_new = os.dup(self._descriptor), self._is_new
        self._is_new = False

        def sync() -> None:
            try:
                self._disk.sync(descriptor)
                if is_new:
                    self._disk.sync_directory(self.path.parent)
            finally:
                os.close(descriptor)

        return sync

    def close(self) -> None:
        """Let go of the file, and with it of the lock."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _is_in_place(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), os.stat(self.path))
        except FileNotFoundError:
            return False

    def _open(self) -> int:
        if self._descriptor is None:
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
            self._descriptor = self._disk.open(self.path, flags)
            status = os.fstat(self._descriptor)
            self._is_new = status.st_size == 0
            if stat.S_IMODE(status.st_mode) & ~FILE_MODE and hasattr(os, "fchmod"):
                with contextlib.suppress(OSError):
                    os.fchmod(self._descriptor, FILE_MODE)
        return self._descriptor


class _LineReader:
    """Takes the change lines of a journal in order and notices what is missing or broken."""

    def __init__(self, last: int, *, is_sound: bool) -> None:
        self.changes: list[tuple[int, Change]] = []
        self.bad = 0
        self.is_sound = is_sound
        self._base = self._last = last
        self._taken: set[int] = set()

    def take(self, line: bytes) -> None:
        """Take the next line."""
        try:
            n, change = decode_change(line)
        except (ValueError, TypeError):
            self.is_sound = False
            self.bad += 1
            return
        if n <= self._base:
            return  # the snapshot holds it already
        self.is_sound = self.is_sound and n == self._last + 1
        if self.is_sound or (isinstance(change, Add) and n not in self._taken):
            bisect.insort(self.changes, (n, change), key=itemgetter(0))
            self._taken.add(n)
            self._last = max(n, self._last)
        else:
            self.bad += 1


def _is_change(line: bytes) -> bool:
    try:
        decode_change(line)
    except (ValueError, TypeError):
        return False
    return True


def _read_header(line: bytes) -> Header | None:
    try:
        header = msgspec.json.decode(line, type=Header)
    except (ValueError, msgspec.DecodeError):
        return None
    return header if header.journal == 1 else None
