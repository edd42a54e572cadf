"""Whether words give a program an option, in every form in which programs take one.

Options of one letter stand together, behind digits, and with a value in the same word (`-1rf`); a
long one may be shortened, as GNU programs let it. What a word may stand for counts as given, also
behind `--`: so a mistake here looks at more, and misses nothing.
"""

import re
from collections.abc import Sequence

import msgspec

_LETTERS = re.compile("-[A-Za-z0-9]*")


class Option(msgspec.Struct, frozen=True):
    """An option, or several that do the same, by all their names."""

    letters: str = ""
    long: str = ""
    """Its long names without their dashes, with blanks between."""

    def is_given(self, words: Sequence[str]) -> bool:
        """Whether one of these words may give it."""
        return any(map(self._is_given_by, words))

    def _is_given_by(self, word: str) -> bool:
        if not word.startswith("--"):
            letters = _LETTERS.match(word)
            return letters is not None and any(one in letters[0] for one in self.letters)
        head = word.partition("=")[0].removeprefix("--")
        return head != "" and any(name.startswith(head) for name in self.long.split())


def named_words(words: Sequence[str]) -> list[str]:
    """Those that are no options: the paths, and the values that stand alone."""
    first = words.index("--") if "--" in words else len(words)
    return [word for word in words[:first] if not is_option(word)] + [*words[first + 1 :]]


def is_option(word: str) -> bool:
    """Whether a program may take a word for an option, were it not for the words before it."""
    return word.startswith("-") and word not in ("-", "--")
