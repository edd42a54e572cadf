"""How large a session is: characters, and an estimate of the tokens a provider will count.

The estimate is additive over bytes: each byte of the UTF-8 text belongs to a class (letters,
digits, marks, blanks, line breaks, scripts by their first byte) and each class has a rate. So it is
fast (over 100 MB/s), never falls when text is added, and tells Chinese from English, which
characters / 4 does not.
"""

import json
from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec

from tiro.session.messages import (
    AttachmentBlock,
    Block,
    ImageBlock,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    blocks_of,
    read_block,
    result_text,
)

IMAGE_TOKENS = 1600
"""What a provider counts for a picture, whatever its size in bytes."""

MESSAGE_TOKENS = 4
"""What the frame of a message costs: its role and the marks around it."""

RATES: dict[str, float] = {
    "letter": 0.215,
    "digit": 0.42,
    "mark": 0.55,
    "blank": 0.12,
    "line": 0.9,
    "latin": 0.6,  # two-byte scripts: accents, Greek, Cyrillic, Hebrew, Arabic
    "kana": 0.9,  # also Indic and Thai scripts and typographic marks
    "han": 0.78,
    "hangul": 0.8,
    "emoji": 2.2,  # four-byte characters
    "inner": 0.0,  # the further bytes of a character
}
"""Tokens for one byte of each class; a character of several bytes counts at its first one."""


Known: TypeAlias = dict[int, tuple[Message, list[tuple[str, int]]]]
"""Messages by seq with what they count for."""


class Breakdown(msgspec.Struct, frozen=True):
    """Tokens by where they come from."""

    system: int = 0
    tools: int = 0
    memo: int = 0
    summary: int = 0
    user: int = 0
    assistant: int = 0
    tool_use: int = 0
    tool_result: int = 0
    attachments: int = 0


class ContextSize(msgspec.Struct, frozen=True):
    """The estimated size of a request, in tokens; `tokens` is the sum of the breakdown."""

    tokens: int
    error_percent: float | None
    context_window: int | None
    ratio: float | None
    breakdown: Breakdown


def estimate_tokens(text: str, model: str | None = None) -> int:
    """About how many tokens `text` is for a model; O(bytes), over 100 MB/s.

    `model` is accepted for the day when rates differ by model; they do not yet.
    """
    if not text:
        return 0
    classes = text.encode("utf-8", "replace").translate(_CLASSES)
    total = sum(classes.count(code) * rate for code, rate in _RATES)
    return max(1, round(total))


def measure(
    messages: Iterable[Message],
    *,
    system: str = "",
    tools: str = "",
    memo: str = "",
    summary: str = "",
    draft: str = "",
    context_window: int | None = None,
    known: Known | None = None,
) -> ContextSize:
    """The size of a request with these messages; the texts are what is sent of each part.

    With `known` only messages that it does not hold yet are estimated, and put into it.
    """
    sums = dict.fromkeys(Breakdown.__struct_fields__, 0)
    for name, text in (("system", system), ("tools", tools), ("memo", memo), ("summary", summary)):
        sums[name] = estimate_tokens(text)
    if draft:
        sums["user"] = estimate_tokens(draft) + MESSAGE_TOKENS
    for message in messages:
        for name, tokens in _parts(message, {} if known is None else known):
            sums[name] += tokens
    tokens = sum(sums.values())
    ratio = round(tokens / context_window, 4) if context_window else None
    return ContextSize(tokens, None, context_window, ratio, Breakdown(**sums))


def message_tokens(message: Message, known: Known) -> int:
    """What one message counts for; a message that `known` holds is not read again."""
    return sum(tokens for _, tokens in _parts(message, known))


def characters(messages: Iterable[Message]) -> int:
    """The characters of all text, tool uses (name and JSON of the input) and results included."""
    return sum(_characters(block) for message in messages for block in blocks_of(message))


def text_length(messages: Iterable[Message]) -> int:
    """The length of a history in approximate characters, by the rule of A3.7."""
    return sum(message_length(message) for message in messages)


def message_length(message: Message) -> int:
    """The length of one message: its role, one, and its content (A3.7)."""
    return len(message.role) + 1 + _content_length(message.content)


def _content_length(content: Any) -> int:
    if isinstance(content, str):
        return len(content)
    if not isinstance(content, list):
        return len(str(content))
    return sum(_part_length(part) for part in content)


def _part_length(part: Any) -> int:
    if isinstance(part, str):
        return len(part)
    if isinstance(part, dict):
        text = part.get("text")
        return len(text) if isinstance(text, str) else len(_json(part))
    return len(str(part))


def _parts(message: Message, known: Known) -> list[tuple[str, int]]:
    """The parts of the breakdown that a message counts for; a known message is not read again."""
    found = known.get(message.seq or 0)
    if found is not None and found[0] is message:
        return found[1]
    role = message.role if message.role in ("assistant", "system") else "user"
    if message.role == "developer":
        role = "system"
    frame = "tool_result" if message.role == "tool" else role
    parts = [(frame, MESSAGE_TOKENS)]
    parts += [_block_tokens(block, role) for block in blocks_of(message)]
    if message.seq is not None:
        known[message.seq] = (message, parts)
    return parts


def _block_tokens(block: Block, role: str) -> tuple[str, int]:
    """Where a block counts, and how many tokens it is."""
    if isinstance(block, TextBlock):
        return role, estimate_tokens(block.text)
    if isinstance(block, ToolUseBlock):
        return "tool_use", estimate_tokens(block.name) + estimate_tokens(_json(block.input))
    if isinstance(block, ToolResultBlock):
        pictures = 0 if isinstance(block.content, str) else sum(map(_is_image, block.content))
        return "tool_result", estimate_tokens(result_text(block.content)) + pictures * IMAGE_TOKENS
    if isinstance(block, AttachmentBlock):
        return "attachments", estimate_tokens(block.text) + estimate_tokens(block.path or "")
    if isinstance(block, ImageBlock):
        return role, IMAGE_TOKENS
    return role, 0  # thinking and opaque blocks are not sent unless a provider asks for its own


def _is_image(block: Any) -> bool:
    return isinstance(read_block(block), ImageBlock)


def _characters(block: Block) -> int:
    if isinstance(block, TextBlock | AttachmentBlock):
        return len(block.text)
    if isinstance(block, ToolUseBlock):
        return len(block.name) + len(_json(block.input))
    if isinstance(block, ToolResultBlock):
        return len(result_text(block.content))
    return 0


def _json(value: Any) -> str:
    """The JSON text of a value; of one nested too deeply to be written (or sent) nothing."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        return ""


def _class_of(byte: int) -> str:
    char = chr(byte)
    if byte < 0x80:
        if char.isalpha():
            return "letter"
        if char.isdigit():
            return "digit"
        if char in "\r\n":
            return "line"
        return "blank" if char.isspace() or byte < 0x20 else "mark"
    if byte < 0xC0:
        return "inner"
    if byte < 0xE0:
        return "latin"
    if byte < 0xE4:
        return "kana"
    if byte < 0xEA:
        return "han"
    return "hangul" if byte < 0xF0 else "emoji"


_NAMES = list(RATES)
_CLASSES = bytes(_NAMES.index(_class_of(byte)) for byte in range(256))
_RATES = [(bytes([index]), rate) for index, rate in enumerate(RATES.values()) if rate]
