"""Atomic files: whole or not at all, private, nothing left behind (U7.6, U9.1, U9.6, B53)."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.sizes import PATIENCE
from tests.stores.conftest import Make
from tests.stores.faults import FaultyDisk
from tests.stores.look import mode, names, texts
from tiro.stores.disk import (
    Disk,
    claim_file,
    copy_aside,
    make_directories,
    remove_stale,
    replace_file,
    set_aside,
    temporary_file,
    write_all,
)


def dead_process() -> int:
    """The number of a process that has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


@pytest.mark.parametrize("only", ["open", "write", "sync", "replace"])
def test_a_failed_replace_leaves_the_old_file_and_nothing_else(tmp_path: Path, only: str) -> None:
    """U7.6"""
    path = tmp_path / "x.json"
    path.write_bytes(b"old")
    disk = FaultyDisk()
    disk.fail(errno.EIO, only=only)
    with pytest.raises(OSError, match="Input/output error"):
        replace_file(disk, path, b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["x.json"]


def test_a_replaced_file_is_whole_and_private(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b"old")
    path.chmod(0o666)
    data = os.urandom(3_000_000)
    signature = replace_file(Disk(), path, data)
    assert path.read_bytes() == data
    assert mode(path) == 0o600
    assert signature.size == len(data)


def test_a_claim_is_exclusive(tmp_path: Path) -> None:
    """U9.1"""
    path = tmp_path / "x.json"
    assert claim_file(Disk(), path, b"one") is not None
    assert claim_file(Disk(), path, b"two") is None
    assert path.read_bytes() == b"one"
    assert names(tmp_path) == ["x.json"]


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_claim_without_links_is_exclusive_too(tmp_path: Path, code: int) -> None:
    """U9.1: exclusive create where links are not possible."""
    disk = FaultyDisk()
    disk.fail(code, only="link")
    path = tmp_path / "x.json"
    assert claim_file(disk, path, b"one") is not None
    assert claim_file(disk, path, b"two") is None
    assert path.read_bytes() == b"one"
    disk.fail(code, only="link", count=1)
    other = tmp_path / "y.json"
    failing = ReplaceFails()
    with pytest.raises(OSError, match="No space left"):
        claim_file(failing, other, b"three")
    assert names(tmp_path) == ["x.json"]


class ReplaceFails(FaultyDisk):
    """No links, and a disk that is full at the last moment."""

    def link(self, source: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "no links here")

    def replace(self, source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_sessions_live_without_links(make_manager: Make) -> None:
    disk = FaultyDisk()
    disk.fail(errno.EPERM, only="link")
    manager = make_manager(disk=disk)
    sessions = [manager.create() for _ in range(3)]
    for number, session in enumerate(sessions):
        session.add_message("user", str(number))
        assert manager.is_stored(session)
    assert len({session.id for session in sessions}) == 3
    manager.close()
    for number, session in enumerate(sessions):
        assert texts(make_manager().load_id(session.id or "")) == [str(number)]


def test_temporary_files_of_dead_processes_go(make_manager: Make, directory: Path) -> None:
    """U9.6, B10: no stray temporary files pile up; those of the living stay."""
    manager = make_manager()
    session = manager.create(id="x")
    session.add_message("user", "one")
    manager.close()
    dead = f".x.json.{dead_process()}.tmp"
    second = f".x.json.{dead_process()}-3.tmp"
    alive = f".x.json.{os.getppid()}.tmp"
    other = f".y.json.{dead_process()}.tmp"
    for name in (dead, second, alive, other, ".x.json.strange.tmp"):
        (directory / name).write_text("x")
    make_manager().load_id("x")
    left = set(names(directory))
    assert {alive, other, ".x.json.strange.tmp"} <= left
    assert not {dead, second} & left


def test_two_writers_in_one_process_do_not_meet(tmp_path: Path) -> None:
    """The temporary name holds the process only; a second thread takes a number."""
    path = tmp_path / "x.json"
    (tmp_path / f".x.json.{os.getpid()}.tmp").write_text("another thread is writing")
    replace_file(Disk(), path, b"mine")
    assert path.read_bytes() == b"mine"
    assert len(names(tmp_path)) == 2


def test_directories_are_made_for_their_owner_only(tmp_path: Path) -> None:
    """B53"""
    before = os.umask(0)
    try:
        make_directories(Disk(), tmp_path / "a" / "b c" / "ü")
    finally:
        os.umask(before)
    assert {mode(path) for path in tmp_path.rglob("*")} == {0o700}
    (tmp_path / "file").write_text("")
    for below in ("file", "file/sub", "file/sub/sub"):
        with pytest.raises(OSError, match=r"exists|directory"):
            make_directories(Disk(), tmp_path / below)


def test_a_file_set_aside_overwrites_no_other(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for number in range(3):
        path.write_text(str(number))
        copy_aside(Disk(), path, "stamp")
    found = {name: (tmp_path / name).read_text() for name in names(tmp_path)}
    assert found == {
        "x.json": "2",
        "x.json.bad-stamp": "0",
        "x.json.bad-stamp-1": "1",
        "x.json.bad-stamp-2": "2",
    }
    assert mode(tmp_path / "x.json.bad-stamp") == 0o600
    path.chmod(0o666)
    assert mode(set_aside(Disk(), path, "moved")) == 0o600, "also one that was not of our making"


def test_a_write_that_takes_nothing_is_a_full_disk(tmp_path: Path) -> None:
    class Stuck(Disk):
        def write(self, descriptor: int, data: bytes | memoryview) -> int:
            return 0

    with pytest.raises(OSError, match="No space left"):
        write_all(Stuck(), 1, b"x")


def test_stale_files_in_a_directory_that_is_none(tmp_path: Path) -> None:
    remove_stale(tmp_path / "nowhere" / "x.json")


def test_a_file_put_in_place_takes_no_other_thread_s_with_it(tmp_path: Path) -> None:
    """U7.6: the name is free once the file is in place; it may be another writer's by then."""
    target, is_there, is_over = tmp_path / "x", threading.Event(), threading.Event()
    failed: list[OSError] = []

    def write_another() -> None:
        try:
            with temporary_file(Disk(), target, b"second") as path:
                is_there.set()
                is_over.wait(PATIENCE)
                os.replace(path, target)
        except OSError as error:
            failed.append(error)

    other = threading.Thread(target=write_another)

    class Meanwhile(Disk):
        def replace(self, source: Path, target: Path) -> None:
            super().replace(source, target)
            other.start()
            assert is_there.wait(PATIENCE)

    replace_file(Meanwhile(), target, b"first")
    is_over.set()
    other.join(PATIENCE)
    assert failed == []
    assert target.read_bytes() == b"second"
