"""A command line, read as a shell reads it, as far as that is certain.

Law: a line counts as plain only if every shell (`sh`, dash, bash) takes it for exactly these simple
commands with exactly these words. Whatever else there is, substitutions, redirections, patterns,
keywords, or merely a character that is not known to be harmless, makes it a line that is not plain.
A text of several lines is a commit's message. Left out of its words is what changes nothing that is
judged: output that goes nowhere or where the other output goes, and a few variables that no program
takes for more than a wish. Which of them scripts may act on is told beside the words.
"""

import re

import msgspec

from tiro.tools.command_core import core_of

MAX_COMMANDS = 100
"""A line of more is not plain: nobody writes one, and each command has to be looked at."""
MAX_WORDS = 300
"""Nor is a line of more words; how words are looked at may take the square of their number,
or go as deep."""
JOINTS = ("&&", "||", ";", "|")

EMPTY = "it is empty"
LINE_BREAK = "it has a line break"
UNSEEN = "it has a character that cannot be seen"
OPEN_QUOTE = "a quotation mark is not closed"
SPECIAL = "the shell gives {character!r} a meaning of its own"
NOT_ASCII = "{character!r} stands outside quotation marks"
DANGLING = "a command is missing beside {joint!r}"
KEYWORD = "{word!r} is no command but a word of the shell"
ASSIGNMENT = "{word!r} sets a variable"
TOO_MANY = "it is more than {most} commands"
TOO_LONG = "it is too long to look at, with more than {most} words"
DASHED = "{word!r} is an option in the place of a command"


class CommandLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line, and what is known about it."""

    text: str
    commands: tuple[tuple[str, ...], ...] = ()
    """The words of its simple commands, in order; empty when it is not plain. `$?` is a number."""
    joints: tuple[str, ...] = ()
    """What stands between them."""
    wishes: tuple[tuple[str, ...], ...] = ()
    """By its commands: what is set for it in front that scripts may act on, such as `CI=1`."""
    globs: tuple[tuple[int, int], ...] = ()
    """Which words have a `*` that stands for names: the command's place, and the word's in it."""
    unplain: str | None = None
    """Why it is not plain, in words that follow on "because"."""


def parse_command_line(text: str) -> CommandLine:
    """Take a line apart; never raises."""
    line = parse_with_globs(text)
    if line.globs:
        return CommandLine(text=text, unplain=SPECIAL.format(character=_GLOB))
    return line


def parse_with_globs(text: str) -> CommandLine:
    """The same, but that a `*` may stand in words for whoever looks up what it stands for."""
    reader = _Reader(text)
    try:
        commands, joints = reader.read()
    except _UnplainError as reason:
        return CommandLine(text=text, unplain=str(reason))
    globs, wishes = reader.globs(), reader.wishes()
    return CommandLine(text=text, commands=commands, joints=joints, globs=globs, wishes=wishes)


def parted(text: str) -> tuple[tuple[str, ...], str]:
    """What a text sets in front of a command that scripts may act on, and the rest of it."""
    found: list[str] = []
    while wish := _WISH.match(text):
        found += [wish[0]] if _TELLING.match(wish[0]) else []
        text = text[wish.end() :].lstrip(" \t")
    return tuple(found), text


def loose_words(text: str) -> list[str]:
    """Everything in any line that may be a word of a command, in order."""
    return _BETWEEN_WORDS.sub(" ", _QUOTES.sub("", text)).split()


def word_set(text: str) -> frozenset[str]:
    """The words of a text without quotation marks."""
    return frozenset(text.split())


_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,+@%=^")
_KEYWORDS = word_set(
    "if then else elif fi do done case esac while until for in function select coproc { } ! [[ ]]"
)
_QUOTES = re.compile(r"[\"'\\]")
_BETWEEN_WORDS = re.compile(r"[\s;&|()<>`${}=,:\[\]*?!#\0]")


_NOWHERE = re.compile(r"(?:[12]?>>?[ \t]*/dev/null|0?<[ \t]*/dev/null|[12]?>&[12])(?=[ \t;&|]|$)")
_ALL_NOWHERE = re.compile(r"&>[ \t]*/dev/null(?=[ \t]*([;|]|&&|$))")
"""Only at the end of a command: some shells run it in the background, and what follows apart."""
_WISH = re.compile(
    r"(?:(?:CI|DEBUG|FORCE_COLOR|NO_COLOR|COLUMNS|NODE_ENV|RUST_BACKTRACE|PYTHONUNBUFFERED"
    r"|PYTHONDONTWRITEBYTECODE)=[a-z0-9]+|(?:LC_ALL|LANG)=C(?:\.UTF-8)?|(?:GIT_)?PAGER=cat)"
    r"(?=[ \t])"
)
"""A variable, set for one command, that makes no program read, write or run anything else."""
_TELLING = re.compile("CI=|DEBUG=|NODE_ENV=")
"""By these a script may choose what it does."""
_TIMER = "time"
"""A word of some shells and a program of others: what stands behind it is the command."""
_STATUS = "$?"
_GLOB = "*"
_NO_GLOB = re.compile(r"""[\\'"$~]|\*\*""")
"""What makes it uncertain, in a word as it is written, what a `*` in it stands for."""
_END = re.compile(r"[ \t;&|]|$")
_BRACES = re.compile(r"\{\}(?=[ \t;&|]|$)")
"""A word of its own, of which shells make no more than it says."""
_ESCAPED = frozenset("()!;*?[]{}$&|<>#~\"'")
"""What stands for itself behind a backslash; not in the place of a command."""
_IN_DOUBLE = re.compile(r'(?:[^$`\\]|\\[^$`"\\\n]|\$\?|\$(?=[ \t)|]|$))*')
"""What double quotation marks hold as it is, but for `$?`."""

_WITH_MESSAGES = (("git", "commit"), ("git", "tag"))
"""Commands that may get a text of several lines; others may take each line for something else."""
_MESSAGE = re.compile(
    r"\"\$\(cat <<'(?P<end>[A-Z]+)'\n(?P<text>(?:(?!(?P=end)\n)(?:[^\n'\"`$\\()#<]|<(?!<)"
    r"|\([^\n'\"`$\\()#<]*\))*\n)*)(?P=end)\n[ \t]*\)\""
)
"""A text of several lines, as models hand it over. It is without what old shells, which look for
the end of `$(` as if it held commands, may take for a quotation mark, a bracket or a comment."""


class _UnplainError(Exception):
    """Why a line is not plain."""


def _why(character: str) -> str:
    """Why a line with this character outside of quotation marks is not plain."""
    if character == "\n":
        return LINE_BREAK
    return (SPECIAL if character.isascii() else NOT_ASCII).format(character=character)


class _Reader:
    """One reading of a line, character by character."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._commands: list[tuple[str, ...]] = []
        self._joints: list[str] = []
        self._words: list[str] = []
        self._word: str | None = None
        self._has_status = False
        self._has_break = False
        self._begin = 0
        self._globs: list[tuple[int, int]] = []
        self._count = 0
        self._wishes: list[list[str]] = [[]]

    def wishes(self) -> tuple[tuple[str, ...], ...]:
        """What is set for each command and told beside its words."""
        return tuple(map(tuple, self._wishes[: len(self._commands)]))

    def globs(self) -> tuple[tuple[int, int], ...]:
        """The places of the words in which a `*` stands outside of quotation marks."""
        return tuple(self._globs)

    def read(self) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
        """The commands and what joins them; _UnplainError for what is not plain."""
        for character in self._text:
            if character == "\r":
                raise _UnplainError(LINE_BREAK)
            if character not in "\t\n" and not character.isprintable():
                raise _UnplainError(UNSEEN)
        while self._at < len(self._text):
            self._take(self._text[self._at])
        self._end_word()
        if self._words:
            self._end_command()
        elif self._joints and self._joints[-1] == ";":
            self._joints.pop()  # a semicolon at the end is only an end
        elif self._joints:
            raise _UnplainError(DANGLING.format(joint=self._joints[-1]))
        else:
            raise _UnplainError(EMPTY)
        return tuple(self._commands), tuple(self._joints)

    def _take(self, character: str) -> None:
        if self._word is None:
            self._begin = self._at
        if (left_out := self._left_out()) > 0:
            self._at += left_out
        elif character in " \t":
            self._end_word()
            self._at += 1
        elif character in ";&|":
            self._join()
        elif character in "'\"":
            self._quote(character)
        else:
            self._take_unquoted(character)

    def _take_unquoted(self, character: str) -> None:
        if self._text.startswith(_STATUS, self._at):
            self._has_status = True
            self._add(_STATUS)
        elif character == "\\" and self._words and self._text[self._at + 1 :][:1] in _ESCAPED:
            self._at += 1
            self._add(self._text[self._at])
        elif self._word is None and self._words and _BRACES.match(self._text, self._at):
            self._add("{}")
        elif character == _GLOB:
            self._add(_GLOB)
            self._globs.append((len(self._commands), len(self._words)))
        elif character in _PLAIN or self._stands_for_itself(character):
            self._add(character)
        else:
            raise _UnplainError(_why(character))

    def _add(self, letters: str) -> None:
        self._word = (self._word or "") + letters
        self._at += len(letters)

    def _left_out(self) -> int:
        """The length of what stands here and changes nothing, or 0."""
        if self._word is not None:
            return 0
        tests = [_NOWHERE, _WISH] if not self._words else [_NOWHERE]
        if self._words and not any(one[0] == "cd" for one in (*self._commands, self._words)):
            tests.append(_ALL_NOWHERE)
        found = next(filter(None, (test.match(self._text, self._at) for test in tests)), None)
        if found is not None and _TELLING.match(found[0]):
            self._wishes[-1].append(found[0])
        return 0 if found is None else len(found[0])

    def _stands_for_itself(self, character: str) -> bool:
        """Whether it is one as in `HEAD~1`, `py$` or `[ -f a ]`, of which shells make no more."""
        is_end = _END.match(self._text, self._at + 1) is not None
        if character == "[":
            return is_end and self._word is None and not self._words
        if character == "]":
            return is_end and self._word is None and self._words[:1] == ["["]
        if character == "$":
            return is_end and bool(self._word)
        return character == "~" and self._at > 0 and self._text[self._at - 1].isalnum()

    def _quote(self, mark: str) -> None:
        if message := _MESSAGE.match(self._text, self._at):
            self._has_break = True
            self._word = (self._word or "") + message["text"].rstrip("\n")
            self._at = message.end()
            return
        end = self._text.find(mark, self._at + 1)
        if end < 0:
            raise _UnplainError(OPEN_QUOTE)
        inside = self._text[self._at + 1 : end]
        if mark == '"':
            sure = _IN_DOUBLE.match(inside)
            if sure is not None and sure.end() < len(inside):
                raise _UnplainError(SPECIAL.format(character=inside[sure.end()]))
            self._has_status = self._has_status or _STATUS in inside
        self._has_break = self._has_break or "\n" in inside
        self._word = (self._word or "") + inside
        self._at = end + 1

    def _join(self) -> None:
        two = self._text[self._at : self._at + 2]
        joint = two if two in JOINTS else two[:1]
        behind = self._text[self._at + len(joint) : self._at + len(joint) + 1]
        if joint == "&" or behind in (*";&|",):
            raise _UnplainError(SPECIAL.format(character=two.strip()))
        self._end_word()
        if not self._words:
            raise _UnplainError(DANGLING.format(joint=joint))
        self._end_command()
        self._joints.append(joint)
        self._at += len(joint)

    def _end_word(self) -> None:
        if self._word is not None:
            self._count += 1
            if self._count > MAX_WORDS:
                raise _UnplainError(TOO_LONG.format(most=MAX_WORDS))
            is_glob = self._globs[-1:] == [(len(self._commands), len(self._words))]
            written = self._text[self._begin : self._at]
            if is_glob and (not self._words or _NO_GLOB.search(written)):
                raise _UnplainError(SPECIAL.format(character=_GLOB))
            self._words.append(self._word)
            self._word = None

    def _end_command(self) -> None:
        first = next((word for word in self._words if word != _TIMER), _TIMER)
        if first in _KEYWORDS or (first == "cd" != self._words[0]):
            raise _UnplainError(KEYWORD.format(word=first))
        if "=" in first:
            raise _UnplainError(ASSIGNMENT.format(word=first))
        if not first or first[0] in "-+":
            raise _UnplainError(DASHED.format(word=first))
        if self._has_status and first != "echo":
            raise _UnplainError(SPECIAL.format(character="$"))
        if self._has_break and tuple(core_of(self._words)[:2]) not in _WITH_MESSAGES:
            raise _UnplainError(LINE_BREAK)
        if len(self._commands) == MAX_COMMANDS:
            raise _UnplainError(TOO_MANY.format(most=MAX_COMMANDS))
        self._commands.append(tuple(self._words))
        self._wishes.append([])
        self._words = []
        self._has_status = self._has_break = False
