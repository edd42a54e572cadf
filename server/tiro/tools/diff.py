"""Two texts compared by lines: the ranges that differ, line ends that are kept, a unified diff."""

import re
from collections.abc import Iterable, Iterator, Sequence

from tiro.tools.merge import match_lines
from tiro.tools.text import cut_line, plain_lines, with_line_ends

CONTEXT_LINES = 3
MAX_DIFF_CHARS = 400_000
MAX_DIFF_LINE_CHARS = 20_000
"""More than anybody reads at a question; what is cut says so."""

NO_LINE_END = "\\ No newline at end of file"
CUT = "[The diff is cut here: {left:,} more lines are not shown. Say no to see less at once]"

Range = tuple[int, int, int, int]
"""Old lines from, to; new lines from, to."""


def differing(old: Sequence[str], new: Sequence[str]) -> Iterator[Range]:
    """The ranges of lines that differ, in order."""
    start, new_start = 0, 0
    for place, new_place in [*enumerate(match_lines(old, new)), (len(old), len(new))]:
        if new_place < 0:
            continue
        if place > start or new_place > new_start:
            yield start, place, new_start, new_place
        start, new_start = place + 1, new_place + 1


def keep_line_ends(text: str, like: str) -> str:
    """The text with the line ends of another one, of which it is a new version.

    Where that has several kinds, each line that stays keeps its own, and a new one gets that of the
    line it replaces, else that of the line before it.
    """
    pieces = [piece for piece in _LINE.findall(like) if piece[1]]
    if len({end for _, end in pieces}) < 2:
        return with_line_ends(text, like)
    lines = plain_lines(text).split("\n")
    ends = [""] * len(lines)
    old = [line for line, _ in pieces]
    for place, new_place in enumerate(match_lines(old, lines)):
        if new_place >= 0:
            ends[new_place] = pieces[place][1]
    for first, last, new_first, new_last in differing(old, lines):
        for place, new_place in zip(range(first, last), range(new_first, new_last), strict=False):
            ends[new_place] = pieces[place][1]
    kept, usual = [], pieces[0][1]
    for line, end in zip(lines[:-1], ends, strict=False):
        is_split = end == "\n" and usual == "\r" and not line  # together they would be one end
        usual = usual if is_split else end or usual
        kept.append(line + usual)
    return "".join([*kept, lines[-1]])


def unified_diff(name: str, old: str | None, new: str) -> str:
    """What would change in a file, as people read it; None is no file. Line ends are left out."""
    before, after = _shown_lines(old or ""), _shown_lines(new)
    bare = name.lstrip("/")
    lines = [f"--- a/{bare}" if old is not None else "--- /dev/null", f"+++ b/{bare}"]
    for hunk in _hunks(differing(before, after)):
        lines += _hunk(before, after, hunk)
    shown: list[str] = []
    size = 0
    for line in lines:
        size += len(line) + 1
        if size > MAX_DIFF_CHARS:
            return "\n".join([*shown, CUT.format(left=len(lines) - len(shown))])
        shown.append(line)
    return "\n".join(shown)


def _shown_lines(text: str) -> list[str]:
    """The lines of a text; the mark of a missing line end at its end is part of the last one."""
    lines = plain_lines(text).split("\n")
    if lines[-1] == "":
        return lines[:-1]
    return [*lines[:-1], f"{lines[-1]}\n{NO_LINE_END}"]


def _hunks(ranges: Iterable[Range]) -> Iterator[list[Range]]:
    """The ranges that stand so near to each other that their context would touch."""
    hunk: list[Range] = []
    for one in ranges:
        if hunk and one[0] - hunk[-1][1] > 2 * CONTEXT_LINES:
            yield hunk
            hunk = []
        hunk.append(one)
    if hunk:
        yield hunk


def _hunk(before: list[str], after: list[str], ranges: list[Range]) -> Iterator[str]:
    start = max(0, ranges[0][0] - CONTEXT_LINES)
    end = min(len(before), ranges[-1][1] + CONTEXT_LINES)
    new_start = ranges[0][2] - (ranges[0][0] - start)
    new_end = ranges[-1][3] + (end - ranges[-1][1])
    yield f"@@ -{_span(start, end)} +{_span(new_start, new_end)} @@"
    reached = start
    for first, last, new_first, new_last in ranges:
        yield from (_cut(" ", line) for line in before[reached:first])
        yield from (_cut("-", line) for line in before[first:last])
        yield from (_cut("+", line) for line in after[new_first:new_last])
        reached = last
    yield from (_cut(" ", line) for line in before[reached:end])


def _span(start: int, end: int) -> str:
    """A range of lines as diffs write it: from 1, an empty one by the line before it."""
    return f"{start + 1},{end - start}" if end > start else f"{start},0"


def _cut(sign: str, line: str) -> str:
    text, mark, rest = line.partition("\n")
    return sign + cut_line(text, MAX_DIFF_LINE_CHARS) + mark + rest


_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|$)")
