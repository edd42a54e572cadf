"""Other words by which a program is told the same: `rm -r --force` for `rm -rf`, `npm i`.

What denies looks for all of them; what allows speaks for the words as they are. So a mistake here
denies too much, and lets nothing run; what is missing here is not found to be denied: other options
of other programs, and what does the same by other words than options (`git add .` for `-A`, a
setting such as `git -c core.hooksPath=x commit` for `--no-verify`). All words are in lower case.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from posixpath import basename

from tiro.tools.command_line import word_set
from tiro.tools.known_options import unnumbered
from tiro.tools.patterns import with_stars

_LONG = {"-f": "--force", "-r": "--recursive", "-d": "--delete"}
"""Options of one letter that mean the same in nearly every program that has both."""
_SHORT = {long: letter for letter, long in _LONG.items()}
_LETTERS = re.compile("-[a-z0-9]+")
_FEW_LETTERS = re.compile("-[a-z0-9]{2,3}")
"""More of them are likely to be the name of one option, as in `go test -race`."""
_LEAST = len("--f")
"""So much of a long option is enough for programs that let it be shortened."""

_SAME = {
    "git commit": "-n --no-verify, -a --all, -e --edit, -s --signoff --gpg-sign, -f --file",
    "git add": "-a --all --no-ignore-removal, -u --update, -n --dry-run",
    "git push": "-n --dry-run, -u --set-upstream, --all --branches, -f --force-with-lease",
    "git branch": "-m --move, -c --copy, -u --set-upstream-to",
    "git switch": "-c --create --force-create, -f --discard-changes",
    "git restore": "-s --staged --source, -w --worktree",
    "git rebase": "-i --interactive, -x --exec",
    "git tag": "-a --annotate, -s --sign",
    "cp": "-l --link, -s --symbolic-link, -t --target-directory",
    "ln": "-s --symbolic, -t --target-directory",
    "mv": "-t --target-directory",
    "sed": "-i --in-place, -e --expression",
    "tar": "-x --extract --get, -c --create --directory, -p --absolute-names",
    "curl": "-o --output --remote-name, -x --request --proxy, -d --data --json, -t --upload-file,"
    " -f --form, -k --insecure --config, -u --user, -l --location",
    "wget": "-o --output-document --output-file",
    "docker run": "-v --volume --mount, -p --publish --publish-all, -e --env, -u --user,"
    " --network --net",
    "docker": "-a --all, -v --volumes",
    "kubectl": "-a --all-namespaces, -f --filename, -k --kustomize, -l --selector, -n --namespace",
    "npm": "-g --global --location, -d --save-dev",
    "pip": "-r --requirement, -u --upgrade, -e --editable, -t --target, -i --index-url",
    "gh": "-x --method, -d --delete-branch",
    "find": "-exec -execdir -ok -okdir",
}
"""Options of a program, or of what one does, that mean the same or nearly so."""
_MORE = {
    "git push": "-f --mirror +*, -d --mirror --prune :* +:*",
    "cp": "-r -a --archive, -p -a --archive",
    "rsync": "-r -a --archive,"
    " --delete --delete-before --delete-during --delete-delay --delete-after --delete-excluded",
}
"""The same, where only the first of each, or its long form, is found in all the others."""
_ALSO = {"podman": "docker", "pnpm": "npm", "gsed": "sed", "gcp": "cp", "bsdtar": "tar"}
"""Programs that take the options of another."""

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


@lru_cache(maxsize=512)
def same_options(command: tuple[str, ...], option: str) -> tuple[str, ...]:
    """The option, and others that do the same; `command` is what a pattern names beside options."""
    if not command:
        return (option,)
    names = [option]
    for group in _groups(_SAME, command):
        if any(gives_option(one, option) for one in group):
            names += group
    for first, *others in _groups(_MORE, command):
        if any(gives_option(first, name) for name in names):
            names += others
    return tuple(names)


def gives_option(word: str, option: str) -> bool:
    """Whether a word of a command gives an option, a `*` in which stands for any characters."""
    if word[:1] != option[:1] and option[:1] != "*":
        return False
    if "*" in option:
        return _fits(word, option)
    head = word.partition("=")[0]
    if len(option) == len("-f"):
        return head == option or _holds(word, option) or _shortens(head, _LONG.get(option))
    if head.lstrip("-") == option.lstrip("-"):
        return True  # some programs take one dash for two
    return option.startswith("--") and (_shortens(head, option) or _holds(word, _SHORT.get(option)))


def same_verbs(program: str, word: str) -> Iterator[str]:
    """The word of a program that says what is done, and what it may be called as well."""
    yield word
    for name, others in _VERBS.get(program, {}).items():
        is_short = program == "npm" and len(word) > 2 and name.startswith(word)
        if is_short or word == name or word in others:
            yield from (name, *others)


def _groups(table: Mapping[str, str], command: Sequence[str]) -> Iterator[list[str]]:
    """The groups of options of all that a pattern may name."""
    program = unnumbered(basename(command[0]))
    words = (_ALSO.get(program, program), *command[1:])
    for name, groups in table.items():
        if all(map(_fits, name.split(), words)):
            yield from (group.split() for group in groups.split(","))


def _fits(word: str, pattern: str) -> bool:
    """Whether a word is what a pattern says, a `*` in which stands for any characters."""
    return with_stars(pattern).fullmatch(word) is not None


def _holds(word: str, letter: str | None) -> bool:
    """Whether a word gives an option of one letter, with others or with its value behind it."""
    if letter is None or word.startswith("--"):
        return False
    if word.startswith(letter) or (_LETTERS.fullmatch(word) and letter[1] in word[1:]):
        return True
    return re.match(f"-[a-z0-9]{{1,2}}{re.escape(letter[1])}[^a-z0-9]", word) is not None


def _shortens(head: str, option: str | None) -> bool:
    return option is not None and len(head) >= _LEAST and option.startswith(head)
