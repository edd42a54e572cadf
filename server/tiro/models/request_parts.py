"""What every format of a request makes alike: ids and names of tools, and blocks as text."""

import hashlib
import re
from collections.abc import Iterable
from typing import Any, assert_never

import msgspec

from tiro.models.model import OWN_PARAMETERS, ModelRequest, attachment_text
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
    opaque_label,
    stored_blocks,
)

EMPTY_RESULT = "(no output)"
"""Sent for a tool result without text, which some servers refuse."""
IMAGE_LEFT_OUT = "[An image was here; it is left out, since this model takes no images.]"

_GOOD_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
_BAD_NAME_CHARACTERS = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_NAME_LENGTH = 64


def options_of(request: ModelRequest) -> dict[str, Any]:
    """The parameters that a request adds, less those that are Tiro's own."""
    return {key: value for key, value in request.options.items() if key not in OWN_PARAMETERS}


def to_wire_tool_ids(blocks: Iterable[Block]) -> dict[str, str]:
    """Every tool id and the one it is sent as: the same where it can be, else one made from it.

    Ids of other providers can be long and hold any character; every format refuses some of them.
    """
    ids = dict.fromkeys(
        block.id if isinstance(block, ToolUseBlock) else block.tool_use_id
        for block in blocks
        if isinstance(block, ToolUseBlock | ToolResultBlock)
    )
    wire = {tool_id: tool_id for tool_id in ids if _GOOD_ID.fullmatch(tool_id)}
    taken = set(wire)
    for tool_id in ids:
        if tool_id in wire:
            continue
        seed = tool_id
        while (made := _made_id(seed)) in taken:
            seed += "+"
        wire[tool_id] = made
        taken.add(made)
    return wire


def to_wire_tool_name(name: str) -> str:
    """The name with an underscore for each character that a provider refuses."""
    return _BAD_NAME_CHARACTERS.sub("_", name)[:_MAX_NAME_LENGTH] or "unknown"


def block_text(block: Block) -> str:
    """What a block says where only text can be sent."""
    match block:
        case TextBlock():
            return block.text
        case AttachmentBlock():
            return attachment_text(block)
        case OpaqueBlock():
            return opaque_label(block)
        case ImageBlock():
            return "[image]"
        case ThinkingBlock() | ToolUseBlock() | ToolResultBlock():
            return ""
        case _:
            assert_never(block)


class Picture(msgspec.Struct, frozen=True):
    """A picture that a provider can take: an address, or data in base64."""

    url: str | None = None
    media_type: str = ""
    data: str = ""


def read_picture(source: dict[str, Any]) -> Picture | None:
    """The picture that an image block names; None for what a provider would refuse.

    Refused data would be sent again with every later request. O(bytes of the data).
    """
    match source:
        case {"url": str(url)} if url.startswith("data:"):
            head, _, data = url.removeprefix("data:").partition(",")
            return _picture(head.partition(";")[0], data)
        case {"url": str(url)} if url:
            return Picture(url)
        case {"data": str(data)}:
            return _picture(str(source.get("media_type") or ""), data)
        case _:
            return None


def _picture(media_type: str, data: str) -> Picture | None:
    if len(data) % 4 or not _BASE64.fullmatch(data):
        return None
    return Picture(media_type=media_type or "image/png", data=data)


def without_images(messages: Iterable[Message]) -> list[Message]:
    """The messages with a note in the place of each image, in tool results too."""
    return [
        msgspec.structs.replace(message, content=_without_images(stored_blocks(message.content)))
        for message in messages
    ]


def _without_images(blocks: list[Any]) -> list[Any]:
    kept = []
    for block in blocks:
        if isinstance(block, dict) and block.get("type") == "image":
            block = {"type": "text", "text": IMAGE_LEFT_OUT}
        elif isinstance(block, dict) and isinstance(block.get("content"), list):
            block = {**block, "content": _without_images(block["content"])}
        kept.append(block)
    return kept


def _made_id(seed: str) -> str:
    digest = hashlib.sha256(seed.encode("utf-8", "surrogatepass"))
    return f"call_{digest.hexdigest()[:32]}"


_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
