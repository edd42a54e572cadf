"""The command within a command: what `timeout`, `time`, `nice` and `git -C` run, as they run it."""

import re
from collections.abc import Sequence

_PREFIXES = {
    "timeout": (re.compile(r"\d+(\.\d+)?[smhd]?"),),
    "time": (),
    "nice": (),
}
"""By their names: the words that stand before the command."""
_NICE_OPTION = re.compile(r"-(n-?)?\d+")
_NUMBER = re.compile(r"-?\d+")
_NO_PAGER = "--no-pager"


def core_of(words: Sequence[str]) -> Sequence[str]:
    """The words of the command that is run in the end; the same words where there is no other."""
    while (behind := _behind_prefix(words)) is not None:
        words = behind
    if words[0] == "git" and words[1:2] == (_NO_PAGER,):
        return ("git", *words[2:])
    return words


def within_git(words: Sequence[str]) -> tuple[Sequence[str], str]:
    """The core of a command without git's `-C`, and the folder that it names, or the empty text."""
    core = core_of(words)
    if core[0] != "git" or core[1:2] != ("-C",) or core[2:3] in ((), ("",)):
        return core, ""
    return core_of(("git", *core[3:])), core[2]


def _behind_prefix(words: Sequence[str]) -> Sequence[str] | None:
    """The command that a prefix runs, or None where there is none or it is not certain."""
    tests = _PREFIXES.get(words[0])
    if tests is None:
        return None
    rest = words[1:]
    if words[0] == "nice" and rest[:1] == ("-n",) and len(rest) > 1 and _NUMBER.fullmatch(rest[1]):
        rest = rest[2:]
    elif words[0] == "nice" and rest and _NICE_OPTION.fullmatch(rest[0]):
        rest = rest[1:]
    if len(rest) <= len(tests) or not all(map(re.Pattern.fullmatch, tests, rest)):
        return None
    rest = rest[len(tests) :]
    return None if rest[0] == "cd" or rest[0][:1] in ("", "-", "+") or "=" in rest[0] else rest
