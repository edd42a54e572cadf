"""A request in the form of OpenAI's chat completions, which many servers speak."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from tiro.models.model import ModelRequest, ToolSchema
from tiro.models.request_parts import (
    EMPTY_RESULT,
    block_text,
    options_of,
    read_picture,
    to_wire_tool_ids,
    to_wire_tool_name,
    without_images,
)
from tiro.session.json_text import encode
from tiro.session.messages import (
    Block,
    ImageBlock,
    Message,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    blocks_of,
    read_block,
    result_text,
)

MAX_TOKENS_KEYS = ("max_tokens", "max_completion_tokens")
"""Old and new name of one parameter: most servers know only the old one, OpenAI wants the new."""
OPTIONAL_PARTS = (
    *MAX_TOKENS_KEYS,
    "temperature",
    "top_p",
    "stream_options",
    "response_format",
    "tools",
    "images",
)
"""What a request can do without when a server refuses it."""

PICTURES = "The image in the result of the tool call {id}:"
"""Said before an image that a tool has read; results themselves hold only text here."""


def to_wire_request(
    request: ModelRequest,
    *,
    refused: AbstractSet[str] = frozenset(),
    prefer: str = "max_tokens",
    own: str = "",
) -> dict[str, Any]:
    """The request's body; `refused` parameters are left out, `prefer` names the output limit.

    `own` is the full name of the model whose reasoning is sent back; by default none is.
    """
    messages = without_images(request.messages) if "images" in refused else request.messages
    wire: dict[str, Any] = {
        "model": request.model,
        "messages": to_wire_messages(request.system, messages, own),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        wire["tools"] = [to_wire_tool(tool) for tool in request.tools]
    if request.max_output_tokens is not None:
        keys = sorted(MAX_TOKENS_KEYS, key=lambda key: key != prefer)
        key = next((key for key in keys if key not in refused), None)
        if key is not None:
            wire[key] = request.max_output_tokens
    if request.temperature is not None:
        wire["temperature"] = request.temperature
    if request.top_p is not None:
        wire["top_p"] = request.top_p
    wire |= options_of(request)
    if request.response_schema is not None:
        named = {"name": "answer", "schema": request.response_schema}
        wire["response_format"] = {"type": "json_schema", "json_schema": named}
    return {key: value for key, value in wire.items() if key not in refused}


def to_wire_tool(tool: ToolSchema) -> dict[str, Any]:
    """One tool that the model may use."""
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
    }
    return {"type": "function", "function": function}


def to_wire_messages(
    system: str, messages: Iterable[Message], own: str = ""
) -> list[dict[str, Any]]:
    """The system prompt and a provider view as chat messages."""
    wire: list[dict[str, Any]] = []
    if system.strip():
        wire.append({"role": "system", "content": system})
    read = [(message, blocks_of(message)) for message in messages]
    ids = to_wire_tool_ids(block for _, blocks in read for block in blocks)
    pictures: list[dict[str, Any]] = []
    for message, blocks in read:
        if pictures and message.role != "tool":
            wire.append({"role": "user", "content": pictures})
            pictures = []
        if message.role == "assistant":
            sent = _to_wire_assistant(blocks, ids)
            if own and sent:
                sent[0]["reasoning_content"] = _reasoning(message, blocks, own)
            wire += sent
            continue
        results = [block for block in blocks if isinstance(block, ToolResultBlock)]
        wire += [_to_wire_result(result, ids) for result in results]
        pictures += [part for result in results for part in _pictures(result, ids)]
        others = [block for block in blocks if not isinstance(block, ToolResultBlock)]
        if content := _to_wire_content(others):
            wire.append({"role": "user", "content": content})
    return [*wire, {"role": "user", "content": pictures}] if pictures else wire


def _to_wire_assistant(blocks: list[Block], ids: dict[str, str]) -> list[dict[str, Any]]:
    """Text and tool uses in one message, or none."""
    calls = [
        {
            "id": ids[block.id],
            "type": "function",
            "function": {
                "name": to_wire_tool_name(block.name),
                "arguments": encode(block.input).decode(),
            },
        }
        for block in blocks
        if isinstance(block, ToolUseBlock)
    ]
    rest = [block for block in blocks if not isinstance(block, ToolUseBlock)]
    wire: dict[str, Any] = {"role": "assistant", "content": _joined_text(rest) or None}
    if calls:
        wire["tool_calls"] = calls
    return [wire] if calls or wire["content"] else []


def _reasoning(message: Message, blocks: list[Block], own: str) -> str:
    """What the model itself thought; empty where another one did, since the field must be there."""
    if message.marks().get("model") != own:
        return ""
    return "\n\n".join(block.thinking for block in blocks if isinstance(block, ThinkingBlock))


def _to_wire_result(result: ToolResultBlock, ids: dict[str, str]) -> dict[str, Any]:
    """The format has no mark for errors, so the text says it."""
    text = result_text(result.content)
    if not text.strip():
        text = EMPTY_RESULT
    if result.is_error and not text.lower().startswith("error"):
        text = f"Error: {text}"
    return {"role": "tool", "tool_call_id": ids[result.tool_use_id], "content": text}


def _pictures(result: ToolResultBlock, ids: dict[str, str]) -> list[dict[str, Any]]:
    """The images of a result, which only a user's message may hold, with what they belong to."""
    blocks = [] if isinstance(result.content, str) else map(read_block, result.content)
    images = [block for block in blocks if isinstance(block, ImageBlock)]
    content = _to_wire_content(images)
    if not images or isinstance(content, str):
        return []
    name = PICTURES.format(id=ids[result.tool_use_id])
    return [{"type": "text", "text": name}, *content]


def _to_wire_content(blocks: Sequence[Block]) -> str | list[dict[str, Any]]:
    """A string where there is only text: more servers take that than a list of parts."""
    if not any(isinstance(block, ImageBlock) for block in blocks):
        return _joined_text(blocks)
    parts: list[dict[str, Any]] = []
    for block in blocks:
        url = _image_url(block) if isinstance(block, ImageBlock) else None
        if url is not None:
            parts.append({"type": "image_url", "image_url": {"url": url}})
        elif text := block_text(block):
            parts.append({"type": "text", "text": text})
    return parts


def _joined_text(blocks: Sequence[Block]) -> str:
    return "\n\n".join(text for text in map(block_text, blocks) if text.strip())


def _image_url(image: ImageBlock) -> str | None:
    """An address, or the picture itself as a data address; None for what cannot be sent."""
    picture = read_picture(image.source)
    if picture is None:
        return None
    return picture.url or f"data:{picture.media_type};base64,{picture.data}"
