"""A block as a request may hold it: what is sent of it, and what no server takes."""

from typing import Any, Literal, TypeAlias

from tiro.session.json_text import MAX_NESTING, clean, is_nested_deeper
from tiro.session.large import is_left_behind
from tiro.session.messages import (
    REDACTED_THINKING,
    AttachmentBlock,
    Block,
    ImageBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    read_block,
)

LOST_IMAGE = "(Here was an image, which is lost.)"

TOO_DEEP = "(This was nested too deeply to be sent.)"

TOO_LONG = "(This number was too long to be sent.)"

MAX_NUMBER_BITS = 4300 * 3
"""Well below 4,300 digits, the most that servers in Python read in a tool's input."""

SENT_NESTING = MAX_NESTING + 5
"""What a client or a model may give at most, and the block around it."""

Part: TypeAlias = Literal["empty", "thinking", "orphan_result", "unknown_block"]
"""What is not sent of a message: blank text, thinking, a result that answers nothing (or what was
answered before), a block that no request may hold."""


def clean_block(block: dict[str, Any]) -> dict[str, Any]:
    """The block without lone surrogates, deep nesting and long numbers: no server takes them."""
    if is_nested_deeper(block, SENT_NESTING):
        block = {key: _shallow(value) for key, value in block.items()}
    if "input" in block:
        block = {**block, "input": _short(block["input"])}
    cleaned: dict[str, Any] = clean(block)
    return cleaned


def as_sent(role: str, block: Block, thinking: bool) -> tuple[dict[str, Any] | None, Part]:
    """A block as a request holds it, or None; and what it counts for when it is left out."""
    if isinstance(block, TextBlock):
        is_foreign = role not in ("user", "assistant", "tool")
        return _text(block.text, f"[{role}] " if is_foreign else "")
    if isinstance(block, ThinkingBlock):
        if not thinking or role != "assistant":
            return None, "thinking"
        kept = {"type": "thinking", "thinking": block.thinking}
        signature = {} if block.signature is None else {"signature": block.signature}
        return {**kept, **signature}, "thinking"
    if isinstance(block, AttachmentBlock):
        return _without_none(block), "empty"
    if isinstance(block, ImageBlock):
        return _image(block.source), "empty"
    if isinstance(block, OpaqueBlock):
        return _opaque(block, role, thinking)
    return None, "unknown_block"


def result_content(content: str | list[Any]) -> str | list[Any]:
    """A result's content without blank text blocks; one that says nothing is the empty string."""
    if isinstance(content, str):
        return content
    kept = [
        _image(block["source"]) if isinstance(read_block(block), ImageBlock) else block
        for block in content
        if isinstance(block, dict)
        and not (block.get("type") == "text" and is_blank(str(block.get("text", ""))))
    ]
    return kept or ""


def is_blank(text: str) -> bool:
    """Whether there is nothing in it but white space."""
    return not text or text.isspace()


def _shallow(value: Any) -> Any:
    """The value, or words in its place; an object stays one, as a tool's input must."""
    if not is_nested_deeper(value, SENT_NESTING - 1):
        return value
    if isinstance(value, dict):
        return {key: item if isinstance(item, str) else TOO_DEEP for key, item in value.items()}
    return TOO_DEEP


def _short(value: Any) -> Any:
    """The value with words in the place of each number that is too long."""
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_short(item) for item in value]
    is_long = isinstance(value, int) and value.bit_length() > MAX_NUMBER_BITS
    return TOO_LONG if is_long else value


def _opaque(block: OpaqueBlock, role: str, thinking: bool) -> tuple[dict[str, Any] | None, Part]:
    """A block of another type as it came, when a request may hold it.

    A known type in a broken form (text that is no string) is never sent: it could only be refused.
    A redacted thinking block is the provider's own and goes where thinking goes.
    """
    kind = block.data.get("type")
    if kind == REDACTED_THINKING:
        return (block.data if thinking and role == "assistant" else None), "thinking"
    if kind == "text" and isinstance(block.data.get("text"), str):
        return _text(block.data["text"])
    return None, "unknown_block"


def _text(text: str, before: str = "") -> tuple[dict[str, Any] | None, Part]:
    return (None if is_blank(text) else {"type": "text", "text": before + text}), "empty"


def _image(source: dict[str, Any]) -> dict[str, Any]:
    """An image block; one whose data was lost is text, which no provider refuses (U9.10)."""
    if is_left_behind(str(source.get("data", ""))):
        return {"type": "text", "text": LOST_IMAGE}
    return {"type": "image", "source": source}


def _without_none(block: AttachmentBlock) -> dict[str, Any]:
    fields = {"type": "attachment", "kind": block.kind, "path": block.path, "range": block.range}
    return {k: v for k, v in fields.items() if v is not None} | {"text": block.text}
