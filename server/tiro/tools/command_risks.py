"""What a command may do beyond its name: run another one, or write where nobody looks.

A rule that names the beginning of a command speaks for the rest of it only where nothing of that
kind can be in the rest.
"""

import posixpath
import re
from collections.abc import Sequence

from tiro.tools.command_line import word_set
from tiro.tools.readers import GIT_READERS, is_reader, only_reads

RUNS = "{name!r} runs what it is given"
OPTION = "{word!r} may run or write something else"
UNKNOWN_OPTIONS = "{name!r} has options here that are not known to only read"
NO_SCRIPT = "{name!r} runs code that the rule does not name"

RUNNERS = word_set(
    # what runs the words that follow, or a text among them
    "env xargs sudo doas su runuser pkexec nohup nice ionice chrt taskset time timeout watch setsid"
    " stdbuf script strace ltrace gdb lldb unshare nsenter chroot flock parallel setpriv capsh"
    " proot fakeroot chpst softlimit unbuffer dbus-run-session systemd-run rlwrap entr fd fdfind"
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
    " break continue"
)
"""Commands of which no beginning says what they do."""

LANGUAGES = word_set("python perl ruby node nodejs php lua luajit deno bun Rscript julia")
"""They run a script, a module, or a text; only a rule that names the script speaks for it."""

_MODULE_OPTIONS = frozenset({"-m"})
_TEXT_OPTIONS = re.compile(r"-[a-zA-Z]*[ceEprRiIx]|--(eval|print|exec|require|import|run)\b.*|-")

RISKY_STARTS: dict[str, tuple[str, ...]] = {
    "tar": (
        *("--to-c", "--use-", "--checkpoint", "--rsh", "--info", "--new-vol", "--rmt", "--abs"),
        *("-I", "-F", "-P", "-C", "--dir", "--files-from", "-T"),
    ),
    "make": ("--ev", "--fi", "--makef", "--dir", "--incl", "-f", "-C", "-I", "-E", "-e", "--env"),
    "npm": ("--script", "--prefix", "--node-o", "--shell", "--editor", "--git", "--user", "--glob"),
    "cargo": ("--conf", "--manifest", "--target-dir", "-Z"),
    "go": ("-exec", "-toolexec", "-vettool", "-o", "-C", "-modfile", "-overlay", "-ldflags"),
    "curl": (
        *("--out", "--rem", "--conf", "--upl", "--cook", "--dump", "--trace", "--libcurl", "--eta"),
        *("--create", "--stderr", "--hsts", "--alt", "--data-b", "--form"),
    ),
    "gcc": ("-wrapper", "-fplugin", "-specs", "-B", "@", "--spec"),
    "jq": ("-f", "--from", "-L", "--rawf", "--slurpf", "--arg"),
    "bat": ("--pager", "--config"),
    "xxd": ("-r",),
}
"""Options by how they begin, as a program may take a shorter form of a longer one."""

RISKY_LETTERS = {"curl": "oOKTcDJ", "tar": "IFPCTO", "make": "fCIEe", "jq": "fL"}
"""Options of one letter, which may stand among others in one word."""

_SAME_AS = {"gmake": "make", "g++": "gcc", "cc": "gcc", "c++": "gcc", "clang": "gcc", "pnpm": "npm"}

_GIT_COMMANDS = word_set(
    "add am apply branch checkout cherry-pick clean clone commit fetch init merge mv pull"
    " push rebase reset restore revert rm stash switch tag remote worktree"
)
"""Commands of git that a rule "git" may speak for; another name may be an alias of anything."""

_GIT_RUNNERS = word_set(
    "bisect difftool mergetool submodule filter-branch config help instaweb daemon send-"
    " email gui gitk citool hook archive maintenance credential svn p4 cvsserver upload-"
    " pack receive-pack remote-ext remote-fd fast-import bundle var"
)
_GIT_STARTS = (
    *("--exec", "--upload", "--receive", "--out", "--ext", "--textc", "--open", "--tool", "--conf"),
    *("--temp", "--git-d", "--work-t", "--sep", "--int", "--strat", "--edit", "--pag", "--file"),
    *("--pathspec-from", "--ref", "--super", "--names"),
    *("-c", "-x", "-O", "-i", "-I", "-s", "-X"),
)


_RUN_WORDS = word_set("run exec x dlx shell start")
"""Second words with which a tool runs what stands behind them."""

_LONG_RUNNERS = (
    *("--command", "--exec", "--run", "--eval", "--pager", "--editor", "--pre", "--shell"),
    *("--to-command", "--hostname-bin", "--use-compress", "--rsh", "--askpass"),
)


def risk_of(words: Sequence[str], named: int) -> str | None:
    """Why a rule that names the first words of a command does not speak for all of it, or None.

    `named` is the number of words that stand in the rule as they are, without a `*` for them.
    """
    name = posixpath.basename(words[0])
    if name in RUNNERS:
        return RUNS.format(name=name)
    language = re.sub(r"[\d.]+$", "", name)
    if language in LANGUAGES or language == "pypy":
        return _language_risk(name, words, named)
    if name == "git":
        return _git_risk(words, named)
    if is_reader(name):
        is_known = only_reads((name, *words[1:]), deep=True) is not None
        return None if is_known else UNKNOWN_OPTIONS.format(name=name)
    if len(words) > 2 and words[1] in _RUN_WORDS and named < 3:
        return NO_SCRIPT.format(name=f"{name} {words[1]}")
    return _option_risk(_SAME_AS.get(name, name), words)


def _language_risk(name: str, words: Sequence[str], named: int) -> str | None:
    for at, word in enumerate(words[1:], 1):
        if word in _MODULE_OPTIONS:
            return None if named > at + 1 else NO_SCRIPT.format(name=name)
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
    if name not in _GIT_COMMANDS and not is_written_out:
        return RUNS.format(name=f"git {name}")
    if name in GIT_READERS and name not in _GIT_COMMANDS:
        return UNKNOWN_OPTIONS.format(name=f"git {name}")
    for word in words[2:]:
        letters = word[1:] if re.fullmatch(r"-[a-zA-Z]+", word) else ""
        if "::" in word or _is_one_of(word, _GIT_STARTS):
            return OPTION.format(word=word)
        if name in ("clone", "ls-remote", "rebase") and set(letters) & set("ucx"):
            return OPTION.format(word=word)
    return None


def _option_risk(name: str, words: Sequence[str]) -> str | None:
    starts, letters = RISKY_STARTS.get(name, ()) + _LONG_RUNNERS, RISKY_LETTERS.get(name, "")
    for at, word in enumerate(words[1:], 1):
        short = word[1:] if re.fullmatch(r"-[a-zA-Z]+", word) else ""
        if name == "tar" and at == 1 and not word.startswith("-"):
            short = word
        if _is_one_of(word, starts) or set(short) & set(letters):
            return OPTION.format(word=word)
        if name == "make" and "=" in word:
            return OPTION.format(word=word)
        if name == "tar" and ":" in word:
            return OPTION.format(word=word)
    return None


def _is_one_of(word: str, starts: Sequence[str]) -> bool:
    """Whether a word is such an option, written out or shortened."""
    option = word.partition("=")[0]
    is_long = option.startswith("--") and len(option) > len("--")
    return any(word.startswith(start) or (is_long and start.startswith(option)) for start in starts)
