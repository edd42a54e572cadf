"""Entries: what was said and done, a row for each thing, with an id and a time of its own (part G).

    session.add_entry(new_message_entry("user", "Which files hold Lisp?"))
    call = new_tool_call_entry("glob", {"pattern": "*.el"})
    newest_first = session.get_history(10)

They are values beside the messages of a session; `entry_view` turns one into the other.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Self, TypeVar
from uuid import uuid4

import msgspec
from msgspec.structs import force_setattr

from tiro.errors import InvalidMessageError
from tiro.session.json_text import decode, encode
from tiro.session.times import exact_rfc3339, from_rfc3339, utc_now

MESSAGE, TOOL_CALL, TOOL_RESULT, THINKING = "message", "tool_call", "tool_result", "thinking"
ENTRY_ROLES = ("user", "assistant", "system")


class EntryContent(msgspec.Struct, frozen=True):
    """The content of an entry of a known shape; reads like a mapping too, and compares like one."""

    def keys(self) -> tuple[str, ...]:
        """The names of its fields."""
        return self.__struct_fields__

    def get(self, key: str, default: Any = None) -> Any:
        """The field `key`, or `default` where there is no such field."""
        return getattr(self, key) if key in self.__struct_fields__ else default

    def __getitem__(self, key: str) -> Any:
        if key not in self.__struct_fields__:
            raise KeyError(key)
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(self.__struct_fields__)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping) and type(other) is not type(self):
            return NotImplemented
        return msgspec.structs.asdict(self) == dict(other)

    __hash__ = None  # type: ignore[assignment]  # what is in it can be changed


class MessageContent(EntryContent, frozen=True):
    """What somebody said."""

    role: str = ""
    text: str = ""


class ToolCallContent(EntryContent, frozen=True):
    """A tool that is to be run."""

    tool: str = ""
    parameters: Any = msgspec.field(default_factory=dict)


class ToolResultContent(EntryContent, frozen=True):
    """What a tool gave back, kept as it was given, also beside an error."""

    tool: str = ""
    success: bool = False
    result: Any = None
    error: str = ""


CONTENTS: dict[str, type[EntryContent] | None] = {
    MESSAGE: MessageContent,
    TOOL_CALL: ToolCallContent,
    TOOL_RESULT: ToolResultContent,
    THINKING: None,
}
"""Every type of entry, and what its content is; that of a thinking entry is the caller's own."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was said or done (G2.1).

    A content that fits its type is typed by it; any other is kept as it came. A time is in UTC;
    one without an offset is local, and text is read as RFC 3339 (ValueError for other text).
    """

    id: str = msgspec.field(default_factory=lambda: str(uuid4()))
    type: str
    timestamp: datetime = msgspec.field(default_factory=utc_now)
    content: Any
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Bring what was given into its form."""
        force_setattr(self, "metadata", self.metadata or {})
        force_setattr(self, "timestamp", _in_utc(self.timestamp))
        kind = CONTENTS.get(self.type)
        if kind is not None and isinstance(self.content, Mapping):
            force_setattr(self, "content", _typed(self.content, kind))

    def to_dict(self) -> dict[str, Any]:
        """The entry as plain values: id, type, timestamp, content, metadata (G3.1)."""
        content = self.content
        if isinstance(content, EntryContent):
            content = msgspec.structs.asdict(content)
        time = exact_rfc3339(self.timestamp)
        told = {"id": self.id, "type": self.type, "timestamp": time, "content": content}
        return {**told, "metadata": self.metadata}

    def to_json(self) -> str:
        """The entry as JSON; what JSON does not know is written as its text."""
        return encode(self.to_dict()).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The entry that `to_json` wrote, equal to what it was, its content typed again (G3.3).

        Further fields are left out. Raises TypeError for JSON that is no object, ValueError for
        what is no JSON or no entry of a known type.
        """
        return cls.from_dict(decode(text))

    @classmethod
    def from_dict(cls, fields: Any) -> Self:
        """The entry that `to_dict` gave. Raises as `from_json`."""
        if not isinstance(fields, dict):
            raise TypeError(f"An entry must be a JSON object, not {type(fields).__name__}")
        stored = msgspec.convert(fields, _Stored)
        if stored.type not in CONTENTS:
            raise ValueError(unknown_type(stored.type))
        return cls(
            id=stored.id,
            type=stored.type,
            timestamp=_in_utc(stored.timestamp),
            content=stored.content,
            metadata=stored.metadata or {},
        )


def new_message_entry(role: str, text: str) -> Entry:
    """What the user, the assistant or the system says, now; InvalidMessageError for others."""
    if role not in ENTRY_ROLES:
        raise InvalidMessageError(
            f"The role of a message entry must be one of {', '.join(ENTRY_ROLES)}, not {role!r}",
            reason="unknown_role",
        )
    return Entry(type=MESSAGE, content=MessageContent(role, text))


def new_tool_call_entry(tool: str, parameters: Mapping[str, Any] | None = None) -> Entry:
    """A tool that is run now; the entry's id is the id of the call."""
    return Entry(type=TOOL_CALL, content=ToolCallContent(tool, dict(parameters or {})))


def new_tool_result_entry(
    tool: str, result: Any = None, error: BaseException | str | None = None
) -> Entry:
    """What a tool has given back now; it has succeeded unless there is an error."""
    content = ToolResultContent(tool, error is None, result, "" if error is None else str(error))
    return Entry(type=TOOL_RESULT, content=content)


def get_message_content(entry: Entry) -> tuple[MessageContent, bool]:
    """What a message entry says, and True; empty content and False for any other."""
    return _content(entry, MessageContent)


def get_tool_call_content(entry: Entry) -> tuple[ToolCallContent, bool]:
    """Which tool is to be run, and True; empty content and False for any other entry."""
    return _content(entry, ToolCallContent)


def get_tool_result_content(entry: Entry) -> tuple[ToolResultContent, bool]:
    """What the tool gave back, and True; empty content and False for any other entry."""
    return _content(entry, ToolResultContent)


def entries_to_json(entries: Iterable[Entry]) -> str:
    """A JSON array of entries, in their order (G3.2)."""
    return encode([entry.to_dict() for entry in entries]).decode()


def entries_from_json(text: str | bytes) -> list[Entry]:
    """The entries of a JSON array. Raises as `Entry.from_json`, and TypeError for no array."""
    rows = decode(text)
    if not isinstance(rows, list):
        raise TypeError(f"Entries must be a JSON array, not {type(rows).__name__}")
    return [Entry.from_dict(row) for row in rows]


def checked_entry(entry: Any) -> Entry:
    """What may be added: TypeError for what is no Entry, ValueError for an unknown type (G1.4)."""
    if not isinstance(entry, Entry):
        raise TypeError(f"Only an Entry can be added, not a {type(entry).__name__}")
    if entry.type not in CONTENTS:
        raise ValueError(unknown_type(entry.type))
    return entry


def unknown_type(type: str) -> str:
    """The sentence for an entry whose type is not known."""
    return f"The type of an entry must be one of {', '.join(CONTENTS)}, not {type!r}"


class _Stored(msgspec.Struct):
    """An entry as JSON has it."""

    id: str
    type: str
    timestamp: str
    content: Any = None
    metadata: dict[str, Any] | None = None


_C = TypeVar("_C", bound=EntryContent)


def _content(entry: Entry, kind: type[_C]) -> tuple[_C, bool]:
    content = entry.content
    return (content, True) if isinstance(content, kind) else (kind(), False)


def _typed(content: Mapping[str, Any], kind: type[EntryContent]) -> Any:
    """The content in its type; as it came where it does not fit."""
    try:
        return msgspec.convert(dict(content), kind)
    except (msgspec.ValidationError, TypeError):
        return content


def _in_utc(time: datetime | str) -> datetime:
    if isinstance(time, datetime):
        return time.astimezone(UTC)
    found = from_rfc3339(time)
    if found is None:
        raise ValueError(f"An entry's time must be RFC 3339 text, not {time!r}")
    return found
