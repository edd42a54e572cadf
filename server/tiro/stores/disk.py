"""Files as the stores use them: every operation that can fail in one object, and atomic writes.

Tests hand in a `Disk` of their own that fails where they want. Files are 0600 from their first
instant and directories made here 0700. A file is replaced whole or not at all, and a failed write
leaves no temporary file behind (U7.6).
"""

import contextlib
import errno
import os
import stat
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tiro.stores.processes import is_alive, is_left, mark

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
NO_LINKS = {
    errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV,
}  # fmt: skip
"""The errors of a link that say nothing against a copy."""


class Signature(NamedTuple):
    """What tells one version of a file from another without reading it."""

    size: int
    mtime_ns: int
    inode: int


class Disk:
    """The operations on files, each one call to the system."""

    def open(self, path: Path | str, flags: int) -> int:
        """Open a file; one that is made here is readable for its owner only."""
        return os.open(path, flags | _BINARY, FILE_MODE)

    def write(self, descriptor: int, data: bytes | memoryview) -> int:
        """One write call; returns how many bytes were taken."""
        return os.write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        """Wait until the file's data is on the disk itself."""
        _datasync(descriptor)

    def truncate(self, descriptor: int, size: int) -> None:
        """Cut a file to this size."""
        os.ftruncate(descriptor, size)

    def replace(self, source: Path, target: Path) -> None:
        """Put `source` in the place of `target`, atomically."""
        for attempt in range(_REPLACE_ATTEMPTS - 1):
            try:
                return os.replace(source, target)
            except PermissionError:
                time.sleep(0.01 * 2**attempt)
        return os.replace(source, target)

    def link(self, source: Path, target: Path) -> None:
        """Give `source` a second name; fails with FileExistsError where the name is taken."""
        os.link(source, target)

    def unlink(self, path: Path) -> None:
        """Remove a file."""
        os.unlink(path)

    def make_directory(self, path: Path) -> None:
        """Make one directory, for its owner only."""
        os.mkdir(path, DIRECTORY_MODE)

    def sync_directory(self, path: Path) -> None:
        """Wait until the names in a directory are on the disk itself, where a system can."""
        if sys.platform == "win32":
            return
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
        finally:
            os.close(descriptor)


def signature_of(status: os.stat_result) -> Signature:
    """The signature in what `stat` says."""
    return Signature(status.st_size, status.st_mtime_ns, status.st_ino)


def file_id(path: Path) -> tuple[int, int] | None:
    """What tells a file from another one of its name; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def signature_at(path: Path | str) -> Signature | None:
    """The signature of the file with this name; None where there is none."""
    try:
        return signature_of(os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def read_file(path: Path) -> tuple[bytes, Signature]:
    """The bytes of a regular file and the signature they had; raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | _BINARY | _NONBLOCK)  # a FIFO must not block us
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            code = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EINVAL
            raise OSError(code, "Not a regular file", str(path))
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(status.st_size), signature_of(status)  # what comes later is later
    finally:
        os.close(descriptor)


def make_directories(disk: Disk, path: Path) -> None:
    """Make a directory and what is missing above it, each for its owner only."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        if path.parent == path or path.exists():
            break  # a file stands in the way: making the first one says so
        path = path.parent
    for directory in reversed(missing):
        try:
            disk.make_directory(directory)
        except FileExistsError:
            if not directory.is_dir():  # else another process was faster
                raise


@contextlib.contextmanager
def temporary_file(disk: Disk, target: Path, data: bytes) -> Iterator[Path]:
    """A finished, synced file with this data beside `target`, removed at the end if still there."""
    descriptor, path = _open_temporary(disk, target)
    try:
        try:
            write_all(disk, descriptor, data)
            disk.sync(descriptor)
        finally:
            os.close(descriptor)
        yield path
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


def replace_file(disk: Disk, target: Path, data: bytes) -> Signature:
    """Write a file whole: afterwards it holds `data`, or on OSError what it held before."""
    with temporary_file(disk, target, data) as path:
        written = signature_of(os.stat(path))
        disk.replace(path, target)
    disk.sync_directory(target.parent)
    return written


def claim_file(disk: Disk, target: Path, data: bytes) -> Signature | None:
    """Make a new file with this data; None, and nothing done, where the name is taken (U9.1)."""
    with temporary_file(disk, target, data) as path:
        written = signature_of(os.stat(path))
        try:
            disk.link(path, target)
        except FileExistsError:
            return None
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            try:
                os.close(disk.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return None
            with _undone(target):
                disk.replace(path, target)
        with _undone(target):
            disk.sync_directory(target.parent)
    return written


def write_all(disk: Disk, descriptor: int, data: bytes) -> None:
    """Write all of `data`, in as many calls as it takes."""
    view = memoryview(data)
    while view:
        taken = disk.write(descriptor, view)
        if taken == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        view = view[taken:]


def remove_stale(target: Path) -> None:
    """Remove the temporary files that dead processes left beside `target`."""
    prefix = f".{target.name}."
    with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and is_stale(Path(entry.path)):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)


def is_stale(path: Path) -> bool:
    """Whether this is a temporary file whose process is dead.

    What runs on another machine that uses the directory, or in another container, is not known
    here: of that, only what was left for a day.
    """
    name = path.name
    if not (name.startswith(".") and name.endswith(".tmp")):
        return False
    owner, *rest = name[: -len(".tmp")].rpartition(".")[2].split("-")
    marks = [word for word in rest if word.startswith("m")]
    if not owner.isdecimal():
        return False
    return is_left(path) if marks and marks != [mark()] else not is_alive(int(owner))


def is_empty(path: Path) -> bool:
    """Whether this is a file without a byte: a claim that was never finished."""
    found = signature_at(path)
    return found is not None and found.size == 0


def set_aside(disk: Disk, path: Path, stamp: str) -> Path:
    """Rename a file to `<name>.bad-<stamp>`, never over another one; returns its new name."""
    target = _bad_name(path, stamp)
    disk.replace(path, target)
    narrow(target)
    return target


def narrow(path: Path) -> None:
    """Let nobody but its owner read a file that is not of our making, as far as we may (B53)."""
    with contextlib.suppress(OSError):
        bits = stat.S_IMODE(os.stat(path).st_mode)
        if bits & ~DIRECTORY_MODE:
            os.chmod(path, bits & DIRECTORY_MODE)


def copy_aside(disk: Disk, path: Path, stamp: str) -> Path:
    """Copy a file that is about to be overwritten to `<name>.bad-<stamp>`; returns that name."""
    target = _bad_name(path, stamp)
    replace_file(disk, target, path.read_bytes())
    return target


def real_path(path: Path) -> Path:
    """The absolute path; of a link, that of the file it leads to, which is what we replace."""
    path = path.absolute()
    return Path(os.path.realpath(path)) if os.path.islink(path) else path


@contextlib.contextmanager
def _undone(target: Path) -> Iterator[None]:
    """Take a name back that was claimed by what fails inside."""
    try:
        yield
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(target)
        raise


def _bad_name(path: Path, stamp: str) -> Path:
    for number in range(1000):
        target = path.with_name(f"{path.name}.bad-{stamp}" + (f"-{number}" if number else ""))
        if not os.path.lexists(target):
            return target
    raise OSError(errno.EEXIST, "Too many damaged files were set aside", str(path))


def _open_temporary(disk: Disk, target: Path) -> tuple[int, Path]:
    """A new file `.<name>.<pid>-<thread>-<machine>.tmp`, with a number where that is there already.

    A name that two threads used in turn would be removed by the first one after its file has been
    put in place, when it is the second one's.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    where = f"-{here}" if (here := mark()) else ""
    for number in range(100):
        owner = f"{os.getpid()}-{threading.get_native_id()}{where}{f'-{number}' if number else ''}"
        path = target.with_name(f".{target.name}.{owner}.tmp")
        try:
            return disk.open(path, flags), path
        except FileExistsError:
            continue
    raise OSError(errno.EEXIST, "Too many temporary files", str(target))


_BINARY = getattr(os, "O_BINARY", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_datasync = getattr(os, "fdatasync", os.fsync)
_REPLACE_ATTEMPTS = 6 if sys.platform == "win32" else 1
"""Windows refuses a replace while another program has the target open; it soon lets go."""
_UNSUPPORTED = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF}
