"""The sessions in one SQLite file, unread: what a look for damage reads and a repair writes.

Where SQLite itself finds the file damaged, its indexes are made anew; if that is not enough, what
can still be read is copied to a new file. No file is replaced under a program that has it open.
"""

import os
import sqlite3
from contextlib import closing, suppress
from datetime import datetime
from itertools import count
from pathlib import Path

from tiro.errors import StorageError
from tiro.session.core import Core
from tiro.stores.about import Heading
from tiro.stores.disk import Disk, claim_file, signature_at
from tiro.stores.names import file_stem
from tiro.stores.shelf import TurnLock
from tiro.stores.shelf_verify import Found, salvaged_session
from tiro.stores.sqlite import Database
from tiro.stores.vacuum import Vacuumed
from tiro.stores.verify import Damage, counted

MOST_PROBLEMS = 20


class RawRows:
    """The rows of a file; a session is found by its number."""

    def __init__(self, database: Database, disk: Disk | None = None) -> None:
        self._database = database
        self._disk = disk or Disk()

    @property
    def name(self) -> str:
        """The path of the file."""
        return str(self._database.path)

    def problems(self, stamp: str) -> list[Damage]:
        """What SQLite finds wrong with the file."""
        problems = self._check()
        if not problems:
            return []
        remedy = "its indexes are made anew, or what can be read is copied to a new file"
        return [Damage(self.name, "; ".join(problems), remedy, lambda: self._rebuild(stamp))]

    def places(self) -> list[str]:
        """The numbers of all sessions."""
        return self._numbers("sessions")

    def _numbers(self, table: str) -> list[str]:
        """The numbers in a table; around a damaged page those on both sides of it."""
        numbers: dict[int, None] = {}
        refused: StorageError | None = None
        for order in ("ASC", "DESC"):
            try:
                with self._database.reading() as sql:
                    for (number,) in sql.execute(f"SELECT number FROM {table} ORDER BY 1 {order}"):
                        numbers[number] = None
            except StorageError as error:
                refused = error
        if refused is not None and not numbers:
            raise refused
        return [str(number) for number in sorted(numbers)]

    def read(self, place: str) -> Found | None:
        """The rows of one session."""
        with self._database.reading() as sql:
            row = sql.execute(
                "SELECT id, n, expires_at FROM sessions WHERE number = ?", (place,)
            ).fetchone()
            if row is None:
                return None
            data = sql.execute("SELECT data FROM snapshots WHERE session = ?", (place,)).fetchone()
            query = "SELECT lines FROM changes WHERE session = ? ORDER BY first_n"
            changes = [_as_bytes(lines) for (lines,) in sql.execute(query, (place,))]
        id, n, expires_at = row
        snapshot = None if data is None else _as_bytes(data[0])
        return Found(id, place, n, expires_at, snapshot, changes, is_listed=True)

    def put(self, found: Found, session: Core | None, stamp: str) -> str | None:
        """As `RawShelf.put`; what was found is kept in a file beside."""
        database, state = self._database, (found.birth, found.n)
        kept = self._keep(found, stamp)
        with database.writing() as sql:
            if session is None:
                done = sql.execute("DELETE FROM sessions WHERE number = ? AND n = ?", state)
            else:
                data = database.encoded(session)
                about = database.about(session, Heading(session), len(data))
                done = sql.execute(
                    "UPDATE sessions SET n = ?, title = ?, agent = ?, messages = ?, archived = ?,"
                    " saved_at = ?, bytes = ? WHERE number = ? AND n = ?",
                    (session.n, *about, *state),
                )
                if done.rowcount:
                    sql.execute("DELETE FROM changes WHERE session = ?", (found.birth,))
                    sql.execute("REPLACE INTO snapshots VALUES (?, ?)", (found.birth, data))
        if not done.rowcount:
            with suppress(OSError):
                self._disk.unlink(kept)
            return None
        return str(kept)

    def lock(self, id: str) -> TurnLock:
        """The lock of the session with this id."""
        return self._database.lock(id)

    def unneeded(self, *, now: datetime) -> Vacuumed:
        """How many have expired, and the room that is free in the file."""
        with self._database.reading() as sql:
            query = "SELECT count(*) FROM sessions WHERE expires_at < ?"
            expired = sql.execute(query, (now.timestamp(),)).fetchone()[0]
            free = sql.execute("PRAGMA freelist_count").fetchone()[0]
            free *= sql.execute("PRAGMA page_size").fetchone()[0]
        return Vacuumed(expired, 0, free)

    def vacuum(self, *, now: datetime) -> Vacuumed:
        """Remove the expired, and give the room back that is free in the file and beside it."""
        database, before = self._database, self._bytes()
        if not database.path.exists():
            return Vacuumed(0, 0, 0)
        expired = database.delete_expired(now)
        database.vacuum()
        return Vacuumed(expired, 0, max(0, before - self._bytes()))

    def _bytes(self) -> int:
        paths = (self._database.path, Path(f"{self._database.path}-wal"))
        return sum(found.size for path in paths if (found := signature_at(path)))

    def _keep(self, found: Found, stamp: str) -> Path:
        path = self._database.path
        data = (found.snapshot or b"").rstrip(b"\n") + b"\n" + b"".join(found.changes)
        for number in count(1):
            more = "" if number == 1 else f"-{number}"
            kept = path.with_name(f"{path.name}.{file_stem(found.id)}.bad-{stamp}{more}")
            if claim_file(self._disk, kept, data) is not None:
                return kept
        raise AssertionError("numbers never end")

    def _check(self) -> list[str]:
        """What is wrong with the file, also where SQLite cannot even go through it."""
        try:
            with self._database.reading() as sql:
                rows = sql.execute(f"PRAGMA integrity_check({MOST_PROBLEMS})").fetchall()
        except StorageError as error:
            if getattr(error.__cause__, "sqlite_errorcode", None) != sqlite3.SQLITE_CORRUPT:
                raise
            return [str(error.__cause__)]
        return [str(row[0]) for row in rows if row != ("ok",)]

    def _rebuild(self, stamp: str) -> str:
        with suppress(StorageError):
            with self._database.writing() as sql:
                sql.execute("REINDEX")
            if not self._check():
                return "its indexes are made anew"
        path = self._database.path
        copy = path.with_name(f"{path.stem}.rescued-{stamp}{path.suffix}")
        with closing(Database(copy, self._database.clock)) as other:
            (saved, lost), deleted = self._copy_sessions(other), self._copy_trash(other)
        if not saved and not deleted:
            raise StorageError("no session in it could be read", path=str(path))
        more = f"; so could {counted(deleted, 'session')} in the trash" if deleted else ""
        raise StorageError(
            f"{counted(saved, 'session')} could be read, whole or in part, and {lost} not{more};"
            f" they are in {str(copy)!r}: end all that uses the sessions, then put it in the place"
            " of the damaged file",
            path=str(path),
        )

    def _copy_trash(self, other: Database) -> int:
        """Copy what is in the trash, row by row; how many of its sessions could be read."""
        saved, numbers = 0, list[str]()
        with suppress(StorageError):
            numbers = self._numbers("trash")
        for number in numbers:
            row = None
            with suppress(StorageError), self._database.reading() as sql:
                query = "SELECT * FROM trash WHERE number = ?"
                row = sql.execute(query, (number,)).fetchone()
            if row is not None:
                saved += _insert_deleted(other, row[1:])
        return saved

    def _copy_sessions(self, other: Database) -> tuple[int, int]:
        """Copy what can be read of the sessions; how many that were, and how many not."""
        saved, lost, places = 0, 0, list[str]()
        with suppress(StorageError):
            places = self.places()
        for place in places:
            session = None
            with suppress(StorageError):
                found = self.read(place)
                session = None if found is None else salvaged_session(found)
            if session is not None and other.insert(session) is not None:
                saved += 1
            else:
                lost += 1
        return saved, lost


def _insert_deleted(other: Database, row: tuple[object, ...]) -> int:
    """Put a row without its number into the trash of a file, under one that no session has.

    How many were put there: none where the row has nothing in a column that must have something.
    """
    with other.writing() as sql:
        query = "SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence"
        number = sql.execute(query).fetchone()[0]
        places = ", ".join("?" * (len(row) + 1))
        done = sql.execute(f"INSERT OR IGNORE INTO trash VALUES ({places})", (number, *row))
        sql.execute("DELETE FROM sqlite_sequence")
        sql.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('sessions', ?)", (number,))
    return done.rowcount


def _as_bytes(value: object) -> bytes:
    """A column of any type, as another program may have left it."""
    return value if isinstance(value, bytes) else os.fsencode(str(value))
