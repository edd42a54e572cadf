"""A session as text: the summary that `show` prints, its statistics, all of it as plain text."""

from collections.abc import Iterable, Sequence

import msgspec

from tiro.session.json_text import encode
from tiro.session.messages import (
    AttachmentBlock,
    Block,
    Message,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    blocks_of,
    opaque_label,
    result_text,
    text_of,
    tool_uses_of,
)
from tiro.session.redact import redact_shapes

SHOWN_MESSAGES = 20
SHOWN_CHARACTERS = 80
HEADING = "Session Summary:"


class Statistics(msgspec.Struct, frozen=True):
    """Counts over the window, and the usage over the whole session."""

    user: int
    assistant: int
    tool: int
    system: int
    tool_uses: dict[str, int]
    turns: int
    tokens: int
    usage: Usage


def summarize(newest: Sequence[Message]) -> str | None:
    """The text of `show`: a heading and a line for each thing said; None for no messages.

    `newest` are the newest messages of the window, oldest first; only the last 20 are shown,
    without what looks like a key. The exact form is section 6 of PROTOCOL.md (M2.10).
    """
    if not newest:
        return None
    lines = [line for message in newest[-SHOWN_MESSAGES:] for line in _lines(message)]
    return "\n".join([HEADING, "", *lines])


def count(window: Iterable[Message], turns: int, tokens: int, usage: Usage) -> Statistics:
    """Messages per role and tool uses per name over the window (M7.4); O(window)."""
    roles: dict[str, int] = {}
    uses: dict[str, int] = {}
    for message in window:
        roles[message.role] = roles.get(message.role, 0) + 1
        for use in tool_uses_of(message):
            uses[use.name] = uses.get(use.name, 0) + 1
    return Statistics(
        user=roles.get("user", 0),
        assistant=roles.get("assistant", 0),
        tool=roles.get("tool", 0),
        system=roles.get("system", 0),
        tool_uses=uses,
        turns=turns,
        tokens=tokens,
        usage=usage,
    )


def plain_text(messages: Iterable[Message]) -> str:
    """`[role] content` of each message, joined by blank lines (M7.5).

    A tool use comes with its input and an attachment by its path; thinking is left out.
    """
    return "\n\n".join(f"[{message.role}] {_in_full(message)}" for message in messages)


def first_line(messages: Iterable[Message], characters: int = 50) -> str | None:
    """The first line of the first prompt, cut to this many characters: a session's title."""
    for message in messages:
        lines = text_of(message).split("\n") if message.role == "user" else []
        title = next((line.strip() for line in lines if line.strip()), None)
        if title is not None:
            return title if len(title) <= characters else title[: characters - 1] + "…"
    return None


def _lines(message: Message) -> list[str]:
    uses = tool_uses_of(message)
    said = _said(message)
    tagged = [(_tag(message), said)] if said else []
    tagged += [("TOOL", f"tool_use: {use.name}") for use in uses]
    return [f"[{tag}] {_one_line(redact_shapes(text))}" for tag, text in tagged]


def _tag(message: Message) -> str:
    return "TOOL" if _is_result(message) else message.role.upper()


def _is_result(message: Message) -> bool:
    return any(isinstance(block, ToolResultBlock) for block in blocks_of(message))


def _said(message: Message) -> str:
    """What the message says, in order: text joined by line breaks, other blocks by their names."""
    parts = [_shown(block) for block in blocks_of(message)]
    return "\n".join(part for part in parts if part is not None)


def _in_full(message: Message) -> str:
    parts = [_shown_in_full(block) for block in blocks_of(message)]
    return "\n".join(part for part in parts if part is not None)


def _shown_in_full(block: Block) -> str | None:
    if isinstance(block, ToolUseBlock):
        return f"tool_use: {block.name} {encode(block.input).decode()}"
    if isinstance(block, AttachmentBlock) and block.path:
        return f"[attachment {block.path}]"
    return _shown(block)


def _shown(block: Block) -> str | None:
    if isinstance(block, TextBlock):
        return block.text or None
    if isinstance(block, ThinkingBlock | ToolUseBlock):
        return None
    if isinstance(block, ToolResultBlock):
        return f"tool_result: {result_text(block.content)}"
    if isinstance(block, OpaqueBlock):
        return opaque_label(block) or None
    return f"[{block.__struct_config__.tag}]"


def _one_line(text: str) -> str:
    line = text.replace("\r\n", "\\n").replace("\r", "\\n").replace("\n", "\\n")
    if len(line) <= SHOWN_CHARACTERS:
        return line
    return line[: SHOWN_CHARACTERS - 3] + "..."
