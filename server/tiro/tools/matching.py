"""A text to be replaced, found in a file: the exact places, or what comes closest and why not.

All texts here have LF as their only line end.
"""

import difflib
import re
from collections import Counter

import msgspec

from tiro.errors import ToolError
from tiro.tools.text import cut_line

NOTHING_NEW = "`old_text` and `new_text` are the same; nothing was changed"
NOT_FOUND = "`old_text` is not in {name}; nothing was changed. {nearest}"
WRONG_COUNT = (
    "`old_text` occurs {found} times in {name} (lines {lines}), not {count}; nothing was changed."
    " Add lines around it to name one place, or give `count` {found} to replace all of them"
)
IS_THERE = "`new_text` is there already, in line {line}: it may have been changed before"
NUMBERED = "Leave out the line numbers that read_file puts before each line"
NEAREST = "The closest place is line {line}; {kind} differs: the file has {there}, not {given}"
NOTHING_LIKE_IT = "Nothing in it comes close; read it again"

MAX_SHOWN_CHARS = 300
MAX_SHOWN_PLACES = 10
MAX_CANDIDATES = 5000
MAX_CANDIDATE_CHARS = 500
MAX_COMPARED_LINES = 5_000_000
"""So many are compared in search of a loose match; a text of lines that are all alike has more."""


class Replacement(msgspec.Struct, frozen=True):
    """One text to be replaced by another one, at each of exactly `count` places."""

    old_text: str
    new_text: str
    count: int = 1


def replaced(text: str, wanted: Replacement, name: str, *, may_show: bool = True) -> str:
    """The text after a replacement; ToolError when the places are not those that were wanted.

    Unless it `may_show` the text, the error says nothing about what is in it.
    """
    if wanted.old_text == wanted.new_text:
        raise ToolError(NOTHING_NEW)
    found = text.count(wanted.old_text)
    if found == wanted.count:
        return text.replace(wanted.old_text, wanted.new_text)
    if found:
        lines = ", ".join(map(str, _lines_of_places(text, wanted.old_text)))
        more = ", …" if found > MAX_SHOWN_PLACES else ""
        raise ToolError(
            WRONG_COUNT.format(found=found, name=name, lines=lines + more, count=wanted.count)
        )
    nearest = nearest_place(text, wanted) if may_show else ""
    raise ToolError(NOT_FOUND.format(name=name, nearest=nearest).rstrip())


def nearest_place(text: str, wanted: Replacement) -> str:
    """What comes closest to the old text, in a sentence: where, and what differs first."""
    given = wanted.old_text.removesuffix("\n").split("\n")
    if all(_NUMBERED.match(line) for line in given):
        return NUMBERED
    if len(wanted.new_text) > 10 and wanted.new_text in text:
        return IS_THERE.format(line=text[: text.index(wanted.new_text)].count("\n") + 1)
    lines = text.split("\n")
    start = _loose_place(lines, given)
    if start is None:
        start = _closest_place(lines, given)
    if start is None:
        return NOTHING_LIKE_IT
    return _difference(lines, given, start)


def _difference(lines: list[str], given: list[str], start: int) -> str:
    """The first line that differs, counted from where the given lines would begin."""
    for index, line in enumerate(given):
        place = start + index
        there = lines[place] if 0 <= place < len(lines) else ""
        if not _is_part(there, line, index == 0, index == len(given) - 1):
            shown = (repr(cut_line(one, MAX_SHOWN_CHARS)) for one in (there, line))
            return NEAREST.format(
                line=place + 1, kind=_kind(there, line), there=next(shown), given=next(shown)
            )
    return NEAREST.format(
        line=start + 1, kind="a line end", there=repr(lines[start]), given=repr(given[0])
    )


def _is_part(there: str, line: str, is_first: bool, is_last: bool) -> bool:
    """Whether a line is all that stands there; the first and last may be an end of it."""
    if is_first and is_last:
        return line in there
    if is_first:
        return there.endswith(line)
    return there.startswith(line) if is_last else there == line


def _kind(there: str, given: str) -> str:
    """In what two lines differ."""
    if there.strip() == given.strip():
        return "the indentation" if there.rstrip() != given.rstrip() else "the space at the end"
    if there.split() == given.split() or "".join(there.split()) == "".join(given.split()):
        return "white space"
    if "".join(there.translate(_LOOSE).split()) == "".join(given.translate(_LOOSE).split()):
        return "a quote, dash or space character"
    return "upper and lower case" if _loose(there) == _loose(given) else "the text"


def _loose_place(lines: list[str], given: list[str]) -> int | None:
    """Where the given lines stand but for white space, quotes and case, as a part of the text."""
    wanted, there = [_loose(line) for line in given], [_loose(line) for line in lines]
    if not any(wanted):
        return None
    last = len(wanted) - 1
    left = MAX_COMPARED_LINES
    for start in range(len(there) - last):
        if last == 0 and wanted[0] in there[start]:
            return start
        left -= last if there[start].endswith(wanted[0]) else 0
        if left < 0:
            return None
        if (
            last
            and there[start].endswith(wanted[0])
            and there[start + 1 : start + last] == wanted[1:-1]
            and there[start + last].startswith(wanted[-1])
        ):
            return start
    return None


def _closest_place(lines: list[str], given: list[str]) -> int | None:
    """Where most of the given lines stand, else where one stands that is much like the first."""
    places: dict[str, list[int]] = {}
    for index, line in enumerate(lines):
        places.setdefault(_loose(line), []).append(index)
    votes = Counter(
        place - index
        for index, line in enumerate(given)
        if (loose := _loose(line)) and len(places.get(loose, ())) < MAX_SHOWN_PLACES
        for place in places.get(loose, ())
    )
    if votes:
        return max(0, votes.most_common(1)[0][0])
    offset, first = next((pair for pair in enumerate(given) if pair[1].strip()), (0, ""))
    candidates = [line for line in places if 0 < len(line) <= MAX_CANDIDATE_CHARS]
    close = difflib.get_close_matches(_loose(first), candidates[:MAX_CANDIDATES], 1, 0.7)
    return max(0, places[close[0]][0] - offset) if close else None


def _lines_of_places(text: str, part: str) -> list[int]:
    """The lines in which the first places of a part begin."""
    found: list[int] = []
    start = text.find(part)
    while start >= 0 and len(found) < MAX_SHOWN_PLACES:
        found.append(text.count("\n", 0, start) + 1)
        start = text.find(part, start + len(part))
    return found


def _loose(line: str) -> str:
    """A line without what is easily mistaken."""
    return "".join(line.translate(_LOOSE).split()).casefold()


_LOOSE = str.maketrans("‘’‚‛“”„‟«»`´‐‑‒–—―−\xa0", "''''" + '""""""' + "''" + "-------" + " ")
_NUMBERED = re.compile(r"\s*\d+\t")
