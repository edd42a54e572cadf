"""The text of a file after edits are undone or redone, one step after the other."""

import functools
from collections.abc import Sequence
from typing import TypeAlias

from tiro.tools.merge import conflicting_lines, lines_now, merge_texts

Step: TypeAlias = tuple[str | None, str | None]
"""The text of a file before and after a step; None stands for no file."""

Lines: TypeAlias = tuple[int, int]
"""The first and the last of some lines of a file, counted from 1."""


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
