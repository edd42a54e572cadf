"""How long a command line may keep the gate: what it does grows no faster than the line (M5)."""

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.agents.every_tool import tools_by_name
from tests.fakes import RecordingEditor
from tiro.agents.built_in import built_in_agents
from tiro.agents.gate import Gate
from tiro.agents.permissions import STRICT_SET, PermissionDecision, Rules
from tiro.tools.command_line import MAX_WORDS, TOO_LONG, parse_with_globs
from tiro.tools.shell import MAX_COMMAND_CHARS
from tiro.tools.workspace import Workspace

TOOL = tools_by_name()["run_command"]
PLAN = next(agent for agent in built_in_agents() if agent.name == "plan")
MOST_CALLS = 3_000_000
"""Of functions, Python's own among them: about a second of work."""

HEADS = ("cat ", "sed 's/x/y/;", "foo; env mv ", "ls > b ", "npx ")
UNITS = ("a/=/", "/a/,", "s/x/;", "* ", "*/* ", "{,", "{a,b} ", "npx ", "cp ")


@pytest.fixture
def room(tmp_path: Path) -> Path:
    for folder in (tmp_path, tmp_path / "a", tmp_path / "b"):
        folder.mkdir(exist_ok=True)
        for number in range(15):
            (folder / f"f{number}").touch()
    return tmp_path


def decided(room: Path, line: str) -> PermissionDecision:
    gate = Gate(Rules(agent=PLAN.permission, default=STRICT_SET), Workspace(RecordingEditor(room)))
    return gate.decide(gate.look(TOOL, {"command": line}))


def calls_of(room: Path, line: str) -> int:
    """How many functions are called to decide about a line."""
    count = 0

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        decided(room, line)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("unit", UNITS)
def test_the_longest_line_is_decided_about_in_bounded_work(
    room: Path, head: str, unit: str
) -> None:
    line = head + unit * ((MAX_COMMAND_CHARS - len(head) - 1) // len(unit))
    line += "'" * line.count("'")
    assert calls_of(room, line) < MOST_CALLS


def test_names_made_to_take_long_are_few_that_are_looked_at(room: Path) -> None:
    """A name of digits may be a copy of a copy in many ways."""
    for number in range(1000, 1600):
        (room / f"~{'4913' * 62}{number}~").touch()
    assert "too large to look at" in decided(room, "rg x .").rule
    for number in range(1000, 1600):
        (room / f"~{'4913' * 62}{number}~").rename(room / f"{'n' * 50}{number}")
    assert decided(room, "rg x .").kind == "allow"


def test_a_line_of_very_many_words_is_not_plain() -> None:
    """It asks, and says why."""
    words = "a " * MAX_WORDS
    assert parse_with_globs(words).unplain is None
    assert parse_with_globs(f"{words} a").unplain == TOO_LONG.format(most=MAX_WORDS)


@pytest.mark.parametrize("head", ["npx ", "npm exec ", "time ", "nice ", "python -m ", "uv run "])
def test_commands_within_commands_may_be_many(room: Path, head: str) -> None:
    rules = Rules(config={"bash": {"npx x": "allow", "rm *": "deny"}}, default=STRICT_SET)
    gate = Gate(rules, Workspace(RecordingEditor(room)))
    line = head * ((MAX_WORDS - 1) // len(head.split())) + "x"
    assert gate.decide(gate.look(TOOL, {"command": line})).kind in ("ask", "deny")
