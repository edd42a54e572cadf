"""The text of a file after edits are undone or redone, one step after the other.

Law: where nobody else changed a file on the disk, its steps lead to exactly the bytes of then; the
bytes of what somebody else wrote stay.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from tiro.tools.file_text import FileText
from tiro.tools.merge import conflicting_lines, count_changes, lines_now, merge_texts
from tiro.tools.text import WINDOWS_1252, decode_as, encode_text, is_wide

Step: TypeAlias = tuple[str | None, str | None]
"""The text of a file before and after a step; None stands for no file."""

Lines: TypeAlias = tuple[int, int]
"""The first and the last of some lines of a file, counted from 1."""


class View(NamedTuple):
    """A file as it is read for some steps, and these read alike."""

    text: str | None
    pairs: Sequence[Step]
    encoding: str | None
    """What the text is written in; None where that is the affair of the file's editor."""
    is_bytewise: bool = False
    """All texts are read by their bytes, not by what these say."""

    def distance(self) -> int:
        """By how many lines the file differs from where the steps begin, or where they end."""
        ends = {self.pairs[0][0], self.pairs[-1][1]}
        if self.text in ends:
            return 0
        return min(sum(count_changes(self.text or "", end or "")) for end in ends)


def view_of(seen: FileText | None, pairs: Sequence[Step], encodings: Sequence[str]) -> View:
    """A file on the disk, read as its steps, whose texts have these encodings, can be made.

    Byte for byte, unless somebody has saved it in another encoding since: what was edited may be
    all that told in which one it was.
    """
    by_bytes = _by_bytes(seen, pairs, encodings)
    if seen is None:
        return by_bytes or View(None, pairs, encodings[-1])
    if by_bytes is not None and by_bytes.distance() == 0:
        return by_bytes
    views = [View(seen.text, pairs, seen.encoding)]
    if not is_wide(seen.encoding):
        views.append(View(_read(seen.text, seen.encoding, WINDOWS_1252), pairs, WINDOWS_1252))
    return min([by_bytes, *views] if by_bytes else views, key=View.distance)


def _by_bytes(
    seen: FileText | None, pairs: Sequence[Step], encodings: Sequence[str]
) -> View | None:
    """All texts read in one encoding, in which bytes that are equal are equal characters.

    In Windows-1252 every byte is one; where line ends have more bytes, in the one of all texts.
    """
    text, own = (None, encodings[0]) if seen is None else (seen.text, seen.encoding)
    found = {of if is_wide(of) else WINDOWS_1252 for of in (own, *encodings)}
    if len(found) > 1:
        return None
    [encoding] = found
    both = zip(pairs, encodings, strict=True)
    try:
        steps = [(_read(one, of, encoding), _read(two, of, encoding)) for (one, two), of in both]
    except UnicodeEncodeError:  # it was in the buffer of an editor, and nowhere else
        return None
    return View(_read(text, own, encoding), steps, encoding, is_bytewise=True)


def _read(text: str | None, encoding: str, other: str) -> str | None:
    """The bytes of a text, read in another encoding."""
    return None if text is None else decode_as(encode_text(text, encoding), other)


class TouchError(Exception):
    """What somebody wrote since and what is to be written overlap in these lines of a text."""

    def __init__(self, text: str = "", lines: Sequence[range] = ()) -> None:
        super().__init__()
        self.text, self.lines = text, lines


def walked(text: str | None, pairs: Sequence[Step]) -> str | None:
    """The text after all these steps from one text to another; None stands for no file.

    At their end already, where a process died before it could note that, there is nothing to do.
    Where a single step touches what was written since, all of them together may not.
    """
    if text == pairs[-1][1]:
        return text
    try:
        return functools.reduce(lambda now, pair: _step(now, *pair), pairs, text)
    except TouchError:
        return functools.reduce(lambda now, pair: _step(now, *pair), _joined(pairs), text)


def _joined(pairs: Sequence[Step]) -> list[Step]:
    """The steps with those made one that begin where the one before ends."""
    joined = [pairs[0]]
    for source, goal in pairs[1:]:
        if joined[-1][1] == source:
            joined[-1] = joined[-1][0], goal
        else:
            joined.append((source, goal))
    return joined


def _step(text: str | None, source: str | None, goal: str | None) -> str | None:
    """The text with what leads from `source` to `goal`; None stands for no file."""
    if goal in (text, source):
        return text
    if text == source:
        return goal
    if text == "" and None in (source, goal):
        return goal  # a file whose making was broken off; there is nothing in it to lose
    if text is None or source is None or goal is None:
        raise TouchError
    merged = merge_texts(source, text, goal)
    if merged is None:
        raise TouchError(text, conflicting_lines(source, text, goal))
    return merged


def lines_in(now: str, error: TouchError) -> list[Lines]:
    """The lines of a file's text now in which what somebody wrote is in the way."""
    found = error.lines
    if error.text != now:  # some of the edits were stepped over before
        found = [left for lines in found if (left := lines_now(lines, error.text, now))]
    return [(lines.start + 1, max(lines.stop, lines.start + 1)) for lines in found]
