"""What a command comes upon in folders, beside the paths that it names.

A search, a comparison or a copy reads all below a folder; a copy also writes by the names of what
it copies, through links that lie there already. So these folders are walked before the command may
run, up to a limit. An unpacked archive and a patch write by names that nobody sees.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from posixpath import basename
from typing import Literal

import msgspec

from tiro.agents.guarded import guarded_name
from tiro.tools.command_line import word_set
from tiro.tools.git_settings import followed_paths, is_in_repository
from tiro.tools.readers import only_reads

About = Literal["outside", "banned", "guarded", "unseen"]
"""It lies outside the workspace, must not be read, may be written only by its name, or is a folder
that cannot be looked at as a whole."""

MAX_ENTRIES = 50_000
"""So many are looked at in a folder; one with more cannot be looked at."""

SEARCHERS = word_set("grep egrep fgrep zgrep rgrep rg ag ack ugrep")
ALWAYS_DEEP = word_set("rgrep rg ag ack")
COPIERS = word_set("cp mv install ln")
PACKERS = word_set("tar bsdtar gtar 7z 7za pax diff")
"""What else reads all below a folder that it is given."""
UNPACKERS = word_set("unzip cpio patch pax 7z 7za")
_FOLLOWING = {
    **dict.fromkeys(SEARCHERS, re.compile("-[A-Za-z]*[RLS]|--(deref|follow)")),
    **dict.fromkeys(COPIERS, re.compile("-[A-Za-z]*[LH]|--deref")),
    **dict.fromkeys(("tar", "bsdtar", "gtar"), re.compile("-?[A-Za-z]*[hL]|--deref")),
    **dict.fromkeys(("diff", "7z", "7za", "pax"), re.compile("")),
}
"""The words with which a command goes where a link leads that it finds."""
_DEEP = re.compile("-[A-Za-z]*[rRad]|--(r|deref|dir|a)")
_TARGET = re.compile("-[A-Za-z]*?t(.*)|--t[a-z-]*=?(.*)")
_EXTRACT = re.compile("-?[A-Za-z]*x|--(ext|get)")
_HIDDEN = re.compile("-[a-z]*[.u]|--(hid|unr)")

Bans = Callable[[Path], bool]
"""Whether the rules forbid to read the file with this real path."""


class Found(msgspec.Struct, frozen=True):
    """Something that a command comes upon."""

    path: Path
    """A real path."""
    about: About


_DETACHED = re.compile(r"-[A-Za-z]*[ABCDdefgjMmTt]$|--[a-z-]+$")
"""An option of a search whose value may be the next word, so that what follows is no folder."""


def found_in_folders(
    words: Sequence[str], folder: Path, roots: Sequence[Path], is_banned: Bans
) -> Iterator[Found]:
    """What a command, run in this folder, comes upon that needs a look; asks the disk."""
    name, rest = basename(words[0]), words[1:]
    look = _Look(roots, is_banned, _follows(name, rest))
    named = [word for at, word in enumerate(rest) if word[:1] != "-" or "--" in rest[:at]]
    verb = rest[0] if name == "git" and rest else ""
    if name == "git":
        if verb != "blame":  # it shows the one file that it names
            yield from look.followed(words, folder)
        if verb == "diff" and ("--no-index" in words or not is_in_repository(folder)):
            yield from look.read(named[1:], folder)
    elif name in COPIERS:
        yield from look.copied(rest, named, folder, is_deep=name == "mv" or _is_deep(rest))
    elif name in SEARCHERS and (name in ALWAYS_DEEP or _is_deep(rest)):
        is_hidden = name not in ("rg", "ag") or any(map(_HIDDEN.match, rest))
        is_here = len(named) < 2 or any(map(_DETACHED.match, rest))
        yield from look.read([*named, *["."] * is_here], folder, is_hidden=is_hidden)
    elif name in PACKERS:
        yield from look.read(named, folder)
    if verb in ("apply", "am") or unpacks(name, rest):
        yield Found(folder / ".git", "guarded")


def unpacks(name: str, words: Sequence[str]) -> bool:
    """Whether a command writes files by names from an archive or a patch."""
    if "tar" not in name or name not in PACKERS:
        return name in UNPACKERS
    options = [word for at, word in enumerate(words) if at == 0 or word.startswith("-")]
    return any(map(_EXTRACT.match, options))  # its first word needs no dash


def _follows(name: str, words: Sequence[str]) -> bool:
    test = _FOLLOWING.get(name)
    return test is not None and any(test.match(word) for word in words)


def _is_deep(words: Sequence[str]) -> bool:
    return any(map(_DEEP.match, words))


class _Look:
    """One look at the folders of a command."""

    def __init__(self, roots: Sequence[Path], is_banned: Bans, follows: bool) -> None:
        self._roots, self._is_banned, self._follows = roots, is_banned, follows
        self._left = MAX_ENTRIES

    def read(
        self, named: Sequence[str], folder: Path, *, is_hidden: bool = True
    ) -> Iterator[Found]:
        """What lies below the folders among these words and must not be read."""
        for start in dict.fromkeys(Path(os.path.realpath(folder / name)) for name in named):
            if not self._is_inside(start):
                continue  # it is asked about as it is named
            for entry in self._below(start):
                parts = entry.relative_to(start).parts
                if is_hidden or not any(part.startswith(".") for part in parts):
                    yield from self._of_entry(entry)
            if self._left < 0:
                yield Found(start, "unseen")

    def copied(
        self, words: Sequence[str], named: Sequence[str], folder: Path, *, is_deep: bool
    ) -> Iterator[Found]:
        """What a copy reads, and where it would write through what lies there already."""
        targets = named[-1:]
        for given in filter(None, map(_TARGET.match, words)):
            targets = [*named, given[1] or given[2] or "."]
        sources = named if len(targets) > 1 else named[:-1]
        if is_deep:
            yield from self.read(sources, folder)
        for source in sources:
            start = folder / source
            below = self._below(start) if is_deep and self._is_inside(start) else iter(())
            ends = [Path(), *(entry.relative_to(start) for entry in below)]
            heads = dict.fromkeys(("", source.lstrip("/"), basename(os.path.normpath(source))))
            for target in targets:
                for head in heads:
                    yield from self._written(folder / target / head, ends)
        if self._left < 0:
            yield Found(folder, "unseen")

    def followed(self, words: Sequence[str], folder: Path) -> Iterator[Found]:
        """The files that git follows and must not be read, where it shows the text of files."""
        if only_reads(words, deep=True) is None:
            return
        try:
            for path in followed_paths(folder):
                if self._is_banned(path):
                    yield Found(path, "banned")
                    return
        except (OSError, ValueError):
            yield Found(folder, "unseen")

    def _written(self, place: Path, ends: Sequence[Path]) -> Iterator[Found]:
        if not place.exists() and not place.is_symlink():
            ends = ends[:1]
        for end in ends:
            path = Path(os.path.realpath(place / end))
            root = next((root for root in self._roots if path.is_relative_to(root)), None)
            if root is None:
                yield Found(path, "outside")
            elif guarded_name(path.relative_to(root).as_posix()):
                yield Found(path, "guarded")

    def _of_entry(self, entry: Path) -> Iterator[Found]:
        if entry.is_symlink() and not self._follows:
            return
        path = Path(os.path.realpath(entry)) if self._follows else entry
        if not self._is_inside(path):
            yield Found(path, "outside")
        elif self._is_banned(path):
            yield Found(path, "banned")

    def _is_inside(self, path: Path) -> bool:
        return any(path.is_relative_to(root) for root in self._roots)

    def _below(self, start: Path) -> Iterator[Path]:
        """All below a folder, links as they are and, where they are followed, what they lead to."""
        waiting, seen = [start], {os.path.realpath(start)}
        while waiting:
            try:
                with os.scandir(waiting.pop()) as entries:
                    found = list(entries)
            except OSError:
                continue  # no folder, or one that the command cannot read either
            for entry in found:
                self._left -= 1
                if self._left < 0:
                    return
                yield Path(entry.path)
                is_link = entry.is_symlink()
                real = os.path.realpath(entry.path) if is_link else entry.path
                is_entered = not is_link or (self._follows and self._is_inside(Path(real)))
                if is_entered and os.path.isdir(real) and real not in seen:
                    seen.add(real)
                    waiting.append(Path(entry.path))
