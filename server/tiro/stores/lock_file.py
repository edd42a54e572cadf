"""The lock of one session in SQLite: a file beside, open while the lock is held."""

import contextlib
import os
from pathlib import Path

from tiro.stores.disk import Disk, make_directories
from tiro.stores.lock import Holder, read_holder, try_lock, unlock, write_holder
from tiro.stores.reading import storage_error


class LockFile:
    """One such lock; the system drops it when its holder dies."""

    renew_seconds = None

    def __init__(self, path: Path) -> None:
        self._path = path
        self._disk = Disk()
        self._descriptor: int | None = None

    def try_take(self) -> bool:
        """Take it if it is free; raises StorageError where no lock can be had."""
        try:
            make_directories(self._disk, self._path.parent)
            while True:
                descriptor = self._disk.open(self._path, os.O_RDWR | os.O_CREAT)
                self._descriptor = descriptor
                if not try_lock(descriptor):
                    self._close()
                    return False
                if _is_in_place(descriptor, self._path):
                    break
                self._close()  # its holder took it away: that lock is on nothing
        except OSError as error:
            self._close()
            raise storage_error(self._path, error, "write") from error
        write_holder(self._path)
        return True

    def renew(self) -> None:
        """Nothing: the system drops it when its holder dies, and not before."""

    def release(self) -> None:
        """Give it back."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with contextlib.suppress(OSError):
                self._disk.unlink(self._path)
            unlock(descriptor)
            os.close(descriptor)

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def holder(self) -> Holder | None:
        """Who holds it."""
        try:
            descriptor = self._disk.open(self._path, os.O_RDWR)
        except OSError:
            return None
        try:
            return None if try_lock(descriptor) else read_holder(self._path)
        except OSError:
            return None
        finally:
            os.close(descriptor)


def _is_in_place(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
