"""Other words by which a program is told the same: `rm -r --force` for `rm -rf`, `npm i`.

What denies looks for all of them; what allows speaks for the words as they are. So a mistake here
denies too much, and lets nothing run. All words are in lower case.
"""

import re
from collections.abc import Iterator, Mapping

from tiro.tools.command_line import word_set

_LONG = {"-f": "--force", "-r": "--recursive", "-d": "--delete"}
"""Options of one letter that mean the same in nearly every program that has both."""
_SHORT = {long: letter for letter, long in _LONG.items()}
_LETTERS = re.compile("-[a-z0-9]{1,8}")
_FEW_LETTERS = re.compile("-[a-z0-9]{2,3}")
"""More of them are likely to be the name of one option, as in `go test -race`."""
_LEAST = len("--for")
"""So much of a long option is enough for programs that let it be shortened."""

_INSTALL = word_set("i in ins inst insta instal isnt isnta isntal isntall add")
_UPDATE = word_set("up upgrade udpate")
_NPM = {
    "install": _INSTALL,
    "ci": word_set("clean-install ic install-clean isntall-clean"),
    "install-test": word_set("it"),
    "uninstall": word_set("un unlink remove rm r"),
    "update": _UPDATE,
    "run": word_set("run-script rum urn"),
    "exec": word_set("x"),
    "test": word_set("t tst"),
    "link": word_set("ln"),
    "config": word_set("c"),
    "login": word_set("add-user adduser"),
    "owner": word_set("author"),
    **dict.fromkeys(
        ("publish", "unpublish", "deprecate", "dist-tag", "token", "access", "version"),
        word_set(""),
    ),
}
_VERBS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "npm": _NPM,
    "pnpm": {
        "install": _INSTALL,
        "update": _UPDATE,
        "remove": word_set("rm uninstall un"),
        "test": word_set("t tst"),
        "run": word_set("run-script"),
    },
    "cargo": {"build": word_set("b"), "run": word_set("r"), "remove": word_set("rm")},
}
"""By their programs: what is done, and other words for it."""


def options_of(word: str) -> list[str]:
    """The options that a word stands for: `-rf` is `-r` and `-f`."""
    return [f"-{letter}" for letter in word[1:]] if _FEW_LETTERS.fullmatch(word) else [word]


def gives_option(word: str, option: str) -> bool:
    """Whether a word of a command gives an option, a `*` in which stands for any characters."""
    if "*" in option:
        return re.fullmatch(".*".join(map(re.escape, option.split("*"))), word) is not None
    head = word.partition("=")[0]
    if head == option:
        return True
    if not option.startswith("--"):
        is_letter = len(option) == len("-f")
        return is_letter and (_holds(word, option) or _shortens(head, _LONG.get(option)))
    return _shortens(head, option) or _holds(word, _SHORT.get(option))


def same_verbs(program: str, word: str) -> Iterator[str]:
    """The word of a program that says what is done, and what it may be called as well."""
    yield word
    for name, others in _VERBS.get(program, {}).items():
        is_short = program == "npm" and len(word) > 2 and name.startswith(word)
        if is_short or word == name or word in others:
            yield from (name, *others)


def _holds(word: str, letter: str | None) -> bool:
    return letter is not None and _LETTERS.fullmatch(word) is not None and letter[1] in word[1:]


def _shortens(head: str, option: str | None) -> bool:
    return option is not None and len(head) >= _LEAST and option.startswith(head)
