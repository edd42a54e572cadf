"""Ids of sessions and the names of their files.

A file name is injective (N6.4): two keys never share a file, also where the file system ignores
case. The true key is the id inside the file.
"""

import base64
import hashlib
import re
from collections.abc import Iterator

from tiro.errors import InvalidSessionIdError

MAX_ID_LENGTH = 200


def check_id(id: str) -> None:
    """Raise InvalidSessionIdError unless a client may give this id to a session (M7.3)."""
    if not _SAFE_ID.fullmatch(id) or ".." in id:
        raise InvalidSessionIdError(
            f"{id[:MAX_ID_LENGTH]!r} is no session id: use up to {MAX_ID_LENGTH} letters, digits,"
            " '_', '.' and '-', starting with a letter or digit",
            id=id[:MAX_ID_LENGTH],
        )


def safe_id(id: str) -> str:
    """The id as a client may give it, with `-` for what it may not hold; empty if none is left."""
    return _UNSAFE.sub("-", id)[:MAX_ID_LENGTH].lstrip("-._")


def file_stem(key: str) -> str:
    """The name of a session's files without their endings; never a path, whatever the key."""
    if _is_plain(key):
        return key
    raw = key.encode("utf-8", "surrogatepass")
    stem = "k-" + base64.b32hexencode(raw).decode().lower().rstrip("=")
    return stem if len(stem) <= MAX_ID_LENGTH else "h-" + hashlib.sha256(raw).hexdigest()


def with_suffixes(id: str) -> Iterator[str]:
    """The id itself, then `-01`, `-02` and so on, for where it is taken."""
    yield id
    number = 0
    while True:
        number += 1
        suffix = f"-{number:02d}"
        yield id[: MAX_ID_LENGTH - len(suffix)] + suffix


def _is_plain(key: str) -> bool:
    """Whether the key can be its own file name: no other key maps to it on any system."""
    return (
        _PLAIN.fullmatch(key) is not None
        and ".." not in key
        and not key.endswith(".")
        and key.partition(".")[0] not in _DEVICES
        and not key.startswith(("k-", "h-"))  # the names that all other keys are mapped to
    )


_SAFE_ID = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_.-]{{0,{MAX_ID_LENGTH - 1}}}", re.ASCII)
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+|\.{2,}")
_PLAIN = re.compile(rf"[a-z0-9][a-z0-9_.-]{{0,{MAX_ID_LENGTH - 1}}}", re.ASCII)
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))]
)
