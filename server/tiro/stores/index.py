"""The list of saved sessions: a cache keyed by the signatures of their files (U9.9).

One look at the directory finds what others added, changed or removed; only such files are read
again. The cache lies in the platform's cache directory; without it the next list is slower and
says the same.
"""

import hashlib
import logging
import os
import threading
import time
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

import msgspec

from tiro.errors import SessionFormatError, SessionNotFoundError, StorageError, TiroError
from tiro.session.core import Core
from tiro.session.messages import Message, text_of
from tiro.session.times import Clock, from_rfc3339, rfc3339, utc_now
from tiro.stores.blobs import blobs_beside
from tiro.stores.disk import (
    Disk,
    is_stale,
    make_directories,
    remove_stale,
    replace_file,
    signature_at,
)
from tiro.stores.lock import is_locked
from tiro.stores.reading import (
    JOURNAL_ENDING,
    SNAPSHOT_ENDING,
    Reading,
    beside,
    read_session,
    values_of,
)
from tiro.stores.store import has_expired

TITLE_CHARACTERS = 50
_VERSION = 5
_SETTLE_NS = 20_000_000
"""A file that changed this shortly before it was read may change again under the same time."""
_WRITE_AFTER = 50
_LEFT = timedelta(days=1)
"""What was not changed for so long nobody is believed to be at, who does not hold its lock."""

log = logging.getLogger(__name__)

Version: TypeAlias = tuple[tuple[int, int, int], tuple[int, int, int] | None]
"""What tells one version of a session's two files from another."""


class SavedSession(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One line of the list."""

    id: str
    path: str
    title: str | None
    """Its own, else the first line of the first prompt."""
    agent: str | None
    messages: int
    """The messages in the window, with what only the journal holds."""
    archived: int
    """Those that have left it and were not taken back."""
    saved_at: str | None
    bytes: int
    error: str | None
    """Why the file cannot be loaded."""
    expires_at: float | None = None
    """The moment after which it is not there any more, in seconds since 1970; None: never."""


class _Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A file as it was when it was read: size, time and inode of snapshot and journal."""

    snapshot: tuple[int, int, int]
    journal: tuple[int, int, int] | None
    is_settled: bool
    saved: SavedSession


class _Cache(msgspec.Struct):
    version: int
    directory: str
    rows: dict[str, _Row]
    """The newest first."""


class Listing(Protocol):
    """A list of saved sessions."""

    def values_of(self, saved: SavedSession) -> Mapping[str, int]:
        """The large values that it refers to, by name, with their sizes."""
        ...

    def is_open(self, saved: SavedSession) -> bool:
        """Whether another process is at it, as far as that can be seen."""
        ...

    def is_as(self, seen: SavedSession) -> bool:
        """Whether it is still what this row says."""
        ...

    def sessions(self) -> list[SavedSession]:
        """All of them but the expired, newest first."""
        ...

    def versions(self) -> list[tuple[str, Version | None]]:
        """The path of every readable one with its version, newest first."""
        ...

    def expired(self) -> list[SavedSession]:
        """Those whose time is over, as far as something of them is still there."""
        ...

    def close(self) -> None:
        """Keep what the next process may want to know."""
        ...


class Index:
    """The saved sessions of one directory."""

    def __init__(
        self, directory: Path, cache_directory: Path | None, disk: Disk, clock: Clock = utc_now
    ) -> None:
        self._directory = directory
        self._disk = disk
        self._clock = clock
        self._lock = threading.Lock()
        self._rows: dict[str, _Row] = {}
        self._sorted: list[SavedSession] = []
        self._unwritten = 0
        self._called = os.fsencode(directory).decode("utf-8", "replace")
        name = hashlib.sha256(os.fsencode(directory.absolute())).hexdigest()[:16]
        self._cache = cache_directory / f"sessions-{name}.json" if cache_directory else None
        self._is_loaded = False

    def sessions(self) -> list[SavedSession]:
        """All saved sessions but the expired, newest first.

        10,000 that did not change cost two calls to the system each.
        """
        rows, now = self._all(), self._clock()
        if not any(has_expired(row.expires_at, now) for row in rows):
            return rows
        return [row for row in rows if not has_expired(row.expires_at, now)]

    def expired(self) -> list[SavedSession]:
        """Those whose time is over and whose files are still there."""
        now = self._clock()
        return [row for row in self._all() if has_expired(row.expires_at, now)]

    def versions(self) -> list[tuple[str, Version | None]]:
        """The path of every readable session with its version, newest first.

        A version of None may not be the last one of its time.
        """
        self._all()
        now = self._clock()
        with self._lock:
            return [
                (row.saved.path, (row.snapshot, row.journal) if row.is_settled else None)
                for row in self._rows.values()
                if row.saved.error is None and not has_expired(row.saved.expires_at, now)
            ]

    def values_of(self, saved: SavedSession) -> Mapping[str, int]:
        """As in `Listing`; reads the session's files where there are large values at all."""
        blobs = blobs_beside(self._directory)
        if not blobs.is_dir():
            return {}
        try:
            names = values_of(Path(saved.path))
        except OSError:
            return {}
        found = {name: signature_at(blobs / name) for name in names}
        return {name: one.size for name, one in found.items() if one is not None}

    def is_open(self, saved: SavedSession) -> bool:
        """As in `Listing`: whoever has changed it has a journal, until it comes to rest.

        Who was killed leaves one, too, so what has not been changed for a day is open only to one
        that holds its lock.
        """
        journal = beside(Path(saved.path), JOURNAL_ENDING)
        if not os.path.lexists(journal):
            return False
        changed = from_rfc3339(saved.saved_at)
        return changed is None or self._clock() - changed < _LEFT or is_locked(journal)

    def is_as(self, seen: SavedSession) -> bool:
        """As in `Listing`."""
        path = Path(seen.path)
        with self._lock:
            row = self._rows.get(path.name)
        try:
            found = signature_at(path), signature_at(beside(path, JOURNAL_ENDING))
        except OSError:
            return False
        journal = found[1] if found[1] is not None and found[1].size else None
        return row is not None and (row.saved, row.snapshot, row.journal) == (
            seen, found[0], journal
        )  # fmt: skip

    def close(self) -> None:
        """Write the cache for the next process."""
        with self._lock:
            if self._unwritten:
                self._write_cache()

    def _all(self) -> list[SavedSession]:
        with self._lock:
            self._load_cache()
            self._refresh()
            if self._unwritten >= _WRITE_AFTER:
                self._write_cache()
            return self._sorted

    def _refresh(self) -> None:
        """Read what changed. The loop costs a call to the system and little else for a file."""
        rows, known = self._rows, self._rows.get
        changed: list[tuple[str, _Files | None]] = []
        with _looking_at(self._directory) as (names, journals):
            for name, entry in names.items():
                row = known(name)
                try:
                    status = entry.stat()
                except OSError:
                    changed.append((name, None))
                    continue
                journal = journals.get(name[:-5])
                beside = _stat(journal) if journal is not None else None
                if (
                    row is None
                    or not row.is_settled
                    or row.snapshot != (status.st_size, status.st_mtime_ns, status.st_ino)
                    or row.journal != (_journal_signature(beside) if beside is not None else None)
                ):
                    changed.append((name, _Files(status, beside)))
        if self._apply(changed, names):
            self._rows = dict(sorted(rows.items(), key=_newest, reverse=True))
            self._sorted = [row.saved for row in self._rows.values()]

    def _apply(self, changed: list[tuple[str, "_Files | None"]], names: Container[str]) -> bool:
        """Bring the rows up to date; whether any of them says something else now."""
        rows, differences = self._rows, 0
        for name, files in changed:
            row = _read_row(self._directory / name, files) if files else None
            differences += row != rows.get(name)
            if row is None:
                rows.pop(name, None)
            else:
                rows[name] = row
        for name in [name for name in rows if name not in names]:
            differences += 1
            del rows[name]
        self._unwritten += differences
        return differences > 0

    def _load_cache(self) -> None:
        if self._is_loaded or self._cache is None:
            return
        self._is_loaded = True
        try:
            cache = msgspec.json.decode(self._cache.read_bytes(), type=_Cache)
        except (OSError, ValueError):
            return
        if cache.version == _VERSION and cache.directory == self._called:
            self._rows = cache.rows
            self._sorted = [row.saved for row in cache.rows.values()]

    def _write_cache(self) -> None:
        if self._cache is None:
            return
        self._unwritten = 0
        try:
            data = self._encoded()
            make_directories(self._disk, self._cache.parent)
            remove_stale(self._cache)
            replace_file(self._disk, self._cache, data)
        except OSError as error:
            log.info("The list's cache could not be written: %s", error)

    def _encoded(self) -> bytes:
        """The cache, without what is called what no text can be: that is read again each time."""
        cache = _Cache(_VERSION, self._called, self._rows)
        try:
            return msgspec.json.encode(cache)
        except UnicodeEncodeError:
            cache.rows = {name: row for name, row in self._rows.items() if _is_text(row)}
            return msgspec.json.encode(cache)


def matching(rows: list[SavedSession], query: str | None) -> list[SavedSession]:
    """Those whose title, id or agent holds the query; without one all."""
    if not query:
        return rows
    wanted = query.casefold()
    return [
        row
        for row in rows
        if wanted in f"{row.title or ''}\n{row.id}\n{row.agent or ''}".casefold()
    ]


def first_line(messages: list[Message]) -> str | None:
    """The first line of the first prompt, up to 50 characters: what a session is called by."""
    for message in messages:
        if message.role == "user" and not message.marks().get("taken_back"):
            for line in text_of(message).splitlines():
                if line.strip():
                    return line.strip()[:TITLE_CHARACTERS]
    return None


def saved_session_at(path: Path, size: int = 0) -> SavedSession:
    """A session's files as a line of the list; `size` is that of a snapshot that is damaged."""
    try:
        return _saved_session(path, read_session(path))
    except (SessionFormatError, SessionNotFoundError, StorageError) as error:
        return _damaged(path, size, error)


class _Files(NamedTuple):
    """What the system says of a snapshot and its journal."""

    snapshot: os.stat_result
    journal: os.stat_result | None


_Entries: TypeAlias = dict[str, os.DirEntry[str]]


@contextmanager
def _looking_at(directory: Path) -> Iterator[tuple[_Entries, _Entries]]:
    """The session files of the directory by name, and the journals by the name without ending.

    The directory stays open meanwhile: what is asked of its files then needs no walk along a path.
    """
    snapshots: _Entries = {}
    journals: _Entries = {}
    descriptor = None
    try:
        if os.scandir in os.supports_fd:
            descriptor = os.open(directory, os.O_RDONLY)
        with os.scandir(directory if descriptor is None else descriptor) as entries:
            for entry in entries:
                name = entry.name
                if name.endswith(SNAPSHOT_ENDING) and name[0] != ".":
                    snapshots[name] = entry
                elif name.endswith(JOURNAL_ENDING):
                    journals[name[:-8]] = entry
                elif is_stale(directory / name):  # left by a kill before its session had a file
                    with suppress(OSError):
                        os.unlink(directory / name)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        log.warning("The sessions directory cannot be read: %s", error)
    try:
        yield snapshots, journals
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _stat(entry: os.DirEntry[str]) -> os.stat_result | None:
    """What the system says of a file; None when it went away, as a journal does at rest."""
    try:
        return entry.stat()
    except OSError:
        return None


def _journal_signature(status: os.stat_result) -> tuple[int, int, int] | None:
    """An empty journal says as much as none."""
    if status.st_size == 0:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


def _read_row(path: Path, files: _Files) -> _Row:
    snapshot, journal = files
    newest = max(snapshot.st_mtime_ns, journal.st_mtime_ns if journal else 0)
    is_settled = time.time_ns() - newest > _SETTLE_NS
    saved = saved_session_at(path, snapshot.st_size)
    return _Row(
        (snapshot.st_size, snapshot.st_mtime_ns, snapshot.st_ino),
        _journal_signature(journal) if journal else None,
        is_settled,
        saved,
    )


def _saved_session(path: Path, reading: Reading) -> SavedSession:
    core = Core()
    reading.restore_stored(core)
    return SavedSession(
        id=core.id or path.name.removesuffix(SNAPSHOT_ENDING),
        path=str(path),
        title=core.title or first_line([*core.archive_rows, *core.oldest_first()]),
        agent=core.agent,
        messages=len(core.newest_first),
        archived=core.archived,
        saved_at=rfc3339(reading.saved_at(core)),
        bytes=reading.bytes,
        error=None,
        expires_at=reading.expires_at,
    )


def _damaged(path: Path, size: int, error: TiroError) -> SavedSession:
    return SavedSession(
        id=path.name.removesuffix(SNAPSHOT_ENDING),
        path=str(path),
        title=None,
        agent=None,
        messages=0,
        archived=0,
        saved_at=None,
        bytes=size,
        error=str(error.data.get("reason") or error),
    )


def _is_text(row: _Row) -> bool:
    try:
        msgspec.json.encode(row)
    except UnicodeEncodeError:
        return False
    return True


def _newest(item: tuple[str, _Row]) -> tuple[str, str]:
    saved = item[1].saved
    return saved.saved_at or "", saved.id
