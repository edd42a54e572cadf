"""A command line is read as shells read it, or it is not plain."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.sizes import PATIENCE
from tiro.tools.command_line import MAX_COMMANDS, parse_command_line

MESSAGE = "\"$(cat <<'EOF'\nfix(x): it\n\nBy: A <a@b>\nEOF\n)\""
"""A commit's message of several lines, as models write it."""
SHELLS = [shell for shell in ("sh", "bash", "dash") if shutil.which(shell)]


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("git status", [["git", "status"]]),
        ("  ls\t-la ", [["ls", "-la"]]),
        ("a && b || c; d | e", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("ls;", [["ls"]]),
        ("echo 'a b' \"c'd\" e'f'g ''", [["echo", "a b", "c'd", "efg", ""]]),
        ('echo \'$(x) `y` \\ "\' "é !"', [["echo", '$(x) `y` \\ "', "é !"]]),
        ("git show HEAD~1 HEAD^", [["git", "show", "HEAD~1", "HEAD^"]]),
        ("a 2>&1 | b", [["a"], ["b"]]),
        ("a 2>/dev/null c >/dev/null 2>&1", [["a", "c"]]),
        ("2> /dev/null a 1>>/dev/null </dev/null", [["a"]]),
        ("a &>/dev/null && b &> /dev/null", [["a"], ["b"]]),
        ("a 2 >&2", [["a", "2"]]),
        ("CI=1 NO_COLOR=1 a", [["a"]]),
        ("LC_ALL=C.UTF-8 GIT_PAGER=cat a b=c", [["a", "b=c"]]),
        ("time a b", [["time", "a", "b"]]),
        ("[ -f a ] && b", [["[", "-f", "a", "]"], ["b"]]),
        ('a "b\\|c" py$ "d$" "(e$|f$)"', [["a", "b\\|c", "py$", "d$", "(e$|f$)"]]),
        ('echo $? "is: $?"', [["echo", "$?", "is: $?"]]),
        ("git commit -m 'a\nb' && c", [["git", "commit", "-m", "a\nb"], ["c"]]),
        (
            'timeout 5 git tag -m "a\n\nb: (c)" v',
            [["timeout", "5", "git", "tag", "-m", "a\n\nb: (c)", "v"]],
        ),
        (f"git commit -am {MESSAGE}", [["git", "commit", "-am", "fix(x): it\n\nBy: A <a@b>"]]),
        (
            f"git add . && git commit -m {MESSAGE} 2>&1 | tail -1",
            [
                ["git", "add", "."],
                ["git", "commit", "-m", "fix(x): it\n\nBy: A <a@b>"],
                ["tail", "-1"],
            ],
        ),
    ],
)
def test_plain_line(line: str, commands: list[list[str]]) -> None:
    found = parse_command_line(line)
    assert found.unplain is None
    assert [list(words) for words in found.commands] == commands


@pytest.mark.parametrize(
    "line",
    [
        *("", " ", "&& a", "a &&", "a |", "| a", ";", "a;;b", "a & b", "a &", "a |& b", "a &&& b"),
        *("a\nb", "a\rb", "a\x00", "a\x1b[0m", "a\u202eb", "a\u00a0b", "é", "'a", 'a"', "a \\"),
        *("a 2>&1x", "a 2>&3", "a >&x", "a 2>x", "a >/dev/nullx", "a >/dev/null/x", "a 2>/dev/tty"),
        *("a x2>&1", "a 12>&1", "a '2'>&1", "a >/dev/null& b", "a &>/dev/null b", "a >|/dev/null"),
        *("cd a &>/dev/null", "cd a && b &>/dev/null && c", "a 2>&1&", "a >&-", "a <>/dev/null"),
        *("a >'/dev/null'x", ">/dev/null", "a && 2>&1", "a 2>/dev/null$x", "a 2>&1>b"),
        *("CI=/x a", "CI=$x a", "CI=1", "CI=1; a", "'CI'=1 a", "CI='1' a", "PATH=1 a", "CI=1x=2 a"),
        *("GIT_PAGER=x a", "PAGER=catx a", "time A=1 a", "time cd a", "time -p a", "time if a"),
        *("a $? b", 'a "$?"', "$? a", "echo $?; a $?", 'echo "\\$?"', 'echo "$$?"', "echo ${?}"),
        *('a "b\\$c"', 'a "b\\"', 'a "\\\\"', 'a "$b"', 'a "b$$"', 'a "$("', "a $'b'", 'a b$"c"'),
        *("a [", "a [ ]", "a [b ]", "[-f a ]", "[b ]", "a ]", "[ -f a ]b", "time [ a ]"),
        *("$x", "a $(b)", "a `b`", 'a "$b"', 'a "`b`"', "a > b", "a < b"),
        "a <<b",
        *("a *", "a ?", "a [b]", "a {b,c}", "~", "a ~/b", "a b=~", "a !b", "! a", "a #b", "(a)"),
        *("A=1 b", "A=1", "'A'=1 b", "if a", "{ a; }", "while a", "[[ a ]]"),
        *("-x a", "'' a"),
        *("a 'b\nc'", "sed -n 'p\nw X' a", "git commit\na", "git commit -m a\nb", 'git log "a\nb"'),
        'git commit "\\\n-Fx"',
        *("git commit -m 'a\rb'", "echo 'a\nb'; git commit -m c", "x git commit -m 'a\nb'"),
        *(MESSAGE, f"a {MESSAGE}", f"echo {MESSAGE}", f"git commit -m {MESSAGE}\na"),
        *(f"git commit -m {MESSAGE.replace(old, new)}" for old, new in (
            ("'EOF'", "EOF"), ("it", "$(b)"), ("it", "`b`"), ("it", "it's"), ("it", "(it"),
            ("it", "it)"),
            ("it", "# it"), ("it", '"'), ("it", "<<b"), ("it", "EOF\n)\" b \""),
            ("\nEOF\n", "\nEOF \n"),
            ("\n)", "\nb)"), ("cat", "sh"), ("it", "\\\\"), ("cat <<", "cat b <<"), ("\n)", ")"),
        )),
    ],
)  # fmt: skip
def test_line_that_is_not_plain(line: str) -> None:
    found = parse_command_line(line)
    assert found.unplain
    assert found.commands == ()


@pytest.mark.parametrize("shell", SHELLS)
def test_shells_hand_over_a_message_as_it_is_read(shell: str, tmp_path: Path) -> None:
    (tmp_path / "git").write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    (tmp_path / "git").chmod(0o755)
    for text in (
        "a",
        "fix(x): it\n\nBy: A <a@b>",
        "%s * ~ {a,b} [c] !x & | ; (d e) > f",
        "EOFx\nEO",
    ):
        line = f"git commit -m \"$(cat <<'EOF'\n{text}\nEOF\n)\""
        [words] = parse_command_line(line).commands
        path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        done = subprocess.run([shell, "-c", line], env=path, capture_output=True, text=True)
        assert done.stdout == "".join(f"{word}|" for word in words[1:])


def test_random_plain_lines_have_the_words_that_shells_find() -> None:
    """What is not plain is of no interest; what is plain is the same for every shell."""
    chance = random.Random(49)
    alphabet = [
        *"ab-=.,:/@%^+~'\"'\" \t",
        "'b c'",
        '"d e"',
        "$a",
        "*",
        "\\",
        "#",
        "!",
        "{",
        "é",
        "&",
        *("$ ", '"$"', '"\\', '\\a"', " 2>&1", " 2>", ">", " </dev/null ", " >/dev/null"),
    ]
    lines = ["".join(chance.choices(alphabet, k=chance.randint(1, 14))) for _ in range(30_000)]
    plain = []
    for line in lines:
        found = parse_command_line(f"p {line}")
        if found.unplain is None and len(found.commands) == 1:
            plain.append((line, "".join(f"<{word}>" for word in found.commands[0][1:])))
    assert len(plain) > 2000
    show = "exec 3>&1; p() { printf '<%s>' \"$@\" >&3; }\n"
    script = show + "".join(f"p {line}\necho\n" for line, _ in plain)
    for shell in SHELLS:
        done = subprocess.run([shell], input=script.encode(), capture_output=True, timeout=PATIENCE)
        shown = done.stdout.decode().split("\n")[:-1]
        assert shown == [words or "<>" for _, words in plain]


def test_line_of_very_many_commands_is_not_plain() -> None:
    assert len(parse_command_line("a;" * MAX_COMMANDS).commands) == MAX_COMMANDS
    line = parse_command_line("a;" * (MAX_COMMANDS + 1))
    assert (line.commands, line.unplain) == ((), "it is more than 100 commands")
