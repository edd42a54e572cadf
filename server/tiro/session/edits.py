"""Edits of the user's files as values: the lines of the ledger, and what they say; no I/O.

An edit is recorded before its file is touched. Its texts are named by their hash and kept whole
beside the ledger: the text before is the reverse patch, and both are needed to merge with what the
user has written since.
"""

import hashlib
from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from tiro.session.json_text import encode

State = Literal["made", "undone", "failed"]
"""A failed edit never happened: its file was not written."""


class Made(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="op", tag="made"
):
    """The text of a file is about to be changed."""

    id: str
    at: str
    """When, RFC 3339."""
    turn_id: str
    session_id: str | None
    tool_use_id: str
    path: str
    """The real path; bytes of it that are no text are shown as U+FFFD."""
    raw_path: bytes | None = None
    """The real path, where `path` does not say it exactly."""
    before: str | None
    """The hash of the text before; None where there was no file."""
    after: str | None
    """The hash of the text after; None where there is to be no file."""
    before_bytes: str | None = None
    after_bytes: str | None = None
    """The hashes of what the file holds, byte for byte; None where that is its editor's affair."""
    added: int
    removed: int
    """How many lines."""
    encoding: str
    """What both texts are written in, as `tools/text.py` names it."""
    mode: int | None = None
    """The mode of a file that is made again; None for that of any new file."""
    new_folders: int = 0
    """How many of the folders above it are made for it."""


class Became(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="op", tag="became"):
    """Edits of one file came into another state; what the file was like that went away with them.

    One line for all of them: a torn write must not move some and leave others.
    """

    ids: list[str]
    at: str
    state: State
    encoding: str | None = None
    mode: int | None = None


Line: TypeAlias = Made | Became


def ids_of(line: Line) -> list[str]:
    """The edits that a line is about."""
    return [line.id] if isinstance(line, Made) else line.ids


class Edit(msgspec.Struct, frozen=True):
    """An edit as it stands now."""

    made: Made
    state: State = "made"
    moved: int = 0
    """The place of the line that brought it into this state: a later one has a larger number."""


def hash_of(text: str) -> str:
    """The name of a text: the SHA-256 of its bytes."""
    return hash_of_bytes(bytes_of(text))


def hash_of_bytes(data: bytes) -> str:
    """The SHA-256 of some bytes."""
    return hashlib.sha256(data).hexdigest()


def bytes_of(text: str) -> bytes:
    """A text as it is kept, lone surrogates included."""
    return text.encode("utf-8", "surrogatepass")


def encode_line(line: Line) -> bytes:
    """One line of the ledger, with its line break."""
    return encode(line) + b"\n"


def decode_line(data: bytes) -> Line:
    """The line in these bytes; ValueError for what is none."""
    line: Line = _DECODER.decode(data)
    return line


def replay(lines: Iterable[Line]) -> list[Edit]:
    """The edits as these lines leave them, oldest first."""
    edits: dict[str, Edit] = {}
    for place, line in enumerate(lines):
        if isinstance(line, Made):
            edits.setdefault(line.id, Edit(line, moved=place))
            continue
        for id in filter(edits.__contains__, line.ids):
            made = edits[id].made
            made = msgspec.structs.replace(made, mode=line.mode or made.mode)
            if line.encoding not in (None, made.encoding):
                made = msgspec.structs.replace(
                    made, encoding=line.encoding, before_bytes=None, after_bytes=None
                )
            edits[id] = Edit(made, line.state, place)
    return list(edits.values())


_DECODER = msgspec.json.Decoder(Line)
