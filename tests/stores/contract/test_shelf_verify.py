"""`verify` of sessions in SQLite and on Redis: damage is told and mended, nothing thrown away."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.stores.look import texts
from tiro import SessionChangedError, SessionFormatError, SessionNotFoundError, StorageError
from tiro.stores.redis import RedisStore
from tiro.stores.shared import manager_of, raw_shelf
from tiro.stores.shelf_verify import repair_shelf, verify_shelf
from tiro.stores.sqlite import Database, SQLiteStore
from tiro.stores.verify import Verified

NOW = datetime(2026, 11, 28, 9, 30, tzinfo=UTC)
SAID = ["eins", "zwei", "drei ü", "vier", "fünf"]
Shared = SQLiteStore | RedisStore
NEVER = 1e6


class Place:
    """Where sessions are, with a hand in what lies there."""

    def __init__(self, path: Path, url: str | None) -> None:
        self.path, self.url = path, url
        self.store: Shared = SQLiteStore(path, NEVER) if url is None else RedisStore(url, NEVER)

    def say(self, id: str = "x") -> None:
        """A session with three messages in its snapshot and two in the changes since."""
        session = self.store.create(id)
        for text in SAID[:3]:
            session.add_message("user", text)
        session.set("k", "v" * 70_000)
        self.store.save(session)
        session.set("k", 1)
        self.store.save(session)  # so much to fold that it is a snapshot by now
        for text in SAID[3:]:
            session.add_message("user", text)
            self.store.save(session)

    def verify(self, *, repair: bool = False) -> Verified:
        with raw_shelf(self.path if self.url is None else self.url) as shelf:
            return (repair_shelf if repair else verify_shelf)(shelf, now=NOW)

    def sql(self, statement: str, *values: object) -> list[Any]:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as sql:
            return sql.execute(statement, values).fetchall()

    def redis(self, *command: object) -> Any:
        assert self.url is not None
        with redis.Redis.from_url(self.url) as client:
            return client.execute_command(*command)

    def discard(self, id: str) -> None:
        """Move a session to the trash."""
        with closing(manager_of(self.path, lambda notice: None, None)) as manager:
            assert manager.discard(id)

    def restore(self, id: str) -> None:
        """Bring it back."""
        with closing(manager_of(self.path, lambda notice: None, None)) as manager:
            assert manager.trash.restore(id).id == id

    def snapshot(self) -> bytes:
        if self.url is None:
            return bytes(self.sql("SELECT data FROM snapshots")[0][0])
        return bytes(self.redis("HGET", "tiro:session:x", "snapshot"))

    def set_snapshot(self, data: bytes | None) -> None:
        """Put this in the place of the snapshot of the session `x`; None takes it away."""
        number = "(SELECT number FROM sessions WHERE id = 'x')"
        if self.url is None and data is None:
            self.sql(f"DELETE FROM snapshots WHERE session = {number}")
        elif self.url is None:
            self.sql(f"UPDATE snapshots SET data = ? WHERE session = {number}", data)
        elif data is None:
            self.redis("HDEL", "tiro:session:x", "snapshot")
        else:
            self.redis("HSET", "tiro:session:x", "snapshot", data)

    def lose_a_change(self) -> None:
        """Take the first change since the snapshot away."""
        if self.url is None:
            number = self.sql("SELECT number FROM sessions WHERE id = 'x'")[0][0]
            least = self.sql("SELECT min(first_n) FROM changes WHERE session = ?", number)[0][0]
            self.sql("DELETE FROM changes WHERE (session, first_n) = (?, ?)", number, least)
        else:
            self.redis("LPOP", "tiro:changes:x")

    def kept(self) -> list[bytes]:
        """What was damaged and is kept beside."""
        if self.url is None:
            return [path.read_bytes() for path in self.path.parent.glob("*.bad-*")]
        keys = self.redis("KEYS", "tiro:damaged:*")
        return [b"\n".join(self.redis("LRANGE", key, 0, -1)) for key in keys]

    def everything(self) -> object:
        if self.url is None:
            tables = ("sessions", "snapshots", "changes")
            return [self.sql(f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables]
        return {key: self.redis("DUMP", key) for key in sorted(self.redis("KEYS", "*"))}


@pytest.fixture(params=["sqlite", "redis"])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    url = None
    if request.param == "redis":
        url = request.getfixturevalue("redis_server").url
        with redis.Redis.from_url(url) as client:
            client.flushall()
    place = Place(tmp_path / "sessions.db", url)
    yield place
    place.store.close()


sqlite = pytest.mark.parametrize("place", ["sqlite"], indirect=True)
on_redis = pytest.mark.parametrize("place", ["redis"], indirect=True)


def test_what_is_sound_is_left_as_it_is(place: Place) -> None:
    assert place.verify() == Verified(0, [])
    place.say()
    place.say("y")
    before = place.everything()
    for repair in (False, True):
        assert place.verify(repair=repair) == Verified(2, [])
    assert place.everything() == before


def break_a_line(place: Place) -> None:
    data = place.snapshot()
    assert b'"zwei"' in data
    place.set_snapshot(data.replace(b'"zwei"', b'"zw\xff\x00'))


def cut_it_off(place: Place) -> None:
    data = place.snapshot()
    place.set_snapshot(data[: data.index(b'"drei')])


DAMAGES: list[tuple[Callable[[Place], None], list[str]]] = [
    (break_a_line, ["eins", "drei ü", "vier", "fünf"]),
    (cut_it_off, ["eins", "zwei", "vier", "fünf"]),
    (Place.lose_a_change, ["eins", "zwei", "drei ü", "fünf"]),
    (lambda place: place.set_snapshot(None), ["vier", "fünf"]),
]


@pytest.mark.parametrize(("damage", "left"), DAMAGES)
def test_damage_costs_what_it_hits(
    place: Place, damage: Callable[[Place], None], left: list[str]
) -> None:
    """U4: all else is there again, what was there is kept, and others are as they were."""
    place.say()
    place.say("y")
    stale = place.store.get("x")
    damage(place)
    before = place.everything()
    (finding,) = place.verify().findings
    assert "'x'" in finding.path
    assert finding.problem
    assert finding.remedy is not None
    assert (place.everything(), place.kept()) == (before, [])
    found = place.verify(repair=True)
    assert (found.sessions, found.is_sound()) == (2, True)
    remedy = found.findings[0].remedy or ""
    assert f"{len(left)} messages" in remedy
    gone = [str(n) for n, text in enumerate(SAID, 1) if text not in left]
    assert all(number in remedy.partition("gone: message")[2] for number in (gone[0], gone[-1]))
    assert place.verify() == Verified(2, [])
    assert texts(place.store.get("x")) == left
    assert texts(place.store.get("y")) == SAID
    (kept,) = place.kept()
    assert "fünf".encode() in kept
    stale.set("k", 2)
    with pytest.raises(SessionChangedError):
        place.store.save(stale)
    again = place.store.get("x")
    again.add_message("user", "goes on")
    place.store.save(again)
    assert texts(place.store.get("x")) == [*left, "goes on"]


def test_what_holds_nothing_is_set_aside(place: Place) -> None:
    place.store.create("x")
    place.set_snapshot(b"\x00" * 100)
    found = place.verify(repair=True)
    assert found.is_sound()
    assert place.verify() == Verified(0, [])
    with pytest.raises(SessionNotFoundError):
        place.store.get("x")
    (kept,) = place.kept()
    assert b"\x00" * 100 in kept
    assert place.store.create("x").messages == []


def test_what_is_in_use_or_newer_stays_as_it_is(place: Place) -> None:
    place.say()
    data = place.snapshot()
    place.set_snapshot(b"{")
    before = place.everything()
    with raw_shelf(place.path if place.url is None else place.url) as shelf:
        lock = shelf.lock("x")
        assert lock.try_take()
        (finding,) = place.verify(repair=True).findings
        lock.release()
    assert "not repaired: Another process" in (finding.remedy or "")
    assert not finding.is_repaired
    assert place.everything() == before
    place.set_snapshot(data.replace(b'"schema_version":1', b'"schema_version":99'))
    before = place.everything()
    (finding,) = place.verify(repair=True).findings
    assert ("newer" in finding.problem, finding.remedy) == (True, None)
    assert place.everything() == before


@on_redis
@pytest.mark.parametrize("row", [None, b"{"])
def test_a_session_that_no_list_shows_is_listed_again(place: Place, row: bytes | None) -> None:
    place.say()
    if row is None:
        place.redis("HDEL", "tiro:sessions", "x")
    else:
        place.redis("HSET", "tiro:sessions", "x", row)
    assert place.store.count() == (0 if row is None else 1)
    (finding,) = place.verify(repair=True).findings
    assert finding.problem == "no list shows it"
    assert place.verify() == Verified(1, [])
    assert texts(place.store.get("x")) == SAID


@on_redis
def test_what_is_listed_and_gone_is_taken_off_the_list(place: Place) -> None:
    place.say()
    place.redis("DEL", "tiro:session:x", "tiro:changes:x")
    assert place.store.count() == 1
    assert place.verify(repair=True).is_sound()
    assert (place.verify(), place.store.count()) == (Verified(0, []), 0)


@on_redis
def test_a_number_that_is_none_is_mended(place: Place) -> None:
    place.say()
    place.redis("HSET", "tiro:session:x", "n", "many")
    assert place.verify(repair=True).is_sound()
    assert texts(place.store.get("x")) == SAID


@on_redis
def test_a_key_of_another_kind_is_told(place: Place) -> None:
    place.say("y")
    place.redis("SET", "tiro:session:x", "a text")
    (finding,) = place.verify(repair=True).findings
    assert ("WRONGTYPE" in finding.problem, finding.remedy) == (True, None)
    assert texts(place.store.get("y")) == SAID


def test_a_server_that_is_away_is_told(tmp_path: Path) -> None:
    with raw_shelf(f"unix://{tmp_path}/s") as shelf, pytest.raises(StorageError, match="Redis"):
        repair_shelf(shelf, now=NOW)


@sqlite
def test_a_damaged_index_is_made_anew(place: Place) -> None:
    place.say()
    place.say("y")
    place.store.close()
    place.sql("PRAGMA journal_mode = DELETE")
    place.sql("PRAGMA wal_checkpoint(TRUNCATE)")
    size = place.sql("PRAGMA page_size")[0][0]
    (root,) = place.sql(
        "SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_sessions_1'"
    )[0]
    data = bytearray(place.path.read_bytes())
    at = data.index(b"y", (root - 1) * size + 8)
    assert at < root * size
    data[at : at + 1] = b"q"
    place.path.write_bytes(data)
    (finding,) = place.verify().findings
    assert "index" in finding.problem
    found = place.verify(repair=True)
    assert [f.remedy for f in found.findings] == ["its indexes are made anew"]
    assert (found.sessions, place.verify()) == (2, Verified(2, []))
    assert texts(place.store.get("y")) == SAID


@sqlite
def test_a_file_that_sqlite_cannot_go_through_is_damaged_too(place: Place) -> None:
    """Its own check fails there; here no session can be read either, and that is told."""
    place.say("x")
    place.store.close()
    place.sql("PRAGMA journal_mode = DELETE")
    size = place.sql("PRAGMA page_size")[0][0]
    (root,) = place.sql("SELECT rootpage FROM sqlite_master WHERE name = 'changes'")[0]
    data = bytearray(place.path.read_bytes())
    data[(root - 1) * size] = 0x41  # no kind of page
    place.path.write_bytes(data)
    (finding, *_) = place.verify(repair=True).findings
    assert "malformed" in finding.problem
    assert "no session in it could be read" in (finding.remedy or "")
    assert not list(place.path.parent.glob("*.rescued-*"))


def damage_a_snapshot(place: Place) -> None:
    """Three sessions and one in the trash, of which SQLite cannot read one snapshot."""
    for id in ("gone", "x", "y", "z"):
        place.say(id)
    place.discard("gone")
    place.store.close()
    place.sql("PRAGMA journal_mode = DELETE")
    size = place.sql("PRAGMA page_size")[0][0]
    (root,) = place.sql("SELECT rootpage FROM sqlite_master WHERE name = 'snapshots'")[0]
    data = bytearray(place.path.read_bytes())
    cell = (root - 1) * size + int.from_bytes(data[(root - 1) * size + 8 :][:2])
    data[cell : cell + 9] = b"\xff" * 9  # the length of one snapshot, and its number
    place.path.write_bytes(data)


@sqlite
def test_of_a_damaged_file_what_can_be_read_is_copied(place: Place) -> None:
    """Nothing is put in its place under a program that has it open."""
    damage_a_snapshot(place)
    inode = place.path.stat().st_ino
    (finding, *_) = place.verify(repair=True).findings
    told = "3 sessions could be read, whole or in part, and 0 not; so could 1 session in the trash"
    assert told in (finding.remedy or "")
    assert (finding.is_repaired, place.path.stat().st_ino) == (False, inode)
    (copy,) = place.path.parent.glob("*.rescued-*")
    place.store = SQLiteStore(copy, NEVER)
    found = [texts(place.store.get(id)) for id in ("x", "y", "z")]
    assert found == [SAID[3:], SAID, SAID]
    place.path = copy
    place.discard("x")
    place.restore("gone")
    assert texts(place.store.get("gone")) == SAID


@sqlite
@pytest.mark.parametrize("taken", [0, 1, 3], ids=["nothing", "a session", "all but the trash"])
def test_a_copy_that_cannot_be_written_is_not_offered(
    place: Place, monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    """What the disk takes no more is not told to be unreadable, nor the rest to be all."""
    damage_a_snapshot(place)
    writing, writings = Database.writing, list[Path]()

    def until_full(database: Database) -> AbstractContextManager[sqlite3.Connection]:
        writings.extend([database.path] if ".rescued-" in database.path.name else [])
        if len(writings) > taken:
            raise StorageError("the disk is full", path=str(database.path))
        return writing(database)

    monkeypatch.setattr(Database, "writing", until_full)
    (finding, *_) = place.verify(repair=True).findings
    assert (finding.remedy, finding.is_repaired) == ("not repaired: the disk is full", False)


@sqlite
def test_a_deleted_session_that_no_table_takes_keeps_no_other_from_the_copy(place: Place) -> None:
    """A row of a damaged page may have nothing where something must be."""
    place.say("a")
    place.discard("a")
    damage_a_snapshot(place)
    with closing(sqlite3.connect(place.path, isolation_level=None)) as sql:
        sql.execute("PRAGMA writable_schema = ON")
        sql.execute("UPDATE sqlite_master SET sql = replace(sql, 'lines BLOB NOT NULL)', 'lines)')")
    place.sql("UPDATE trash SET lines = NULL WHERE id = 'a'")
    (finding, *_) = place.verify(repair=True).findings
    assert "so could 1 session in the trash" in (finding.remedy or "")


@sqlite
def test_a_newer_database_is_refused_and_untouched(place: Place) -> None:
    """U7.3 in SQLite."""
    place.say()
    place.store.close()
    place.sql("PRAGMA user_version = 99")
    before = place.path.read_bytes()
    with pytest.raises(SessionFormatError, match="newer"):
        place.verify(repair=True)
    assert place.path.read_bytes() == before
    with pytest.raises(SessionFormatError, match="newer"):
        place.store.get("x")
    assert place.path.read_bytes() == before


@sqlite
def test_what_is_no_database_is_told(place: Place) -> None:
    place.path.write_bytes(b"no database" * 1000)
    with pytest.raises(StorageError, match="not a database"):
        place.verify(repair=True)
    assert place.path.read_bytes() == b"no database" * 1000
