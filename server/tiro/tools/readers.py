"""The commands that are known to only read, with every option that leaves it at that.

How their options and words are judged says `reading.py`.
"""

import itertools
import re
from collections.abc import Callable, Sequence

import msgspec

from tiro.tools.command_core import within_git
from tiro.tools.command_line import word_set
from tiro.tools.find_words import HANDED, find_of
from tiro.tools.given_options import is_option
from tiro.tools.reading import Reader, Reading, read_by


def only_reads(words: Sequence[str], *, deep: bool) -> Reading | None:
    """What a command reads, or None when it may do more than read.

    `deep` says whether it may read more than the files it names, such as all below a folder.
    """
    words, _ = within_git(tuple(words))
    if len(words) == 2 and words[1] in _VERSIONS.get(words[0], ()):
        return Reading("nothing")
    special = _SPECIAL.get(words[0])
    if special is not None:
        return special(words, deep)
    reader = READERS.get(words[0])
    return None if reader is None else read_by(reader, words[1:], deep)


_DIFF_LONG = (
    "stat numstat shortstat name-only name-status summary cached staged color no-color"
    " minimal patience histogram no-ext-diff no-textconv exit-code quiet merge-base"
    " diff-filter find-renames find-copies ignore-all-space ignore-space-change ignore-blank-lines"
    " abbrev no-patch no-renames dirstat compact-summary"
)
_DIFF_DEEP = "p u U patch unified"
_LOG_LONG = (
    "oneline graph all decorate no-decorate author committer since until after before grep pretty"
    " format abbrev-commit date follow reverse merges no-merges first-parent max-count skip"
    " branches tags remotes left-right cherry-pick no-walk topo-order date-order"
)

_GREP = Reader(
    shows="text",
    flags="inHhcloLqsvwxEFGPaIUTzb#",
    valued="ABCm",
    text="e",
    long="ignore-case line-number count files-with-matches files-without-match invert-match"
    " word-regexp line-regexp only-matching color colour max-count after-context"
    " before-context context extended-regexp fixed-strings perl-regexp no-messages quiet"
    " regexp text with-filename no-filename",
    deep="r R recursive include exclude exclude-dir",
    seeks="ignore-case line-number count files-with-matches invert-match word-regexp line-regexp"
    " only-matching extended-regexp fixed-strings no-messages quiet text recursive",
)

READERS: dict[str, Reader] = {
    "ls": Reader(
        shows="names",
        flags="1aAlhtrSRFdigGnopsUXcukmqQbBCfx",
        long="all almost-all human-readable recursive reverse directory classify color sort time"
        " full-time inode size group-directories-first",
    ),
    "stat": Reader(shows="names", flags="ftc", long="format printf terse"),
    "du": Reader(
        shows="names",
        flags="shackmb",
        valued="d",
        long="summarize human-readable all max-depth total apparent-size",
    ),
    "df": Reader(shows="names", flags="TPaihkl", long="human-readable all print-type total"),
    "tree": Reader(shows="names", flags="adfispugDhrtCFnIP", valued="L", long="dirsfirst noreport"),
    "file": Reader(shows="names", flags="bih", long="brief mime mime-type"),
    "realpath": Reader(shows="names", flags="emqsz"),
    "readlink": Reader(shows="names", flags="femnqsz"),
    "cat": Reader(shows="text", flags="nbsETAvet", long="number number-nonblank show-all"),
    "tac": Reader(shows="text"),
    "head": Reader(shows="text", flags="qvz#", valued="nc", long="lines bytes quiet verbose"),
    "tail": Reader(shows="text", flags="qvz#", valued="nc", long="lines bytes quiet verbose"),
    "nl": Reader(shows="text", valued="vwsi", text="b"),
    "wc": Reader(shows="text", flags="lwcmL", long="lines words bytes chars max-line-length"),
    "sort": Reader(
        shows="text",
        flags="nrufbdghiMRVszcC",
        valued="kt",
        long="numeric-sort reverse unique ignore-case human-numeric-sort version-sort key check"
        " field-separator stable",
    ),
    "uniq": Reader(
        shows="text",
        flags="Dcdiuz",
        valued="fsw",
        long="count repeated unique ignore-case",
        most=1,
    ),
    "cut": Reader(
        shows="text",
        flags="sz",
        valued="dfcb",
        long="delimiter fields characters bytes complement output-delimiter only-delimited",
    ),
    **dict.fromkeys(("grep", "egrep", "fgrep"), _GREP),
    "rg": Reader(
        shows="text",
        flags="inlcvwFSsHhNoUxp",
        valued="ABCmj",
        text="egtT",
        long="ignore-case line-number files-with-matches count fixed-strings word-regexp glob type"
        " type-not after-context before-context context max-count smart-case no-heading hidden"
        " no-ignore files sort max-depth only-matching invert-match multiline json color regexp",
        seeks="ignore-case line-number files-with-matches count fixed-strings word-regexp hidden"
        " smart-case no-heading no-ignore only-matching invert-match multiline",
        is_deep=True,
    ),
    "diff": Reader(
        shows="text",
        flags="NBEuqbwiscpaeytd",
        valued="UIWC",
        long="unified brief color side-by-side ignore-all-space ignore-space-change context"
        " ignore-case report-identical-files new-file text minimal",
        deep="r recursive exclude",
    ),
    "paste": Reader(shows="text", flags="sz", valued="d", long="delimiters serial"),
    "fold": Reader(shows="text", flags="bs", valued="w", long="width spaces"),
    "rev": Reader(shows="text"),
    "od": Reader(shows="text", flags="abcdfiloxv", valued="AtjNw"),
    "hexdump": Reader(shows="text", flags="Cbcdovx", valued="ns"),
    "xxd": Reader(shows="text", flags="abeipu", valued="cgls", most=1),
    "column": Reader(shows="text", flags="tx", valued="sc"),
    "cmp": Reader(shows="text", flags="bls", valued="n"),
    "comm": Reader(shows="text", flags="123", long="check-order nocheck-order total"),
    "md5sum": Reader(shows="text", flags="bt"),
    "sha1sum": Reader(shows="text", flags="bt"),
    "sha256sum": Reader(shows="text", flags="bt"),
    "tr": Reader(shows="nothing", flags="cdstC", takes_paths=False),
    "pwd": Reader(shows="nothing", flags="LP", most=0),
    "whoami": Reader(shows="nothing", most=0),
    "uname": Reader(shows="nothing", flags="asnrvmpio", most=0),
    "id": Reader(shows="nothing", flags="ugnrG", takes_paths=False),
    "groups": Reader(shows="nothing", takes_paths=False),
    "hostname": Reader(shows="nothing", flags="fsdiI", most=0),
    "uptime": Reader(shows="nothing", flags="ps", most=0),
    "arch": Reader(shows="nothing", most=0),
    "free": Reader(shows="nothing", flags="bkmghtw", most=0),
    "sleep": Reader(shows="nothing", takes_paths=False),
    "nproc": Reader(shows="nothing", most=0),
    "true": Reader(shows="nothing", takes_paths=False),
    "false": Reader(shows="nothing", takes_paths=False),
    "which": Reader(shows="nothing", flags="a", takes_paths=False),
    "basename": Reader(shows="nothing", flags="a", valued="s", takes_paths=False),
    "dirname": Reader(shows="nothing", takes_paths=False),
    "seq": Reader(shows="nothing", flags="w#", valued="s", takes_paths=False),
}

GIT_READERS: dict[str, Reader] = {
    "status": Reader(
        shows="names",
        flags="sbz",
        text="u",
        long="short branch porcelain long ignored untracked-files ahead-behind show-stash",
    ),
    "log": Reader(
        shows="names",
        flags="iEFsz#",
        valued="n",
        long=f"{_LOG_LONG} {_DIFF_LONG}",
        deep=_DIFF_DEEP,
        deep_text="SGL",  # which commits it lists tells what the files hold
    ),
    "show": Reader(
        shows="text",
        flags="swbz",
        valued="MC",
        long=f"{_LOG_LONG} {_DIFF_LONG}",
        deep=_DIFF_DEEP,
    ),
    "diff": Reader(
        shows="text",
        flags="Rwbza",
        valued="MC",
        long=_DIFF_LONG,
        deep=_DIFF_DEEP,
    ),
    "branch": Reader(
        shows="names", flags="avr", long="list all remotes show-current verbose", most=0
    ),
    "tag": Reader(shows="names", flags="l", long="list", most=0),
    "remote": Reader(shows="names", flags="v", long="verbose", most=0),
    "rev-parse": Reader(
        shows="names",
        long="show-toplevel abbrev-ref short verify git-dir is-inside-work-tree show-prefix",
    ),
    "ls-files": Reader(
        shows="names", flags="cdmotz", long="cached deleted modified others exclude-standard"
    ),
    "ls-tree": Reader(shows="names", flags="rtdlz", long="name-only full-tree long"),
    "describe": Reader(shows="names", long="tags always long all abbrev match", deep="dirty"),
    "shortlog": Reader(shows="names", flags="snec", long="summary numbered email all since until"),
    "blame": Reader(shows="text", flags="wslefn", valued="L", long="date show-name porcelain"),
    "grep": Reader(
        shows="text",
        flags="inlcwvEFPhHo#",
        valued="ABC",
        text="e",
        long="count line-number ignore-case",
        is_deep=True,
    ),
    "rev-list": Reader(shows="names", flags="#", valued="n", long=f"count {_LOG_LONG}"),
    "reflog": Reader(shows="names", flags="#", valued="n", long="oneline date", most=0),
    "merge-base": Reader(shows="names", long="is-ancestor all fork-point"),
}
"""What of git only reads; an editor's, a pager's or another program's start is not among it."""

_GIT_SUMMARIES = word_set(
    "--stat --numstat --shortstat --name-only --name-status --no-patch --dirstat --summary"
)
_GIT_FLAGS = word_set("--cached --staged --oneline --color --no-color -w -M -C")
"""Options that never take the next word for their value."""


def _git(words: Sequence[str], deep: bool) -> Reading | None:
    """git: what its subcommand reads; what is committed counts as text that it does not name."""
    name, rest = (words[1], words[2:]) if len(words) > 1 else ("", ())
    reader = GIT_READERS.get(name)
    if reader is None or any("::" in word or _SIGNATURE.search(word) for word in rest):
        return None
    if (name == "ls-tree" and "--name-only" not in rest) or any(map(_HASHES.fullmatch, rest)):
        return None
    if not deep and name in ("show", "diff"):
        if not _is_summary(rest):
            return None
        reader = msgspec.structs.replace(reader, shows="names")
        if name == "show" and not all(map(_COMMIT.fullmatch, _objects(rest))):
            return None
    return read_by(reader, rest, deep)


def _is_summary(words: Sequence[str]) -> bool:
    """Whether a summary is asked for, by a word that is no path and no other option's value."""
    options = words[: words.index("--")] if "--" in words else words
    pairs = zip(("", *options), options, strict=False)
    return any(
        word.partition("=")[0] in _GIT_SUMMARIES
        and (not is_option(before) or "=" in before or before in _GIT_FLAGS | _GIT_SUMMARIES)
        for before, word in pairs
    )


_HASHES = re.compile("--porcelain=v?2")
"""Asks for the hashes of files. They tell as much of a short text as `sha1sum` does, which is known
to read it; so does `ls-tree`, but for names."""
_SIGNATURE = re.compile("%[-+ ]?G")
"""What in a form lets git run a program that checks signatures."""
_COMMIT = re.compile(r"HEAD|@|\w[\w./-]*([~^]\d*)+")
"""What git takes for nothing but a commit; a plain name may be one of a file's text."""


def _objects(words: Sequence[str]) -> list[str]:
    """What `git show` may take for something to show."""
    before = words[: words.index("--")] if "--" in words else words
    return [word for word in before if not word.startswith("-")]


_JQ = Reader(
    shows="text",
    flags="rcnesSajCMR",
    long="raw-output compact-output null-input exit-status slurp sort-keys ascii-output"
    " join-output color-output monochrome-output raw-input tab indent arg argjson args jsonargs"
    " version help",
)
_JQ_MORE = re.compile(r"\b(import|include|modulemeta|env|ENV)\b")
"""By these words a program of jq reads other files, or the environment."""


def _jq(words: Sequence[str], deep: bool) -> Reading | None:
    """jq: its program comes first, and then the files."""
    reading = read_by(_JQ, words[1:], deep)
    if reading is None or any(map(_JQ_MORE.search, words)):
        return None
    return Reading("text", reading.paths[1:])


_DOCKER = Reader(
    shows="nothing",
    flags="aqslf",
    valued="n",
    long="all quiet size latest last no-trunc format filter",
    takes_paths=False,
)


def _docker(words: Sequence[str], deep: bool) -> Reading | None:
    """docker: what runs, and what there is to run."""
    is_list = words[1:2] in (("ps",), ("images",))
    return read_by(_DOCKER, words[2:], deep) if is_list else None


_VERSIONS = {
    **dict.fromkeys(("python", "python3", "jq", "rg"), word_set("--version -V")),
    "node": word_set("--version -v"),
    **dict.fromkeys(("gcc", "g++", "clang", "make", "cmake"), word_set("--version")),
}
"""What only says which one it is; other programs first read settings of the folder."""


def _find(words: Sequence[str], deep: bool) -> Reading | None:
    """find: tests, what prints names, and readers that it hands what it finds below its folders."""
    found = find_of(words)
    if found is None or (found.commands and not deep):
        return None
    paths = [*found.starts, *found.compared]
    for _, command in found.commands:
        reading = only_reads(command, deep=False) if command[0] in _HANDED_TO else None
        if reading is None:
            return None
        paths += [path for path in reading.paths if path != HANDED]
    return Reading("text" if found.commands else "names", tuple(paths))


_HANDED_TO = word_set(
    "ls stat du file wc cat head tail nl grep egrep fgrep sed sort cut md5sum sha1sum sha256sum"
    " echo basename dirname realpath readlink"
)
"""Readers that look at what they are handed and at nothing else, whichever word of theirs it is."""

_REGEX = r"/(?:[^/\\\[\]]|\[[^/\\\[\]]+\])*/"
"""Written so that every sed finds its end in the same place."""
_LINE = rf"(?:\d+|\$|{_REGEX})"
_SED_COMMAND = (
    rf"(?:(?:{_LINE}(?:,(?:{_LINE}|\+\d+))?)?[pdq]"
    rf"|(?:\d+(?:,(?:\d+|\$))?)?s{_REGEX}[^/\\]*/[gIip0-9]*)"
)
_SED_SCRIPT = re.compile(
    rf"{_SED_COMMAND}(?:; *{_SED_COMMAND})*"
    r"|(?:\d+(?:,(?:\d+|\$))?)?s/[^/\\]*/[^/\\]*/[gIip0-9]*"
)


def _sed(words: Sequence[str], deep: bool) -> Reading | None:
    """sed: a script that prints, leaves out or replaces; any other may write and run."""
    options = [word for word in words[1:] if word.startswith("-")]
    others = [word for word in words[1:] if not word.startswith("-")]
    if any(option not in ("-n", "-E", "-r", "-s", "-u", "--quiet") for option in options):
        return None
    if not others or not _SED_SCRIPT.fullmatch(others[0]):
        return None
    return Reading("text", tuple(others[1:]))


def _date(words: Sequence[str], deep: bool) -> Reading | None:
    """date: with anything but a form it would set the clock or read a file."""
    is_form = all(word in ("-u", "-I", "-R") or word.startswith("+") for word in words[1:])
    return Reading("nothing") if is_form else None


def _cd(words: Sequence[str], deep: bool) -> Reading | None:
    """cd: to a folder that is named; without a name or with `-` it depends on the environment."""
    is_named = len(words) == 2 and words[1][:1] not in ("", "-")
    return Reading("names", tuple(words[1:])) if is_named else None


def _echo(words: Sequence[str], deep: bool) -> Reading | None:
    return Reading("nothing")


_PRINTF_FORM = re.compile(r"(?!-)([^%]|%%|%[-+ #0]*\d*(\.\d*)?[sdiuxXocf])*", re.DOTALL)


def _printf(words: Sequence[str], deep: bool) -> Reading | None:
    """printf: with an option, or by `%n`, it sets a variable of the shell, such as PATH.

    What is to be shown as a number some shells evaluate.
    """
    if len(words) < 2 or not _PRINTF_FORM.fullmatch(words[1]):
        return None
    kinds = re.findall("%[-+ #0]*[0-9]*(?:[.][0-9]*)?([a-zA-Z])", words[1].replace("%%", ""))
    pairs = zip(words[2:], itertools.cycle(kinds), strict=False)
    is_sure = all(kind in "sc" or _AMOUNT.fullmatch(word) for word, kind in pairs)
    return Reading("nothing") if is_sure else None


_AMOUNT = re.compile(r"-?\d+(\.\d+)?", re.ASCII)

_TESTS = word_set("-e -f -d -r -w -x -s -z -n -L -h = !=")
_TESTS_OF_NUMBERS = word_set("-eq -ne -lt -gt -le -ge")


def _test(words: Sequence[str], deep: bool) -> Reading | None:
    """test: other operators evaluate what they are given, and some shells what is no number."""
    rest = words[1:]
    others = [word for word in rest if word not in _TESTS and word not in _TESTS_OF_NUMBERS]
    is_counting = any(word in _TESTS_OF_NUMBERS for word in rest)
    if any(not _DIGITS.fullmatch(word) and (is_counting or word[:1] == "-") for word in others):
        return None
    return Reading("names", tuple(others))


_DIGITS = re.compile(r"-?\d+")


def _bracket(words: Sequence[str], deep: bool) -> Reading | None:
    return _test(words[:-1], deep) if words[-1] == "]" else None


_SPECIAL: dict[str, Callable[[Sequence[str], bool], Reading | None]] = {
    "git": _git,
    "jq": _jq,
    "docker": _docker,
    "find": _find,
    "cd": _cd,
    "sed": _sed,
    "date": _date,
    "echo": _echo,
    "printf": _printf,
    "test": _test,
    "[": _bracket,
}


def is_reader(name: str) -> bool:
    """Whether the options of this command are known here."""
    return name in READERS or name in _SPECIAL
