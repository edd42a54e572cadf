"""What only the SQLite store promises: one file, its owner's, brought up to date, readable."""

import errno
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.stores.look import mode, texts
from tiro import SessionFormatError, SessionNotFoundError, StorageError
from tiro.stores import sqlite, sqlite_tables
from tiro.stores.sqlite import Database, SQLiteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a folder" / "store.db"


def test_nothing_is_made_before_the_first_session(path: Path) -> None:
    with SQLiteStore(path) as store:
        assert (store.count(), store.delete_expired(), store.search("x")) == (0, 0, [])
        with pytest.raises(SessionNotFoundError):
            store.get("x")
        assert not path.exists()


def test_the_file_is_its_owners(path: Path) -> None:
    with SQLiteStore(path) as store:
        session = store.create("x")
        session.add_message("user", "hello")
        store.save(session)
        assert {mode(file) for file in path.parent.iterdir()} == {0o600}
        assert mode(path.parent) == 0o700


@pytest.mark.skipif(sys.platform == "win32", reason="an open file stays there")
@pytest.mark.parametrize("endings", [["-wal"], ["-wal", "-shm"], ["-shm"]])
def test_what_is_said_after_its_log_was_taken_away_survives_a_kill(
    path: Path, tmp_path: Path, endings: list[str]
) -> None:
    """As by a program that cleans up; what was said before is there, too."""
    with SQLiteStore(path) as store:
        session = store.create("x")
        session.add_message("user", "before")
        store.save(session)
        for ending in endings:
            path.with_name(path.name + ending).unlink()
        session.add_message("user", "after")
        store.save(session)
        shutil.copytree(path.parent, tmp_path / "killed")
    with SQLiteStore(tmp_path / "killed" / path.name) as store:
        assert texts(store.get("x")) == ["before", "after"]


def test_a_second_one_in_this_process_takes_no_lock_from_the_first(path: Path) -> None:
    """Who then closes the file elsewhere must know that it is open here."""
    with SQLiteStore(path) as one, SQLiteStore(path) as two:
        session = one.create("x")
        assert two.get("x").id == "x"
        program = (
            "import sqlite3, sys; sql = sqlite3.connect(sys.argv[1]);"
            " print(sql.execute('SELECT id FROM sessions').fetchall()); sql.close()"
        )
        subprocess.run([sys.executable, "-c", program, path], check=True)
        assert path.with_name(path.name + "-wal").exists()
        session.add_message("user", "words")
        one.save(session)
        assert texts(two.get("x")) == ["words"]


def test_it_can_be_queried(path: Path) -> None:
    """G5.3."""
    with SQLiteStore(path) as store:
        session = store.create("x")
        for number in range(5):
            session.add_message("user", f"Find {number}")
            store.save(session)
        session.trim_if_needed(2, 1)
        session.set_agent("build")
        store.save(session)
    sql = sqlite3.connect(path)
    query = "SELECT id, title, agent, messages + archived FROM sessions"
    assert sql.execute(query).fetchall() == [("x", "Find 0", "build", 5)]
    assert sql.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    sql.close()


def test_what_was_said_is_found_by_its_words(path: Path) -> None:
    """The search of the server, over the sessions of a store."""
    with SQLiteStore(path) as store:
        session = store.create("x")
        session.add_message("user", "Where is the Straßenbahn?")
        session.add_message("assistant", "東京の地下鉄")
        store.save(session)
        assert [(hit.id, hit.seq) for hit in store.search("where STRASSENBAHN")] == [("x", 1)]
        assert [hit.seq for hit in store.search("地下鉄")] == [2]
        session.add_message("user", "the tram again")
        store.save(session)
        assert [hit.seq for hit in store.search('"tram again"')] == [3]
        store.delete("x")
        assert store.search("tram") == []


def test_a_closed_store_has_no_file_open(path: Path) -> None:
    """What SQLite has beside the file goes with the last that had it open, also for a search."""
    for _ in range(2):
        with SQLiteStore(path) as store:
            session = store.create()
            session.add_message("user", "a tram")
            store.save(session)
            assert store.search("tram")
        assert [file.name for file in path.parent.glob("store.db*")] == ["store.db"]


def test_older_tables_are_brought_up_to_date(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SQLiteStore(path) as store:
        store.create("x").set("k", 1)
    added = ("ALTER TABLE sessions ADD COLUMN more TEXT", "CREATE TABLE others (number INTEGER)")
    monkeypatch.setattr(sqlite_tables, "MIGRATIONS", [*sqlite_tables.MIGRATIONS, added])
    with SQLiteStore(path) as store:
        assert store.get("x").id == "x"
    monkeypatch.undo()
    before = path.read_bytes()
    with SQLiteStore(path) as store, pytest.raises(SessionFormatError, match="newer Tiro"):
        store.get("x")
    assert path.read_bytes() == before


def test_a_file_of_the_first_version_is_brought_up_to_date(path: Path) -> None:
    """As Tiro wrote it then, word for word; what it holds is there, and goes on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as sql:
        for statement in FIRST_VERSION:
            sql.execute(statement)
        about = "'Which?', NULL, 1, 0, '2026-01-01T00:00:00Z', 100"
        sql.execute(f"INSERT INTO sessions VALUES (7, 'x', 3, NULL, {about})")
        snapshot = b'{"schema_version":1,"id":"x","journal_n":2,"messages":[]}'
        sql.execute("INSERT INTO snapshots VALUES (7, ?)", (snapshot,))
        line = b'{"n":3,"op":"add","message":{"role":"user","content":"Which?","seq":1}}\n'
        sql.execute("INSERT INTO changes VALUES (7, 3, ?)", (line,))
    with SQLiteStore(path) as store:
        session = store.get("x")
        assert texts(session) == ["Which?"]
        session.add_message("assistant", "This one")
        store.save(session)
        assert texts(store.get("x")) == ["Which?", "This one"]
    with closing(sqlite3.connect(path)) as sql:
        assert sql.execute("PRAGMA user_version").fetchone() == (len(sqlite_tables.MIGRATIONS),)


FIRST_VERSION = (
    "CREATE TABLE sessions (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,"
    " n INTEGER NOT NULL, expires_at REAL, title TEXT, agent TEXT, messages INTEGER NOT NULL,"
    " archived INTEGER NOT NULL, saved_at TEXT NOT NULL, bytes INTEGER NOT NULL)",
    "CREATE INDEX sessions_by_expiry ON sessions (expires_at) WHERE expires_at IS NOT NULL",
    "CREATE TABLE snapshots (session INTEGER PRIMARY KEY"
    " REFERENCES sessions ON DELETE CASCADE, data BLOB NOT NULL)",
    "CREATE TABLE changes (session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,"
    " first_n INTEGER NOT NULL, lines BLOB NOT NULL, PRIMARY KEY (session, first_n))"
    " WITHOUT ROWID",
    "PRAGMA user_version = 1",
)


def test_a_migration_that_fails_leaves_all_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SQLiteStore(path) as store:
        store.create("x")
    bad = ("CREATE TABLE others (number INTEGER)", "no statement")
    monkeypatch.setattr(sqlite_tables, "MIGRATIONS", [*sqlite_tables.MIGRATIONS, bad])
    with SQLiteStore(path) as store, pytest.raises(StorageError):
        store.get("x")
    monkeypatch.undo()
    with SQLiteStore(path) as store:
        assert store.get("x").id == "x"


def test_what_is_no_database_is_told_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("a text of the user's\n" * 100)
    with SQLiteStore(path) as store, pytest.raises(StorageError, match=r"store\.db"):
        store.create("x")
    assert path.read_text().startswith("a text of the user's")


def test_a_file_that_was_taken_away_is_not_written_to(path: Path) -> None:
    """A save into a file without a name would be lost without a word."""
    with SQLiteStore(path) as store:
        session = store.create("x")
        path.unlink()
        session.set("k", 1)
        with pytest.raises(SessionNotFoundError):
            store.save(session)
        store.create("y")
    with SQLiteStore(path) as store:
        assert texts(store.get("y")) == []


def test_a_missing_change_is_damage_and_is_told(path: Path) -> None:
    with SQLiteStore(path) as store:
        session = store.create("x")
        for number in range(3):
            session.set("k", number)
            store.save(session)
        sql = sqlite3.connect(path)
        with sql:
            sql.execute("DELETE FROM changes WHERE first_n = (SELECT max(first_n) FROM changes)")
        sql.close()
        with pytest.raises(SessionFormatError, match="damaged"):
            store.get("x")


@pytest.mark.parametrize(
    "made",
    [
        ("CREATE TABLE sessions (mine TEXT)",),
        ("CREATE TABLE others (mine TEXT)",),
        ("CREATE TABLE others (mine TEXT)", "PRAGMA user_version = 1"),
        ("CREATE TABLE others (mine TEXT)", "PRAGMA user_version = 9"),
    ],
)
def test_a_database_of_another_program_is_told_and_left_alone(
    path: Path, made: tuple[str, ...]
) -> None:
    """Whatever its tables are named; the sentence says what to do."""
    path.parent.mkdir()
    sql = sqlite3.connect(path)
    for statement in made:
        sql.execute(statement)
    sql.close()
    before = path.read_bytes()
    with SQLiteStore(path) as store, pytest.raises(StorageError, match="another path") as caught:
        store.create("x")
    assert caught.value.data == {"path": str(path), "errno": "EEXIST"}
    assert path.read_bytes() == before


def written(path: Path, *statements: str) -> StorageError:
    """The error of a write with these statements."""
    database = Database(path)

    def write() -> None:
        with database.writing() as sql:
            for statement in statements:
                sql.execute(statement)

    with pytest.raises(StorageError) as caught:
        write()
    database.close()
    return caught.value


@pytest.mark.parametrize(
    ("statements", "name"),
    [
        (("PRAGMA max_page_count = 1", "CREATE TABLE more (x)"), "ENOSPC"),
        (("PRAGMA query_only = ON", "DELETE FROM sessions"), "EROFS"),
        (("no statement",), "EIO"),
    ],
)
def test_why_nothing_can_be_written_is_named(
    path: Path, statements: tuple[str, ...], name: str
) -> None:
    """As PROTOCOL.md says of storeFailed."""
    SQLiteStore(path).create("x")
    assert written(path, *statements).data == {"path": str(path), "errno": name}


def test_a_folder_in_its_place_is_named(path: Path) -> None:
    path.mkdir(parents=True)
    assert written(path).data == {"path": str(path), "errno": "EISDIR"}


def test_a_damaged_file_is_named(path: Path) -> None:
    with SQLiteStore(path) as store:
        store.create("x")
    data = path.read_bytes()
    for damaged in (data[:100] + b"?" * (len(data) - 100), b"?" * len(data)):
        path.write_bytes(damaged)
        error = written(path)
        assert error.data == {"path": str(path), "errno": "EIO"}
    assert "another path" in str(error), "it is no database at all"


def test_another_writer_that_does_not_end_is_named(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SQLiteStore(path) as store:
        store.create("x")
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.01)
    sql = sqlite3.connect(path, isolation_level=None)
    sql.execute("BEGIN IMMEDIATE")
    assert written(path).data == {"path": str(path), "errno": "EBUSY"}
    sql.close()


def test_what_keeps_from_the_file_is_told_in_words(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    with SQLiteStore(path) as store:
        monkeypatch.setattr(sqlite, "signature_at", refuse)
        for ask in (store.count, store.delete_expired, lambda: store.delete("x")):
            with pytest.raises(StorageError, match=r"could not be read: Permission denied$"):
                ask()
