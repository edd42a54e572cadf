"""magent's session files: one JSON object with an id, the messages and a time (M4.2).

Messages are role and content there, oldest first; what else was in a file goes out again as it
came. A file of Tiro's own has `schema_version` and is no magent file.
"""

from typing import Any

import msgspec

from tiro.session.foreign import given_back, taken
from tiro.session.json_text import clean, encode
from tiro.session.snapshot import FIELDS
from tiro.session.times import from_rfc3339
from tiro.stores.formats import json
from tiro.stores.formats.format import OTHERS, Format, Imported, history, others_of, refused


def dumps(fields: dict[str, Any]) -> str:
    """One JSON object; all messages that were not taken back, as the file has no archive."""
    value = {
        "id": fields["id"],
        "messages": [given_back(message, has_times=False) for message in history(fields)],
        "timestamp": _stamp(fields.get("timestamp")),
    }
    return msgspec.json.format(encode({**others_of(fields), **value}), indent=2).decode() + "\n"


def loads(text: str) -> Imported:
    """Read such a file, the oldest or the newest message first (answer 17)."""
    value = json.decode_or_none(clean(text).encode())
    rows = value.get("messages") if isinstance(value, dict) else None
    if not isinstance(rows, list):
        return json.loads(text)  # which says what is wrong with it
    try:
        messages = [taken(row, has_times=False).to_dict() for row in rows]
    except (KeyError, TypeError) as error:
        raise refused(f"One of the file's messages is no message ({error})") from error
    imported = json.read(encode({**value, "messages": messages}), value)
    if [m.content for m in imported.stored.messages] != [m["content"] for m in messages]:
        imported.notes.append("The messages came newest first; they go out oldest first")
    return imported


def looks_like(text: str) -> bool:
    """Whether it is an object with id, messages and time, and with nothing that only Tiro has."""
    if not json.looks_like(text) or '"schema_version"' in text[:_LOOK]:
        return False
    try:
        found = msgspec.json.decode(text.removeprefix("\ufeff"), type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    own = found.keys() & (FIELDS.keys() | {"archive", "schema_version"})
    return own == {"id"} and {"messages", "timestamp"} <= found.keys()


def _stamp(text: str | None) -> str | None:
    time = from_rfc3339(text)
    return text if time is None else f"{time.astimezone():%Y-%m-%dT%H:%M:%S%z}"


_LOOK = 1_000

FORMAT = Format("magent", dumps, loads, looks_like, json.earlier_id, frozenset((OTHERS,)))
