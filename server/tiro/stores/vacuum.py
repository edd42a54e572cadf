"""What nobody needs any more, removed: sessions that have expired, and large values without one.

A value goes only when no file of the directory refers to it, looked at while nobody writes a
reference (`blobs`). What another process uses stays, and so does all that was set aside.
"""

import os
from datetime import datetime
from pathlib import Path

import msgspec

from tiro.errors import SessionFormatError, SessionNotFoundError, StorageError
from tiro.stores.blobs import remove_unreferenced, unreferenced
from tiro.stores.disk import Disk
from tiro.stores.idle_files import remove_expired
from tiro.stores.reading import SNAPSHOT_ENDING, read_session, storage_error
from tiro.stores.store import has_expired


class Vacuumed(msgspec.Struct, frozen=True):
    """What was removed, or would be."""

    expired: int
    """Sessions whose time is over."""
    values: int
    """Large values to which nothing refers."""
    bytes: int
    """How much smaller what lies on the disk is for it, beside the expired sessions."""
    in_use: int = 0
    """Large values that stay since another process is about to refer to some."""


def vacuum(directory: Path, *, now: datetime, disk: Disk | None = None) -> Vacuumed:
    """Remove what nobody needs from a sessions directory.

    Raises StorageError where the directory cannot be read.
    """
    disk = disk or Disk()
    expired = sum(remove_expired(disk, path, now) for path in _sessions(directory))
    sizes = remove_unreferenced(directory, disk)
    in_use = 0 if sizes else len(unreferenced(directory))
    return Vacuumed(expired, len(sizes), sum(sizes), in_use)


def unneeded(directory: Path, *, now: datetime) -> Vacuumed:
    """What a vacuum would remove; raises as that."""
    expired = sum(_has_expired(path, now) for path in _sessions(directory))
    sizes = unreferenced(directory)
    return Vacuumed(expired, len(sizes), sum(sizes))


def _sessions(directory: Path) -> list[Path]:
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise storage_error(directory, error, "read") from error
    return [directory / name for name in names if _is_session(name)]


def _has_expired(path: Path, now: datetime) -> bool:
    try:
        return has_expired(read_session(path).expires_at, now)
    except (SessionFormatError, SessionNotFoundError, StorageError):
        return False


def _is_session(name: str) -> bool:
    return name.endswith(SNAPSHOT_ENDING) and not name.startswith(".")
