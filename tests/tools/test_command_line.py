"""A command line is read as shells read it, or it is not plain."""

import random
import shutil
import subprocess

import pytest

from tiro.tools.command_line import MAX_COMMANDS, parse_command_line

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
        *("$x", "a $(b)", "a `b`", 'a "$b"', 'a "`b`"', 'a "\\b"', "a > b", "a < b"),
        *("a <<b", "a 2>&1"),
        *("a *", "a ?", "a [b]", "a {b,c}", "~", "a ~/b", "a b=~", "a !b", "! a", "a #b", "(a)"),
        *("A=1 b", "A=1", "'A'=1 b", "if a", "{ a; }", "while a", "time a", "[[ a ]]"),
        *("-x a", "'' a"),
    ],
)  # fmt: skip
def test_line_that_is_not_plain(line: str) -> None:
    found = parse_command_line(line)
    assert found.unplain
    assert found.commands == ()


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
    ]
    lines = ["".join(chance.choices(alphabet, k=chance.randint(1, 14))) for _ in range(30_000)]
    plain = []
    for line in lines:
        found = parse_command_line("printf '<%s>' " + line)
        if found.unplain is None and len(found.commands) == 1:
            plain.append((line, "".join(f"<{word}>" for word in found.commands[0][2:])))
    assert len(plain) > 2000
    script = "".join(f"printf '<%s>' {line}\necho\n" for line, _ in plain)
    for shell in SHELLS:
        done = subprocess.run([shell], input=script.encode(), capture_output=True, timeout=60)
        shown = done.stdout.decode().split("\n")[:-1]
        assert shown == [words or "<>" for _, words in plain]


def test_line_of_very_many_commands_is_not_plain() -> None:
    assert len(parse_command_line("a;" * MAX_COMMANDS).commands) == MAX_COMMANDS
    line = parse_command_line("a;" * (MAX_COMMANDS + 1))
    assert (line.commands, line.unplain) == ((), "it is more than 100 commands")
