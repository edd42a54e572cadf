"""The one way in which a file of the user's gets a new text: through the editor, or on the disk.

Law: a text is only ever put in the place of the one that was seen. A buffer is changed through the
editor, so that the change is one step of its own undo and unsaved text stays; a closed file is
replaced whole, with its encoding, byte order mark, mode and links kept. Whatever fails has changed
nothing, unless the error's data says that the `outcome` is unknown.
"""

import asyncio
import contextlib
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec

from tiro.errors import EditConflictError, ToolError
from tiro.session.finished import finished
from tiro.tools.file_text import FileText, file_text_if_any
from tiro.tools.replacing import MovedError, create_file, put_in_place, remove_file
from tiro.tools.silent_disk import in_thread
from tiro.tools.text import UTF_8, encode_text, plain_lines
from tiro.tools.workspace import Place, Workspace

P = ParamSpec("P")

CHANGED = (
    "{given!r} was changed meanwhile; nothing was written. Read it again, then go on from there"
)
GONE = "{given!r} is no longer there; nothing was written"
APPEARED = "{given!r} exists by now; nothing was written. Read it, then go on from there"
UNSAVED = (
    "{given!r} has unsaved changes in an editor that takes no edits; nothing was written. Ask the"
    " user to save it"
)
UNSAVED_DELETE = "{given!r} has unsaved changes in the editor; nothing was deleted"
READ_ONLY = "{given!r} is read-only; nothing was written. Ask the user whether it is to be changed"
UNWRITABLE = "{given!r} could not be written ({why}); nothing was changed"
NOT_IN_ENCODING = (
    "{given!r} is in {encoding}, which has no {character!r} (line {line}); nothing was written. Use"
    " other characters, or ask the user whether the file is to become UTF-8"
)
NUL = "The new text of {given!r} holds a NUL character, so it would be no text; nothing was written"

IN_BUFFER = "it is changed in the open editor buffer, and not saved yet"
CHANGED_SINCE = "but it is changed further in the editor by now; read it before the next edit"
BENEATH = (
    "it is open in an editor that takes no edits; saved on the disk, where that has to load it"
)
OTHER_NAMES = "the file had other names (hard links), which keep the old text"


async def current(workspace: Workspace, place: Place) -> FileText | None:
    """The text of a file as the user sees it right now; None when there is no such file.

    Raises ToolError where there is something else, or nothing that can be read as text.
    """
    return await in_thread(file_text_if_any, workspace, place)


def check_writable(place: Place, seen: FileText | None) -> None:
    """Raise ToolError for a file that is read-only, though its folder would let it be replaced."""
    status = None if seen is None else seen.status
    if status and (not status.st_mode & 0o222 or not os.access(place.path, os.W_OK)):
        raise ToolError(READ_ONLY.format(given=place.given), errno="EACCES")


async def put_text(
    workspace: Workspace,
    place: Place,
    seen: FileText | None,
    text: str | None,
    *,
    encoding: str | None = None,
) -> str | None:
    """Give a file the text in place of the one that was seen; None stands for no file.

    The encoding is what it is written in on the disk, where no editor shows it; without one a file
    keeps its own. The answer is what is worth telling about it. Raises EditConflictError when what
    is there is no longer what was seen, and ToolError when it cannot be written.
    """
    now = await in_thread(_checked, workspace, place, seen, text, encoding)
    if now is None or now.live is None:
        return await _to_its_end(_write, place, now, text, encoding)
    if text is None and now.is_unsaved:
        raise ToolError(UNSAVED_DELETE.format(given=place.given))
    if text is None:
        return await _to_its_end(_write, place, now, text, encoding)
    if workspace.can_edit:
        new = text if "\r" in now.live.text else plain_lines(text)
        await workspace.apply_edit(now.live.named, now.live.text, new)
        return await _made_in_buffer(workspace, place, text)
    if now.is_unsaved:
        raise ToolError(UNSAVED.format(given=place.given))
    await _to_its_end(_write, place, now, text, encoding)
    return BENEATH


async def _made_in_buffer(workspace: Workspace, place: Place, text: str) -> str | None:
    """What is worth telling about a change that the editor has made; never that it was not made."""
    try:
        after = await current(workspace, place)
    except ToolError:  # the file was closed, and is no text on the disk, or not readable
        return CHANGED_SINCE
    if after is None or plain_lines(after.text) != plain_lines(text):
        return CHANGED_SINCE
    return IN_BUFFER if after.is_unsaved else None


def _checked(
    workspace: Workspace,
    place: Place,
    seen: FileText | None,
    text: str | None,
    encoding: str | None,
) -> FileText | None:
    """What is there now, when that is what was seen and the new text can be written."""
    now = file_text_if_any(workspace, place)
    if now is None or seen is None:
        if now is not seen:
            told = GONE if now is None else APPEARED
            raise EditConflictError(told.format(given=place.given))
    elif now.text != seen.text or (encoding and _look(now) != _look(seen)):
        raise EditConflictError(CHANGED.format(given=place.given))
    if text is not None:
        _check_characters(place, text, now, encoding)
    return now


def _look(seen: FileText) -> str | None:
    """The encoding of a file on the disk; None for one that an editor shows."""
    return None if seen.live else seen.encoding


def _check_characters(place: Place, text: str, now: FileText | None, encoding: str | None) -> None:
    """Raise ToolError when the file's encoding lacks a character, unless it is there already."""
    if "\0" in text:
        raise ToolError(NUL.format(given=place.given))
    encoding = _encoding_for(now, encoding)
    try:
        encode_text(text, encoding)
    except UnicodeEncodeError as error:
        character, line = text[error.start], plain_lines(text[: error.start]).count("\n") + 1
        if now is not None and now.live is not None and character in now.text:
            return  # it is the editor that will save it, and the user who wrote it
        raise ToolError(
            NOT_IN_ENCODING.format(
                given=place.given, encoding=encoding, character=character, line=line
            )
        ) from error


def _encoding_for(now: FileText | None, given: str | None) -> str:
    """What a file is written in: as it was given, else as it is."""
    return given or (UTF_8 if now is None else now.encoding)


def _write(
    place: Place, now: FileText | None, text: str | None, encoding: str | None
) -> str | None:
    """Write the file on the disk, or remove it."""
    encoding = _encoding_for(now, encoding)
    root = place.root or Path(place.path.anchor)
    try:
        if now is None or now.status is None:
            create_file(root, place.path, encode_text(text or "", encoding))
            return None
        if text is None:
            remove_file(root, place.path, now.status)
            return None
        check_writable(place, now)
        put_in_place(root, place.path, encode_text(text, encoding), now.status)
        return OTHER_NAMES if now.status.st_nlink > 1 else None
    except MovedError as error:
        raise EditConflictError(CHANGED.format(given=place.given)) from error
    except OSError as error:
        why = error.strerror or "unknown reason"
        told = UNWRITABLE.format(given=place.given, why=why)
        raise ToolError(told, errno=errno.errorcode.get(error.errno or 0, "EIO")) from error


async def _to_its_end(
    function: Callable[P, str | None], *args: P.args, **kwargs: P.kwargs
) -> str | None:
    """Run it in a thread, and wait for its end even when the wait is cancelled."""
    work = asyncio.ensure_future(in_thread(function, *args, **kwargs))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        with contextlib.suppress(Exception):
            await finished(work)
        raise
