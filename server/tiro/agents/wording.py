"""Settings in plain words: what a value must be, and a value that is not that."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import inspect

MAX_SHOWN = 60
MAX_TOLD = 20
"""So much of what is wrong is told at once: each is a notice of its own in an editor."""


def expected(kind: Any) -> str:
    """What a value of this type is, for people who know YAML and no Python."""
    return choice(_options(inspect.type_info(kind)))


def shown(value: Any) -> str:
    """A value as it could stand in a file, cut where it is long."""
    if isinstance(value, str):
        value = value[: MAX_SHOWN + 1]
    text = repr(value) if isinstance(value, str) else plain(_in_json(value))
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "..."


def named(key: str) -> str:
    """A key as it is, in quotes where it is none that somebody would type."""
    return key if key.isprintable() and len(key) <= MAX_SHOWN else shown(key)


def plain(text: str) -> str:
    """The text with an escape for each character that acts or cannot be seen."""
    return re.sub(r"[^\n -~]", lambda found: _escaped(found[0]), text)


def _escaped(character: str) -> str:
    return character if character.isprintable() else repr(character)[1:-1]


def unseen(value: Any) -> str | None:
    """The first control character in a text, or in the texts of a list or a table."""
    match value:
        case str():
            found = _CONTROL.search(value)
            return f"U+{ord(found[0]):04X}" if found else None
        case list():
            return next(filter(None, map(unseen, value)), None)
        case dict():
            return unseen([*value, *value.values()])
    return None


_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""But tab and line ends; those that turn the direction of text round too, and no characters."""


def first(problems: list[str]) -> list[str]:
    """Those that somebody may read, and how many more there are."""
    more = len(problems) - MAX_TOLD
    if more < 2:
        return problems
    return [*problems[:MAX_TOLD], f"{more:,} more keys and values are wrong; correct these first"]


def choice(words: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def _options(kind: inspect.Type) -> list[str]:
    match kind:
        case inspect.Metadata(extra_json_schema={"description": str(words)}):
            return [words]
        case inspect.UnionType(types=kinds):
            return [option for one in kinds for option in _options(one)]
        case inspect.LiteralType(values=values):
            return [str(value) for value in values]
        case inspect.IntType():
            return [f"a whole number{_bounds(kind)}"]
        case inspect.FloatType():
            return [f"a number{_bounds(kind)}"]
        case inspect.ListType(item_type=item):
            return [f"a list of {choice(_options(item))}"]
        case inspect.DictType(value_type=value):
            return [f"a table of {choice(_options(value))}"]
        case _:
            return [_SIMPLE.get(type(kind), "something else")]


def _bounds(kind: inspect.IntType | inspect.FloatType) -> str:
    bounds = {"above": kind.gt, "from": kind.ge, "below": kind.lt, "up to": kind.le}
    return "".join(f" {word} {bound:,}" for word, bound in bounds.items() if bound is not None)


_SIMPLE: dict[type[inspect.Type], str] = {
    inspect.BoolType: "true or false",
    inspect.NoneType: "null",
    inspect.StrType: "text",
}


def _in_json(value: Any) -> str:
    try:
        text = msgspec.json.format(msgspec.json.encode(value), indent=0).decode()
    except (TypeError, ValueError, RecursionError):
        text = '"'
    return str(value) if text.startswith('"') else text  # YAML has dates, JSON has not
