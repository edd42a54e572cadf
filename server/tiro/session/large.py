"""Large values inside messages: taken out under the name of their hash, and put back (U9.10).

A value taken out leaves a string in its place: how it begins, its size and its name. Where it
stood is told in the message's own marks and not in its content, so nothing that a user writes is
ever taken for a reference, and a program that knows nothing of this reads a valid message. A string
that is no longer what was left there is somebody's edit, and stays.
"""

import hashlib
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec

from tiro.session.json_text import clean
from tiro.session.messages import MARKS, Message

LARGE_BYTES = 64_000
"""A string of more bytes than this is taken out."""
MARK = "large"
"""Tiro's mark on a message whose stored form lacks values: a list of references."""
OUTPUT = "output"
"""Tiro's mark on a tool's result that was cut for the model: all that the tool said."""
PARTS = "parts"
"""Tiro's mark on a tool's result that was too long to be held: the files that are all of it."""
BEGINNING_CHARACTERS = 200

_Hash: TypeAlias = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class Reference(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value that was taken out of a message."""

    at: list[str | int]
    """The keys and positions that lead to it; none where the content itself is the value."""
    sha256: _Hash
    """The SHA-256 of its UTF-8, in hex."""
    bytes: int
    is_output: bool = False
    """It was the mark OUTPUT, and stood nowhere in the content."""


class Part(msgspec.Struct, frozen=True):
    """A part of an output that nobody holds, in a file of its own."""

    blob: Annotated[str, msgspec.Meta(pattern="^blobs/[0-9a-f]{64}$")]
    chars: Annotated[int, msgspec.Meta(ge=0)]


class Short(NamedTuple):
    """A message's content and output without their large values, and where these were."""

    content: Any
    output: str | None
    references: list[Reference]


def take_out(message: Message, redact: Callable[[str], str]) -> tuple[Short, dict[str, bytes]]:
    """What a message says without its large values, and these by their hashes.

    They go through `redact` first. Lone surrogates become U+FFFD, as in every file.
    """
    taker = _Taker(redact)
    content = taker.without_large(message.content, [])
    output = message.marks().get(OUTPUT)
    if isinstance(output, str) and _is_large(output):
        output = taker.left_for(output, [], is_output=True)
    return Short(content, output, taker.references), taker.values


def shortened(message: Message, short: Short) -> Message:
    """The message with this in it, and the marks by which `put_back` makes it whole."""
    references = [*message.marks().get(MARK, []), *map(msgspec.to_builtins, short.references)]
    message = msgspec.structs.replace(message, content=short.content)
    return message.marked(**{MARK: references, OUTPUT: short.output})


def can_be_shortened(message: Message) -> bool:
    """Whether marks can be set and taken away again with nothing else changed."""
    metadata = message.metadata
    if metadata is None:
        return "metadata" not in message.extra
    return bool(metadata) and isinstance(metadata.get(MARKS, {}), dict)


def put_back(message: Message, read: Callable[[str], str | None]) -> tuple[Message, list[str]]:
    """The message with the values that `read` has for their hashes, and the hashes it lacks.

    What was left in the place of such a value stays there, with its reference: a later reading
    may find it.
    """
    marks = message.marks().get(MARK)
    if marks is None:
        return message, []
    try:
        references = msgspec.convert(marks, list[Reference])
    except msgspec.ValidationError:
        return message, []  # somebody's edit
    content, output, kept, missing = message.content, message.marks().get(OUTPUT), [], []
    for reference in references:
        left = output if reference.is_output else _at(content, reference.at)
        if not isinstance(left, str) or not left.endswith(_ending(reference)):
            continue
        value = read(reference.sha256)
        if value is not None and left == _left_for(value, reference):
            if reference.is_output:
                output = value
            else:
                content = _replaced(content, reference.at, value)
            continue
        kept.append(msgspec.to_builtins(reference))
        if value is None:
            missing.append(reference.sha256)
    whole = msgspec.structs.replace(message, content=content)
    return whole.marked(**{MARK: kept or None, OUTPUT: output}), missing


def parts_of(message: Message) -> list[Part]:
    """The files in which all of the output lies, in order; none where the message holds it."""
    with suppress(msgspec.ValidationError):  # somebody's edit
        return msgspec.convert(message.marks().get(PARTS, []), list[Part])
    return []


def is_left_behind(text: str) -> bool:
    """Whether this stands in the place of a value that was taken out."""
    return _LEFT.search(text, max(0, len(text) - 120)) is not None


class _Taker:
    """Goes through a content, and remembers what it took out of it."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self.references: list[Reference] = []
        self.values: dict[str, bytes] = {}
        self._redact = redact

    def without_large(self, value: Any, at: list[str | int]) -> Any:
        """The value with short strings in the place of large ones."""
        if isinstance(value, str):
            return self.left_for(value, at) if _is_large(value) else value
        if isinstance(value, dict):
            return {
                key: self.without_large(item, [*at, key]) if isinstance(key, str) else item
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.without_large(item, [*at, index]) for index, item in enumerate(value)]
        return value

    def left_for(self, value: str, at: list[str | int], *, is_output: bool = False) -> str:
        """Take a value out; what is left in its place."""
        value = self._redact(clean(value))
        data = value.encode()
        reference = Reference(at, hashlib.sha256(data).hexdigest(), len(data), is_output)
        self.references.append(reference)
        self.values[reference.sha256] = data
        return _left_for(value, reference)


def _is_large(text: str) -> bool:
    if len(text) * 4 <= LARGE_BYTES:
        return False
    return len(text) > LARGE_BYTES or len(text.encode("utf-8", "replace")) > LARGE_BYTES


def _left_for(value: str, reference: Reference) -> str:
    return value[:BEGINNING_CHARACTERS] + _ending(reference)


def _ending(reference: Reference) -> str:
    return f" [… {reference.bytes} bytes in blobs/{reference.sha256}]"


def _at(content: Any, at: list[str | int]) -> Any:
    """What stands there; None where nothing does."""
    for key in at:
        if isinstance(content, dict):
            content = content.get(key)
        elif isinstance(content, list) and isinstance(key, int) and 0 <= key < len(content):
            content = content[key]
        else:
            return None
    return content


def _replaced(content: Any, at: list[str | int], value: str) -> Any:
    """A copy of the content with another value there."""
    if not at:
        return value
    copied = content.copy()
    copied[at[0]] = _replaced(content[at[0]], at[1:], value)
    return copied


_LEFT = re.compile(r" \[… [0-9]+ bytes in blobs/[0-9a-f]{64}\]\Z")
