"""Markdown rendered lightly as it streams: headings, bold, italics, code, lists; words wrapped.

Law: what a piece of an answer costs does not depend on how long the answer is. Only what cannot be
decided yet is held back: the start of a line, a span that is not closed, a word that goes on. What
turns out to be no markup is shown as it was written.
"""

import re
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import NamedTuple

from tiro.screen_text import is_wide, width
from tiro.session.hidden import harmless

PLAIN, BOLD, DIM, ITALIC, CODE = "", "1", "2", "3", "36"
MAX_HELD_CHARS = 200
"""A line start or a span that is longer than this is no markup."""

_UNDECIDED = re.compile(
    r"\s*(#{1,6}|[-*+]|\d{1,3}[.)]?|>|`{1,2}|(`{3}|~{3}).*|([-*_] ?)+|~{1,2})?\Z"
)
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_HEADING = re.compile(r"#{1,6} +")
_ITEM = re.compile(r"(\s*)(?:([-*+])|(\d{1,3}[.)]))( +)")
_QUOTE = re.compile(r"\s*> ?")
_RULE = re.compile(r"\s*([-*_])( ?\1){2,}\s*\Z")
_INSIDE = rf"(.{{1,{MAX_HELD_CHARS}}}?)"
_SPAN = re.compile(
    rf"(?<!`)(`+)(?!`){_INSIDE}(?<!`)\1(?!`)"
    rf"|\*\*(?=[^\s*]){_INSIDE}(?<=\S)\*\*"
    rf"|(?<![\w*])\*(?=[^\s*])([^*]{{1,{MAX_HELD_CHARS}}}?)(?<=\S)\*(?![\w*])"
)
_OPENING = re.compile(r"`|\*\*(?=\S|\Z)|\*\Z|(?<![\w*])\*(?=\S)")
_WORDS = re.compile(r"\n|[ \t]+|[^ \t\n]+")


class Piece(NamedTuple):
    """Text of one style."""

    style: str
    text: str


class Markdown:
    """One answer: deltas in, text with colours out."""

    def __init__(self, columns: Callable[[], int]) -> None:
        self._wrap = _Wrap(columns)
        self._held = ""
        self._at_start = True
        self._style = PLAIN
        self._fence: str | None = None

    def feed(self, delta: str) -> str:
        """What can be shown now."""
        *lines, rest = (self._held + harmless(delta)).split("\n")
        shown = list(map(self._rest_of_line, lines))
        self._held = rest
        shown += map(self._wrap.put, self._begun())
        return "".join(shown)

    def end(self) -> str:
        """What was held back; the next answer starts on a new line."""
        last, self._held = self._held, ""
        shown = "".join(map(self._wrap.put, self._whole(last))) + self._wrap.end_line()
        self._at_start, self._fence = True, None
        return shown.removesuffix("\n")

    def _rest_of_line(self, line: str) -> str:
        shown = "".join(map(self._wrap.put, self._whole(line))) + self._wrap.end_line()
        self._at_start = True
        return shown

    def _whole(self, line: str) -> Iterator[Piece]:
        """The pieces of what is left of a line that is complete."""
        marker, rest = self._start(line) if self._at_start else ("", line)
        yield _marked(marker)
        yield from self._spans(rest, is_whole=True)

    def _begun(self) -> Iterator[Piece]:
        """The pieces of a line that goes on, as far as they are decided."""
        if self._at_start:
            if self._is_undecided():
                return
            marker, self._held = self._start(self._held)
            yield _marked(marker)
        yield from self._spans(self._held, is_whole=False)

    def _is_undecided(self) -> bool:
        if self._fence is not None:
            return bool(re.match(r"\s*([`~]{0,3}\s*\Z|[`~]{3})", self._held))
        return len(self._held) <= MAX_HELD_CHARS and bool(_UNDECIDED.match(self._held))

    def _start(self, line: str) -> tuple[str, str]:
        """Decide what kind of line begins; its marker as it is shown, and the rest."""
        self._at_start, self._style = False, PLAIN
        self._wrap.indent, self._wrap.is_on = 0, True
        fence = _FENCE.match(line)
        if self._fence is not None or fence:
            return self._code_line(line, fence[1] if fence else None)
        if heading := _HEADING.match(line):
            self._style = BOLD
            return "", line[heading.end() :]
        if _RULE.match(line):
            return "───", ""
        if item := _ITEM.match(line):
            marker = f"{item[1]}{'•' if item[2] else item[3]}{item[4]}"
            self._wrap.indent = width(marker)
            return marker, line[item.end() :]
        if quote := _QUOTE.match(line):
            self._wrap.indent = 2
            return "│ ", line[quote.end() :]
        self._wrap.is_on = not line.lstrip().startswith("|")  # a table's columns stay together
        return "", line

    def _code_line(self, line: str, fence: str | None) -> tuple[str, str]:
        self._wrap.is_on = False
        if self._fence is None:
            self._fence = fence
        elif fence is not None and line.strip() == fence and fence.startswith(self._fence):
            self._fence = None
        else:
            self._style = CODE
            return "", line
        self._style = DIM
        return "", line

    def _spans(self, text: str, *, is_whole: bool) -> Iterator[Piece]:
        """The spans of a text; what may be the start of one is held when it goes on."""
        self._held = ""
        if not self._wrap.is_on and self._style:
            yield Piece(self._style, text)
            return
        at = 0
        for span in _SPAN.finditer(text):
            if not is_whole and _may_change(text, at, span):
                break
            yield Piece(self._style, text[at : span.start()])
            if span[2] is not None:
                yield Piece(CODE, span[2])
            elif span[4] is not None:
                yield Piece(ITALIC, span[4])
            else:
                yield from self._bold(span[3])
            at = span.end()
        rest = text[at:]
        opening = None if is_whole else _OPENING.search(rest)
        if opening and len(rest) - opening.start() <= MAX_HELD_CHARS:
            self._held, rest = rest[opening.start() :], rest[: opening.start()]
        yield Piece(self._style, rest)

    def _bold(self, text: str) -> Iterator[Piece]:
        for n, part in enumerate(text.split("`")):
            yield Piece(CODE if n % 2 else BOLD, part)


def _may_change(text: str, at: int, span: re.Match[str]) -> bool:
    """Whether what follows can make another span of it: one more such mark, or one around it."""
    if span.end() == len(text) and (span[1] or span[4]):
        return True
    opening = _OPENING.search(text, at, span.start())
    return opening is not None and len(text) - opening.start() <= MAX_HELD_CHARS


def _marked(marker: str) -> Piece:
    return Piece(DIM if marker in ("│ ", "───") else PLAIN, marker)


class _Wrap:
    """Breaks lines between words, each in its colour; a word is held until it has ended."""

    def __init__(self, columns: Callable[[], int]) -> None:
        self._columns = columns
        self.indent = 0
        self.is_on = True
        self._column = 0
        self._space = ""
        self._word: list[Piece] = []

    def put(self, piece: Piece) -> str:
        """What of this piece can be shown now, with what was held before it."""
        if not self.is_on:
            return self._end_word() + _styled(piece)
        shown = []
        for text in _WORDS.findall(piece.text):
            if text.isspace():
                shown.append(self._end_word())
                self._space += text
                continue
            for part in _breakable(text):
                if part and is_wide(part[0]):
                    shown += [self._end_word()]
                    self._word.append(Piece(piece.style, part))
                    shown += [self._end_word()]
                else:
                    self._word.append(Piece(piece.style, part))
        return "".join(shown)

    def end_line(self) -> str:
        """The end of a line; spaces before it are not shown."""
        shown = self._end_word()
        self._column, self._space = 0, ""
        return shown + "\n"

    def _end_word(self) -> str:
        if not self._word:
            return ""
        word, self._word = self._word, []
        space, self._space = self._space, ""
        cells = sum(width(piece.text) for piece in word)
        columns = self._columns()
        lead = space
        if self._column and self._column + width(space) + cells > columns:
            lead, self._column = "\n" + " " * self.indent, self.indent
        else:
            self._column += width(space)
        self._column += cells
        if self._column > columns:
            self._column %= columns
        runs = groupby(word, key=lambda piece: piece.style)
        return lead + "".join(
            _styled(Piece(style, "".join(piece.text for piece in run))) for style, run in runs
        )


def _styled(piece: Piece) -> str:
    return f"\x1b[{piece.style}m{piece.text}\x1b[0m" if piece.style and piece.text else piece.text


def _breakable(text: str) -> Iterator[str]:
    """A word in the parts between which a line may break: wide characters stand alone."""
    if text.isascii():
        yield text
        return
    run = ""
    for character in text:
        if is_wide(character):
            yield run
            yield character
            run = ""
        else:
            run += character
    yield run
