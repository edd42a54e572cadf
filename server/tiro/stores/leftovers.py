"""What killed processes leave beside sessions: their names on locks, locks, journals of nothing.

Law: a mark goes only while its lock is ours, and only if whoever wrote it is known to be gone, or
has not touched it for a day. The system has dropped the lock itself long before.
"""

import contextlib
import os
from pathlib import Path

from tiro.stores.disk import Disk
from tiro.stores.journal import Journal
from tiro.stores.lock import is_gone, read_holder, remove_holder, try_lock
from tiro.stores.processes import is_left
from tiro.stores.reading import JOURNAL_ENDING, SNAPSHOT_ENDING, beside
from tiro.stores.session_files import HOLDER_ENDING


def remove_leftovers(place: Path, disk: Disk) -> None:
    """Remove them from a directory of sessions, or from beside an SQLite file; never raises."""
    for name in _names(place):
        path = place / name
        stem = path.with_suffix(SNAPSHOT_ENDING)
        if name.endswith(HOLDER_ENDING) and _is_abandoned(path):
            _remove(beside(stem, JOURNAL_ENDING), path, disk)
        elif name.endswith(JOURNAL_ENDING) and _is_empty(path) and is_left(path):
            _remove(path, beside(stem, HOLDER_ENDING), disk)
    locks = place.with_name(place.name + ".locks")
    for name in _names(locks):
        if _is_abandoned(locks / name):
            _remove_lock(locks / name)


def _remove(journal_path: Path, holder: Path, disk: Disk) -> None:
    """The mark, and a journal without a line; unless somebody has the lock."""
    journal = Journal(journal_path, disk)
    with contextlib.suppress(OSError):
        try:
            if journal.try_lock() and (_is_abandoned(holder) or not os.path.lexists(holder)):
                remove_holder(holder)
                if _is_empty(journal_path):
                    os.unlink(journal_path)
        finally:
            journal.close()


def _remove_lock(path: Path) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDWR)
        try:
            if try_lock(descriptor) and _is_abandoned(path):
                os.unlink(path)  # who waits for it looks whether it is still there
        finally:
            os.close(descriptor)


def _is_abandoned(path: Path) -> bool:
    return is_gone(read_holder(path)) or is_left(path)


def _is_empty(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return os.stat(path).st_size == 0
    return False


def _names(directory: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return [name for name in os.listdir(directory) if not name.startswith(".")]
    return []
