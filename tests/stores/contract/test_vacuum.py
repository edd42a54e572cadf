"""`vacuum`: what nobody needs goes, and nothing else, whoever writes at the same moment (U9.10)."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import FixedClock
from tests.sizes import SECONDS, sized
from tests.stores.conftest import Make, Tell
from tests.stores.contract.test_processes import start
from tests.stores.look import names, texts
from tiro.stores.disk import Disk
from tiro.stores.lock import directory_lock, try_lock_shared
from tiro.stores.manager import SessionManager
from tiro.stores.redis import RedisStore
from tiro.stores.shared import raw_shelf
from tiro.stores.sqlite import SQLiteStore
from tiro.stores.vacuum import Vacuumed, unneeded, vacuum
from tiro.stores.verify import verify

ROOT = Path(__file__).parents[3]
BIG, GONE = "b" * 100_000, "g" * 90_000
NEVER = 1e6


def vacuumed(directory: Path, *, disk: Disk | None = None) -> Vacuumed:
    return vacuum(directory, now=FixedClock()(), disk=disk)


def left_behind(make_manager: Make, *contents: str) -> SessionManager:
    """A manager of a session with BIG, beside large values that nothing refers to any more."""
    manager = make_manager(clock=FixedClock())
    session = manager.create(id="x")
    session.add_message("user", BIG)
    manager.save(session)
    for number, content in enumerate(contents):
        other = manager.create(id=f"other{number}")
        other.add_message("user", content)
        path = manager.save(other)
        path.unlink()  # as another program does, or a kill in the middle of a deletion
        path.with_suffix(".journal").unlink(missing_ok=True)
    return manager


def test_what_nothing_refers_to_goes(make_manager: Make, directory: Path) -> None:
    assert vacuumed(directory) == Vacuumed(0, 0, 0)
    manager = left_behind(make_manager, GONE, GONE + "!")
    before = names(directory / "blobs")
    trial = unneeded(directory, now=FixedClock()())
    assert (trial, names(directory / "blobs")) == (Vacuumed(0, 2, 180_001), before)
    assert vacuumed(directory) == trial
    assert vacuumed(directory) == Vacuumed(0, 0, 0)
    assert texts(manager.load_id("x")) == [BIG]
    assert verify(directory, now=FixedClock()()).findings == []


def test_what_left_the_window_or_was_set_aside_keeps_its_values(
    make_manager: Make, directory: Path
) -> None:
    """U4, U9.4: the archive, a damaged file, and one that a repair has put aside."""
    manager = left_behind(make_manager)
    session = manager.create(id="archived", max_history=1)
    for content in (GONE, "later"):
        session.add_message("user", content)
    manager.save(session)
    aside = manager.create(id="aside")
    aside.add_message("user", GONE + "aside")
    path = manager.save(aside)
    path.rename(path.with_name("aside.json.bad-20260101-000000"))
    damaged = manager.create(id="damaged")
    damaged.add_message("user", GONE + "damaged")
    path = manager.save(damaged)
    path.write_bytes(path.read_bytes()[:-20])
    assert len(names(directory / "blobs")) == 4
    assert vacuumed(directory) == Vacuumed(0, 0, 0)
    assert len(names(directory / "blobs")) == 4


def test_expired_sessions_go_with_what_they_held(make_manager: Make, directory: Path) -> None:
    manager = left_behind(make_manager)
    manager.ttl_seconds = 60
    session = manager.create(id="short")
    session.add_message("user", GONE)
    manager.save(session)
    later = FixedClock()() + timedelta(seconds=61)
    assert unneeded(directory, now=later).expired == 1
    assert vacuum(directory, now=later).expired == 1
    assert not (directory / "short.json").exists()
    assert len(names(directory / "blobs")) == 1


def test_while_a_session_answers_values_stay_and_are_told(
    make_manager: Make, directory: Path
) -> None:
    left_behind(make_manager, GONE)
    lock = directory_lock(directory / "blobs")
    assert try_lock_shared(lock)
    assert vacuumed(directory) == Vacuumed(0, 0, 0, in_use=1)
    os.close(lock)
    assert vacuumed(directory) == Vacuumed(0, 1, 90_000)


def test_what_the_trash_has_as_well_frees_nothing(make_manager: Make, directory: Path) -> None:
    """A kill on the way to the trash leaves a large value under two names, once on the disk."""
    manager = left_behind(make_manager, GONE)
    session = manager.create(id="deleted")
    session.add_message("user", GONE)
    manager.save(session)
    manager.discard("deleted")  # and here the process ends, before `tidy`
    manager.close()
    assert unneeded(directory, now=FixedClock()()) == Vacuumed(0, 1, 0)
    assert vacuumed(directory) == Vacuumed(0, 1, 0)


class Dying(Disk):
    """A disk on which the process ends before so many files are removed."""

    def __init__(self, unlinks: int) -> None:
        self._left = unlinks

    def unlink(self, path: Path) -> None:
        if self._left == 0:
            raise SystemExit
        self._left -= 1
        super().unlink(path)


@pytest.mark.parametrize("unlinks", range(3))
def test_one_that_is_killed_is_made_up_for_by_the_next(
    make_manager: Make, directory: Path, unlinks: int
) -> None:
    manager = left_behind(make_manager, GONE, GONE + "2", GONE + "3")
    with pytest.raises(SystemExit):
        vacuumed(directory, disk=Dying(unlinks))
    assert vacuumed(directory).values == 3 - unlinks
    assert texts(manager.load_id("x")) == [BIG]


def test_nothing_is_lost_that_another_process_is_adding(
    directory: Path, record_property: Tell
) -> None:
    """One process stores large values and lets go of others, while this one removes and removes."""
    rounds = sized(fast=40, normal=200, long=2000)
    adding = subprocess.Popen(
        [sys.executable, "-m", "tests.stores.sharing", "add_large", str(directory), str(rounds)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "server"), str(ROOT)))},
    )
    removed = 0
    while adding.poll() is None:
        removed += vacuumed(directory).values
    out, _ = adding.communicate(timeout=SECONDS - 5)
    assert adding.returncode == 0
    told: dict[str, Any] = json.loads(out)
    assert told["missing"] == 0
    found = verify(directory, now=FixedClock()())
    assert (found.findings, found.sessions) == ([], 1)
    vacuumed(directory)
    assert names(directory / "blobs") == sorted(told["values"])
    record_property("vacuumed", rounds)


def test_a_file_of_sqlite_gives_its_room_back(tmp_path: Path) -> None:
    path, clock = tmp_path / "s.db", FixedClock()
    with SQLiteStore(path, NEVER, clock) as store:
        store.create("x").set("k", 1)
        for number in range(20):
            session = store.create(f"{number}", ttl=60)
            session.add_message("user", BIG)
            store.save(session)
        later = clock() + timedelta(seconds=61)
        with raw_shelf(path, clock) as shelf:
            assert shelf.unneeded(now=later).expired == 20
            done = shelf.vacuum(now=later)
            assert done.expired == 20
            assert done.bytes > 20 * len(BIG)
            assert shelf.unneeded(now=later) == Vacuumed(0, 0, 0)
        assert path.stat().st_size < len(BIG)
        assert store.get("x").id == "x"
    with raw_shelf(tmp_path / "none.db") as shelf:
        assert shelf.vacuum(now=later) == Vacuumed(0, 0, 0)
    assert not (tmp_path / "none.db").exists()


def test_what_another_program_left_of_sessions_goes(tmp_path: Path) -> None:
    """A `DELETE` by hand heeds no foreign keys: what was said stays in the file without it."""
    path = tmp_path / "s.db"
    with SQLiteStore(path, NEVER) as store:
        for id in ("x", "y"):
            session = store.create(id)
            session.add_message("user", f"secret of {id}")
            store.save(session)
    with closing(sqlite3.connect(path)) as sql, sql:
        sql.execute("DELETE FROM sessions WHERE id = 'x'")
    with raw_shelf(path) as shelf:
        shelf.vacuum(now=FixedClock()())
    assert b"secret of x" not in path.read_bytes()
    with SQLiteStore(path, NEVER) as store:
        assert texts(store.get("y")) == ["secret of y"]


def test_a_file_of_sqlite_is_vacuumed_while_others_write(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with SQLiteStore(path, NEVER) as store:
        store.create("x")
        count = sized(fast=20, normal=200, long=1000)
        writing = start("interleave", "sqlite", str(tmp_path), "", "a", str(count))
        with raw_shelf(path) as shelf:
            while writing.poll() is None:
                shelf.vacuum(now=FixedClock()())
        writing.communicate(timeout=SECONDS - 5)
        assert writing.returncode == 0
        assert texts(store.get("x")) == [f"a:{number}" for number in range(count)]


@pytest.mark.parametrize("kind", ["redis"])
def test_what_lists_still_hold_of_the_expired_goes(
    redis_url: str, tmp_path: Path, clock: FixedClock
) -> None:
    with RedisStore(redis_url, NEVER, clock) as store:
        store.create(f"{tmp_path}", ttl=6000)
        later = clock() + timedelta(seconds=6001)
        with raw_shelf(redis_url, clock) as shelf:
            assert shelf.unneeded(now=later) == Vacuumed(1, 0, 0)
            assert shelf.vacuum(now=later) == Vacuumed(1, 0, 0)
            assert shelf.vacuum(now=later) == Vacuumed(0, 0, 0)
