"""JSON lines: one line of facts about the session, then one message a line (N6).

`last_consolidated` counts the messages at the beginning that are out of the window and covered by
the summary; those behind it are the window. What was taken back is not in it.
"""

import re
from collections.abc import Callable
from typing import Any

from tiro.session.json_text import encode
from tiro.session.messages import Message
from tiro.session.snapshot import SCHEMA_VERSION
from tiro.stores.formats import json, lines
from tiro.stores.formats.format import ALL, Format, Imported, history, refused

_FIRST = {"_type", "key", "created_at", "updated_at", "metadata", "last_consolidated", "summary"}
_BEGINS = re.compile(r'[\ufeff \t\r\n]*\{[ \t]*"(_type"\s*:\s*"metadata"|role"\s*:)')
"""How a message begins, or the line before them."""
_LEFT_OUT = {"id", "messages", "archive", "journal_n", "undo", "rules", "timestamp"}


def dumps(fields: dict[str, Any]) -> str:
    """The lines; further fields of the session stand as extra keys in the first one (N6.1)."""
    messages = history(fields)
    first = {
        "_type": "metadata",
        "key": fields["id"],
        "created_at": fields["created_at"],
        "updated_at": fields["updated_at"],
        "metadata": fields["metadata"],
        "last_consolidated": consolidated(fields),
        "summary": fields["summary"],
    }
    extra = {name: fields[name] for name in fields.keys() - _FIRST - _LEFT_OUT}
    ordered = {name: extra[name] for name in fields if name in extra}
    rows = [{**first, **ordered}, *(message.to_dict() for message in messages)]
    return "".join(encode(row).decode() + "\n" for row in rows)


def loads(text: str) -> Imported:
    """Read the lines; broken ones are left out and counted (N6.5)."""
    return read(text, _message)


def read(text: str, message_of: Callable[[dict[str, Any]], Message]) -> Imported:
    """Read the lines; `message_of` raises KeyError or TypeError for what is no message."""
    first: dict[str, Any] = {}
    messages: list[Message] = []
    bad = 0
    for value in lines.values(text):
        if isinstance(value, dict) and value.get("_type") == "metadata":
            first = first or value
            continue
        try:
            messages.append(message_of(value))
        except (KeyError, TypeError):
            bad += 1
    if not messages and not first:
        raise refused("It has no line that is a message")
    imported = json.read(encode(_fields(first, messages)), _given(first))
    imported.notes += lines.broken_note(bad)
    return imported


def looks_like(text: str) -> bool:
    """Whether one of the first lines is a whole object of this format, or too long to be seen."""
    return _BEGINS.match(text) is not None or any(
        value.get("_type") == "metadata" or "role" in value
        for value in lines.first_objects(text, 2)
    )


def earlier_id(text: str) -> str | None:
    """The key in the first line."""
    first = json.decode_or_none(text.partition("\n")[0].encode("utf-8", "replace"))
    if not isinstance(first, dict) or first.get("_type") != "metadata":
        return None
    return first.get("key") or ""


def consolidated(fields: dict[str, Any]) -> int:
    """How many messages at the beginning are covered: up to the first one that is pending."""
    archived = history({**fields, "messages": []})
    pending = (n for n, message in enumerate(archived) if message.marks().get("pending"))
    return next(pending, len(archived))


def _fields(first: dict[str, Any], messages: list[Message]) -> dict[str, Any]:
    """The session as the fields of its file."""
    covered = first.get("last_consolidated")
    if type(covered) is not int or not 0 <= covered <= len(messages):
        covered = 0  # never hides messages (N6.2)
    rows = [message.to_dict() for message in messages]
    window = [message.marked(pending=None).to_dict() for message in messages[covered:]]
    version = {"schema_version": SCHEMA_VERSION}  # so that nobody doubts the order of the lines
    return {**version, **_given(first), "messages": window, "archive": rows[:covered]}


def _given(first: dict[str, Any]) -> dict[str, Any]:
    """The first line's fields under the names of the session file."""
    given = {name: value for name, value in first.items() if name not in ("_type", "key")}
    given.pop("last_consolidated", None)
    if not isinstance(given.get("summary", ""), str):
        del given["summary"]
    return {"id": first.get("key"), **given}


def _message(value: Any) -> Message:
    if not isinstance(value, dict):
        raise TypeError("A message must be an object")
    return Message.from_dict(value)


FORMAT = Format("jsonl", dumps, loads, looks_like, earlier_id, ALL - {"rules", "undo"})
