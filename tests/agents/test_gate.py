"""The gate: what is decided about every use of every tool, by which rule (M5)."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.agents.every_tool import tools_by_name
from tests.agents.turns import a_turn, events_of, run, statuses, told
from tests.fakes import RecordingEditor, fake_tool, says, uses
from tiro.agents.built_in import built_in_agents
from tiro.agents.calls import Call
from tiro.agents.events import ToolUse
from tiro.agents.gate import Gate
from tiro.agents.permissions import OPEN_SET, STRICT_SET, PermissionDecision, Rules
from tiro.session.core import Core
from tiro.tools.editor import PermissionAnswer, PermissionRequest
from tiro.tools.workspace import Workspace

AGENTS = {agent.name: agent for agent in built_in_agents()}
TOOLS = tools_by_name()


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A workspace with a file of each kind, and one beside it."""
    for name in ("ws/src/a.py", "ws/.env", "ws/.tiro/plan/p.md", "outside/k"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text of {name}")
    return tmp_path / "ws"


def decided(
    room: Path, rules: Rules, tool: str, given: dict[str, Any], remembered: Sequence[Any] = ()
) -> PermissionDecision:
    gate = Gate(rules, Workspace(RecordingEditor(room)))
    return gate.decide(gate.look(TOOLS[tool], given), remembered)


def command(line: str, **given: Any) -> dict[str, Any]:
    return {"command": line, **given}


# Every agent x every tool x every kind of place

PLACES = {
    "inside": "src/a.py",
    "outside": "../outside/k",
    ".env": ".env",
    "plan": ".tiro/plan/p.md",
}

OUT = "(/outside/k)"
"""Stands for the real path outside."""

READ_BUILD = ("allow read: * allow", f"ask external_directory: ask {OUT}", "deny read: *.env deny",
              "allow read: * allow")  # fmt: skip
FIND_BUILD = ("allow *: allow", f"ask external_directory: ask {OUT}", "allow *: allow",
              "allow *: allow")  # fmt: skip
WRITE_BUILD = ("ask write: * ask", f"ask external_directory: ask {OUT}", "deny write: *.env deny",
               "ask write: * ask")  # fmt: skip
EDIT_BUILD = tuple(one.replace("write:", "edit:") for one in WRITE_BUILD)
RUN_BUILD = ("ask bash: ask", f"ask external_directory: ask {OUT}",
             "ask read: *.env deny (named in a command)", "ask bash: ask")  # fmt: skip
WRITE_PLAN = ("deny write: * deny", "deny write: * deny", "deny write: * deny",
              "allow write: .tiro/plan/*.md allow")  # fmt: skip
EDIT_PLAN = tuple(one.replace("write:", "edit:") for one in WRITE_PLAN)
UNREAD = "(.env may not be read)"
RUN_PLAN = ("allow bash: <read-only> allow", f"ask external_directory: ask {OUT}",
            f"deny bash: * deny {UNREAD}", "allow bash: <read-only> allow")  # fmt: skip
READ_EXPLORE = ("allow read: * allow", f"deny *: deny {OUT}", "deny read: *.env deny",
                "allow read: * allow")  # fmt: skip
GLOB_EXPLORE = (
    "allow glob: allow",
    f"deny *: deny {OUT}",
    "allow glob: allow",
    "allow glob: allow",
)
GREP_EXPLORE = tuple(one.replace("glob:", "grep:") for one in GLOB_EXPLORE)
RUN_EXPLORE = ("allow bash: <read-only> allow", f"deny *: deny {OUT}",
               f"deny bash: * deny {UNREAD}", "allow bash: <read-only> allow")  # fmt: skip
ALL = ("allow *: allow",) * 4
NONE = ("deny *: deny", f"deny *: deny {OUT}", "deny *: deny", "deny *: deny")
NEVER = ("deny *: deny",) * 4

BUILD: dict[str, tuple[str, ...]] = {
    "read_file": READ_BUILD,
    "list_files": READ_BUILD,
    "glob": FIND_BUILD,
    "grep": FIND_BUILD,
    "write_file": WRITE_BUILD,
    "edit_file": EDIT_BUILD,
    "multi_edit": EDIT_BUILD,
    "run_command": RUN_BUILD,
    "delegate": ALL,
}
SILENT: dict[str, tuple[str, ...]] = {name: NEVER if name == "delegate" else NONE for name in BUILD}
TABLE: dict[str, dict[str, tuple[str, ...]]] = {
    # U8.5: bash, write, edit and external_directory ask; M5.7: the ban of *.env
    "build": BUILD,
    # M5.8: nothing is written but plans, and its bash is that of explore
    "plan": {
        **BUILD,
        "write_file": WRITE_PLAN,
        "edit_file": EDIT_PLAN,
        "multi_edit": EDIT_PLAN,
        "run_command": RUN_PLAN,
    },
    # M5.9: general may not delegate
    "general": {**BUILD, "delegate": ("deny delegate: deny",) * 4},
    # M5.9: all denied but read, grep, glob and the bash that only reads
    "explore": {
        "read_file": READ_EXPLORE,
        "list_files": READ_EXPLORE,
        "glob": GLOB_EXPLORE,
        "grep": GREP_EXPLORE,
        "write_file": NONE,
        "edit_file": NONE,
        "multi_edit": NONE,
        "run_command": RUN_EXPLORE,
        "delegate": NEVER,
    },
    # M5.9: no tools
    "compaction": SILENT,
    "title": SILENT,
    "summary": SILENT,
}
CASES = [
    (agent, tool, place, wanted)
    for agent, tools in TABLE.items()
    for tool, row in tools.items()
    for place, wanted in zip(PLACES, row, strict=True)
]


def test_table_holds_every_agent_and_every_tool() -> None:
    assert set(TABLE) == set(AGENTS)
    assert all(set(row) == set(TOOLS) for row in TABLE.values())


@pytest.mark.parametrize(("agent", "tool", "place", "wanted"), CASES)
def test_decision_and_rule(room: Path, agent: str, tool: str, place: str, wanted: str) -> None:
    """M5.6 to M5.9, U8.5: the decision, and the rule that it names."""
    path = PLACES[place]
    given = {
        "run_command": command(f"cat {path}"),
        "delegate": {"agent": "explore", "task": path},
    }.get(tool, {"path": path})
    rules = Rules(agent=AGENTS[agent].permission, default=STRICT_SET)
    found = decided(room, rules, tool, given)
    assert f"{found.kind} {found.rule}" == wanted.replace("(/outside", f"({room.parent}/outside")


# By effect, not by name


@pytest.mark.parametrize("agent", ["plan", "explore"])
@pytest.mark.parametrize("effect", ["write", "execute"])
@pytest.mark.parametrize("key", ["something_new", "read", "undo"])
def test_effect_counts_whatever_the_key(room: Path, agent: str, effect: Any, key: str) -> None:
    """M5.8: a tool that writes under a key of its own is restricted all the same."""
    tool = fake_tool(effect=effect, permission_key=key)
    gate = Gate(
        Rules(agent=AGENTS[agent].permission, default=OPEN_SET), Workspace(RecordingEditor(room))
    )
    assert gate.decide(gate.look(tool, {})).kind == "deny"


def test_lost_agent_widens_no_rights(room: Path) -> None:
    """M4.3: all but reads ask, whatever is allowed, and also for an agent that works for it."""
    lost = Rules(
        config={"*": "allow"},
        default=OPEN_SET,
        lost=PermissionDecision("ask", "the agent 'x' is missing: ask", "session"),
    )
    for rules in (lost, Rules(default=OPEN_SET, caller=lost)):
        wanted = {"kind": "ask", "rule": "the agent 'x' is missing: ask"}
        for tool in ("write_file", "edit_file", "multi_edit"):
            found = decided(room, rules, tool, {"path": "src/a.py"})
            assert {"kind": found.kind, "rule": found.rule} == wanted
        assert decided(room, rules, "run_command", command("ls")).kind == "ask"
        assert decided(room, rules, "read_file", {"path": "src/a.py"}).kind == "allow"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (
            "git commit -m \"$(cat <<'EOF'\nfix: it\n\nSee https://a.b/c/../../../d\nEOF\n)\"",
            "allow",
        ),
        ("git commit -m 'fix: see https://a.b/c and so on'", "allow"),
        ("git commit -m 'fix\n\nsee x'", "allow"),
        ("git commit -F https://a.b/../../../k", "ask"),
        ("git commit -m 'x\ny' --template=../outside/k", "ask"),
        ("git commit -m x:../outside/k", "ask"),
    ],
)
def test_a_commit_with_a_long_message_is_a_commit(room: Path, line: str, kind: str) -> None:
    rules = Rules(config={"bash": {"git commit": "allow"}}, default=STRICT_SET)
    assert decided(room, rules, "run_command", command(line)).kind == kind


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("pytest --ignore=tests/slow --deselect=tests/a.py::test_b tests/a.py::test_c", "allow"),
        ("pytest '--ignore-glob=tests/*'", "allow"),
        ("pytest --ignore=/etc", "ask"),
        ("pytest --ignore=tests/../../outside", "ask"),
        ("pytest link.py::test_a", "ask"),
        ("pytest -x=link.py:3", "ask"),
        ("pytest -Wl,-I/etc", "ask"),
        ("pytest --to/etc", "ask"),
    ],
)
def test_a_path_within_a_word_is_where_it_stands(room: Path, line: str, kind: str) -> None:
    """B49: before and behind `=`, `:` and `,`."""
    (room / "link.py").symlink_to(room.parent / "outside/k")
    rules = Rules(config={"bash": {"pytest": "allow"}}, default=STRICT_SET)
    assert decided(room, rules, "run_command", command(line)).kind == kind


NAMED: Any = {
    **dict.fromkeys(
        ("bash scripts/x.sh", "./run", "python3 scripts/*", "docker compose up"), "ask"
    ),
    **dict.fromkeys(("make", "/bin/true", "python3 -m pytest", "git -C ../src status"), "allow"),
}
"""Rules, and what is decided about them where another file may have the name."""


@pytest.mark.parametrize("rule", NAMED)
def test_a_rule_means_the_file_that_it_names_in_the_workspace_s_folder(
    room: Path, rule: str
) -> None:
    """B49: `cd vendor && bash scripts/x.sh` runs another file of this name."""
    table: Any = {**dict.fromkeys(NAMED, "allow"), "<read-only>": "allow"}
    rules = Rules(config={"bash": table, "external_directory": "allow"}, default=STRICT_SET)
    line = rule.replace("*", "a.py")
    assert decided(room, rules, "run_command", command(line)).kind == "allow"
    for given in (command(line, cwd="src"), command(f"cd src && {line}"),
                  command(f"cd src && timeout 5 {line}")):  # fmt: skip
        assert decided(room, rules, "run_command", given).kind == NAMED[rule], given


# "always"


@pytest.mark.parametrize(
    ("tool", "given", "rules"),
    [
        (
            "write_file",
            {"path": "src/a.py"},
            [{"key": "write", "exactly": ["{base}/ws/src/a.py"], "decision": "allow"}],
        ),
        (
            "write_file",
            {"path": "../outside/k"},
            [{"key": "write", "exactly": ["{base}/outside/k"], "decision": "allow"}],
        ),
        (
            "run_command",
            command("git add a && git commit -m x"),
            [
                {"key": "bash", "exactly": ["{base}/ws", "git add a"], "decision": "allow"},
                {"key": "bash", "exactly": ["{base}/ws", "git commit -m x"], "decision": "allow"},
            ],
        ),
        (
            "run_command",
            command("cat a | sh"),
            [{"key": "bash", "exactly": ["{base}/ws", "cat a | sh"], "decision": "allow"}],
        ),
        (
            "run_command",
            command("echo $(a) > x", cwd="src"),
            [
                {
                    "key": "bash",
                    "exactly": ["{base}/ws/src", "echo $(a) > x"],
                    "decision": "allow",
                }
            ],
        ),
    ],
)
def test_always_is_stored_as_narrow_as_the_request(
    room: Path, tool: str, given: dict[str, Any], rules: list[dict[str, Any]]
) -> None:
    """B49: the commands as they are, never their first word; a path outside with its own key."""
    gate = Gate(Rules(default=STRICT_SET), Workspace(RecordingEditor(room)))
    use = gate.look(TOOLS[tool], given)
    wanted = [
        {
            name: [one.format(base=room.parent) for one in value] if name == "exactly" else value
            for name, value in rule.items()
        }
        for rule in rules
    ]
    assert gate.decide(use).kind == "ask"
    assert gate.grants(use) == wanted
    settled = gate.decide(use, gate.grants(use))
    assert (settled.kind, settled.source) == ("allow", "session")


@pytest.mark.parametrize(
    ("tool", "given", "told"),
    [
        ("write_file", {"path": "src/[a].py"}, ["write: src/[a].py allow (in the workspace)"]),
        ("write_file", {"path": "../outside/k"}, ["write: {base}/outside/k allow"]),
        ("run_command", command("make", cwd="src"), ["bash: make allow (in {base}/ws/src)"]),
        (
            "run_command",
            command("cat ../outside/k"),
            [
                "bash: cat ../outside/k allow with {base}/outside/k (in {base}/ws)",
                "bash: cat ../outside/k allow (in {base}/ws)",
            ],
        ),
    ],
)
def test_the_question_says_what_always_would_store(
    room: Path, tool: str, given: dict[str, Any], told: list[str]
) -> None:
    """P8: the exact rule, before the answer; nothing where no answer keeps it from coming back."""
    gate = Gate(Rules(default=STRICT_SET), Workspace(RecordingEditor(room)))
    use = gate.look(TOOLS[tool], given)
    assert gate.promises(use) == [one.format(base=room.parent) for one in told]
    lost = msgspec.structs.replace(gate.rules, lost=PermissionDecision("ask", "agent is missing"))
    assert msgspec.structs.replace(gate, rules=lost).promises(use) == []


@pytest.mark.parametrize(
    ("line", "kind", "reasons"),
    [
        ("ls", "allow", [("bash: ls allow", "ls")]),
        ("ls; make", "ask", [("bash: * ask", "make")]),
        ("make; ls; npm i; make", "ask", [("bash: * ask", "make"), ("bash: * ask", "npm i")]),
        ("ls; ls -a", "allow", [("bash: ls allow", "ls"), ("bash: ls allow", "ls -a")]),
        ("make; rm x; dd y", "deny", [("bash: rm deny", "rm x"), ("bash: dd deny", "dd y")]),
        (
            "make; cat {base}/outside/k .env",
            "ask",
            [
                ("bash: * ask", "make"),
                ("external_directory: ask ({base}/outside/k)", "{base}/outside/k"),
                ("read: *.env deny (named in a command)", ".env"),
                ("bash: * ask (.env may not be read)", "cat {base}/outside/k .env"),
            ],
        ),
        ("make $(x)", "ask", [("bash: * ask", None)]),
    ],
)
def test_all_rules_that_decide_together_are_named(
    room: Path, line: str, kind: str, reasons: list[tuple[str, str | None]]
) -> None:
    bash: Any = {"ls": "allow", "rm": "deny", "dd": "deny", "*": "ask"}
    gate = Gate(Rules(config={"bash": bash}, default=STRICT_SET), Workspace(RecordingEditor(room)))
    use = gate.look(TOOLS["run_command"], command(line.format(base=room.parent)))
    found = gate.reasons(use)
    assert found[0].decision == gate.decide(use)
    assert {one.decision.kind for one in found} == {kind}
    wanted = [tuple(x and x.format(base=room.parent) for x in one) for one in reasons]
    assert sorted((one.decision.rule, one.about or "") for one in found) == sorted(
        (rule, about or "") for rule, about in wanted
    )


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("grep x .env", "named in a command"),
        ("rg x", "a command comes upon .env"),
        ("grep -r x .", "a command comes upon .env"),
        ("tar c src ../ws", "a command comes upon .env"),
    ],
)
def test_a_question_about_a_denied_file_says_why_it_is_asked(
    room: Path, line: str, why: str
) -> None:
    """Whoever searches a folder has not named the file that is asked about."""
    gate = Gate(
        Rules(config={"bash": "allow"}, default=STRICT_SET), Workspace(RecordingEditor(room))
    )
    use = gate.look(TOOLS["run_command"], command(line))
    assert f"read: *.env deny ({why})" in [one.decision.rule for one in gate.reasons(use)]


def test_what_is_named_is_no_flood(room: Path) -> None:
    gate = Gate(Rules(default=STRICT_SET), Workspace(RecordingEditor(room)))
    line = "; ".join(f"make t{at} {'x' * 400}" for at in range(50))
    found = gate.reasons(gate.look(TOOLS["run_command"], command(line)))
    assert len(found) == 20
    assert all(one.about and len(one.about) <= 200 for one in found)


def test_what_holds_for_all_of_a_use_is_named_too(room: Path) -> None:
    lost = PermissionDecision("ask", "the agent is missing")
    gate = Gate(Rules(config="allow", lost=lost), Workspace(RecordingEditor(room)))
    found = gate.reasons(gate.look(TOOLS["write_file"], {"path": "src/a.py", "content": "x"}))
    assert [(one.decision, one.about) for one in found] == [(lost, None)]


def test_the_question_about_a_loop_says_that_always_is_for_this_input(room: Path) -> None:
    gate = Gate(Rules(default=STRICT_SET), Workspace(RecordingEditor(room)))
    given = {"path": "src/a.py"}
    use = gate.look(TOOLS["read_file"], given, [Call("read_file", given)] * 2)
    assert gate.promises(use) == ["doom_loop: read_file with this input allow"]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("git status", "git status -s"),
        ("git status", "git status && touch X"),
        ("git status", "git status; git status | sh"),
        ("ls", "ls ."),
        ("cat a | sh", "sh"),
        ("cat a | sh", "cat b | sh"),
        ("cd src && make", "make"),
        ("make && ls", "make; ls; touch X"),
        ("echo 'a b'", "echo a b"),
        ("echo $(date)", "echo $(date) "),
    ],
)
def test_always_for_one_command_is_none_for_another(room: Path, first: str, then: str) -> None:
    gate = Gate(Rules(default=STRICT_SET), Workspace(RecordingEditor(room)))
    granted = gate.grants(gate.look(TOOLS["run_command"], command(first)))
    assert decided(room, gate.rules, "run_command", command(first), granted).kind == "allow"
    assert decided(room, gate.rules, "run_command", command(then), granted).kind == "ask"
    elsewhere = command(first, cwd="src")
    assert decided(room, gate.rules, "run_command", elsewhere, granted).kind == "ask"


@pytest.mark.parametrize(
    "command", ["cat {}", "cat {}/*", "git -C {} status", "ls > {}/a", "cp a {}"]
)
def test_a_name_that_no_disk_takes_is_decided_about(room: Path, command: str) -> None:
    """B48: too long a name is no fault of the server's."""
    gate = Gate(Rules(default=STRICT_SET), Workspace(RecordingEditor(room)))
    use = gate.look(TOOLS["run_command"], {"command": command.format("n" * 300)})
    assert gate.decide(use).kind in ("allow", "ask")


def test_always_without_a_path_is_for_the_folder_that_was_meant(room: Path) -> None:
    """M5.6: as narrow as the request, not all that its key governs."""
    gate = Gate(Rules(default={"*": "ask"}), Workspace(RecordingEditor(room)))
    for tool, given in (("list_files", {}), ("grep", {"pattern": "x"}), ("glob", {"pattern": "*"})):
        granted = gate.grants(gate.look(TOOLS[tool], given))
        assert decided(room, gate.rules, tool, given, granted).kind == "allow", tool
        path = {**given, "path": "src"}
        assert decided(room, gate.rules, tool, path, granted).kind == "ask", tool
        assert decided(room, gate.rules, "read_file", {"path": "a.txt"}, granted).kind == "ask"


def test_always_outside_is_for_this_path_and_this_key(room: Path) -> None:
    gate = Gate(Rules(default=STRICT_SET), Workspace(RecordingEditor(room)))
    granted = gate.grants(gate.look(TOOLS["read_file"], {"path": "../outside/k"}))
    assert decided(room, gate.rules, "read_file", {"path": "../outside/k"}, granted).kind == "allow"
    for tool, path in [
        ("write_file", "../outside/k"),
        ("edit_file", "../outside/k"),
        ("grep", "../outside/k"),
        ("read_file", "../outside/j"),
        ("list_files", "../outside"),
        ("read_file", "../outside/k/x"),
    ]:
        assert decided(room, gate.rules, tool, {"path": path}, granted).kind == "ask", (tool, path)
    for line in ("cat ../outside/k", "cp ../outside/k a"):
        assert decided(room, gate.rules, "run_command", command(line), granted).kind == "ask"


def test_always_for_a_command_is_for_where_its_paths_lead(room: Path) -> None:
    """B48: a link that stands in the place of a file later leads to what nobody was asked about."""
    gate = Gate(Rules(default=STRICT_SET), Workspace(RecordingEditor(room)))
    lines = ["cat src/a.py", "grep -r x src", "cp a.txt src/new", "cat ../outside/k"]
    granted = [
        rule
        for line in lines
        for rule in gate.grants(gate.look(TOOLS["run_command"], command(line)))
    ]
    assert all(
        decided(room, gate.rules, "run_command", command(line), granted).kind == "allow"
        for line in lines
    )
    (room / "src/a.py").unlink()
    (room / "src/a.py").symlink_to("../../outside/k")
    (room / "src/new").symlink_to("../.env")
    (room / "src/.env").write_text("x")
    (room.parent / "outside/k").unlink()
    (room.parent / "outside/k").symlink_to("j")
    for line in lines:
        assert decided(room, gate.rules, "run_command", command(line), granted).kind == "ask", line


@pytest.mark.parametrize("path", ["src/a.py", "src/new.py", "Makefile", ".git/hooks/post-commit"])
@pytest.mark.parametrize("tool", ["write_file", "edit_file"])
def test_always_about_a_file_holds_in_no_other_workspace(room: Path, path: str, tool: str) -> None:
    """M5.6: not after a restart with another folder, nor in the other of two."""
    other = room.parent / "other"
    (other / ".git/hooks").mkdir(parents=True)
    rules = Rules(default=STRICT_SET)
    gate = Gate(rules, Workspace(RecordingEditor(room)))
    granted = gate.grants(gate.look(TOOLS[tool], {"path": path}))
    found = decided(room, rules, tool, {"path": path}, granted)
    key = "edit" if tool == "edit_file" else "write"
    told = f"{key}: {path} allow (in the workspace)"
    assert (found.kind, found.source, found.rule) == ("allow", "session", told)
    assert decided(other, rules, tool, {"path": path}, granted).kind == "ask"
    both = Gate(rules, Workspace(RecordingEditor(room, other)))
    for base, kind in ((room, "allow"), (other, "ask")):
        use = both.look(TOOLS[tool], {"path": str(base / path)})
        assert both.decide(use, granted).kind == kind


@pytest.mark.parametrize("pattern", ["*", "**", "/**", "/src/a.py", "src/../*", "src/*"])
def test_no_pattern_of_a_session_allows(room: Path, pattern: str) -> None:
    """Only what was asked about is remembered, and that by what it exactly is."""
    keys = ("write", "edit", "read", "bash", "external_directory", "*")
    odd = [{"key": key, "pattern": pattern, "decision": "allow"} for key in keys]
    rules = Rules(default=STRICT_SET)
    for tool, given in (
        ("write_file", {"path": "src/a.py"}),
        ("read_file", {"path": "../outside/k"}),
        ("run_command", command("touch src/a.py")),
    ):
        assert decided(room, rules, tool, given, odd).kind == "ask"


def test_what_was_answered_about_a_denied_file_is_told_as_the_sessions_rule(room: Path) -> None:
    (room / ".env").write_text("K=1")
    gate = Gate(Rules(default=STRICT_SET), Workspace(RecordingEditor(room)))
    use = gate.look(TOOLS["run_command"], command("cat .env"))
    found = gate.decide(use, gate.grants(use))
    assert (found.kind, found.source) == ("allow", "session")
    assert found.rule.startswith("bash: cat .env allow")


def test_deny_is_not_lifted_by_an_answer(room: Path) -> None:
    """M5.12."""
    rules = Rules(agent=AGENTS["plan"].permission, default=STRICT_SET)
    granted = [
        {"key": "write", "pattern": "*", "decision": "allow"},
        {"key": "bash", "exactly": [str(room), "touch X"], "decision": "allow"},
        {"key": "bash", "pattern": "*", "decision": "allow"},
    ]
    assert decided(room, rules, "write_file", {"path": "a"}, granted).kind == "deny"
    assert decided(room, rules, "run_command", command("touch X"), granted).kind == "deny"


def test_session_denies_whatever_else_allows_it(room: Path) -> None:
    """M5.12: also what was answered "always" to before or after."""
    rules = Rules(config="allow", default=OPEN_SET)
    denied = [
        {"key": "write", "pattern": "src/*", "decision": "allow"},
        {"key": "write", "pattern": "src/*", "decision": "deny"},
        {"key": "bash", "exactly": [str(room), "git push"], "decision": "allow"},
        {"key": "bash", "pattern": "git push*", "decision": "deny"},
        {"key": "read", "pattern": "src/a.py", "decision": "deny"},
    ]
    found = decided(room, rules, "write_file", {"path": "src/a.py"}, denied)
    assert (found.kind, found.source) == ("deny", "session")
    assert decided(room, rules, "write_file", {"path": "b.py"}, denied).kind == "allow"
    assert decided(room, rules, "run_command", command("git push"), denied).kind == "deny"
    assert decided(room, rules, "run_command", command("git status"), denied).kind == "allow"
    assert decided(room, rules, "read_file", {"path": "src/a.py"}, denied).kind == "deny"
    gate = Gate(rules, Workspace(RecordingEditor(room)))
    use = gate.look(TOOLS["read_file"], {"path": "src/a.py"})
    assert not gate.readable(use, denied)(room / "src/a.py")


# doom_loop


def looped(*used: dict[str, Any], rules: Rules, answer: str = "reject") -> tuple[list[str], Core]:
    """The statuses of tool uses that came in one answer each, and how often was asked."""
    asked: list[PermissionRequest] = []

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request)
        return PermissionAnswer(answer)  # type: ignore[arg-type]

    scripts = [uses((f"c{at}", "fake", given)) for at, given in enumerate(used)]
    turn = a_turn(*scripts, says("x"), tools=[fake_tool()], rules=rules, ask=ask)
    events = run(turn)
    assert all("doom_loop" in request.rule for request in asked)
    return [statuses(events, f"c{at}")[-1] for at in range(len(used))], turn.session


def test_third_same_call_in_a_row_is_asked_about() -> None:
    """M5.6: the condition doom_loop, by default ask."""
    a, b = {"x": 1}, {"x": 2}
    rules = Rules(default=STRICT_SET)
    assert looped(a, a, a, rules=rules)[0] == ["done", "done", "rejected"]
    assert looped(a, a, b, a, a, rules=rules)[0] == ["done"] * 5
    assert looped(a, a, a, b, a, rules=rules)[0] == ["done", "done", "rejected", "done", "done"]
    deny = Rules(config={"doom_loop": "deny"}, default=STRICT_SET)
    assert looped(a, a, a, rules=deny, answer="once")[0] == ["done", "done", "rejected"]
    allow = Rules(config={"doom_loop": "allow"}, default=STRICT_SET)
    assert looped(a, a, a, a, rules=allow)[0] == ["done"] * 4


def test_calls_of_one_answer_count_too() -> None:
    turn = a_turn(
        uses(*[(f"c{at}", "fake", {"x": 1}) for at in range(3)]),
        says("x"),
        tools=[fake_tool()],
        rules=Rules(default=STRICT_SET),
    )
    events = run(turn)
    assert [statuses(events, f"c{at}")[-1] for at in range(3)] == ["done", "done", "rejected"]


def test_always_for_a_loop_is_for_this_call(room: Path) -> None:
    ended, session = looped(*[{"x": 1}] * 5, rules=Rules(default=STRICT_SET), answer="always")
    assert ended == ["done"] * 5
    assert [rule["key"] for rule in session.rules] == ["doom_loop"]


def test_another_turn_counts_anew() -> None:
    session = Core()
    for _ in range(2):
        turn = a_turn(
            uses(*[(f"c{at}", "fake", {}) for at in range(2)]),
            says("x"),
            tools=[fake_tool()],
            rules=Rules(default=STRICT_SET),
            session=session,
        )
        events = run(turn)
        assert [statuses(events, f"c{at}")[-1] for at in range(2)] == ["done", "done"]


# After an approval


def approving(room: Path, *used: tuple[str, dict[str, Any]], **given: Any) -> list[Any]:
    """The results of tool uses that the user allows, each once."""

    async def ask(_: PermissionRequest) -> PermissionAnswer:
        return PermissionAnswer("once")

    calls = [(f"c{at}", name, value) for at, (name, value) in enumerate(used)]
    turn = a_turn(
        uses(*calls),
        says("x"),
        tools=[*TOOLS.values()],
        workspace=Workspace(RecordingEditor(room)),
        rules=given.pop("rules", Rules(default=STRICT_SET)),
        ask=ask,
        **given,
    )
    run(turn)
    found = {content[0]: content[1] for role, content in told(turn.session) if role == "tool"}
    return [found[id] for id, _, _ in calls]


def test_what_was_approved_outside_is_really_read(room: Path) -> None:
    """The approval opens this path to this tool use, and nothing beside it."""
    outside = room.parent / "outside"
    (outside / ".env").write_text("SECRET")
    (outside / "link").symlink_to(room / "src")
    read, listed, found, searched = approving(
        room,
        ("read_file", {"path": "../outside/k"}),
        ("list_files", {"path": str(outside)}),
        ("glob", {"pattern": "*", "path": str(outside)}),
        ("grep", {"pattern": ".", "path": str(outside)}),
    )
    assert "text of outside/k" in read
    assert "k" in listed.split()
    assert str(outside / "k") in found
    assert "text of outside/k" in searched
    assert "SECRET" not in searched


def assert_nothing_is_read(
    room: Path, ask: Callable[[PermissionRequest], Awaitable[PermissionAnswer]]
) -> None:
    """Reading the file fails that was there when the user was asked about it."""
    turn = a_turn(
        uses(("c", "read_file", {"path": "../outside/k"})),
        says("x"),
        tools=[TOOLS["read_file"]],
        workspace=Workspace(RecordingEditor(room)),
        rules=Rules(default=STRICT_SET),
        ask=ask,
    )
    assert statuses(run(turn), "c")[-1] == "failed"
    assert "SECRET" not in str(turn.session.snapshot())


def test_link_put_there_after_the_question_leads_nowhere(room: Path) -> None:
    """B48: the path that was asked about is the one that is opened."""
    outside = room.parent / "outside"
    (outside / "secret").write_text("SECRET")

    async def ask(_: PermissionRequest) -> PermissionAnswer:
        (outside / "k").unlink()
        (outside / "k").symlink_to(outside / "secret")
        return PermissionAnswer("once")

    assert_nothing_is_read(room, ask)


def test_folder_swapped_above_after_the_question_leads_nowhere(room: Path) -> None:
    real, decoy = room.parent / "outside", room.parent / "decoy"
    decoy.mkdir()
    (decoy / "k").write_text("SECRET")

    async def ask(_: PermissionRequest) -> PermissionAnswer:
        os.rename(real, room.parent / "gone")
        real.symlink_to(decoy)
        return PermissionAnswer("once")

    assert_nothing_is_read(room, ask)


def test_b04_reject_of_one_call_leaves_the_others(room: Path) -> None:
    """B04: c1 and c3 run, c2 has the user's words, and the model goes on."""

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        if request.tool_use_id == "c2":
            return PermissionAnswer("reject", "not now")
        return PermissionAnswer("once")

    turn = a_turn(
        uses(*[(f"c{at}", "write_file", {"path": f"n{at}", "content": "x"}) for at in (1, 2, 3)]),
        says("went on"),
        tools=[TOOLS["write_file"]],
        workspace=Workspace(RecordingEditor(room)),
        rules=Rules(default=STRICT_SET),
        ask=ask,
    )
    events = run(turn)
    assert [statuses(events, c)[-1] for c in ("c1", "c2", "c3")] == ["done", "rejected", "done"]
    assert [path.name for path in sorted(room.glob("n*"))] == ["n1", "n3"]
    assert "not now" in str(turn.session.snapshot())
    assert events[-1].outcome.text == "went on"  # type: ignore[union-attr]


def test_question_is_taken_back_when_the_turn_ends(room: Path) -> None:
    """An open question ends with its turn, and its answer would come too late."""
    is_open, is_taken_back = asyncio.Event(), asyncio.Event()

    async def ask(_: PermissionRequest) -> PermissionAnswer:
        is_open.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            is_taken_back.set()
            raise
        raise AssertionError

    async def script() -> tuple[list[Any], bool]:
        cancel = asyncio.Event()
        turn = a_turn(
            uses(("c", "write_file", {"path": "n", "content": "x"})),
            tools=[TOOLS["write_file"]],
            workspace=Workspace(RecordingEditor(room)),
            rules=Rules(default=STRICT_SET),
            ask=ask,
            cancel=cancel,
        )
        running = asyncio.create_task(events_of(turn))
        await is_open.wait()
        cancel.set()
        events = await running
        return [e.status for e in events if isinstance(e, ToolUse)], is_taken_back.is_set()

    assert asyncio.run(script()) == (["proposed", "cancelled"], True)
    assert not (room / "n").exists()


# Files from which other programs run something (B49)

OPENLY = Rules(config={"edit": "allow", "write": {"src/**": "allow", "*": "allow"}})
GUARDED = [
    *(".git/config", ".git", "sub/.git/hooks/x", ".GIT/config", "src/.git", "link/config"),
    *(".tiro/agents/build.md", ".tiro/config.yaml", ".Tiro/x", ".tiro/plan/p.md", ".vscode/x.json"),
    *(".husky/pre-commit", ".envrc", ".idea/workspace.xml", "src/../.git/config", "src/to-git/x"),
    *(".githooks/x", ".pre-commit-config.yaml", "src/.dir-locals.el", "a.code-workspace", ".npmrc"),
    *(".claude/settings.json", ".cursor/mcp.json", ".mcp.json", "pkg/.exrc", ".yarnrc.yml"),
    *(".devcontainer/devcontainer.json", ".zed/tasks.json", ".mise.toml", ".cargo/config.toml"),
]


@pytest.mark.parametrize("path", GUARDED)
def test_no_rule_allows_to_write_a_guarded_file_but_by_its_name(room: Path, path: str) -> None:
    for name in (".git", "src"):
        (room / name).mkdir(exist_ok=True)
    (room / "link").symlink_to(".git")
    (room / "src/to-git").symlink_to("../.git")
    for tool in ("write_file", "edit_file"):
        decision = decided(room, OPENLY, tool, {"path": path})
        assert decision.kind == "ask"
        assert "asks until a rule names it" in decision.rule


def test_rule_that_names_a_guarded_file_allows_it(room: Path) -> None:
    for pattern in (".git/info/exclude", ".git/**", "**/.git/*/*"):
        named = Rules(config={"write": {pattern: "allow", "*": "ask"}})
        given = {"path": ".git/info/exclude"}
        assert decided(room, named, "write_file", given).kind == "allow"
    for pattern in ("*.code-workspace", "a.code-workspace"):
        named = Rules(config={"write": {pattern: "allow", "*": "ask"}})
        given = {"path": "a.code-workspace"}
        assert decided(room, named, "write_file", given).kind == "allow"
    gate = Gate(OPENLY, Workspace(RecordingEditor(room)))
    use = gate.look(TOOLS["write_file"], {"path": ".git/info/exclude"})
    grants = gate.grants(use)
    assert gate.decide(use, grants).kind == "allow"
    assert decided(room, OPENLY, "write_file", {"path": ".git/config"}, grants).kind == "ask"


def test_ordinary_files_with_such_names_do_not_ask(room: Path) -> None:
    for path in (".gitignore", ".gitattributes", "src/git", "git/config", ".github/x", "x.git"):
        assert decided(room, OPENLY, "write_file", {"path": path}).kind == "allow"


def test_command_that_may_write_a_guarded_file_asks(room: Path) -> None:
    (room / ".git").mkdir()
    (room / "link").symlink_to(".git")
    table: dict[str, Any] = {"cp *": "allow", "cat *": "allow", "mv *": "allow"}
    rules = Rules(config={"bash": table, "write": "allow"}, default=STRICT_SET)
    for line in ("cp a .git/hooks/x", "mv a .GIT", "cp a -t.git", "cp -r a link", "cp a .tiro/x"):
        assert decided(room, rules, "run_command", command(line)).kind == "ask", line
    for line in ("cat .git/config", "cp src/a.py src/b.py"):
        assert decided(room, rules, "run_command", command(line)).kind == "allow", line


@pytest.mark.parametrize(
    "line",
    [
        *("prlimit rm x", "setarch x86_64 rm x", "linux64 rm x", "choom -n 1 -- rm x"),
        *("npm exec rm x", "npm x -- rm x", "uv run rm x", "poetry run rm x", "pipenv run rm x"),
        *("bundle exec rm x", "mise exec -- rm x", "mise x -- rm x", "pnpm dlx rm x", "env rm x"),
    ],
)
def test_denied_program_is_found_behind_another(room: Path, line: str) -> None:
    """B49: `"*": allow` with `rm: deny` beside it."""
    rules = Rules(config={"bash": {"*": "allow", "rm": "deny"}})
    assert decided(room, rules, "run_command", command(line)).kind == "deny"


@pytest.mark.parametrize(
    "line", ["npm run build", "cargo run --release", "npm start x", "make -j4 rm-cache", "go run ."]
)
def test_what_runs_only_its_own_does_not_ask_for_that(room: Path, line: str) -> None:
    rules = Rules(config={"bash": {"*": "allow", "rm": "deny"}})
    assert decided(room, rules, "run_command", command(line)).kind == "allow"


def test_line_of_very_many_words_takes_no_square_of_them(room: Path) -> None:
    """Each word is compared by itself: 14,000 took seconds in the event loop."""
    rules = Rules(config={"bash": {"a b": "ask", "*": "allow"}}, default=STRICT_SET)
    assert decided(room, rules, "run_command", command("a;" * 14_000)).kind == "ask"
    rules = Rules(config={"bash": {"a b": "deny", "make b": "deny"}}, default=STRICT_SET)
    for line in ("env " + "-x a " * 6000, "env " + "make " * 6000):
        assert decided(room, rules, "run_command", command(line)).kind == "ask"
        assert decided(room, rules, "run_command", command(f"{line} b")).kind == "deny"


# A variable in front of a command is part of what was asked about


@pytest.mark.parametrize("given", ["NODE_ENV=test", "CI=1", "DEBUG=1 CI=1"])
def test_always_holds_for_the_variables_in_front_as_they_are(room: Path, given: str) -> None:
    """M5.6: a script may choose by them what it does."""
    gate = Gate(Rules(default=STRICT_SET), Workspace(RecordingEditor(room)))
    use = gate.look(TOOLS["run_command"], command(f"{given} npm run reset-db"))
    granted = gate.grants(use)
    assert gate.reasons(use)[0].about == f"{given} npm run reset-db"
    assert gate.decide(use, granted).kind == "allow"
    for other in ("NODE_ENV=production ", "NODE_ENV=test CI=1 ", "", "CI=0 "):
        line = f"{other}npm run reset-db"
        assert decided(room, Rules(default=STRICT_SET), "run_command", command(line), granted) != (
            gate.decide(use, granted)
        )


def test_a_pattern_that_allows_speaks_for_its_own_variables(room: Path) -> None:
    patterns = ("NODE_ENV=test npm run reset-db", "NODE_ENV=test npm run x*", "make")
    rules = Rules(config={"bash": dict.fromkeys(patterns, "allow")}, default=STRICT_SET)
    for line, kind in {
        "NODE_ENV=test npm run reset-db": "allow",
        "NODE_ENV=test npm run x1": "allow",
        "NO_COLOR=1 NODE_ENV=test npm run reset-db": "allow",
        "NO_COLOR=1 make": "allow",
        "NODE_ENV=production npm run reset-db": "ask",
        "npm run reset-db": "ask",
        "CI=1 make": "allow",
        "DEBUG=1 make": "ask",
    }.items():
        assert decided(room, rules, "run_command", command(line)).kind == kind, line


def test_a_variable_in_front_hides_no_command_from_what_denies(room: Path) -> None:
    for pattern in ("npm run *", "NODE_ENV=test npm run *"):
        rules = Rules(config={"bash": {pattern: "deny", "*": "allow"}})
        for line in ("NODE_ENV=test npm run x", "CI=1 NODE_ENV=test npm run x"):
            assert decided(room, rules, "run_command", command(line)).kind == "deny"
    rules = Rules(agent=AGENTS["plan"].permission, default=STRICT_SET)
    assert decided(room, rules, "run_command", command("CI=1 cat src/a.py")).kind == "allow"
