"""Text as words to search for: without case and accents, and for scripts without spaces in pairs.

The words of a text stand in one string with single spaces around each, so that a phrase is there
when its words, spaced the same, are a part of it. A full-text index that splits at ASCII
punctuation finds exactly the same.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from tiro.session.messages import (
    AttachmentBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    blocks_of,
    result_text,
)

SNIPPET_CHARACTERS = 160


class Phrase(NamedTuple):
    """Words that stand side by side."""

    words: str
    """In the form of `words`, with single spaces between them."""
    is_prefix: bool
    """Whether the last one may go on."""

    def is_in(self, spaced: str) -> bool:
        """Whether these words are among those of a text, given as `words`."""
        return (f" {self.words}" if self.is_prefix else f" {self.words} ") in spaced


def phrases(query: str) -> list[Phrase]:
    """What all has to be in a message: each word, and each "quoted phrase"; `*` lets a word go on.

    A query without any word gives an empty list.
    """
    found: dict[Phrase, None] = {}
    for match in _PART.finditer(query):
        part = match[1] if match[1] is not None else match[0]
        if (phrase := _phrase(part)) is not None:
            found[phrase] = None
    return list(found)


def words(text: str) -> str:
    """The words of a text, with a space around each."""
    return _spaced(_folded(text))


def holds(text: str, wanted: Sequence[Phrase]) -> bool:
    """Whether a text holds every phrase; one that lacks a part of them is not taken apart."""
    folded = _folded(text)
    if not all(part in folded for phrase in wanted for part in phrase.words.split(" ")):
        return False
    spaced = _spaced(folded)
    return all(phrase.is_in(spaced) for phrase in wanted)


def for_index(text: str) -> str:
    """The text as an index may be given it that splits at all ASCII but letters and digits."""
    return _split(_folded(text))


def searchable(message: Message) -> str:
    """What is searched of a message: all that was said, thought, asked of tools and answered."""
    if isinstance(message.content, str) and message.tool_calls is None:
        return message.content
    return "\n".join(part for block in blocks_of(message) for part in _parts(block))


def snippet(text: str, wanted: Sequence[Phrase]) -> str | None:
    """One line of the text around the first phrase; None where a phrase is missing."""
    if not wanted or not holds(text, wanted):
        return None
    start = max(0, _place(text, wanted[0]) - SNIPPET_CHARACTERS // 3)
    if start:
        start = _word_start(text, start)
    piece = " ".join(text[start : start + 2 * SNIPPET_CHARACTERS].split())
    is_cut = len(piece) > SNIPPET_CHARACTERS or start + 2 * SNIPPET_CHARACTERS < len(text)
    return ("…" if start else "") + piece[:SNIPPET_CHARACTERS] + ("…" if is_cut else "")


def _phrase(part: str) -> Phrase | None:
    text = words(part).split()
    if not text:
        return None
    is_prefix = part.rstrip().endswith("*")
    if _UNSPACED.fullmatch(text[-1]) and not is_prefix:
        # A run's last character stands alone where the run ends, not where the query does.
        is_prefix = len(text[-1]) == 1
        if is_prefix and len(text) > 1 and text[-2][-1] == text[-1] and len(text[-2]) == 2:
            text, is_prefix = text[:-1], False
    return Phrase(" ".join(text), is_prefix)


def _parts(block: object) -> Iterator[str]:
    match block:
        case TextBlock(text=text) | ThinkingBlock(thinking=text):
            yield text
        case ToolUseBlock(name=name, input=given):
            yield name
            yield from _texts(given)
        case ToolResultBlock(content=content):
            yield result_text(content)
        case AttachmentBlock(path=path, text=text):
            yield path or ""
            yield text


def _texts(value: object) -> Iterator[str]:
    """All texts in a plain value, and its numbers."""
    if isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif value is not None:
        yield str(value)


def _folded(text: str) -> str:
    """The text without case and without the accents of Latin, Greek and Cyrillic."""
    if text.isascii():
        return text.lower()
    bare = _ACCENT.sub("", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFKC", bare)


def _split(folded: str) -> str:
    if folded.isascii():
        return folded
    return _UNSPACED.sub(_pairs, _SEPARATOR.sub(" ", folded))


def _spaced(folded: str) -> str:
    return f" {' '.join(_WORD.findall(_split(folded)))} "


def _pairs(run: re.Match[str]) -> str:
    """A run of a script without spaces as overlapping pairs; its last character stands alone."""
    text = run[0]
    return f" {' '.join([a + b for a, b in pairwise(text)])} {text[-1]} "


def _place(text: str, phrase: Phrase) -> int:
    """Where the phrase begins in a text that holds it, as near as can be told."""
    for start in range(0, len(text), _STRIDE):
        part = text[start : start + 2 * _STRIDE]
        if phrase.is_in(words(part)):
            return start + _place_in(part, phrase)
    return 0


def _place_in(text: str, phrase: Phrase) -> int:
    if text.isascii():
        end = "" if phrase.is_prefix else "(?![a-z0-9])"
        between = "[^a-z0-9]+".join(phrase.words.split())
        found = re.search(f"(?<![a-z0-9]){between}{end}", text.lower())
        return found.start() if found else 0
    pieces = [_folded(character) for character in text]
    origin = [index for index, piece in enumerate(pieces) for _ in piece]
    at = _find("".join(pieces), phrase)
    return origin[at] if at < len(origin) else 0


def _find(folded: str, phrase: Phrase) -> int:
    """The place of a phrase in folded text; 0 where it cannot be told."""
    spaced, places = [], []
    for match in _PIECE.finditer(folded):
        run = match[0]
        parts = words(run).split()
        spaced += parts
        places += [match.start() + (n if len(parts) == len(run) else 0) for n in range(len(parts))]
    text = f" {' '.join(spaced)} "
    at = text.find(f" {phrase.words}" if phrase.is_prefix else f" {phrase.words} ")
    return places[text.count(" ", 0, at)] if at >= 0 else 0


def _word_start(text: str, start: int) -> int:
    """The beginning of the next word, if one is near."""
    found = re.compile(r"\s+").search(text, start, start + 20)
    return found.end() if found else start


_STRIDE = 4_000
"""A long text is looked through in pieces of twice this, in characters."""
_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3041-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
    "\u2600-\u27bf\U0001f000-\U0001faff"  # emoji, of which several stand together as well
)
_UNSPACED = re.compile(f"[{_SPACELESS}]+")
_SEPARATOR = re.compile(rf"[^\w{_SPACELESS}]+|_+")
_WORD = re.compile(r"[a-z0-9\u0080-\U0010ffff]+")
_PIECE = re.compile(rf"[{_SPACELESS}]+|[^\s{_SPACELESS}]+")
_PART = re.compile(r'"([^"]*)"?|[^\s"]+')
_ACCENT = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+")
