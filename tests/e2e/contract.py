"""What a real OpenAI-compatible provider refuses, as pure functions over a request body.

`openai_faults(raw)` gives the faults of one request, oldest rule first; an empty list means that
the request keeps the contract. It is stricter than any single provider: it is the union of what
OpenAI, vLLM, llama.cpp and the gateways in front of them refuse. `anthropic_contract` is its
sibling for the other wire style.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterator
from typing import Any

NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
MAX_ID_LENGTH = 40
ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
"""No text without one has a surrogate: UTF-8 has none. Nearly all texts need no other look."""
SURROGATE = re.compile("[\ud800-\udfff]")

TOP_LEVEL = {
    "model", "messages", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options",
    "temperature", "top_p", "max_tokens", "max_completion_tokens", "n", "stop", "seed", "user",
    "presence_penalty", "frequency_penalty", "response_format", "logit_bias", "logprobs",
    "top_logprobs", "reasoning_effort", "service_tier", "store", "metadata", "prompt_cache_key",
    "prediction", "verbosity", "safety_identifier",
}  # fmt: skip

MESSAGE_KEYS = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "refusal", "tool_calls"},
    "tool": {"role", "content", "tool_call_id"},
}

PART_KEYS = {"text": "text", "image_url": "image_url", "input_audio": "input_audio", "file": "file"}
SCHEMA_TYPES = {"object", "array", "string", "number", "integer", "boolean", "null"}


def openai_faults(raw: bytes) -> list[str]:
    """Say everything that a strict provider would refuse in this chat completions body."""
    try:
        body = strict_json(raw)
    except ValueError as error:
        return [f"We could not parse the JSON body of your request: {error}"]
    if not isinstance(body, dict):
        return ["The body is not a JSON object"]
    return [
        *_top_level_faults(body),
        *_tools_faults(body.get("tools")),
        *_messages_faults(body.get("messages")),
    ]


def strict_json(raw: bytes) -> Any:
    """Parse as the strictest parser does: UTF-8, no NaN, no lone surrogates, no key twice."""
    text = raw.decode("utf-8")
    value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_object_once)
    if ESCAPED_SURROGATE.search(text) and SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        raise ValueError("lone surrogate in a string")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _object_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(f"a key twice in {[key for key, _ in pairs]}")
    return found


def _top_level_faults(body: dict[str, Any]) -> Iterator[str]:
    for key in sorted(body.keys() - TOP_LEVEL):
        yield f"Unrecognized request argument supplied: {key}"
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "you must provide a model parameter"
    if body.get("stream_options") is not None and body.get("stream") is not True:
        yield "stream_options is only allowed when stream is enabled"
    if body.get("tool_choice") is not None and not body.get("tools"):
        yield "tool_choice is only allowed when tools are specified"
    for key in ("max_tokens", "max_completion_tokens", "n"):
        value = body.get(key)
        if value is not None and (type(value) is not int or value < 1):
            yield f"{value!r} is less than the minimum of 1 - {key!r}"
    for key, top in (("temperature", 2), ("top_p", 1)):
        value = body.get(key)
        if value is not None and not (type(value) in (int, float) and 0 <= value <= top):
            yield f"{value!r} is out of range - {key!r}"
    if not _is_response_format(body.get("response_format")):
        yield "Invalid value - 'response_format'"


def _is_response_format(value: Any) -> bool:
    match value:
        case None | {"type": "text" | "json_object"}:
            return True
        case {"type": "json_schema", "json_schema": {"name": str(name), "schema": dict()}}:
            return NAME.match(name) is not None
        case _:
            return False


def _tools_faults(tools: Any) -> Iterator[str]:
    if tools is None:
        return
    if not isinstance(tools, list) or not tools:
        yield "[] is too short - 'tools'"
        return
    names: list[str] = []
    for index, tool in enumerate(tools):
        where = f"tools[{index}]"
        if not isinstance(tool, dict) or tool.get("type") != "function":
            yield f"{where}.type must be 'function'"
            continue
        yield from _function_faults(tool.get("function"), where)
        if isinstance(tool.get("function"), dict):
            names.append(str(tool["function"].get("name")))
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"tools: the name {name!r} is given twice"


def _function_faults(function: Any, where: str) -> Iterator[str]:
    if not isinstance(function, dict):
        yield f"Missing required parameter: '{where}.function'"
        return
    if not isinstance(function.get("name"), str) or not NAME.match(function["name"]):
        yield f"Invalid '{where}.function.name': {function.get('name')!r}"
    if not isinstance(function.get("description", "x"), str):
        yield f"{where}.function.description is not a string"
    for key in sorted(function.keys() - {"name", "description", "parameters", "strict"}):
        yield f"Unknown parameter: '{where}.function.{key}'"
    parameters = function.get("parameters", {"type": "object"})
    if not isinstance(parameters, dict) or parameters.get("type") != "object":
        yield f"Invalid schema for {where}: schema must be a JSON Schema of 'type: \"object\"'"
        return
    yield from schema_faults(parameters, f"{where}.parameters")


def schema_faults(schema: Any, where: str) -> Iterator[str]:
    """What is no JSON Schema that a provider takes; the same in every style."""
    if not isinstance(schema, dict):
        yield f"{where} is not a schema object"
        return
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    for kind in kinds:
        if kind not in SCHEMA_TYPES:
            yield f"{where}.type: {kind!r} is not valid under any of the given schemas"
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        yield f"{where}.properties is not an object"
        return
    required = schema.get("required", [])
    if not isinstance(required, list) or not set(map(str, required)) <= properties.keys():
        yield f"{where}.required names what properties do not hold: {required!r}"
    if "array" in kinds and "items" not in schema:
        yield f"{where}: array schema missing items"
    for key, inner in properties.items():
        yield from schema_faults(inner, f"{where}.properties.{key}")
    if "items" in schema:
        yield from schema_faults(schema["items"], f"{where}.items")


def _messages_faults(messages: Any) -> Iterator[str]:
    if not isinstance(messages, list) or not messages:
        yield "Invalid 'messages': empty array. Expected an array with minimum length 1"
        return
    known = [m for m in messages if isinstance(m, dict) and m.get("role") in MESSAGE_KEYS]
    if len(known) != len(messages):
        yield f"messages: unknown role in {[_role(message) for message in messages]}"
        return
    for index, message in enumerate(messages):
        yield from _message_faults(message, f"messages[{index}]")
    yield from _order_faults(messages)
    yield from _pair_faults(messages)


def _role(message: Any) -> Any:
    return message.get("role") if isinstance(message, dict) else message


def _message_faults(message: dict[str, Any], where: str) -> Iterator[str]:
    role = message["role"]
    for key in sorted(message.keys() - MESSAGE_KEYS[role]):
        yield f"Additional properties are not allowed ({key!r} was unexpected) - '{where}'"
    content = message.get("content")
    if content is None and not (role == "assistant" and message.get("tool_calls")):
        yield f"Invalid value for 'content': expected a string, got null - '{where}.content'"
    elif content is not None:
        yield from _content_faults(content, role, f"{where}.content")
    if "tool_calls" in message and message["tool_calls"] is not None:
        yield from _calls_faults(message["tool_calls"], f"{where}.tool_calls")
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        yield f"Missing required parameter: '{where}.tool_call_id'"


def _content_faults(content: Any, role: str, where: str) -> Iterator[str]:
    if isinstance(content, str):
        if not content.strip():
            yield f"{where}: text content must not be blank"
        return
    if not isinstance(content, list) or not content:
        yield f"{where}: expected one of a string or a non-empty array of objects"
        return
    for index, part in enumerate(content):
        yield from _part_faults(part, role, f"{where}[{index}]")


def _part_faults(part: Any, role: str, where: str) -> Iterator[str]:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind not in PART_KEYS or (kind != "text" and role != "user"):
        yield f"Invalid value: {kind!r} - '{where}.type'"
    elif set(part) - {"type", PART_KEYS[kind]} or PART_KEYS[kind] not in part:
        yield f"{where}: a part of type {kind!r} holds {sorted(part)}"
    elif kind == "text" and not (isinstance(part["text"], str) and part["text"].strip()):
        yield f"{where}: text content must not be blank"
    elif kind == "image_url":
        yield from _url_faults((part["image_url"] or {}).get("url"), where)


def _url_faults(url: Any, where: str) -> Iterator[str]:
    if not isinstance(url, str) or not url.startswith(("http", "data:image/")):
        yield f"{where}: image_url holds no url"
    elif url.startswith("data:"):
        try:
            if not base64.b64decode(url.partition(",")[2], validate=True):
                yield f"{where}: the image is empty"
        except (binascii.Error, ValueError):
            yield f"{where}: the image is no valid base64"


def _calls_faults(calls: Any, where: str) -> Iterator[str]:
    if not isinstance(calls, list) or not calls:
        yield f"[] is too short - '{where}'"
        return
    for index, call in enumerate(calls):
        here = f"{where}[{index}]"
        if not isinstance(call, dict) or set(call) != {"id", "type", "function"}:
            yield f"{here}: a tool call holds id, type and function, not {call!r}"
            continue
        if call["type"] != "function":
            yield f"{here}.type is {call['type']!r}"
        if not isinstance(call["id"], str) or not call["id"].strip():
            yield f"{here}.id is empty"
        elif len(call["id"]) > MAX_ID_LENGTH:
            yield f"{here}.id: string too long. Expected a string with maximum length 40"
        yield from _call_function_faults(call["function"], here)


def _call_function_faults(function: Any, where: str) -> Iterator[str]:
    if not isinstance(function, dict) or set(function) != {"name", "arguments"}:
        yield f"{where}.function holds name and arguments, not {function!r}"
        return
    if not isinstance(function["name"], str) or not NAME.match(function["name"]):
        yield f"Invalid '{where}.function.name': {function['name']!r}"
    if not isinstance(function["arguments"], str):
        yield f"{where}.function.arguments is no string"
        return
    try:
        arguments = strict_json(function["arguments"].encode("utf-8", "surrogatepass"))
    except ValueError as error:
        yield f"{where}.function.arguments is not JSON: {error}"
        return
    if not isinstance(arguments, dict):
        yield f"{where}.function.arguments is no JSON object"


def _order_faults(messages: list[dict[str, Any]]) -> Iterator[str]:
    roles = [message["role"] for message in messages]
    talk = [role for role in roles if role not in ("system", "developer")]
    if not talk or talk[0] != "user":
        yield f"messages: the first message that is not system must be from the user: {roles}"
    if roles[-1] not in ("user", "tool"):
        yield f"messages: the last message must be from the user or a tool: {roles}"
    if len(talk) != len(roles) and "user" in roles:
        head = roles[: len(roles) - len(talk)]
        if set(head) - {"system", "developer"}:
            yield f"messages: system messages must be at the beginning: {roles}"


def _pair_faults(messages: list[dict[str, Any]]) -> Iterator[str]:
    seen: set[str] = set()
    open_ids: list[str] = []
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if message["role"] == "tool":
            answered = str(message.get("tool_call_id"))
            if answered not in open_ids:
                yield (
                    f"{where}: messages with role 'tool' must be a response to a preceding message"
                    f" with 'tool_calls'; {answered!r} is not open"
                )
            elif answered != open_ids[0]:
                yield f"{where}: {answered!r} is answered before {open_ids[0]!r}"
            open_ids = [open_id for open_id in open_ids if open_id != answered]
            continue
        if open_ids:
            yield f"{where}: these tool_call_ids did not have response messages: {open_ids}"
        open_ids = _call_ids(message)
        for call_id in open_ids:
            if call_id in seen or open_ids.count(call_id) > 1:
                yield f"{where}: the tool call id {call_id!r} is used twice"
        seen.update(open_ids)
    if open_ids:
        yield f"messages: these tool_call_ids did not have response messages: {open_ids}"


def _call_ids(message: dict[str, Any]) -> list[str]:
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        return []
    return [str(call.get("id")) for call in calls if isinstance(call, dict)]
