"""What the words of find say: where it starts, what it tests, and the commands that it runs.

Law: a word that is not listed here is not known, nor is a line in which every system's find would
not tell the same words for tests, their values and commands. What may write, delete, ask or take
its folders from a file is not listed.
"""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

import msgspec

from tiro.tools.command_line import word_set

HANDED = "{}"
"""What stands for the files that were found."""

_TESTS = word_set(
    "-name -iname -path -ipath -wholename -type -size -mtime -mmin -ctime -cmin -atime"
    " -amin -newer -maxdepth -mindepth -perm -user -group -regex -iregex -regextype"
    " -printf -links -inum"
)
"""With a value, which is the next word on every system."""
_WORDS = word_set(
    "-and -a -print -print0 -ls -empty -prune -quit -depth -mount -xdev"
    " -executable -readable -writable -true -false"
)
_CHOICES = word_set("-o -or -not ! ( ) ,")
"""With these a test need not hold for what is found."""
_BEFORE = word_set("-H -P")
"""Options before the folders; with `-L`, what it finds lies wherever a link leads."""
_SIGNED = re.compile(r"-\d+\w*")
_SURE = re.compile(r"[\w.*?-]*", re.ASCII)
"""A pattern of names that is the same on every system."""


class Find(msgspec.Struct, frozen=True, kw_only=True):
    """What a find does."""

    starts: tuple[str, ...]
    """Where it starts, as it is written; none for its own folder."""
    compared: tuple[str, ...] = ()
    """Other files that its tests look at."""
    commands: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """What it runs on what it finds, and at which word that begins."""
    names: tuple[str, ...] = ()
    """Patterns that fit the name of whatever is handed to a command."""
    finds_files_only: bool = False
    """Whether whatever is handed to a command is a file and no link."""

    def may_hand_over(self, name: str) -> bool:
        """Whether a file of this name may be handed to a command."""
        sure = (one for one in self.names if _SURE.fullmatch(one) and name.isascii())
        return all(fnmatchcase(name, one) for one in sure)


def find_of(words: Sequence[str]) -> Find | None:
    """What these words, find itself among them, say; None where that is not certain."""
    at = 1
    while at < len(words) and words[at] in _BEFORE:
        at += 1
    first = next((i for i, word in enumerate(words) if i >= at and _is_term(word)), len(words))
    starts = words[at:first]
    is_sure = _are_starts(starts) and words[first : first + 1] not in ([","], [")"])
    return _terms(words, first, starts) if is_sure else None


def _is_term(word: str) -> bool:
    return word.startswith("-") or word in _CHOICES


def _are_starts(words: Sequence[str]) -> bool:
    """Whether each of these is a folder to every find."""
    return all(word and word[0] not in "!(),;" for word in words)


def _terms(words: Sequence[str], at: int, starts: Sequence[str]) -> Find | None:
    """What stands behind the folders, a term after the other."""
    compared: list[str] = []
    commands: list[tuple[int, tuple[str, ...]]] = []
    tests: list[tuple[str, str]] = []
    while at < len(words):
        word = words[at]
        if word in _TESTS and at + 1 < len(words):
            value = words[at + 1]
            if value.startswith("-") and not _SIGNED.fullmatch(value):
                return None
            compared += [value] if word == "-newer" else []
            tests += [] if commands else [(word, value)]
            at += 2
        elif word == "-exec" and (end := _command_end(words, at + 1)) > at + 1:
            commands.append((at + 1, tuple(words[at + 1 : end])))
            at = end + 1
        elif word in _WORDS or word in _CHOICES:
            at += 1
        else:
            return None
    is_sure = not _CHOICES.intersection(words)
    return Find(
        starts=tuple(starts),
        compared=tuple(compared),
        commands=tuple(commands),
        names=tuple(value for test, value in tests if is_sure and test == "-name"),
        finds_files_only=is_sure and ("-type", "f") in tests,
    )


def _command_end(words: Sequence[str], start: int) -> int:
    """The place of the `;` or `+` that ends a command, or 0; what is found is a word of its own."""
    for at in range(start, len(words)):
        if words[at] == ";" or (words[at] == "+" and words[at - 1] == HANDED):
            inner = words[start:at]
            is_sure = all(HANDED not in word or word == HANDED for word in inner)
            is_several = words[at] == "+"
            return at if is_sure and (not is_several or inner.count(HANDED) == 1) else 0
    return 0
