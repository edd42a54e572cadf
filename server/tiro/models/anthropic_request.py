"""A request in the form of Anthropic's messages.

The prefix that stays the same from step to step (tools, system prompt, and the messages so far) is
marked for the provider's cache, and nothing else is.
"""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any

from tiro.models.model import ModelFacts, ModelRequest, ToolSchema
from tiro.models.request_parts import (
    EMPTY_RESULT,
    block_text,
    options_of,
    read_picture,
    to_wire_tool_ids,
    to_wire_tool_name,
    without_images,
)
from tiro.session.messages import (
    Block,
    ImageBlock,
    Message,
    OpaqueBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    blocks_of,
    read_block,
)

OPTIONAL_PARTS = ("top_p", "temperature", "cache_control", "tools", "images", "thinking")
"""What a request can do without when a server refuses it."""
DEFAULT_OUTPUT_TOKENS = 8192
"""The output limit for a model of which none is known; the format demands one."""
OUTPUT_SHARE = 4
"""The part of the window, one in so many, that an answer is given by default; the budget of a
request leaves it free."""

MEDIA_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""The pictures that are taken; a request with any other is refused whole."""

_CACHED = {"type": "ephemeral"}


def output_limit(request: ModelRequest, facts: ModelFacts) -> int:
    """How long the answer may be: as the user says, else as long as model and window allow."""
    if request.max_output_tokens is not None:
        return request.max_output_tokens
    limit = facts.max_output_tokens or DEFAULT_OUTPUT_TOKENS
    window = facts.context_window
    return limit if window is None else max(1, min(limit, window // OUTPUT_SHARE))


def to_wire_request(
    request: ModelRequest,
    own: str,
    max_tokens: int,
    *,
    refused: AbstractSet[str] = frozenset(),
) -> dict[str, Any]:
    """The request's body; `own` is the full name of the model whose thinking is sent back."""
    messages = without_images(request.messages) if "images" in refused else request.messages
    wire: dict[str, Any] = {
        "model": request.model,
        "max_tokens": max_tokens,
        "messages": to_wire_messages(messages, "" if "thinking" in refused else own),
        "stream": True,
    }
    if request.system.strip():
        wire["system"] = [{"type": "text", "text": request.system}]
    if request.tools:
        wire["tools"] = [to_wire_tool(tool) for tool in request.tools]
    if request.temperature is not None:
        wire["temperature"] = request.temperature
    if request.top_p is not None:
        wire["top_p"] = request.top_p
    wire |= options_of(request)
    wire = {key: value for key, value in wire.items() if key not in refused}
    if "cache_control" not in refused:
        _mark_for_the_cache(wire)
    return wire


def to_wire_tool(tool: ToolSchema) -> dict[str, Any]:
    """One tool that the model may use."""
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.input_schema,
    }


def to_wire_messages(messages: Iterable[Message], own: str) -> list[dict[str, Any]]:
    """A provider view as messages of user and assistant in turn, tool results first in theirs."""
    messages = list(messages)
    ids = to_wire_tool_ids(block for message in messages for block in blocks_of(message))
    wire: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        is_own = bool(own) and message.marks().get("model") == own
        blocks = [b for block in blocks_of(message) for b in _to_wire_block(block, ids, is_own)]
        if wire and wire[-1]["role"] == role:
            wire[-1]["content"] += blocks
        elif blocks:
            wire.append({"role": role, "content": blocks})
    for sent in wire:
        if sent["role"] == "user":
            sent["content"].sort(key=lambda block: block["type"] != "tool_result")
    return wire


def _to_wire_block(block: Block, ids: dict[str, str], is_own: bool) -> Iterator[dict[str, Any]]:
    """The block in this format; thinking only as its own model signed it, byte for byte."""
    match block:
        case ThinkingBlock(thinking, signature):
            if is_own and signature:
                yield {"type": "thinking", "thinking": thinking, "signature": signature}
        case OpaqueBlock({"type": "redacted_thinking"}):
            if is_own:
                yield block.data
        case ToolUseBlock(tool_id, name, given):
            named = to_wire_tool_name(name)
            yield {"type": "tool_use", "id": ids[tool_id], "name": named, "input": given}
        case ToolResultBlock():
            yield _to_wire_result(block, ids)
        case _:
            yield from _to_wire_content(block)


def _to_wire_result(result: ToolResultBlock, ids: dict[str, str]) -> dict[str, Any]:
    content: str | list[dict[str, Any]]
    if isinstance(result.content, str):
        content = result.content if result.content.strip() else EMPTY_RESULT
    else:
        blocks = map(read_block, result.content)
        content = [sent for block in blocks for sent in _to_wire_content(block)] or EMPTY_RESULT
    wire = {"type": "tool_result", "tool_use_id": ids[result.tool_use_id], "content": content}
    return {**wire, "is_error": True} if result.is_error else wire


def _to_wire_content(block: Block) -> Iterator[dict[str, Any]]:
    """A picture or a text; nothing for what says nothing."""
    source = _to_wire_source(block.source) if isinstance(block, ImageBlock) else None
    if source is not None:
        yield {"type": "image", "source": source}
    elif (text := block_text(block)).strip():
        yield {"type": "text", "text": text}


def _to_wire_source(source: dict[str, Any]) -> dict[str, Any] | None:
    """Where a picture comes from: an address, or its data; None for what cannot be sent."""
    picture = read_picture(source)
    if picture is None:
        return None
    if picture.url is not None:
        return {"type": "url", "url": picture.url}
    if picture.media_type not in MEDIA_TYPES:
        return None
    return {"type": "base64", "media_type": picture.media_type, "data": picture.data}


def _mark_for_the_cache(wire: dict[str, Any]) -> None:
    """Mark the end of the tools and the system prompt, and the end of the messages."""
    marked = [wire.get("system") or wire.get("tools")]
    marked += [message["content"] for message in wire["messages"][-1:]]
    for blocks in filter(None, marked):
        blocks[-1] = {**blocks[-1], "cache_control": _CACHED}
