"""The lock of a session in SQLite, where the disk refuses to say what it is asked."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from tests.processes import open_files
from tiro.errors import StorageError
from tiro.stores.lock_file import LockFile


def test_a_disk_that_does_not_say_what_lies_there_gives_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was asked again without an end, while the event loop stood still."""
    path = tmp_path / "locks" / "x"
    real_stat = os.stat

    def stat(asked: Any, **options: Any) -> os.stat_result:
        if asked == path:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return real_stat(asked, **options)

    lock = LockFile(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", stat)
        with pytest.raises(StorageError):
            lock.try_take()
    assert str(path) not in open_files()
    assert lock.try_take()
    lock.release()


def test_a_lock_file_that_its_holder_took_away_is_made_anew(tmp_path: Path) -> None:
    first, second = LockFile(tmp_path / "x"), LockFile(tmp_path / "x")
    assert first.try_take()
    assert not second.try_take()
    first.release()
    assert second.try_take()
    assert (tmp_path / "x").exists()
    second.release()


def test_a_disk_that_knows_no_locks_costs_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_descriptor: int) -> bool:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    lock = LockFile(tmp_path / "x")
    with monkeypatch.context() as patch:
        patch.setattr("tiro.stores.lock_file.try_lock", refuse)
        with pytest.raises(StorageError):
            lock.try_take()
        assert lock.holder() is None
    assert str(tmp_path / "x") not in open_files()
