"""Session files that are not those of a live session: write a copy, remove a session."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tiro.errors import SessionFormatError, SessionNotFoundError, StorageError
from tiro.stores.blobs import has_references, remove_unreferenced
from tiro.stores.disk import (
    Disk,
    copy_aside,
    is_empty,
    make_directories,
    remove_stale,
    replace_file,
)
from tiro.stores.files import HOLDER_ENDING
from tiro.stores.journal import Journal
from tiro.stores.lock import in_use, wait_for
from tiro.stores.reading import JOURNAL_ENDING, beside, read_session, storage_error


def write_copy(disk: Disk, path: Path, id: str, data: bytes, stamp: str) -> None:
    """Write the snapshot of the session `id` to a file of its own; missing directories are made.

    A file that holds another session is never overwritten (M7.3), a damaged one is kept under
    another name.
    Raises StorageError, SessionInUseError.
    """
    try:
        make_directories(disk, path.parent)
        with locked(disk, path) as journal:
            _make_room(disk, path, id, stamp)
            replace_file(disk, path, data)
            if journal is not None:
                journal.cut(0)  # it was that of the older copy
    except StorageError:
        raise
    except OSError as error:
        raise storage_error(path, error, "write") from error


def remove_session(disk: Disk, path: Path) -> bool:
    """Remove a session's files, whose lock the caller holds; False where there are none.

    Large values go with the last session that refers to them. Raises StorageError where the
    snapshot cannot be removed.
    """
    try:
        refers = has_references(path)
        disk.unlink(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise storage_error(path, error, "write") from error
    for ending in (JOURNAL_ENDING, HOLDER_ENDING):
        with suppress(OSError):
            disk.unlink(beside(path, ending))
    remove_stale(path)
    if refers:
        remove_unreferenced(path.parent, disk)
    return True


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
        try:
            is_ours = wait_for(journal.try_lock)
        except OSError as error:
            raise storage_error(path, error, "write") from error
        if not is_ours:
            raise in_use(beside(path, HOLDER_ENDING))
        yield journal
    finally:
        journal.close()


def _make_room(disk: Disk, path: Path, id: str, stamp: str) -> None:
    """See that a copy written to `path` overwrites nothing but an older copy of itself."""
    try:
        there = read_session(path).stored.fields["id"]
    except SessionNotFoundError:
        return
    except SessionFormatError:
        if not is_empty(path):  # an empty file is a claim that was never finished
            copy_aside(disk, path, stamp)
        return
    if there != id:
        raise StorageError(
            f"{str(path)!r} holds another session ({there!r}); choose another name",
            path=str(path),
            errno="EEXIST",
        )
