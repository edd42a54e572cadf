"""The disk refuses: told once, the session goes on, saving resumes (U9.5, U7.6, B10, B15).

The faults come from a disk with the real interface, by number; the full disk is a real one.
"""

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sizes import PATIENCE
from tests.stores.conftest import Make, Notices, Tell
from tests.stores.faults import FaultyDisk
from tests.stores.look import names, texts
from tiro.errors import StorageError
from tiro.session.session import Session
from tiro.stores.manager import SessionManager
from tiro.stores.saving import Fsync

LARGE = "three " * 20_000
CODES = [errno.ENOSPC, errno.EIO, errno.EACCES]


def calls_of_a_life(make: Make, directory: Path, fsync: Fsync) -> int:
    """How many operations the life below takes on a disk that works."""
    disk = FaultyDisk()
    live(make(directory=directory, disk=disk, fsync=fsync), None)
    return len(disk.calls)


def live(manager: SessionManager, disk: FaultyDisk | None) -> Session:
    """A session's life with every way of writing: claim, add, whole save, copy, end."""
    session = manager.create()
    session.add_message("user", "one")
    with manager.writing(session):
        session.add_message("assistant", "two")
        session.add_message("user", LARGE)
    try:
        manager.save(session)
    except StorageError:
        assert disk is not None
    session.add_message("assistant", "four")
    return session


@pytest.mark.parametrize("fsync", ["turn", "message"])
@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
def test_every_single_fault_costs_nothing(
    make_manager: Make,
    notices: Notices,
    tmp_path: Path,
    code: int,
    fsync: Fsync,
    record_property: Tell,
) -> None:
    """Each operation fails once: with the next change everything is on the disk again."""
    total = calls_of_a_life(make_manager, tmp_path / "count", fsync)
    notices.clear()
    assert total > 15
    record_property("faults", total)
    for number in range(total):
        disk = FaultyDisk()
        manager = make_manager(directory=tmp_path / str(number), disk=disk, fsync=fsync)
        disk.fail(code, first=number, count=1)
        session = live(manager, disk)
        session.add_message("user", "five")
        assert manager.is_stored(session), (number, disk.calls[number])
        path = manager.path_of(session)
        assert path is not None
        assert texts(make_manager().load(path)) == ["one", "two", LARGE, "four", "five"]
        told = [notice.reason for notice in notices if notice.session is session]
        assert told in ([], ["save_failed", "save_resumed"]), (number, disk.calls[number], told)
        manager.close()
        assert names(path.parent) == ["blobs", path.name], (number, disk.calls[number])
        assert len(names(path.parent / "blobs")) == 1, (number, disk.calls[number])
        assert texts(make_manager().load(path)) == ["one", "two", LARGE, "four", "five"]


@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
@pytest.mark.parametrize(
    "only", ["open", "write", "sync", "truncate", "replace", "link", "make_directory"]
)
def test_a_fault_that_lasts_is_told_once_and_ends(
    make_manager: Make, notices: Notices, only: str, code: int
) -> None:
    """B10, B15: one warning, no exception, no lost message; saving works again afterwards."""
    disk = FaultyDisk()
    manager = make_manager(disk=disk)
    disk.fail(code, only=only)
    session = live(manager, disk)
    for number in range(20):
        session.add_message("user", f"more {number}")
    assert notices.reasons in ([], ["save_failed"])
    assert len(session.messages) == 24
    if notices:
        assert notices[0].detail["errno"] == errno.errorcode[code]
        assert Path(notices[0].detail["path"]).is_absolute()
    disk.heal()
    session.add_message("user", "last")
    assert manager.is_stored(session)
    assert notices.reasons in ([], ["save_failed", "save_resumed"])
    path = manager.path_of(session)
    assert path is not None
    assert texts(make_manager().load(path)) == texts(session)
    manager.close()
    assert names(path.parent) == ["blobs", path.name]
    assert len(names(path.parent / "blobs")) == 1


def test_a_short_write_is_cut_away(make_manager: Make, notices: Notices) -> None:
    """U9.5: the journal is cut back to its last good length; the next change writes all."""
    disk = FaultyDisk()
    manager = make_manager(disk=disk)
    session = manager.create()
    session.add_message("user", "one")
    session.add_message("user", "two")
    path = manager.path_of(session)
    assert path is not None
    journal = path.with_suffix(".journal")
    before = journal.read_bytes()
    disk.fail(errno.ENOSPC, only="write", count=1, short=10)
    session.add_message("user", "three")
    assert journal.read_bytes() == before
    assert not manager.is_stored(session)
    assert texts(make_manager().load(path)) == ["one", "two"]
    session.add_message("user", "four")
    assert manager.is_stored(session)
    assert notices.reasons == ["save_failed", "save_resumed"]
    assert texts(make_manager().load(path)) == ["one", "two", "three", "four"]


def test_a_descriptor_whose_fsync_failed_is_not_used_again(
    make_manager: Make, notices: Notices
) -> None:
    """U9.5: what it had taken is written again, whole, through another one."""
    disk = FaultyDisk()
    manager = make_manager(disk=disk)
    session = manager.create()
    session.add_message("user", "one")
    disk.calls.clear()
    with manager.writing(session):
        session.add_message("user", "two")
        disk.fail(errno.EIO, only="sync", count=1)
    assert manager.is_stored(session)
    path = manager.path_of(session)
    assert path is not None
    stored = json.loads(path.read_text())["messages"]
    assert [message["content"] for message in stored] == ["one", "two"]
    after = disk.calls[disk.calls.index("sync") + 1 :]
    assert "replace" in after
    assert after.count("open") == 2, "the temporary file, and the journal anew"
    assert notices.reasons == []


def test_a_failed_save_names_path_and_reason(make_manager: Make) -> None:
    """Protocol `storeFailed`; the old file stays and no temporary one is left (U7.6)."""
    disk = FaultyDisk()
    manager = make_manager(disk=disk)
    session = manager.create()
    session.add_message("user", "one")
    path = manager.save(session)
    before = path.read_bytes()
    for only in ("open", "write", "sync", "replace"):
        disk.fail(errno.ENOSPC, only=only)
        with pytest.raises(StorageError) as caught:
            manager.save(session)
        assert caught.value.data == {"path": str(path), "errno": "ENOSPC"}
        assert isinstance(caught.value, OSError)
        disk.heal()
        assert path.read_bytes() == before
        assert names(path.parent) in ([path.name], [path.with_suffix(".journal").name, path.name])


@pytest.mark.usefixtures("idle")
def test_a_snapshot_that_fails_while_the_journal_works_loses_nothing(
    make_manager: Make, notices: Notices
) -> None:
    """No new file can be made, the journal can still be added to: everything stays stored."""
    disk = FaultyDisk()
    manager = make_manager(disk=disk)
    session = manager.create()
    session.add_message("user", "one")
    session.add_message("user", "two")
    disk.fail(errno.ENOSPC, only="replace")
    session.add_message("user", "and a half")
    deadline = time.monotonic() + PATIENCE
    while not notices and time.monotonic() < deadline:
        time.sleep(0.02)
    session.add_message("user", "three")
    assert manager.is_stored(session)
    assert notices.reasons == ["save_failed"]
    disk.heal()
    manager.save(session)
    assert notices.reasons == ["save_failed", "save_resumed"]


@pytest.mark.parametrize("kind", ["a file", "read-only", "below a read-only one"])
def test_a_directory_that_cannot_be_written_costs_one_warning(
    make_manager: Make, notices: Notices, tmp_path: Path, kind: str
) -> None:
    """B15"""
    directory = tmp_path / "conf ü" / "sessions"
    disk = FaultyDisk()
    if kind == "a file":
        directory.parent.write_text("I am a file")
    else:
        disk.fail(errno.EACCES)  # as root nothing is read-only: the disk says so instead
        if kind == "read-only":
            directory.mkdir(parents=True)
    manager = make_manager(directory=directory, disk=disk)
    session = manager.get()
    with manager.writing(session):
        for number in range(5):
            session.add_message("user", str(number))
    assert len(session.messages) == 5
    assert not manager.is_stored(session)
    assert manager.list() == ([], 0)
    with pytest.raises(StorageError) as caught:
        manager.save(session)
    assert caught.value.data["errno"] in ("EACCES", "ENOTDIR", "EEXIST")
    assert str(directory.parent) in caught.value.data["path"]
    manager.reset()
    manager.get().add_message("user", "in another session")
    assert notices.reasons == ["save_failed"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    mount = tmp_path / "small"
    mount.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mount)], capture_output=True
    )
    if done.returncode != 0:
        pytest.skip("mounting a small file system needs root")
    yield mount
    subprocess.run(["umount", str(mount)], check=True)


def test_a_really_full_disk(make_manager: Make, notices: Notices, small_disk: Path) -> None:
    """B10 (ii): told once; either version loads whole; saving works again with space."""
    manager = make_manager(directory=small_disk / "sessions")
    session = manager.create(max_history=10_000)
    session.add_message("user", "first")
    path = manager.path_of(session)
    assert path is not None
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * 600_000)
    stored = 0
    for number in range(300):
        session.add_message("user", f"{number} " + "y" * 4000)
        if manager.is_stored(session):
            stored = number
        if number % 50 == 0:
            assert len(texts(make_manager().load(path))) >= 1
    assert notices.reasons[0] == "save_failed"
    assert notices.reasons.count("save_failed") - notices.reasons.count("save_resumed") == 1
    assert len(session.messages) == 301
    assert len(texts(make_manager(on_notice=None).load(path))) >= stored
    with pytest.raises(StorageError) as caught:
        manager.save(session)
    assert caught.value.data["errno"] == "ENOSPC"
    assert not [name for name in names(path.parent) if name.endswith(".tmp")]
    filler.unlink()
    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    session.add_message("user", "last")
    assert manager.is_stored(session)
    assert notices.reasons[-1] == "save_resumed"
    assert texts(make_manager().load(path)) == texts(session)
    manager.close()
    assert names(path.parent) == [path.name]


LIMITED = """
import resource, signal, sys
from tiro.stores.manager import SessionManager
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
told = []
manager = SessionManager(sys.argv[1], on_notice=lambda notice: told.append(notice.reason))
session = manager.create(max_history=10_000)
stored = 0
for number in range(100):
    session.add_message("user", "y" * 1000)
    stored = number + 1 if manager.is_stored(session) else stored
print(stored, len(session.messages), told)
"""


def test_a_file_that_may_not_grow(directory: Path, make_manager: Make) -> None:
    """The same where nothing can be mounted: the system refuses a write in its middle."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(directory)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    stored, total, told = done.stdout.split(maxsplit=2)
    assert total == "100"
    assert json.loads(told.replace("'", '"'))[:2] in (
        ["save_failed"],
        ["save_failed", "save_resumed"],
    )
    assert int(stored) >= 40
    [path] = directory.glob("*.json")
    assert len(texts(make_manager().load(path))) >= int(stored)
