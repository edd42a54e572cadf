"""The tables of an SQLite file: what leads to those of today, and whose they are."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from tiro import __version__
from tiro.errors import SessionFormatError, StorageError
from tiro.stores.sqlite_trash import TABLE as TRASH_TABLE

MIGRATIONS: list[tuple[str, ...]] = [
    (
        # A number is never given twice, so it also tells a session from a later one of its id.
        "CREATE TABLE sessions (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,"
        " n INTEGER NOT NULL, expires_at REAL, title TEXT, agent TEXT, messages INTEGER NOT NULL,"
        " archived INTEGER NOT NULL, saved_at TEXT NOT NULL, bytes INTEGER NOT NULL)",
        "CREATE INDEX sessions_by_expiry ON sessions (expires_at) WHERE expires_at IS NOT NULL",
        "CREATE TABLE snapshots (session INTEGER PRIMARY KEY"
        " REFERENCES sessions ON DELETE CASCADE, data BLOB NOT NULL)",
        "CREATE TABLE changes (session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,"
        " first_n INTEGER NOT NULL, lines BLOB NOT NULL, PRIMARY KEY (session, first_n))"
        " WITHOUT ROWID",
    ),
    (TRASH_TABLE,),
]
"""What leads from one version of the tables to the next; `user_version` says how many were done."""
TABLES = {"sessions", "snapshots", "changes"}
"""What every version has."""
OTHER_PATH = "name another path for the sessions"


def check_own(sql: sqlite3.Connection, path: Path) -> None:
    """StorageError where another program's tables are in the file; nothing is set in it before."""
    with all_or_nothing(sql, "BEGIN"):
        version = _version(sql)
        rows = sql.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        tables = {name for (name,) in rows}
    if tables >= TABLES if version else not tables:
        return
    raise StorageError(
        f"{str(path)!r} is another program's database; {OTHER_PATH}",
        path=str(path),
        errno="EEXIST",
    )


def migrate(sql: sqlite3.Connection, path: Path) -> None:
    """Bring older tables to the form of today; SessionFormatError for those of a newer Tiro."""
    if _version(sql) == len(MIGRATIONS):
        return
    with all_or_nothing(sql, "BEGIN IMMEDIATE"):  # another process may be at it
        version = _version(sql)
        if version > len(MIGRATIONS):
            reason = (
                f"a newer Tiro has brought its tables to version {version}, and Tiro {__version__}"
                f" knows those up to {len(MIGRATIONS)}; update Tiro, or {OTHER_PATH}"
            )
            raise SessionFormatError(f"{str(path)!r} cannot be read: {reason}", path=str(path))
        for statements in MIGRATIONS[version:]:
            for statement in statements:
                sql.execute(statement)
        sql.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _version(sql: sqlite3.Connection) -> int:
    version: int = sql.execute("PRAGMA user_version").fetchone()[0]
    return version


@contextlib.contextmanager
def all_or_nothing(sql: sqlite3.Connection, begin: str | None = None) -> Iterator[None]:
    """All that is executed inside is committed, or nothing of it."""
    if begin is not None:
        sql.execute(begin)
    try:
        yield
        sql.execute("COMMIT")
    except BaseException:
        if sql.in_transaction:
            sql.execute("ROLLBACK")
        raise
