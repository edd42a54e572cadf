"""What programs that build, test and fetch may get without running or writing something else.

Law: an option that is not listed is not known, so a rule that does not write it out does not speak
for it. Listed is what changes how much is done or shown; never what names a file to be written or
read as settings, a program, a plugin, code, or another folder to work in. Two exceptions name what
such a program would read anyway, and nothing works without: the project of `tsc -p`, and the
requirements of `pip install -r`. Options of one letter are `flags` only where the program is known
to take them together; others stand alone (`single`).
"""

import re
from collections.abc import Sequence

import msgspec

from tiro.tools.given_options import is_option
from tiro.tools.reading import Reader, has_known_options

_SETS = "^[^-].*="
"""A word that sets a variable."""
_FROM_FILE = re.compile(r"^(-[^-@=][^@=]*|--[^@=]*=)?@")
"""A word, or the value in it, that names a file to take more words or a text from."""


_PACKAGE = re.compile(r"@[\w~-][\w.~-]*/[\w~-][\w.~-]*(@[\w.^~*<>=-]+)?", re.ASCII)
"""The name of a package in a scope, which is no file."""


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A program whose harmless options are known."""

    options: Reader
    behind: Reader | None = None
    """What it hands on to another program behind `--`: the options that do no harm there."""
    verbs: str = ""
    """The second words that are known, where that word decides what is done at all."""
    risky: str = ""
    """An expression; no word in which it is found is covered."""


def _program(
    *,
    flags: str = "",
    valued: str = "",
    text: str = "",
    long: str = "",
    single: str = "",
    most: int | None = None,
    behind: Reader | None = None,
    verbs: str = "",
    risky: str = "",
) -> Program:
    options = Reader(
        shows="text",
        flags=flags,
        valued=valued,
        text=text,
        long=f"{long} version help",
        single=single,
        most=most,
    )
    return Program(options=options, behind=behind, verbs=verbs, risky=risky)


def unknown_verb(program: Program, words: Sequence[str], named: int) -> str | None:
    """The word of a command that decides what is done, where it is neither known nor written out.

    `named` is the number of words that a rule writes out.
    """
    if not program.verbs or len(words) < 2 or words[1] in program.verbs.split():
        return None
    if not is_option(words[1]):
        return None if named > 1 else words[1]
    # behind options, which may or may not take a value, any word may be the one
    return next((word for word in words[max(named, 1) :] if not is_option(word)), None)


def unknown_word(program: Program, words: Sequence[str]) -> str | None:
    """The first of these words of a command that may make more of it; None where none does."""
    for word in words:
        is_package = program is _NODE and _PACKAGE.fullmatch(word)
        if (_FROM_FILE.match(word) and not is_package) or (
            program.risky and re.search(program.risky, word)
        ):
            return word
    first = words.index("--") if "--" in words else len(words)
    behind = words[first + 1 :]
    if any(is_option(word) for word in behind) and (
        program.behind is None or not has_known_options(program.behind, behind)
    ):
        return "--"
    front = [*words[:first], *(word for word in behind if not is_option(word))]
    known = has_known_options(program.options, front)
    return None if known else next((word for word in front if is_option(word)), words[-1])


_TEST_RUNNER = Reader(
    shows="text",
    flags="utv",
    long="coverage watch watchAll silent verbose bail ci updateSnapshot update runInBand run"
    " testNamePattern testPathPattern passWithNoTests onlyChanged changed grep timeout color"
    " no-color colors maxWorkers detectOpenHandles forceExit fix quiet check max-warnings noEmit",
)
"""What the scripts of a package, which are test runners and linters, may get."""

_NODE = _program(
    single="D E O P s w ws v",
    long="save-dev save-exact save-optional no-save silent production omit legacy-peer-deps"
    " no-audit no-fund json depth workspaces workspace if-present dry-run prefer-offline offline"
    " frozen-lockfile dev long parseable loglevel ignore-scripts audit-level recursive",
    behind=_TEST_RUNNER,
    verbs="install ci i add remove rm uninstall un update up upgrade test t audit outdated ls list"
    " why view info prune dedupe root ping doctor --version -v",
)
_COMPILER = _program(
    text="ODUILlW",
    single="c g g0 g1 g2 g3 ggdb w v E H s std fPIC fpic fPIE fno-exceptions fno-rtti fsanitize"
    " fstack-protector fopenmp fvisibility fno-omit-frame-pointer fdiagnostics-color fsyntax-only"
    " m32 m64 march mtune pthread pedantic pipe shared static x dumpversion dumpmachine ansi",
    risky="^-W.*,",
)
_GRADLE = _program(
    single="q i s w d a h v x m S",
    long="info quiet debug warn stacktrace full-stacktrace offline parallel no-parallel daemon"
    " no-daemon continue dry-run rerun-tasks build-cache no-build-cache configure-on-demand tests"
    " exclude-task console warning-mode refresh-dependencies all",
)
_MAVEN = _program(
    text="TP",
    single="q X e o U B N V h v ntp am amd fae ff fn nsu pl DskipTests Dtest DfailIfNoTests"
    " Dmaven.test.skip",
    long="quiet errors debug offline update-snapshots batch-mode no-transfer-progress also-make"
    " fail-fast fail-at-end fail-never projects threads show-version",
    risky=":",
)

PROGRAMS: dict[str, Program] = {
    "make": _program(
        flags="ksnqBiwrROhv",
        valued="jl",
        long="keep-going silent quiet always-make dry-run just-print question jobs print-directory"
        " no-print-directory output-sync ignore-errors load-average trace debug"
        " warn-undefined-variables",
        risky=_SETS,
    ),
    "ninja": _program(flags="vnh", valued="jkl", long="verbose quiet"),
    "cmake": _program(
        valued="j", long="build clean-first verbose parallel fresh target config", risky=_SETS
    ),
    "ctest": _program(
        single="V VV N Q R E L",
        valued="j",
        long="verbose output-on-failure parallel rerun-failed stop-on-failure",
    ),
    "rake": _program(
        flags="TqsntPAvh",
        long="tasks all quiet silent dry-run trace prereqs verbose",
        risky=_SETS,
    ),
    "ant": _program(single="q v d p S k quiet verbose debug projecthelp keep-going"),
    "just": _program(
        flags="lnqv",
        long="list dry-run quiet verbose summary yes",
        risky=f"{_SETS}|^[^-].*/",  # the folder of another justfile
    ),
    "tar": _program(
        flags="cxtvzjJakmpUf",
        long="create extract get list verbose gzip bzip2 xz zstd file strip-components exclude"
        " exclude-vcs wildcards keep-old-files no-same-owner totals auto-compress",
        risky=":",
    ),
    "curl": _program(
        flags="sSfLIkivgGN46#Vh",
        valued="m",
        text="HXAdeu",
        long="silent show-error fail fail-with-body location head insecure include verbose get"
        " request header user-agent data data-raw json max-time connect-timeout retry retry-delay"
        " retry-all-errors compressed http1.1 http2 ipv4 ipv6 no-progress-meter progress-bar"
        " referer user max-redirs no-buffer",
        risky="(?i)file:",
    ),
    "bat": _program(
        flags="pnA",
        valued="rH",
        text="l",
        long="plain number language line-range style color theme wrap",
    ),
    "pytest": _program(
        flags="vqxslh",
        text="krmn",
        long="verbose quiet exitfirst maxfail lf last-failed ff failed-first nf new-first sw"
        " stepwise tb durations durations-min collect-only co no-header no-summary show-capture"
        " capture color strict-markers strict-config runxfail disable-warnings cov no-cov"
        " cov-branch deselect ignore ignore-glob markers fixtures setup-show numprocesses dist"
        " timeout cache-show hypothesis-seed reruns",
    ),
    "tox": _program(
        flags="qvrph",
        text="ef",
        long="recreate parallel notest skip-missing-interpreters list",
        risky="^(e|exec|d|devenv|q|quickstart|le|legacy)$",
    ),
    "nox": _program(
        flags="lrRvh", text="st", long="list reuse-existing-virtualenvs sessions verbose"
    ),
    "mypy": _program(
        flags="vhVpm",
        long="strict ignore-missing-imports show-error-codes show-column-numbers pretty"
        " no-error-summary follow-imports check-untyped-defs disallow-untyped-defs"
        " warn-unused-ignores warn-return-any warn-unreachable no-incremental python-version"
        " platform exclude explicit-package-bases namespace-packages no-color-output"
        " hide-error-codes disable-error-code enable-error-code verbose show-error-context package"
        " module",
    ),
    "ruff": _program(
        flags="qsvneh",
        long="fix no-fix unsafe-fixes diff show-fixes select ignore extend-select line-length"
        " output-format target-version preview statistics quiet silent verbose check exit-zero"
        " no-cache exclude isolated show-files show-settings",
    ),
    "black": _program(
        flags="qvSCh",
        valued="l",
        text="t",
        long="check diff quiet verbose line-length target-version fast safe",
    ),
    "isort": _program(single="c d q v", long="check check-only diff profile quiet verbose"),
    "flake8": _program(
        flags="qv",
        valued="j",
        long="select ignore extend-ignore max-line-length max-complexity count statistics"
        " show-source exclude quiet",
    ),
    "pylint": _program(
        flags="Eh", valued="jrd", long="disable enable errors-only score reports jobs"
    ),
    "eslint": _program(
        flags="hv",
        long="fix fix-dry-run fix-type ext quiet max-warnings no-inline-config color no-color"
        " report-unused-disable-directives cache no-error-on-unmatched-pattern no-eslintrc"
        " no-ignore debug",
    ),
    "prettier": _program(
        flags="lcw",
        long="check write list-different no-config no-color log-level no-editorconfig"
        " ignore-unknown single-quote tab-width print-width",
    ),
    "tsc": _program(
        single="w h v p noEmit watch pretty strict skipLibCheck project incremental version help",
        long="noEmit watch pretty strict skipLibCheck project incremental",
    ),
    "jest": _program(
        flags="iouvwt",
        long="coverage runInBand testNamePattern testPathPattern verbose silent bail ci"
        " passWithNoTests onlyChanged color colors maxWorkers updateSnapshot listTests"
        " detectOpenHandles forceExit watch watchAll",
    ),
    "vitest": _program(
        flags="uvt", long="coverage silent bail changed testNamePattern update run watch"
    ),
    "mocha": _program(flags="bwvgt", long="bail grep timeout exit color no-color dry-run"),
    "npm": _NODE,
    "pnpm": _NODE,
    "yarn": _NODE,
    "cargo": _program(
        flags="rqvVhp",
        valued="j",
        text="F",
        long="release all-targets all-features features no-default-features workspace package all"
        " lib bins bin tests test examples example benches doc no-deps no-run no-fail-fast quiet"
        " verbose jobs locked offline frozen color message-format keep-going profile check"
        " allow-dirty depth edges invert dev dry-run fix",
        behind=Reader(
            shows="text",
            flags="q",
            text="DWA",
            long="nocapture test-threads exact ignored include-ignored show-output list skip quiet"
            " format color check",
        ),
        verbs="build b check c test t doc d fmt clippy clean tree metadata update search bench"
        " fetch add remove fix help version --version -V",
    ),
    "rustc": _program(
        flags="gOvVh", long="edition crate-name crate-type test explain verbose error-format"
    ),
    "go": _program(
        single="v race short run count timeout cover json failfast parallel cpu bench benchmem"
        " list n x a tags trimpath mod m u all skip shuffle s d",
        verbs="build test vet fmt mod list version doc get clean help",
    ),
    "gcc": _COMPILER,
    "gradle": _GRADLE,
    "gradlew": _GRADLE,
    "mvn": _MAVEN,
    "mvnw": _MAVEN,
    "javac": _program(single="g nowarn verbose Xlint deprecation Werror version"),
    "dotnet": _program(
        single="q v c h f",
        long="configuration no-restore no-build verbosity nologo framework filter list-tests",
        verbs="build test restore clean format list --version --info",
        risky=r"^/\w+(:|$)",
    ),
    "pip": _program(
        flags="qvUVhre",
        long="quiet verbose upgrade user requirement no-deps pre outdated format editable dry-run"
        " yes",
        verbs="install uninstall list show freeze check index help --version -V",
    ),
    "phpunit": _program(
        flags="hv", long="filter testdox verbose debug stop-on-failure colors group"
    ),
    "rspec": _program(flags="cbhet", long="example tag color no-color fail-fast backtrace dry-run"),
}
"""By their names; `_SAME_AS` has others."""

_SAME_AS = {
    **dict.fromkeys(("g++", "cc", "c++", "clang", "clang++"), "gcc"),
    "gmake": "make",
    "py.test": "pytest",
    **dict.fromkeys(("bsdtar", "gtar"), "tar"),
}
_DRESS = re.compile(r"\.(exe|com|cmd|bat|__main__)$", re.IGNORECASE)
_VERSION = re.compile(r"-?[\d.]+$")

_BOTH_WAYS = "quiet verbose dry-run"

GIT_WRITERS: dict[str, Program] = {
    "add": _program(
        flags="vnfuAN", long=f"{_BOTH_WAYS} force update all no-all intent-to-add refresh"
    ),
    "am": _program(flags="q3ks", long="abort continue skip quit 3way quiet keep signoff"),
    "apply": _program(
        flags="vR3",
        valued="pC",
        long="check stat numstat summary reverse cached index 3way verbose",
    ),
    "branch": _program(
        flags="avrdDmMcCfqtu",
        long="all list remotes show-current verbose delete move copy force set-upstream-to"
        " unset-upstream track no-track contains no-contains merged no-merged sort column",
    ),
    "checkout": _program(
        flags="qfbBtlm",
        long="quiet force detach track no-track ours theirs merge orphan progress",
    ),
    "cherry-pick": _program(
        flags="xns",
        valued="m",
        long="no-commit abort continue skip quit mainline signoff allow-empty",
    ),
    "clean": _program(flags="fdnq", long="force dry-run quiet"),
    "clone": _program(
        flags="qvnlbo",
        long="quiet verbose depth single-branch no-single-branch no-checkout bare mirror"
        " shallow-since no-tags branch progress origin",
    ),
    "commit": _program(
        flags="aqsvnC",
        text="m",
        long="all message quiet signoff verbose no-verify no-edit amend allow-empty"
        " allow-empty-message author date reset-author dry-run short branch fixup squash"
        " reuse-message",
    ),
    "fetch": _program(
        flags="apqtvfn",
        valued="j",
        long=f"{_BOTH_WAYS} all append prune prune-tags tags no-tags force depth unshallow"
        " shallow-since progress jobs",
    ),
    "init": _program(flags="qb", long="quiet bare initial-branch"),
    "merge": _program(
        flags="qvn",
        text="m",
        long="ff no-ff ff-only squash no-squash commit no-commit abort continue quit no-edit stat"
        " no-stat quiet verbose message allow-unrelated-histories autostash signoff",
    ),
    "mv": _program(flags="fknv", long=f"{_BOTH_WAYS} force"),
    "pull": _program(
        flags="qvrpnt",
        long="rebase no-rebase ff-only ff no-ff prune tags quiet verbose autostash no-edit all"
        " depth",
    ),
    "push": _program(
        flags="qvnfud",
        long=f"{_BOTH_WAYS} set-upstream force force-with-lease tags follow-tags delete all prune"
        " atomic no-verify porcelain progress mirror",
    ),
    "rebase": _program(
        flags="qvn",
        long="onto abort continue skip quit autostash no-autostash keep-base quiet verbose stat"
        " root update-refs rebase-merges autosquash no-autosquash",
    ),
    "reset": _program(flags="qN", long="hard soft mixed keep merge quiet"),
    "restore": _program(flags="qSWs", long="staged worktree source quiet ours theirs"),
    "revert": _program(
        flags="n", valued="m", long="no-commit no-edit abort continue skip quit mainline"
    ),
    "rm": _program(flags="rfnq", long="cached force dry-run quiet ignore-unmatch"),
    "stash": _program(
        flags="uakqS",
        text="m",
        long="include-untracked all keep-index quiet message staged index stat",
    ),
    "switch": _program(
        flags="cCqfdtm",
        long="create force-create detach quiet force discard-changes track no-track orphan guess"
        " no-guess merge",
    ),
    "tag": _program(
        flags="adfl",
        valued="n",
        text="m",
        long="annotate delete force list message contains points-at merged no-merged sort",
    ),
    "remote": _program(flags="vfn", long="verbose all prune delete add dry-run"),
    "worktree": _program(
        flags="fdbB", long="force detach checkout no-checkout porcelain verbose dry-run lock"
    ),
}
"""Commands of git that change the repository, and that a rule "git" may speak for."""

UNKNOWN = _program()
"""A program of which no option is known."""


def program_of(name: str) -> Program | None:
    """What is known of a program, by the base name of its command."""
    return PROGRAMS.get(_SAME_AS.get(name, name))


def unnumbered(name: str) -> str:
    """The name of a program without its version: `gcc-12` is `gcc`, `pip3.11` is `pip`.

    Nor does it keep the ending by which Windows or Python starts it: `rm.exe`, `pip.__main__`.
    """
    bare = _DRESS.sub("", name)
    return _VERSION.sub("", bare) or bare or name
