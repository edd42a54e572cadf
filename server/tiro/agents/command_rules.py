"""Commands as permission rules see them.

A pattern is tested word by word on the beginning of a simple command, with `*` for any characters
within a word: `git status` fits `git status -s`, and not `git statusfoo`. What allows has to be
sure: it speaks for no line that is not plain, and for no command that may run or write more than
its beginning says, unless a pattern is all of it; in a folder below the workspace's own it does not
speak for what it names by a path; and a variable in front a script may act on (`DEBUG=1`) has to
be in it, too. What denies or asks need not be sure: there it is looked for anywhere in the line,
and with other words between its own.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import takewhile
from posixpath import basename

import msgspec

from tiro.tools.command_core import core_of, within_git
from tiro.tools.command_line import CommandLine, loose_words, parse_command_line, parted, word_set
from tiro.tools.command_risks import (
    LANGUAGES,
    beginnings,
    hides_others,
    is_known,
    risk_of,
    spelt_out,
)
from tiro.tools.given_options import is_option
from tiro.tools.known_options import GIT_WRITERS, program_of, unnumbered
from tiro.tools.patterns import with_stars
from tiro.tools.readers import only_reads
from tiro.tools.same_words import gives_option, options_of, same_options, same_verbs

READ_ONLY = "<read-only>"
"""The pattern that fits every command that is known to only read what it may."""
MAY_BE_READ_ONLY = "<may-be-read-only>"
"""The one that fits those too that would only read, were it not for a repository's settings."""


class CommandSubject(msgspec.Struct, frozen=True):
    """A simple command, or a line that is not plain, as the subject of rules."""

    words: tuple[str, ...]
    """Of a line that is not plain: everything that may be a word in it."""
    is_plain: bool = True
    is_free: bool = True
    """False where it names a file that it must not read, or its folder is not known."""
    doubt: str | None = None
    """Why it may do more here than read, as its words say."""
    is_seen: bool = False
    """Whether all was looked at that it reads below folders, and may be read."""
    is_home: bool = True
    """False where it is run in a folder that is none of the workspace's own, but one in them."""
    is_fed: bool = False
    """Whether another command of a pipe writes what it may take for a script."""
    wishes: tuple[str, ...] = ()
    """What is set in front of it that scripts may act on."""

    @property
    def is_unclear(self) -> bool:
        """Whether other commands may hide in it."""
        return not self.is_plain or hides_others(self.words)

    def is_covered_by(self, pattern: str) -> bool:
        """Whether a rule that allows this pattern speaks for all of it."""
        if pattern in (READ_ONLY, MAY_BE_READ_ONLY):
            return self._only_reads(pattern)
        if _choosing(parted(pattern)[0]) != _choosing(self.wishes):
            return False
        wanted = _words_of(pattern)
        named = sum(1 for _ in takewhile(_is_written_out, wanted))
        words = self._judged()
        is_sure = self.is_plain and self.is_free and not _leaves_folder(words, wanted)
        is_sure = is_sure and _are_named(words, wanted)
        if not self.is_home and _names_code(wanted):
            return False
        if is_sure and self._is_written_out_by(wanted):
            return True
        return is_sure and _begins(words, wanted) and risk_of(words, named) is None

    def may_be(self, pattern: str) -> bool:
        """Whether this pattern, in a rule that denies or asks, fits anything in it."""
        if pattern in (READ_ONLY, MAY_BE_READ_ONLY):
            return self._only_reads(pattern)
        wanted = _denied_words(pattern)
        words = _folded(self.words)
        starts = range(len(words)) if self.is_unclear else beginnings(words)
        if _stands_at(words, starts, wanted):
            return True
        core = within_git(self.words)[0] if self.is_plain else ()
        return core != self.words and _stands_at(_folded(core), [0], wanted)

    def may_hide(self, pattern: str) -> bool:
        """Whether something in it that no rule sees may be what this pattern denies."""
        if self.is_unclear:
            return True
        core = core_of(self.words)
        if pattern in (READ_ONLY, MAY_BE_READ_ONLY) or is_known(core):
            return False
        words = [part.casefold() for word in core for part in loose_words(word)]
        return _stands_at(words, range(len(words)), _denied_words(pattern))

    def _is_written_out_by(self, wanted: Sequence[tuple[str, re.Pattern[str]]]) -> bool:
        """Whether these are its words, each as it is, and nothing unseen is handed to it."""
        names = tuple(word for word, _ in wanted)
        return (
            len(names) > 1
            and names == self.words
            and self.is_home
            and not self.is_fed
            and "*" not in "".join(names)
        )

    def _judged(self) -> Sequence[str]:
        """The command that is run in the end; git's `-C` is left out where it surely only reads."""
        if not self.is_plain:
            return self.words
        core, inner = within_git(self.words)
        is_sure = not inner or (self.doubt is None and only_reads(core, deep=True) is not None)
        return core if is_sure else core_of(self.words)

    def _only_reads(self, pattern: str) -> bool:
        is_sure = self.is_free and (self.doubt is None or pattern == MAY_BE_READ_ONLY)
        return self.is_plain and is_sure and only_reads(self.words, deep=self.is_seen) is not None


def subjects_of(line: CommandLine, free: Sequence[bool] = ()) -> tuple[CommandSubject, ...]:
    """What the rules are tested on: each simple command, or the whole line."""
    if line.unplain is not None:
        return (CommandSubject(tuple(loose_words(line.text)), is_plain=False),)
    free = free or [True] * len(line.commands)
    each = zip(line.commands, free, fed_commands(line), line.wishes, strict=True)
    return tuple(
        CommandSubject(words, is_free=one, is_fed=is_fed, wishes=wishes)
        for words, one, is_fed, wishes in each
    )


def fed_commands(line: CommandLine) -> list[bool]:
    """Which simple commands of a plain line stand behind a pipe."""
    return [joint == "|" for joint in (";", *line.joints)]


def stand_alone(line: CommandLine) -> bool:
    """Whether each simple command means the same outside of the line.

    Those of a pipe, behind a `cd`, or beside one that runs others do not.
    """
    if line.unplain is not None or "|" in line.joints:
        return False
    return not any(words[0] == "cd" or hides_others(words) for words in line.commands)


def _choosing(wishes: Sequence[str]) -> list[str]:
    """Those by which a script chooses what it works on; `CI=1` says that nobody answers it."""
    return [one for one in wishes if not one.startswith("CI=")]


@lru_cache(maxsize=512)
def _words_of(pattern: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """The words of a pattern, each with its test."""
    return tuple((word, with_stars(word)) for word in _split(pattern))


@lru_cache(maxsize=512)
def _denied_words(pattern: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """The same for what denies, in the form of the words that it is looked for in."""
    return tuple((word, with_stars(word)) for word in _folded(_split(pattern)))


def _split(pattern: str) -> Sequence[str]:
    """The words of a pattern; quotation marks in it are read as in a line."""
    _, rest = parted(pattern)
    line = parse_command_line(rest)
    return line.commands[0] if len(line.commands) == 1 else rest.split()


def _is_written_out(wanted: tuple[str, re.Pattern[str]]) -> bool:
    """Whether a word of a pattern says what stands there, or at least its folder or its option."""
    return "*" not in wanted[0] or _SAYS_ENOUGH.fullmatch(wanted[0]) is not None


_SAYS_ENOUGH = re.compile(r"[^*-][^*]*/[^/]*|--[^*=]+=.*")


def _names_code(wanted: Sequence[tuple[str, re.Pattern[str]]]) -> bool:
    """Whether a pattern names a file to run by a path that leads elsewhere from another folder."""
    words = [word for word, _ in wanted]
    if "/" in words[0]:
        return not words[0].startswith("/")
    is_script = unnumbered(words[0]) in LANGUAGES and not is_option("".join(words[1:2]))
    return is_script and not words[-1].startswith("/")


def _leaves_folder(words: Sequence[str], wanted: Sequence[tuple[str, re.Pattern[str]]]) -> bool:
    """Whether a word gets out of the folder that the pattern names before its `*`."""
    return any(
        "*" in one and ".." in word.split("/") and ".." not in one.split("/")
        for word, (one, _) in zip(words, wanted, strict=False)
    )


def _are_named(words: Sequence[str], wanted: Sequence[tuple[str, re.Pattern[str]]]) -> bool:
    """Whether what stands behind a pattern of paths fits it, too, but for options and values."""
    (last, test), names = wanted[-1], [word for word, _ in wanted[:-1]]
    runs = [word for word in names if not is_option(word)][-1:]
    is_script = not names or (
        unnumbered(basename(runs[0])) in LANGUAGES | _RUN_WORDS and not _MODULE.search(names[-1])
    )
    if not ("*" in last and ("/" in last or "." in last)) or is_option(last) or is_script:
        return True
    valued = _valued(names)
    behind = words[len(wanted) - 1 :]
    end = behind.index("--") if "--" in behind else len(behind)
    for at, word in enumerate(behind[1:], 1):
        is_free = at == end or (at < end and is_option(word))
        before = behind[at - 1]
        is_value = at < end and is_option(before) and before[-1] in valued and before[1] != "-"
        is_inside = ".." not in word.split("/") or ".." in last.split("/")
        if not (is_free or is_value or (is_inside and test.fullmatch(word))):
            return False
    return True


_RUN_WORDS = word_set("run exec dlx npx")
"""Behind these stands what is run, with whatever words of its own."""
_MODULE = re.compile("^-[a-zA-Z]*m$")


def _valued(names: Sequence[str]) -> str:
    """The options of one letter that may take the next word for a value which is no path."""
    found = (program_of(unnumbered(basename(name))) for name in reversed(names))
    is_git = names[0] == "git"
    known = GIT_WRITERS.get("".join(names[1:2])) if is_git else next(filter(None, found), None)
    return "" if known is None else known.options.text + known.options.valued


def _stands_at(
    words: Sequence[str], starts: Iterable[int], wanted: Sequence[tuple[str, re.Pattern[str]]]
) -> bool:
    """Whether what a pattern means begins at one of these words, with others between its own.

    Only options, with what may be their values, stand before the word that says what is done;
    those of the pattern stand anywhere behind its first word, in any order and form. Takes a time
    that grows with the number of words, not with its square.
    """
    wanted = wanted[:-1] if wanted[1:] and wanted[-1][0] == "*" else wanted
    is_loose = bool(wanted) and unnumbered(wanted[0][0]) not in LANGUAGES  # theirs are in order
    tests = [test for one, test in wanted if not (is_loose and is_option(one))]
    given = [one for one, _ in wanted if is_loose and is_option(one)]
    command = tuple(one for one, _ in wanted if one not in given)
    options = [same_options(command, one) for word in given for one in options_of(word)]
    end = min((_last(words, same) for same in options), default=len(words))
    least = 0
    for start in starts if tests and words else ():
        if start < least or start >= end or not _is_named(words[start], tests[0]):
            continue
        if len(tests) == 1:
            return True
        least = _second_word(words, start, tests[1])
        if least == len(words):
            return False  # nor does it stand behind a later start
        if _means(words, start, least, tests[1]):
            left = iter(words[least + 1 :])
            return all(any(map(test.fullmatch, left)) for test in tests[2:])
    return False


def _last(words: Sequence[str], options: Iterable[str]) -> int:
    """The place of the last word that gives one of these options, or -1."""
    places = range(len(words) - 1, -1, -1)
    given = (at for at in places if any(gives_option(words[at], one) for one in options))
    return next(given, -1)


def _means(words: Sequence[str], start: int, at: int, test: re.Pattern[str]) -> bool:
    """Whether a word of a command, or another name for what it does, fits."""
    names = same_verbs(unnumbered(basename(words[start])), words[at])
    return any(map(test.fullmatch, names))


def _folded(words: Sequence[str]) -> tuple[str, ...]:
    """The words as a deny looks for them: in lower case, a module of Python by itself."""
    return tuple(word.casefold() for word in spelt_out(words))


def _is_named(word: str, test: re.Pattern[str]) -> bool:
    name = basename(word)
    bare = unnumbered(name)
    other = bare[1:] if bare[:1] == "g" and bare[1:] in _GNU_TOOLS else bare
    return any(map(test.fullmatch, (word, name, bare, other)))


_GNU_TOOLS = word_set(
    "rm mv cp ln dd chmod chown chgrp shred tee touch truncate sed tar find xargs awk rmdir unlink"
    " kill install mkdir split cat ls make"
)
"""What is also there as `grm`, `gmv` and so on, where a system has other ones of its own."""


def _second_word(words: Sequence[str], start: int, test: re.Pattern[str]) -> int:
    """Where a word fits, or says that something else is done; the number of words otherwise."""
    is_any = unnumbered(basename(words[start])) in _TARGETS
    before = ""
    for at in range(start + 1, len(words)):
        word = words[at]
        if _means(words, start, at, test):
            return at
        if not is_any and word[:1] not in ("-", "+") and not before.startswith("-"):
            return at
        before = word
    return len(words)


_TARGETS = word_set("make gmake just rake ninja ant mvn mvnw gradle gradlew task invoke inv nox")
"""Programs that do all that their words name, in any order."""


def _begins(words: Sequence[str], wanted: Sequence[tuple[str, re.Pattern[str]]]) -> bool:
    if len(wanted) > 1 and wanted[-1][0] == "*":
        wanted = wanted[:-1]  # `make *` speaks for `make`, too
    if not wanted or len(words) < len(wanted):
        return False
    return all(test.fullmatch(word) for word, (_, test) in zip(words, wanted, strict=False))
