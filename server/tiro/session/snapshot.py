"""The stored form of a session: one JSON object in snake_case (U7.1), read with care.

Reading never guesses silently: what is no session is refused with a reason and with the number of
messages that a repair could read. Within a session file each field stands for itself: one that is
missing or has a wrong type takes its default (U7.2), and fields that Tiro does not know are kept.
"""

import json
from itertools import pairwise
from typing import Any

import msgspec

from tiro.errors import SessionFormatError
from tiro.session.json_text import decode
from tiro.session.messages import Message, Usage, tool_results_of, tool_uses_of

SCHEMA_VERSION = 1

FIELDS: dict[str, tuple[Any, Any]] = {
    "id": (str | None, None),
    "title": (str | None, None),
    "agent": (str | None, None),
    "model": (str | None, None),
    "created_at": (str | None, None),
    "updated_at": (str | None, None),
    "max_history": (int | None, None),
    "next_seq": (int, 1),
    "journal_n": (int, 0),
    "turns": (int, 0),
    "last_resize_turn": (int, 0),
    "memo_cursor": (int, 0),
    "memo": (Any, {}),
    "summary": (str, ""),
    "state": (dict[str, Any], {}),
    "metadata": (dict[str, Any], {}),
    "pins": (list[int], []),
    "rules": (list[Any], []),
    "usage": (Usage, Usage()),
    "settings": (dict[str, Any], {}),
    "ttl_seconds": (float | None, None),
    "undo": (dict[str, Any] | None, None),
}
"""The fields of a session besides its messages: name → (type, default)."""

LISTS = ("messages", "archive")
"""The fields that hold its messages: the window, and what left it."""
_OTHERS = ("schema_version", "timestamp")


class StoredSession(msgspec.Struct):
    """A session as it was read from a file: every field valid, every message with its seq."""

    fields: dict[str, Any]
    """The fields of `FIELDS`, those that the file does not have with their defaults."""
    messages: list[Message]
    """The window, oldest first."""
    archive: list[Message]
    """What left the window, oldest first."""
    timestamp: str | None
    """When the file was saved, as written in it (local time with its offset)."""
    unknown: dict[str, Any]
    """Top-level fields that Tiro does not know; they are written back as they came."""


def read_snapshot(data: bytes) -> StoredSession:
    """Read the bytes of a session file.

    Raises SessionFormatError, with `reason` and `recovered` in its data, for what is no session
    or of a newer schema (`is_newer`). 10,000 messages cost 0.6 × `json.loads` of the same bytes.
    """
    try:
        return _read(data.removeprefix(b"\xef\xbb\xbf"))
    except RecursionError as error:
        raise _unreadable("The file is nested too deeply", 0) from error


def _read(data: bytes) -> StoredSession:
    raw = _top_level(data)
    stored = {name: _field(raw, name) for name in FIELDS}
    messages, archive = (_messages(raw.get(name), data) for name in LISTS)
    timestamp = _value(raw["timestamp"], str | None) if "timestamp" in raw else None
    if "schema_version" not in raw and _is_newest_first(messages):
        messages.reverse()
    session = StoredSession(stored, messages, archive, timestamp, {})
    for name in raw.keys() - FIELDS.keys() - {*LISTS, *_OTHERS}:
        session.unknown[name] = _unknown_value(raw[name])
    _repair(session)
    return session


def recoverable(data: bytes) -> int:
    """How many messages of a damaged file can still be read, from the first one on."""
    text = data.decode("utf-8", "replace")
    start = text.find('"messages"')
    position = text.find("[", start) + 1 if start >= 0 else 0
    if position == 0:
        return 0
    decoder, count = json.JSONDecoder(), 0
    while True:
        while position < len(text) and text[position] in " \t\r\n,":
            position += 1
        try:
            value, position = decoder.raw_decode(text, position)
            Message.from_dict(value)
        except (ValueError, KeyError, TypeError, RecursionError):
            return count
        count += 1


def _top_level(data: bytes) -> dict[str, msgspec.Raw]:
    """The fields of the file, each still as bytes, or the error that says what it is instead."""
    if not data.lstrip(b"\x00 \t\r\n"):  # at its end it would be copied
        raise _unreadable("The file is empty" if not data.strip() else "The file holds no text", 0)
    try:
        raw = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError as error:
        raise _unreadable("The file holds no session, but another kind of value", 0) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raw = _top_level_slowly(data, error)
    if "messages" not in raw or not _is_list(raw["messages"]):
        raise _unreadable("The file has no list of messages", 0)
    version = _value(raw["schema_version"], Any) if "schema_version" in raw else SCHEMA_VERSION
    if type(version) is not int or version < 1:
        raise _unreadable(f"The file's schema_version {version!r} is no version", 0)
    if version > SCHEMA_VERSION:
        raise _unreadable(
            f"The file was written by a newer Tiro (schema {version}, this one reads up to"
            f" {SCHEMA_VERSION}); update Tiro to open it",
            0,
            is_newer=True,
        )
    return raw


def _is_list(raw: msgspec.Raw) -> bool:
    return bytes(memoryview(raw)[:64]).lstrip()[:1] == b"["


def _top_level_slowly(data: bytes, cause: Exception) -> dict[str, msgspec.Raw]:
    """The same for JSON that only a lenient reader accepts: lone surrogates, NaN, huge numbers."""
    try:
        value = decode(data)
    except ValueError:
        reason = f"The file is no valid JSON ({cause})"
        raise _unreadable(reason, recoverable(data)) from cause
    if not isinstance(value, dict):
        raise _unreadable("The file holds no session, but another kind of value", 0)
    return {name: msgspec.Raw(msgspec.json.encode(item)) for name, item in value.items()}


def _unreadable(reason: str, recovered: int, **more: bool) -> SessionFormatError:
    return SessionFormatError(reason, reason=reason, recovered=recovered, **more)


def _field(raw: dict[str, msgspec.Raw], name: str) -> Any:
    kind, default = FIELDS[name]
    if name not in raw:
        return default.copy() if isinstance(default, dict | list) else default
    value = _value(raw[name], kind, default)
    return max(0, value) if kind is int else value


def _value(raw: msgspec.Raw, kind: Any, default: Any = None) -> Any:
    text = bytes(raw)
    try:
        return decode(text, kind)
    except ValueError:
        _check_encoding(text)
        return default.copy() if isinstance(default, dict | list) else default


def _unknown_value(raw: msgspec.Raw) -> Any:
    """A field that Tiro does not know; what cannot be read could not be written back either."""
    try:
        return decode(bytes(raw))
    except ValueError as error:
        raise _unreadable(f"The file holds a value that cannot be read ({error})", 0) from error


def _check_encoding(text: bytes) -> None:
    """Text that is no UTF-8 is damage, not a wrong type."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise _unreadable("The file is not valid UTF-8", 0) from error


def _messages(raw: msgspec.Raw | None, data: bytes) -> list[Message]:
    """A list of messages: strictly in one go, else each one by itself."""
    if raw is None or bytes(raw) == b"null":
        return []
    try:
        return msgspec.json.decode(raw, type=list[Message])
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        return [_message(item) for item in msgspec.json.decode(raw, type=list[msgspec.Raw])]
    except (msgspec.DecodeError, ValueError, KeyError, TypeError) as error:
        reason = f"One of the file's messages is no message ({error})"
        raise _unreadable(reason, recoverable(data)) from error


def _message(raw: msgspec.Raw) -> Message:
    try:
        return _MESSAGE.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        value = decode(bytes(raw))
    if not isinstance(value, dict):
        raise TypeError("it is no object")
    return Message.from_dict(value)


def _is_newest_first(messages: list[Message]) -> bool:
    """Whether a file without a version lists the newest message first (some old writers did).

    What uses and results say outweighs times; an id may be used again and again, and the oldest
    results may have lost their uses.
    """
    used, answered, votes = set[str](), set[str](), 0
    for message in messages:
        for use in tool_uses_of(message):
            votes += use.id in answered
            used.add(use.id)
        for result in tool_results_of(message):
            votes -= result.tool_use_id in used
            answered.add(result.tool_use_id)
    times = [message.timestamp for message in messages if message.timestamp]
    is_falling = len(times) > 1 and all(a > b for a, b in pairwise(times))
    return votes > 0 or (votes == 0 and is_falling)


def _repair(session: StoredSession) -> None:
    """Make seqs unique and growing, bring counters into range."""
    fields = session.fields
    if not _seqs_are_good(session):
        _number_again(session)
    highest = max((m.seq or 0 for m in session.messages + session.archive), default=0)
    fields["next_seq"] = max(fields["next_seq"], highest + 1, 1)
    fields["memo_cursor"] = min(fields["memo_cursor"], len(session.messages) + len(session.archive))
    fields["last_resize_turn"] = min(fields["last_resize_turn"], fields["turns"])
    if fields["max_history"] is not None and fields["max_history"] < 1:
        fields["max_history"] = None
    in_window = {m.seq for m in session.messages}
    fields["pins"] = [seq for seq in fields["pins"] if seq in in_window]


def _seqs_are_good(session: StoredSession) -> bool:
    """Every message has a seq of its own; taken-back wordings may share theirs (U1.2)."""
    live = [m.seq for m in session.messages]
    live += [m.seq for m in session.archive if not m.marks().get("taken_back")]
    if not all(type(seq) is int and seq > 0 for seq in live):
        return False
    return len(set(live)) == len(live) and all(m.seq for m in session.archive)


def _number_again(session: StoredSession) -> None:
    number = 0
    for messages in (session.archive, session.messages):
        for index, message in enumerate(messages):
            number += 1
            messages[index] = msgspec.structs.replace(message, seq=number)


_MESSAGE = msgspec.json.Decoder(Message)
