"""What a command that only reads is told by: its options, and which of its words may be paths.

Law: an option that is not listed is not known, so its command does not count as one that only
reads. Options are given as they are written out; no command may shorten them. And every word is
judged by itself: none passes because the one before it might take it for its value, so that a
mistake in the tables costs a question and lets nothing through.
"""

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from tiro.tools.given_options import Option, is_option

Shows = Literal["nothing", "names", "text"]


class Reading(msgspec.Struct, frozen=True):
    """What a command that only reads gets to see."""

    shows: Shows
    """What of its paths: nothing, names and sizes, or the text in them."""
    paths: tuple[str, ...] = ()
    """Every word that may be a path."""


class Reader(msgspec.Struct, frozen=True, kw_only=True):
    """A command that only reads, as long as it gets no other options than these."""

    shows: Shows
    flags: str = ""
    """Options of one letter, which may stand together; `#` for numbers."""
    valued: str = ""
    """The same, behind which digits and signs may stand in the same word: `-n5`, `-d:`."""
    text: str = ""
    """The same, behind which all of the word is sure to be a value: `-XPOST`."""
    long: str = ""
    """Options of more letters, with or without a value behind `=`."""
    single: str = ""
    """Options with one dash that stand alone, with or without a value behind `=`."""
    deep: str = ""
    """Options of any kind with which it reads more than what it is given; digits may follow."""
    deep_text: str = ""
    """The same of one letter, as `text`."""
    most: int | None = None
    """The most words without a dash that it may get, where another one would be written to."""
    takes_paths: bool = True
    seeks: str = ""
    """Where its first word is a text to look for and no path, unless `-e` or `-f` gives one: long
    options that take no value."""
    is_deep: bool = False
    """It always reads more than the paths that it is given."""


def has_known_options(reader: Reader, words: Sequence[str]) -> bool:
    """Whether all options among these words, without the command itself, are the reader's."""
    return read_by(reader, words, deep=True) is not None


def read_by(reader: Reader, words: Sequence[str], deep: bool) -> Reading | None:
    """What it reads with these options and paths, or None."""
    if reader.is_deep and not deep:
        return None
    if not all(_is_known(reader, word, deep) for word in words if is_option(word)):
        return None
    named = _named(words)
    if reader.most is not None and len(named) > reader.most:
        return None
    paths = _behind_text(reader, words) or named
    return Reading(reader.shows, tuple(paths) if reader.takes_paths else ())


def _named(words: Sequence[str]) -> Sequence[str]:
    """All from the first that is no option: on some systems no option stands behind it.

    Only the first `--` may be no name: behind it, and on some systems behind any name, it is one.
    """
    first = next((at for at, word in enumerate(words) if not is_option(word)), len(words))
    return words[first + 1 :] if words[first : first + 1] == ["--"] else words[first:]


def _behind_text(reader: Reader, words: Sequence[str]) -> Sequence[str]:
    """The words behind the text that it looks for; none where it is not certain which one that is.

    Numbers behind `-A`, `-B` and `-m` are surely theirs, as these take one on every system.
    """
    if not reader.seeks or _TEXT_GIVEN.is_given(words):
        return ()
    at = 0
    while at < len(words) and is_option(words[at]):
        word = words[at]
        if word.startswith("--"):
            if "=" not in word and word[2:] not in reader.seeks.split():
                return ()
        elif word[-1] in "ABm" and words[at + 1 : at + 2] and words[at + 1].isdecimal():
            at += 1
        elif word[-1] not in reader.flags + "rR" and not word[-1].isdecimal():
            return ()
        at += 1
    return words[at + 2 if words[at : at + 1] == ["--"] else at + 1 :]


_TEXT_GIVEN = Option("ef", "regexp file files type-list")


def _is_known(reader: Reader, word: str, deep: bool) -> bool:
    """Whether an option is one of the reader's."""
    names = [*reader.long.split(), *(reader.deep.split() if deep else ())]
    if word.startswith("--"):
        return word.partition("=")[0][2:] in names
    if word.partition("=")[0][1:] in reader.single.split():
        return True
    if NUMBER.fullmatch(word) and "#" in reader.flags:
        return True
    may_be_value, text = False, reader.text + (reader.deep_text if deep else "")
    for letter in word[1:]:
        if letter in text:
            return True
        is_letter = letter in reader.flags or letter in reader.valued or letter in names
        if not is_letter and (not may_be_value or letter.isalpha()):
            return False
        may_be_value = may_be_value or letter not in reader.flags
    return True


NUMBER = re.compile(r"-\d+")
