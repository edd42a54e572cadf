"""What is denied hides nowhere, whichever rule allows everything else (B49)."""

from pathlib import Path
from typing import Any

import pytest

from tests.agents.test_escapes import attempt, base, repository
from tiro.agents.command_rules import subjects_of
from tiro.agents.permissions import OPEN_SET, STRICT_SET, PermissionDecision, Rules, strictest
from tiro.tools.command_line import parse_command_line

__all__ = ["base", "repository"]

DENY: Any = {"rm *": "deny", "git push": "deny"}
BLANKETS = {
    "the open set": Rules(config={"bash": DENY}, default=OPEN_SET),
    "the agent": Rules(agent={"bash": "allow"}, config={"bash": DENY}, default=STRICT_SET),
    "another key": Rules(config={"*": "allow", "bash": DENY}, default=STRICT_SET),
    "the same table": Rules(config={"bash": {**DENY, "*": "allow"}}, default=STRICT_SET),
    "the session": Rules(always={"bash": [("*", "allow")]}, config={"bash": DENY}),
    "no rule": Rules(config={"bash": DENY}),
    "a repository's deny": Rules(config={"bash": "allow"}, workspace={"bash": DENY}),
    "the caller's deny": Rules(agent={"bash": "allow"}, caller=Rules(config={"bash": DENY})),
}
"""What allows all that is not denied."""

HIDING = r"""
sh -c 'rm a.txt'
bash -c "rm a.txt"
eval 'rm a.txt'
echo 'rm a.txt' | sh
env -S 'rm a.txt'
r$(true)m a.txt
"$(printf r)m" a.txt
awk 'BEGIN { system("rm a.txt") }'
python3 -c 'import os; os.remove("a.txt")'
jobs -x rm a.txt
busctl rm a.txt
./wrap rm a.txt
./wrap -c 'rm a.txt'
timeout 5 ./wrap -- rm a.txt
git p
git -c alias.p=push p
git evil
git send-pack origin
git subtree push origin
git remote-https x
git http-push x
""".strip().split("\n")

ORDINARY = """
ls -la
git status
git add rm
git gc
git reflog
git show-ref
npm install rm
npm run build
make
pytest -q
python3 x.py
./wrap a.txt
cargo test rm
grep -n rm a.txt
echo rm
git commit -m 'rm the file'
""".strip().split("\n")


def decided(rules: Rules, line: str) -> PermissionDecision:
    return strictest(*(rules.decide("bash", one) for one in subjects_of(parse_command_line(line))))


@pytest.mark.parametrize("rules", BLANKETS.values(), ids=BLANKETS)
def test_what_may_hide_a_denied_command_asks(rules: Rules) -> None:
    assert decided(rules, "rm a.txt").kind == "deny"
    assert [line for line in HIDING if decided(rules, line).kind == "allow"] == []
    assert [line for line in ORDINARY if decided(rules, line).kind != "allow"] == []


def test_what_find_runs_is_no_way_around_a_deny() -> None:
    rules = Rules(config={"bash": {"cat *": "deny"}}, default=OPEN_SET)
    for line in ("find . -exec cat {} +", "find . -name a -exec ls {} ';' -exec cat {} \\;"):
        assert decided(rules, line).kind == "deny"
    assert decided(rules, "find . -exec ls {} +").kind == "allow"


def test_the_question_names_what_may_hide() -> None:
    rule = decided(BLANKETS["the open set"], "sh -c 'rm a.txt'").rule
    assert rule == "*: allow (but rm * may hide in it)"


def test_nothing_hides_where_nothing_is_denied() -> None:
    assert decided(Rules(default=OPEN_SET), "sh -c 'rm a.txt'").kind == "allow"
    rules = Rules(config={"bash": "allow", "read": {"*.pem": "deny"}}, default=STRICT_SET)
    assert decided(rules, "sh -c 'rm a.txt'").kind == "allow"
    assert decided(BLANKETS["the open set"], "git p").kind == "ask"


def test_an_answer_always_is_kept(base: Path) -> None:
    """It was about the very line, which the user has seen."""
    used = [("run_command", {"command": "sh -c 'ls a.txt'"})] * 2
    rules = BLANKETS["the agent"]
    ended, asked, _ = attempt(base, *used, rules=rules, answer="always")
    assert (ended, len(asked)) == (["done", "done"], 1)


@pytest.mark.parametrize("name", ["the open set", "the agent"])
def test_no_denied_command_runs(base: Path, name: str) -> None:
    ws = base / "ws"
    (ws / "wrap").write_text('#!/bin/sh\n[ "$1" = -c ] && exec sh -c "$2"\nexec "$@"\n')
    (ws / "wrap").chmod(0o755)
    used = [("run_command", {"command": line}) for line in HIDING]
    attempt(base, *used, rules=BLANKETS[name])
    assert (ws / "a.txt").exists()
