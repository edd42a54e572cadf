"""What .gitignore files leave out, by git's own rules.

The patterns of a file hold for what lies below its folder; a deeper file beats a higher one, within
a file the last matching line counts, `!` takes back, and nothing is taken back inside a folder that
is left out itself.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

from tiro.tools.patterns import PathPattern, path_pattern

IGNORE_FILE = ".gitignore"
ALWAYS_LEFT_OUT = frozenset({".git", ".hg", ".svn", ".jj"})
"""Folders of version control systems; nobody reads them as files."""


class IgnoreRule(msgspec.Struct, frozen=True):
    """One line of a .gitignore file."""

    pattern: PathPattern
    is_negated: bool
    only_directories: bool


class Ignore(msgspec.Struct, frozen=True):
    """The rules that hold in one folder: its own, and those of the folders above it."""

    depth: int = 0
    """How many parts the folder's path has, counted from the workspace root."""
    rules: tuple[IgnoreRule, ...] = ()
    above: "Ignore | None" = None

    def below(self, depth: int, lines: Iterable[str]) -> "Ignore":
        """The rules in a folder further down, which has these lines of its own."""
        rules = tuple(rule for line in lines if (rule := _rule(line)) is not None)
        return Ignore(depth, rules, self) if rules else self

    def leaves_out(self, parts: Sequence[str], *, is_directory: bool) -> bool:
        """Whether the entry with this path, from the workspace root, is left out."""
        level: Ignore | None = self
        while level is not None:
            below = parts[level.depth :]
            for rule in reversed(level.rules):
                if rule.only_directories and not is_directory:
                    continue
                if rule.pattern.matches(below):
                    return not rule.is_negated
            level = level.above
        return False


def _rule(line: str) -> IgnoreRule | None:
    """One line as a rule; None for a comment, an empty line and a broken pattern."""
    text = _TRAILING_BLANKS.sub("", line.rstrip("\r\n"))
    if not text or text.startswith("#"):
        return None
    is_negated = text.startswith("!")
    text = text.removeprefix("!")
    only_directories = text.endswith("/")
    text = text.rstrip("/").replace("[^", "[!")
    if not text:
        return None
    try:
        pattern = path_pattern(_ESCAPE.sub(_as_class, text))
    except re.error:
        return None
    return IgnoreRule(pattern, is_negated, only_directories)


def _as_class(found: re.Match[str]) -> str:
    """A character behind a backslash as a pattern that matches just it."""
    char = found[1]
    return f"[{char}]" if char in "*?[" else char


_ESCAPE = re.compile(r"\\(.)")
_TRAILING_BLANKS = re.compile(r"(?<!\\)[ \t]+$")
