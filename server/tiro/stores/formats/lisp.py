"""Emacs Lisp data as plain values: property lists are objects, other lists and vectors lists."""

import re
from typing import Any

from tiro.session.json_text import MAX_NESTING


class _Symbol(str):
    """A name that stands for itself."""


def read(text: str, at: int = 0) -> tuple[Any, int]:
    """The value that begins here, and where it ends; ValueError for what is none."""
    stack: list[list[Any]] = [[]]
    while True:
        token = _TOKEN.match(text, at)
        if token is None or len(stack) > MAX_NESTING:
            raise ValueError("This is no Emacs Lisp that can be read")
        at = token.end()
        if token["open"]:
            stack.append([])
        elif token["close"] and len(stack) > 1:
            stack[-2].append(_list_of(stack.pop()))
        elif token["close"]:
            raise ValueError("A list ends here that did not begin")
        else:
            stack[-1].append(
                _ESCAPED.sub(_character, token["string"][1:-1])
                if token["string"]
                else _atom(token["atom"])
            )
        if len(stack) == 1:
            return stack[0][0], at


def _list_of(items: list[Any]) -> Any:
    is_plist = len(items) % 2 == 0 and all(_is_keyword(item) for item in items[::2])
    if items and is_plist:
        return {key[1:]: _plain(value) for key, value in zip(items[::2], items[1::2], strict=True)}
    return [_plain(item) for item in items]


def _is_keyword(item: Any) -> bool:
    return isinstance(item, _Symbol) and item.startswith(":")


def _plain(value: Any) -> Any:
    return _CONSTANTS.get(value, str(value)) if isinstance(value, _Symbol) else value


def _atom(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return _Symbol(text)


def _character(escaped: re.Match[str]) -> str:
    return {"n": "\n", "t": "\t", "\n": ""}.get(escaped[1], escaped[1])


_TOKEN = re.compile(
    r'\s*(?:(?P<open>[(\[])|(?P<close>[)\]])|(?P<string>"(?:[^"\\]|\\.)*")|(?P<atom>[^\s()\[\]"]+))',
    re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_CONSTANTS = {"t": True, "nil": None, ":null": None, ":json-false": False}
