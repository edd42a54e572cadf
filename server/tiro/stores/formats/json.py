"""JSON: the form of the session file itself, lossless both ways (U7.1)."""

import re
from json import JSONDecoder
from typing import Any

from tiro.errors import SessionFormatError
from tiro.session.json_text import clean, decode, encode
from tiro.session.messages import Usage
from tiro.session.snapshot import FIELDS, LISTS, StoredSession, read_snapshot
from tiro.stores.formats.format import ALL, Format, Imported, refused


def dumps(fields: dict[str, Any]) -> str:
    """One JSON object, a line for each field and each message."""
    lines = [f'"{name}":{_line(value)}' for name, value in fields.items() if name not in LISTS]
    for name in LISTS:
        rows = ",\n".join(map(_line, fields[name]))
        lines.append(f'"{name}":[\n{rows}\n]' if rows else f'"{name}":[]')
    return "{" + ",\n".join(lines) + "}\n"


def loads(text: str) -> Imported:
    """Read a session file's text, of any schema that Tiro can read."""
    data = clean(text.removeprefix("\ufeff")).encode()
    value = decode_or_none(data)
    first, _, rest = data.strip().partition(b"\n")
    if value is None and rest and isinstance(decode_or_none(first), dict):
        raise refused("Its lines are JSON, but in no form of a conversation that Tiro knows")
    return read(data, value)


def read(data: bytes, value: Any) -> Imported:
    """Read a session from JSON, of which `value` is the plain value."""
    try:
        stored = read_snapshot(data)
    except SessionFormatError as error:
        raise refused(error.data["reason"], error.data["recovered"]) from error
    return Imported(stored, list(_repairs(value, stored)) if isinstance(value, dict) else [])


def looks_like(text: str) -> bool:
    """Whether the text is one JSON value, or begins like one."""
    return text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[")


def earlier_id(text: str) -> str | None:
    """The id in a session's JSON."""
    value = decode_or_none(text.encode("utf-8", "replace"))
    return id_in(value)


def id_in(value: Any) -> str | None:
    """The id in a session's plain value, None where that is no session."""
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        return None
    id = value.get("id", "")
    return id if isinstance(id, str) else ""


def first_item(text: str) -> Any:
    """The first item of a JSON array, or the value that is no array; None where it cannot be read.

    What follows that item is not looked at.
    """
    start = _START.match(text)
    try:
        value, _ = _FIRST.raw_decode(text, start.end() if start else 0)
    except (ValueError, RecursionError):
        return None
    return value


def decode_or_none(data: bytes) -> Any:
    """The value of a JSON text; None where it is none, or is nested too deeply."""
    try:
        return decode(data)
    except (ValueError, RecursionError):
        return None


def _line(value: Any) -> str:
    return encode(value).decode()


def _repairs(value: dict[str, Any], stored: StoredSession) -> list[str]:
    """What the reader did not take as it stood."""
    plain = {**stored.fields, "usage": decode(encode(stored.fields["usage"]), dict)}
    changed = [
        name for name in FIELDS if name in value and not _is_same(name, value[name], plain[name])
    ]
    notes = [f"The field {name!r} could not be used as it was" for name in changed]
    if _renumbered(value, stored):
        notes.append("Messages without a usable `seq` were numbered anew")
    return notes


def _is_same(name: str, given: Any, taken: Any) -> bool:
    if name == "usage" and isinstance(given, dict):
        return all(
            taken.get(key) == given[key] for key in given.keys() & set(Usage.__struct_fields__)
        )
    return bool(given == taken)


def _renumbered(value: dict[str, Any], stored: StoredSession) -> bool:
    rows = [row for name in LISTS for row in value.get(name) or ()]
    given = {row["seq"] for row in rows if isinstance(row.get("seq"), int)}
    taken = {row.seq for rows in (stored.messages, stored.archive) for row in rows}
    return bool(given - taken)


_START = re.compile(r"[\ufeff \t\r\n]*\[?[ \t\r\n]*")
_FIRST = JSONDecoder()

FORMAT = Format("json", dumps, loads, looks_like, earlier_id, ALL)
