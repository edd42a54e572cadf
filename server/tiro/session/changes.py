"""All changes of a session as values: what `Core.commit` applies and the journal stores.

A change says what happened, not how: it holds the messages and seqs themselves and never repeats a
decision (such as a limit), so that replaying it gives the same session whatever the settings are
by then. `at` is the time of the change, RFC 3339.
"""

from typing import Any, TypeAlias

import msgspec

from tiro.session.json_text import decode, encode
from tiro.session.messages import Content, Message, flat


class Add(msgspec.Struct, frozen=True, tag_field="op", tag="add"):
    """A message, with its seq and timestamp, becomes the newest of the window."""

    message: Message
    at: str


class Evict(msgspec.Struct, frozen=True, tag_field="op", tag="evict"):
    """Messages leave the window for the archive, where they wait for a summary (U4.3)."""

    seqs: list[int]
    at: str


class Edit(msgspec.Struct, frozen=True, tag_field="op", tag="edit"):
    """A message gets another content; its earlier wording goes to the archive, taken back."""

    seq: int
    content: Content
    at: str


class TakeBack(msgspec.Struct, frozen=True, tag_field="op", tag="take_back"):
    """Messages leave the window for the archive, and no model sees them again (U1.4)."""

    seqs: list[int]
    at: str


class Cover(msgspec.Struct, frozen=True, tag_field="op", tag="cover"):
    """Evicted messages are now covered by a stored summary or memo."""

    seqs: list[int]
    at: str


class Readmit(msgspec.Struct, frozen=True, tag_field="op", tag="readmit"):
    """Messages of the archive are back in the window; others wait for a summary again."""

    seqs: list[int]
    pending: list[int]
    at: str


class Replace(msgspec.Struct, frozen=True, tag_field="op", tag="replace"):
    """Window and archive as a caller gave them, oldest first (U1.4)."""

    messages: list[Message]
    archive: list[Message]
    at: str


class Set(msgspec.Struct, frozen=True, tag_field="op", tag="set"):
    """Fields of the session get new values; `fields` has the names of the session file."""

    fields: dict[str, Any]
    at: str


class SetState(msgspec.Struct, frozen=True, tag_field="op", tag="set_state"):
    """One key of the caller's own state gets a value."""

    key: str
    value: Any
    at: str


class DeleteState(msgspec.Struct, frozen=True, tag_field="op", tag="delete_state"):
    """One key of the caller's own state goes away."""

    key: str
    at: str


class Clear(msgspec.Struct, frozen=True, tag_field="op", tag="clear"):
    """Window, archive, summary and counters are emptied; id, agent, settings stay (U1.12)."""

    keep_memo: bool
    at: str


Change: TypeAlias = (
    Add | Evict | Edit | TakeBack | Cover | Readmit | Replace | Set | SetState | DeleteState | Clear
)

_DECODER = msgspec.json.Decoder(Change)


class _Numbered(msgspec.Struct):
    """The number of a journal line."""

    n: int


def encode_change(n: int, change: Change) -> bytes:
    """One journal line without its line break: the change, with its number in front."""
    if isinstance(change, Add) and change.message.extra:
        fields = {"op": "add", "message": change.message.to_dict(), "at": change.at}
        return b'{"n":%d,%b' % (n, encode(fields)[1:])
    if isinstance(change, Replace):
        rows = {name: [flat(m) for m in getattr(change, name)] for name in _HISTORIES}
        return b'{"n":%d,%b' % (n, encode({"op": "replace", **rows, "at": change.at})[1:])
    return b'{"n":%d,%b' % (n, encode(change)[1:])


def decode_change(line: bytes) -> tuple[int, Change]:
    """The number and the change of one journal line.

    Raises ValueError for what is no such line. Known messages decode in C; one with unknown fields
    is read the slow way.
    """
    n = msgspec.json.decode(line, type=_Numbered).n
    try:
        return n, _DECODER.decode(line)
    except (msgspec.ValidationError, UnicodeDecodeError):
        return n, _decode_slowly(line)


def _decode_slowly(line: bytes) -> Change:
    """A change whose messages have fields that Tiro does not know, or text that needs cleaning."""
    fields = decode(line)
    kind = fields.get("op") if isinstance(fields, dict) else None
    try:
        if kind == "add":
            return Add(Message.from_dict(fields["message"]), str(fields.get("at", "")))
        if kind == "replace":
            messages, archive = (list(map(Message.from_dict, fields[h])) for h in _HISTORIES)
            return Replace(messages, archive, str(fields.get("at", "")))
    except (KeyError, TypeError) as error:
        raise ValueError(f"The journal line holds no message: {error}") from error
    return msgspec.convert(fields, Change)  # type: ignore[no-any-return]  # a union is no type


_HISTORIES = ("messages", "archive")
