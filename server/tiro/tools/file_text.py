"""What a file holds as the user sees it right now: the editor's text, else that on the disk."""

import os
from pathlib import Path

import msgspec

from tiro.errors import ToolError
from tiro.session.edits import Made, hash_of_bytes
from tiro.tools.images import MAX_IMAGE_BYTES, PROBE_BYTES, Image, image_kind, read_image
from tiro.tools.text import (
    UTF_8,
    Decoded,
    decode_as,
    decode_text,
    plain_lines,
    with_line_ends,
)
from tiro.tools.workspace import UNREADABLE, Place, Workspace

MAX_FILE_BYTES = 32_000_000
"""A larger file is not read; a search can still find it, and says that it is too large."""

TOO_LARGE = (
    "{given!r} has {size:,} bytes, more than the {limit:,} that can be read at once; nothing was"
    " read. Search it with grep"
)

BINARY = "{given!r} is no text but binary data ({size:,} bytes); nothing was read"


class Live(msgspec.Struct, frozen=True):
    """An open buffer of the editor."""

    named: Path
    """The editor's name of the file."""
    text: str
    """Its text; an editor may hold LF where the file has other line ends."""


class FileText(msgspec.Struct, frozen=True):
    """The text of a file as the user sees it right now, with the line ends that the file has."""

    text: str
    encoding: str
    is_unsaved: bool = False
    """It is the editor's text and differs from what lies on the disk."""
    is_guess: bool = False
    live: Live | None = None
    """The open buffer that it is from."""
    status: os.stat_result | None = None
    """What the system said of the file when it was read; None when there is none, or none to read.
    """


def file_text(workspace: Workspace, place: Place) -> FileText:
    """The live text of an open buffer, else the text on the disk; ToolError when there is none."""
    buffer = _buffer(workspace, place)
    return disk_text(workspace, place) if buffer is None else _buffered(workspace, place, buffer)


def file_text_if_any(workspace: Workspace, place: Place) -> FileText | None:
    """As `file_text`, but None where there is neither a buffer nor anything on the disk."""
    buffer = _buffer(workspace, place)  # looked at once: it may be closed at any time
    if buffer is not None:
        return _buffered(workspace, place, buffer)
    return disk_text(workspace, place) if os.path.lexists(place.path) else None


def _buffer(workspace: Workspace, place: Place) -> Live | None:
    """The open buffer that shows a file, as it is now."""
    named = workspace.buffer_of(place.path)
    text = None if named is None else workspace.buffer_text(named)
    return None if named is None or text is None else Live(named, text)


def _buffered(workspace: Workspace, place: Place, buffer: Live) -> FileText:
    """The text of a buffer, as its file would hold it."""
    live = buffer.text
    try:
        saved = disk_text(workspace, place)
    except ToolError:
        return FileText(live, UTF_8, is_unsaved=True, live=buffer)
    return FileText(
        live if "\r" in live else with_line_ends(live, saved.text),
        saved.encoding,
        is_unsaved=plain_lines(live) != plain_lines(saved.text),
        is_guess=saved.is_guess,
        live=buffer,
        status=saved.status,
    )


def unsaved_files(workspace: Workspace) -> list[str]:
    """The files of the workspace that the disk does not hold as the editor shows them; reads them.

    What cannot be compared, such as a binary file, is not among them.
    """
    unsaved = []
    for path in workspace.open_buffers():
        found = file_text(workspace, workspace.locate(str(path)))
        is_known = found.status is not None or not os.path.exists(path)
        unsaved += [workspace.named(path)] if found.is_unsaved and is_known else []
    return unsaved


def image_on_disk(workspace: Workspace, place: Place) -> Image | None:
    """The image in a file that no buffer shows, None for anything else; ToolError when unusable."""
    if workspace.buffer_of(place.path) is not None:
        return None
    with workspace.open_file(place) as file:
        head = file.read(PROBE_BYTES)
        if image_kind(head) is None:
            return None
        data = head + file.read(MAX_IMAGE_BYTES + 1 - len(head))
        return read_image(place.given, data, os.fstat(file.fileno()).st_size)


def disk_text(workspace: Workspace, place: Place) -> FileText:
    """The text of a file on the disk; ToolError when there is none."""
    try:
        with workspace.open_file(place) as file:
            status = os.fstat(file.fileno())
            data = file.read(MAX_FILE_BYTES + 1) if status.st_size <= MAX_FILE_BYTES else b""
    except OSError as error:
        why = error.strerror or "unknown reason"
        raise ToolError(UNREADABLE.format(given=place.given, why=why)) from error
    size = max(status.st_size, len(data))
    if size > MAX_FILE_BYTES:
        raise ToolError(TOO_LARGE.format(given=place.given, size=size, limit=MAX_FILE_BYTES))
    found = _decoded(data, workspace.edit_of(place.path))
    if found is None:
        raise ToolError(BINARY.format(given=place.given, size=len(data)))
    return FileText(found.text, found.encoding, is_guess=found.is_guess, status=status)


def _decoded(data: bytes, edit: Made | None) -> Decoded | None:
    """The text of a file; an edit of it took out what told its encoding, so it has still that."""
    found = decode_text(data)
    if found is None or edit is None:
        return found
    if not found.is_guess and hash_of_bytes(data) not in (edit.before_bytes, edit.after_bytes):
        return found
    text = decode_as(data, edit.encoding)
    return found if text is None else Decoded(text, edit.encoding, is_guess=True)
