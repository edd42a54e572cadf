"""What a turn's model has called, in one spelling, and when it calls in vain.

Two calls are the same that differ only in how they are spelt: the order of fields, `./a` for `a`, a
default written out, the blanks and quotes of a command line. What is the same by a link or by what
a shell makes of a line is not looked into.

Calls are in vain when the same one, or the same few in the same order, come for the third time in
a row and have brought the same results each time. A call that was not run has brought none, so it
counts as the same; one whose result has changed, as that of a test or of a process that is waited
for does, begins anew.
"""

import hashlib
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from tiro.session.json_text import encode
from tiro.tools.command_line import parse_command_line
from tiro.tools.tool import Tool, ToolOutput

T = TypeVar("T")

TIMES_IN_A_ROW = 3
MOST_IN_TURN = 4
"""So many different calls, one after the other, are taken for a round that comes again."""
_NUMBERS = re.compile(rb"\d+")
PATHS = ("path", "cwd")
"""The fields of an input that hold a path."""


class Call(msgspec.Struct, frozen=True):
    """One call, in one spelling."""

    name: str
    input: Any
    result: str | None = None
    """A hash of what it has brought, when it was run and has ended."""
    outline: str | None = None
    """The same of that without its numbers."""

    def is_same(self, other: "Call") -> bool:
        """Whether the same is called."""
        return (self.name, self.input) == (other.name, other.input)

    def brings_same(self, other: "Call") -> bool:
        """Whether the same is called, and brought nothing else as far as is known."""
        return self.is_same(other) and (
            None in (self.result, other.result) or self.result == other.result
        )

    def counts_on(self, other: "Call") -> bool:
        """Whether only numbers differ, in what is called and in what that has brought."""
        numbers = [_NUMBERS.sub(b"0", encode(call.input)) for call in (self, other)]
        is_alike = (self.name, self.outline) == (other.name, other.outline)
        return is_alike and numbers[0] == numbers[1]

    def brought(self, output: ToolOutput) -> "Call":
        """The same call, with its result."""
        told = output.content.encode("utf-8", "replace") + encode([*output.images])
        hashes = (hashlib.sha256(one).hexdigest() for one in (told, _NUMBERS.sub(b"0", told)))
        return msgspec.structs.replace(self, result=next(hashes), outline=next(hashes))

    @property
    def digest(self) -> str:
        """A hash of its input."""
        return hashlib.sha256(encode(self.input)).hexdigest()


def call_of(tool: Tool | None, name: str, given: Any, spelled: Callable[[str], str]) -> Call:
    """A call with this input, for a tool that may not be there; `spelled` knows paths."""
    if tool is None or not isinstance(given, Mapping):
        return Call(name, given)

    def plain(key: str, value: Any) -> Any:
        if isinstance(value, str) and key in PATHS:
            return spelled(value)
        if isinstance(value, str) and key == tool.subject_field and tool.effect == "execute":
            return _plain_line(value)
        return value

    fields = {key: plain(key, value) for key, value in given.items()}
    return Call(name, _without_defaults(tool.input_schema, fields))


def in_vain(call: Call, before: Sequence[Call]) -> int:
    """How many calls make up the round that this one ends for the third time; 0 for none."""
    calls = [*before[1 - TIMES_IN_A_ROW * MOST_IN_TURN :], call]
    return round_at_end(calls, TIMES_IN_A_ROW, lambda one, other: one.brings_same(other))


def round_at_end(row: Sequence[T], times: int, is_same: Callable[[T, T], bool]) -> int:
    """How many things make up the round that ends here after so many times; 0 for none."""
    for size in range(1, MOST_IN_TURN + 1):
        last = row[-times * size :]
        pairs = zip(last[size:], last, strict=False)
        if len(last) == times * size and all(is_same(one, other) for one, other in pairs):
            return size
    return 0


def _without_defaults(schema: Mapping[str, Any], value: Any) -> Any:
    """A value without fields that say what holds anyway, and with the others in one order."""
    if isinstance(value, list):
        return [_without_defaults(schema.get("items", {}), item) for item in value]
    if not isinstance(value, Mapping):
        return value
    fields = schema.get("properties", {})
    found = {key: _without_defaults(fields.get(key, {}), value[key]) for key in sorted(value)}
    defaults = {key: field["default"] for key, field in fields.items() if "default" in field}
    return {
        key: item
        for key, item in found.items()
        if item is not None and (key not in defaults or defaults[key] != item)
    }


def _plain_line(text: str) -> Any:
    """A command line as its words, where it is plain."""
    line = parse_command_line(text)
    if line.unplain is not None:
        return text.strip()
    commands = [[words[0], *map(_plain_word, words[1:])] for words in line.commands]
    return [commands, [*line.joints]]


def _plain_word(word: str) -> str:
    return posixpath.normpath(word) if "/" in word else word
