"""Settings in plain words: what a value must be, and a value that is not that."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import inspect

MAX_SHOWN = 60


def expected(kind: Any) -> str:
    """What a value of this type is, for people who know YAML and no Python."""
    return choice(_options(inspect.type_info(kind)))


def shown(value: Any) -> str:
    """A value as it could stand in a file, cut where it is long."""
    text = repr(value) if isinstance(value, str) else _in_json(value)
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "..."


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
    return "".join(f" {word} {bound}" for word, bound in bounds.items() if bound is not None)


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
