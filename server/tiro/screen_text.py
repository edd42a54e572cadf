"""Text as lines of a terminal: flat, cut, wrapped, counted in cells."""

import re
import unicodedata

from tiro.session.hidden import visible

_WORDS = re.compile(r"[ \t]*[^ \t]+|[ \t]+")


def flat(text: str) -> str:
    """The text on one line with nothing hidden: a field of a row that no line break can forge."""
    return " ".join(visible(text.replace("\r\n", "\n")).split())


def counted(count: int, thing: str) -> str:
    """So many of these things."""
    return f"1 {thing}" if count == 1 else f"{count} {thing}s"


def size_text(count: int) -> str:
    """So many bytes, in a unit that a person reads."""
    if count < 1000:
        return f"{count} B"
    for power, unit in ((1, "kB"), (2, "MB")):
        if count < 1000 ** (power + 1):
            return f"{count / 1000**power:.1f} {unit}"
    return f"{count / 1000**3:.1f} GB"


def one_line(text: str, cells: int) -> str:
    """The text on one line of at most this many cells, its end marked where it is cut."""
    line = flat(text)
    if width(line) <= cells:
        return line
    kept, used = [], 1
    for character in line:
        used += width(character)
        if used > cells:
            break
        kept.append(character)
    return "".join(kept) + "…"


def wrapped(text: str, cells: int, indent: int = 0) -> str:
    """The text with line breaks between words where a line is wider; what goes on is indented.

    A word that is wider by itself stays whole.
    """
    lines: list[str] = []
    for line in text.split("\n"):
        begun = ""
        for word in _WORDS.findall(line):
            if begun.strip() and width(begun) + width(word) > cells:
                lines.append(begun)
                begun = " " * min(indent, cells // 2) + word.lstrip(" \t")
            else:
                begun += word
        lines.append(begun)
    return "\n".join(lines)


def width(text: str) -> int:
    """How many cells of a terminal the text takes."""
    return len(text) if text.isascii() else sum(map(_width_of, text))


def is_wide(character: str) -> bool:
    """Whether it takes two cells, as Chinese does; a line may break beside it."""
    return unicodedata.east_asian_width(character) in "WF"


def _width_of(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if is_wide(character) else 1
