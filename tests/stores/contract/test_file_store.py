"""What only the file store promises: the files are those of the server (U9)."""

import contextlib
import errno
import os
from pathlib import Path

import pytest

from tests.fakes import FixedClock
from tests.processes import open_files
from tests.stores.look import names, texts
from tiro import SessionChangedError, SessionFormatError, SessionInUseError, StorageError
from tiro.stores.disk import Disk
from tiro.stores.files import FileStore
from tiro.stores.journal import Journal
from tiro.stores.manager import SessionManager

NEVER = 1e6


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


def test_the_server_goes_on_with_a_session_of_the_store_and_back(directory: Path) -> None:
    with FileStore(directory, NEVER) as store:
        session = store.create("x", metadata={"a": "b"})
        session.add_message("user", "from the store")
        store.save(session)
        with SessionManager(directory) as manager:
            live = manager.load_id("x")
            assert texts(live) == ["from the store"]
            live.add_message("user", "from the server")
        session.add_message("user", "stale")
        with pytest.raises(SessionChangedError):
            store.save(session)
        found = store.get("x")
        assert texts(found) == ["from the store", "from the server"]
        found.add_message("user", "from the store again")
        store.save(found)
    with SessionManager(directory) as manager:
        assert texts(manager.load_id("x"))[-1] == "from the store again"


def test_a_session_that_is_being_answered_in_is_not_written(directory: Path) -> None:
    """U9.8."""
    with FileStore(directory, NEVER) as store, SessionManager(directory) as manager:
        store.create("x")
        session = store.get("x")
        session.set("k", 1)
        with manager.writing(manager.load_id("x")), pytest.raises(SessionInUseError):
            store.save(session)
        store.save(session)
        assert store.get("x").get("k") == 1


def test_no_file_stays_open_or_empty(directory: Path) -> None:
    with FileStore(directory, NEVER) as store:
        store.create("x")
        session = store.get("x")
        assert names(directory) == ["x.json"]
        session.set("k", 1)
        store.save(session)
        assert names(directory) == ["x.journal", "x.json"]
        assert not any(str(directory) in path for path in open_files())
        store.delete("x")
        assert names(directory) == []


def test_a_damaged_journal_is_kept_aside_and_what_is_left_goes_on(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """U9.4: and the log says so."""
    with FileStore(directory, NEVER) as store:
        session = store.create("x")
        for text in ("one", "two", "three"):
            session.add_message("user", text)
            store.save(session)
        journal = directory / "x.journal"
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join([*lines[:2], b"damage\n", *lines[3:]]))
        found = store.get("x")
        assert texts(found) == ["one", "three"]
        assert "1 lines of the journal" in caplog.text
        found.add_message("user", "four")
        store.save(found)
        assert texts(store.get("x")) == ["one", "three", "four"]
        assert [name for name in names(directory) if "bad" in name]


def test_what_is_in_use_or_gone_does_not_end_the_clean_up(
    directory: Path, clock: FixedClock
) -> None:
    """G4.9, U9.8: all others that have expired are removed."""

    class Shared(Disk):
        """Another process cleans up too: `gone-1` and `gone-2` go together."""

        def unlink(self, path: Path) -> None:
            super().unlink(path)
            if path.name.startswith("gone") and path.suffix == ".json":
                for other in directory.glob("gone*.json"):
                    super().unlink(other)

    with FileStore(directory, NEVER, clock, Shared()) as store:
        for id in ("a", "gone-1", "used", "gone-2", "z"):
            store.create(id, 60)
        clock.advance(61)
        holder = Journal(directory / "used.journal", Disk())
        assert holder.try_lock()
        try:
            assert store.delete_expired() == 3
        finally:
            holder.close()
        assert [path.name for path in directory.glob("*.json")] == ["used.json"]
        assert store.delete_expired() == 1


def test_a_damaged_file_is_told_and_left_alone(directory: Path) -> None:
    with FileStore(directory, NEVER) as store:
        store.create("x", 60)
        (directory / "x.json").write_text("{")
        with pytest.raises(SessionFormatError):
            store.get("x")
        assert store.delete_expired() == 0
        assert store.count() == 0
        assert names(directory) == ["x.json"]


class FailingDisk(Disk):
    """Refuses one kind of operation while it is told to."""

    fails = ""

    def write(self, descriptor: int, data: bytes | memoryview) -> int:
        """Refuse, or write half of it, or write."""
        if self.fails == "write":
            os.write(descriptor, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        """Refuse, or sync."""
        if self.fails == "sync":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync(descriptor)


@pytest.mark.parametrize("fails", ["write", "sync"])
def test_what_the_disk_refused_is_saved_the_next_time(directory: Path, fails: str) -> None:
    """U9.5: told, nothing doubled, nothing lost."""
    disk = FailingDisk()
    with FileStore(directory, NEVER, disk=disk) as store:
        session = store.create("x")
        session.add_message("user", "one")
        store.save(session)
        session.add_message("user", "two")
        disk.fails = fails
        for _ in range(2):
            with pytest.raises(StorageError):
                store.save(session)
        disk.fails = ""
        session.add_message("user", "three")
        store.save(session)
        assert texts(store.get("x")) == ["one", "two", "three"]
        with contextlib.suppress(FileNotFoundError):
            assert (directory / "x.journal").read_bytes() == b""


def test_a_directory_that_cannot_be_listed_is_told(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> list[str]:
        raise PermissionError(errno.EACCES, "Permission denied")

    with FileStore(directory, NEVER) as store:
        store.create("x")
        with monkeypatch.context() as patched:
            patched.setattr(os, "listdir", refuse)
            with pytest.raises(StorageError, match=r"could not be read: Permission denied$"):
                store.delete_expired()
        assert store.count() == 1
