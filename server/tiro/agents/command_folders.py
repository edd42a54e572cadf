"""What a command comes upon in folders, beside the paths that it names.

A search, a comparison or a copy reads all below a folder; a copy also writes by the names of what
it copies, through links that lie there already. So these folders are walked before the command may
run, up to a limit. An unpacked archive and a patch write by names that nobody sees.
"""

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from posixpath import basename
from typing import Literal

import msgspec

from tiro.agents.path_rights import Objection, PathRights
from tiro.agents.walks import cost_of
from tiro.tools.command_line import loose_words, word_set
from tiro.tools.find_words import Find, find_of
from tiro.tools.git_settings import followed_paths, is_in_repository
from tiro.tools.given_options import Option, is_option, named_words
from tiro.tools.readers import READERS, only_reads

About = Literal["outside", "banned", "guarded", "unseen"]
"""It lies outside the workspace, a rule is against reading or writing it, it may be written only by
its name, or it is a folder that cannot be looked at as a whole."""

SEARCHERS = word_set("grep egrep fgrep zgrep rgrep rg ag ack ugrep ug")
ALWAYS_DEEP = word_set("rgrep rg ag ack ugrep ug")
COPIERS = word_set("cp mv install ln link gcp gmv ginstall gln")
MOVERS = word_set("mv gmv")
CHANGERS = word_set("rm chmod chown chgrp grm gchmod gchown gchgrp setfacl chattr")
"""What changes or removes all below a folder, when it is told to."""
_TARS = word_set("tar bsdtar gtar")
PACKERS = _TARS | word_set("7z 7za pax diff zip rsync scp ditto")
"""What else reads all below a folder that it is given."""
UNPACKERS = word_set("unzip cpio patch pax 7z 7za")
_FOLLOWING = {
    **dict.fromkeys(SEARCHERS, Option("RLS", "dereference-recursive dereference follow")),
    **dict.fromkeys(("ag", "ack"), Option("fRLS", "follow")),
    **dict.fromkeys(COPIERS, Option("LH", "dereference")),
    **dict.fromkeys(_TARS, Option("hLH", "dereference")),
}
"""The options with which a command goes where a link leads that it finds."""
_ALWAYS_FOLLOWING = word_set("diff 7z 7za pax")
_DEEP = Option("Rrad", "recursive dereference-recursive directories archive")
_EXTRACT = Option("x", "extract get")
TARGET = Option("t", "target-directory")
"""Where a copy is put, so that the last word need not be that."""
_TARGET = re.compile("-[A-Za-z]*?t(.*)|--t[a-z-]*=?(.*)")
_FLAGS = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "rgrep", "zgrep"), READERS["grep"].flags + "rRyZ"),
    "rg": READERS["rg"].flags,
}
"""By searches: the options of one letter that never take the next word for their value."""
_LONG_FLAGS = word_set(
    "--ignore-case --line-number --files-with-matches --fixed-strings --word-regexp --recursive"
    " --invert-match --only-matching --hidden --no-ignore --smart-case --no-heading --multiline"
)
_PATTERN = re.compile("-[A-Za-z]*[ef]|--regexp|--file")
"""With such a word the pattern is its value."""


_GOING_DEEP = SEARCHERS | COPIERS | PACKERS | CHANGERS
_HANDING = word_set("-exec -execdir -ok -okdir")
_JOINTS = re.compile(r"(?:(?<!\\)[;&|\n()`])+")
_OWN_FOLDER = re.compile(r"\$(?:PWD\b|\{PWD\})")
_UNKNOWN = re.compile(r"(?<![\\'])\$(?:[\w{@*][^\s;&|()<>'\"]*|(?=\())")
"""What a shell puts something else for, which may be any folder."""
_MARKS = re.compile(r"[\"'\\]")
_REDIRECTED = re.compile(r"\d*[<>]+&?\s*[^\s;&|()<>]*")
_LISTED_AT_ONCE = 10
"""So many names in a list cost what one in a folder costs."""


class Found(msgspec.Struct, frozen=True):
    """Something that a command comes upon."""

    path: Path
    """A real path."""
    about: About
    objection: Objection | None = None
    """What a rule has against it."""


def found_in_folders(
    words: Sequence[str], folder: Path, rights: PathRights, *, shows: bool = False
) -> Iterator[Found]:
    """What a command, run in this folder, comes upon that needs a look; asks the disk.

    `shows` is for one that does nothing but read.
    """
    name, rest = basename(words[0]), _dashed(words)
    look = _Look(rights, follows=_follows(name, rest), shows=shows)
    named, odd = named_words(rest), _named_like_options(rest, folder)
    verb = rest[0] if name == "git" and rest else ""
    if name == "git":
        yield from _of_git(look, words, named, folder)
    elif name in COPIERS:
        is_deep = name in MOVERS or _DEEP.is_given(rest)
        yield from look.copied(rest, named, odd, folder, is_deep=is_deep)
    elif name in SEARCHERS and (name in ALWAYS_DEEP or _DEEP.is_given(rest)):
        here = ["."] if _may_search_here(name, rest, named) else []
        yield from look.read([*named, *odd, *here], folder)
    elif name in PACKERS:
        yield from look.read([*named, *odd], folder)
    elif name == "find" and "-delete" in rest:
        yield from look.read(_starts(named), folder, reads=False, writes=True)
    elif name == "find" and _HANDING.intersection(rest):
        handed = find_of(words) or Find(starts=tuple(_starts(named)))
        yield from look.handed(handed, folder, writes=only_reads(words, deep=True) is None)
    if name in MOVERS or (name in CHANGERS and _DEEP.is_given(rest)):
        yield from look.read([*named, *odd], folder, reads=False, writes=True)
    if verb in ("apply", "am") or unpacks(words):
        path = folder / ".git"
        objection = Objection("write", rights.subject(path), is_guarded=True)
        yield Found(path, "guarded", objection)


def found_among(paths: Sequence[Path], rights: PathRights) -> Iterator[Found]:
    """What rules have against showing these."""
    look = _Look(rights, shows=True)
    for path in paths:
        yield from look.ruled(path, reads=True, writes=False)


def found_in_parts(command: str, folder: Path, rights: PathRights) -> Iterator[Found]:
    """The same for a line that is not plain: for all in it that may be such a command."""
    told = _UNKNOWN.sub(".", _OWN_FOLDER.sub(".", _REDIRECTED.sub(" ", command)))
    for part in _JOINTS.split(told):
        loose, exact = loose_words(part), _MARKS.sub("", part).split()  # find has its own brackets
        for words, names in ((loose, _GOING_DEEP), (exact, {"find"})):
            for at, word in enumerate(words):
                if basename(word) in names and rights.budget.spend(len(words) - at):
                    yield from found_in_folders(words[at:], folder, rights)


def _starts(named: Sequence[str]) -> list[str]:
    """Where a find begins, among its words that are no options, or all that this may be."""
    return [*itertools.takewhile(lambda word: word[:1] not in "-(!", named)] or ["."]


def _of_git(
    look: "_Look", words: Sequence[str], named: Sequence[str], folder: Path
) -> Iterator[Found]:
    if list(words[1:2]) != ["blame"]:  # it shows the one file that it names
        yield from look.followed(words, folder)
    if list(words[1:2]) == ["diff"] and ("--no-index" in words or not is_in_repository(folder)):
        yield from look.read(named[1:], folder)


def unpacks(words: Sequence[str]) -> bool:
    """Whether a command writes files by names from an archive or a patch."""
    name = basename(words[0])
    return _EXTRACT.is_given(_dashed(words)) if name in _TARS else name in UNPACKERS


def _dashed(words: Sequence[str]) -> Sequence[str]:
    """The words behind a command; the first of tar's are options without a dash, too."""
    if basename(words[0]) not in _TARS or len(words) == 1:
        return words[1:]
    return [f"-{words[1].removeprefix('-')}", *words[2:]]


def _follows(name: str, words: Sequence[str]) -> bool:
    option = _FOLLOWING.get(name)
    return name in _ALWAYS_FOLLOWING or (option is not None and option.is_given(words))


def _named_like_options(words: Sequence[str], folder: Path) -> list[str]:
    """Those that look like options and are files: on some systems only the first words are none."""
    return [word for word in words if is_option(word) and os.path.lexists(folder / word)]


def _may_search_here(name: str, words: Sequence[str], named: Sequence[str]) -> bool:
    """Whether a search may be given no path, so that it goes through its own folder.

    Each word that may be the value of the option before it may be none of the paths.
    """
    valued = [word for word in words if is_option(word) and _may_take_next(name, word)]
    needed = 1 if any(map(_PATTERN.fullmatch, valued)) else 2
    return len(named) - len(valued) < needed


def _may_take_next(name: str, option: str) -> bool:
    if option.startswith("--"):
        return "=" not in option and option not in _LONG_FLAGS
    return option[-1] not in _FLAGS.get(name, "") and not option[-1].isdigit()


class _Look:
    """One look at the folders of a command."""

    def __init__(self, rights: PathRights, *, follows: bool = False, shows: bool = False) -> None:
        self._rights, self._follows, self._shows = rights, follows, shows
        self._budget = rights.budget

    def read(
        self, named: Sequence[str], folder: Path, *, reads: bool = True, writes: bool = False
    ) -> Iterator[Found]:
        """What lies below the folders among these words and must not be read, or written."""
        for name in dict.fromkeys(named):
            start = Path(os.path.realpath(folder / name))
            if not self._budget.spend():
                yield Found(start, "unseen")
                return
            yield from self.ruled(start, reads=reads, writes=writes)
            for entry in self._below(start):
                yield from self._of_entry(entry, reads, writes, follows=self._follows)
        if self._budget.is_spent:
            yield Found(folder, "unseen")

    def handed(self, find: Find, folder: Path, *, writes: bool) -> Iterator[Found]:
        """What a find may hand to a command, which follows links, and must not be read.

        One that may do more than read may take all below a folder that it is handed.
        """
        is_deep = writes and not find.finds_files_only
        for name in find.starts or ["."]:
            start = Path(os.path.realpath(folder / name))
            names = (start.name, basename(name.rstrip("/")))
            taken = {str(start)} if is_deep and any(map(find.may_hand_over, names)) else set()
            for entry in self._below(start):
                is_named = find.may_hand_over(entry.name)
                if not is_named and os.path.dirname(entry.path) not in taken:
                    continue
                if is_deep:
                    taken.add(entry.path)
                if not entry.is_symlink():
                    yield from self.ruled(Path(entry.path), reads=True, writes=writes)
                elif not find.finds_files_only:
                    yield from self._of_entry(entry, True, writes, follows=True)
                    if is_deep and is_named and find.names:
                        yield from self.read([entry.path], folder, writes=writes)
            if self._budget.is_spent:
                yield Found(start, "unseen")

    def copied(
        self,
        words: Sequence[str],
        named: Sequence[str],
        odd: Sequence[str],
        folder: Path,
        *,
        is_deep: bool,
    ) -> Iterator[Found]:
        """What a copy reads, and where it would write through what lies there already.

        `odd` are files named like options, each of which may be one of the paths.
        """
        given = [found for found in map(_TARGET.match, words) if found]
        targets, sources = named[-1:], named[:-1]
        if given or odd:
            targets = [*named, *odd, *(one[1] or one[2] or "." for one in given)]
            sources = [*named, *odd]
        if is_deep:
            yield from self.read(sources, folder)
        for source in itertools.takewhile(lambda _: not self._budget.is_spent, sources):
            start = folder / source
            below = self._below(start) if is_deep else iter(())
            ends = ["", *(entry.path[len(str(start)) + 1 :] for entry in below)]
            heads = dict.fromkeys(("", source.lstrip("/"), basename(os.path.normpath(source))))
            for target in targets:
                for head in heads:
                    yield from self._written(folder / target / head, ends)
        if self._budget.is_spent:
            yield Found(folder, "unseen")

    def followed(self, words: Sequence[str], folder: Path) -> Iterator[Found]:
        """The files that git follows and must not be read, where it shows the text of files.

        A repository may begin above the workspace; then it has files outside.
        """
        if only_reads(words, deep=True) is None:
            return
        outside: Path | None = None
        try:
            for at, path in enumerate(followed_paths(folder)):
                if not (at % _LISTED_AT_ONCE or self._budget.spend()):
                    yield Found(folder, "unseen")
                    return
                if outside is None and not self._rights.is_inside(path):
                    outside = path
                    yield Found(path, "outside")
                if not self._rights.may_name(path):
                    continue
                if found := [*self.ruled(path, reads=True, writes=False)]:
                    yield from found
                    return
        except (OSError, ValueError):
            yield Found(folder, "unseen")

    def _written(self, place: Path, ends: Sequence[str]) -> Iterator[Found]:
        if not os.path.lexists(place):
            ends = ends[:1]
        for end in ends:
            if not self._budget.spend():
                return
            path = Path(os.path.realpath(place / end))
            if not self._rights.is_inside(path):
                yield Found(path, "outside")
            yield from self.ruled(path, reads=False, writes=True)

    def _of_entry(
        self, entry: os.DirEntry[str], reads: bool, writes: bool, *, follows: bool
    ) -> Iterator[Found]:
        if not entry.is_symlink():
            if self._rights.may_concern(entry):
                yield from self.ruled(Path(entry.path), reads=reads, writes=writes)
        elif follows or writes:
            path = Path(os.path.realpath(entry.path) if follows else entry.path)
            if not self._rights.is_inside(path):
                yield Found(path, "outside")
            for one in dict.fromkeys((path, Path(entry.path))):
                yield from self.ruled(one, reads=reads, writes=writes)

    def ruled(self, path: Path, *, reads: bool, writes: bool) -> Iterator[Found]:
        """What rules have against it; of those that name no file the first is enough."""
        shows = self._shows
        for one in self._rights.objections(path, reads=reads, writes=writes, shows=shows):
            self._shows = self._shows and one.is_named
            yield Found(path, "guarded" if one.is_guarded else "banned", one)

    def _below(self, start: Path) -> Iterator[os.DirEntry[str]]:
        """All below a folder, links as they are and, where they are followed, what they lead to."""
        waiting, seen = [str(start)], {os.path.realpath(start)}
        while waiting:
            try:
                with os.scandir(waiting.pop()) as entries:
                    found = list(entries)
            except OSError:
                continue  # no folder, or one that the command cannot read either
            for entry in found:
                if not self._budget.spend(cost_of(entry.name)):
                    return
                yield entry
                is_link = entry.is_symlink()
                if is_link:
                    real = os.path.realpath(entry.path)
                    is_entered = self._follows and self._rights.is_inside(Path(real))
                    is_entered = is_entered and os.path.isdir(real)
                else:
                    real, is_entered = entry.path, entry.is_dir(follow_symlinks=False)
                if is_entered and real not in seen:
                    seen.add(real)
                    waiting.append(entry.path)
