"""Messages of other programs as ours, and back as they came (U7.4).

What Tiro had to give such a message, or to spell otherwise, is told by marks on it: whoever writes
it in the form of its program again takes that back.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from tiro.session.messages import MARKS, Message

_TIMED, CAME_WITH = "timed", "came_with"
MARKED = (_TIMED, CAME_WITH)
"""The marks: whether it came with a time where that is not usual; fields that it came with and that
are none of ours (nulls, metadata that are empty or no object)."""


def taken(row: Any, has_times: bool) -> Message:
    """A message of another program as one of ours that has no seq yet; content may be null.

    `has_times` says whether messages have a time in its form; one that is otherwise is marked.
    Marks of Tiro's in it are not believed. Raises KeyError and TypeError as `Message.from_dict`.
    """
    if not isinstance(row, Mapping):
        raise TypeError("A message must be an object")
    spelt = {
        name: row[name] for name, is_ours in _OURS.items() if name in row and not is_ours(row[name])
    }
    given = {name: value for name, value in row.items() if name not in spelt}
    if "content" in spelt:
        given["content"] = ""
    message = Message.from_dict(given)
    metadata = {k: v for k, v in (message.metadata or {}).items() if k != MARKS}
    bare = msgspec.structs.replace(message, seq=None, metadata=metadata or None)
    is_timed = message.timestamp is not None
    marks = {_TIMED: is_timed if is_timed != has_times else None, CAME_WITH: spelt or None}
    return bare.marked(**marks)


def given_back(message: Message, has_times: bool) -> dict[str, Any]:
    """The message as plain values, without what Tiro added to it: seq, marks, a time.

    `has_times` says whether messages have a time in the form, also those that are Tiro's own.
    """
    marks = message.marks()
    metadata = {k: v for k, v in (message.metadata or {}).items() if k != MARKS}
    plain = msgspec.structs.replace(
        message,
        seq=None,
        timestamp=message.timestamp if marks.get(_TIMED, has_times) else None,
        metadata=metadata or None,
    ).to_dict()
    spelt = marks.get(CAME_WITH)
    if not isinstance(spelt, dict):
        return plain
    is_edited = message.content != ""
    return {**plain, **{k: v for k, v in spelt.items() if k != "content" or not is_edited}}


_OURS: dict[str, Any] = {
    **dict.fromkeys(
        ("content", "name", "tool_calls", "tool_call_id"), lambda value: value is not None
    ),
    "seq": lambda value: type(value) is int,
    "timestamp": lambda value: isinstance(value, str) and value != "",
    "metadata": lambda value: isinstance(value, dict) and value != {},
}
"""The fields that Tiro itself has or gives, and whether it keeps a value of them as it is."""
