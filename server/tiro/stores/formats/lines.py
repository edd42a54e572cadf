"""JSON lines: the value of each line of a text, and how many lines are broken (N6.5)."""

from collections.abc import Iterator
from typing import Any

from tiro.stores.formats import json

_LOOK = 8_000_000
"""How many characters are looked at; a line that does not fit in is passed over."""


def values(text: str) -> Iterator[Any]:
    """The value of each line that is not blank; None for a broken one."""
    for line in text.removeprefix("\ufeff").split("\n"):
        if line.strip():
            yield json.decode_or_none(line.encode("utf-8", "replace"))


def first_objects(text: str, count: int) -> list[dict[str, Any]]:
    """The objects on the first lines that are not blank, of which so many are looked at."""
    found, start, left = [], 0, _LOOK
    while count and start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        if end - start <= left and (line := text[start:end].lstrip("\ufeff").strip()):
            value = json.decode_or_none(line.encode("utf-8", "replace"))
            found += [value] if isinstance(value, dict) else []
            count, left = count - 1, left - len(line)
        start = end
    return found


def broken_note(count: int) -> list[str]:
    """What is said of broken lines: nothing where there are none."""
    lines = "1 line is broken and was" if count == 1 else f"{count} lines are broken and were"
    return [f"{lines} left out"] if count else []
