"""Changing an open buffer through the editor: the smallest edits, the version, what came of it.

Law: the change is asked for on the version whose text was seen, in one go, so that it is one step
of the editor's own undo; what came of it is what the buffer then holds, whatever was answered.
"""

import asyncio
import itertools
import logging
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from tiro.errors import EditConflictError, ToolError
from tiro.protocol.buffers import Buffers, Document
from tiro.protocol.frames import MAX_OWN_BYTES, encode_body
from tiro.protocol.rpc import ClientRefusedError
from tiro.tools.diff import differing
from tiro.tools.text import plain_lines
from tiro.tools.text_range import line_starts, position_of

logger = logging.getLogger(__name__)

LABEL = "Tiro"
EDIT_SECONDS = 30.0
"""How long an editor may take; some show the change to a person first."""
NEWS_SECONDS = 3.0
"""How long to wait for the buffer's new text once the editor says that the change is made."""

MOVED = (
    "The text of {name!r} was changed in the editor meanwhile; nothing was written. Read it again"
)
REFUSED = "The editor did not take the change of {name!r} ({why}); nothing was written"
SILENT = (
    "The editor did not say whether it made the change of {name!r}; read the file again to see"
    " what it holds now"
)
TOO_LARGE = (
    "The change of {name!r} is too large for the open buffer; nothing was written. Change less at"
    " once, or ask the user to save and close it"
)

Ask = Callable[[str, Any], Awaitable[Any]]


async def change_buffer(
    ask: Ask, buffers: Buffers, path: Path, old: str, new: str, *, with_version: bool
) -> None:
    """Let the editor change an open buffer from `old` to `new`.

    Raises EditConflictError when its text is no longer `old`, and ToolError when the editor does
    not take the change; with `outcome="unknown"` when it does not say so.
    """
    edits = await asyncio.to_thread(text_edits, old, new, buffers.encoding)
    document = buffers.document(path)
    if document is None or document.text != old:
        raise EditConflictError(MOVED.format(name=path.name))
    params = {"label": LABEL, "edit": _workspace_edit(document, edits, with_version)}
    if len(encode_body(params)) > MAX_OWN_BYTES - 1000:
        raise ToolError(TOO_LARGE.format(name=path.name))
    why = await _refusal(ask, params)
    if why is None:
        await _until_told(buffers, path, new)
    now = buffers.document(path)
    has_moved = now is None or now.text != old
    if _is_text(now, new) or (why is None and has_moved):
        return
    if not why:
        raise ToolError(SILENT.format(name=path.name), outcome="unknown")
    if has_moved:
        raise EditConflictError(MOVED.format(name=path.name))
    raise ToolError(REFUSED.format(name=path.name, why=why))


def text_edits(old: str, new: str, encoding: str) -> list[dict[str, Any]]:
    """The edits, in LSP's form, that make one text of another; they touch only what differs."""
    starts = line_starts(old)

    def position(index: int) -> dict[str, int]:
        line, character = position_of(old, starts, index, encoding)
        return {"line": line, "character": character}

    return [
        {"range": {"start": position(start), "end": position(end)}, "newText": text}
        for start, end, text in _changes(old, new)
    ]


async def _refusal(ask: Ask, params: dict[str, Any]) -> str | None:
    """Ask the editor; why it did not make the change, "" when it says nothing, else None."""
    try:
        answer = await asyncio.wait_for(ask("workspace/applyEdit", params), EDIT_SECONDS)
    except ClientRefusedError as error:
        logger.warning("An edit was refused: %s", error)
        return str(error)
    except TimeoutError:
        logger.warning("An edit was not answered")
        return ""
    if isinstance(answer, dict) and answer.get("applied") is True:
        return None
    reason = answer.get("failureReason") if isinstance(answer, dict) else None
    return reason if isinstance(reason, str) and reason else "it gave no reason"


async def _until_told(buffers: Buffers, path: Path, text: str) -> None:
    """Wait until the buffer is told to hold this text; not for long, somebody may type on."""
    try:
        arrived = buffers.until(path, lambda now: now is None or _is_text(now, text))
        await asyncio.wait_for(arrived, NEWS_SECONDS)
    except TimeoutError:
        logger.warning("The text of a buffer is not the one that was to be written")


def _is_text(document: Document | None, text: str) -> bool:
    """Whether a document holds this text, with whatever line ends the editor gives it."""
    return document is not None and plain_lines(document.text) == plain_lines(text)


def _workspace_edit(
    document: Document, edits: list[dict[str, Any]], with_version: bool
) -> dict[str, Any]:
    if not with_version:
        return {"changes": {document.uri: edits}}
    named = {"uri": document.uri, "version": document.version}
    return {"documentChanges": [{"textDocument": named, "edits": edits}]}


def _changes(old: str, new: str) -> Iterator[tuple[int, int, str]]:
    """Each piece that differs: where it begins and ends in the old text, and what is new."""
    before, after = _LINES.findall(old), _LINES.findall(new)
    places = [0, *itertools.accumulate(map(len, before))]
    for first, last, new_first, new_last in differing(before, after):
        removed, added = "".join(before[first:last]), "".join(after[new_first:new_last])
        head = _same_head(removed, added)
        tail = _same_tail(removed[head:], added[head:])
        start = places[first] + head
        yield start, places[last] - tail, added[head : len(added) - tail]


def _same_head(one: str, other: str) -> int:
    """How many characters both begin with; a position within CR LF is none."""
    size = _same(one, other)
    is_cr = one[size - 1 : size] == "\r"
    return size - 1 if is_cr and "\n" in (one[size : size + 1], other[size : size + 1]) else size


def _same_tail(one: str, other: str) -> int:
    """How many characters both end with; a position within CR LF is none."""
    size = _same(one[::-1], other[::-1])
    is_lf = one[len(one) - size : len(one) - size + 1] == "\n"
    ends = {text[len(text) - size - 1 : len(text) - size] for text in (one, other)}
    return size - 1 if is_lf and "\r" in ends else size


def _same(one: str, other: str) -> int:
    """How many characters both begin with."""
    differing = (index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differing, min(len(one), len(other)))


_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
