"""A file replaced whole or not at all: written beside it, brought to the disk, renamed.

Law: no link is followed on the way from the root to the file, and what lies there must still be
what was read. A failure leaves everything as it was. The mode stays, and where the system allows
it the owner, the group and the extended attributes. Another name of the same file (a hard link)
keeps the old text: it may lie outside the workspace. What a process that was killed left beside a
file is known by its name, and goes with the next write in that folder or the next start.
"""

import contextlib
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tiro.tools.opening import DIRECTORY, walked_down

PRIVATE = 0o600
NEW_FILE, NEW_FOLDER = 0o666, 0o777
"""As any program would make them: the umask decides."""


LEFT_SECONDS = 10.0
"""A file that was not written to for so long, and is held by nobody, was left by a dead process."""
UNHELD_SECONDS = 3600.0
"""The same, where the system cannot tell whether somebody holds it."""


class MovedError(Exception):
    """What lies there is no longer what was read."""


def put_in_place(root: Path, path: Path, data: bytes, was: os.stat_result) -> None:
    """Give an existing file these bytes.

    `path` is a real path below `root`. Raises MovedError and OSError; nothing is changed then.
    """
    with _folder(root, path.parent, make=False) as at:
        _replace(at, path.name, data, was)


def create_file(root: Path, path: Path, data: bytes) -> None:
    """Make a file, with the folders above it; raises MovedError when there is one already."""
    with _folder(root, path.parent, make=True) as at:
        try:
            descriptor = at.open(path.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, NEW_FILE)
        except FileExistsError as error:
            raise MovedError from error
        claimed = os.fstat(descriptor)
        os.close(descriptor)
        try:
            _replace(at, path.name, data, claimed)
        except BaseException:
            at.remove(path.name)
            raise


def remove_file(root: Path, path: Path, was: os.stat_result) -> None:
    """Remove a file; raises MovedError and OSError, and then it is still there."""
    with _folder(root, path.parent, make=False) as at:
        at.check(path.name, was)
        at.remove(path.name)
        at.sync()


def is_temporary(name: str) -> bool:
    """Whether a file of this name is one of ours that is about to be put in another's place."""
    return _TEMPORARY.fullmatch(name) is not None


def sweep(folder: Path) -> None:
    """Remove what dead processes left in a folder, a real path; never raises."""
    root = Path(folder.anchor)
    with contextlib.suppress(OSError, MovedError), _folder(root, folder, make=False) as at:
        at.sweep()


class _Folder:
    """A folder that is held open, where the system can do that; names in it lead nowhere else."""

    def __init__(self, path: Path, descriptor: int | None) -> None:
        self._path, self._descriptor = path, descriptor

    def open(self, name: str, flags: int, mode: int = PRIVATE) -> int:
        return os.open(self._named(name), flags | _FLAGS, mode, dir_fd=self._descriptor)

    def check(self, name: str, was: os.stat_result) -> None:
        """Raise MovedError unless the file is still the one that was read."""
        try:
            now = os.stat(self._named(name), dir_fd=self._descriptor, follow_symlinks=False)
        except FileNotFoundError as error:
            raise MovedError from error
        if _signature(now) != _signature(was):
            raise MovedError

    def rename(self, name: str, new: str) -> None:
        held = self._descriptor
        os.replace(self._named(name), self._named(new), src_dir_fd=held, dst_dir_fd=held)

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._named(name), dir_fd=self._descriptor)

    def sweep(self) -> None:
        """Remove the temporary files that no living process writes; never raises."""
        with contextlib.suppress(OSError):
            held = self._descriptor
            for name in filter(is_temporary, os.listdir(self._path if held is None else held)):
                descriptor = self.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
                try:
                    is_left = _is_left(descriptor)
                finally:
                    os.close(descriptor)
                if is_left:
                    self.remove(name)

    def sync(self) -> None:
        if self._descriptor is not None:
            with contextlib.suppress(OSError):  # some file systems cannot, and need not
                os.fsync(self._descriptor)

    def _named(self, name: str) -> str:
        return name if self._descriptor is not None else str(self._path / name)


@contextlib.contextmanager
def _folder(root: Path, path: Path, *, make: bool) -> Iterator[_Folder]:
    """The folder, opened; folders that were made on the way go again when the work fails."""
    made: list[Path] = []
    try:
        if os.open not in os.supports_dir_fd:
            yield _plain_folder(path, made, make=make)
            return
        descriptor = _open_folder(root, path, made, make=make)
        try:
            yield _Folder(path, descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        for folder in reversed(made):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        raise


def _open_folder(root: Path, path: Path, made: list[Path], *, make: bool) -> int:
    reached = root

    def enter(at: int, part: str) -> int:
        nonlocal reached
        reached = reached / part
        try:
            return os.open(part, DIRECTORY, dir_fd=at)
        except FileNotFoundError:
            if not make:
                raise
        os.mkdir(part, NEW_FOLDER, dir_fd=at)
        made.append(reached)
        return os.open(part, DIRECTORY, dir_fd=at)

    return walked_down(root, path.relative_to(root).parts, enter)


def _plain_folder(path: Path, made: list[Path], *, make: bool) -> _Folder:
    """The folder by its name, where a system cannot hold one open."""
    missing = [one for one in (path, *path.parents) if not one.exists()] if make else []
    for folder in reversed(missing):
        folder.mkdir(NEW_FOLDER)
        made.append(folder)
    if Path(os.path.realpath(path)) != path:
        raise MovedError
    return _Folder(path, None)


def _replace(at: _Folder, name: str, data: bytes, was: os.stat_result) -> None:
    """Write the bytes beside the file, then put them in its place."""
    at.sweep()
    temporary = f".tiro-{os.urandom(8).hex()}.tmp"
    source = at.open(name, os.O_RDONLY)
    try:
        descriptor = at.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            try:
                _hold(descriptor)
                _write(descriptor, data)
                _take_over(source, descriptor)
                os.fsync(descriptor)
                if os.utime in os.supports_fd:
                    os.utime(descriptor)  # as old as it is now that nobody holds it any more
            finally:
                os.close(descriptor)
            at.check(name, was)
            at.rename(temporary, name)
        except BaseException:
            at.remove(temporary)
            raise
        at.sync()
    finally:
        os.close(source)


def _is_left(descriptor: int) -> bool:
    """Whether this is a file of this user's that nobody writes any more."""
    status = os.fstat(descriptor)
    is_ours = not hasattr(os, "geteuid") or os.geteuid() in (0, status.st_uid)
    if not is_ours or not stat.S_ISREG(status.st_mode):
        return False
    is_free = _hold(descriptor)
    age = time.time() - status.st_mtime
    return is_free is not False and age > (LEFT_SECONDS if is_free else UNHELD_SECONDS)


if sys.platform == "win32":

    def _hold(descriptor: int) -> bool | None:
        return None

else:
    import fcntl

    def _hold(descriptor: int) -> bool | None:
        """Hold the file until the descriptor is closed; False if another does, None if unknown."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            return None
        return True


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _take_over(source: int, target: int) -> None:
    """Give a new file what belongs to the old one: owner, group, attributes and mode."""
    was = os.fstat(source)
    if hasattr(os, "fchown"):
        with contextlib.suppress(OSError):
            os.fchown(target, -1, was.st_gid)
        with contextlib.suppress(OSError):
            os.fchown(target, was.st_uid, -1)
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for name in os.listxattr(source):
                with contextlib.suppress(OSError):
                    os.setxattr(target, name, os.getxattr(source, name))
    if hasattr(os, "fchmod"):
        os.fchmod(target, stat.S_IMODE(was.st_mode))


def _signature(status: os.stat_result) -> tuple[int, ...]:
    """What tells one version of a file from another without reading it."""
    return status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns


_TEMPORARY = re.compile(r"\.tiro-[0-9a-f]{16}\.tmp")
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
