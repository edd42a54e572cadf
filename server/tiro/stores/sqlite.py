"""`SQLiteStore`: sessions in one SQLite file that any number of processes may use.

Each session is a row, a snapshot, and the changes since, one row a save. A write is one
transaction that first checks which state it follows on; SQLite lets one writer in at a time.
"""

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from sqlite3 import connect
from typing import Any

from tiro.errors import StorageError
from tiro.session.changes import Change
from tiro.session.core import Core
from tiro.session.times import Clock, rfc3339, utc_now
from tiro.stores.about import About, Heading
from tiro.stores.disk import FILE_MODE, Disk, file_id, make_directories, signature_at
from tiro.stores.journal import change_lines
from tiro.stores.kept import KeptStore
from tiro.stores.lock_file import LockFile
from tiro.stores.names import file_stem
from tiro.stores.reading import errno_name
from tiro.stores.search import Hit, Search
from tiro.stores.session_files import encode_snapshot
from tiro.stores.shelf import KeptTexts, Keys, NoKeys, Row
from tiro.stores.shelf_manager import ShelfManager
from tiro.stores.sqlite_tables import OTHER_PATH, all_or_nothing, check_own, migrate
from tiro.stores.sqlite_trash import ABOUT, EXPIRY, TrashTable
from tiro.stores.store import CLEANUP_SECONDS, expires_at

BUSY_SECONDS = 10.0
"""How long to wait for another program that writes."""
HURRIED_SECONDS = 0.1
"""The same where others wait for us, and how long nobody else gets at the tables meanwhile."""
PAUSE_SECONDS = 0.02
SETTINGS = (
    "journal_mode = WAL",
    "synchronous = FULL",  # what a save has answered survives a loss of power
    "foreign_keys = ON",
    "secure_delete = ON",
)
LISTED = f"CAST(id AS TEXT), number, CAST(n AS INTEGER), {EXPIRY}, {ABOUT}"
"""The columns of a list."""
IS_WHOLE = (
    " AND EXISTS (SELECT 1 FROM snapshots WHERE session = sessions.number)"
    " AND (SELECT max(first_n) FROM changes WHERE session = sessions.number) IS ?"
)
"""That no other program took rows of a session away, as far as that costs little to see."""
ERRNO_NAMES = {
    sqlite3.SQLITE_FULL: "ENOSPC",
    sqlite3.SQLITE_READONLY: "EROFS",
    sqlite3.SQLITE_PERM: "EACCES",
    sqlite3.SQLITE_AUTH: "EACCES",
    sqlite3.SQLITE_BUSY: "EBUSY",
    sqlite3.SQLITE_LOCKED: "EBUSY",
}
"""The names of the system for SQLite's primary codes; all others are EIO."""


class SQLiteStore(KeptStore):
    """Keeps sessions in this file, which is made with the first of them."""

    def __init__(
        self,
        path: str | Path,
        cleanup_interval_seconds: float = CLEANUP_SECONDS,
        clock: Clock = utc_now,
    ) -> None:
        self._path = Path(path).absolute()
        self._search: Search | None = None
        self._reader: ShelfManager | None = None
        self._search_lock = threading.Lock()
        super().__init__(Database(self._path, clock), cleanup_interval_seconds, clock)

    def search(self, query: str, limit: int = 20) -> list[Hit]:
        """The newest messages that hold every word and every "phrase" of the query.

        A full-text index beside the file (FTS5) is brought up to date first.
        """
        with self._search_lock:
            search = self._search = self._search or self._new_search()
        return search.find(query, limit)

    def close(self) -> None:
        """As `Store.close`."""
        super().close()
        with self._search_lock:
            search, self._search = self._search, None
            reader, self._reader = self._reader, None
        if search is not None:
            search.close()
        if reader is not None:
            reader.close()

    def _new_search(self) -> Search:
        database = Database(self._path, self.clock)
        self._reader = ShelfManager(database, self._path, cache_directory=self._path.parent)
        return Search(self._reader)


class Database:
    """The sessions in one SQLite file, as a shelf."""

    def __init__(self, path: Path, clock: Clock = utc_now) -> None:
        self.path = path
        self.clock = clock
        self.keys: Keys = NoKeys()
        self.busy_seconds = BUSY_SECONDS
        self._lock = threading.RLock()
        self._here = threading.local()
        self._sql: sqlite3.Connection | None = None
        self._file_id: tuple[int, int] | None = None
        self._log_id: tuple[int, int] | None = None
        """The file beside it that has what was written last, where that is not in it yet."""

    @property
    def trash(self) -> TrashTable:
        """The sessions that were deleted."""
        return TrashTable(self)

    def insert(self, session: Core) -> "_KeptRows | None":
        """Make the rows of a new session; None where there are some."""
        heading, expiry = Heading(session), expires_at(session)
        data = self.encoded(session)
        with self.writing() as sql:
            number = sql.execute(
                "INSERT OR IGNORE INTO sessions (id, n, expires_at, title, agent, messages,"
                " archived, saved_at, bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (session.id, session.n, expiry, *self.about(session, heading, len(data))),
            )
            if not number.rowcount:
                return None
            sql.execute("INSERT INTO snapshots VALUES (?, ?)", (number.lastrowid, data))
        kept = _KeptRows(self, number.lastrowid or 0, session.n, expiry, (data, []))
        kept.heading = heading
        return kept

    def find(self, id: str) -> "_KeptRows | None":
        """Read the rows of a session."""
        with self.reading() as sql:
            row = sql.execute(
                f"SELECT number, CAST(n AS INTEGER), {EXPIRY}, CAST(data AS BLOB) FROM sessions"
                " LEFT JOIN snapshots ON session = number WHERE id = ?",
                (id,),
            ).fetchone()
            if row is None:
                return None
            number, n, expiry, data = row
            query = "SELECT first_n, CAST(lines AS BLOB) FROM changes WHERE session = ? ORDER BY 1"
            changes = sql.execute(query, (number,)).fetchall()
        kept = _KeptRows(self, number, n, expiry, (data or b"", [lines for _, lines in changes]))
        kept.newest = changes[-1][0] if changes else None
        return kept

    def has(self, id: str) -> bool:
        """Whether a session has rows."""
        with self.reading() as sql:
            query = "SELECT 1 FROM sessions WHERE id = ?"
            return sql.execute(query, (id,)).fetchone() is not None

    def rows(self, now: datetime) -> list[Row]:
        """What the columns for a list say of all sessions, without the expired."""
        with self.reading() as sql:
            rows = sql.execute(
                f"SELECT {LISTED}"
                " FROM sessions WHERE expires_at IS NULL OR expires_at >= ?"
                " ORDER BY saved_at DESC, id DESC",
                (now.timestamp(),),
            ).fetchall()
        return [
            Row(id, str(number), n, About(*about), expires_at)
            for id, number, n, expires_at, *about in rows
        ]

    def lock(self, id: str) -> LockFile:
        """The lock of a session: a file beside the sessions, since the system then drops it."""
        return LockFile(self.path.with_name(self.path.name + ".locks") / file_stem(id))

    @contextlib.contextmanager
    def hurried(self) -> Iterator[None]:
        """As `SharedShelf.hurried`."""
        before, self._here.patience = getattr(self._here, "patience", self.busy_seconds), 0.0
        try:
            yield
        finally:
            self._here.patience = before

    def ping(self) -> None:
        """Raise StorageError where nothing can be read."""
        with self.reading():
            pass

    def delete(self, id: str) -> bool:
        """Remove the rows of a session."""
        if not self._is_there():
            return False
        with self.writing() as sql:
            return sql.execute("DELETE FROM sessions WHERE id = ?", (id,)).rowcount > 0

    def delete_expired(self, now: datetime) -> int:
        """Remove the rows of all sessions that have expired."""
        if not self._is_there():
            return 0
        with self.writing() as sql:
            moment = (now.timestamp(),)
            return sql.execute("DELETE FROM sessions WHERE expires_at < ?", moment).rowcount

    def count(self, now: datetime) -> int:
        """How many sessions have rows, without the expired."""
        query = "SELECT count(*) FROM sessions WHERE expires_at IS NULL OR expires_at >= ?"
        with self.reading() as sql:
            count: int = sql.execute(query, (now.timestamp(),)).fetchone()[0]
            return count

    def vacuum(self) -> None:
        """Give back the room that is free in the file, and what was written beside it.

        So goes what other programs left of sessions. Others that write wait meanwhile.
        """
        with self.writing() as sql:
            for table in ("snapshots", "changes"):
                gone = "session NOT IN (SELECT number FROM sessions)"
                sql.execute(f"DELETE FROM {table} WHERE {gone}")
        with self._begun("VACUUM", "written") as sql:
            sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # what others still read stays

    def close(self) -> None:
        """Let go of the file; whatever is called next opens it again."""
        with self._lock:
            if self._sql is not None:
                self._sql.close()
                self._sql = None

    def encoded(self, session: Core) -> bytes:
        """A snapshot of a session."""
        return self.keys.redact(encode_snapshot(session, self.clock()))

    def about(self, session: Core, heading: Heading, size: int) -> tuple[Any, ...]:
        """What the columns for a list say of a session."""
        about = heading.about(session, rfc3339(self.clock()), size)
        title = about.title and self.keys.redact_text(about.title)
        return title, about.agent, about.messages, about.archived, about.saved_at, about.bytes

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One state of the file for all that is read inside; a missing one is not made for it."""
        if self._is_there():
            with self._begun("BEGIN", "read") as sql, all_or_nothing(sql):
                yield sql
            return
        try:
            with contextlib.closing(connect(":memory:")) as sql:
                migrate(sql, self.path)
                yield sql
        except sqlite3.Error as error:
            raise _failure(self.path, error, "read") from error

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """All that is written inside, or nothing of it."""
        with self._begun("BEGIN IMMEDIATE", "written") as sql, all_or_nothing(sql):
            yield sql

    def _is_there(self) -> bool:
        try:
            return signature_at(self.path) is not None
        except OSError as error:
            raise _failure(self.path, error, "read") from error

    @contextlib.contextmanager
    def _begun(self, begin: str, verb: str) -> Iterator[sqlite3.Connection]:
        """The tables, for one thread at a time, when this was done in them first.

        Who waits for another program keeps no thread from them. What SQLite refuses is a
        StorageError.
        """
        until = time.monotonic() + getattr(self._here, "patience", self.busy_seconds)
        while (sql := self._tried(begin, verb, until)) is None:
            time.sleep(PAUSE_SECONDS)
        try:
            yield sql
        except StorageError:
            raise
        except (sqlite3.Error, OSError) as error:
            raise _failure(self.path, error, verb) from error
        finally:
            self._lock.release()

    def _tried(self, begin: str, verb: str, until: float) -> sqlite3.Connection | None:
        """Do this first, and hold the lock then; None where another program is at it."""
        self._lock.acquire()
        try:
            sql = self._open()
            sql.execute(begin)
            if begin == "BEGIN":
                sql.execute("PRAGMA user_version")  # before something is read nothing has begun
            return sql
        except (sqlite3.Error, OSError) as error:
            failure = error if isinstance(error, StorageError) else _failure(self.path, error, verb)
            self._give_up()
            if failure.data["errno"] != "EBUSY" or time.monotonic() >= until:
                raise failure from error
            return None
        except BaseException:
            self._give_up()
            raise

    def _give_up(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            if self._sql is not None and self._sql.in_transaction:
                self._sql.execute("ROLLBACK")
        self._lock.release()

    def _open(self) -> sqlite3.Connection:
        """The tables in the file that is there now; made where it is missing."""
        log = self.path.with_name(self.path.name + "-wal")
        known = self._file_id, self._log_id
        if self._sql is not None and (file_id(self.path), file_id(log)) != known:
            self.close()  # somebody took one of them away: nothing may be written to that one
        if self._sql is None:
            make_directories(Disk(), self.path.parent)
            if not (self.path.is_file() and os.access(self.path, os.R_OK | os.W_OK)):
                # Never else: whoever has it open here loses the locks when this is closed.
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, FILE_MODE))  # its owner's only
            self._file_id = file_id(self.path)
            sql = connect(
                self.path, timeout=HURRIED_SECONDS, isolation_level=None, check_same_thread=False
            )
            sql.text_factory = _text
            try:
                if self.path.stat().st_size:  # who makes it now must not be kept from it
                    check_own(sql, self.path)
                for setting in SETTINGS:
                    sql.execute(f"PRAGMA {setting}")
                migrate(sql, self.path)
            except BaseException:
                sql.close()
                raise
            self._sql, self._log_id = sql, file_id(log)
        return self._sql


class _KeptRows(KeptTexts):
    """The rows of one session, as they were last seen."""

    def __init__(
        self,
        database: Database,
        number: int,
        n: int,
        expires_at: float | None,
        texts: tuple[bytes, list[bytes]],
    ) -> None:
        super().__init__(n, texts)
        self.expires_at = expires_at
        self.birth = str(number)
        self.newest: int | None = None
        """The first number in the newest row of changes."""
        self._database = database
        self._number = number

    def append(self, session: Core, first_n: int, changes: tuple[Change, ...]) -> bool:
        """Add one row with these changes."""
        lines = self._database.keys.redact(change_lines(first_n, changes))
        size = self.snapshot_bytes + self.changes_bytes + len(lines)
        with self._database.writing() as sql:
            if not self._go_on(sql, session, changes, size, IS_WHOLE, self.newest):
                return False
            row = (self._number, first_n, lines)
            sql.execute("INSERT INTO changes VALUES (?, ?, ?)", row)
        self.n, self.newest = session.n, first_n
        self.changes_bytes += len(lines)
        return True

    def replace(self, session: Core) -> bool:
        """Write the snapshot anew and remove the rows of changes."""
        data = self._database.encoded(session)
        self.heading = Heading(session)
        with self._database.writing() as sql:
            if not self._go_on(sql, session, (), len(data)):
                return False
            sql.execute("REPLACE INTO snapshots VALUES (?, ?)", (self._number, data))
            sql.execute("DELETE FROM changes WHERE session = ?", (self._number,))
        self.n, self.snapshot_bytes, self.changes_bytes, self.newest = session.n, len(data), 0, None
        return True

    def is_current(self) -> bool:
        """Whether the rows are still as they were last seen."""
        with self._database.reading() as sql:
            query = "SELECT n FROM sessions WHERE number = ?"
            found: tuple[int] | None = sql.execute(query, (self._number,)).fetchone()
            return found == (self.n,)

    def delete(self) -> bool:
        """Remove the rows, whatever others wrote to them."""
        with self._database.writing() as sql:
            query = "DELETE FROM sessions WHERE number = ?"
            return sql.execute(query, (self._number,)).rowcount > 0

    def _go_on(
        self,
        sql: sqlite3.Connection,
        session: Core,
        changes: tuple[Change, ...],
        size: int,
        condition: str = "",
        *more: object,
    ) -> bool:
        """Bring the session's row to what it is now, if it is as it was last seen.

        And if a condition holds, with these values.
        """
        assert self.heading is not None
        self.heading.follow(session, changes)
        about = self._database.about(session, self.heading, size)
        done = sql.execute(
            "UPDATE sessions SET n = ?, title = ?, agent = ?, messages = ?, archived = ?,"
            f" saved_at = ?, bytes = ? WHERE number = ? AND n = ?{condition}",
            (session.n, *about, self._number, self.n, *more),
        )
        return done.rowcount > 0


def _text(data: bytes) -> str:
    """What a column says, also where somebody's hand left what is no text."""
    return data.decode("utf-8", "replace")


def _failure(path: Path, error: sqlite3.Error | OSError, verb: str) -> StorageError:
    """The error for what cannot be read or written, with its reason by name."""
    if isinstance(error, OSError):
        name, hint = errno_name(error), ""
    else:
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF  # the primary one
        name = ERRNO_NAMES.get(code, "EIO")
        hint = f"; {OTHER_PATH}" if code == sqlite3.SQLITE_NOTADB else ""
    why = getattr(error, "strerror", None) or error
    sentence = f"The sessions in {str(path)!r} could not be {verb}: {why}{hint}"
    return StorageError(sentence, path=str(path), errno=name)
