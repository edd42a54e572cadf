"""Files of sessions that are live nowhere here: locked, copied, removed."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from tiro.errors import (
    SessionFormatError,
    SessionInUseError,
    SessionNotFoundError,
    StorageError,
)
from tiro.stores.blobs import blobs_beside, remove_unreferenced
from tiro.stores.disk import (
    Disk,
    is_empty,
    make_directories,
    remove_stale,
    replace_file,
)
from tiro.stores.journal import Journal
from tiro.stores.lock import in_use, wait_for
from tiro.stores.reading import JOURNAL_ENDING, beside, read_session, storage_error, values_of
from tiro.stores.session_files import HOLDER_ENDING
from tiro.stores.store import has_expired


def write_copy(disk: Disk, path: Path, id: str, data: bytes) -> None:
    """Write the snapshot of the session `id` to a file of its own; missing directories are made.

    It replaces nothing but an empty file or an older copy of the same session (M7.3).
    Raises StorageError, SessionInUseError.
    """
    try:
        make_directories(disk, path.parent)
        with locked(disk, path) as journal:
            _refuse_other(path, id)
            replace_file(disk, path, data)
            if journal is not None:
                journal.cut(0)  # it was that of the older copy
    except StorageError:
        raise
    except OSError as error:
        raise storage_error(path, error, "write") from error


def remove_session(disk: Disk, path: Path) -> bool:
    """Remove a session's files, whose lock the caller holds; False where there are none.

    Large values go with the last session that refers to them. Raises StorageError where something
    that was said stays there.
    """
    try:
        refers = _refers(path)
        disk.unlink(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise storage_error(path, error, "write") from error
    with suppress(OSError):
        disk.unlink(beside(path, HOLDER_ENDING))
    remove_stale(path)
    _remove_journal(disk, beside(path, JOURNAL_ENDING))
    if refers:
        remove_unreferenced(path.parent, disk)
    return True


def remove_expired(disk: Disk, path: Path, now: datetime) -> bool:
    """Remove a session's files if it has expired; whether they are gone now.

    What is damaged, or used by another process, stays. Never raises.
    """
    with suppress(SessionInUseError, SessionNotFoundError, SessionFormatError, StorageError):
        if has_expired(read_session(path).expires_at, now):
            with locked(disk, path):
                is_old = has_expired(read_session(path).expires_at, now)
                return is_old and remove_session(disk, path)
    return False


def _refers(path: Path) -> bool:
    """Whether a session refers to large values; raises FileNotFoundError."""
    if not blobs_beside(path.parent).is_dir():
        return False
    try:
        return bool(values_of(path))
    except FileNotFoundError:
        raise
    except OSError:
        return True  # it could not be read: whoever looks through all files sees


def _remove_journal(disk: Disk, path: Path) -> None:
    try:
        disk.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        if sys.platform != "win32":  # there it stays while we hold its lock
            raise storage_error(path, error, "write") from error


@contextmanager
def locked(disk: Disk, path: Path) -> Iterator[Journal | None]:
    """Hold the lock of a session's files, if a process can be using them: it has a journal then.

    Gives that journal. Raises SessionInUseError, and StorageError where nothing can be locked.
    """
    journal = Journal(beside(path, JOURNAL_ENDING), disk)
    if not os.path.lexists(path) or not journal.exists():
        yield None
        return
    try:
        _take(path, journal)
        yield journal
    finally:
        journal.close()


@contextmanager
def held(disk: Disk, path: Path) -> Iterator[None]:
    """Hold the lock of a session's files, also where no process seems to be using them.

    A journal that says nothing, or whose snapshot is gone in the end, goes. Raises as `locked`.
    """
    journal = Journal(beside(path, JOURNAL_ENDING), disk)
    try:
        _take(path, journal)
        yield
        found = journal.signature()
        if not os.path.lexists(path) or found is None or not found.size:
            with suppress(OSError):
                disk.unlink(journal.path)
    finally:
        journal.close()


def occupied(path: Path) -> StorageError:
    """The error for a file that a user named and that holds what would be lost."""
    return StorageError(
        f"{str(path)!r} holds something else; choose another name or remove it first",
        path=str(path),
        errno="EEXIST",
    )


def _take(path: Path, journal: Journal) -> None:
    """Take the lock, waiting up to a second; raises SessionInUseError, StorageError."""
    try:
        is_ours = wait_for(journal.try_lock)
    except OSError as error:
        raise storage_error(path, error, "write") from error
    if not is_ours:
        raise in_use(beside(path, HOLDER_ENDING))


def _refuse_other(path: Path, id: str) -> None:
    """Raise unless there is nothing at `path`, nothing in it, or an older copy of the session."""
    try:
        there = read_session(path).stored.fields["id"]
    except SessionNotFoundError:
        return
    except SessionFormatError:
        if is_empty(path):  # a claim that was never finished
            return
        raise occupied(path) from None
    if there != id:
        raise occupied(path)
