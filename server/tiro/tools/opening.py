"""Opening a file or a folder where it really lies: no link on the way, and nothing of another kind.

The way down is walked from a folder that is known, each folder opened within the one above it, so
that a link which is put there meanwhile leads nowhere.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path


class UnfitError(Exception):
    """What lies there is of another kind than wanted."""


_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | _NO_FOLLOW
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)
DIRECTORY = _FLAGS | getattr(os, "O_DIRECTORY", 0)
"""How a folder is opened on the way: a link in its place is refused."""


def opened_file(root: Path, path: Path) -> int:
    """A descriptor of a regular file at a real path below `root`.

    Raises UnfitError for what is none, OSError with ELOOP where a link has come into the way.
    """
    return _opened(root, path, stat.S_IFREG)


def opened_folder(root: Path, path: Path) -> int:
    """A descriptor of a folder at a real path below `root`; raises as `opened_file`."""
    return _opened(root, path, stat.S_IFDIR)


def walked_down(
    root: Path, parts: Iterable[str], enter: Callable[[int, str], int], flags: int = DIRECTORY
) -> int:
    """A descriptor of the folder that these parts lead to, each entered from the one above it.

    `enter` opens a part within an open folder. Links above the root are followed.
    """
    current = os.open(root, flags & ~_NO_FOLLOW)
    for part in parts:
        try:
            below = enter(current, part)
        finally:
            os.close(current)
        current = below
    return current


def _opened(root: Path, path: Path, wanted: int) -> int:
    if os.open in os.supports_dir_fd:
        return _open_below(root, path, wanted)
    return _open_where(path, wanted)


def _open_below(root: Path, path: Path, wanted: int) -> int:
    parts, above = path.relative_to(root).parts, DIRECTORY
    if not parts:
        return _checked(os.open(root, above & ~_NO_FOLLOW), wanted)
    if root == Path(path.anchor):
        above |= getattr(os, "O_PATH", 0)  # a folder up there may be open to no reader
    *folders, name = parts
    folder = walked_down(root, folders, lambda at, part: os.open(part, above, dir_fd=at), above)
    try:
        _check_kind(os.stat(name, dir_fd=folder, follow_symlinks=False), wanted)
        descriptor = os.open(name, _FLAGS, dir_fd=folder)
    finally:
        os.close(folder)
    return _checked(descriptor, wanted)


def _open_where(path: Path, wanted: int) -> int:
    """Open where a folder cannot be opened first: check, open, and check again where that led."""
    _check_kind(os.stat(path, follow_symlinks=False), wanted)
    descriptor = _checked(os.open(path, _FLAGS), wanted)
    if Path(os.path.realpath(path)) != path:
        os.close(descriptor)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return descriptor


def _checked(descriptor: int, wanted: int) -> int:
    """The descriptor, if what was opened is of the wanted kind; else it is closed."""
    try:
        _check_kind(os.fstat(descriptor), wanted)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_kind(found: os.stat_result, wanted: int) -> None:
    kind = stat.S_IFMT(found.st_mode)
    if kind == stat.S_IFLNK:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if kind != wanted:
        raise UnfitError(f"{_KINDS.get(kind, 'something else')}, not {_KINDS[wanted]}")


_KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
