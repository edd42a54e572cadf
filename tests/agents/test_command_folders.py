"""What a command comes upon below folders, and what it does not (B48, B49)."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.agents.every_tool import tools_by_name
from tests.fakes import RecordingEditor
from tiro.agents import walks
from tiro.agents.built_in import built_in_agents
from tiro.agents.gate import Gate
from tiro.agents.permissions import STRICT_SET, PermissionDecision, Rules
from tiro.tools.workspace import Workspace

TOOLS = tools_by_name()
AGENTS = {agent.name: agent for agent in built_in_agents()}
NAMES = ("grep", "rg", "cp", "mv", "diff", "tar", "unzip", "ls", "git diff", "install", "git blame")


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A workspace with ordinary folders, a denied file in one, and a link out of another."""
    for name in ("ws/src/a.py", "ws/src/deep/b.py", "ws/docs/c.md", "ws/keys/k.pem", "outside/k"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\n")
    (tmp_path / "ws/out").mkdir()
    (tmp_path / "ws/out/link").symlink_to("../../outside")
    (tmp_path / "ws/out/a.py").symlink_to("../../outside/new")
    return tmp_path / "ws"


def decided(room: Path, line: str) -> PermissionDecision:
    table: Any = {"bash": dict.fromkeys(NAMES, "allow"), "read": {"keys/**": "deny"}}
    gate = Gate(Rules(config=table, default=STRICT_SET), Workspace(RecordingEditor(room)))
    return gate.decide(gate.look(TOOLS["run_command"], {"command": line}))


@pytest.mark.parametrize(
    "line",
    [
        *("grep -rn x src", "grep x src/a.py", "rg x src docs", "grep -r x out"),
        *("cp -r src there", "cp src/a.py docs", "cp -rL src docs", "cp -r out there", "ls -R out"),
        *("diff -r src docs", "tar cf a.tar src", "mv src there", "cp src/a.py ."),
    ],
)
def test_folder_without_anything_denied_does_not_ask(room: Path, line: str) -> None:
    assert decided(room, line).kind == "allow"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("grep -r x .", "keys/** deny"),
        ("grep -r x", "keys/** deny"),
        ("rg x", "keys/** deny"),
        ("cp -r keys docs", "keys/** deny"),
        ("mv keys docs", "keys/** deny"),
        ("diff -r src .", "keys/** deny"),
        ("grep -R x out", "external_directory"),
        ("cp -rL out there", "external_directory"),
        ("diff -r src out", "external_directory"),
        ("cp src/a.py out", "external_directory"),
        ("cp -r src/. out", "external_directory"),
        ("install -t out src/a.py", "external_directory"),
        ("unzip a.zip", "write:"),
    ],
)
def test_what_lies_below_a_folder_is_asked_about(room: Path, line: str, told: str) -> None:
    decision = decided(room, line)
    assert decision.kind == "ask"
    assert told in decision.rule


def decided_where_all_is_allowed(room: Path, line: str) -> PermissionDecision:
    table: Any = {"bash": "allow", "edit": {"keys/**": "deny"}, "read": {"keys/**": "deny"}}
    gate = Gate(Rules(config=table, default=STRICT_SET), Workspace(RecordingEditor(room)))
    return gate.decide(gate.look(TOOLS["run_command"], {"command": line}))


@pytest.mark.parametrize(
    "line",
    [
        *("grep -r x . > o; cat o", "(grep -r x .)", "grep -r x . # y", "x=1; grep -r x ."),
        *("grep -r x $PWD", 'grep -r x "${PWD}"', "x=.; grep -r x $x", "grep -r x $(pwd)"),
        *("grep -r x .\n", "(tar cO . | grep -a x)", "sh -c 'grep -r x .'", "env grep -r x ."),
        *("find . -type f -exec cat {} + > o; cat o", "find . -type f -exec cat {} \\; > o"),
        *("find . -type f -exec cat {} ';' > o", "find . -type f -execdir cat {} +"),
        *("find $PWD -type f -exec cat {} + > o", "bash -c 'find . -type f -exec cat {} +'"),
        *("find . \\( -name a -o -type f \\) -exec cat {} + > o", "find -L . -exec cat {} +"),
        *("find . -delete > log", "rm -rf $PWD", 'rm -rf "$PWD"', "chmod -R 0 . > log"),
    ],
)
def test_a_line_that_is_not_plain_goes_through_the_same_folders(room: Path, line: str) -> None:
    decision = decided_where_all_is_allowed(room, line)
    assert decision.kind == "ask"
    assert "keys/** deny" in decision.rule


@pytest.mark.parametrize(
    "line",
    [
        *("grep -r x src > o; cat o", "(grep -r x src docs)", "grep -r x $PWD/src", "x=1; ls"),
        *("grep -rn '$this->x' src > o", "grep -rn 'x$' src > o", "env grep -r x src"),
        *("find . -name '*.md' -exec cat {} + > o", "find src -type f -exec cat {} \\; > o"),
        *("sh -c 'find . -name \"*.md\" -exec cat {} +'", "find . -name '*.py' > o"),
        *("find src -delete > log", 'rm -f "$x"', "rm -rf $PWD/src", "make > log 2>&1; echo $?"),
    ],
)
def test_such_a_line_is_not_asked_about_for_what_it_leaves_alone(room: Path, line: str) -> None:
    assert decided_where_all_is_allowed(room, line).kind == "allow"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        *(("git blame src/a.py", "allow"), ("git blame keys/k.pem", "ask"), ("git diff", "ask")),
        *(("git diff -- src", "allow"), ("git diff --cached -- src", "allow")),
    ],
)
def test_what_git_follows_counts_only_where_all_of_it_is_shown(
    room: Path, line: str, kind: str
) -> None:
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=room, check=True)
    (room / "keys/k.pem").write_text("y\n")
    assert decided(room, line).kind == kind


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        *(("git diff", "ask"), ("git diff -- .", "allow"), ("git blame src/a.py", "allow")),
        *(("git log -p", "ask"), ("git diff -- ../outside", "ask")),
        *(("git diff --stat", "allow"), ("git status", "allow"), ("git log --stat", "allow")),
    ],
)
def test_a_repository_above_the_workspace_has_files_outside(
    room: Path, line: str, kind: str
) -> None:
    """B48: its text is shown by no rule for git alone; its names are."""
    (room / "keys/k.pem").unlink()
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=room.parent, check=True)
    (room.parent / "outside/k").write_text("y\n")
    names = ("<read-only>", "git diff", "git log", "git blame")
    table: Any = dict.fromkeys(names, "allow")
    gate = Gate(Rules(config={"bash": table}, default=STRICT_SET), Workspace(RecordingEditor(room)))
    decision = gate.decide(gate.look(TOOLS["run_command"], {"command": line}))
    assert decision.kind == kind
    assert kind == "allow" or "external_directory" in decision.rule


@pytest.fixture
def big(room: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace with a folder that is too large to look at."""
    monkeypatch.setattr(walks, "MAX_ENTRIES", 60)
    for at in range(40):
        (room / f"big{at % 2}").mkdir(exist_ok=True)
        (room / f"big{at % 2}/{at}").touch()
    return room


@pytest.mark.parametrize("table", ["allow", dict.fromkeys([*NAMES, "rm", "chmod"], "allow")])
@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("grep -r x docs", "allow"),
        ("grep -r x big0", "allow"),
        ("grep -r x big0 big1 src", "allow"),
        ("grep -r x big0 big1 && grep -r x big0", "ask"),
        ("cp -r big0 there; cp -r big1 here; grep -r x big0", "ask"),
        ("mv big0 big1 there && ls there", "ask"),
        ("rm -r big0 && chmod -R a-w big1 && rm -r big1", "ask"),
    ],
)
def test_one_budget_holds_for_a_whole_line(big: Path, line: str, kind: str, table: Any) -> None:
    """B49: the gate is held up by no number of folders, and says why it asks."""
    gate = Gate(Rules(config={"bash": table}, default=STRICT_SET), Workspace(RecordingEditor(big)))
    use = gate.look(TOOLS["run_command"], {"command": line})
    decision = gate.decide(use)
    assert decision.kind == kind
    if kind == "ask":
        told = [one.decision.rule for one in gate.reasons(use)]
        assert any("more than can be looked at" in one for one in told)
        assert gate.decide(use, gate.grants(use)).kind == "allow"
        assert "what could not be looked at" in str(gate.promises(use))


def test_a_budget_ends_by_time_but_not_for_a_small_folder() -> None:
    now = [0.0]
    budget = walks.Budget(lambda: now[0])
    now[0] = walks.MAX_SECONDS * 2
    assert all(budget.spend() for _ in range(walks.ALWAYS))
    assert not budget.spend()
    assert budget.is_spent
    now[0] = 0.0
    assert not budget.spend()


@pytest.mark.parametrize("agent", ["plan", "explore"])
def test_search_below_folders_only_reads_where_nothing_is_denied(room: Path, agent: str) -> None:
    """M5.9: looked at first, so that the agents that only read can search."""
    table: Any = {"read": {"keys/**": "deny"}}
    rules = Rules(agent=AGENTS[agent].permission, config=table, default=STRICT_SET)
    gate = Gate(rules, Workspace(RecordingEditor(room)))

    def kind(line: str) -> str:
        return gate.decide(gate.look(TOOLS["run_command"], {"command": line})).kind

    free = ["grep -rn x src", "rg x src docs", "diff -r src docs", "cd src && rg x", "rg x out"]
    assert [line for line in free if kind(line) != "allow"] == []
    others = [
        *("grep -r x .", "rg x", "grep -R x out", "diff -r src .", "cd keys && rg x", "rg x keys"),
        *("cp -r src there", "tar cf a.tar src", "git grep x", "rg --pre ./x x src", "rg x ../out"),
        *("grep -r x src > y", "rg x src | tee y", "cd docs; rg x", "rg -f keys/k.pem x src"),
    ]
    assert [line for line in others if kind(line) == "allow"] == []


def test_file_that_is_named_like_an_option_is_looked_at(room: Path) -> None:
    """B48: behind `--` a word is a path, whatever it begins with."""
    (room / "-k").symlink_to("keys/k.pem")
    (room / "-d").symlink_to("keys")
    for line in ("grep x -- -k", "diff -r docs -- -d", "diff -r -- -d docs"):
        assert decided(room, line).kind != "allow", line


@pytest.mark.parametrize(
    "line",
    [
        *("find . -name sub -exec cp -r {} out \\;", "find . -name sub -exec grep -r KEY {} +"),
        *("find . -name sub -exec tar cf o.tar {} +", "find . -name sub -exec rg KEY {} +"),
        *("find sub -name sub -exec cp -r {} out \\;", "find . -name '.*' -exec cp -r {} o \\;"),
        *(
            "find . -name led -exec grep -r KEY {} +",
            "find . -name 's*' -exec sh -c 'cat $0/*' {} +",
        ),
        *("find . -name sub -exec cp -r {} out \\; > o", "find $PWD/sub -name sub -exec mv {} o +"),
        *("find . -name sub -exec diff {} docs \\;", "find . -name sub -exec rm -r {} +"),
    ],
)
def test_a_folder_that_find_hands_over_is_looked_at_as_a_whole(room: Path, line: str) -> None:
    """B48: a test of names holds for the folder, and not for what lies in it."""
    assert decided_beside_env(room, line).kind != "allow"


@pytest.mark.parametrize(
    "line",
    [
        *("find . -name '*.py' -exec grep -n foo {} +", "find . -name sub -exec ls {} +"),
        *(
            "find . -name sub -exec grep -n foo {} +",
            "find . -name '*.py' -exec sed -i s/a/b/ {} +",
        ),
        *("find . -type f -name sub -exec cp {} there \\;", "find . -name '*.md' -exec rm {} +"),
        *("find . -name docs -exec cp -r {} there \\;", "find . -name deep -exec grep -r x {} +"),
    ],
)
def test_what_find_does_not_hand_over_is_left_alone(room: Path, line: str) -> None:
    assert decided_beside_env(room, line).kind == "allow"


def decided_beside_env(room: Path, line: str) -> PermissionDecision:
    """With the deny of `.env` that is always there, and no link out of the workspace."""
    (room / "out/link").unlink()
    (room / "out/a.py").unlink()
    (room / "sub/inner").mkdir(parents=True)
    (room / "sub/inner/.env").write_text("KEY=1\n")
    (room / "led").symlink_to("sub/inner")
    gate = Gate(
        Rules(config={"bash": "allow"}, default=STRICT_SET), Workspace(RecordingEditor(room))
    )
    return gate.decide(gate.look(TOOLS["run_command"], {"command": line}))
