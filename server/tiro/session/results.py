"""Tool results in part: those that may not leave the window, where the whole does not fit.

What was said last stays in a request, and so does what is pinned; a prompt can only be sent whole,
a result cannot take more than the prompt leaves, and even less what only stands in front of a pin.
What is stored stays whole.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from tiro.session.core import Core
from tiro.session.dialogue import cut_to
from tiro.session.front import front_of, in_part, newest_first
from tiro.session.messages import (
    ImageBlock,
    Message,
    TextBlock,
    ToolResultBlock,
    read_block,
    seq_of,
    stored_blocks,
    tool_results_of,
)
from tiro.session.meter import IMAGE_TOKENS
from tiro.session.shown import LEAST_TOKENS

RESULT_CUT = (
    "\n[… {} characters left out here, which do not fit the context window beside the rest. Ask for"
    " a smaller part, or filter the output, to see them. …]\n"
)
NO_ROOM = "(Here was an image, which does not fit the context window beside the rest.)"


class Rows(NamedTuple):
    """What a request is made of."""

    window: list[Message]
    """Oldest first."""
    front: list[Message]
    """What of the archive is put in front of them, if anything is."""


def fitting_rows(core: Core, staying: set[int], free: int | None) -> Rows:
    """What is sent where so many tokens are free; None is no limit.

    Fewer than 0 are missing. What is only put in front gets shorter by them, then the results of
    the messages with the seqs `staying`, long ones before short ones. Pure; O(messages), and
    O(bytes) of what gets shorter.
    """
    window, size = core.oldest_first(), core.meter.text
    front = front_of(core, window, reversed(core.archive_rows))
    if free is None or free >= 0:
        return Rows(window, [] if front is None else [front])
    held = [m for m in window if seq_of(m) in staying]
    needed = front_of(core, held, newest_first(core))
    if needed is not None:
        whole = core.meter.message(needed)
        short = in_part(needed, max(LEAST_TOKENS, whole + free), core.meter)
        free += whole - core.meter.message(short)
        front = short if front is not None and front.seq == needed.seq else front
    if free < 0:
        level = _level([n for message in held for n in _sizes(message, size)], free)
        window = [_in_part(m, level, size) if seq_of(m) in staying else m for m in window]
    return Rows(window, [] if front is None else [front])


def _level(sizes: list[int], free: int) -> int:
    """What each result may take, so that all of them are so much shorter."""
    left = sum(sizes) + free
    for done, one in enumerate(sorted(sizes)):
        most = left // (len(sizes) - done)
        if one > most:
            return max(LEAST_TOKENS, most)
        left -= one
    return LEAST_TOKENS


def _sizes(message: Message, size: Callable[[str], int]) -> Iterator[int]:
    for result in tool_results_of(message):
        for part in map(read_block, stored_blocks(result.content)):
            if isinstance(part, TextBlock):
                yield size(part.text)
            elif isinstance(part, ImageBlock):
                yield IMAGE_TOKENS


def _in_part(message: Message, level: int, size: Callable[[str], int]) -> Message:
    """The message with results of at most so many tokens each."""
    if all(n <= level for n in _sizes(message, size)):
        return message
    blocks = stored_blocks(message.content)
    if any(isinstance(read_block(block), ToolResultBlock) for block in blocks):
        content = list(_cut_results(blocks, level, size))
    else:  # it is a result as a whole, in the other spelling
        content = _cut(blocks, level, size)
    return msgspec.structs.replace(message, content=content)


def _cut_results(
    blocks: Iterable[Any], level: int, size: Callable[[str], int]
) -> Iterator[dict[str, Any]]:
    for block in blocks:
        result = read_block(block)
        if isinstance(result, ToolResultBlock):
            yield {**block, "content": _cut(stored_blocks(result.content), level, size)}
        else:
            yield block


def _cut(parts: Iterable[Any], level: int, size: Callable[[str], int]) -> list[Any]:
    """The parts of a result, none of them with more tokens."""
    kept: list[Any] = []
    for part in parts:
        known = read_block(part)
        if isinstance(known, TextBlock):
            text = cut_to(known.text, level, size, RESULT_CUT)
            kept.append(part if text == known.text else {"type": "text", "text": text})
        elif isinstance(known, ImageBlock) and level < IMAGE_TOKENS:
            kept.append({"type": "text", "text": NO_ROOM})
        else:
            kept.append(part)
    return kept
