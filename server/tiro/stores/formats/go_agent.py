"""go-agent's entries: a JSON array, a row for each thing that was said or done (G3, U6).

Each entry becomes a message and goes out again as it came, down to what Tiro reads less exactly (a
time in nanoseconds, fields that it does not know). Messages of Tiro's own become an entry for each
block, without the keys that would tie these together again.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import msgspec

from tiro.session.entries import CONTENTS, Entry
from tiro.session.entry_view import (
    BLOCK,
    CALL,
    SEQ,
    OpenCalls,
    entry_mark,
    message_of,
    says_less,
    tools_of,
    view,
)
from tiro.session.foreign import CAME_WITH
from tiro.session.json_text import clean, encode
from tiro.session.messages import MARKS, Message
from tiro.session.snapshot import SCHEMA_VERSION
from tiro.session.times import from_rfc3339
from tiro.stores.formats import json
from tiro.stores.formats.format import TIMES, Format, Imported, history, no_export, refused


def dumps(fields: dict[str, Any]) -> str:
    """The array, oldest first; a message without a time has that of the session's last change."""
    rows = [row for message, entries in _views(fields) for row in _rows(message, entries)]
    return msgspec.json.format(encode(rows), indent=2).decode() + "\n"


def loads(text: str) -> Imported:
    """Read the array; SessionFormatError names the first item that is no entry."""
    rows = json.decode_or_none(clean(text.removeprefix("\ufeff")).encode())
    if not isinstance(rows, list) or not rows:
        raise refused("It is no list of entries, or it is damaged")
    entries = [_entry(row, number) for number, row in enumerate(rows, 1)]
    notes = []
    if _is_newest_first(entries):
        entries, rows = entries[::-1], rows[::-1]
        notes.append("The entries came newest first; they go out oldest first")
    messages = [message.to_dict() for message in _messages(entries, rows)]
    fields = {"schema_version": SCHEMA_VERSION, "messages": messages}
    times = {"created_at": messages[0]["timestamp"], "updated_at": messages[-1]["timestamp"]}
    imported = json.read(encode({**fields, **times}), None)
    imported.notes += notes
    return imported


def looks_like(text: str) -> bool:
    """Whether it is an array whose first item is an entry."""
    first = json.first_item(text) if text.lstrip("\ufeff \t\r\n")[:1] == "[" else None
    if not isinstance(first, dict) or not {"id", "timestamp", "content"} <= first.keys():
        return False
    return any(first.get("type") == kind for kind in CONTENTS)


def losses(fields: dict[str, Any]) -> list[str]:
    """What an entry cannot say of a message: pictures, blocks and fields of other kinds."""
    less = sum(says_less(found) for message, found in _views(fields) if not entry_mark(message))
    kinds = "pictures, attachments, other blocks and fields"
    return [f"Messages of which entries say less ({kinds}): {less}"] if less else []


def _views(fields: dict[str, Any]) -> Iterator[tuple[Message, Sequence[Entry]]]:
    """Each message with its entries."""
    messages = history(fields)
    tools, scope = tools_of(messages), fields["id"] or ""
    at = from_rfc3339(fields["updated_at"]) or datetime.fromtimestamp(0, UTC)
    for message in messages:
        bare = message if entry_mark(message) else _without_marks(message)
        yield message, view(bare, tools, scope, at)


def _without_marks(message: Message) -> Message:
    metadata = {key: value for key, value in (message.metadata or {}).items() if key != MARKS}
    return msgspec.structs.replace(message, metadata=metadata or None)


def _rows(message: Message, entries: Sequence[Entry]) -> Iterator[dict[str, Any]]:
    """The entries of a message as they go out."""
    if entry_mark(message) is not None:
        came = message.marks().get(CAME_WITH)
        yield _as_it_came(entries[0].to_dict(), came if isinstance(came, dict) else {})
        return
    for entry in entries:
        kept = {k: v for k, v in entry.metadata.items() if k not in (SEQ, BLOCK, CALL, MARKS)}
        yield {**entry.to_dict(), "metadata": kept}


def _as_it_came(told: dict[str, Any], came: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with what it came with, as far as that says the same: its message may be edited."""
    row = dict(told)
    for name, value in came.items():
        try:
            if Entry.from_dict({**row, name: value}).to_dict() == told:
                row[name] = value
        except (TypeError, ValueError):
            continue
    return row


def _entry(row: Any, number: int) -> Entry:
    try:
        return Entry.from_dict(row)
    except (TypeError, ValueError) as error:
        raise refused(f"Item {number} of the list is no entry ({error})", number - 1) from error


def _messages(entries: Sequence[Entry], rows: Sequence[dict[str, Any]]) -> Iterator[Message]:
    calls = OpenCalls()
    for entry, row in zip(entries, rows, strict=True):
        message = message_of(entry, calls.id_for(entry))
        calls.see(message)
        told = entry.to_dict()
        came = {
            k: v for k, v in row.items() if v != told.get(k, _NOTHING) and (k, v) != _NO_METADATA
        }
        yield message.marked(**{CAME_WITH: came or None})


def _is_newest_first(entries: Sequence[Entry]) -> bool:
    times = [entry.timestamp for entry in entries]
    return times[0] > times[-1] and all(one >= next for one, next in pairwise(times))


_NOTHING = object()
_NO_METADATA = ("metadata", None)
"""It becomes {} and goes out so (G3.4)."""

FORMAT = Format("go-agent", dumps, loads, looks_like, no_export, frozenset((TIMES,)), losses)
