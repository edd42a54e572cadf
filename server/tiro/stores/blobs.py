"""Large values as files of their own: `blobs/<sha256>` beside the sessions that hold them (U9.10).

A session's snapshot refers to them and is put in place only when they are on the disk. A journal
line holds its values itself, so that a change stays one write call, until the next snapshot takes
them over. In memory, and in every copy or export, values are whole; but the whole output of a
command (`output_files.py`) stays here, and a copy has its beginning and its end.

Who refers to a file shares a lock on the directory from looking for it until the reference is
written; who removes files holds that lock alone and has read what lies beside the directory. So
nothing is removed that anybody refers to.
"""

import errno
import functools
import hashlib
import logging
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from tiro.session.large import Short, can_be_shortened, shortened, take_out
from tiro.session.messages import Message, flat
from tiro.session.redact import Redactor
from tiro.stores.disk import (
    NO_LINKS,
    Disk,
    Signature,
    is_stale,
    make_directories,
    read_file,
    replace_file,
    signature_at,
    signature_of,
)
from tiro.stores.lock import directory_lock, try_lock_alone, try_lock_shared, wait_for

Row: TypeAlias = Message | dict[str, Any]
"""A message as it is written: itself, or as a dict when it has unknown fields."""

_Readings: TypeAlias = dict[str, tuple[Signature, set[str]]]
"""What files refer to, by their names; a file that did not change is not read again."""

Held: TypeAlias = Callable[[str], str | None]
"""Finds a large value by its hash, in memory."""

log = logging.getLogger(__name__)


class Keys(Protocol):
    """Knows the keys that are configured."""

    @property
    def secrets(self) -> Sequence[str]:
        """Their exact values, which no file holds (U9.11)."""
        ...


class _Found(NamedTuple):
    """What was found in a message; holding it keeps its content's `id()` from meaning another."""

    message: Message
    secrets: tuple[str, ...]
    short: Short


class Blobs:
    """The large values of one live session, and which of them were stored before."""

    def __init__(self, directory: Path, disk: Disk, keys: Keys) -> None:
        self.path = blobs_beside(directory)
        self.disk = disk
        self.keys = keys
        self.stored: dict[int, _Found] = {}
        """The contents, by `id()`, to which the last snapshot referred."""
        self.has_dropped = False
        """Whether a snapshot referred to less than the one before."""

    def are_missing(self) -> bool:
        """Whether something to which the last snapshot referred is not on the disk any more."""
        references = (r for found in self.stored.values() for r in found.short.references)
        return any(_size(self.path / r.sha256) != r.bytes for r in references)

    def held_by(self, rows: Sequence[Message]) -> Held:
        """Finds a large value of these messages by its hash; they are looked through when asked."""

        @functools.cache
        def values() -> dict[str, bytes]:
            found: dict[str, bytes] = {}
            for message in rows:
                known = self.stored.get(id(message.content))
                secrets = known.secrets if known else tuple(self.keys.secrets)
                with suppress(RecursionError):  # such a one was stored whole
                    found |= _taken_out(message, secrets)[1]
            return found

        return lambda name: values()[name].decode() if name in values() else None

    @contextmanager
    def referring(self) -> Iterator["References"]:
        """For one snapshot: until the end, nobody removes what it refers to."""
        references = References(self)
        try:
            yield references
        finally:
            references.close()


class References:
    """What one snapshot refers to: first it is encoded, then the values are stored."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._found: dict[int, _Found] = {}
        self._values: dict[str, bytes] = {}
        self._lock: int | None = None

    def shorten_known(self, rows: list[Row]) -> list[Row]:
        """The same rows, those in which large values were found before without these."""
        known = self._blobs.stored
        if not known:
            return rows
        return [self.shorten(row) if id(row["content"]) in known else row for row in rows]

    def shorten(self, row: Row) -> Row:
        """The row without its large values, if it has some."""
        message = row if isinstance(row, Message) else Message.from_dict(row)
        if not can_be_shortened(message):
            return row
        found = self._known(message) or self._find(message)
        if not found.short.references:
            return row
        self._found[id(message.content)] = found
        return flat(shortened(message, found.short))

    def store(self) -> None:
        """Have all values on the disk before anything refers to them; raises OSError.

        What an earlier snapshot referred to costs a look at its size.
        """
        blobs, before = self._blobs, self._blobs.stored
        if self._found:
            make_directories(blobs.disk, blobs.path)
            self._lock = _shared_lock(blobs.path)
        if self._found and not before:
            _remove_stale(blobs.path)
        for found in self._found.values():
            for reference in found.short.references:
                path = blobs.path / reference.sha256
                size = _size(path)
                data = self._values.get(reference.sha256)
                if size != reference.bytes and data is None:
                    data = _taken_out(found.message, found.secrets)[1][reference.sha256]
                if data is not None and (size != len(data) or _bytes(path) != data):
                    replace_file(blobs.disk, path, data)
        blobs.has_dropped = blobs.has_dropped or bool(_names(before) - _names(self._found))
        blobs.stored = self._found

    def close(self) -> None:
        """Let others remove what nothing refers to."""
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    def _known(self, message: Message) -> _Found | None:
        """What was found before, unless other keys are configured by now."""
        known = self._blobs.stored.get(id(message.content))
        return known if known and known.secrets == tuple(self._blobs.keys.secrets) else None

    def _find(self, message: Message) -> _Found:
        secrets = tuple(self._blobs.keys.secrets)
        try:
            short, values = _taken_out(message, secrets)
        except RecursionError:
            short, values = Short(message.content, None, []), {}
        self._values.update(values)
        return _Found(message, secrets, short)


@contextmanager
def bringing(disk: Disk, source: Path, target: Path, names: Collection[str]) -> Iterator[None]:
    """Have these large values of one directory in another one as well, as far as they are there.

    Until the end nobody removes them from the other one. Raises OSError.
    """
    if not names:
        yield
        return
    make_directories(disk, target)
    lock = _shared_lock(target)
    try:
        for name in names:
            _bring(disk, source / name, target / name)
        disk.sync_directory(target)
        yield
    finally:
        os.close(lock)


def referred_to(data: bytes) -> set[str]:
    """The names of all large values that the bytes of a file refer to, or might."""
    return {name.decode() for name in _REFERENCE.findall(data)}


def nothing(name: str) -> str | None:
    """Finds no large value."""
    return None


def blobs_beside(directory: Path) -> Path:
    """Where the large values of the sessions in this directory lie."""
    return directory / "blobs"


def read_blob(path: Path) -> str | None:
    """The value in this file, which has its hash as its name; None where it is not whole."""
    try:
        data, _ = read_file(path)
    except OSError as error:
        log.warning("A large value cannot be read: %s", error)
        return None
    if hashlib.sha256(data).hexdigest() != path.name:
        log.warning("A large value is damaged: %s", path)
        return None
    return data.decode("utf-8", "replace")


def is_whole(path: Path) -> bool:
    """Whether this file holds what its name says."""
    try:
        return hashlib.sha256(read_file(path)[0]).hexdigest() == path.name
    except OSError:
        return False


def unreferenced(directory: Path) -> list[int]:
    """How much is free once each large value goes that no file in this directory refers to now."""
    try:
        names = _unreferenced(directory, {})
        return [_only_here(blobs_beside(directory) / name) for name in names]
    except OSError:
        return []


def remove_unreferenced(directory: Path, disk: Disk) -> list[int]:
    """Remove the large values that no file in this directory refers to; what is free for each.

    Reads all files of the directory once; in the end, with nobody writing references, again what
    changed meanwhile. Without locks nothing is removed. Never raises.
    """
    blobs = blobs_beside(directory)
    sizes: list[int] = []
    if not blobs.is_dir():
        return sizes
    try:
        _remove_stale(blobs)
        readings: _Readings = {}
        if not _unreferenced(directory, readings):
            return sizes
        lock = directory_lock(blobs)
        try:
            if wait_for(lambda: try_lock_alone(lock)):
                for name in _unreferenced(directory, readings):
                    size = _only_here(blobs / name)
                    disk.unlink(blobs / name)
                    sizes.append(size)
        finally:
            os.close(lock)
    except OSError as error:
        log.warning("Large values that nothing refers to stay: %s", error)
    return sizes


def _unreferenced(directory: Path, readings: _Readings) -> set[str]:
    """The values that no file refers to; none where files come and go too fast to be sure."""
    for _ in range(_ATTEMPTS):
        with suppress(FileNotFoundError):  # one went away, perhaps to another name
            return _unreferenced_now(directory, readings)
    return set()


def _unreferenced_now(directory: Path, readings: _Readings) -> set[str]:
    unreferenced = {name for name in os.listdir(blobs_beside(directory)) if _NAME.fullmatch(name)}
    if not unreferenced:
        return unreferenced
    with os.scandir(directory) as entries:
        for entry in entries:
            if not entry.is_file():
                continue
            if readings.get(entry.name, (None,))[0] != signature_of(entry.stat()):
                data, signature = read_file(Path(entry.path))
                readings[entry.name] = signature, referred_to(data)
            unreferenced -= readings[entry.name][1]
    return unreferenced


def _shared_lock(blobs: Path) -> int:
    """An open descriptor that holds the shared lock of a directory; raises OSError."""
    lock = directory_lock(blobs)
    if not wait_for(lambda: try_lock_shared(lock)):
        os.close(lock)
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), str(blobs))
    return lock


def _bring(disk: Disk, source: Path, target: Path) -> None:
    """Give a large value a second name, or copy it where that is not possible."""
    size = _size(source)
    if size is None or size == _size(target):
        return
    try:
        disk.link(source, target)
    except OSError as error:
        if not isinstance(error, FileExistsError) and error.errno not in NO_LINKS:
            raise
        replace_file(disk, target, read_file(source)[0])


def _remove_stale(blobs: Path) -> None:
    for name in os.listdir(blobs):
        if is_stale(blobs / name):
            with suppress(OSError):
                os.unlink(blobs / name)


def _taken_out(message: Message, secrets: Sequence[str]) -> tuple[Short, dict[str, bytes]]:
    return take_out(message, Redactor(secrets).text)


def _size(path: Path) -> int | None:
    found = signature_at(path)
    return found.size if found else None


def _only_here(path: Path) -> int:
    """How much is free once this file goes: nothing where the trash has it under another name."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0
    return found.st_size if found.st_nlink == 1 else 0


def _bytes(path: Path) -> bytes | None:
    """What is in the file; None where it cannot be read."""
    try:
        return read_file(path)[0]
    except OSError:
        return None


def _names(found: dict[int, _Found]) -> set[str]:
    return {reference.sha256 for item in found.values() for reference in item.short.references}


_ATTEMPTS = 20
_NAME = re.compile("[0-9a-f]{64}")
_REFERENCE = re.compile(rb"blobs\\?/([0-9a-f]{64})")
