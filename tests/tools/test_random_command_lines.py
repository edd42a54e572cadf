"""Random command lines: where one is read as plain, real shells run exactly what is read (B49).

Programs are replaced by one that writes down its words, what it gets on stdin and its folder.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from tests.sizes import PATIENCE, sized
from tiro.tools.command_core import core_of
from tiro.tools.command_line import CommandLine, parse_with_globs
from tiro.tools.globs import UncertainError, expanded_words

SHELLS = [
    [path, *options, "-c"]
    for name, *options in (["bash"], ["bash", "--posix"], ["dash"], ["sh"])
    if (path := shutil.which(name))
]
NAMES = ("a", "b", "git", "p1", "ls")
CAT = shutil.which("cat") or "cat"
RECORDER = """#!/bin/sh
{{
  printf '%s\\0' {name} "$@" "[$({cat})]" "end"
}} >> "$ROOM/ran"
exit $((${{#}} % 2))
"""

PLAIN = [
    *("a", "b", "-x", "--y=z", "x=1", "./a", "a/b", "a~b", "HEAD~1", "f*", "*.c", "{}", "+", "@b"),
    *("1", "2", "12", "^", ",", ":", "%", "=", "a=b", "then", "if", "time", "cd", "sub", "CI=1"),
    *("a$", "-", "--", "PATH=.", "'b c'", '"d e"', "''", '""', "'$(b)'", "'\"'", '"\'"', '"\\a"'),
    *('"$"', '"a$ b"', "'*'", '"*"', "'{}'", "'#'", '"~"', "'<<E'", '">f"', "';'", '"b|a"', '"!b"'),
    *(
        "'a\tb'",
        '"é"',
        "'\\'",
        "\\;",
        "\\(",
        "\\)",
        "\\!",
        "\\*",
        "\\|",
        "\\$",
        "\\&",
        "\\<",
        "\\>",
    ),
    *("\\#", "\\~", "\\'", '\\"', "\\[", "\\]", "\\{", "\\}", "\\?", " 2>&1", " >/dev/null"),
    *(" 2> /dev/null", " </dev/null", " 2>>/dev/null", " &>/dev/null", " >&2"),
]
ODD = [
    *('"$(b)"', '"`b`"', '"\\\\"', '"\\$x"', "'a\nb'", "$'b'", '$"b"', '"$?"', '"${x}"', '"$x"'),
    *(
        "é",
        "#",
        "a#b",
        "#c",
        "~",
        "~/b",
        "a~",
        "*",
        "?",
        "[b]",
        "[a-",
        "]",
        "{a,b}",
        "{1..3}",
        "a{}",
    ),
    *("{}b", "{", "}", "!", "!b", "$", "$x", "${x}", "${x:-b}", "$?", "$$", "$#", "$0", "$(b)"),
    *("$((1))", "`b`", "%1", "a:~", "b=~", "for", "in", "do", "case", "function", "coproc", "[["),
    *("\\\\", "\\a", "\\ ", "\\\n", "\\\t", "\\=", "\\:", "\\,", "\\%", "\\@", "\\-", "\\`", "\\^"),
    *(">f", "> f", ">>f", "<f", "<>f", ">|f", "&>f", "&>>f", ">&f", "2>f", "2>&-", ">&-", "<&-"),
    *("0<f", "3>f", "12>&1", "{x}>f", ">&/dev/null", ">/dev/null2", "3</dev/null", "2>&1x", "<&3"),
    *(
        "<<E",
        "<< E",
        "<<'E'",
        '<<"E"',
        "<<-E",
        "<<\\E",
        "<<<b",
        "<<< 'b c'",
        "<(b)",
        ">(b)",
        "2>&12",
    ),
]
JOINTS = [";", " ; ", "&&", " && ", "||", " || ", "|", " | "]
ODD_JOINTS = [
    *(
        "|&",
        "&",
        " & ",
        "\n",
        ";;",
        "&&&",
        "\r\n",
        "\r",
        "; ;",
        ";\n",
        "|\n",
        "&& \n",
        "\x0b",
        "\xa0",
    ),
    *("\u2028", "\x00", " # ", ";#", "\n;"),
]
BEHIND = [";", "", "", " ;"]
ODD_BEHIND = [
    " &",
    "&",
    "\n",
    "\nE\n",
    "\nb\nE\n",
    "\n\tE\n",
    "\nE\nb",
    " #b",
    "#b",
    "\\",
    ")",
    " }",
]
FRONTS = [
    "",
    "",
    "",
    " ",
    "CI=1 ",
    "NO_COLOR=1 LC_ALL=C ",
    "PAGER=cat ",
    "2>&1 ",
    "timeout 5 ",
    "time ",
]
ODD_FRONTS = [
    "\n",
    "! ",
    "(",
    "{ ",
    "x=1 ",
    "CI=$x ",
    "CI=* ",
    "\\",
    "'",
    "if ",
    "nice ",
    "E\n",
]
PROGRAMS = [
    *(
        "a",
        "b",
        "git",
        "p1",
        "ls",
        "git commit -m",
        "git tag",
        "echo",
        "[ x = x",
        "test x =",
        "a -n",
    ),
    *("cd sub", "true", "false"),
]
MESSAGES = [
    "'a\nb'",
    '"a\n\nb: (c)"',
    "\"$(cat <<'E'\na: b\n\nc\nE\n)\"",
    "\"$(cat <<'E'\na $b\nE\n)\"",
]


def _mostly(usual: Sequence[str], odd: Sequence[str]) -> st.SearchStrategy[str]:
    return st.integers(0, 15).flatmap(lambda n: st.sampled_from(usual if n else odd))


WORDS = st.lists(_mostly(PLAIN, ODD), min_size=1, max_size=3).map("".join)
PARTS = st.lists(
    st.tuples(_mostly([" ", "  ", "\t"], ["", "\\\n"]), WORDS).map("".join), max_size=4
)
COMMANDS = st.one_of(
    st.builds(
        lambda front, program, parts: front + program + "".join(parts),
        _mostly(FRONTS, ODD_FRONTS),
        st.sampled_from(PROGRAMS),
        PARTS,
    ),
    st.sampled_from(MESSAGES).map(lambda message: f"git commit -m {message}"),
)
LINES = st.builds(
    lambda commands, joints, behind: "".join(
        part for pair in zip(commands, [*joints, behind], strict=False) for part in pair
    ),
    st.lists(COMMANDS, min_size=1, max_size=3),
    st.lists(_mostly(JOINTS, ODD_JOINTS), min_size=2, max_size=2),
    _mostly(BEHIND, ODD_BEHIND),
)


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to run in, and beside it the programs that write down how they were run."""
    top = tmp_path_factory.mktemp("lines")
    for name in ("room/f", "room/f1.c", "room/-x.c", "room/sub/a.c", "bin/x"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("file")
    programs = {name: RECORDER.format(name=name, cat=CAT) for name in NAMES}
    programs |= {"time": '#!/bin/sh\nexec "$@"\n', "timeout": '#!/bin/sh\nshift\nexec "$@"\n'}
    programs["nice"] = programs["time"]
    for name, text in programs.items():
        (top / "bin" / name).write_text(text)
        (top / "bin" / name).chmod(0o755)
    (top / "bin/cat").symlink_to(CAT)
    return top / "room"


def _ran(room: Path, shell: Sequence[str], line: str) -> list[list[str]]:
    """The words of each program that a shell runs for a line, and last of them its stdin."""
    (room.parent / "ran").write_text("")
    subprocess.run(
        [*shell, line],
        cwd=room,
        env={"PATH": str(room.parent / "bin"), "ROOM": str(room.parent)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
    )
    records = (room.parent / "ran").read_text().split("\0end\0")
    return [one.split("\0") for one in records if one]


def _commands(line: CommandLine, room: Path) -> list[Sequence[str]] | None:
    """The commands that are read, with names for their patterns; None where these are not sure."""
    if line.unplain is not None:
        return None
    if line.globs and any(words[0] == "cd" for words in line.commands):
        return None
    try:
        return [core_of(expanded_words(line, at, room)) for at in range(len(line.commands))]
    except UncertainError:
        return None


def _must_run(commands: Sequence[Sequence[str]], joints: Sequence[str]) -> list[bool]:
    """Which commands surely run: the exit code of a recorder is told by its words, no other is."""
    found: list[bool] = []
    is_sure, is_needed = True, True
    status: int | None = None
    for at, words in enumerate(commands):
        joint = joints[at - 1] if at else ";"
        if joint == ";":
            is_sure, is_needed = True, True
        elif joint != "|":
            is_sure = is_sure and status is not None
            is_needed = status is not None and (status == 0) == (joint == "&&")
        found.append(is_sure and is_needed)
        if is_needed or not is_sure:
            status = (len(words) - 1) % 2 if words[0] in NAMES and is_sure else None
    return found


@settings(max_examples=sized(fast=200, normal=600, long=30_000), deadline=None)
@given(LINES)
@example("a 'b'\\;c | b \\* {}; git commit -m 'x\ny'")
@example("a && b x || p1 </dev/null; ls f* 2>&1")
def test_shells_run_what_is_read(room: Path, text: str) -> None:
    line = parse_with_globs(text)
    commands = _commands(line, room)
    if commands is None:
        event("not plain")
        return
    event("plain")
    must = _must_run(commands, line.joints)
    if "&>" in text:  # dash runs what stands before it in the background, and goes on
        must = [False] * len(commands)
    piped = [False, *(joint == "|" for joint in line.joints)]
    read = [
        (list(words), fed) for words, fed in zip(commands, piped, strict=True) if words[0] in NAMES
    ]
    sure = [
        list(words) for words, one in zip(commands, must, strict=True) if one and words[0] in NAMES
    ]
    before = sorted(os.listdir(room))
    for shell in SHELLS:
        left = list(read)
        ran = _ran(room, shell, text)
        for *words, stdin in ran:
            fitting = [one for one in left if one[0] == words and (one[1] or stdin == "[]")]
            assert fitting, (shell, words, stdin)
            left.remove(fitting[0])
        for words in sure:
            assert [*words] in [one[:-1] for one in ran], (shell, words)
    assert sorted(os.listdir(room)) == before
