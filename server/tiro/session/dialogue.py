"""Messages as the text that a summary is made of: `role: content` lines, bounded (N3.9, N8.3)."""

import json
from collections.abc import Callable, Iterable, Iterator

from tiro.session.messages import (
    AttachmentBlock,
    Block,
    Message,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    blocks_of,
    opaque_label,
    result_text,
)

SHORT_RESULT_CHARACTERS = 400
"""What a tool result keeps when the whole is too long."""
CUT_MARK = "\n[… {} characters left out here …]\n"


def dialogue(messages: Iterable[Message], max_characters: int | None = None) -> str:
    """The messages as text, oldest first; system messages are left out.

    Where it is longer than `max_characters`, tool results are shortened first, then the middle is
    cut; each cut is marked (N8.3). O(text).
    """
    rows = [message for message in messages if message.role not in ("system", "developer")]
    text = "\n".join(_lines(rows))
    if max_characters is None or len(text) <= max_characters:
        return text
    return shortened("\n".join(_lines(rows, SHORT_RESULT_CHARACTERS)), max_characters)


def runs(messages: Iterable[Message], max_characters: int) -> Iterator[list[Message]]:
    """The messages in runs whose text is at most this long; a longer message stands alone."""
    run: list[Message] = []
    length = 0
    for message in messages:
        size = len(dialogue([message])) + 1
        if run and length + size > max_characters:
            yield run
            run, length = [], 0
        run.append(message)
        length += size
    if run:
        yield run


def shortened(text: str, max_characters: int, mark: str = CUT_MARK) -> str:
    """Beginning and end of a text, with a mark between them where something was cut."""
    if len(text) <= max_characters:
        return text
    mark = mark.format(len(text) - max_characters)
    head = max(0, (max_characters - len(mark)) // 2)
    tail = max(0, max_characters - len(mark) - head)
    return text[:head] + mark + text[len(text) - tail :]


def cut_to(text: str, tokens: int, size: Callable[[str], int], mark: str = CUT_MARK) -> str:
    """A text as it is or, where it takes more tokens, its beginning and end with a mark between."""
    kept, length = text, len(text)
    while length and (taken := size(kept)) > tokens:
        length = min(length - 1, length * max(0, tokens) // taken)
        kept = shortened(text, length, mark)
    return kept


def _lines(messages: Iterable[Message], max_result: int | None = None) -> Iterator[str]:
    for message in messages:
        parts = [_shown(block, max_result) for block in blocks_of(message)]
        said = "\n".join(part for part in parts if part)
        if said:
            yield f"{message.role}: {said}"


def _shown(block: Block, max_result: int | None) -> str:
    match block:
        case TextBlock():
            return block.text
        case AttachmentBlock():
            return f"[{block.kind} {block.path or ''}]\n{_at_most(block.text, max_result)}"
        case ToolUseBlock():
            return f"[{block.name} {json.dumps(block.input, ensure_ascii=False, default=str)}]"
        case ToolResultBlock():
            return _at_most(result_text(block.content), max_result)
        case ThinkingBlock():
            return ""
        case OpaqueBlock():
            return opaque_label(block)
        case _:
            return "[image]"


def _at_most(text: str, max_characters: int | None) -> str:
    return text if max_characters is None else shortened(text, max_characters)
