"""What a user sends as the content of a message: the text, and what the editor attached."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from tiro.errors import InvalidInputError, ToolError
from tiro.session.history import checked
from tiro.session.messages import Content, OpaqueBlock, TextBlock, blocks_of
from tiro.tools.silent_disk import Patience, SilentDiskError
from tiro.tools.text_range import offset_of
from tiro.tools.workspace import Workspace

MAX_ATTACHED_BYTES = 1_000_000


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """What an editor adds to a prompt; without `text` the file at `path` is read."""

    kind: str
    path: str | None = None
    range: dict[str, Any] | None = None
    """An LSP range: start and end with line and character, from 0."""
    text: str | None = None
    encoding: str = "utf-16"
    """In what the range counts characters."""


async def content_of(
    prompt: Content, attachments: Sequence[Attachment], workspace: Workspace, patience: Patience
) -> Content:
    """The content of the user's message: their own words first, then the attachments.

    Raises InvalidInputError for a prompt that says nothing, InvalidMessageError for broken blocks.
    """
    message = checked({"role": "user", "content": prompt})
    if not any(_says_something(block) for block in blocks_of(message)):
        raise InvalidInputError("The prompt is empty; write what you want to ask")
    if not attachments:
        return message.content
    own = message.content
    words = [{"type": "text", "text": own}] if isinstance(own, str) else own
    blocks = [await _as_block(attachment, workspace, patience) for attachment in attachments]
    return [*([words] if isinstance(words, dict) else words), *blocks]


def is_blank(prompt: Content | None) -> bool:
    """Whether nothing was written yet."""
    return not prompt or (isinstance(prompt, str) and not prompt.strip())


def _says_something(block: Any) -> bool:
    if isinstance(block, TextBlock):
        return bool(block.text.strip())
    return not isinstance(block, OpaqueBlock) or bool(block.data)


async def _as_block(
    attachment: Attachment, workspace: Workspace, patience: Patience
) -> dict[str, Any]:
    text = attachment.text
    if text is None:
        if attachment.path is None:
            raise InvalidInputError("An attachment needs a `text` or the `path` of a file")
        reading = partial(_read, attachment.path, workspace)
        try:
            text = await asyncio.to_thread(patience.ask, attachment.path, reading)
        except SilentDiskError as error:
            raise InvalidInputError(f"The attached file {attachment.path!r}{error}") from error
        text = _within(text, attachment.range, attachment.encoding)
    fields = {"kind": attachment.kind, "path": attachment.path, "range": attachment.range}
    kept = {name: value for name, value in fields.items() if value is not None}
    return {"type": "attachment", **kept, "text": text}


def _read(path: str, workspace: Workspace) -> str:
    """The live text of an open buffer, else the text on the disk; the user named the file."""
    try:
        place = workspace.locate(path)
        live = workspace.live_text(place.path)
        return live if live is not None else _on_disk(place.path)
    except ToolError as error:
        raise InvalidInputError(str(error)) from error
    except OSError as error:
        reason = error.strerror or "unknown reason"
        raise InvalidInputError(f"The attached file {path!r} cannot be read: {reason}") from error


def _on_disk(path: Path) -> str:
    if path.is_dir():
        raise InvalidInputError(f"{str(path)!r} is a directory; attach a file in it")
    if not path.is_file():
        raise InvalidInputError(f"The attached path {str(path)!r} is no file")
    with path.open("rb") as file:
        data = file.read(MAX_ATTACHED_BYTES + 1)
    if len(data) > MAX_ATTACHED_BYTES:
        raise InvalidInputError(
            f"The attached file {str(path)!r} is larger than 1 MB; attach a part of it"
        )
    if b"\0" in data:
        raise InvalidInputError(f"The attached file {str(path)!r} is binary; attach text")
    return data.decode("utf-8", "replace")


def _within(text: str, span: dict[str, Any] | None, encoding: str) -> str:
    """The piece of the text that the range names; a range that ends before it starts is empty."""
    if span is None:
        return text
    try:
        start, end = span["start"], span["end"]
        first = offset_of(text, int(start["line"]), int(start.get("character", 0)), encoding)
        last = offset_of(text, int(end["line"]), int(end.get("character", 0)), encoding)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInputError("A range needs start and end with line and character") from error
    return text[first : max(first, last)]
