"""Agents' files with random damage: told in one line each, and never with more rights (M5.11)."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.agents.test_agent_files import FULL
from tests.damage import damaged
from tiro.agents.agent_files import asking, read_agents
from tiro.agents.permissions import STRICT_SET, Rules

RULED = FULL.replace(
    "  edit: deny\n",
    """\
  edit: deny
  read:
    "*": allow
    "secret/*": deny
  bash:
    "git status": allow
    "rm *": deny
  outside: ask
options: {seed: 7, stop: [END]}
""",
)
SUBJECTS = {"edit": "a.py", "read": "secret/a", "bash": "rm -rf x", "outside": "/etc/passwd"}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


@given(damaged(RULED.encode()))
@example(RULED.encode())
@example(RULED.replace("deny", "&a deny", 1).encode())
def test_a_damaged_agent_is_told_in_lines_and_has_sound_rules(folder: Path, text: bytes) -> None:
    (folder / "a.md").write_bytes(text)
    found = read_agents(folder)
    assert all("\n" not in problem and "a.md" in problem for problem in found.problems)
    for agent in found.agents:
        assert agent.mode in ("primary", "subagent", "all")
        for key, subject in SUBJECTS.items():
            own = Rules(agent=agent.permission, default=STRICT_SET)
            assert own.decide(key, subject).kind in ("allow", "ask", "deny")


@given(st.binary(max_size=80))
def test_any_bytes_never_raise(folder: Path, text: bytes) -> None:
    for start in (b"", b"---\n"):
        (folder / "a.md").write_bytes(start + text)
        assert all("\n" not in problem for problem in read_agents(folder).problems)


@given(damaged(RULED.encode()))
def test_what_a_damaged_agent_of_a_workspace_allows_is_asked_about(
    folder: Path, text: bytes
) -> None:
    (folder / "a.md").write_bytes(text)
    for agent in read_agents(folder, folder).agents:
        for key, subject in SUBJECTS.items():
            rules = Rules(agent=asking(agent.permission), default=STRICT_SET)
            before = Rules(default=STRICT_SET).decide(key, subject).kind
            assert rules.decide(key, subject).kind != "allow" or before == "allow"
