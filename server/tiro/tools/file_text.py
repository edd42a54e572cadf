"""The text of a file as the user sees it right now: the editor's, else that on the disk."""

import os

import msgspec

from tiro.errors import ToolError
from tiro.tools.text import Decoded, decode_text
from tiro.tools.workspace import Place, Workspace

MAX_FILE_BYTES = 32_000_000
"""A larger file is not read; a search can still find it, and says that it is too large."""

TOO_LARGE = (
    "{given!r} has {size:,} bytes, more than the {limit:,} that can be read at once; nothing was"
    " read. Search it with grep"
)

BINARY = "{given!r} is no text but binary data ({size:,} bytes); nothing was read"


class FileText(msgspec.Struct, frozen=True):
    """The text of a file as the user sees it right now."""

    text: str
    encoding: str
    is_unsaved: bool = False
    """It is the editor's text and differs from what lies on the disk."""
    is_guess: bool = False


def read_text(workspace: Workspace, place: Place) -> FileText:
    """The live text of an open buffer, else the text on the disk; ToolError when there is none."""
    live = workspace.live_text(place.path)
    if live is None:
        found = disk_text(workspace, place)
        return FileText(found.text, found.encoding, is_guess=found.is_guess)
    try:
        saved = disk_text(workspace, place)
    except ToolError:
        return FileText(live, "UTF-8", is_unsaved=True)
    return FileText(live, saved.encoding, is_unsaved=live != saved.text, is_guess=saved.is_guess)


def disk_text(workspace: Workspace, place: Place) -> Decoded:
    """The text of a file on the disk; ToolError when there is none."""
    with workspace.open_file(place) as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(MAX_FILE_BYTES + 1) if size <= MAX_FILE_BYTES else b""
    if size > MAX_FILE_BYTES or len(data) > MAX_FILE_BYTES:
        size = max(size, len(data))
        raise ToolError(TOO_LARGE.format(given=place.given, size=size, limit=MAX_FILE_BYTES))
    found = decode_text(data)
    if found is None:
        raise ToolError(BINARY.format(given=place.given, size=len(data)))
    return found
