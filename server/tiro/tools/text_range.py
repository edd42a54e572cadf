"""Positions of the Language Server Protocol in a text: line and column, from 0, in code units.

Law: only CR LF, CR and LF end a line. What lies behind the end of a line or text is clipped to it.
"""

import bisect
import itertools
import re
from collections.abc import Sequence

_LINE_END = re.compile(r"\r\n|\r|\n")


def offset_of(text: str, line: int, character: int, encoding: str) -> int:
    """The index in `text` of an LSP position in this encoding, clipped to its line."""
    start = 0
    if line:
        ends = itertools.islice(_LINE_END.finditer(text), line - 1, line)
        line_end = next(ends, None)
        if line_end is None:
            return len(text)
        start = line_end.end()
    found = _LINE_END.search(text, start)
    line_text = text[start : found.start() if found else len(text)]
    return start + _column_of(line_text, character, encoding)


def line_starts(text: str) -> list[int]:
    """The index of the beginning of each line, as `position_of` wants them."""
    return [0, *(found.end() for found in _LINE_END.finditer(text))]


def position_of(text: str, starts: Sequence[int], index: int, encoding: str) -> tuple[int, int]:
    """The line and column of an index that is not within a line end; `offset_of` backwards."""
    line = bisect.bisect_right(starts, index) - 1
    before = text[starts[line] : index]
    if encoding == "utf-32" or before.isascii():
        return line, len(before)
    if encoding == "utf-16":
        return line, len(before.encode("utf-16-le", "surrogatepass")) // 2
    return line, len(before.encode("utf-8", "surrogatepass"))


def _column_of(line: str, units: int, encoding: str) -> int:
    """How many characters of a line lie before this many code units."""
    if encoding == "utf-32" or line.isascii():
        return min(units, len(line))
    data = line.encode("utf-16-le" if encoding == "utf-16" else "utf-8", "surrogatepass")
    before = data[: units * 2 if encoding == "utf-16" else units]
    return len(before.decode("utf-16-le" if encoding == "utf-16" else "utf-8", "ignore"))
