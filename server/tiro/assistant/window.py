"""Pieces of the history for reading: pages over window and archive, parts of a long block."""

import heapq
from itertools import chain, islice
from typing import assert_never

import msgspec

from tiro.errors import InvalidInputError
from tiro.session.core import Core
from tiro.session.json_text import encode
from tiro.session.large import OUTPUT, Part, parts_of
from tiro.session.messages import (
    AttachmentBlock,
    Block,
    ImageBlock,
    Message,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    blocks_of,
    result_text,
)
from tiro.stores.output_files import OutputFiles

PAGE = 100
MAX_PIECE_CHARS = 4_000_000
"""So much is read at once of an output that is in files."""
DAMAGED = "\n[… here a part of the output cannot be read any more …]\n"


class Piece(msgspec.Struct, frozen=True):
    """A part of a text, and how many characters the whole has."""

    text: str
    total_chars: int


def page(core: Core, limit: int | None, before_seq: int | None, everything: bool) -> list[Message]:
    """The newest `limit` messages with a smaller seq, over archive and window, oldest first.

    Taken-back ones only where `everything` is wanted. Costs what it reads, not the whole history.
    """
    newest_first = heapq.merge(
        core.newest_first, reversed(core.archive_rows), key=lambda row: -(row.seq or 0)
    )
    wanted = (
        row
        for row in newest_first
        if (before_seq is None or (row.seq or 0) < before_seq)
        and (everything or not row.marks().get("taken_back"))
    )
    return list(islice(wanted, PAGE if limit is None else limit))[::-1]


def piece(
    core: Core,
    seq: int,
    block: int | None,
    offset: int,
    limit: int | None,
    outputs: OutputFiles | None = None,
) -> Piece:
    """A part of a message's text, or of one of its blocks, counted in characters.

    Of a tool's result that is the whole output, also where the model got less; of one that nobody
    holds at most MAX_PIECE_CHARS are read, and no more than is asked for. Raises InvalidInputError
    for a seq or a block that is not there.
    """
    rows = chain(core.newest_first, reversed(core.archive_rows))
    message = next((row for row in rows if row.seq == seq), None)
    if message is None:
        raise InvalidInputError(f"The session holds no message with seq {seq}")
    parts = parts_of(message)
    if not block and parts and outputs is not None and outputs.are_there(parts):
        most = MAX_PIECE_CHARS if limit is None else min(limit, MAX_PIECE_CHARS)
        return _piece_of_parts(parts, offset, most, outputs)
    output = message.marks().get(OUTPUT)  # the whole of what was cut for the model
    texts = [output] if isinstance(output, str) else [_text(item) for item in blocks_of(message)]
    if block is not None and not 0 <= block < len(texts):
        raise InvalidInputError(f"The message {seq} has {len(texts)} blocks, and no block {block}")
    text = "\n".join(texts) if block is None else texts[block]
    end = len(text) if limit is None else offset + limit
    return Piece(text[offset:end], len(text))


def _piece_of_parts(parts: list[Part], offset: int, most: int, outputs: OutputFiles) -> Piece:
    """What is asked for of an output that is in files; only those are read that hold some of it."""
    found, at = "", 0
    for part in parts:
        first, last = max(offset - at, 0), offset + most - at
        if first < part.chars and last > 0:
            text = outputs.read(part)
            found += DAMAGED[first:last] if text is None else text[first:last]
        at += part.chars
    return Piece(found, at)


def _text(block: Block) -> str:
    """What a block says, or the JSON of what it holds."""
    match block:
        case TextBlock(text) | AttachmentBlock(text=text) | ThinkingBlock(text):
            return text
        case ToolResultBlock():
            return result_text(block.content)
        case ToolUseBlock():
            return encode(block.input).decode()
        case ImageBlock():
            return encode(block.source).decode()
        case OpaqueBlock():
            return encode(block.data).decode()
        case _:
            assert_never(block)
