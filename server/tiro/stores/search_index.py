"""The full-text index behind the search: a cache in SQLite, keyed by the files' versions (U9.9).

It holds what was said in the session files and nothing else; deleting it changes nothing but the
time of the next search, also of a search that runs. Sessions in SQLite and Redis have one as well,
not tables beside their own: so a save pays nothing for it, its damage touches no session, and all
stores find the same by the same means. Several processes share it, through no shared
memory: a file that is cut while it is mapped would end them. A damaged one is made anew; where
SQLite has no full text or cannot write there is no answer, and whoever asks reads the files.
"""

import contextlib
import hashlib
import logging
import math
import os
import sqlite3
import sys
import unicodedata
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tiro.session.words import Phrase, for_index
from tiro.stores.disk import FILE_MODE, Disk, file_id, make_directories
from tiro.stores.index import Version
from tiro.stores.places import (
    EndedError,
    LookAt,
    Place,
    Progress,
    look_at_file,
    matching,
    saved_places,
)

_FORM = 3
BATCH_CHARACTERS = 8_000_000
"""About how much text is taken in by one transaction."""
BUSY_SECONDS = 10.0
"""How long to wait for another process that writes."""
_MOST_PHRASES, _MOST_WORDS = 64, 100
"""How much of a query the index is asked; the rest is looked for in what it finds."""
_SMALL_BYTES = 50_000_000
"""Up to this size an old SQLite can make its file anew after something was deleted."""
SETTINGS = (
    "mmap_size = 0",
    "locking_mode = EXCLUSIVE",  # until it is no WAL any more: so an older file maps nothing
    "journal_mode = TRUNCATE",
    "locking_mode = NORMAL",
    "synchronous = NORMAL",
    "secure_delete = ON",
    "cache_size = -16000",
)
_TABLES = (
    "CREATE TABLE files (number INTEGER PRIMARY KEY, path BLOB UNIQUE, version BLOB,"
    " id BLOB, saved_at TEXT)",
    # A row's number is its moment, or the next one that is free: never less, and seldom much more.
    "CREATE TABLE rows (number INTEGER PRIMARY KEY, moment INTEGER, file INTEGER, seq INTEGER,"
    " role TEXT, taken_back INTEGER, digest BLOB, text BLOB)",
    "CREATE INDEX rows_of_file ON rows (file)",
    "CREATE VIRTUAL TABLE words USING fts5 (text, content = '', tokenize = 'ascii')",
    "INSERT INTO words (words, rank) VALUES ('hashsize', 16000000)",
)
_SOUND = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL}
"""The errors that say nothing against the file; every other one may come from damage."""

log = logging.getLogger(__name__)

T = TypeVar("T")


class SearchIndex:
    """The index of one directory of sessions; used by one thread at a time."""

    def __init__(self, path: Path, disk: Disk, look_at: LookAt = look_at_file) -> None:
        self._path = path
        self._disk = disk
        self._look_at = look_at
        self._tables: _Tables | None = None

    def places(
        self,
        versions: Sequence[tuple[str, Version | None]],
        wanted: Sequence[Phrase],
        limit: int,
        living: Collection[str],
        on_progress: Progress,
    ) -> list[Place] | None:
        """Places that hold every phrase, among them the newest `limit` of all.

        `versions` are all session files with what tells one version from another. Those of `living`
        are left out. None where the index cannot be used.
        """

        def find(tables: _Tables) -> list[Place]:
            tables.bring_up_to_date(versions, living, on_progress)
            return list(tables.find(wanted, limit, living))

        return self._done(find)

    def forget_all_but(self, versions: Sequence[tuple[str, Version | None]]) -> None:
        """Take out what is in no session file any more, and nothing in."""
        if self._path.exists():
            kept = {path for path, _ in versions}
            self._done(lambda t: t.bring_up_to_date(versions, kept, lambda done, total: None))

    def close(self) -> None:
        """Let go of the file."""
        if self._tables is not None:
            self._tables.close()
            self._tables = None

    def _done(self, work: Callable[["_Tables"], T]) -> T | None:
        """What the work on the tables gives; None where they cannot be used."""
        for _ in range(2):
            try:
                return work(self._open())
            except EndedError:
                raise
            except Exception as error:  # damage may yield anything
                log.info("The search index cannot be used: %r", error)
                if getattr(error, "sqlite_errorcode", 0) & 0xFF in _SOUND:
                    self.close()
                    return None
                self._throw_away()
        return None

    def _open(self) -> "_Tables":
        """The tables in the file that is there now; made where it is missing."""
        if self._tables is not None and self._tables.is_elsewhere():
            self.close()
        if self._tables is None:
            make_directories(self._disk, self._path.parent)
            self._tables = _Tables(self._path, self._look_at)
        return self._tables

    def _throw_away(self) -> None:
        """Remove the file, unless another process has put a new one in its place."""
        is_elsewhere = self._tables is not None and self._tables.is_elsewhere()
        self.close()
        if is_elsewhere:
            return
        for ending in ("", "-journal", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                self._disk.unlink(self._path.with_name(self._path.name + ending))


class _Tables:
    """The tables of an index, open."""

    def __init__(self, path: Path, look_at: LookAt) -> None:
        self._look_at = look_at
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, FILE_MODE))  # for its owner only
        self._path = path
        self._file_id = file_id(path)
        self._sql = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        self._known: dict[str, Version | None] = {}
        self._data_version = -1
        self._has_deleted = False
        self._next: dict[int, int] = {}
        """The number to try first for the next message of a moment."""
        try:
            for setting in SETTINGS:
                self._sql.execute(f"PRAGMA {setting}")
            self._make()
        except BaseException:
            self._sql.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        with contextlib.suppress(sqlite3.Error):
            self._sql.close()

    def is_elsewhere(self) -> bool:
        """Whether the file was deleted, or another one is in its place."""
        return file_id(self._path) != self._file_id

    def bring_up_to_date(
        self,
        versions: Sequence[tuple[str, Version | None]],
        living: Collection[str],
        on_progress: Progress,
    ) -> None:
        """Take in every file that changed, but for `living`, and forget those that are gone."""
        self._look()
        gone = self._known.keys() - {path for path, _ in versions}
        if gone:
            with self._writing():
                for path in gone:
                    self._forget(path)
        changed = [
            (path, version)
            for path, version in reversed(versions)  # SQLite likes the oldest to come first
            if (version is None or self._known.get(path) != version) and path not in living
        ]
        for done, batch in _batches(changed, self._look_at, on_progress):
            self._next.clear()
            with self._writing():
                new = [row for read in batch for row in self._take(*read)]
                for number, digest, place in sorted(new, key=lambda row: row[2].moment):
                    on_progress(done, len(changed))
                    self._add(number, digest, place)
        if self._has_deleted:
            self._purge()

    def find(
        self, wanted: Sequence[Phrase], limit: int, living: Collection[str]
    ) -> Iterator[Place]:
        """The places that hold every phrase, in about their order; the newest are all there."""
        rows = self._sql.execute(
            "SELECT rows.number, moment, path, id, saved_at, seq, role, taken_back, rows.text"
            " FROM words CROSS JOIN rows ON rows.number = words.rowid"
            " CROSS JOIN files ON files.number = rows.file"
            " WHERE words MATCH ? ORDER BY words.rowid DESC",
            (_query(wanted),),
        )
        count, oldest = 0, math.inf
        for number, *row in rows:
            if count >= limit and number < oldest:
                return  # what follows was said earlier than `limit` others
            for place in matching([_place(row)], wanted):
                if place.path not in living:
                    if count < limit:
                        oldest = min(oldest, place.moment)
                    count += 1
                    yield place

    def _make(self) -> None:
        """Make the tables anew, unless they are there in this form."""
        form = zlib.crc32(f"{_FORM} {unicodedata.unidata_version}".encode()) >> 1
        if self._sql.execute("PRAGMA user_version").fetchone() == (form,):
            return
        with self._writing():
            if self._sql.execute("PRAGMA user_version").fetchone() == (form,):
                return  # another process was faster
            for name in ("words", "rows", "files"):
                self._sql.execute(f"DROP TABLE IF EXISTS {name}")
            for statement in _TABLES:
                self._sql.execute(statement)
            with contextlib.suppress(sqlite3.OperationalError):  # before SQLite 3.42
                self._sql.execute("INSERT INTO words (words, rank) VALUES ('secure-delete', 1)")
            self._sql.execute(f"PRAGMA user_version = {form}")

    def _look(self) -> None:
        """Know what is in the tables, also after another process wrote to them."""
        (version,) = self._sql.execute("PRAGMA data_version").fetchone()
        if version != self._data_version:
            rows = self._sql.execute("SELECT path, version FROM files")
            self._known = {_text(path): _VERSION.decode(text) for path, text in rows}
            self._data_version = version

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction; no other process writes meanwhile."""
        self._sql.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._data_version = -1
            with contextlib.suppress(sqlite3.Error):
                self._sql.execute("ROLLBACK")
            raise
        self._sql.execute("COMMIT")

    def _take(
        self, path: str, version: Version | None, places: Sequence[Place]
    ) -> list[tuple[int, bytes, Place]]:
        """Delete the rows of a file that are no messages of it now; those that are to be added."""
        number, known = self._file(path)
        if version is not None and known == version:
            return []  # another process was faster
        rows = self._sql.execute("SELECT digest, number FROM rows WHERE file = ?", (number,))
        old, new = dict(rows.fetchall()), {_digest(place): place for place in places}
        for digest in old.keys() - new.keys():
            self._delete(old[digest])
        of = places[0] if places else None
        self._sql.execute(
            "UPDATE files SET version = ?, id = ?, saved_at = ? WHERE number = ?",
            (_encode(version), _bytes(of.id) if of and of.id else None, of and of.saved_at, number),
        )
        self._known[path] = version
        return [(number, digest, new[digest]) for digest in new.keys() - old.keys()]

    def _file(self, path: str) -> tuple[int, Version | None]:
        """The number of a file and the version that was taken last; made where it is new."""
        query = "SELECT number, version FROM files WHERE path = ?"
        row = self._sql.execute(query, (_bytes(path),)).fetchone()
        if row is not None:
            return row[0], _VERSION.decode(row[1])
        insert = "INSERT INTO files (path, version) VALUES (?, ?)"
        return self._sql.execute(insert, (_bytes(path), _encode(None))).lastrowid or 0, None

    def _add(self, file: int, digest: bytes, place: Place) -> None:
        text = place.text.encode("utf-8", "replace")
        packed = zlib.compress(text, 1)
        row = (place.moment, file, place.seq, place.role, place.taken_back, digest, packed)
        number = self._next.get(place.moment, place.moment)
        insert = "INSERT OR IGNORE INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        while self._sql.execute(insert, (number, *row)).rowcount == 0:
            number += 1
        self._next[place.moment] = number + 1
        words = for_index(text.decode())
        self._sql.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number, words))

    def _delete(self, number: int) -> None:
        query = "SELECT text FROM rows WHERE number = ?"
        (text,) = self._sql.execute(query, (number,)).fetchone()
        self._sql.execute(
            "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)",
            (number, for_index(zlib.decompress(text).decode())),
        )
        self._sql.execute("DELETE FROM rows WHERE number = ?", (number,))
        self._has_deleted = True

    def _forget(self, path: str) -> None:
        """Take all of a file out."""
        number, _ = self._file(path)
        for (row,) in self._sql.execute(
            "SELECT number FROM rows WHERE file = ?", (number,)
        ).fetchall():
            self._delete(row)
        self._sql.execute("DELETE FROM files WHERE number = ?", (number,))
        self._known.pop(path, None)

    def _purge(self) -> None:
        """See that nothing that was deleted stays in the files, where that can be had soon."""
        self._has_deleted = False
        if sqlite3.sqlite_version_info < (3, 42) and self._path.stat().st_size < _SMALL_BYTES:
            self._sql.execute("INSERT INTO words (words) VALUES ('optimize')")


def _batches(
    changed: Sequence[tuple[str, Version | None]], look_at: LookAt, on_progress: Progress
) -> Iterator[tuple[int, list[tuple[str, Version | None, list[Place]]]]]:
    """The changed files with their messages in batches, and how many were read by then."""
    batch, size = [], 0
    for done, (path, version) in enumerate(changed, 1):
        on_progress(done - 1, len(changed))
        places = saved_places(path, look_at)
        batch.append((path, version, places))
        size += sum(len(place.text) for place in places)
        if size >= BATCH_CHARACTERS or done == len(changed):
            yield done, batch
            batch, size = [], 0


def _query(wanted: Sequence[Phrase]) -> str:
    """The phrases in the language of SQLite; words hold nothing that means anything there."""
    parts = []
    for phrase in wanted[:_MOST_PHRASES]:
        words = phrase.words.split(" ")
        is_prefix = phrase.is_prefix and len(words) <= _MOST_WORDS
        parts.append(f'"{" ".join(words[:_MOST_WORDS])}"' + (" *" if is_prefix else ""))
    return " AND ".join(parts)


def _place(row: list[Any]) -> Place:
    moment, path, id, saved_at, seq, role, taken_back, text = row
    return Place(
        moment=moment,
        path=_text(path),
        id=None if id is None else _text(id),
        saved_at=saved_at,
        seq=seq,
        role=role,
        taken_back=bool(taken_back),
        text=zlib.decompress(text).decode(),
    )


def _bytes(name: str) -> bytes:
    """A name of a file, or one made of it, as it is kept: it need not be text."""
    return name.encode("utf-8", _NOT_TEXT)


def _text(name: bytes) -> str:
    return name.decode("utf-8", _NOT_TEXT)


def _digest(place: Place) -> bytes:
    """What tells a message as it is from all others of its session."""
    text = f"{place.moment} {place.seq} {place.role} {place.taken_back} {place.text}"
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=12).digest()


def _encode(version: Version | None) -> bytes:
    return msgspec.json.encode(version)


_NOT_TEXT = sys.getfilesystemencodeerrors()
_VERSION: msgspec.json.Decoder[Version | None] = msgspec.json.Decoder(Version | None)
