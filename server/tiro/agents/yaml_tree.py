"""YAML text as plain values, with the line of every key, so that a fault can be told by place."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec

MAX_DEPTH = 6
"""How deep the lines of keys are noted; settings go no deeper."""

MAX_KEYS = 20_000
"""So many keys get a line; aliases can make a small file stand for very many."""

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

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        node = loader.get_single_node()
        lines, repeated = _lines_of(_key_lines(loader, node, ()))
        tree = None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        line, why = _fault(error, text)
        where = "" if line is None else f", line {line}"
        raise ValueError(f"{where}: this is no valid YAML ({why})") from error
    except (RecursionError, ValueError, TypeError) as error:
        raise ValueError(": this is no valid YAML (it cannot be read)") from error
    finally:
        loader.dispose()
    return YamlTree(tree, lines, repeated)


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
    for path, number in islice(found, MAX_KEYS):
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
