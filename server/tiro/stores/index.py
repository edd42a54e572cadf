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
from pathlib import Path

import msgspec

from tiro.errors import SessionFormatError, SessionNotFoundError, StorageError, TiroError
from tiro.session.core import Core, rfc3339
from tiro.session.messages import Message, text_of
from tiro.stores.disk import Disk, Signature, make_directories, replace_file
from tiro.stores.reading import SNAPSHOT_ENDING, Reading, read_session

TITLE_CHARACTERS = 50
_VERSION = 1
_SETTLE_NS = 20_000_000
"""A file that changed this shortly before it was read may change again under the same time."""
_WRITE_AFTER = 50

log = logging.getLogger(__name__)


class SavedSession(msgspec.Struct, frozen=True, array_like=True):
    """One line of the list."""

    id: str
    path: str
    title: str | None
    """Its own, else the first line of the first prompt."""
    agent: str | None
    messages: int
    """The messages in the window, with what only the journal holds."""
    saved_at: str | None
    bytes: int
    error: str | None
    """Why the file cannot be loaded."""


class _Row(msgspec.Struct, frozen=True, array_like=True):
    snapshot: Signature
    journal: Signature | None
    is_settled: bool
    saved: SavedSession


class _Cache(msgspec.Struct):
    version: int
    directory: str
    rows: dict[str, _Row]


class Index:
    """The saved sessions of one directory."""

    def __init__(self, directory: Path, cache_directory: Path | None, disk: Disk) -> None:
        self._directory = directory
        self._disk = disk
        self._lock = threading.Lock()
        self._rows: dict[str, _Row] = {}
        self._sorted: list[SavedSession] = []
        self._unwritten = 0
        name = hashlib.sha256(os.fsencode(directory.absolute())).hexdigest()[:16]
        self._cache = cache_directory / f"sessions-{name}.json" if cache_directory else None
        self._is_loaded = False

    def sessions(self) -> list[SavedSession]:
        """All saved sessions, newest first; 10,000 that did not change cost two calls each."""
        with self._lock:
            self._load_cache()
            self._refresh()
            if self._unwritten >= _WRITE_AFTER:
                self._write_cache()
            return self._sorted

    def close(self) -> None:
        """Write the cache for the next process."""
        with self._lock:
            if self._unwritten:
                self._write_cache()

    def _refresh(self) -> None:
        known, rows, changed = self._rows, {}, 0
        for name, snapshot, journal in _look(self._directory):
            row = known.get(name)
            if (
                row is None
                or row.snapshot != snapshot
                or row.journal != journal
                or not row.is_settled
            ):
                row = _read_row(self._directory / name, snapshot, journal)
                changed += row != known.get(name)
            rows[name] = row
        if changed or len(rows) != len(known):
            self._sorted = sorted((row.saved for row in rows.values()), key=_newest, reverse=True)
            self._unwritten += changed + abs(len(known) - len(rows))
        self._rows = rows

    def _load_cache(self) -> None:
        if self._is_loaded or self._cache is None:
            return
        self._is_loaded = True
        try:
            cache = msgspec.json.decode(self._cache.read_bytes(), type=_Cache)
        except (OSError, ValueError):
            return
        if cache.version == _VERSION and cache.directory == str(self._directory):
            self._rows = cache.rows
            self._sorted = sorted((r.saved for r in cache.rows.values()), key=_newest, reverse=True)

    def _write_cache(self) -> None:
        if self._cache is None:
            return
        self._unwritten = 0
        cache = _Cache(_VERSION, str(self._directory), self._rows)
        try:
            make_directories(self._disk, self._cache.parent)
            replace_file(self._disk, self._cache, msgspec.json.encode(cache))
        except OSError as error:
            log.info("The list's cache could not be written: %s", error)


def first_line(messages: list[Message]) -> str | None:
    """The first line of the first prompt, up to 50 characters: what a session is called by."""
    for message in messages:
        if message.role == "user" and not message.marks().get("taken_back"):
            for line in text_of(message).splitlines():
                if line.strip():
                    return line.strip()[:TITLE_CHARACTERS]
    return None


def _look(directory: Path) -> list[tuple[str, Signature, Signature | None]]:
    """Name and signatures of all session files in the directory."""
    snapshots: list[os.DirEntry[str]] = []
    journals: dict[str, os.DirEntry[str]] = {}
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                name = entry.name
                if name.endswith(SNAPSHOT_ENDING):
                    if not name.startswith("."):
                        snapshots.append(entry)
                elif name.endswith(".journal"):
                    journals[name[:-8]] = entry
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        log.warning("The sessions directory cannot be read: %s", error)
        return []
    found = []
    for entry in snapshots:
        try:
            s = entry.stat()
            journal = journals.get(entry.name[:-5])
            j = journal.stat() if journal else None
        except OSError:
            continue
        found.append(
            (
                entry.name,
                Signature(s.st_size, s.st_mtime_ns, s.st_ino),
                Signature(j.st_size, j.st_mtime_ns, j.st_ino) if j and j.st_size else None,
            )
        )
    return found


def _read_row(path: Path, snapshot: Signature, journal: Signature | None) -> _Row:
    newest = max(snapshot.mtime_ns, journal.mtime_ns if journal else 0)
    is_settled = time.time_ns() - newest > _SETTLE_NS
    try:
        saved = _saved_session(path, read_session(path))
    except (SessionFormatError, SessionNotFoundError, StorageError) as error:
        saved = _damaged(path, snapshot, error)
    return _Row(snapshot, journal, is_settled, saved)


def _saved_session(path: Path, reading: Reading) -> SavedSession:
    core = Core()
    reading.restore(core)
    return SavedSession(
        id=core.id or path.name.removesuffix(SNAPSHOT_ENDING),
        path=str(path),
        title=core.title or first_line([*core.archive_rows, *core.oldest_first()]),
        agent=core.agent,
        messages=len(core.newest_first),
        saved_at=rfc3339(reading.saved_at(core)),
        bytes=reading.bytes,
        error=None,
    )


def _damaged(path: Path, snapshot: Signature, error: TiroError) -> SavedSession:
    return SavedSession(
        id=path.name.removesuffix(SNAPSHOT_ENDING),
        path=str(path),
        title=None,
        agent=None,
        messages=0,
        saved_at=None,
        bytes=snapshot.size,
        error=str(error.data.get("reason") or error),
    )


def _newest(saved: SavedSession) -> tuple[str, str]:
    return saved.saved_at or "", saved.id
