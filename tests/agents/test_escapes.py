"""Attempts to escape, made for real: real tools, a real workspace, a real shell.

The rules allow much and the user says no to every question; so whatever happens was not asked.
"""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.escapes import (
    ALLOWED,
    COPIES,
    FOLDERS,
    LINES,
    OPTIONS,
    PATHS,
    PICKAXES,
    PLAIN,
    READ_COPIES,
    SWEEPS,
    TEXTS,
)
from tests.agents.every_tool import tools_by_name
from tests.agents.turns import a_turn, run, statuses, told
from tests.fakes import RecordingEditor, says, uses
from tiro.agents.built_in import built_in_agents
from tiro.agents.command_rules import READ_ONLY
from tiro.agents.gate import Gate
from tiro.agents.permissions import STRICT_SET, Rules
from tiro.tools.editor import PermissionAnswer, PermissionRequest
from tiro.tools.workspace import Workspace

TOOLS = tools_by_name()
AGENTS = {agent.name: agent for agent in built_in_agents()}
SECRET = "OUTSIDE-SECRET"
BLOB = hashlib.sha1(f"blob {len(SECRET)}\0{SECRET}".encode()).hexdigest()
"""By which git knows the secret."""
AUTHOR = "-c user.name=a -c user.email=a@b"
RULES = Rules(
    config={"bash": dict.fromkeys(ALLOWED, "allow"), "edit": "allow", "write": "allow"},
    default=STRICT_SET,
)


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `.git` of a repository in which the secret of `.env` is committed."""
    folder = tmp_path_factory.mktemp("repository")
    (folder / "a.txt").write_text("a\n")
    (folder / ".env").write_text(SECRET)
    for line in ("init -q --template=", "add .", f"{AUTHOR} commit -q -m first"):
        subprocess.run(["git", *line.split()], cwd=folder, check=True, timeout=60)
    return folder / ".git"


@pytest.fixture
def base(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The workspace `ws` with links of every kind, and what must stay as it is beside it."""
    for name in ("ws/a.txt", "ws/sub/b.txt", "ws/.tiro/plan/p.md", "ws-secret/k", "outside/k"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a\n" if name.startswith("ws/") else SECRET)
    ws = tmp_path / "ws"
    (ws / ".env").write_text(SECRET)
    shutil.copytree(repository, ws / ".git")
    for name, target in {
        "to-dir": "../outside",
        "to-file": "../outside/k",
        "to-up": "..",
        "sub/to-far": "../../outside",
        "chain": "to-dir",
        "chain-file": "to-file",
        "to-env": ".env",
        "loop": "loop",
        "to-fifo": "fifo",
        ".tiro/plan/link.md": "../../a.txt",
        "to-plan": ".tiro/plan",
    }.items():
        (ws / name).symlink_to(target)
    for name in ("pay/k", "nested/.husky/x"):
        (ws / name).parent.mkdir(parents=True)
        (ws / name).write_text("escaped\n")
    (ws / "dash").mkdir()
    (ws / "dash/--output=X.txt").write_text("")
    (ws / "in").mkdir()
    (ws / "in/k").symlink_to("../../outside/k")
    os.mkfifo(ws / "fifo")
    os.mkfifo(tmp_path / "outside/fifo")
    for name in ("evil.sh", "evil", "git", "sub/git", "git-evil"):
        (ws / name).write_text("#!/bin/sh\ntouch X ../outside/X\n")
        (ws / name).chmod(0o755)
    (ws / "list").write_text(".env ../outside/k\n")
    (ws / "evil.py").write_text("open('X', 'w')")
    (ws / "evil.mk").write_text("all:\n\ttouch X\n")
    monkeypatch.setenv("HOME", str(tmp_path / "outside"))
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)


def beside(base: Path) -> dict[str, Any]:
    """Everything outside the workspace, with its content."""
    found: dict[str, Any] = {}
    for folder in ("outside", "ws-secret"):
        for path in (base / folder).rglob("*"):
            found[str(path)] = path.read_text() if path.is_file() else path.lstat().st_mode
    found["names"] = sorted(os.listdir(base))
    return found


def attempt(
    base: Path, *used: tuple[str, dict[str, Any]], answer: Any = "reject", rules: Rules = RULES
) -> tuple[list[str], list[PermissionRequest], str]:
    """Let a model use these tools: how each ended, what was asked, and all results."""
    asked: list[PermissionRequest] = []

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request)
        return PermissionAnswer(answer)

    calls = [(f"c{at}", name, given) for at, (name, given) in enumerate(used)]
    turn = a_turn(
        uses(*calls),
        says("done"),
        tools=[*TOOLS.values()],
        workspace=Workspace(RecordingEditor(base / "ws")),
        rules=rules,
        ask=ask,
    )
    events = run(turn)
    results = [content[1] for role, content in told(turn.session) if role == "tool"]
    return [statuses(events, id)[-1] for id, _, _ in calls], asked, "\n".join(results)


def allowed(base: Path, lines: list[str], rules: Rules) -> list[tuple[str, dict[str, Any]]]:
    """The command lines that run without a question, as tool uses.

    That the others do not is shown where each of them is tried with a turn of its own.
    """
    gate = Gate(rules, Workspace(RecordingEditor(base / "ws")))
    used = [("run_command", {"command": line}) for line in lines]
    uses = [gate.look(TOOLS[name], given) for name, given in used]
    return [one for one, use in zip(used, uses, strict=True) if gate.decide(use).kind == "allow"]


def real(text: str, base: Path) -> str:
    return text.replace("{base}", str(base)).replace("{long}", "x" * 5000).replace("{blob}", BLOB)


def in_control(line: str) -> str:
    """A line with its control characters and rare blanks for what stands for them."""
    return re.sub(
        r"\\(n|r|t|v|x00|u[0-9a-f]{4})",
        lambda found: f"\\{found[1]}".encode().decode("unicode_escape"),
        line,
    )


def test_corpus_is_large() -> None:
    assert len(LINES) + len(FOLDERS) + len(PATHS) * 7 >= 600
    assert len(OPTIONS) >= 200
    assert len({*LINES, *OPTIONS}) == len(LINES) + len(OPTIONS)


@pytest.mark.parametrize("path", PATHS)
def test_no_path_leads_out(base: Path, path: str) -> None:
    """B48: by every tool that takes a path; nothing outside is seen, made or changed."""
    given = {"path": real(path.replace("\\0", "\0"), base)}
    before = beside(base)
    ended, asked, results = attempt(
        base,
        ("read_file", given),
        ("list_files", given),
        ("glob", {**given, "pattern": "*"}),
        ("grep", {**given, "pattern": "."}),
        ("write_file", {**given, "content": "escaped"}),
        ("edit_file", {**given, "old_text": SECRET, "new_text": "escaped"}),
        ("multi_edit", {**given, "edits": [{"old_text": SECRET, "new_text": "escaped"}]}),
    )
    assert beside(base) == before
    assert SECRET not in results
    assert all(
        request.preview and "Outside the workspace: /" in request.preview for request in asked
    )
    assert ended[0] in ("rejected", "failed")


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_command_runs_in_a_folder_outside(base: Path, folder: str) -> None:
    """B48: the shell's `cwd` too."""
    before = beside(base)
    ended, _, _ = attempt(base, ("run_command", {"command": "ls", "cwd": real(folder, base)}))
    assert beside(base) == before
    assert ended[0] in ("rejected", "failed")


@pytest.mark.parametrize("n", range(8))
def test_b49_no_line_gets_past_the_rules(base: Path, n: int) -> None:
    """B49: X never exists, and nothing outside is seen or changed."""
    before, lines = beside(base), LINES[n::8]
    commands = [{"command": in_control(real(line, base)), "timeout_seconds": 5} for line in lines]
    ended, asked, results = attempt(base, *(("run_command", given) for given in commands))
    ran = [
        line for line, end in zip(lines, ended, strict=True) if end not in ("rejected", "failed")
    ]
    assert not ran, "something of it ran without a question"
    assert beside(base) == before
    assert not [*base.rglob("X")], "it ran"
    assert (base / "ws/a.txt").read_text() == "a\n"
    assert SECRET not in results
    for request in asked:
        assert request.input in commands, "what is shown is what would run"


@pytest.mark.parametrize("n", range(3))
def test_no_line_gets_at_what_its_words_do_not_name(base: Path, n: int) -> None:
    """B48, B49: a deny holds below a folder too, and no link there leads a copy out."""
    before = beside(base)
    used = [("run_command", {"command": line}) for line in SWEEPS[n::3]]
    ended, _, results = attempt(base, *used)
    assert not [line for line, end in zip(SWEEPS[n::3], ended, strict=True) if end != "rejected"]
    assert beside(base) == before
    assert SECRET not in results


@pytest.mark.parametrize("n", range(4))
def test_no_option_makes_more_of_an_allowed_program(base: Path, n: int) -> None:
    """B49: a rule that allows `make` allows no other makefile, file to read, program or output."""
    before, lines = beside(base), OPTIONS[n::4]
    commands = [{"command": real(line, base), "timeout_seconds": 5} for line in lines]
    ended, _, results = attempt(base, *(("run_command", given) for given in commands))
    assert not [line for line, end in zip(lines, ended, strict=True) if end != "rejected"]
    assert beside(base) == before
    assert not [*base.rglob("X")]
    assert SECRET not in results


@pytest.mark.parametrize("line", PLAIN)
def test_what_the_rules_are_for_does_not_ask(base: Path, line: str) -> None:
    ended, asked, _ = attempt(base, ("run_command", {"command": line, "timeout_seconds": 5}))
    assert (ended, asked) == (["done"], [])


@pytest.mark.parametrize("agent", ["plan", "explore"])
def test_agent_that_may_not_write_cannot_by_any_path(base: Path, agent: str) -> None:
    """M5.8, M5.9: not even when the user says yes to everything."""
    rules = Rules(agent=AGENTS[agent].permission, config=RULES.config, default=STRICT_SET)
    before = {p: p.read_bytes() for p in (base / "ws").rglob("*") if p.is_file()}, beside(base)
    paths = [
        *("a.txt", "new.py", ".tiro/x.md", ".tiro/plan/../x.md", ".tiro/plan/link.md"),
        *(".tiro/plan/sub/x.md", ".TIRO/PLAN/x.md", ".tiro/Plan/x.md", ".tiro/plan/x.txt"),
        *(".tiro/plan/.env", "to-plan/x.md", "sub/.tiro/plan/x.md", "../outside/x.md"),
        *("to-dir/x.md", "../outside/.tiro/plan/x.md"),
    ]
    tried = [("write_file", {"path": path, "content": "escaped"}) for path in paths] + [
        ("edit_file", {"path": path, "old_text": "a", "new_text": "escaped"}) for path in paths
    ]
    ended, _, _ = attempt(base, *tried, answer="always", rules=rules)
    assert set(ended) <= {"rejected", "failed"}
    lines = [in_control(real(line, base)) for line in (*LINES, *TEXTS)]
    _, _, results = attempt(base, *allowed(base, lines, rules), answer="reject", rules=rules)
    assert SECRET not in results
    assert not [*base.rglob("X")]
    after = {p: p.read_bytes() for p in (base / "ws").rglob("*") if p.is_file()}, beside(base)
    assert after == before


def test_plan_folder_that_is_a_link_is_none(base: Path) -> None:
    shutil.rmtree(base / "ws/.tiro/plan")
    (base / "ws/.tiro/plan").symlink_to("../sub")
    rules = Rules(agent=AGENTS["plan"].permission, default=STRICT_SET)
    given = {"path": ".tiro/plan/x.md", "content": "escaped"}
    assert attempt(base, ("write_file", given), answer="once", rules=rules)[0] == ["rejected"]
    assert not (base / "ws/sub/x.md").exists()


def test_cd_leads_where_it_says(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDPATH", str(base))
    _, _, results = attempt(base, ("run_command", {"command": "cd outside && cat k"}))
    assert SECRET not in results


@pytest.mark.parametrize("path", [".:", ":", "", "sub:", "./sub:../outside:"])
def test_reading_runs_no_program_of_the_folder(
    base: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """M5.8: a workspace that brings an `ls` is no way to run it, nor one that brings a shell."""
    for name in ("ls", "grep", "cat", "bash"):
        for folder in ("ws", "ws/sub", "outside"):
            shutil.copy(base / "ws/evil", base / folder / name)
    monkeypatch.setenv("PATH", path + os.environ["PATH"] + ":.")
    monkeypatch.chdir(base / "ws")
    plan = Rules(agent=AGENTS["plan"].permission, default=STRICT_SET)
    lines = ["ls", "grep -rn a sub", "ls | cat", "cat a.txt", "find sub -name b.txt -exec cat {} +"]
    used = [("run_command", {"command": line}) for line in lines]
    assert attempt(base, *used, rules=plan)[0] == ["done"] * 5
    assert not [*base.rglob("X")]


@pytest.mark.parametrize("name", ["GLOBIGNORE", "BASHOPTS"])
def test_pattern_fits_no_hidden_file(
    base: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """B48: whatever the shells of whoever started the server are set to."""
    (base / "ws/pay/.env").write_text(SECRET)
    monkeypatch.setenv(name, "dotglob")
    ended, _, results = attempt(base, ("run_command", {"command": "cat pay/*"}))
    assert (ended, SECRET in results) == (["done"], False)


@pytest.mark.parametrize(
    "line",
    [
        "cd near/../../.. && cd .. && cat outside/k",
        "cd near/../.. && cat outside/k",
        "cd near && cd ../.. && cat outside/k",
        "cd near && cd .. && cd .. && cat outside/k",
        "cd sub && cd ../near/../.. && cat outside/k",
        "cd ./near/. && cd ./../.. && cat outside/k",
        "cd .. && cat s.txt",
    ],
)
def test_cd_gets_back_out_of_no_link(
    base: Path, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B48: a shell takes `..` by the name it went in by, whatever the link leads to."""
    (base / "ws/deep/er/est").mkdir(parents=True)
    (base / "ws/near").symlink_to("deep/er/est")
    (base / "ws-secret/l").symlink_to("../ws")
    (base / "ws-secret/s.txt").write_text(SECRET)
    monkeypatch.setenv("PWD", str(base / "ws-secret/l"))
    plan = Rules(agent=AGENTS["plan"].permission, default=STRICT_SET)
    for rules in (plan, RULES):
        ended, _, results = attempt(base, ("run_command", {"command": line}), rules=rules)
        assert (ended, SECRET in results) == (["rejected"], False)


def test_no_folder_is_taken_from_the_environment(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (base / "ws-secret/l").symlink_to("../ws/sub")
    monkeypatch.setenv("PWD", str(base / "ws-secret/l"))
    given = {"command": "cd .. && cd sub && cd .. && pwd", "cwd": "sub"}
    plan = Rules(agent=AGENTS["plan"].permission, default=STRICT_SET)
    ended, _, results = attempt(base, ("run_command", given), rules=plan)
    assert ended == ["done"]
    assert f"{base}/ws\n" in results


@pytest.mark.parametrize("agent", ["plan", "explore", None])
def test_no_copy_of_a_denied_file_is_shown_or_written(base: Path, agent: str | None) -> None:
    """M5.7: by no tool and no command, unasked."""
    ws = base / "ws"
    for name in COPIES:
        (ws / name).write_text(SECRET)
    (ws / "to-copy").symlink_to(".env~")
    (ws / "sub/to-copy").symlink_to("../#.env#")
    rules = RULES if agent is None else Rules(agent=AGENTS[agent].permission, default=STRICT_SET)
    lines = [real(line, base) for line in READ_COPIES]
    shown = attempt(base, *allowed(base, lines, rules), rules=rules)[2]
    assert SECRET not in shown
    used = [
        (tool, {"path": name, **given})
        for name in (*COPIES, "to-copy", "sub/to-copy")
        for tool, given in (
            ("read_file", {}),
            ("grep", {"pattern": "."}),
            ("write_file", {"content": "escaped"}),
            ("edit_file", {"old_text": SECRET, "new_text": "escaped"}),
        )
    ]
    _, _, results = attempt(base, *used, ("grep", {"pattern": "OUTSIDE"}), rules=rules)
    assert SECRET not in results
    assert all((ws / name).read_text() == SECRET for name in COPIES)
    assert not (ws / "b.txt").exists()


# What a repository brings must not run for an agent that only reads (B49)

READING = [
    *("git status", "git status -s", "git log -1", "git log --stat", "git diff --stat"),
    *("git blame a", "git describe --always", "git show --stat", "git ls-files -m"),
]


def changed_repository(base: Path) -> Path:
    """The workspace as a repository with two commits and hooks; `a.txt` has just changed."""
    ws = base / "ws"
    (ws / "trap").write_text('#!/bin/sh\ntouch "$(dirname "$0")/X"; cat 2>/dev/null\n')
    (ws / "trap").chmod(0o755)
    (ws / ".gitattributes").write_text("*.txt diff=e filter=e\n")
    git = "git -c user.email=a@b -c user.name=n"
    line = f"rm -f fifo; git init -q; {git} add -Af . && {git} commit -qm one"
    subprocess.run(line, cwd=ws, shell=True, check=True, capture_output=True)
    for hook in ("post-index-change", "reference-transaction", "fsmonitor-watchman"):
        shutil.copy(ws / "trap", ws / ".git/hooks" / hook)
    (ws / "a.txt").write_text("b\n")
    return ws


@pytest.mark.parametrize("agent", ["plan", "explore"])
def test_reading_git_runs_no_program_of_the_repository(base: Path, agent: str) -> None:
    ws = changed_repository(base)
    rules = Rules(agent=AGENTS[agent].permission, default=STRICT_SET)
    commands = [("run_command", {"command": line}) for line in READING]
    ended, asked, _ = attempt(base, *commands, rules=rules)
    assert (set(ended), asked) == ({"done"}, []), "ordinary settings do not ask"
    subprocess.run(["git", "config", "filter.e.clean", str(ws / "trap")], cwd=ws, check=True)
    ended, asked, results = attempt(base, *commands, rules=rules)
    assert set(ended) == {"rejected"}
    told = [one.rule for one in asked] if agent == "plan" else results.split("\n")
    assert len(asked) == (len(READING) if agent == "plan" else 0)
    assert all("sets filter.e.clean)" in one for one in told)
    assert not [*base.rglob("X")]


def test_reading_git_beside_what_writes_runs_no_hook(base: Path) -> None:
    """B49: only a line that does nothing but read gets an environment without hooks."""
    ws = changed_repository(base)
    rules = Rules(config={"bash": {READ_ONLY: "allow", "touch *": "allow"}}, default=STRICT_SET)
    lines = ["git status -s && touch y", "touch y; git -C sub status", "git diff --stat | touch y"]
    used = [("run_command", {"command": line}) for line in lines]
    ended, asked, _ = attempt(base, *used, rules=rules)
    assert ended == ["rejected"] * 3
    assert all("hooks/post-index-change" in one.rule for one in asked)
    assert not [*base.rglob("X")]
    (ws / ".git/hooks/post-index-change").unlink()
    subprocess.run(["git", "config", "core.hooksPath", ".husky"], cwd=ws, check=True)
    assert attempt(base, *used, rules=rules)[1] == []


def test_reading_git_shows_no_committed_secret(base: Path) -> None:
    ws = changed_repository(base)
    rules = Rules(agent=AGENTS["plan"].permission, default=STRICT_SET)
    blob = subprocess.check_output(["git", "rev-parse", "HEAD:.env"], cwd=ws, text=True).strip()
    subprocess.run(["git", "tag", "v1", blob], cwd=ws, check=True)
    lines = [
        *(f"git {name} --stat {one}" for name in ("show", "log", "diff") for one in (blob, "v1")),
        *(f"git show --stat {one}" for one in (blob[:9], "HEAD~0", f"{blob}^0", "v1^", "@ v1")),
        *(
            "git show -s v1",
            "git show --name-only HEAD v1",
            "git blame -- .env",
            f"git show {blob}",
        ),
        *(f"git cat-file -p {blob}", "git grep . HEAD", "git log -p", "git show HEAD:.env"),
    ]
    _, _, results = attempt(
        base, *(("run_command", {"command": one}) for one in lines), rules=rules
    )
    assert SECRET not in results


@pytest.mark.parametrize("agent", ["plan", "explore"])
def test_git_tells_by_no_list_what_a_denied_file_holds(base: Path, agent: str) -> None:
    """M5.8, M5.9: also while git follows the file."""
    rules = Rules(agent=AGENTS[agent].permission, default=STRICT_SET)
    lines = [real(line, base) for line in PICKAXES]
    ended, _, _ = attempt(base, *(("run_command", {"command": x}) for x in lines), rules=rules)
    assert [line for line, end in zip(lines, ended, strict=True) if end == "done"] == []


@pytest.mark.parametrize("agent", ["plan", "explore"])
def test_reading_git_shows_nothing_that_was_committed_once(base: Path, agent: str) -> None:
    """M5.8, M5.9: git does not follow the file any more, and its history still has the text."""
    for line in ("rm -q --cached .env", f"{AUTHOR} commit -qm second"):
        subprocess.run(["git", *line.split()], cwd=base / "ws", check=True, timeout=60)
    rules = Rules(agent=AGENTS[agent].permission, default=STRICT_SET)
    lines = [
        *(
            "git log -p",
            "git log -U9 --stat",
            "git log -L1,1:.env",
            "git show HEAD~1",
            "git diff HEAD~1",
        ),
        *("git diff -R HEAD~1 -- .", "git show --stat -p HEAD~1", "git log --stat --patch"),
        *("git show HEAD --stat --unified=3", "git diff --stat -u HEAD~1", f"git show {BLOB}"),
        *(
            "git show HEAD~1:.env",
            "git grep SECRET HEAD~1",
            "git whatchanged -p",
            "git stash show -p",
        ),
        *(
            "git format-patch -1 --stdout",
            "git cat-file -p HEAD~1:.env",
            "git blame HEAD~1 -- .env",
        ),
        *("git log -pS SECRET", "git log --cc", "git log -m -p", "git log --full-diff -p a.txt"),
        *(real(line, base) for line in PICKAXES),
    ]
    ended, _, results = attempt(
        base, *(("run_command", {"command": x}) for x in lines), rules=rules
    )
    assert [line for line, end in zip(lines, ended, strict=True) if end == "done"] == []
    assert SECRET not in results


@pytest.mark.parametrize(
    "line",
    [
        *("git push ./bare", "git push bare", "git push bar", "git push origin", "git fetch bare"),
        *("git push . HEAD:x", "git pull -q bare", "git clone bare x", "git clone ./bare x"),
        *("git push {base}/ws/bare", "git push file://{base}/ws/bare", "git remote add o ./bare"),
        *("git remote set-url o bare", "git submodule add ./bare", "git -C sub push ../bare"),
        *("cp -r bare new && git push new HEAD:x", "git ls-remote bare", "git clone -b x bare y"),
        *("git clone bare.git x", "git push -q -u bare main", "git remote add -f o .."),
        *("git apply x.patch", "git apply --index x.patch", "git am x.patch", "git -C sub am x"),
        *("git diff --no-index a.txt sub", "git diff --no-index sub .", "git -C sub apply ../p"),
    ],
)
def test_git_runs_and_writes_nothing_that_its_words_hide(base: Path, line: str) -> None:
    """B49: hooks of a repository on this disk run; a patch writes by names that nobody sees."""
    ws = base / "ws"
    for name in ("bare", "bar.git"):
        subprocess.run(["git", "init", "-q", "--bare", name], cwd=ws, check=True)
        shutil.copy(ws / "evil", ws / name / "hooks/pre-receive")
    given = {"command": real(line, base)}
    rules = Rules(
        config={"bash": {"git *": "allow", "cp": "allow"}, "edit": "allow", "write": "allow"},
        default=STRICT_SET,
    )
    assert attempt(base, ("run_command", given), rules=rules)[0] == ["rejected"]
    assert not [*base.rglob("X")]


DIFFS = r"""
git diff
git diff --cached
git diff --staged -U9
git diff HEAD
git diff -R HEAD
git diff HEAD~1
git diff HEAD~1 HEAD
git diff HEAD~1..HEAD
git diff HEAD~1...
git diff HEAD~1 -- .
git diff HEAD -- '*'
git diff HEAD -- ':(glob)**'
git diff HEAD -- ':/'
git diff .
git diff -M HEAD~1 -- a.txt .env
git diff -C HEAD~1
git diff -C -C HEAD~1
git diff --find-copies --find-copies HEAD~1
git -C sub diff
git -C sub diff HEAD~1
cd sub && git diff HEAD
git diff HEAD~1:.env HEAD:a.txt
git diff {blob} -- a.txt
git diff {blob} a.txt
git diff secret a.txt
git diff secret
git diff secret -- a.txt
git diff secret..HEAD
git diff HEAD~1 | cat
""".strip().split("\n")


@pytest.mark.parametrize("agent", ["plan", "explore"])
@pytest.mark.parametrize("how", ["changed", "staged", "removed", "renamed"])
def test_no_diff_shows_a_denied_file(base: Path, agent: str, how: str) -> None:
    """M5.8, M5.9: whether it is in the folder, the index or a commit."""
    ws = changed_repository(base)
    lines = {
        "changed": "printf 'OUTSIDE-SECRET\n2' > .env",
        "staged": "printf 'OUTSIDE-SECRET\n2' > .env; git add .env; rm .env",
        "removed": "git rm -q --cached .env",
        "renamed": f"(echo {SECRET}; seq 20) > .env; git {AUTHOR} commit -qm x .env; seq 20 > b;"
        " git rm -q --cached .env; git add b",
    }
    git = f"git {AUTHOR} commit -qam two -- a.txt; git tag secret {BLOB}"
    subprocess.run(f"{git}; {lines[how]}", cwd=ws, shell=True, check=True, capture_output=True)
    (ws / ".git/hooks/X").unlink()  # that was us
    rules = Rules(agent=AGENTS[agent].permission, default=STRICT_SET)
    used = [("run_command", {"command": real(line, base)}) for line in DIFFS]
    _, _, results = attempt(base, *used, rules=rules)
    assert SECRET not in results
    assert not [*base.rglob("X")]


@pytest.mark.parametrize("agent", ["plan", "explore"])
def test_a_diff_of_other_files_is_shown(base: Path, agent: str) -> None:
    """Also where a denied file is followed, as long as it is not part of it."""
    ws = changed_repository(base)
    (ws / "sub/b.txt").write_text("staged\n")
    subprocess.run(["git", "add", "sub/b.txt"], cwd=ws, check=True)
    (ws / ".git/hooks/X").unlink()  # that was us
    index = (ws / ".git/index").read_bytes()
    rules = Rules(agent=AGENTS[agent].permission, default=STRICT_SET)
    lines = ["git diff", "git diff --cached", "git diff HEAD -- sub", "git -C sub diff | head -40"]
    used = [("run_command", {"command": line}) for line in [*lines, "git diff a.txt"]]
    ended, asked, results = attempt(base, *used, rules=rules)
    assert (set(ended), asked) == ({"done"}, [])
    assert results.count("+b\n") == 3
    assert results.count("+staged\n") == 2
    assert (ws / ".git/index").read_bytes() == index
    subprocess.run(["git", "config", "diff.e.textconv", str(ws / "trap")], cwd=ws, check=True)
    assert set(attempt(base, *used, rules=rules)[0]) == {"rejected"}
    assert not [*base.rglob("X")]


def test_git_exchanges_with_what_lies_elsewhere(base: Path) -> None:
    git = ["git", "remote", "add", "up", "https://127.0.0.1:9/a.git"]
    subprocess.run(git, cwd=base / "ws", check=True)
    lines = (
        *(
            "git push up HEAD:main",
            "git fetch -p up",
            "git pull --rebase up main",
            "git push -u up",
        ),
        *("git clone https://127.0.0.1:9/a.git b", "git remote add o https://127.0.0.1:9/a.git"),
        *(
            "git fetch --depth 1 up",
            "git push",
            "git remote -v",
            "git clone --depth 1 -b x https://127.0.0.1:9/a.git c",
        ),
    )
    rules = Rules(config={"bash": {"git *": "allow"}}, default=STRICT_SET)
    ended, asked, _ = attempt(base, *(("run_command", {"command": x}) for x in lines), rules=rules)
    assert (set(ended), asked) == ({"done"}, [])


def test_diff_outside_of_a_repository_reads_no_denied_file(base: Path) -> None:
    shutil.rmtree(base / "ws/.git")
    ended, _, results = attempt(base, ("run_command", {"command": "git diff sub ."}))
    assert (ended, SECRET in results) == (["rejected"], False)


def test_reading_git_leaves_the_index_as_it_is(base: Path) -> None:
    ws = changed_repository(base)
    (ws / "a.txt").write_text("a\n")  # as it was, but for its time
    os.utime(ws / "a.txt", (1, 1))
    before = (ws / ".git/index").read_bytes()
    lines = [*READING, "git diff --stat HEAD", "git diff --numstat -w"]
    rules = Rules(agent=AGENTS["plan"].permission, default=STRICT_SET)
    attempt(base, *(("run_command", {"command": line}) for line in lines), rules=rules)
    assert (ws / ".git/index").read_bytes() == before


@pytest.mark.parametrize("form", ["%n", "abc%n", "%s%5n", "%%%n", "%-n", "%.3n"])
def test_printf_sets_no_variable(base: Path, form: str) -> None:
    for name in ("0", "3"):
        (base / "ws" / name).mkdir()
        shutil.copy(base / "ws/evil", base / "ws" / name / "ls")
    rules = Rules(agent=AGENTS["plan"].permission, default=STRICT_SET)
    for allowed in (rules, RULES):
        attempt(base, ("run_command", {"command": f"printf '{form}' PATH; ls"}), rules=allowed)
    assert not [*base.rglob("X")]
