"""YAML text as plain values, with the line of every key, so that a fault can be told by place."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

MAX_DEPTH = 6
"""How deep the lines of keys are noted; settings go no deeper."""

MAX_NESTING = 100
MAX_CHARACTERS = 250_000
MAX_VALUES = 10_000
"""Keys and values, each alias written out: a small file can stand for very many."""

VALUE_CHARACTERS = 100
"""A longer text counts as so many more values."""

MAX_DIGITS = 40
"""A longer number is taken as text: no setting has one, and it takes long to read."""

_NOT_YAML = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Path = tuple[str, ...]


class YamlTree(msgspec.Struct, frozen=True):
    """The values of one YAML document."""

    tree: Any
    lines: dict[Path, int]
    """The path of every key → its line, counted from 1."""
    repeated: list[Path]
    """Keys that are there twice; the last one is the one that holds."""


def parse_yaml(text: str) -> YamlTree:
    """Read one YAML document; ValueError says line and reason, beginning with `, line` or `:`."""
    import yaml  # only who has a configuration file pays for it at the start

    if len(text) > MAX_CHARACTERS:
        raise ValueError(f" holds more YAML than {MAX_CHARACTERS:,} characters")
    if odd := _NOT_YAML.search(text):
        number = text.count("\n", 0, odd.start()) + 1
        raise ValueError(f", line {number}: YAML cannot hold the character U+{ord(odd[0]):04X}")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        node = loader.get_single_node()
        _measured(node, {})
        lines, repeated = _lines_of(_key_lines(loader, node, ()))
        tree = None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        line, why = _fault(error, text)
        where = "" if line is None else f", line {line}"
        raise ValueError(f"{where}: this is no valid YAML ({why})") from error
    except RecursionError as error:
        raise ValueError(f": this is nested deeper than {MAX_NESTING} levels") from error
    except _TooMuchError as error:
        raise ValueError(str(error)) from error
    except (ValueError, TypeError) as error:
        raise ValueError(": this is no valid YAML (it cannot be read)") from error
    finally:
        loader.dispose()
    return YamlTree(tree, lines, repeated)


class _TooMuchError(Exception):
    """What a YAML text stands for is more than settings can be."""


def _measured(node: Any, known: dict[int, tuple[int, int] | None]) -> tuple[int, int]:
    """How many values a node stands for and how deep it goes; _TooMuchError says where and why.

    `known` has the nodes that were measured, and None for those around this one.
    """
    if node is None:
        return 0, 0
    if isinstance(node.value, str):
        _as_text(node)
        return 1 + len(node.value) // VALUE_CHARACTERS, 0
    where = f", line {node.start_mark.line + 1}: "
    if id(node) in known:
        found = known[id(node)]
        if found is None:
            raise _TooMuchError(f"{where}an alias stands within what it is the name of")
        return found
    known[id(node)], values, levels = None, 1, 0
    for child in node.value:
        for part in child if isinstance(child, tuple) else (child,):
            more, deep = _measured(part, known)
            values, levels = values + more, max(levels, deep + 1)
            if values > MAX_VALUES:
                told = f"this stands for more than {MAX_VALUES:,} values"
                raise _TooMuchError(f"{where}{told}, each alias written out")
    if levels > MAX_NESTING:
        raise _TooMuchError(f"{where}this is nested deeper than {MAX_NESTING} levels")
    known[id(node)] = values, levels
    return values, levels


def _as_text(node: Any) -> None:
    """Take a date for text, and a number that is too long to be one."""
    kind = node.tag.rpartition(":")[2]
    if kind == "timestamp" or (kind in ("int", "float") and len(node.value) > MAX_DIGITS):
        node.tag = "tag:yaml.org,2002:str"


def _fault(error: Any, text: str) -> tuple[int | None, str]:
    """The line where somebody should look, and what to look for."""
    context = str(getattr(error, "context", None))
    problem = str(getattr(error, "problem", None) or "it cannot be read")
    for beginning, end, words in _OPENED:
        if context.startswith(beginning) and problem.startswith(end):
            return error.context_mark.line + 1, words
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return None, problem
    return mark.line + 1, _words(problem, text.split("\n")[mark.line][mark.column :][:1])


_OPENED = (
    ("while parsing a flow", "", "the bracket that opens here is not closed, or lacks a comma"),
    ("while scanning a quoted", "found unexpected end", "the quotes that open here are not closed"),
    ("while scanning a simple key", "", "this is no `key: value`"),
)
"""What a reader says → what is meant; they come to the fault late, the cause is where it began."""


def _words(problem: str, character: str) -> str:
    if "nesting depth" in problem:
        return f"this is nested deeper than {MAX_NESTING} levels"
    if "tag:yaml.org,2002:merge" in problem:
        return "`<<` is not understood here, write out the keys"
    if character == "\t":
        return "a tab cannot indent, use spaces"
    if "cannot start any token" in problem:
        return f"a text that begins with {character} needs quotes"
    if "mapping values are not allowed" in problem:
        return "a text with a colon needs quotes, or the line is indented too far"
    return problem


def _lines_of(found: Iterable[tuple[Path, int]]) -> tuple[dict[Path, int], list[Path]]:
    lines: dict[Path, int] = {}
    repeated = []
    for path, number in found:
        if path in lines:
            repeated.append(path)
        lines[path] = number
    return lines, repeated


def _key_lines(loader: Any, node: Any, path: Path) -> Iterator[tuple[Path, int]]:
    """Every key of a YAML tree as (path, line), as deep as settings go."""
    if node is None or not isinstance(node.value, list) or len(path) >= MAX_DEPTH:
        return
    for pair in node.value:
        if isinstance(pair, tuple):
            key, value = pair
            here = (*path, str(loader.construct_object(key, deep=True)))
            yield here, key.start_mark.line + 1
            yield from _key_lines(loader, value, here)
