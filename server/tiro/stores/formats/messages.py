"""A JSON array of messages as OpenAI and Anthropic take them in a request. Only read.

Both spellings of tool data are Tiro's own too (U1.9), so messages stay as they are, but that each
tool result becomes a message and that pictures are spelt as ours.
"""

from typing import Any

from tiro.session.json_text import clean
from tiro.stores.formats import json
from tiro.stores.formats.conversation import Conversation
from tiro.stores.formats.format import Format, Imported, no_dumps, no_export, refused


def loads(text: str) -> Imported:
    """Read such an array; SessionFormatError names the first item that is no message."""
    rows = json.decode_or_none(clean(text.removeprefix("\ufeff")).encode())
    if not isinstance(rows, list):
        raise refused("It is no list of messages, or it is damaged")
    conversation = Conversation()
    for number, row in enumerate(rows, 1):
        if not _is_message(row):
            raise refused(f"Item {number} of the list is no message", number - 1)
        content = row.get("content")
        if content == [] and not _uses_tool(row):
            conversation.leave_out("messages without content")
            continue
        if not content or not isinstance(content, list):
            conversation.rows.append({**row, "content": content or ""})
            continue
        conversation.add(row["role"], content, row.get("timestamp"))
        more = {key: value for key, value in row.items() if key not in ("role", "content")}
        conversation.rows[-1] = {**conversation.rows[-1], **more}
    return conversation.imported(None)


def looks_like(text: str) -> bool:
    """Whether it is an array whose first item is a message."""
    return text.lstrip("\ufeff \t\r\n")[:1] == "[" and _is_message(json.first_item(text))


def _is_message(row: Any) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("role"), str):
        return False
    says_nothing = row.get("content") is None and _uses_tool(row)
    return says_nothing or isinstance(row.get("content"), str | list | dict)


def _uses_tool(row: dict[str, Any]) -> bool:
    return bool(row.get("tool_calls") or row.get("function_call"))


FORMAT = Format("messages", no_dumps, loads, looks_like, no_export)
