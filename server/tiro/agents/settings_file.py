"""A file of settings as somebody wrote it: its values with their lines, or why it is of no use."""

import codecs
import os
import stat
from pathlib import Path

import msgspec

from tiro.agents.permissions import OPEN_SET, Rules
from tiro.agents.wording import shown
from tiro.agents.yaml_tree import YamlTree, parse_yaml

MAX_FILE_BYTES = 1_000_000
SHIPPED = Rules(default=OPEN_SET)
"""What may be read while nobody has said anything else."""


class UnusableFileError(Exception):
    """Why a file cannot be used, in words that go on after its name."""

    def __init__(self, why: str, text: str | None = None) -> None:
        super().__init__(why)
        self.text = text
        """What is in it; None: not even that can be read."""


class UnreadableFileError(UnusableFileError):
    """Its disk did not give it out; it may the next time, and nothing need have changed."""


def read_settings(path: Path, root: Path | None) -> YamlTree | None:
    """The keys and values of a YAML file, None when there is none; UnusableFileError says why.

    A file of a workspace, given by its root, must lie in it, also where a link leads.
    """
    text = read_whole(path, root)
    if text is None:
        return None
    try:
        found = parse_yaml(text)
    except ValueError as error:
        raise UnusableFileError(str(error), text) from error
    if found.tree is None:
        return msgspec.structs.replace(found, tree={})
    if not isinstance(found.tree, dict):
        raise UnusableFileError(f" must hold keys and values, not {shown(found.tree)}", text)
    return found


def read_whole(path: Path, root: Path | None) -> str | None:
    """The text of a regular file of bearable size; None when there is none."""
    data = _read(path, root)
    if data is None:
        return None
    if len(data) > MAX_FILE_BYTES:
        raise UnusableFileError(f" is larger than {MAX_FILE_BYTES:,} bytes")
    return _decoded(data)


def read_beginning(path: Path, root: Path | None) -> str | None:
    """The text of a regular file, of a larger one its beginning; None when there is none."""
    data = _read(path, root)
    return None if data is None else _decoded(data, is_whole=len(data) <= MAX_FILE_BYTES)


def real_path(path: Path, root: Path) -> Path:
    """Where the file of a workspace really is; UnusableFileError where it is not to be followed.

    A repository can ship a link to anything, and what it leads to is told to models.
    """
    try:
        real, base = Path(os.path.realpath(path)), os.path.realpath(root)
    except OSError as error:  # a link that was one no more when it was followed
        raise UnreadableFileError(f" cannot be read ({error.strerror})") from error
    if not real.is_relative_to(base):
        raise UnusableFileError(" leads out of the workspace")
    is_of_kind = real.suffix.lower() == path.suffix.lower()
    if not is_of_kind or SHIPPED.decide("read", real.relative_to(base).as_posix()).kind != "allow":
        told = f" leads to {real.name!r}, which is no {path.suffix} file that may be read"
        raise UnusableFileError(told)
    return real


def not_there(path: Path) -> str | None:
    """Why there is none although somebody put one there: a link that leads nowhere."""
    link = next(filter(os.path.islink, (path, *path.parents)), None)
    if link is None or os.path.exists(link):
        return None
    return f" cannot be read: {'it' if link == path else link} is a link to what is not there"


def _is_own(found: os.stat_result, folder: Path) -> bool:
    """Whether nobody else wrote this file: in `/tmp` and the like, anybody could."""
    if os.name == "nt" or found.st_uid in (0, os.getuid()):
        return True
    try:
        return found.st_uid == os.stat(folder).st_uid
    except OSError:
        return False


def _read(path: Path, root: Path | None) -> bytes | None:
    """At most one byte more than is bearable."""
    if root is not None:
        real_path(path, root)
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise UnusableFileError(" is no regular file")
            if not _is_own(found, path.parent):
                raise UnusableFileError(" belongs to another user")
            return file.read(MAX_FILE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        if (why := not_there(path)) is not None:
            raise UnusableFileError(why, None) from error
        if root is None and isinstance(error, NotADirectoryError):
            raise UnusableFileError(" cannot be there: its folder is a file", "") from error
        return None
    except OSError as error:
        raise UnreadableFileError(f" cannot be read ({error.strerror})") from error


def _decoded(data: bytes, is_whole: bool = True) -> str:
    """Bytes as text; of a beginning without the character that its end cuts."""
    try:
        return codecs.getincrementaldecoder("utf-8-sig")().decode(data, final=is_whole)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UnusableFileError(f", line {line}: this is not UTF-8") from error
