"""What a session does with entries: take one after the other, give the newest (part G)."""

import copy
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tiro.session.core import Core
from tiro.session.entries import TOOL_RESULT, Entry, EntryContent, checked_entry
from tiro.session.entry_view import CALL, OpenCalls, entry_mark, message_of, tools_of, view
from tiro.session.messages import Message
from tiro.session.times import from_rfc3339

_MILLISECOND = timedelta(milliseconds=1)


def add_entry(core: Core, entry: Any) -> None:
    """Append an entry as one message; it keeps its id, time and metadata (U6.3).

    A tool result without a `call_id` in its metadata answers the oldest open call of its tool.
    Raises TypeError for what is no Entry, ValueError for one of an unknown type; a value in it
    that cannot be copied is kept as its text. O(1), for such a tool result O(window).
    """
    given = owned(checked_entry(entry))
    with core.lock:
        calls = OpenCalls()
        if given.type == TOOL_RESULT and CALL not in given.metadata:
            for message in core.oldest_first():
                calls.see(message)
        core.append(message_of(given, calls.id_for(given)))


def newest_entries(core: Core, limit: int) -> list[Entry]:
    """The newest entries of the full history, the newest first; all where limit <= 0 (G1.5).

    Times decide, and of equal ones the later added is the newer. Copies that share nothing.
    O(n log n).
    """
    with core.lock:
        rows, scope, at = core.full(), core.id or "", core.updated
    tools, times = tools_of(rows), _times(rows, at)
    found: list[Entry] = []
    for index in sorted(range(len(rows)), key=times.__getitem__)[::-1]:
        found += reversed(view(rows[index], tools, scope, at))
        if 0 < limit <= len(found):
            break
    return copy.deepcopy(found[:limit] if limit > 0 else found)


def owned(entry: Entry) -> Entry:
    """The entry, sharing nothing with what was given; what cannot be copied is kept as its text."""
    content, metadata = _owned(entry.content), _owned(entry.metadata)
    return msgspec.structs.replace(entry, content=content, metadata=metadata)


def _times(messages: Iterable[Message], at: datetime) -> list[datetime]:
    """When each message was added, as far as they are sorted by it.

    Our own times are cut to milliseconds, those of entries are not: within its millisecond, what
    we stamped counts as later than what was added before it.
    """
    times: list[datetime] = []
    latest = datetime.min.replace(tzinfo=UTC)
    for message in messages:
        time = from_rfc3339(message.timestamp) or at
        if entry_mark(message) is None and latest - time < _MILLISECOND:
            time = max(time, latest)
        latest = max(latest, time)
        times.append(time)
    return times


def _owned(value: Any) -> Any:
    """A copy that shares nothing with what was given; the text of what cannot be copied."""
    try:
        return copy.deepcopy(value)
    except Exception:  # whatever the value's own code raises
        pass
    if isinstance(value, EntryContent):
        fields = {name: _owned(item) for name, item in msgspec.structs.asdict(value).items()}
        return msgspec.structs.replace(value, **fields)
    if isinstance(value, dict):
        return {key: _owned(item) for key, item in value.items()}
    return [_owned(item) for item in value] if isinstance(value, list | tuple) else str(value)
