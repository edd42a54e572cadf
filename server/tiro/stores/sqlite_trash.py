"""The trash of an SQLite file: rows of one table, moved in one transaction (`RawTrash`)."""

from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from sqlite3 import Connection
from typing import Protocol

from tiro.stores.about import About
from tiro.stores.shelf import DeletedRow, KeptTexts

TABLE = (
    "CREATE TABLE trash (number INTEGER PRIMARY KEY, id TEXT NOT NULL, deleted_at REAL NOT NULL,"
    " n INTEGER NOT NULL, expires_at REAL, title TEXT, agent TEXT, messages INTEGER NOT NULL,"
    " archived INTEGER NOT NULL, saved_at TEXT NOT NULL, bytes INTEGER NOT NULL,"
    " data BLOB NOT NULL, first_n INTEGER, lines BLOB NOT NULL)"
)
"""A session keeps the number that it had; all its changes are one text."""
ABOUT = (
    "CAST(title AS TEXT), CAST(agent AS TEXT), CAST(messages AS INTEGER),"
    " CAST(archived AS INTEGER), CAST(saved_at AS TEXT), CAST(bytes AS INTEGER)"
)
"""What a list says of a session; in SQLite a column may hold a value of any type."""
EXPIRY = "CASE WHEN typeof(expires_at) IN ('real', 'integer') THEN expires_at END"
_COLUMNS = "id, n, expires_at, title, agent, messages, archived, saved_at, bytes"


class File(Protocol):
    """What it asks of the file."""

    path: Path

    def reading(self) -> AbstractContextManager[Connection]:
        """One state of the file for all that is read inside."""
        ...

    def writing(self) -> AbstractContextManager[Connection]:
        """All that is written inside, or nothing of it."""
        ...


class TrashTable:
    """The sessions that were deleted from one file."""

    def __init__(self, file: File) -> None:
        self._file = file

    def put(self, id: str, now: datetime) -> bool:
        """As `RawTrash.put`."""
        if not self._file.path.exists():
            return False
        with self._file.writing() as sql:
            row = sql.execute("SELECT number FROM sessions WHERE id = ?", (id,)).fetchone()
            if row is None:
                return False
            changes = sql.execute(
                "SELECT first_n, CAST(lines AS BLOB) FROM changes WHERE session = ?"
                " ORDER BY first_n",
                row,
            ).fetchall()
            first_n = changes[0][0] if changes else None
            lines = b"".join(lines for _, lines in changes)
            sql.execute(
                f"INSERT INTO trash (number, {_COLUMNS}, data, deleted_at, first_n, lines)"
                f" SELECT number, {_COLUMNS}, coalesce(CAST(data AS BLOB), x''), ?, ?, ?"
                " FROM sessions LEFT JOIN snapshots ON session = number WHERE number = ?",
                (now.timestamp(), first_n, lines, *row),
            )
            sql.execute("DELETE FROM sessions WHERE number = ?", row)
        return True

    def rows(self) -> list[DeletedRow]:
        """As `RawTrash.rows`."""
        with self._file.reading() as sql:
            rows = sql.execute(
                f"SELECT number, CAST(id AS TEXT), CAST(deleted_at AS REAL), {EXPIRY}, {ABOUT}"
                " FROM trash ORDER BY deleted_at DESC, number DESC"
            ).fetchall()
        return [
            DeletedRow(
                str(number), id, datetime.fromtimestamp(moment, UTC), expires_at, About(*about)
            )
            for number, id, moment, expires_at, *about in rows
        ]

    def restore(self, key: str) -> bool:
        """As `RawTrash.restore`."""
        with self._file.writing() as sql:
            done = sql.execute(
                f"INSERT OR IGNORE INTO sessions (number, {_COLUMNS})"
                f" SELECT number, {_COLUMNS} FROM trash WHERE number = ?",
                (key,),
            )
            if not done.rowcount:
                return False
            sql.execute(
                "INSERT INTO snapshots SELECT number, data FROM trash"
                " WHERE number = ? AND data != x''",
                (key,),
            )
            sql.execute(
                "INSERT INTO changes SELECT number, first_n, lines FROM trash"
                " WHERE number = ? AND first_n IS NOT NULL",
                (key,),
            )
            sql.execute("DELETE FROM trash WHERE number = ?", (key,))
        return True

    def read(self, key: str) -> KeptTexts | None:
        """As `RawTrash.read`."""
        with self._file.reading() as sql:
            query = (
                "SELECT CAST(n AS INTEGER), CAST(data AS BLOB), CAST(lines AS BLOB) FROM trash"
                " WHERE number = ?"
            )
            row = sql.execute(query, (key,)).fetchone()
        if row is None:
            return None
        n, data, lines = row
        return KeptTexts(n, (data, [lines] if lines else []))

    def remove(self, key: str) -> bool:
        """As `RawTrash.remove`."""
        with self._file.writing() as sql:
            return sql.execute("DELETE FROM trash WHERE number = ?", (key,)).rowcount > 0
