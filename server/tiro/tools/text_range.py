"""Positions of the Language Server Protocol in a text: line and column, from 0, in code units.

Law: only CR LF, CR and LF end a line. What lies behind the end of a line or text is clipped to it.
"""

import itertools
import re

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


def _column_of(line: str, units: int, encoding: str) -> int:
    """How many characters of a line lie before this many code units."""
    if encoding == "utf-32" or line.isascii():
        return min(units, len(line))
    data = line.encode("utf-16-le" if encoding == "utf-16" else "utf-8", "surrogatepass")
    before = data[: units * 2 if encoding == "utf-16" else units]
    return len(before.decode("utf-16-le" if encoding == "utf-16" else "utf-8", "ignore"))
