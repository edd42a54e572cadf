"""What killed processes leave beside sessions goes; what living ones have there stays."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.stores.conftest import Make
from tests.stores.look import names, texts
from tiro.stores.disk import Disk, is_stale, temporary_file
from tiro.stores.journal import Journal
from tiro.stores.leftovers import remove_leftovers
from tiro.stores.lock import write_holder
from tiro.stores.lock_file import LockFile
from tiro.stores.processes import LEFT_SECONDS, mark

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}

TURN = """
import sys, time
from tiro.stores.manager import SessionManager
manager = SessionManager(sys.argv[1])
session = manager.create(id="x")
session.add_message("user", "one")
with manager.writing(session):
    print("held", flush=True)
    time.sleep(600)
"""

LOCK = """
import pathlib, sys, time
from tiro.stores.lock_file import LockFile
lock = LockFile(pathlib.Path(sys.argv[1]))
assert lock.try_take()
print("held", flush=True)
time.sleep(600)
"""

Kill = Callable[[], None]


@contextmanager
def holding(program: str, path: Path) -> Iterator[Kill]:
    """Another process that holds a session; killed at the latest in the end."""
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, env=ENVIRONMENT
    )

    def kill() -> None:
        child.kill()
        child.wait()

    assert child.stdout is not None
    with child.stdout:
        assert child.stdout.readline() == b"held\n"
        try:
            yield kill
        finally:
            kill()


def age(path: Path) -> None:
    """Nobody has touched it for more than a day."""
    then = time.time() - LEFT_SECONDS - 60
    os.utime(path, (then, then))


@pytest.mark.skipif(not mark(), reason="the system does not tell who is gone")
def test_the_marks_of_a_killed_turn_go(make_manager: Make, directory: Path) -> None:
    with holding(TURN, directory) as kill:
        remove_leftovers(directory, Disk())
        assert names(directory) == ["x.journal", "x.json", "x.lock"]
        kill()
        remove_leftovers(directory, Disk())
        assert names(directory) == ["x.json"]
    assert texts(make_manager().load_id("x")) == ["one"]


def test_a_journal_that_says_something_stays(make_manager: Make, directory: Path) -> None:
    manager = make_manager()
    session = manager.create(id="y")
    session.add_message("user", "one")
    session.add_message("user", "two")
    age(directory / "y.journal")
    remove_leftovers(directory, Disk())
    assert texts(make_manager().load_id("y")) == ["one", "two"]


def test_what_another_machine_made_goes_after_a_day_unless_it_is_locked(directory: Path) -> None:
    directory.mkdir(parents=True)
    holder, empty = directory / "x.lock", directory / "z.journal"
    holder.write_text('{"pid": 1, "host": "elsewhere", "life": "boot/pid/time/1"}')
    empty.touch()
    remove_leftovers(directory, Disk())
    assert names(directory) == ["x.lock", "z.journal"]
    for path in (holder, empty):
        age(path)
    journals = [Journal(directory / f"{name}.journal", Disk()) for name in "xz"]
    for journal in journals:
        assert journal.try_lock()
        age(journal.path)
    age(holder)
    remove_leftovers(directory, Disk())
    assert names(directory) == ["x.journal", "x.lock", "z.journal"]
    for journal in journals:
        journal.close()
    remove_leftovers(directory, Disk())
    assert names(directory) == []


def test_our_own_marks_stay(make_manager: Make, directory: Path) -> None:
    manager = make_manager()
    session = manager.create(id="x")
    session.add_message("user", "one")
    with manager.writing(session):
        for name in names(directory):
            age(directory / name)
        write_holder(directory / "x.lock")
        remove_leftovers(directory, Disk())
        assert names(directory) == ["x.journal", "x.json", "x.lock"]
        session.add_message("user", "two")
    assert texts(make_manager().load_id("x")) == ["one", "two"]


def test_the_locks_beside_an_sqlite_file_go_with_their_processes(tmp_path: Path) -> None:
    place, locks = tmp_path / "sessions.db", tmp_path / "sessions.db.locks"
    mine = LockFile(locks / "mine")
    assert mine.try_take()
    with holding(LOCK, locks / "x") as kill:
        age(locks / "mine")
        age(locks / "x")
        remove_leftovers(place, Disk())
        assert names(locks) == ["mine", "x"]
        kill()
        remove_leftovers(place, Disk())
        assert names(locks) == ["mine"]
    mine.release()


def test_what_cannot_be_read_or_removed_is_no_failure(tmp_path: Path) -> None:
    remove_leftovers(tmp_path / "nowhere", Disk())
    (tmp_path / "a.lock").mkdir()
    (tmp_path / "b.journal").mkdir()
    remove_leftovers(tmp_path, Disk())
    assert names(tmp_path) == ["a.lock", "b.journal"]


@pytest.mark.skipif(not mark(), reason="the system does not tell this machine from others")
@pytest.mark.parametrize("is_foreign", [False, True])
def test_a_temporary_file_of_another_machine_is_stale_after_a_day(
    tmp_path: Path, is_foreign: bool
) -> None:
    """A process there may have any number, also one that nobody has here."""
    with temporary_file(Disk(), tmp_path / "x.json", b"x") as made:
        assert not is_stale(made)
        dead = subprocess.Popen([sys.executable, "-c", ""])
        dead.wait()
        name = made.name.replace(f".{os.getpid()}-", f".{dead.pid}-")
        path = tmp_path / (name.replace(mark(), "m00000000") if is_foreign else name)
        path.touch()
        assert is_stale(path) != is_foreign
        age(path)
        assert is_stale(path)
        age(made)
        assert not is_stale(made)
