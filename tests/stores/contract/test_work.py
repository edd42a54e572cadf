"""What a save costs is the change alone: measured by what is written, not by time."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.sizes import sized
from tests.stores.contract.redis_server import RedisServer
from tiro.stores import sqlite
from tiro.stores.disk import Disk
from tiro.stores.files import FileStore
from tiro.stores.kept import KeptStore
from tiro.stores.redis import RedisStore
from tiro.stores.sqlite import SQLiteStore

MANY = sized(fast=5_000, normal=20_000, long=100_000)
TEXT = "x" * 200


class CountingDisk(Disk):
    """Counts what is done and how many bytes are written."""

    def __init__(self) -> None:
        self.calls = self.bytes = 0

    def write(self, descriptor: int, data: bytes | memoryview) -> int:
        """Count, and write."""
        self.calls += 1
        self.bytes += len(data)
        return super().write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        """Count; nobody cuts the power here."""
        self.calls += 1


class CountingConnection(sqlite3.Connection):
    """Counts the statements and the bytes that go with them."""

    calls = bytes = 0

    def execute(self, statement: str, values: Any = (), /) -> sqlite3.Cursor:
        """Count, and execute."""
        CountingConnection.calls += 1
        CountingConnection.bytes += sum(len(v) for v in values if isinstance(v, bytes | str))
        return super().execute(statement, values)


Work = tuple[int, int]
"""How many calls, how many bytes."""


def work_of_adds(store: KeptStore, done: Callable[[], Work]) -> list[Work]:
    """What 20 adds cost, each saved: in a new session, and in one of very many messages."""
    costs = []
    with store:
        session = store.create("x")
        for filled in (50, MANY):
            for _ in range(filled):
                session.add_message("user", TEXT)
            store.save(session)
            session.set("filled", filled)
            store.save(session)  # now what was just added is folded into a snapshot
            session = store.get("x")
            before = done()
            for _ in range(20):
                session.add_message("user", TEXT)
                store.save(session)
            after = done()
            costs.append((after[0] - before[0], after[1] - before[1]))
        assert len(store.get("x").messages) == 50 + MANY + 40
    return costs


def test_all_adds_together_cost_a_small_multiple_of_what_is_said(tmp_path: Path) -> None:
    """With all that is folded into snapshots."""
    disk, many = CountingDisk(), sized(fast=1_000, normal=3_000, long=100_000)
    with FileStore(tmp_path / "files", 1e6, disk=disk) as store:
        session = store.create("x")
        for _ in range(many):
            session.add_message("user", TEXT)
            store.save(session)
    assert disk.bytes <= 4 * many * (len(TEXT) + 200)


def is_flat(costs: list[Work], most_calls: int) -> None:
    (early_calls, early_bytes), (late_calls, late_bytes) = costs
    assert late_calls <= early_calls <= 20 * most_calls
    assert late_bytes <= early_bytes + 20 * 100  # longer numbers, the first line of a journal
    assert late_bytes <= 20 * (len(TEXT) + 1_200)


def test_an_add_to_files_is_one_line(tmp_path: Path) -> None:
    """One write, one sync."""
    disk = CountingDisk()
    store = FileStore(tmp_path / "files", 1e6, disk=disk)
    is_flat(work_of_adds(store, lambda: (disk.calls, disk.bytes)), 2)


def test_an_add_to_sqlite_is_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin, a look whether rows were taken away, the session's own row, the new row, commit."""

    def connect(path: Path, **options: Any) -> sqlite3.Connection:
        return CountingConnection(path, **options)

    monkeypatch.setattr(sqlite, "connect", connect)
    store = SQLiteStore(tmp_path / "store.db", 1e6)
    costs = work_of_adds(store, lambda: (CountingConnection.calls, CountingConnection.bytes))
    is_flat(costs, 5)


def test_an_add_to_redis_is_one_script(redis_server: RedisServer, tmp_path: Path) -> None:
    """By what the server itself has counted."""
    asked: Any = redis.Redis.from_url(redis_server.url)

    def done() -> Work:
        told = asked.info("all")
        scripts = [told.get(f"cmdstat_{name}", {"calls": 0}) for name in ("evalsha", "eval")]
        return sum(script["calls"] for script in scripts), told["total_net_input_bytes"]

    store = RedisStore(redis_server.url, 1e6, prefix=f"{tmp_path.name}:")
    is_flat(work_of_adds(store, done), 1)
    asked.close()


@pytest.mark.parametrize("kind", ["files", "sqlite", "redis"])
def test_changes_are_folded_into_the_snapshot_now_and_then(
    kind: str, store: KeptStore, tmp_path: Path
) -> None:
    """A key that is set for ever fills no disk."""
    session = store.create("x")
    for number in range(100):
        session.set("k", f"{number}" + "y" * 5_000)
        store.save(session)
    kept = store.shelf.find("x")
    assert kept is not None
    assert kept.changes_bytes + kept.snapshot_bytes < 150_000
    assert store.get("x").get("k").startswith("99y")


@pytest.mark.parametrize("kind", ["files", "sqlite", "redis"])
def test_a_session_that_is_not_saved_for_long_is_saved_whole(kind: str, store: KeptStore) -> None:
    session = store.create("x")
    for number in range(12_000):
        session.set("k", number)
    store.save(session)
    assert store.get("x").get("k") == 11_999
    session.set("k", "after")
    store.save(session)
    assert store.get("x").get("k") == "after"
