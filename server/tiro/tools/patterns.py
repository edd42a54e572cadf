"""Path patterns, the same everywhere: permission rules, `glob`, `grep` and .gitignore files.

`*`, `?` and `[…]` stay within one part of a path, `**` crosses parts, and a pattern without a slash
is tested on the base name alone. Matching is case-sensitive and takes at most
(parts of the pattern) x (parts of the path) steps, whatever somebody writes into a pattern.
"""

import fnmatch
import re
from collections.abc import Callable, Sequence
from functools import lru_cache

MAX_ALTERNATIVES = 64
"""How many patterns one pattern with `{a,b}` may stand for."""


class PathPattern:
    """A compiled pattern.

    Most patterns have no `**` but at their beginning, and then a comparison part by part decides.
    """

    def __init__(self, pattern: str) -> None:
        parts = [part for part in pattern.split("/") if part not in ("", ".")]
        if "/" not in pattern and parts:
            parts = ["**", *parts]
        if parts and parts[-1] == "**":
            parts.append("*")  # `a/**` is what lies in a, not a itself
        self._ends_in_any = parts[-1:] == ["*"]
        self._parts = [None if part == "**" else _segment(part) for part in parts]
        self._begins_anywhere = bool(parts) and parts[0] == "**"
        rest = self._parts[1:] if self._begins_anywhere else self._parts
        self._tail = [part for part in rest if part is not None]
        self._is_plain = len(self._tail) == len(rest)

    def matches(self, parts: Sequence[str]) -> bool:
        """Whether a path, given by its parts, fits."""
        if not self._is_plain:
            return self._matches_in_states(parts)
        ahead = len(parts) - len(self._tail)
        if ahead < 0 or (ahead and not self._begins_anywhere):
            return False
        return all(fits(part) for fits, part in zip(self._tail, parts[ahead:], strict=True))

    def reaches(self, parts: Sequence[str]) -> bool:
        """Whether a path, or a folder that it lies in, fits; of `*` at the end only the path."""
        if self._ends_in_any:
            return self.matches(parts)
        if not self._is_plain:
            return self._matches_in_states(parts, is_folder_enough=True)
        ahead = len(parts) - len(self._tail)
        starts = range(ahead + 1 if self._begins_anywhere else min(1, ahead + 1))
        return any(
            all(fits(part) for fits, part in zip(self._tail, parts[start:], strict=False))
            for start in starts
        )

    def _matches_in_states(self, parts: Sequence[str], *, is_folder_enough: bool = False) -> bool:
        states = self._widened({0})
        for part in parts:
            if is_folder_enough and len(self._parts) in states:
                return True
            stepped = {after for state in states if (after := self._step(state, part))}
            states = self._widened(stepped | {state for state in states if self._crosses(state)})
        return len(self._parts) in states

    def _step(self, state: int, part: str) -> int | None:
        """The state after this part has been matched by the pattern's part at `state`."""
        fits = self._parts[state] if state < len(self._parts) else None
        return state + 1 if fits is not None and fits(part) else None

    def _crosses(self, state: int) -> bool:
        return state < len(self._parts) and self._parts[state] is None

    def _widened(self, states: set[int]) -> set[int]:
        """The states, and those behind a `**` that matches nothing."""
        for state in sorted(states):
            while self._crosses(state):
                state += 1
                states.add(state)
        return states


@lru_cache(maxsize=512)
def path_pattern(pattern: str) -> PathPattern:
    """The compiled pattern; compiling is cached."""
    return PathPattern(pattern)


@lru_cache(maxsize=512)
def with_stars(text: str) -> re.Pattern[str]:
    """A text in which `*` stands for any characters, to be matched whole.

    Takes (length of the pattern) x (length of a word) steps at most: no star is tried again.
    """
    first, *rest = map(re.escape, text.split("*"))
    if not rest:
        return re.compile(first)
    middle = "".join(f"(?>.*?{part})" for part in rest[:-1])
    return re.compile(f"{first}{middle}.*{rest[-1]}", re.DOTALL)


def is_void(part: str) -> bool:
    """Whether no name can fit a part of a pattern, such as `[z-a]`."""
    return "(?!)" in fnmatch.translate(part)


def parts_of(path: str) -> list[str]:
    """The parts of a relative path, without `.` and empty ones."""
    return [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]


def alternatives(pattern: str) -> list[str]:
    """The patterns that a pattern with `{a,b}` stands for; the pattern itself when it has none.

    Raises ValueError for more than MAX_ALTERNATIVES.
    """
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        if len(done) + len(waiting) > MAX_ALTERNATIVES:
            raise ValueError("The pattern has too many alternatives in braces")
        first = waiting.pop(0)
        found = _BRACES.search(first)
        if found is None:
            done.append(first)
        else:
            before, after = first[: found.start()], first[found.end() :]
            waiting = [before + choice + after for choice in found[1].split(",")] + waiting
    return list(dict.fromkeys(done))


def _segment(part: str) -> Callable[[str], object]:
    """The test of one part; `fnmatch` writes expressions that never backtrack for long."""
    if not set(part) & set("*?["):
        return part.__eq__
    return re.compile(fnmatch.translate(part)).match


_BRACES = re.compile(r"(?<!\[)\{([^{},]*,[^{}]*)\}")
"""Alternatives; `[{]` is a brace."""
