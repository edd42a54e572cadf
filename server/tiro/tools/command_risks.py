"""What a command may do beyond its name: run another one, or write where nobody looks.

A rule covers what it writes out. Beyond that it covers options that are known to be harmless, and
words that are none; paths among them are looked at by themselves. A program that is not known here
is vouched for by whoever names it, but for options that run something in whatever has them.
"""

import posixpath
import re
from collections.abc import Sequence

from tiro.tools.command_line import word_set
from tiro.tools.find_words import find_of
from tiro.tools.given_options import is_option
from tiro.tools.known_options import (
    GIT_WRITERS,
    PROGRAMS,
    UNKNOWN,
    program_of,
    unknown_verb,
    unknown_word,
    unnumbered,
)
from tiro.tools.readers import GIT_READERS, is_reader, only_reads

RUNS = "{name!r} runs what it is given"
OPTION = "{word!r} may run or write something else"
UNKNOWN_OPTIONS = "{name!r} has options here that are not known to only read"
NOT_KNOWN = "{word!r} is not known to leave {name!r} at what it is for"
NO_SCRIPT = "{name!r} runs code that the rule does not name"

RUNNERS = word_set(
    # what runs the words that follow, or a text among them
    "env xargs sudo doas su runuser pkexec nohup nice ionice chrt taskset time timeout watch setsid"
    " stdbuf script strace ltrace gdb lldb unshare nsenter chroot flock parallel setpriv capsh"
    " proot fakeroot chpst softlimit unbuffer dbus-run-session systemd-run rlwrap entr fd fdfind"
    " prlimit setarch linux32 linux64 i386 x86_64 uname26 choom numactl runcon sg cgexec firejail"
    " bwrap valgrind perf eatmydata faketime torsocks proxychains proxychains4 direnv doppler"
    " cross-env cross-env-shell hyperfine tini dumb-init watchexec concurrently"
    " chronic ifne dotenv cpulimit caffeinate catchsegv run-parts"
    " xvfb-run su-exec gosu setuidgid s6-setuidgid daemonize start-stop-daemon dtach abduco"
    " mpirun mpiexec srun tsocks heaptrack rr multitime uftrace winpty wine wine64 ssh-agent"
    " dbus-launch envdir envchain envconsul arch xcrun ld-linux-x86-64.so ld-linux-aarch64.so"
    # modules of Python that run another one
    " runpy pdb cProfile cprofile profile trace timeit"
    # shells, and whatever holds one
    " sh bash dash zsh ksh mksh fish csh tcsh ash busybox toybox rbash pwsh powershell"
    " ssh scp sftp rsync telnet socat nc ncat netcat expect screen tmux at batch crontab"
    " docker podman nerdctl kubectl npx bunx pnpx uvx pipx corepack"
    # languages of one line, editors, pagers and consoles that can start a program
    " awk gawk mawk nawk m4 dc ed ex vi vim nvim view emacs emacsclient nano pico less more most"
    " man info sqlite3 psql mysql mariadb redis-cli mongosh gnuplot octave osascript tclsh wish"
    " ghci jshell irb iex erl zip wget"
    # words of the shell that change what the words behind them mean
    " eval exec source . command builtin trap alias unalias hash enable set unset export readonly"
    " declare typeset local let read readarray mapfile getopts shift shopt bind complete compgen"
    " compopt pushd popd chdir dirs umask ulimit fc history coproc wait suspend exit return"
    " break continue jobs"
)
"""Commands of which no beginning says what they do."""

LANGUAGES = word_set(
    "python pypy py pythonw perl ruby node nodejs java php lua luajit deno bun Rscript julia tsx"
    " ts-node elixir ghc runghc runhaskell ipython R groovy guile"
)
"""They run a script, a module, or a text; only a rule that names the script speaks for it."""

_PYTHONS = word_set("python pypy py pythonw ipython")
_MODULE_OPTION = re.compile("-[a-zA-Z]*m")
_GLUED_MODULE = re.compile(r"-([bBdEhiIOPqRsStuvVx]*)m([A-Za-z_][\w.]*)?")
"""Python's `-m` behind options that take no value: `-Ximporttime` is none."""
_TEXT_OPTIONS = re.compile(r"-[a-zA-Z]*[ceEprRiIx]|--(eval|print|exec|require|import|run)\b.*|-")

_GIT_RUNNERS = word_set(
    "bisect difftool mergetool submodule filter-branch config help instaweb daemon"
    " send-email send-pack gui gitk citool hook archive maintenance credential svn p4 cvsserver"
    " upload-pack receive-pack remote-ext remote-fd fast-import bundle var"
)
_GIT_OTHERS = word_set(
    "--version annotate blame cat-file check-attr check-ignore check-mailmap check-ref-format"
    " cherry commit-graph commit-tree count-objects diff-files diff-index diff-tree fast-export"
    " for-each-ref format-patch fsck gc get-tar-commit-id grep hash-object index-pack"
    " interpret-trailers ls-remote mailinfo merge-base merge-file merge-tree mktag mktree name-rev"
    " notes pack-objects pack-redundant pack-refs patch-id prune prune-packed range-diff read-tree"
    " reflog repack replace rerere rev-list shortlog show-branch show-index show-ref"
    " sparse-checkout stripspace symbolic-ref unpack-objects update-index update-ref"
    " verify-commit verify-pack verify-tag whatchanged write-tree"
)
"""What else of git is its own: no alias can have such a name."""
_RUN_WORDS = word_set("run exec x dlx shell start")
"""Words with which a tool runs what stands behind them."""
_MORE_RUN_WORDS = {"npm": word_set("explore"), "cargo": word_set("watch")}
_RUNS_ANYTHING = word_set("pnpm yarn")
"""Tools that take a word which they do not know for a program to run."""
_WORKSPACE = "workspace"
_GROUPS = word_set("tool env workspaces foreach --") | {_WORKSPACE}
"""Words behind which stands what is done, or of the last one behind another word."""

_OTHERS_RUNNERS = (_RUN_WORDS - {"start", "shell"}).union(*_MORE_RUN_WORDS.values())
"""Those behind which the program is not one of the tool's own."""

SCRIPT_RUNNERS = word_set("npm pnpm")
"""Tools whose `run` takes the name of a script that the package itself lists, and nothing else."""

TEST_RUNNERS = word_set("vitest tox")
"""Tools whose `run` says no more than their name."""

_LONG_RUNNERS = (
    *("--command", "--exec", "--run", "--eval", "--pager", "--editor", "--pre", "--shell"),
    *("--to-command", "--hostname-bin", "--use-compress", "--rsh", "--askpass", "--filter"),
    *("--strip-program", "--plugin", "--load-plugins", "--init-hook", "--require", "--loader"),
    *("--config", "--rcfile", "--preload"),
)


def risk_of(words: Sequence[str], named: int) -> str | None:
    """Why a rule that names the first words of a command does not speak for all of it, or None.

    `named` is the number of words that stand in the rule as they are, without a `*` for them.
    """
    name = _name_of(words[0])
    if name == "npx" and named > 1 and not is_option(words[1]):
        return risk_of(words[1:], named - 1)
    if name in RUNNERS:
        is_reading = only_reads((name, *words[1:]), deep=False) is not None
        return None if is_reading else RUNS.format(name=name)
    if name in LANGUAGES:
        return _language_risk(name, words, named)
    if name == "git":
        return _git_risk(words, named)
    if is_reader(name):
        is_known = only_reads((name, *words[1:]), deep=True) is not None
        return None if is_known else UNKNOWN_OPTIONS.format(name=name)
    known, at = program_of(name), _run_word(name, words)
    is_script = name in TEST_RUNNERS or (name in SCRIPT_RUNNERS and named > 1 and at == 1)
    if 0 < at < len(words) - 1 and not is_script:
        if named < at + 2:
            return NO_SCRIPT.format(name=f"{name} {words[at]}")
        if known is None:
            return risk_of(words[at + 1 :], named - at - 1)
    verb = unknown_verb(known, words, named) if known is not None else None
    if verb is not None:
        return NOT_KNOWN.format(word=verb, name=name)
    return _option_risk(name, words, max(named, 1))


def hides_others(words: Sequence[str]) -> bool:
    """Whether a command may run others that do not stand at its beginning, whoever allowed it."""
    name = _name_of(words[0])
    if name == "git":
        return _git_risk(words, 2) is not None or not _is_git_command(words[1:2])
    is_risky = not is_reader(name) and _option_risk(name, words, 1) is not None
    return is_risky or _runs_others(name, words) or risk_of(words, len(words)) is not None


def _runs_others(name: str, words: Sequence[str]) -> bool:
    """Whether a tool runs a program by its name here, as in `uv run x` and `npm exec x`."""
    at = _run_word(name, words)
    is_own = program_of(name) is not None and words[at] == "run"
    return 0 < at < len(words) - 1 and words[at] in _OTHERS_RUNNERS and not is_own


def is_known(words: Sequence[str]) -> bool:
    """Whether it is known what a command makes of its words."""
    name = _name_of(words[0])
    known = program_of(name)
    if known is None or unknown_verb(known, words, 1) is None:
        return name == "git" or is_reader(name) or known is not None
    return False


def beginnings(words: Sequence[str]) -> list[int]:
    """Where a command begins among these words: its own, and those that it is known to run."""
    name = _name_of(words[0])
    if name in LANGUAGES:
        at = next((at + 1 for at, word in enumerate(words) if _MODULE_OPTION.fullmatch(word)), 0)
    else:
        at = 1 if name == "npx" else _run_word(name, words) + 1
    found = [0, *(_unknown_verbs(name, words) if name in _RUNS_ANYTHING else ())]
    if name == "find":
        handed = find_of(words)
        return found + ([place for place, _ in handed.commands] if handed else [])
    if not 0 < at < len(words) or (at == 1 and name != "npx"):
        return found
    if words[at].startswith("-"):
        return sorted({*found, *range(at, len(words))})
    return sorted({*found, *(at + behind for behind in beginnings(words[at:]))})


def spelt_out(words: Sequence[str]) -> tuple[str, ...]:
    """The words with Python's `-m` and a module each in a word of its own: `-Bmpip`."""
    found: list[str] = []
    is_python = False
    for word in words:
        glued = _GLUED_MODULE.fullmatch(word) if is_python else None
        apart = (f"-{glued[1]}" if glued[1] else "", "-m", glued[2]) if glued else (word,)
        found += filter(None, apart)
        is_python = is_python or _name_of(word) in _PYTHONS
    return tuple(found)


def _name_of(command: str) -> str:
    """By which name the tables here know a command, whatever its folder and version."""
    name = posixpath.basename(command)
    is_known = name in RUNNERS or is_reader(name) or program_of(name) is not None
    return name if is_known else unnumbered(name)


def _run_word(name: str, words: Sequence[str]) -> int:
    """Where the word stands that runs those behind it, or 0."""
    runs = _RUN_WORDS | _MORE_RUN_WORDS.get(name, frozenset())
    return next((at for at in _verb_places(name, words) if words[at] in runs), 0)


def _verb_places(name: str, words: Sequence[str]) -> range:
    """Where the word may stand that says what is done.

    It is the first one that is no option and cannot be the value of one; of a program that is not
    known, any word behind an option; and the second one where no such word decides.
    """
    known = program_of(name)
    if known is None and is_option(words[1] if len(words) > 1 else ""):
        return range(1, len(words))
    if known is not None and not known.verbs:
        return range(1, min(2, len(words)))
    sure = (at for at in range(1, len(words)) if not _may_precede_verb(words, at))
    return range(1, next(sure, len(words) - 1) + 1)


def _may_precede_verb(words: Sequence[str], at: int) -> bool:
    word, before = words[at], words[at - 1]
    return is_option(word) or word in _GROUPS or is_option(before) or before == _WORKSPACE


def _unknown_verbs(name: str, words: Sequence[str]) -> list[int]:
    """Where a word stands that may say what is done, and that the program does not know."""
    known = program_of(name)
    verbs = known.verbs.split() if known else []
    places = _verb_places(name, words)
    return [at for at in places if not is_option(words[at]) and words[at] not in verbs]


def _language_risk(name: str, words: Sequence[str], named: int) -> str | None:
    for at, word in enumerate(words[1:], 1):
        glued = _GLUED_MODULE.fullmatch(word) if name in _PYTHONS else None
        if glued and glued[2]:
            is_named = named > at
            inner = (glued[2], *words[at + 1 :])
            return risk_of(inner, named - at) if is_named else NO_SCRIPT.format(name=name)
        if _MODULE_OPTION.fullmatch(word):
            is_named = named > at + 1
            return (
                risk_of(words[at + 1 :], named - at - 1)
                if is_named
                else NO_SCRIPT.format(name=name)
            )
        if _TEXT_OPTIONS.fullmatch(word):
            return OPTION.format(word=word)
        if not word.startswith("-"):
            return None if named > at else NO_SCRIPT.format(name=name)
    is_question = len(words) == 2 and words[1] in ("--version", "-V", "-v", "--help")
    return None if is_question else NO_SCRIPT.format(name=name)


def _git_risk(words: Sequence[str], named: int) -> str | None:
    name = words[1] if len(words) > 1 else ""
    if name in ("", "--version"):
        return None
    if name.startswith("-"):
        return OPTION.format(word=name)
    if name in GIT_READERS and only_reads(("git", *words[1:]), deep=True) is not None:
        return None
    is_written_out = named > 1 and name not in _GIT_RUNNERS
    if name not in GIT_WRITERS and not is_written_out:
        return RUNS.format(name=f"git {name}")
    if name in GIT_READERS and name not in GIT_WRITERS:
        return UNKNOWN_OPTIONS.format(name=f"git {name}")
    if any("::" in word for word in words):
        return RUNS.format(name="::")
    word = unknown_word(GIT_WRITERS.get(name, UNKNOWN), words[max(named, 2) :])
    return None if word is None else NOT_KNOWN.format(word=word, name=f"git {name}")


def _is_git_command(words: Sequence[str]) -> bool:
    """Whether the first of these words of git is none that a setting makes a command."""
    return not words or words[0] in _GIT_OTHERS or words[0] in {*GIT_READERS, *GIT_WRITERS}


def _unplain_url(words: Sequence[str]) -> str | None:
    """The first word that curl may take for an address other than one of the web, or None."""
    is_value = False
    for word in words[1:]:
        if not is_value and not is_option(word) and not _WEB_URL.fullmatch(word):
            return word
        is_value = not is_value and _CURL_VALUED.fullmatch(word) is not None
    return None


_WEB_URL = re.compile(
    r"(https?://|(localhost|127\.0\.0\.1)(?=[:/]|$)(:\d+(?=/|$))?)[^\[\]{}]*", re.IGNORECASE
)
_CURL_VALUED = re.compile(
    r"-[A-Za-z0-9]*?[mHXAdeu]|--(request|header|user-agent|data|data-raw|json|max-time"
    r"|connect-timeout|retry|retry-delay|referer|user|max-redirs)"
)
"""Options of curl that take the next word for their value."""


def _option_risk(name: str, words: Sequence[str], named: int) -> str | None:
    """What the words of a command behind those that are named may make of it, or None."""
    known = program_of(name)
    is_counted = known is not None and known.options.most is not None
    rest = list(words[1:] if is_counted else words[named:])
    if known is None:
        word = next((word for word in rest if _is_one_of(word, _LONG_RUNNERS)), None)
        return None if word is None else OPTION.format(word=word)
    if known is PROGRAMS["tar"] and rest and named == 1 and not rest[0].startswith("-"):
        rest[0] = f"-{rest[0]}"  # each of these letters takes its value from the words behind
    word = unknown_word(known, rest) or (_unplain_url(words) if name == "curl" else None)
    return None if word is None else NOT_KNOWN.format(word=word, name=name)


def _is_one_of(word: str, starts: Sequence[str]) -> bool:
    """Whether a word is such an option, written out or shortened."""
    option = word.partition("=")[0]
    is_long = option.startswith("--") and len(option) > len("--")
    return any(word.startswith(start) or (is_long and start.startswith(option)) for start in starts)
