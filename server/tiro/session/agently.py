"""The Agently form of a session: its two histories, memo and counters as JSON or YAML (A8).

What is read is read whole before anything changes, and then becomes true in one commit. The form
knows neither seqs nor marks: the window is found again at the end of the full history, by content.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import msgspec

from tiro.session import yaml_text
from tiro.session.changes import Change, Clear, Replace, Set
from tiro.session.core import Core
from tiro.session.foreign import given_back, taken
from tiro.session.json_text import decode, encode
from tiro.session.memo import facts
from tiro.session.messages import Message, seq_of
from tiro.session.redact import redact_shapes_in
from tiro.session.settings import is_plain
from tiro.session.times import rfc3339

HISTORIES = ("full_chat_history", "current_chat_history")
COUNTERS = ("turns", "last_resize_turn", "memo_cursor")
MAX_COUNT = 2**53 - 1
"""The largest integer that every reader of JSON keeps."""


def to_json(core: Core) -> str:
    """The session as JSON text, non-ASCII readable."""
    return msgspec.json.format(encode(form(core)), indent=2).decode()


def to_yaml(core: Core) -> str:
    """The session as YAML text."""
    return yaml_text.dumps(decode(encode(form(core))))


def load_json(core: Core, text: str) -> None:
    """Fill the session from JSON text, as `load` does; ValueError for what is no JSON."""
    try:
        value = decode(text)
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error
    load(core, value)


def load_yaml(core: Core, text: str) -> None:
    """Fill the session from YAML text, as `load` does; ValueError for what is no YAML."""
    load(core, yaml_text.loads(text)[0])


def form(core: Core) -> dict[str, Any]:
    """The session as plain values with the keys of A8.2.

    Messages that were taken back are left out (answer 4), and so are settings that are inherited,
    that JSON cannot hold, or that look like credentials (A8.6).
    """
    with core.lock:
        return {
            "id": core.id,
            "memo": core.memo,
            "full_chat_history": [_plain(message) for message in core.full()],
            "current_chat_history": [_plain(message) for message in core.oldest_first()],
            "settings": _shown(core.own_settings),
            **{name: getattr(core, name) for name in COUNTERS},
        }


def load(core: Core, value: Any) -> None:
    """Take over the keys that `value` has (A8.3), in one commit; `value` is the session's then.

    A new full history replaces the old one and all that was known of it. Raises TypeError for
    what is no dict, KeyError, TypeError or ValueError for a part that cannot be what it should
    be; nothing has changed then.
    """
    if not isinstance(value, dict):
        raise TypeError(f"A session must be a dict of its parts, not a {type(value).__name__}")
    with core.lock:
        try:
            changes = _changes(core, value)
        except RecursionError as error:
            raise ValueError(_TOO_DEEP) from error
        if isinstance(taken := value.get("settings"), dict):
            core.live_settings = {k: v for k, v in core.live_settings.items() if k not in taken}
        core.commit(*changes)
        core.prune()


def places(full: Sequence[Message], window: Sequence[Message]) -> list[int | None]:
    """Where in the full history each message of the window stands; None: nowhere (U7.5).

    Both are compared by content from their ends, and messages between two matches may be missing.
    O(full + window).
    """
    found = defaultdict[str, list[int]](list)
    for index, message in enumerate(full):
        found[_key(message)].append(index)
    end, matched = len(full), list[int | None]()
    for message in reversed(window):
        candidates = found.get(_key(message), [])
        while candidates and candidates[-1] >= end:
            candidates.pop()
        place = candidates.pop() if candidates else None
        end = end if place is None else place
        matched.append(place)
    return matched[::-1]


def _changes(core: Core, value: Mapping[str, Any]) -> list[Change]:
    given = {name: _messages(name, value[name]) for name in HISTORIES if name in value}
    full = given.get(HISTORIES[0], core.full())
    window = given.get(HISTORIES[1], core.oldest_first())
    spots = places(full, window)
    fields = _fields(core, value, len(full))
    at = core.stamp()
    changes: list[Change] = [Clear(True, at)] if HISTORIES[0] in given else []
    if given:
        has_memo = bool(facts(fields.get("memo", core.memo)))
        covered = fields["memo_cursor"] if has_memo else 0
        is_own = HISTORIES[0] not in given
        apart = [m for m in core.archive_rows if is_own and m.marks().keys() & _APART]
        shown = list(zip(window, spots, strict=True))
        changes.append(_replacement(core, full, shown, covered, apart, at))
    return [*changes, Set(fields, at)]


def _replacement(
    core: Core,
    full: Sequence[Message],
    window: Sequence[tuple[Message, int | None]],
    covered: int,
    apart: Sequence[Message],
    at: str,
) -> Replace:
    """The two histories as the session's; messages without a seq get the next ones, in order.

    Those that are new and out of the window wait for a summary, but for the first `covered`, which
    are in the memo (U4.1). `apart` are messages of the archive that no full history holds.
    """
    numbers, time = count(core.next_seq), rfc3339(core.updated)
    rows = [_numbered(message, numbers, time) for message in full]
    shown = {spot for _, spot in window if spot is not None}
    messages = [
        _numbered(message.marked(window_only=True), numbers, time)
        if spot is None
        else rows[spot].marked(pending=None)
        for message, spot in window
    ]
    left = {message.seq for message in core.newest_first}
    archive = [
        row.marked(pending=True)
        if row.seq in left or (given.seq is None and index >= covered)
        else row
        for index, (row, given) in enumerate(zip(rows, full, strict=True))
        if index not in shown
    ]
    return Replace(messages, sorted([*apart, *archive], key=seq_of), at)


def _numbered(message: Message, numbers: Iterator[int], at: str) -> Message:
    if message.seq is not None:
        return message
    return msgspec.structs.replace(message, seq=next(numbers), timestamp=message.timestamp or at)


def _messages(name: str, rows: Any) -> list[Message]:
    """A list of messages without seq, with marks that tell what they came without."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise TypeError(f"{name} must be a list of messages, each of them a dict")
    return [taken(row, has_times=False) for row in rows]


def _fields(core: Core, value: Mapping[str, Any], length: int) -> dict[str, Any]:
    """The fields besides the histories, counters clamped to what they can be (A8.7)."""
    counts = {
        name: _count(name, value[name]) if name in value else getattr(core, name)
        for name in COUNTERS
    }
    fields: dict[str, Any] = {
        "turns": counts["turns"],
        "last_resize_turn": min(counts["last_resize_turn"], counts["turns"]),
        "memo_cursor": min(counts["memo_cursor"], length),
    }
    if value.get("id") is not None:
        fields["id"] = str(value["id"])
    if "memo" in value:
        fields["memo"] = value["memo"]
    if isinstance(value.get("settings"), dict):
        fields["settings"] = {**core.own_settings, **value["settings"]}
    return fields


def _count(name: str, value: Any) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        return min(max(0, int(value)), MAX_COUNT)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be a whole number, not {value!r}") from error


def _plain(message: Message) -> dict[str, Any]:
    """A message without what Tiro added to it: seq, marks, and a time that it did not bring."""
    return given_back(message, has_times=False)


def _key(message: Message) -> str:
    return json.dumps(_plain(message), sort_keys=True, skipkeys=True, default=str)


def _shown(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that may go out."""
    return {
        key: _shown(value) if isinstance(value, dict) else value
        for key, value in settings.items()
        if is_plain(value) and not _CREDENTIAL.search(key) and redact_shapes_in(value) == value
    }


_APART = {"taken_back", "window_only"}
"""Marks of messages that are in no full history."""
_TOO_DEEP = "The session is nested too deeply to be read"
_CREDENTIAL = re.compile(
    r"(?:(?:api|access|private|secret)[_-]?key|secret|passw(?:or)?d|token|authorization|credentials?)$",
    re.IGNORECASE,
)
"""Names of settings that are not for anybody else."""
