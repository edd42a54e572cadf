"""JSON lines: the value of each line of a text, and how many lines are broken (N6.5)."""

from collections.abc import Iterator
from typing import Any

from tiro.stores.formats import json

_LOOK = 1_000_000
"""How much of a text is looked at; a longer first line is recognised by nothing else either."""


def values(text: str) -> Iterator[Any]:
    """The value of each line that is not blank; None for a broken one."""
    for line in text.removeprefix("\ufeff").split("\n"):
        if line.strip():
            yield json.decode_or_none(line.encode("utf-8", "replace"))


def first_objects(text: str, count: int) -> list[dict[str, Any]]:
    """The objects on the first lines, of which so many are looked at."""
    lines = [line for line in text[:_LOOK].removeprefix("\ufeff").split("\n") if line.strip()]
    found = (json.decode_or_none(line.encode("utf-8", "replace")) for line in lines[:count])
    return [value for value in found if isinstance(value, dict)]


def broken_note(count: int) -> list[str]:
    """What is said of broken lines: nothing where there are none."""
    lines = "1 line is broken and was" if count == 1 else f"{count} lines are broken and were"
    return [f"{lines} left out"] if count else []
