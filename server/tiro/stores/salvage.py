"""What can still be read of a damaged session file, as a session file that is whole.

A file of ours has a line for each field and each message, so damage costs the lines that it hits.
Of a file in another layout the messages up to the damage are taken.
"""

import json
from typing import Any

from tiro.session.json_text import decode, encode
from tiro.session.messages import Message
from tiro.session.snapshot import FIELDS, LISTS, SCHEMA_VERSION


def salvaged(data: bytes) -> tuple[bytes, int]:
    """A session file made of what can be read, and how many messages are in it."""
    fields, lists = _by_line(data)
    if not any(lists.values()):
        lists["messages"] = _up_to_the_damage(data)
    whole = {"schema_version": SCHEMA_VERSION, **fields, **lists}
    return encode(whole), sum(map(len, lists.values()))


def _by_line(data: bytes) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    fields: dict[str, Any] = {}
    lists: dict[str, list[Any]] = {name: [] for name in LISTS}
    current = LISTS[0]
    for line in data.split(b"\n"):
        text = line.strip().rstrip(b",")
        begun = next((name for name in LISTS if text.startswith(b'"%b":[' % name.encode())), None)
        current = begun or current
        value = _object(text)
        if value is not None and _is_message(value):
            lists[current].append(value)
            continue
        field = value or _object(b"{%b}" % text.removeprefix(b"{")) or {}
        fields |= {name: item for name, item in field.items() if name in FIELDS}
    return fields, lists


def _up_to_the_damage(data: bytes) -> list[Any]:
    text = data.decode("utf-8", "replace")
    start = text.find('"messages"')
    position = text.find("[", start) + 1 if start >= 0 else 0
    decoder, found = json.JSONDecoder(), list[Any]()
    while position:
        while position < len(text) and text[position] in " \t\r\n,":
            position += 1
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        if not _is_message(value):
            break
        found.append(value)
    return found


def _object(text: bytes) -> dict[str, Any] | None:
    if not text.startswith(b"{"):
        return None
    try:
        value = decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _is_message(value: Any) -> bool:
    try:
        Message.from_dict(value)
    except (KeyError, TypeError):
        return False
    return True
