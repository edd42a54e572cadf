"""A disk that fails where a test wants it to, with the real interface."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tiro.stores.disk import Disk


class FaultyDisk(Disk):
    """Counts its operations; from number `first` on, `count` of them fail with `code`.

    `only` limits the faults to one kind of operation. A failing write takes `short` bytes first.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.heal()

    def fail(
        self,
        code: int = errno.EIO,
        *,
        first: int = 0,
        count: int = 10**9,
        only: str | None = None,
        short: int = 0,
    ) -> None:
        """Fail from now on: the operation number `first` counted from here, and those after it."""
        self._code, self._only, self._short = code, only, short
        self._first, self._last, self._number = first, first + count, -1

    def heal(self) -> None:
        """Work again."""
        self.fail(count=0)

    def _guarded(self, kind: str, do: Callable[[], Any], path: Any = None) -> Any:
        self.calls.append(kind)
        if self._only is None or self._only == kind:
            self._number += 1
            if self._first <= self._number < self._last:
                raise OSError(self._code, os.strerror(self._code), path and str(path))
        return do()

    def open(self, path: Path | str, flags: int) -> int:
        descriptor: int = self._guarded("open", lambda: Disk.open(self, path, flags), path)
        return descriptor

    def write(self, descriptor: int, data: bytes | memoryview) -> int:
        try:
            taken: int = self._guarded("write", lambda: Disk.write(self, descriptor, data))
        except OSError:
            if self._short:
                return Disk.write(self, descriptor, data[: self._short])
            raise
        return taken

    def sync(self, descriptor: int) -> None:
        self._guarded("sync", lambda: Disk.sync(self, descriptor))

    def truncate(self, descriptor: int, size: int) -> None:
        self._guarded("truncate", lambda: Disk.truncate(self, descriptor, size))

    def replace(self, source: Path, target: Path) -> None:
        self._guarded("replace", lambda: Disk.replace(self, source, target), target)

    def link(self, source: Path, target: Path) -> None:
        self._guarded("link", lambda: Disk.link(self, source, target), target)

    def unlink(self, path: Path) -> None:
        self._guarded("unlink", lambda: Disk.unlink(self, path), path)

    def make_directory(self, path: Path) -> None:
        self._guarded("make_directory", lambda: Disk.make_directory(self, path), path)

    def sync_directory(self, path: Path) -> None:
        self._guarded("sync_directory", lambda: Disk.sync_directory(self, path), path)
