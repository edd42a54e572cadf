"""Copies that editors and other programs leave beside a file, by their names.

What a rule forbids of a file it forbids of these as well: `.env~` holds what `.env` held.
"""

import posixpath
import re
from functools import lru_cache

_MOST_AT_ONCE = 3
"""A copy of a copy is one, and so on."""

_SHAPES = (
    re.compile(r"(.+?)(?:\.~\d+~|~|\.un~)", re.DOTALL),  # Emacs, vim, nano, gedit, joe
    re.compile(r"#(.+)#", re.DOTALL),
    re.compile(r"\.#(.+)", re.DOTALL),
    re.compile(r"(\.?.+)\.s[a-w][a-z]", re.DOTALL | re.IGNORECASE),  # vim: .env.swp
    re.compile(
        r"(.+?)(?:\.\d[\d_.T:-]*|[._ -](?:bak|bk|bkp|back|backup|old|orig|original|save|saved"
        r"|sav|copy|prev|previous|tmp|temp|new|rej|kate-swp|dpkg-\w+|rpmsave|rpmnew|rpmorig|ucf-\w+)\d*)",
        re.DOTALL | re.IGNORECASE,
    ),
    re.compile(r"(.+?)[ _-]*\((?:copy|another copy|\d+(?:st|nd|rd|th) copy|\d+)\)", re.DOTALL),
    re.compile(r"(.+?) (?:- )?copy(?: \d+| \(\d+\))?", re.DOTALL | re.IGNORECASE),
    re.compile(r"(?:copy|backup)[ _-]+(?:\(\d+\) )?(?:of[ _-]+)?(.+)", re.DOTALL | re.IGNORECASE),
    re.compile(r"(.+)___jb_(?:tmp|old|bak)___", re.DOTALL),
    re.compile(r"(.+?)(?:,v|;\d+)", re.DOTALL),
    re.compile(r"~\$(.+)|\.goutputstream-(.+)", re.DOTALL),
    re.compile(r"[!%].*[!%]([^!%]+)", re.DOTALL),  # !home!me!.env, in a folder for all of them
)

_SIGNS = frozenset("~#%!;,()")
_BEGINNINGS = ("copy", "backup", ".goutput")
_ENDINGS = (
    *("bak", "bk", "bkp", "back", "backup", "old", "orig", "original", "save", "saved", "sav"),
    *("copy", "prev", "previous", "tmp", "temp", "new", "rej", "kate-swp", "rpmsave", "rpmnew"),
    *("rpmorig", "___", *"0123456789"),
)


def copied(path: str) -> tuple[str, ...]:
    """The names of which the file with this path may be such a copy, nearest first."""
    folder, name = posixpath.split(posixpath.normpath(path))
    if not _may_be_one(name):
        return ()
    return tuple(posixpath.join(folder, one) for one in _originals(name))


def _may_be_one(name: str) -> bool:
    """Whether it is worth a closer look; most names are not."""
    folded = name.lower()
    return (
        folded.endswith(_ENDINGS)
        or not _SIGNS.isdisjoint(name)
        or folded[-4:-2] == ".s"
        or folded.startswith(_BEGINNINGS)
        or "dpkg-" in folded
        or "ucf-" in folded
    )


@lru_cache(maxsize=4096)
def _originals(name: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    newest = [name]
    for _ in range(_MOST_AT_ONCE):
        newest = [one for form in newest for one in _once(form) if one not in found]
        found |= dict.fromkeys(newest)
    return tuple(found)


def _once(name: str) -> list[str]:
    """What is left where the sign of a copy is taken away, with and without a dot in front."""
    shapes = (shape.fullmatch(name) for shape in _SHAPES)
    found = [one for shape in shapes if shape for one in shape.groups() if one]
    return found + [one[1:] for one in found if one.startswith(".") and len(one) > 1]
