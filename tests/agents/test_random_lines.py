"""Random command lines: what a rule lets run is what it names, as a real shell finds it (B49)."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.sizes import PATIENCE, sized
from tiro.agents.permissions import decide

SHELLS = [shell for shell in ("bash", "dash", "sh") if shutil.which(shell)]
PIECES = [
    "good", "bad", "good ", "bad ", " ", " ", ";", "&", "&&", "||", "|", "\n", "\r", "\t", "(", ")",
    "{ ", "; }", "$(", "`", '"', "'", "\\", "$", "${x}", "$'", "x=bad", "x=1 ", "!", "#", "~", "*",
    "?", "[b]", "b", "ad", "{b,c}", "<<E\n", "\nE\n", "<", " >f", " 2>&1", "<(", "if ", "then ",
    "fi", "for x in ", "do ", "done", "while ", "case x in x) ", ";;", "esac", "time ", "eval ",
    "command ", "builtin ", "env ", "xargs ", "./bad", "b''ad", 'b"a"d', "\\bad", "-c ", "sh ",
    "é", "\u2028", "\u00a0", "\x0b", "function good", "good()", "alias good=bad", "export x",
]  # fmt: skip
LINES = st.lists(st.sampled_from(PIECES), min_size=1, max_size=9).map("".join)
NARROW: Any = {"bash": [("*", "ask"), ("good", "allow")]}
WIDE: Any = {"bash": [("*", "allow"), ("bad", "deny"), ("bad *", "deny")]}
EXAMPLES = settings(max_examples=sized(fast=100, normal=200, long=20_000))


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose programs write down that they ran; a shell finds no other ones there."""
    room = tmp_path_factory.mktemp("lines")
    for name in ("good", "bad", "cad"):
        (room / name).write_text(f'#!/bin/sh\necho {name} >> "{room}/ran"\n')
        (room / name).chmod(0o755)
    return room


def ran(room: Path, line: str) -> set[str]:
    """The programs that any shell starts for the line."""
    (room / "ran").write_text("")
    for shell in SHELLS:
        subprocess.run(
            [shutil.which(shell) or shell, "-c", line],
            cwd=room,
            env={"PATH": str(room)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
        )
    return set((room / "ran").read_text().split())


@EXAMPLES
@given(LINES)
@example("good")
@example("good; good -x")
def test_what_a_narrow_rule_lets_run_is_what_it_names(room: Path, line: str) -> None:
    if decide(NARROW, "run_command", {"command": line}).kind == "allow":
        assert ran(room, line) <= {"good"}


@EXAMPLES
@given(LINES)
@example("good | bad")
def test_what_is_denied_runs_in_no_line(room: Path, line: str) -> None:
    if decide(WIDE, "run_command", {"command": line}).kind == "allow":
        assert "bad" not in ran(room, line)


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda raw: raw.decode("latin-1")))
def test_any_text_is_decided_about(line: str) -> None:
    for rules in (NARROW, WIDE):
        decided = decide(rules, "run_command", {"command": line})
        assert decided.kind in ("allow", "ask", "deny")
        assert "\n" not in decided.rule
