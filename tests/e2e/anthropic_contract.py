"""What Anthropic's messages API refuses, as a pure function over a request body.

`anthropic_faults(raw, given)` is the sibling of `contract.openai_faults`. `given` is what the
provider signed: a thinking block is only taken back as it was given, by the model that gave it.
"""

import base64
import binascii
import contextlib
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.contract import NAME, schema_faults, strict_json

ID = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
MAX_CACHE_MARKS = 4

TOP_LEVEL = {
    "model", "max_tokens", "messages", "system", "tools", "tool_choice", "stream", "temperature",
    "top_p", "top_k", "stop_sequences", "metadata", "thinking", "service_tier",
}  # fmt: skip

BLOCK_KEYS = {
    "text": {"type", "text", "cache_control"},
    "image": {"type", "source", "cache_control"},
    "tool_use": {"type", "id", "name", "input", "cache_control"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
}
ROLE_BLOCKS = {
    "user": {"text", "image", "tool_result"},
    "assistant": {"text", "tool_use", "thinking", "redacted_thinking"},
}
MEDIA_TYPES = {"image/jpeg", "image/png", "image/gif", "image/webp"}


@dataclass
class Given:
    """The thinking blocks of one answer, as they went out."""

    model: str
    blocks: list[dict[str, Any]] = field(default_factory=list)
    is_whole: bool = False
    """The answer came to its end, so its blocks come back together or not at all."""


def anthropic_faults(raw: bytes, given: Sequence[Given] = ()) -> list[str]:
    """Say everything that the API would refuse in this body."""
    try:
        body = strict_json(raw)
    except ValueError as error:
        return [f"The request body is not valid JSON: {error}"]
    if not isinstance(body, dict):
        return ["The request body is not an object"]
    return [
        *_top_level_faults(body),
        *_system_faults(body.get("system")),
        *_tools_faults(body.get("tools")),
        *_messages_faults(body.get("messages")),
        *_cache_faults(body),
        *_thinking_faults(body, given),
    ]


def given_in(model: str, raw: bytes) -> Given:
    """What a stream signs: its thinking blocks that come to their end."""
    given = Given(model)
    block: dict[str, Any] = {}
    for event in _events(raw):
        kind = event.get("type")
        if kind == "content_block_start":
            block = dict(event["content_block"])
        elif kind == "content_block_delta":
            for key in event["delta"].keys() & {"thinking", "signature"}:
                block[key] = block.get(key, "") + event["delta"][key]
        elif kind == "content_block_stop" and (block.get("signature") or "data" in block):
            given.blocks.append(block)
        given.is_whole = given.is_whole or kind == "message_stop"
    return given


def _events(raw: bytes) -> Iterator[dict[str, Any]]:
    """The events of a stream, without what a test broke on purpose."""
    for line in raw.splitlines():
        if line.startswith(b"data: {"):
            with contextlib.suppress(ValueError):
                yield json.loads(line[6:])


def _top_level_faults(body: dict[str, Any]) -> Iterator[str]:
    for key in sorted(body.keys() - TOP_LEVEL):
        yield f"{key}: Extra inputs are not permitted"
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "model: Field required"
    if "max_tokens" not in body:
        yield "max_tokens: Field required"
    elif type(body["max_tokens"]) is not int or body["max_tokens"] < 1:
        yield "max_tokens: Input should be greater than or equal to 1"
    for key in ("temperature", "top_p"):
        value = body.get(key, 0)
        if not (type(value) in (int, float) and 0 <= value <= 1):
            yield f"{key}: range: 0..1"


def _system_faults(system: Any) -> Iterator[str]:
    if system is None:
        return
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
    if not isinstance(blocks, list) or not blocks:
        yield "system: Input should be a valid array"
        return
    for index, block in enumerate(blocks):
        yield from _block_faults(block, {"text"}, f"system.{index}")


def _tools_faults(tools: Any) -> Iterator[str]:
    if tools is None:
        return
    if not isinstance(tools, list):
        yield "tools: Input should be a valid array"
        return
    names = []
    for index, tool in enumerate(tools):
        where = f"tools.{index}"
        keys = {"name", "description", "input_schema", "cache_control"}
        if not isinstance(tool, dict) or set(tool) - keys:
            yield f"{where}: Extra inputs are not permitted"
            continue
        names.append(tool.get("name"))
        if not isinstance(tool.get("name"), str) or not NAME.match(tool["name"]):
            yield f"{where}.name: String should match pattern '{NAME.pattern}'"
        if not isinstance(tool.get("description", ""), str):
            yield f"{where}.description: Input should be a valid string"
        schema = tool.get("input_schema")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            yield f"{where}.input_schema.type: Input should be 'object'"
        else:
            yield from schema_faults(schema, f"{where}.input_schema")
    if len(set(map(str, names))) != len(names):
        yield "tools: Tool names must be unique"


def _messages_faults(messages: Any) -> Iterator[str]:
    if not isinstance(messages, list) or not messages:
        yield "messages: at least one message is required"
        return
    for index, message in enumerate(messages):
        where = f"messages.{index}"
        if not isinstance(message, dict) or message.get("role") not in ROLE_BLOCKS:
            yield f"{where}.role: Input should be 'user' or 'assistant'"
            return
        if set(message) != {"role", "content"}:
            yield f"{where}: Extra inputs are not permitted"
        yield from _content_faults(message.get("content"), ROLE_BLOCKS[message["role"]], where)
    roles = [message["role"] for message in messages]
    if roles[0] != "user":
        yield "messages: first message must use the user role"
    if roles[-1] != "user":
        yield "messages: the conversation must end with a user message"
    if any(one == other for one, other in itertools.pairwise(roles)):
        yield f"messages: roles must alternate between user and assistant: {roles}"
    yield from _pair_faults(messages)


def _content_faults(content: Any, allowed: set[str], where: str) -> Iterator[str]:
    if isinstance(content, str):
        if not content.strip():
            yield f"{where}: messages must have non-empty content"
        return
    if not isinstance(content, list) or not content:
        yield f"{where}: messages must have non-empty content"
        return
    for index, block in enumerate(content):
        yield from _block_faults(block, allowed, f"{where}.content.{index}")


def _block_faults(block: Any, allowed: set[str], where: str) -> Iterator[str]:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind not in allowed:
        yield f"{where}: Input tag {kind!r} does not match any of the expected tags {allowed}"
        return
    for key in sorted(set(block) - BLOCK_KEYS[kind]):
        yield f"{where}.{kind}.{key}: Extra inputs are not permitted"
    if kind == "text":
        if not isinstance(block.get("text"), str) or not block["text"].strip():
            yield f"{where}: text content blocks must contain non-whitespace text"
    elif kind == "image":
        yield from _source_faults(block.get("source"), f"{where}.image.source")
    elif kind == "tool_use":
        yield from _use_faults(block, f"{where}.tool_use")
    elif kind == "tool_result":
        yield from _result_faults(block, f"{where}.tool_result")


def _source_faults(source: Any, where: str) -> Iterator[str]:
    if isinstance(source, dict) and source.get("type") == "url":
        if set(source) != {"type", "url"} or not str(source["url"]).startswith("http"):
            yield f"{where}.url: Only HTTP(S) URLs are supported"
        return
    if not isinstance(source, dict) or set(source) != {"type", "media_type", "data"}:
        yield f"{where}: a base64 source holds type, media_type and data"
        return
    if source["media_type"] not in MEDIA_TYPES:
        yield f"{where}.media_type: Input should be one of {sorted(MEDIA_TYPES)}"
    try:
        if not base64.b64decode(source["data"], validate=True):
            yield f"{where}: image cannot be empty"
    except (binascii.Error, TypeError, ValueError):
        yield f"{where}.data: invalid base64 data"


def _use_faults(block: dict[str, Any], where: str) -> Iterator[str]:
    if not isinstance(block.get("id"), str) or not ID.match(block["id"]):
        yield f"{where}.id: String should match pattern '{ID.pattern}'"
    if not isinstance(block.get("name"), str) or not NAME.match(block["name"]):
        yield f"{where}.name: String should match pattern '{NAME.pattern}'"
    if not isinstance(block.get("input"), dict):
        yield f"{where}.input: Input should be an object"


def _result_faults(block: dict[str, Any], where: str) -> Iterator[str]:
    if not isinstance(block.get("tool_use_id"), str) or not ID.match(block["tool_use_id"]):
        yield f"{where}.tool_use_id: String should match pattern '{ID.pattern}'"
    if not isinstance(block.get("is_error", False), bool):
        yield f"{where}.is_error: Input should be a valid boolean"
    yield from _content_faults(block.get("content"), {"text", "image"}, where)


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    if not isinstance(content, list):
        return []
    return [block for block in content if isinstance(block, dict)]


def _pair_faults(messages: list[dict[str, Any]]) -> Iterator[str]:
    seen: set[str] = set()
    for index, message in enumerate(messages):
        blocks = _blocks(message)
        before = messages[index - 1] if index else {"content": []}
        wanted = [str(b.get("id")) for b in _blocks(before) if b.get("type") == "tool_use"]
        results = [str(b.get("tool_use_id")) for b in blocks if b.get("type") == "tool_result"]
        where = f"messages.{index}"
        for missing in [id_ for id_ in wanted if id_ not in results]:
            yield (
                f"{where}: `tool_use` ids were found without `tool_result` blocks immediately"
                f" after: {missing}"
            )
        for extra in [id_ for id_ in results if id_ not in wanted]:
            yield f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {extra}"
        if sorted(results) == sorted(wanted) and results != wanted:
            yield f"{where}: the results are not in the order of the tool uses: {results}"
        if len(set(results)) != len(results):
            yield f"{where}: each tool_use must have a single result: {results}"
        kinds = [block.get("type") for block in blocks]
        if "tool_result" in kinds[len(results) :]:
            yield f"{where}: tool_result blocks must come first in the content"
        for id_ in [str(b.get("id")) for b in blocks if b.get("type") == "tool_use"]:
            if id_ in seen:
                yield f"{where}: `tool_use` ids must be unique: {id_}"
            seen.add(id_)
    if any(block.get("type") == "tool_use" for block in _blocks(messages[-1])):
        yield "messages: `tool_use` ids were found without `tool_result` blocks at the end"


def _cache_faults(body: dict[str, Any]) -> Iterator[str]:
    marks = list(_cache_marks([body.get(key) for key in ("tools", "system", "messages")]))
    if len(marks) > MAX_CACHE_MARKS:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {len(marks)}."
    for mark in marks:
        if mark != {"type": "ephemeral"}:
            yield f"cache_control: {mark!r}"


def _cache_marks(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _cache_marks(item)
    elif isinstance(value, dict):
        if "cache_control" in value:
            yield value["cache_control"]
        yield from _cache_marks(value.get("content"))


def _thinking_faults(body: dict[str, Any], given: Sequence[Given]) -> Iterator[str]:
    messages = body.get("messages")
    for index, message in enumerate(messages if isinstance(messages, list) else []):
        if not isinstance(message, dict) or not isinstance(message.get("content"), list):
            continue
        kinds = [block.get("type") for block in _blocks(message)]
        thoughts = [b for b in _blocks(message) if str(b.get("type")).endswith("thinking")]
        if not thoughts:
            continue
        where = f"messages.{index}"
        last_thought = max(n for n, kind in enumerate(kinds) if str(kind).endswith("thinking"))
        if "tool_use" in kinds and kinds.index("tool_use") < last_thought:
            yield f"{where}: thinking blocks must come ahead of tool_use"
        yield from _signature_faults(thoughts, str(body.get("model")), given, where)


def _signature_faults(
    thoughts: list[dict[str, Any]], model: str, given: Sequence[Given], where: str
) -> Iterator[str]:
    places = []
    for block in thoughts:
        found = [
            (number, place)
            for number, answer in enumerate(given)
            if answer.model == model
            for place, known in enumerate(answer.blocks)
            if known == block
        ]
        if not found:
            yield f"{where}: Invalid `signature` in `thinking` block {block!r}"
            return
        places.append(found[-1])
    if places != sorted(places):
        yield f"{where}: the thinking blocks are not in the order in which they were given"
    for number in {number for number, _ in places}:
        sent = [place for other, place in places if other == number]
        if given[number].is_whole and len(sent) != len(given[number].blocks):
            yield (
                f"{where}: `thinking` or `redacted_thinking` blocks in the latest assistant message"
                " cannot be modified. These blocks must remain as they were."
            )
