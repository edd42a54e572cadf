"""What the pattern of a rule means for a path.

What allows fits exactly what it says. What denies or asks fits what a person means by it: a folder
with all that lies in it, whether written `keys`, `keys/` or `keys/**`, and in any case of letters,
as many disks do not tell it. Both may have alternatives (`{a,b}`), begin with `~`, be absolute, or
lead out of the workspace (`../keys`).
"""

import glob
import os
import posixpath
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from tiro.tools.patterns import alternatives, is_void, parts_of, path_pattern

PATH_KEYS = frozenset({"read", "glob", "grep", "edit", "write", "external_directory"})
"""The keys whose patterns are tested on paths."""

BACKSLASH = "has a backslash; write /"
VARIABLE = "has a variable, which is not replaced; write ~ for your own folder"
NOBODY = "names a user who is not known"
BEHIND = "has .. behind a wildcard"
VOID = "has a [ ] that no character fits"
ELSEWHERE = "names no path outside; begin with /, ~/ or ../"
EMPTY = "stands for nothing"
NUL = "holds a NUL character"


class PathSubject(msgspec.Struct, frozen=True):
    """A path, in one of its names, as the subject of rules."""

    name: str
    """Relative to the workspace root it lies in, else absolute."""
    full: str = ""
    """The same, absolute; empty where no root is known."""
    roots: tuple[str, ...] = ()
    """The workspace's folders, from which `../x` leads somewhere."""

    @property
    def is_outside(self) -> bool:
        """Whether it lies in no workspace root."""
        return posixpath.isabs(self.name)

    def beside(self, name: str) -> "PathSubject":
        """A file in the same folder, by what is its `name` here."""
        full = posixpath.join(posixpath.dirname(self.full), posixpath.basename(name))
        return PathSubject(name, full if self.full else "", self.roots)


def fits_exactly(pattern: str, subject: PathSubject) -> bool:
    """Whether a pattern that allows fits a path."""
    return any(path_pattern(text).matches(parts) for text, parts in _tests(pattern, subject))


def is_meant(pattern: str, subject: PathSubject) -> bool:
    """Whether a pattern that denies or asks fits a path, or a folder that it lies in."""
    return any(
        path_pattern(_of_folder(text)).reaches(parts)
        for text, parts in _tests(pattern, _low(subject), is_loose=True)
    )


def folded(text: str) -> str:
    """One form of all the ways to write a name that some disk takes for the same."""
    text = text.casefold()
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def exact_pattern(name: str) -> str:
    """The pattern that fits this one path of the workspace and no other."""
    return "./" + glob.escape(posixpath.normpath(name)).replace("{", "[{]")


def names_in(pattern: str, roots: Sequence[str]) -> Iterator[str]:
    """The folders or files that a pattern writes out before its first wildcard, absolute."""
    for form in _forms(pattern):
        absolute = [form] if posixpath.isabs(form) else [posixpath.join(r, form) for r in roots]
        for one in absolute:
            mark = _WILD.search(one)
            head = one if mark is None else one[: mark.start()].rpartition("/")[0]
            if head.strip("/"):
                yield posixpath.normpath(head)


def last_parts(pattern: str) -> list[str]:
    """What a file or folder itself must be called where a pattern that forbids comes to fit it."""
    lasts = [_of_folder(form).rpartition("/")[2] for form in _meant(pattern)]
    return ["*" if last in ("", ".", "..", "**") else last for last in lasts]


def futility_of(pattern: str, key: str) -> str | None:
    """Why a pattern of a rule can cover nothing, or None."""
    if len(forms := _alternatives(pattern)) == 0:
        return EMPTY
    return next(filter(None, (_futile(form, key) for form in forms)), None)


def futile_patterns(key: str, rule: Any) -> Iterator[tuple[str, str]]:
    """The patterns of a rule that can cover nothing, each with the reason."""
    if key not in PATH_KEYS or isinstance(rule, str):
        return
    patterns = rule if isinstance(rule, dict) else [pair[0] for pair in rule]
    for pattern in map(str, patterns):
        if why := futility_of(pattern, key):
            yield pattern, why


def _futile(form: str, key: str) -> str | None:
    parts = form.split("/")
    wild = next((at for at, part in enumerate(parts) if _WILD.search(part)), len(parts))
    if "\0" in form:
        return NUL
    if "\\" in form:
        return BACKSLASH
    if _VARIABLE.search(form):
        return VARIABLE
    if form.startswith("~") and os.path.expanduser(form) == form:
        return NOBODY
    if ".." in parts[wild:]:
        return BEHIND
    if any(is_void(part) or is_void(folded(part)) for part in parts):
        return VOID
    is_local = "/" in form.rstrip("/") and form[0] not in "/~" and parts[0] not in ("..", "**")
    return ELSEWHERE if is_local and key == "external_directory" else None


def _tests(
    pattern: str, subject: PathSubject, *, is_loose: bool = False
) -> Iterator[tuple[str, Sequence[str]]]:
    """Patterns, each with the parts of the path that it is tested on."""
    inside = () if subject.is_outside else _parts(subject.name)
    full = _parts(subject.full or subject.name)
    for form in map(folded, _meant(pattern)) if is_loose else _forms(pattern):
        if form.startswith("/"):
            yield form, full
            if (is_loose or not subject.full) and not subject.is_outside:
                yield form, inside
        elif _UP.match(form):
            above = (posixpath.normpath(f"{glob.escape(r)}/{form}") for r in subject.roots)
            yield from ((one, full) for one in above)
        elif not subject.is_outside:
            yield form, inside
        elif form.startswith("**/") or "/" not in (form.rstrip("/") if is_loose else form):
            yield form, full


@lru_cache(maxsize=1024)
def _of_folder(form: str) -> str:
    """A pattern for a folder where it is for all that lies in it."""
    text = form.rstrip("/") or form
    while text.endswith("/**") and not text.endswith(("*/**", "//**")) and text != "/**":
        text = text[: -len("/**")]
        text = text if "/" in text else f"./{text}"
    return text


def _forms(pattern: str) -> list[str]:
    """The patterns that one stands for, with `~` and `..` resolved as far as the words go."""
    forms = _alternatives(pattern)
    return [_resolved(_at_home(one)) if one[:1] == "~" else one for one in forms]


def _meant(pattern: str) -> list[str]:
    """The same for what forbids, where `[id]` may be the name of a folder, too."""
    forms = _forms(pattern)
    return [*forms, *(one.replace("[", "[[]") for one in forms if "[" in one)]


@lru_cache(maxsize=1024)
def _alternatives(pattern: str) -> list[str]:
    try:
        return [_resolved(one) for one in alternatives(pattern) if one]
    except ValueError:  # who writes one is told; a rule from elsewhere means what stands there
        return [pattern]


def too_many(pattern: str) -> str | None:
    """Why a pattern cannot be taken for all that it stands for, or None."""
    try:
        alternatives(pattern)
    except ValueError as error:
        return str(error)
    return None


def _at_home(form: str) -> str:
    user, slash, rest = form.partition("/")
    home = os.path.expanduser(user)
    return form if home == user else glob.escape(home) + slash + rest


def _resolved(form: str) -> str:
    """A pattern without `..` but at its beginning, if that is certain; `.` is the root itself."""
    ups = [at for at, part in enumerate(form.split("/")) if part == ".."]
    wild = _WILD.search(form)
    if form == "." or not ups or (wild and form.find("..") > wild.start()):
        return "./." if form == "." else form
    text = posixpath.normpath(form) + ("/" if form.endswith("/") else "")
    return text if "/" in text or text == ".." else f"./{text}"


@lru_cache(maxsize=256)
def _low(subject: PathSubject) -> PathSubject:
    roots = tuple(map(folded, subject.roots))
    return PathSubject(folded(subject.name), folded(subject.full), roots)


@lru_cache(maxsize=4096)
def _parts(path: str) -> Sequence[str]:
    return parts_of(posixpath.normpath(path))


_WILD = re.compile(r"[*?\[]")
_VARIABLE = re.compile(r"\$(?:\w+|\{\w+\})|%\w+%")
_UP = re.compile(r"\.\.(?:/|$)")
