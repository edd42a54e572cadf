"""The default agent, whatever files make of the agents (M5.4, M5.5, M5.11)."""

import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.sizes import PATIENCE
from tests.tools.rooms import put
from tiro.assistant.agent_folders import AgentFolders
from tiro.tools.silent_disk import Patience

HIDDEN = "---\ndescription: d\nmode: primary\nhidden: true\n---\nprompt\n"
SEEN = HIDDEN.replace("true", "false")


@pytest.mark.parametrize(
    ("files", "wanted", "default", "said"),
    [
        ({}, "build", "build", None),
        ({"build": HIDDEN}, "build", "plan", "'build' cannot be selected, so 'plan' answers"),
        ({"build": HIDDEN, "plan": HIDDEN, "mine": SEEN}, "build", "mine", "so 'mine' answers"),
        ({"mine": HIDDEN}, "mine", "build", "'mine' cannot be selected, so 'build' answers"),
        ({"build": HIDDEN.replace("primary", "subagent")}, "build", "plan", "so 'plan' answers"),
        ({}, "none", "build", "'none' cannot be selected, so 'build' answers"),
    ],
)
def test_a_default_that_nobody_may_choose_is_told_and_replaced(
    tmp_path: Path, files: dict[str, str], wanted: str, default: str, said: str | None
) -> None:
    for name, text in files.items():
        put(tmp_path, f"agents/{name}.md", text)
    folders = AgentFolders(tmp_path, [], wanted)
    assert folders.registry.default == default
    assert default in [agent.name for agent in folders.registry.selectable()]
    assert [said in problem for problem in folders.problems if said] == [True] * bool(said)


def test_a_hidden_agent_for_summaries_is_told_that_nothing_asks_it(tmp_path: Path) -> None:
    put(tmp_path, "agents/summary.md", HIDDEN)
    put(tmp_path, "agents/title.md", HIDDEN)
    folders = AgentFolders(tmp_path, [], "build")
    [problem] = folders.problems
    assert f"{tmp_path}/agents/summary.md: nothing asks this agent" in problem
    put(tmp_path, "agents/summary.md", SEEN)
    assert (folders.look(), folders.problems) == ([], [])


def test_where_no_agent_can_be_chosen_that_is_said(tmp_path: Path) -> None:
    for name in ("build", "plan"):
        put(tmp_path, f"agents/{name}.md", HIDDEN)
    [problem] = AgentFolders(tmp_path, [], "build").problems
    assert "no other one" in problem
    (tmp_path / "agents" / "plan.md").unlink()
    folders = AgentFolders(tmp_path, [], "build")
    assert folders.registry.default == "plan"


NAMES = ("build", "Build", "BUILD", "pl\uff41n", "bu-ild", "my agent", "pl\u0430n", "\u0440lan")
MORE = ("p1an", "buiId", "bu\u0456ld", "pl\u00e1n", "expl\u03bfre")


@pytest.mark.parametrize("name", [*NAMES, *MORE])
def test_a_workspace_adds_no_agent_that_looks_like_another(tmp_path: Path, name: str) -> None:
    """M5.11: a repository may not pass one off as `build`, nor as one of the user's own."""
    put(tmp_path, "home/agents/My Agent.md", SEEN)
    put(tmp_path, f"ws/.tiro/agents/{name}.md", SEEN)
    folders = AgentFolders(tmp_path / "home", [tmp_path / "ws"], "build")
    [problem] = folders.problems
    assert "a workspace cannot replace it" in problem
    assert (name in folders.registry.names()) == (name == "build")


def test_what_a_slow_disk_did_not_give_out_is_read_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names may come from a cache while contents do not: no file changes when they do."""
    path = put(tmp_path, "agents/mine.md", SEEN)
    patience = Patience(PATIENCE, PATIENCE)
    folders = AgentFolders(tmp_path, [], "build", patience)
    path.write_text(SEEN + "more")
    back, opened = threading.Event(), os.open

    def slow(name: Any, *given: Any, **named: Any) -> int:
        if name == path:
            back.wait(PATIENCE)
        return opened(name, *given, **named)

    monkeypatch.setattr(os, "open", slow)
    patience.seconds = 0.05
    assert "does not answer" in folders.look()[0]
    patience.seconds = PATIENCE
    assert "mine" not in folders.registry.names()
    back.set()
    for thread in threading.enumerate():
        if thread.name == "tiro-disk":
            thread.join(PATIENCE)
    assert (folders.look(), folders.problems) == ([], [])
    assert "mine" in folders.registry.names()


def test_what_a_failing_disk_did_not_give_out_is_read_when_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path, "agents/mine.md", SEEN)
    opened = os.open

    def failing(name: Any, *given: Any, **named: Any) -> int:
        if name == path:
            raise OSError(errno.EIO, "Input/output error")
        return opened(name, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", failing)
        folders = AgentFolders(tmp_path, [], "build")
        assert "cannot be read" in folders.problems[0]
        assert folders.look() == []
    assert (folders.look(), folders.problems) == ([], [])
    assert "mine" in folders.registry.names()
