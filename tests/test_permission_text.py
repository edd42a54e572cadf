"""What a person may answer to a permission request, and what is said of it."""

from typing import Any

import pytest

from tiro.agents.permissions import STRICT_SET, Permission, decide
from tiro.permission_text import (
    ALL_EDITS,
    KEEPS_ASKING,
    decision,
    failure_of,
    lasting,
    named,
    possible,
    question,
)

LASTING: dict[str, Any] = {"always": ["edit: a.py allow (in the workspace)"]}
ONCE: dict[str, Any] = {"always": []}


@pytest.mark.parametrize(
    ("line", "decided"),
    [
        ("o", {"decision": "once"}),
        (" Yes ", {"decision": "once"}),
        ("r not yet", {"decision": "reject", "message": "not yet"}),
        ("no, wait", {"decision": "reject", "message": "wait"}),
        ("r", {"decision": "reject", "message": None}),
        ("yes please", None),
        ("", None),
        ("q", None),
    ],
)
def test_a_line_is_a_decision_or_none(line: str, decided: dict[str, Any] | None) -> None:
    assert decision(line, LASTING) == decided
    assert decision(line, ONCE) == decided


def test_what_would_not_last_is_not_offered_for_always() -> None:
    """And whoever types it all the same is asked again, told what is possible."""
    assert decision("a", LASTING) == {"decision": "always"}
    assert decision("a", ONCE) is None
    assert "[a]lways" in question(LASTING)
    assert "[a]lways" not in question(ONCE)
    assert "a for the rest of this session" in possible(LASTING)
    assert " a for" not in possible(ONCE)


def test_a_question_about_an_edit_tells_what_lets_all_edits_pass() -> None:
    """M5.7: by the rule that holds everywhere; not where another one asks, as a user's own may."""
    asking = {"edit_file": "edit", "write_file": "write"}
    settled: Permission = {"edit": "allow", "write": "allow"}
    assert ALL_EDITS.endswith("permission: {edit: allow, write: allow}")
    for name, key in asking.items():
        given = {"path": "a.py"}
        rule = decide(None, name, given, default=STRICT_SET).rule
        told = lasting({"always": [f"{key}: a.py allow"], "rule": rule})
        assert told == [f"[a]lways adds to this session: {key}: a.py allow", ALL_EDITS]
        assert decide(None, name, given, config=settled, default=STRICT_SET).kind == "allow"
    for rule in ("edit: src/* ask", "bash: ask", "edit: .vscode/x ask", "write: *.env deny"):
        assert lasting({"always": [], "rule": rule}) == [KEEPS_ASKING]


def test_a_tool_use_shows_no_list_of_tables() -> None:
    """How many edits there are says more than the first words of their JSON."""
    edits = [{"old_text": "a", "new_text": "b"}, {"old_text": "c", "new_text": "d"}]
    use = {"name": "multi_edit", "input": {"path": "calc.py", "edits": edits}}
    assert named(use) == "multi_edit calc.py (2 edits)"
    assert named({"name": "look", "input": {"lines": [1, 2]}}) == "look [1, 2]"


@pytest.mark.parametrize(
    ("content", "how"),
    [
        ("ok\n[exit code 0]", None),
        ("[exit code 1]\n[exit code 0]\n", None),
        ("x\n[exit code 127]", "exit code 127"),
        (
            "[ended by the signal SIGKILL]\n[the command did not see …]",
            "ended by the signal SIGKILL",
        ),
        ("[timed out after 120 seconds: the command …]", "timed out after 120 seconds"),
        ("[exit code 1]\nand more", None),
        ("", None),
    ],
)
def test_how_a_command_failed(content: str, how: str | None) -> None:
    assert failure_of(content) == how
