"""What git's index lists: the files that git follows, and the repositories within this one.

Law: reading is exact or raises ValueError; nothing is guessed.
"""

from collections.abc import Iterator
from pathlib import Path

SUBMODULE = b"\x00\x00\xe0\x00"
"""The mode of an entry that is a repository of its own."""
HEADER, ENTRY = 12, 62
"""Bytes before the first entry, and before the name in one."""
MAX_BYTES = 1 << 28
EXTENDED, VERSIONS = 0x4000, (2, 3, 4)


def submodules_of(data: Path) -> list[str]:
    """The paths of the repositories that this one holds, by the data of git for it.

    Raises OSError, and ValueError for an index that cannot be understood.
    """
    if any(data.glob("sharedindex.*")):
        raise ValueError("an index in two parts is not read")
    index = _index(data)
    if SUBMODULE not in index:
        return []
    return [name for mode, name in _entries(index) if mode == SUBMODULE]


def followed_files(data: Path) -> list[str]:
    """The paths of all that git follows; raises as `submodules_of`."""
    if any(data.glob("sharedindex.*")):
        raise ValueError("an index in two parts is not read")
    return [name for _, name in _entries(_index(data))]


def _index(data: Path) -> bytes:
    """The index; empty where nothing was ever added."""
    try:
        with (data / "index").open("rb") as file:
            index = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return b""
    if len(index) > MAX_BYTES:
        raise ValueError("the index is too large to read")
    return index


def _entries(index: bytes) -> Iterator[tuple[bytes, str]]:
    """The mode and the path of each entry, in the order of git's index-format."""
    if not index:
        return
    version, count = (int.from_bytes(index[at : at + 4]) for at in (4, 8))
    if index[:4] != b"DIRC" or version not in VERSIONS:
        raise ValueError("the index is of an unknown kind")
    at, name = HEADER, b""
    for _ in range(count):
        start, mode = at, index[at + 24 : at + 28]
        at += ENTRY + (2 if int.from_bytes(index[at + 60 : at + 62]) & EXTENDED else 0)
        kept = b""
        if version == 4:
            dropped, at = _number(index, at)
            kept = name[: len(name) - dropped]
        end = index.index(b"\0", at)
        name = kept + index[at:end]
        at = end + 1 if version == 4 else start + ((end - start) // 8 + 1) * 8
        yield mode, name.decode("utf-8", "surrogateescape")


def _number(index: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    byte = index[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = index[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1
