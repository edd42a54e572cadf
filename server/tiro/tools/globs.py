"""What a `*` in a command line stands for: the names that fit it, as every shell finds them.

Law: what shells may disagree about, or what depends on an order that is not certain, is no answer.
"""

import contextlib
import fnmatch
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tiro.tools.command_core import within_git
from tiro.tools.command_line import SPECIAL, CommandLine, word_set
from tiro.tools.given_options import is_option
from tiro.tools.known_options import program_of
from tiro.tools.patterns import alternatives, with_stars
from tiro.tools.readers import READERS, only_reads

MAX_PARTS = 100
"""No pattern for more folders within folders is looked into."""
MAX_NAMES = 2000
"""So many names are looked at for one pattern; one that needs more asks."""

_QUOTES = re.compile(r"[\"'\\]")
_BREAKS = re.compile(r"[\s;&|()<>`]+")
_MARKS = re.compile(r"[*?\[{~$]|^/")
_HERE = re.compile(r"\$PWD\b|\$\{PWD\}")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_WILD = re.compile(r"[*?\[]")
_LAST_IS_TARGET = word_set("cp mv install ln")


class UncertainError(ValueError):
    """It is not certain what a pattern stands for."""


def expanded_words(
    line: CommandLine,
    at: int,
    folder: Path | None,
    spend: Callable[[int], bool] = lambda _: True,
) -> tuple[str, ...]:
    """The words of a command in a line, run in this folder, with names for its patterns.

    Asks the disk. Raises UncertainError, also where a command of the line may make other names, and
    once `spend`, which hears how many names are looked at, is false.
    """
    words = line.commands[at]
    places = {word for command, word in line.globs if command == at}
    if not places:
        return words
    others = [*line.commands[:at], *(line.commands[at + 1 :] if "|" in line.joints else ())]
    may_change = any(only_reads(one, deep=True) is None for one in others)
    if folder is None or words[0] == "cd" or may_change:
        raise UncertainError(SPECIAL.format(character="*"))
    found: list[str] = []
    for place, word in enumerate(words):
        names = _names(word, folder, spend) if place in places else [word]
        if any(name.startswith("-") for name in names if name != word):
            raise UncertainError(SPECIAL.format(character="*"))
        if len(names) > 1 and not _takes_any_order(words, place):
            raise UncertainError(SPECIAL.format(character="*"))
        found += names
    return tuple(found)


def possible_names(text: str, folder: Path, spend: Callable[[int], bool]) -> Iterator[str]:
    """What the words of any line may stand for that hold a wildcard, braces, `~` or a variable.

    Asks the disk, until `spend`, which hears how many names are looked at, is false. Meant for the
    side of asking: a shell may see it otherwise.
    """
    words = _BREAKS.split(_HERE.sub(lambda _: str(folder), _QUOTES.sub("", text)))
    for word in dict.fromkeys(word for word in words if _MARKS.search(word)):
        try:
            forms = alternatives(word)
        except ValueError:
            spend(sys.maxsize)
            return
        for form in dict.fromkeys((*forms, *(one.partition("=")[2] for one in forms))):
            path = os.path.expanduser(_VARIABLE.sub(_as_path, form))
            if _WILD.search(path):
                parts = os.path.join(folder, path).split("/")[1:]
                yield from _fitting("", parts, spend) if len(parts) <= MAX_PARTS else ()
            elif path:
                yield path


def _as_path(variable: re.Match[str]) -> str:
    """What a variable holds, if that is a path; no other may be shown to anybody."""
    value = os.environ.get(variable[1] or variable[2], "")
    return value if value.startswith("/") and os.path.lexists(value) else variable[0]


def _fitting(place: str, parts: Sequence[str], spend: Callable[[int], bool]) -> Iterator[str]:
    """The paths below a place that fit the parts of a pattern, as most shells find them."""
    if not parts:
        yield place
        return
    part, rest = parts[0], parts[1:]
    for name in _listed(place, part, spend) if _WILD.search(part) else [part]:
        yield from _fitting(f"{place}/{name}", rest, spend)


def _listed(place: str, part: str, spend: Callable[[int], bool]) -> Iterator[str]:
    test = re.compile(fnmatch.translate(part)).match
    if not spend(1):
        return
    with contextlib.suppress(OSError), os.scandir(place or "/") as entries:
        for entry in entries:
            if not spend(1):
                return
            if test(entry.name) and (part.startswith(".") or not entry.name.startswith(".")):
                yield entry.name


def _takes_any_order(words: Sequence[str], place: int) -> bool:
    """Whether the command makes the same of several words here, whichever comes first."""
    core, _ = within_git(words)
    before = core[1 : place - (len(words) - len(core))]
    name = os.path.basename(core[0])
    if name in _LAST_IS_TARGET and place == len(words) - 1:
        return False
    program = program_of(name)
    is_alike = core[0] in READERS or (program is not None and not program.verbs and name != "tar")
    return is_alike or any(not is_option(word) for word in before)


def _names(pattern: str, folder: Path, spend: Callable[[int], bool]) -> list[str]:
    """The names that fit a pattern, sorted, or the pattern itself where there is none."""
    parts = pattern.split("/")
    if "" in parts[:-1] or any(part.startswith(".") and "*" in part for part in parts):
        raise UncertainError(SPECIAL.format(character="*"))
    try:
        heads = [""]
        for part in parts:
            heads = [name for head in heads for name in _step(head, part, folder, spend)]
            if len(heads) > MAX_NAMES:
                raise UncertainError(SPECIAL.format(character="*"))
    except OSError as error:
        raise UncertainError(SPECIAL.format(character="*")) from error
    return sorted(heads) or [pattern]


def _step(head: str, part: str, folder: Path, spend: Callable[[int], bool]) -> Iterator[str]:
    """The names below one that fit the next part of a pattern."""
    start = f"{head}/" if head else ""
    place = folder / start
    if not spend(1):
        raise UncertainError(SPECIAL.format(character="*"))
    if not part:
        yield from [start] if place.is_dir() else []
    elif "*" not in part:
        yield from [start + part] if os.path.lexists(f"{place}/{part}") else []
    elif place.is_dir():
        test = with_stars(part)
        for count, name in enumerate(os.listdir(place)):
            if count >= MAX_NAMES or not spend(1) or not name.isprintable():
                raise UncertainError(SPECIAL.format(character="*"))
            if not name.startswith(".") and test.fullmatch(name):
                yield start + name
