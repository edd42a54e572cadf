"""What a command line is about: its simple commands, and the paths among their words.

A word counts as a path wherever it could be one. Only a plain line tells its words for sure; in any
other they are guessed, on the side of asking.
"""

import itertools
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from tiro.agents.command_folders import (
    About,
    Found,
    found_among,
    found_in_folders,
    found_in_parts,
)
from tiro.agents.command_order import LED_ASTRAY, led_astray
from tiro.agents.command_rules import CommandSubject, fed_commands, stand_alone
from tiro.agents.path_patterns import PathSubject
from tiro.agents.path_rights import Objection, PathRights
from tiro.agents.walks import cost_of
from tiro.tools.command_core import within_git
from tiro.tools.command_line import CommandLine, loose_words, parse_with_globs
from tiro.tools.command_risks import hides_others, is_known
from tiro.tools.git_diff import diffed_paths
from tiro.tools.git_settings import READING_HOOKS, local_source, repository_doubt
from tiro.tools.globs import UncertainError, expanded_words, possible_names
from tiro.tools.readers import only_reads
from tiro.tools.shell import is_reading

NOWHERE = "/dev/null"
NOT_READ = "{name} may not be read"
IN_THE_WAY = (
    "{name} lies there and may not be read; search beside it, or use the tool grep, which leaves it"
    " out"
)
LISTS = "{word!r} may name a file to take more words from"
ASKING_GIT = 1000
"""It counts as so many looks at the disk."""
UNSEEN = "{path} is too large to look at, or cannot be"


class CommandAim(msgspec.Struct, frozen=True, kw_only=True):
    """A command, or a path that a command names and that needs a look of its own."""

    line: str
    """What an answer "always" is remembered by: the simple command, or all of the line."""
    command: CommandSubject | None = None
    path: Path | None = None
    about: About = "outside"
    outside: PathSubject | None = None
    """One of its names outside the workspace."""
    objection: Objection | None = None
    """What a rule has against the path."""
    bound_to: str = ""
    """What an answer "always" is bound to besides: that path, or that there is one in a folder."""

    @property
    def is_banned(self) -> bool:
        """Whether it is a file that a rule denies to read."""
        return self.objection is not None and self.objection.is_ban


class Rights(msgspec.Struct, frozen=True):
    """What the rules say beforehand."""

    paths: PathRights
    forbids: Callable[[CommandSubject], bool]
    """Whether they deny a command, as far as its words go."""


def command_aims(command: str, folder: Path, rights: Rights) -> Iterator[CommandAim]:
    """All that a command line, run in this folder, is about; asks the disk."""
    line = _expanded(parse_with_globs(command), folder, rights.paths.budget.spend)
    if line.unplain is not None:
        yield from _of_any_line(command, line.text, folder, rights.paths)
        return
    places, is_still = _folders(line, folder), is_reading(command)
    hooks = () if is_still else READING_HOOKS
    astray, fed = led_astray(line, places, rights.paths.budget), fed_commands(line)
    alone = stand_alone(line) and not line.globs and not any(astray)
    each = zip(line.commands, line.wishes, places, astray, fed, strict=True)
    for words, wishes, at, is_astray, is_fed in each:
        text = shlex.join([*wishes, *words]) if alone else line.text
        (core, inner), is_home = within_git(words), at in rights.paths.roots
        named = _paths_among(words, is_written_out=not line.globs)
        outer = [*named, inner] if inner else named
        shows = only_reads(words, deep=True) is not None
        paths = list(_paths_of(text, outer, at or folder, rights.paths, shows=shows))
        if inner and at is not None:
            at = Path(os.path.realpath(at / inner))
            paths += _paths_of(text, named, at, rights.paths, shows=shows)
        yield from paths
        banned = next((one.objection for one in paths if one.is_banned), None)
        is_free = at is not None and banned is None and _shows_files(words, at)
        doubt = None if at is None else _doubt(core, at, hooks, deep=inner != "")
        if banned is not None and banned.is_named and doubt is None:
            doubt = NOT_READ.format(name=banned.subject.name)
        source = local_source(core, at) if at is not None and core[0] == "git" else None
        source = LED_ASTRAY if is_astray else source or _list_of_words(core, at)
        is_free, doubt = is_free and source is None, source or doubt
        subject = CommandSubject(
            words, is_free=is_free, doubt=doubt, is_home=is_home, is_fed=is_fed, wishes=wishes
        )
        yield from _come_upon(text, subject, at or folder, rights, is_still=is_still)
    yield from _unseen(line.text, folder, rights.paths)


def _of_any_line(command: str, text: str, folder: Path, rights: PathRights) -> Iterator[CommandAim]:
    """What a line is about that is not plain: all that may be a word in it."""
    words = tuple(loose_words(command))
    names = itertools.chain(words, possible_names(command, folder, rights.budget.spend))
    yield from _paths_of(text, names, folder, rights, shows=False)
    found = dict.fromkeys(found_in_parts(command, folder, rights))
    yield from (_met(text, one, rights) for one in found if one.about != "unseen")
    yield from _unseen(text, folder, rights)
    yield CommandAim(line=text, command=CommandSubject(words, is_plain=False))


def _paths_among(words: Sequence[str], *, is_written_out: bool) -> Sequence[str]:
    """The words of a command that may be paths; a line may be a word of another."""
    reading = only_reads(words, deep=True) if is_written_out else None
    named = words[1:] if reading is None else reading.paths
    if hides_others(words):
        named = (*named, *(one for word in named if " " in word for one in loose_words(word)))
    return named if _PROGRAM.fullmatch(words[0]) else (words[0], *named)


def _unseen(line: str, folder: Path, rights: PathRights) -> Iterator[CommandAim]:
    """That not all of a line could be looked at, where that is so."""
    if rights.budget.is_spent:
        yield CommandAim(line=line, path=folder, about="unseen", bound_to="unseen")


def _expanded(line: CommandLine, folder: Path, spend: Callable[[int], bool]) -> CommandLine:
    """The line with names for its patterns; not plain where it is not certain which."""
    if not line.globs:
        return line
    places = _folders(line, folder)
    try:
        commands = [expanded_words(line, at, place, spend) for at, place in enumerate(places)]
    except UncertainError as error:
        return CommandLine(text=line.text, unplain=str(error))
    return msgspec.structs.replace(line, commands=tuple(commands))


def _come_upon(
    line: str, subject: CommandSubject, folder: Path, rights: Rights, *, is_still: bool
) -> Iterator[CommandAim]:
    """A command, and what it comes upon where its words alone would let it run.

    What searches below folders and comes upon nothing there only reads what it may. `is_still`
    says that nothing in the line does more than read, and that its environment sees to it.
    """
    core, _ = within_git(subject.words)
    diffed = _diffed(core, folder, rights.paths) if is_still and subject.is_free else None
    reads = only_reads(core, deep=True) is not None
    seeks = diffed is not None or (core[0] != "git" and reads)
    found: list[Found] = []
    if only_reads(core, deep=False) is None and (seeks or not rights.forbids(subject)):
        looked = found_in_folders(core, folder, rights.paths, shows=reads)
        found = list(looked if diffed is None else found_among(diffed, rights.paths))
        if hides_others(core):
            found += found_in_parts(" ".join(core[1:]), folder, rights.paths)
        is_seen = seeks and all(map(_may_be_shown, found))
        subject = msgspec.structs.replace(subject, is_seen=is_seen)
    for one in found:
        if one.about == "unseen":
            doubt = UNSEEN.format(path=one.path)
            subject = msgspec.structs.replace(subject, is_free=False, doubt=doubt)
            continue
        aim = _met(line, one, rights.paths)
        if aim.objection is not None and aim.is_banned and subject.doubt is None:
            told = IN_THE_WAY if seeks else NOT_READ
            doubt = told.format(name=aim.objection.subject.name)
            subject = msgspec.structs.replace(subject, doubt=doubt)
        yield aim
    yield CommandAim(line=line, command=subject)


def _may_be_shown(found: Found) -> bool:
    """Whether it is a file that may be read once somebody was asked, as by its name."""
    return found.objection is not None and not found.objection.is_ban


def _met(line: str, found: Found, rights: PathRights) -> CommandAim:
    """What a command comes upon; an answer "always" holds for all of its kind in the folder."""
    return CommandAim(
        line=line,
        path=found.path,
        about=found.about,
        outside=rights.subject(found.path) if found.about == "outside" else None,
        objection=found.objection,
        bound_to=found.about,
    )


def _diffed(words: Sequence[str], folder: Path, rights: PathRights) -> Sequence[Path] | None:
    """The files that a `git diff` shows, where they are known and all in the workspace."""
    is_diff = list(words[:2]) == ["git", "diff"] and only_reads(words, deep=False) is None
    if not is_diff or not rights.budget.spend(ASKING_GIT):
        return None
    found = diffed_paths(words, folder)
    return found if found is not None and all(map(rights.is_inside, found)) else None


def _folders(line: CommandLine, folder: Path) -> list[Path | None]:
    """The folder that each command runs in; None where that is not known.

    It is known behind a `cd` as long as nothing runs when the `cd` fails, and `..` leads to the
    same folder by the names, as most shells take it, and by the links.
    """
    changes = [words[0] == "cd" for words in line.commands]
    if not any(changes):
        return [folder] * len(changes)
    last = max(at for at, is_change in enumerate(changes) if is_change)
    is_known = (
        all(changes[: last + 1])
        and all(joint == "&&" for joint in line.joints[: last + 1])
        and all(joint in ("&&", "|") for joint in line.joints)
        and all(only_reads(words, deep=False) for words in line.commands[: last + 1])
    )
    if not is_known:
        return [None] * len(changes)
    found: list[Path | None] = []
    named = folder
    for words, is_change in zip(line.commands, changes, strict=True):
        found.append(folder)
        if is_change:
            named = Path(os.path.normpath(named / words[1]))
            folder = Path(os.path.realpath(folder / words[1]))
            if folder != Path(os.path.realpath(named)):
                return [None] * len(changes)
    return found


def _paths_of(
    line: str, words: Iterable[str], folder: Path, rights: PathRights, *, shows: bool
) -> Iterator[CommandAim]:
    """The paths among words that lie outside the workspace, or that rules are against.

    `shows` is for a command that does nothing but read.
    """
    seen: set[str] = set()
    for piece in (piece for word in words for piece in _pieces(word)):
        if not rights.budget.spend(cost_of(piece)):
            return
        if piece in seen:
            continue
        seen.add(piece)
        named = folder / piece
        path, written = Path(os.path.realpath(named)), Path(os.path.normpath(named))
        if not rights.is_inside(path):
            for name in rights.outside(path, written):
                yield CommandAim(line=line, path=path, outside=name, bound_to=str(path))
        for one in rights.objections(path, written, writes=not shows, shows=shows):
            about: About = "guarded" if one.is_guarded else "banned"
            yield CommandAim(line=line, path=path, about=about, objection=one, bound_to=str(path))


def _pieces(word: str) -> Iterator[str]:
    """All in a word that may be a path: `-I/usr`, `--file=../x`, `-d@.env`, `x::test`, `-sKx`."""
    bare = _WEB.sub("", word)
    marks = (mark.end() for mark in _MARKS.finditer(bare))
    found = [bare[at:] for at in marks if len(bare) - at <= _LONGEST]
    found += _MARKS.split(bare)
    found.append(word)  # behind `--`, or where options do not come last, `-b` is a file
    for option in [piece for piece in found if piece.startswith("-")]:
        letters = _LETTERS.match(option)
        found += [option[at:] for at in range(2, letters.end() + 1)] if letters else []
        head = _MARKS.split(option, maxsplit=1)[0]
        found += [option[at:] for sign in ("/", "..") if (at := head.find(sign)) > 0]
    return (piece for piece in found if 0 < len(piece) <= _LONGEST and piece != NOWHERE)


_LONGEST = 4096
"""No system takes a longer path."""
_PROGRAM = re.compile(r"[A-Za-z][\w.+-]*")
"""The name of a program, which is no path."""
_WEB = re.compile(r"https?://[^\s,;<>]*", re.IGNORECASE)
"""An address in the web, which is no path wherever it stands."""
_MARKS = re.compile("[=:@,<;]")
"""Before and behind these a path may stand within a word."""
_LETTERS = re.compile("-[A-Za-z0-9]{1,20}")
"""Options of one letter; a value may follow each of them."""


def _doubt(words: Sequence[str], folder: Path, hooks: Sequence[str], *, deep: bool) -> str | None:
    """Why a command that only reads may do more in this folder, or None."""
    is_git = words[0] == "git" and only_reads(words, deep=deep) is not None
    return repository_doubt(folder, hooks) if is_git else None


def _list_of_words(words: Sequence[str], folder: Path | None) -> str | None:
    """Why a program of which nothing is known may get other words than these, or None."""
    lists = [word for word in words[1:] if word.startswith("@")] if not is_known(words) else []
    found = (word for word in lists if folder and os.path.lexists(folder / word[1:]))
    return next((LISTS.format(word=word) for word in found), None)


def _shows_files(words: Sequence[str], folder: Path) -> bool:
    """Whether all that it shows the text of are regular files, where it only reads."""
    reading = only_reads(words, deep=False)
    if reading is None or reading.shows != "text":
        return True
    there = [folder / path for path in reading.paths if path not in ("", "-", NOWHERE)]
    try:
        return all(path.is_file() or not os.path.lexists(path) for path in there)
    except OSError:
        return False
