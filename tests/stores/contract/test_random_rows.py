"""Random damage in the rows of a database: an error of ours, and the other session is untouched."""

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.damage import damaged
from tests.sizes import sized
from tests.stores.contract.redis_server import RedisServer
from tests.stores.look import texts
from tiro import TiroError
from tiro.stores.redis import RedisStore
from tiro.stores.search import Search
from tiro.stores.shared import manager_of
from tiro.stores.sqlite import SQLiteStore

COLUMNS = [
    *(("sessions", name) for name in (
        "id", "n", "expires_at", "title", "agent", "messages", "archived", "saved_at", "bytes",
    )),
    ("snapshots", "data"), ("changes", "first_n"), ("changes", "lines"),
]  # fmt: skip
VALUES = [None, "", "x", "\ud83d".encode("utf-8", "surrogatepass"), b"", b"\xff", 0, -1, 2**62, 1.5]
EXAMPLES = settings(max_examples=sized(fast=10, normal=15, long=2000))


def fill(place: str | Path) -> None:
    """Two sessions, one of them with a snapshot and changes since."""
    manager = manager_of(place, lambda _: None, None)
    for id in ("x", "y"):
        session = manager.create(id=id)
        session.add_message("user", "a tram")
        manager.save(session)
        session.add_message("user", "a second tram")
        session.set("key", {"v": 1})
    manager.close()


def use(place: str | Path, store: Callable[[], SQLiteStore | RedisStore]) -> None:
    """Everything that can be done with both; only errors of ours may come of it."""
    manager = manager_of(place, lambda _: None, None)
    search = Search(manager)
    try:
        for act in (
            manager.list,
            lambda: manager.read("x"),
            lambda: manager.load_id("x").add_message("user", "new"),
            lambda: search.find("tram", 5),
            lambda: manager.discard("x"),
            manager.trash.page,
            lambda: manager.trash.restore("x"),
            lambda: manager.discard("x"),
            lambda: manager.trash.empty("x"),
            lambda: manager.delete("x"),
        ):
            with contextlib.suppress(TiroError):
                act()
    finally:
        search.close()
        manager.close()
    opened = store()
    try:
        with contextlib.suppress(TiroError):
            opened.get("x")
        with contextlib.suppress(TiroError):
            opened.delete_expired()
    finally:
        opened.close()


@pytest.fixture(scope="module")
def database() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder) / "whole.db")
        yield Path(folder)


@EXAMPLES
@given(column=st.sampled_from(COLUMNS), value=st.sampled_from(VALUES), data=st.data())
def test_a_damaged_row_in_sqlite_raises_only_errors_of_ours(
    database: Path, column: tuple[str, str], value: Any, data: st.DataObject
) -> None:
    old = _value_of(database / "whole.db", column)
    if isinstance(old, bytes) and data.draw(st.booleans()):
        value = data.draw(damaged(old))
    check_column(database, column, value)


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize("column", COLUMNS, ids=" ".join)
def test_a_column_of_another_type_raises_only_errors_of_ours(
    database: Path, column: tuple[str, str], value: Any
) -> None:
    """In SQLite any column holds any value."""
    check_column(database, column, value)


def check_column(database: Path, column: tuple[str, str], value: Any) -> None:
    table, name = column
    path = database / "damaged.db"
    shutil.copyfile(database / "whole.db", path)
    with contextlib.closing(sqlite3.connect(path)) as sql, sql:
        where = f"{'number' if table == 'sessions' else 'session'} = 1"
        with contextlib.suppress(sqlite3.IntegrityError):
            sql.execute(f"UPDATE {table} SET {name} = ? WHERE {where}", (value,))
    use(path, lambda: SQLiteStore(path))
    manager = manager_of(path, lambda _: None, None)
    assert texts(manager.load_id("y")) == ["a tram", "a second tram"]
    assert "y" in [row.id for row in manager.list()[0]]
    manager.close()


def _value_of(path: Path, column: tuple[str, str]) -> Any:
    table, name = column
    with contextlib.closing(sqlite3.connect(path)) as sql:
        return sql.execute(f"SELECT {name} FROM {table}").fetchone()[0]


@pytest.fixture(scope="module")
def rows(redis_server: RedisServer) -> Iterator[tuple[str, dict[bytes, bytes]]]:
    """The address, and what Redis holds for the two sessions."""
    with redis.Redis.from_url(redis_server.url) as client:
        client.flushall()
        fill(redis_server.url)
        yield redis_server.url, {key: client.dump(key) for key in client.keys("*")}
        client.flushall()


@EXAMPLES
@given(data=st.data())
def test_a_damaged_row_in_redis_raises_only_errors_of_ours(
    rows: tuple[str, dict[bytes, bytes]], data: st.DataObject
) -> None:
    url, whole = rows
    with redis.Redis.from_url(url) as client:
        client.flushall()
        for key, dumped in whole.items():
            client.restore(key, 0, dumped)
        key = data.draw(st.sampled_from(sorted(key for key in whole if not key.endswith(b":y"))))
        is_only_x = key.endswith(b":x")
        damage(client, key, data)
    use(url, lambda: RedisStore(url))
    manager = manager_of(url, lambda _: None, None)
    if is_only_x:
        assert texts(manager.load_id("y")) == ["a tram", "a second tram"]
    manager.close()


def damage(client: Any, key: bytes, data: st.DataObject) -> None:
    """Put something else in the place of a value, or of a part of it."""
    odd = st.sampled_from([b"", b"\xff", b"x", b"-1", b"null", b"{", b"9" * 400, b"1e999"])
    kind = client.type(key)
    if data.draw(st.integers(0, 4)) == 0:
        client.delete(key)
        client.set(key, data.draw(odd))
    elif kind == b"hash":
        field = data.draw(st.sampled_from(sorted(client.hkeys(key))))
        old = client.hget(key, field) or b""
        client.hset(key, field, data.draw(odd | damaged(old)))
    elif kind == b"list":
        at = data.draw(st.integers(0, client.llen(key) - 1))
        client.lset(key, at, data.draw(odd | damaged(client.lindex(key, at) or b"")))
    elif kind == b"zset":
        client.zadd(key, {data.draw(odd): data.draw(st.sampled_from([0, -1.5, 1e300]))})
    else:
        client.set(key, data.draw(odd | damaged(client.get(key) or b"")))
