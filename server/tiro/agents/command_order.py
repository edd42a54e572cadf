"""What a command of a line changes for the others in it.

A line is looked at before any of it runs. Behind a command that may put links in place, no path
needs to lead where it led then: `git checkout topic && cat notes` reads whatever `notes` is there.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from posixpath import basename

from tiro.agents.command_folders import COPIERS, MOVERS, TARGET, unpacks
from tiro.agents.walks import Budget
from tiro.tools.command_core import within_git
from tiro.tools.command_line import CommandLine, word_set
from tiro.tools.command_risks import LANGUAGES, hides_others
from tiro.tools.given_options import Option
from tiro.tools.known_options import program_of
from tiro.tools.readers import GIT_READERS, only_reads

LED_ASTRAY = "what runs beside it may let its paths lead elsewhere"

_GIT_STILL = word_set(
    "add commit tag branch fetch push remote init rm gc notes prune config cat-file reflog"
    " ls-remote diff-tree diff-index diff-files whatchanged show-ref for-each-ref"
)
"""What git does without changing a file of the working tree into a link."""
_GIT_BY_PATH = word_set("clone apply am init worktree submodule hash-object")
"""What git does with paths as the system takes them; its own never lead through a link."""
_LINKERS = word_set("ln gln link rsync ditto")
"""What puts a link wherever it is told, or copies those that it finds unless it is told not to."""
_LINKING = Option("sl", "symbolic-link link")
_KEEPS_LINKS = Option("RrdaP", "recursive archive no-dereference preserve")
_OF_TEXT = word_set("tar curl bat gcc rustc javac black isort ruff tsc")
"""Known programs that do no more than their words say; the others run code of the workspace."""


def led_astray(line: CommandLine, places: Sequence[Path | None], budget: Budget) -> list[bool]:
    """For each command of a plain line, whether another may change where its paths lead.

    `places` are the folders that they run in. Asks the disk.
    """
    count = len(line.commands)
    if count == 1:
        return [False]
    found = [
        _may_put_links(words, place, budget)
        for words, place in zip(line.commands, places, strict=True)
    ]
    is_joined = "|" in line.joints  # then those behind it run at the same time
    others = [found[:at] + (found[at + 1 :] if is_joined else []) for at in range(count)]
    return [
        any(before) and _goes_by_paths(words)
        for before, words in zip(others, line.commands, strict=True)
    ]


def _may_put_links(words: Sequence[str], folder: Path | None, budget: Budget) -> bool:
    """Whether a command, or one that it may run, may put a link where none was, or move one."""
    core, _ = within_git(words)
    starts = range(len(core)) if hides_others(core) else (0,)
    return any(_puts_links(core[at:], folder, budget) for at in starts)


def _puts_links(words: Sequence[str], folder: Path | None, budget: Budget) -> bool:
    name, rest = basename(words[0]), words[1:]
    if name == "git":
        verb = rest[0] if rest else ""
        return verb not in _GIT_STILL and verb not in GIT_READERS
    if name in COPIERS and name not in _LINKERS:
        if _LINKING.is_given(rest):
            return True
        is_moving = name in MOVERS or _KEEPS_LINKS.is_given(rest)
        moved = rest if TARGET.is_given(rest) else rest[:-1]
        if not is_moving or folder is None:
            return is_moving
        return _hold_links((folder / word for word in moved), budget)
    return name in _LINKERS or unpacks(words)


def _hold_links(starts: Iterator[Path], budget: Budget) -> bool:
    """Whether one of these is a link, or holds one, or is too large to tell."""
    for start in starts:
        if start.is_symlink():
            return True
        for top, folders, files in os.walk(start):
            is_seen = budget.spend(len(folders) + len(files))
            if not is_seen or any(os.path.islink(f"{top}/{name}") for name in (*folders, *files)):
                return True
    return False


def _goes_by_paths(words: Sequence[str]) -> bool:
    """Whether a command gets at files by paths among its words."""
    core, inner = within_git(words)
    name = basename(core[0])
    if name == "git":
        return bool(inner or "--no-index" in core or _GIT_BY_PATH.intersection(core[1:2]))
    reading = only_reads(core, deep=True)
    if reading is not None:
        return bool(reading.paths)
    known = program_of(name)
    is_of_text = any(known is program_of(one) for one in _OF_TEXT)
    runs_code = name in LANGUAGES or (known is not None and not is_of_text)
    return not runs_code and len(core) > 1
