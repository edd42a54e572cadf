"""Messages as OpenAI and Anthropic take them: a JSON array, or a whole request. Only read.

Both spellings of tool data are Tiro's own too (U1.9), so messages stay as they are, but that each
tool result becomes a message and that pictures are spelt as ours. Among them may be the items that
OpenAI's newer API takes and gives, which become messages.
"""

from typing import Any

import msgspec

from tiro.session.json_text import clean, encode
from tiro.session.snapshot import FIELDS
from tiro.stores.formats import json, responses
from tiro.stores.formats.conversation import Conversation
from tiro.stores.formats.format import Format, Imported, no_dumps, no_export, refused


def loads(text: str) -> Imported:
    """Read such an array; SessionFormatError names the first item that is no message."""
    rows = json.decode_or_none(clean(text.removeprefix("\ufeff")).encode())
    if not isinstance(rows, list):
        raise refused("It is no list of messages, or it is damaged")
    conversation, calls = Conversation(), list[str]()
    for number, row in enumerate(rows, 1):
        if isinstance(row, dict) and not _is_message(row) and isinstance(row.get("type"), str):
            responses.take(conversation, row)
        elif not _is_message(row):
            raise refused(f"Item {number} of the list is no message", number - 1)
        else:
            _take(conversation, _paired(row, calls))
    return conversation.imported(None)


def loads_request(text: str) -> Imported:
    """Read the messages of a request's body; what else is asked for in it is not taken over."""
    body = json.decode_or_none(clean(text.removeprefix("\ufeff")).encode())
    if not isinstance(body, dict):
        raise refused("It is no request, or it is damaged")
    said = body.get("messages", body.get("input"))
    rows = [{"role": "user", "content": said}] if isinstance(said, str) else said
    imported = loads(encode(rows).decode())
    if more := [words for name, words in _NOT_TAKEN.items() if body.get(name)]:
        imported.notes.append(f"Not taken over: {', '.join(more)}")
    return imported


def looks_like(text: str) -> bool:
    """Whether it is an array whose first item is a message."""
    first = json.first_item(text) if text.lstrip("\ufeff \t\r\n")[:1] == "[" else None
    return _is_message(first) or responses.is_item(first)


def looks_like_request(text: str) -> bool:
    """Whether it is an object with messages and what a request says besides, and none of ours."""
    if text.lstrip("\ufeff \t\r\n")[:1] != "{" or '"schema_version"' in text[:_LOOK]:
        return False
    try:
        found = msgspec.json.decode(text.removeprefix("\ufeff"), type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    is_own = bool(found.keys() & _OWN)
    has_messages = "messages" in found or ("input" in found and "model" in found)
    return has_messages and not is_own and not found.keys().isdisjoint(_REQUEST)


def _take(conversation: Conversation, row: dict[str, Any]) -> None:
    content, at = row.get("content") or "", row.get("timestamp")
    if not content and isinstance(row.get("refusal"), str):
        content = row["refusal"]
    if row.get("type") == "message":
        responses.take(conversation, row, at)
    elif not content and not _uses_tool(row) and row.get("content") != "":
        conversation.leave_out("messages without content")
    elif not content or not isinstance(content, list):
        conversation.rows.append({**row, "content": content})
    else:
        conversation.add(row["role"], content, at)
        more = {key: value for key, value in row.items() if key not in ("role", "content")}
        conversation.rows[-1] = {**conversation.rows[-1], **more}


def _paired(row: dict[str, Any], calls: list[str]) -> dict[str, Any]:
    """The row in today's spelling: a function's call and what it gave had no id once.

    `calls` are the ids of those that wait for their result.
    """
    call = row.get("function_call")
    if row["role"] == "assistant" and isinstance(call, dict) and not row.get("tool_calls"):
        calls.append(f"call_{len(calls) + 1}")
        kept = {key: value for key, value in row.items() if key != "function_call"}
        return {**kept, "tool_calls": [{"id": calls[-1], "type": "function", "function": call}]}
    if row["role"] == "function" and calls:
        return {**row, "role": "tool", "tool_call_id": calls[-1]}
    return row


def _is_message(row: Any) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("role"), str) or "content" not in row:
        return isinstance(row, dict) and isinstance(row.get("role"), str) and _uses_tool(row)
    return row["content"] is None or isinstance(row["content"], str | list | dict)


def _uses_tool(row: dict[str, Any]) -> bool:
    return bool(row.get("tool_calls") or row.get("function_call"))


_LOOK = 1_000
_NOT_TAKEN = {
    "system": "the system prompt",
    "instructions": "the system prompt",
    "tools": "the definitions of tools",
}
"""What people may miss of a request: field → our words for it."""
_REQUEST = {"model", "stream", "max_tokens", "temperature", *_NOT_TAKEN}
"""What a request has besides messages."""
_OWN = {*FIELDS, "archive", "schema_version", "timestamp"} - {"model", "metadata"}

FORMAT = Format("messages", no_dumps, loads, looks_like, no_export)
REQUEST = Format("request", no_dumps, loads_request, looks_like_request, no_export)
