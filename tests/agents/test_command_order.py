"""What a command changes for the others of its line: made for real, with every question refused."""

import subprocess
from pathlib import Path

import pytest

from tests.agents.test_escapes import AUTHOR, SECRET, TOOLS, attempt, base, repository
from tests.fakes import RecordingEditor
from tiro.agents.gate import Gate
from tiro.agents.permissions import STRICT_SET, Rules
from tiro.tools.workspace import Workspace

__all__ = ["base", "repository"]
RULES = Rules(
    config={
        "bash": dict.fromkeys(
            ("<read-only>", "git *", "ln *", "mv *", "cp *", "touch *", "npm *", "pytest", "jq"),
            "allow",
        ),
        "edit": "allow",
        "write": "allow",
        "read": {"keys/**": "deny"},
    },
    default=STRICT_SET,
)


@pytest.fixture
def branched(base: Path) -> Path:
    """The workspace with a branch in which `q` leads out, and links that would if they moved."""
    ws = base / "ws"
    for line in ("checkout -q -b topic", "add q", f"{AUTHOR} commit -qm q", "checkout -q -"):
        if line.startswith("add"):
            (ws / "q").symlink_to("../outside")
        subprocess.run(["git", *line.split()], cwd=ws, check=True, timeout=60)
    (ws / "deep/er/est").mkdir(parents=True)
    (ws / "deep/er/est/link").symlink_to("../..")
    (ws / "deep/n.txt").write_text("a\n")
    return base


HIDDEN = """
git checkout -q topic && cat q/k
git checkout -q topic; head -1 q/k
git checkout -q topic && cat a.txt q/k
timeout 9 git checkout -q topic && timeout 9 cat q/k
git merge -q topic && cat q/k
git switch -q topic && grep -h . q/k
git reset -q --hard topic && sed -n p q/k
git restore -s topic q && cat q/k
git checkout -q topic | cat q/k
cat q/k | git checkout -q topic
git checkout -q topic && cp a.txt q/X
git checkout -q topic && touch q/X
git checkout -q topic && jq -R . q/k
git checkout -q topic && git -C q status
git checkout -q topic && git diff --no-index a.txt q/k
git mv deep/er/est here && cat here/link/outside/k
mv deep/er/est here && cat here/link/outside/k
mv deep/er/est/link . && cat link/outside/k
cp -r deep/er/est here && cat here/link/outside/k
cp -P deep/er/est/link . && cat link/outside/k
cp -a deep/er/est . ; cat est/link/outside/k
cp -s a.txt b && cat b
cp --symbolic-link a.txt b && cat b
mv -t . deep/er/est/link && cat link/outside/k
ln -s ../.. deep/er/up && mv deep/er/up deep && cat deep/up/outside/k
""".strip().split("\n")


def test_nothing_is_read_or_written_through_a_link_that_the_line_makes(branched: Path) -> None:
    """B48, B49: the paths of a line are looked at before any of it runs."""
    used = [("run_command", {"command": line, "timeout_seconds": 5}) for line in HIDDEN]
    ended, asked, results = attempt(branched, *used, rules=RULES)
    missed = [line for line, end in zip(HIDDEN, ended, strict=True) if end != "rejected"]
    assert (missed, len(asked)) == ([], len(HIDDEN))
    assert SECRET not in results
    assert not [*branched.rglob("X")]


def test_the_question_says_why(branched: Path) -> None:
    given = {"command": "git checkout -q topic && cat q/k"}
    _, asked, _ = attempt(branched, ("run_command", given), rules=RULES)
    assert "may let its paths lead elsewhere" in asked[0].rule


PLAIN = """
git checkout -q topic && git log -3 --oneline
git pull && npm test
git add q && git commit -m x
git fetch && git status
git pull && pytest tests -q
cp deep/n.txt b.txt && cat b.txt
mv deep/n.txt b.txt && cat b.txt
cp -r deep/n.txt b.txt && ls b.txt
mv deep/n.txt sub && cat sub/n.txt
git stash && git pull && git stash pop
git checkout -q - && ls
touch b && cat b
git commit -qm x | tail -3 a.txt
git checkout -q topic | tail -3
cat a.txt && git checkout -q topic
git checkout -q topic && echo done
""".strip().split("\n")


def test_a_line_whose_paths_stay_where_they_are_does_not_ask(base: Path) -> None:
    (base / "ws/.env").unlink()
    (base / "ws/deep").mkdir()
    (base / "ws/deep/n.txt").write_text("a\n")
    gate = Gate(RULES, Workspace(RecordingEditor(base / "ws")))
    uses = [gate.look(TOOLS["run_command"], {"command": line}) for line in PLAIN]
    decided = [gate.decide(use).kind for use in uses]
    assert [line for line, kind in zip(PLAIN, decided, strict=True) if kind != "allow"] == []


def test_answers_for_the_parts_are_none_for_the_line(branched: Path) -> None:
    """What was answered "always" to one command holds for it as it was, not behind another one."""
    parts, line = ["git checkout -q topic", "cat q/k"], "git checkout -q topic && cat q/k"
    rules = Rules(default=STRICT_SET)
    used = [("run_command", {"command": one}) for one in (parts[1], line)]
    ended, asked, _ = attempt(branched, *used, answer="always", rules=rules)
    assert ended == ["done", "done"]
    assert [one.input["command"] for one in asked] == [parts[1], line]
