"""What programs that build, test and fetch may get without running or writing something else.

Law: an option that is not listed is not known, so a rule that does not write it out does not speak
for it. Listed is what changes how much is done or shown; never what names a file to be written or
read as settings, a program, a plugin, code, or another folder to work in.
"""

import re
from collections.abc import Sequence

import msgspec

from tiro.tools.readers import Reader, has_known_options

_DIGITS = "0123456789"
_SETS = "^[^-].*="
"""A word that sets a variable."""


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A program whose harmless options are known."""

    options: Reader
    verbs: str = ""
    """The second words that are known, where that word decides what is done at all."""
    risky: str = ""
    """An expression; no word in which it is found is covered."""


def _program(
    flags: str = "",
    valued: str = "",
    long: str = "",
    single: str = "",
    *,
    verbs: str = "",
    risky: str = "",
    most: int | None = None,
) -> Program:
    options = Reader(
        shows="text",
        flags=flags,
        valued=valued,
        long=f"{long} version help",
        single=single,
        most=most,
    )
    return Program(options=options, verbs=verbs, risky=risky)


def has_known_verb(program: Program, words: Sequence[str]) -> bool:
    """Whether the second word of a command, where it decides what is done, is a known one."""
    return not program.verbs or len(words) < 2 or words[1] in program.verbs.split()


def unknown_word(program: Program, words: Sequence[str]) -> str | None:
    """The first of these words of a command that may make more of it; None where none does."""
    behind = words[words.index("--") + 1 :] if "--" in words else ()
    for word in words:
        if word.startswith("@") or (program.risky and re.search(program.risky, word)):
            return word
    if any(word.startswith("-") for word in behind):
        return "--"
    known = has_known_options(program.options, words)
    return None if known else next((word for word in words if word.startswith("-")), words[-1])


_NODE = _program(
    "DEOPs",
    "w",
    "save-dev save-exact save-optional no-save silent production omit legacy-peer-deps no-audit"
    " no-fund json depth workspaces workspace if-present dry-run prefer-offline offline"
    " frozen-lockfile dev long parseable loglevel ignore-scripts audit-level recursive",
    verbs="install ci i add remove rm uninstall un update up upgrade test t audit outdated ls list"
    " why view info prune dedupe root ping doctor --version -v",
)
_COMPILER = _program(
    "cgwvEHs",
    "ODUILlxW",
    single="std fPIC fpic fPIE fno-exceptions fno-rtti fsanitize fstack-protector fopenmp"
    " fvisibility"
    " fno-omit-frame-pointer fdiagnostics-color fsyntax-only m32 m64 march mtune pthread pedantic"
    " pipe shared static",
    risky=r"^-W.*,|^-W[lap]|^-x.",
)
_GRADLE = _program(
    "qiswdahv",
    "x",
    "info quiet debug warn stacktrace full-stacktrace offline parallel no-parallel daemon no-daemon"
    " continue dry-run rerun-tasks build-cache no-build-cache configure-on-demand tests"
    " exclude-task"
    " console warning-mode refresh-dependencies all",
)
_MAVEN = _program(
    "qXeoUBNVhv",
    "TP",
    "quiet errors debug offline update-snapshots batch-mode no-transfer-progress also-make"
    " fail-fast"
    " fail-at-end fail-never projects threads show-version",
    "ntp am amd fae ff fn nsu pl DskipTests Dtest DfailIfNoTests Dmaven.test.skip",
    risky=":",
)

PROGRAMS: dict[str, Program] = {
    "make": _program(
        f"ksnqBiwrRjlOhv{_DIGITS}",
        "",
        "keep-going silent quiet always-make dry-run just-print question jobs print-directory"
        " no-print-directory output-sync ignore-errors load-average trace debug"
        " warn-undefined-variables",
        risky=_SETS,
    ),
    "ninja": _program("vnh", "jkl", "verbose quiet"),
    "cmake": _program("", "", "build clean-first verbose parallel fresh", risky=_SETS),
    "ctest": _program("VNQ", "RELj", "verbose output-on-failure parallel rerun-failed"),
    "rake": _program(
        "TqsntPAvh", "", "tasks all quiet silent dry-run trace prereqs verbose", risky=_SETS
    ),
    "ant": _program("qvdpSk", "", "", "quiet verbose debug projecthelp p k keep-going"),
    "just": _program("lnqv", "", "list dry-run quiet verbose summary yes", risky=_SETS),
    "tar": _program(
        "cxtvzjJakmpU",
        "f",
        "create extract get list verbose gzip bzip2 xz zstd file strip-components exclude"
        " exclude-vcs wildcards keep-old-files no-same-owner totals auto-compress",
        risky=":",
    ),
    "curl": _program(
        "sSfLIkivgGN46#Vh",
        "HXAdmeu",
        "silent show-error fail fail-with-body location head insecure include verbose get request"
        " header user-agent data data-raw json max-time connect-timeout retry retry-delay"
        " retry-all-errors compressed http1.1 http2 ipv4 ipv6 no-progress-meter progress-bar"
        " referer"
        " user max-redirs no-buffer",
        risky=r"(?i)file:|[\[{].*://",
    ),
    "jq": _program(
        "rcnesSajCMR",
        "",
        "raw-output compact-output null-input exit-status slurp sort-keys ascii-output join-output"
        " color-output monochrome-output raw-input tab indent arg argjson args jsonargs",
    ),
    "bat": _program("pnA", "lrHm", "plain number language line-range style color theme wrap"),
    "xxd": _program("abeipuC", "cglso", most=1),
    "pytest": _program(
        "vqxslh",
        "krmn",
        "verbose quiet exitfirst maxfail lf last-failed ff failed-first nf new-first sw stepwise tb"
        " durations durations-min collect-only co no-header no-summary show-capture capture color"
        " strict-markers strict-config runxfail disable-warnings cov no-cov cov-branch deselect"
        " ignore ignore-glob markers fixtures setup-show numprocesses dist timeout cache-show"
        " hypothesis-seed",
    ),
    "tox": _program("qvrph", "ef", "recreate parallel notest skip-missing-interpreters list"),
    "nox": _program("lrRvh", "st", "list reuse-existing-virtualenvs sessions verbose"),
    "mypy": _program(
        "vhV",
        "pm",
        "strict ignore-missing-imports show-error-codes show-column-numbers pretty no-error-summary"
        " follow-imports check-untyped-defs disallow-untyped-defs warn-unused-ignores"
        " warn-return-any no-incremental python-version platform exclude explicit-package-bases"
        " namespace-packages no-color-output hide-error-codes disable-error-code enable-error-code"
        " verbose show-error-context package module",
    ),
    "ruff": _program(
        "qsvneh",
        "",
        "fix no-fix unsafe-fixes diff show-fixes select ignore extend-select line-length"
        " output-format target-version preview statistics quiet silent verbose check exit-zero"
        " no-cache exclude isolated show-files show-settings",
    ),
    "black": _program(
        "qvSCh", "lt", "check diff quiet verbose line-length target-version fast safe"
    ),
    "isort": _program("cdqv", "", "check check-only diff profile quiet verbose"),
    "flake8": _program(
        "qv",
        "j",
        "select ignore extend-ignore max-line-length max-complexity count statistics show-source"
        " exclude quiet",
    ),
    "pylint": _program("Eh", "jrd", "disable enable errors-only score reports jobs"),
    "eslint": _program(
        "hv",
        "",
        "fix fix-dry-run fix-type ext quiet max-warnings no-inline-config color no-color"
        " report-unused-disable-directives cache no-error-on-unmatched-pattern no-eslintrc"
        " no-ignore"
        " debug",
    ),
    "prettier": _program(
        "lcw",
        "",
        "check write list-different no-config no-color log-level no-editorconfig ignore-unknown"
        " single-quote tab-width print-width",
    ),
    "tsc": _program("whv", "p", "noEmit watch pretty strict skipLibCheck project incremental"),
    "jest": _program(
        "iouvw",
        "t",
        "coverage runInBand testNamePattern testPathPattern verbose silent bail ci passWithNoTests"
        " onlyChanged color colors maxWorkers updateSnapshot listTests detectOpenHandles forceExit",
    ),
    "vitest": _program("uv", "t", "coverage silent bail changed testNamePattern update run"),
    "mocha": _program("bwv", "gt", "bail grep timeout exit color no-color dry-run"),
    "npm": _NODE,
    "pnpm": _NODE,
    "yarn": _NODE,
    "cargo": _program(
        "rqvVh",
        "pjF",
        "release all-targets all-features features no-default-features workspace package all lib"
        " bins bin tests test examples example benches doc no-deps no-run no-fail-fast quiet"
        " verbose"
        " jobs locked offline frozen color message-format keep-going profile check allow-dirty"
        " nocapture test-threads exact ignored include-ignored show-output depth edges invert dev"
        " dry-run",
        verbs="build b check c test t doc d fmt clippy clean tree metadata update search bench"
        " fetch"
        " add remove fix help version --version -V",
    ),
    "rustc": _program(
        "gOvVh", "", "edition crate-name crate-type test explain verbose error-format"
    ),
    "go": _program(
        single="v race short run count timeout cover json failfast parallel cpu bench benchmem"
        " list n x"
        " a tags trimpath mod m u all skip shuffle s d",
        verbs="build test vet fmt mod list version doc get clean help",
    ),
    "gcc": _COMPILER,
    "gradle": _GRADLE,
    "gradlew": _GRADLE,
    "mvn": _MAVEN,
    "mvnw": _MAVEN,
    "javac": _program("gv", "", "", "g nowarn verbose Xlint deprecation Werror"),
    "dotnet": _program(
        "qvch",
        "",
        "configuration no-restore no-build verbosity nologo framework filter list-tests",
        verbs="build test restore clean format list --version --info",
    ),
    "pip": _program(
        "qvUVh",
        "r",
        "quiet verbose upgrade user requirement no-deps pre outdated format editable dry-run yes",
        verbs="install uninstall list show freeze check index help --version -V",
    ),
    "phpunit": _program("hv", "", "filter testdox verbose debug stop-on-failure colors group"),
    "rspec": _program("cbh", "et", "example tag color no-color fail-fast backtrace dry-run"),
}
"""By their names; `_SAME_AS` has others."""

_SAME_AS = {
    **dict.fromkeys(("g++", "cc", "c++", "clang", "clang++"), "gcc"),
    "gmake": "make",
    "py.test": "pytest",
    "pip3": "pip",
    "bsdtar": "tar",
    "gtar": "tar",
}

_BOTH_WAYS = "quiet verbose dry-run"

GIT_WRITERS: dict[str, Program] = {
    "add": _program("vnfuAN", "", f"{_BOTH_WAYS} force update all no-all intent-to-add refresh"),
    "am": _program("q3ks", "", "abort continue skip quit 3way quiet keep signoff"),
    "apply": _program("vR3", "pC", "check stat numstat summary reverse cached index 3way verbose"),
    "branch": _program(
        "avrdDmMcCfqt",
        "u",
        "all list remotes show-current verbose delete move copy force set-upstream-to"
        " unset-upstream"
        " track no-track contains no-contains merged no-merged sort column",
    ),
    "checkout": _program(
        "qfbBtlm", "", "quiet force detach track no-track ours theirs merge orphan progress"
    ),
    "cherry-pick": _program(
        "xns", "m", "no-commit abort continue skip quit mainline signoff allow-empty"
    ),
    "clean": _program("fdnq", "", "force dry-run quiet"),
    "clone": _program(
        "qvnl",
        "bo",
        "quiet verbose depth single-branch no-single-branch no-checkout bare mirror shallow-since"
        " no-tags branch progress origin",
    ),
    "commit": _program(
        "aqsvn",
        "mC",
        "all message quiet signoff verbose no-verify no-edit amend allow-empty allow-empty-message"
        " author date reset-author dry-run short branch fixup squash reuse-message",
    ),
    "fetch": _program(
        "apqtvfn",
        "j",
        f"{_BOTH_WAYS} all append prune prune-tags tags no-tags force depth unshallow shallow-since"
        " progress jobs",
    ),
    "init": _program("q", "b", "quiet bare initial-branch"),
    "merge": _program(
        "qvn",
        "m",
        "ff no-ff ff-only squash no-squash commit no-commit abort continue quit no-edit stat"
        " no-stat"
        " quiet verbose message allow-unrelated-histories autostash signoff",
    ),
    "mv": _program("fknv", "", f"{_BOTH_WAYS} force"),
    "pull": _program(
        "qvrpnt",
        "",
        "rebase no-rebase ff-only ff no-ff prune tags quiet verbose autostash no-edit all depth",
    ),
    "push": _program(
        "qvnfud",
        "",
        f"{_BOTH_WAYS} set-upstream force force-with-lease tags follow-tags delete all prune atomic"
        " no-verify porcelain progress mirror",
    ),
    "rebase": _program(
        "qvn",
        "",
        "onto abort continue skip quit autostash no-autostash keep-base quiet verbose stat root"
        " update-refs rebase-merges autosquash no-autosquash",
    ),
    "reset": _program("qN", "", "hard soft mixed keep merge quiet"),
    "restore": _program("qSW", "s", "staged worktree source quiet ours theirs"),
    "revert": _program("n", "m", "no-commit no-edit abort continue skip quit mainline"),
    "rm": _program("rfnq", "", "cached force dry-run quiet ignore-unmatch"),
    "stash": _program(
        "uakqS", "m", "include-untracked all keep-index quiet message staged index stat"
    ),
    "switch": _program(
        "cCqfdtm",
        "",
        "create force-create detach quiet force discard-changes track no-track orphan guess"
        " no-guess"
        " merge",
    ),
    "tag": _program(
        "adfln", "m", "annotate delete force list message contains points-at merged no-merged sort"
    ),
    "remote": _program("vfn", "", "verbose all prune delete add dry-run"),
    "worktree": _program(
        "fdbB", "", "force detach checkout no-checkout porcelain verbose dry-run lock"
    ),
}
"""Commands of git that change the repository, and that a rule "git" may speak for."""

UNKNOWN = _program()
"""A program of which no option is known."""


def program_of(name: str) -> Program | None:
    """What is known of a program, by the base name of its command."""
    return PROGRAMS.get(_SAME_AS.get(name, name))
