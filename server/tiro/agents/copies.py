"""Copies that editors and other programs leave beside a file, by their names.

What a rule forbids of a file it forbids of these as well: `.env~` holds what `.env` held.
"""

import posixpath
import re
from functools import lru_cache

_MOST_AT_ONCE = 3
"""A copy of a copy is one, and so on."""
_LONGEST = 255
"""No file has a longer name, and to look for shapes in one takes long."""

_WORDS = (
    *("bak", "bk", "bkp", "back", "backup", "old", "orig", "original", "save", "saved", "sav"),
    *("copy", "prev", "previous", "tmp", "temp", "new", "rej", "kate-swp", "crswap"),
    *("rpmsave", "rpmnew", "rpmorig"),
)
_PACKERS = ("dpkg-", "ucf-")
_MERGED = ("_backup_", "_base_", "_local_", "_remote_")
_NUMBER = r"\d[\d_.T:-]*"
"""One, or a moment."""
_COPY = "(?:copy|backup|kopie|copie|copia|cópia|kopia|kopi|kopya|копия|kopiera|コピー|副本|복사본)"
"""What file managers call one."""
_ENDING = r"(\.[^. ]+)?"
"""Before the ending of a name stands what file managers add."""

_SHAPES = tuple(
    re.compile(shape, re.DOTALL | re.IGNORECASE)
    for shape in (
        r"(.+?)(?:\.~\d+~|~|\.un~)",  # Emacs, vim, nano, gedit, joe
        r"#(.+)#",
        r"\.#(.+)",
        r"(\.?.+)\.s[a-w][a-z]",  # vim: .env.swp
        rf"(.+?)\.{_NUMBER}",
        rf"(.+?)[._ -]{{1,3}}(?:{'|'.join(_WORDS)})(?:[._ -]?{_NUMBER})?",
        rf"(.+?)[._ -](?:{'|'.join(_PACKERS)})\w+",
        rf"(.+?)[ _-]*\([^()]*\){_ENDING}",  # (Kopie), (3rd copy), (1)
        rf"(.+?) [-–—] [^ ]+(?: \(\d+\))?{_ENDING}",  # - Copy, - Kopie (2)
        rf"(.+?)(?:[ _-]+| ?の){_COPY}(?: \d+| \(\d+\))?{_ENDING}",
        rf"(.+?) \d+{_ENDING}",
        r"(.+?)[ .\u200b]+",  # some disks take it for the name without
        rf"(.+?)(?:{'|'.join(_MERGED)})\d+(\.[^.]*)?",  # git mergetool: secrets_BASE_12.yaml
        rf"{_COPY}[ _-]+(?:\(\d+\) )?(?:(?:of|von|de|di|van|av|af)[ _-]+)?(.+)",
        r"(.+)___jb_(?:tmp|old|bak)___",
        r"(.+?)(?:,v|;\d+)",
        r"~\$(.+)",
        r"[!%].*[!%]([^!%]+)",  # !home!me!.env, in a folder for all of them
    )
)

_SIGNS = frozenset("~#%!;,() \u200b")
_SAYING_SO = re.compile("|".join((*_PACKERS, *_MERGED, "cop|kop|cóp|копия|コピー|副本|복사본")))
_BEGINNINGS = ("backup",)
_ENDINGS = (*_WORDS, "___", ".", *"0123456789")


def copied(path: str) -> tuple[str, ...]:
    """The names of which the file with this path may be such a copy, nearest first."""
    folder, name = posixpath.split(posixpath.normpath(path))
    if not _may_be_one(name):
        return ()
    return tuple(posixpath.join(folder, one) for one in _originals(name))


def _may_be_one(name: str) -> bool:
    """Whether it is worth a closer look; most names are not."""
    if len(name) > _LONGEST:
        return False
    folded = name.lower()
    return (
        folded.endswith(_ENDINGS)
        or not _SIGNS.isdisjoint(name)
        or folded[-4:-2] == ".s"
        or folded.startswith(_BEGINNINGS)
        or _SAYING_SO.search(folded) is not None
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
    shapes = filter(None, (shape.fullmatch(name) for shape in _SHAPES))
    found = ["".join(shape.groups("")) for shape in shapes]
    return found + [one[1:] for one in found if one.startswith(".") and len(one) > 1]
