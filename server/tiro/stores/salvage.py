"""What can still be read of a damaged session file, as a session file that is whole.

A file of ours has a line for each field and each message, so damage costs the lines that it hits.
Of a file in another layout the fields and messages up to the damage are taken.
"""

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec

from tiro.session.core import Core
from tiro.session.json_text import decode, encode
from tiro.session.messages import Message, seq_of
from tiro.session.snapshot import FIELDS, LISTS, SCHEMA_VERSION

NOTED = ("title", "agent", "model", "memo", "summary", "state", "metadata", "pins", "settings")
"""The fields that people would miss."""


class Salvaged(msgspec.Struct, frozen=True):
    """What can be read of a session file."""

    fields: dict[str, Any]
    lists: dict[str, list[Any]]

    @property
    def count(self) -> int:
        """How many messages are in it."""
        return sum(map(len, self.lists.values()))

    @property
    def is_worth_keeping(self) -> bool:
        """Whether anything of what was said or noted in the session is in it."""
        noted = ("memo", "summary", "state", "metadata")
        return self.count > 0 or any(self.fields.get(name) for name in noted)

    @property
    def lost(self) -> list[str]:
        """The fields that are not in it; a file of ours has all of them, of others nobody knows."""
        is_ours = len(self.fields) > len(FIELDS) / 2
        return [name for name in NOTED if name not in self.fields] if is_ours else []

    def encoded(self, id: str | None) -> bytes:
        """A session file made of it, of the session with this id; None: of its file's name."""
        whole = {"schema_version": SCHEMA_VERSION, **self.fields, **self.lists, "id": id}
        return encode(whole)


def told_of(core: Core, kept: str, lost: Sequence[str] = ()) -> str:
    """What a repair says of a session: what it has, what is gone, and where that is `kept`.

    Messages are known to be gone by their numbers; `lost` are fields.
    """
    rows = (*core.archive_rows, *core.newest_first)
    numbers = sorted({0, core.next_seq, *map(seq_of, rows)})
    gaps = [(one + 1, next - 1) for one, next in pairwise(numbers) if next - one > 1]
    runs = ", ".join(f"{one}" if one == last else f"{one}-{last}" for one, last in gaps)
    is_one = sum(last - one + 1 for one, last in gaps) == 1
    gone = [f"{'message' if is_one else 'messages'} {runs}"] if gaps else []
    gone += [f"the {name}" for name in lost]
    told = f"; gone: {', '.join(gone)}" if gone else ""
    messages = "1 message" if len(rows) == 1 else f"{len(rows)} messages"
    return f"the session has {messages}{told}; what was there is kept as {kept}"


def salvaged(data: bytes) -> Salvaged:
    """Read what can be read of a damaged session file."""
    fields, lists = _by_line(data)
    if any(lists.values()):
        return Salvaged(fields, lists)
    before, lists = _up_to_the_damage(data)
    return Salvaged(before | fields, lists)


def _by_line(data: bytes) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Where a file has our layout; an indented one's lines may lie anywhere within a message."""
    fields: dict[str, Any] = {}
    lists: dict[str, list[Any]] = {name: [] for name in LISTS}
    lines = data.split(b"\n")
    if lines[0].strip() == b"{":
        return fields, lists
    current = LISTS[0]
    for line in lines:
        text = line.rstrip().rstrip(b",")
        begun = next((name for name in LISTS if text.startswith(b'"%b":[' % name.encode())), None)
        current = begun or current
        value = _object(text)
        if value is None:
            field = _object(b"{%b}" % text.removeprefix(b"{")) if text[:1] in b'{"' else None
            fields |= {name: item for name, item in (field or {}).items() if name in FIELDS}
        elif _is_message(value):
            lists[current].append(value)
    return fields, lists


def _up_to_the_damage(data: bytes) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """What stands before it, and after a damaged field the messages in front of the next damage."""
    text = data.decode("utf-8", "replace")
    fields: dict[str, Any] = {}
    lists: dict[str, list[Any]] = {name: [] for name in LISTS}
    position = text.find("{") + 1 if text.lstrip("\ufeff \t\r\n").startswith("{") else len(text)
    while key := _KEY.match(text, position):
        name, position = key[1], key.end()
        if name in LISTS:
            lists[name], position = _messages_from(text, position)
        else:
            value, position = _value_at(text, position)
            fields |= {name: value} if name in FIELDS else {}
        if not position:
            break
    start = text.find('"messages"')
    if not any(lists.values()) and start >= 0:
        lists["messages"], _ = _messages_from(text, text.find("[", start))
    return fields, lists


def _messages_from(text: str, position: int) -> tuple[list[Any], int]:
    """The messages of the list that begins here, and where it ends; 0 where it is damaged."""
    found: list[Any] = []
    if position < 0 or text[position : position + 1] != "[":
        return found, 0
    position += 1
    while position:
        while position < len(text) and text[position] in " \t\r\n,":
            position += 1
        if text[position : position + 1] == "]":
            return found, position + 1
        value, position = _value_at(text, position)
        if not _is_message(value):
            break
        found.append(value)
    return found, 0


def _value_at(text: str, position: int) -> tuple[Any, int]:
    """The value that begins here, and where it ends; None and 0 where it is damaged."""
    try:
        return json.JSONDecoder().raw_decode(text, position)
    except (ValueError, RecursionError):
        return None, 0


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


_KEY = re.compile(r'[\s,]*"(\w+)"\s*:\s*')
