"""What configuration decides, put together."""

import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.agents.turns import run
from tests.fakes import RecordingEditor, ScriptedModel, uses
from tiro.agents.agent_info import AgentInfo
from tiro.assistant.new_turn import Means
from tiro.assistant.setup import Setup
from tiro.models.model import ModelFacts
from tiro.tools.silent_disk import Patience
from tiro.tools.workspace import Workspace


@pytest.mark.parametrize(
    ("key", "is_secret"),
    [("sk-0123456789abcdef", True), ("scripted", False), ("my-local-model", False)],
)
def test_a_dummy_key_that_is_part_of_a_name_is_not_taken_out_of_files(
    tmp_path: Path, key: str, is_secret: bool
) -> None:
    """U9.11: exact values of keys stay out; a session's model and agent must survive a save."""
    provider = {"api": "openai", "base_url": "http://127.0.0.1:9/v1", "api_key": key}
    given = {"model": "scripted/my-local-model", "providers": {"scripted": provider}}
    setup = Setup.load(tmp_path, [], given)
    manager = setup.manager(tmp_path / "sessions", lambda notice: None)
    session = manager.create()
    session.change(model="scripted/my-local-model")
    session.add_message("user", f"the key is {key}")
    path = manager.save(session)
    loaded = manager.load(path)
    manager.close()
    assert loaded.model == "scripted/my-local-model"
    assert (key not in path.read_text()) == is_secret


@pytest.mark.parametrize("agent", ["explore", "nobody", "title"])
def test_a_default_agent_that_cannot_be_selected_is_reported(tmp_path: Path, agent: str) -> None:
    """M5.5: told once, and the default holds."""
    setup = Setup.load(tmp_path, [], {"agent": agent})
    assert any(agent in problem for problem in setup.problems)
    manager = setup.manager(tmp_path / "sessions", lambda notice: None)
    assert setup.agent_for(manager.create(), None).name == "build"
    manager.close()


def test_a_key_that_begins_with_another_leaves_nothing_behind(tmp_path: Path) -> None:
    """U9.11: the longest first."""
    setup = Setup.load(tmp_path, [], {})
    manager = setup.manager(tmp_path / "sessions", lambda notice: None)
    manager.secrets = ["sk-12345678", "sk-12345678-and-more"]
    session = manager.create()
    session.add_message("user", "sk-12345678-and-more")
    assert "and-more" not in manager.save(session).read_text()
    manager.close()


def test_the_budget_counts_the_agent_that_answers(tmp_path: Path) -> None:
    """U8.2: with its own prompt and tools, not those of the session's agent."""
    setup = Setup.load(tmp_path, [], {})
    manager = setup.manager(tmp_path / "sessions", lambda notice: None)
    session = manager.create()
    facts = ModelFacts(1000)
    sizes = {
        name: setup.measure(session, facts, agent=setup.agents.get(name)).breakdown.system
        for name in ("build", "plan")
    }
    assert sizes["build"] != sizes["plan"]
    assert setup.measure(session, facts).breakdown.system == sizes["build"]
    manager.close()


def test_an_agent_cannot_raise_the_limit_of_steps(tmp_path: Path) -> None:
    """`turn.max_steps` is the user's; an agent may come from a repository that is not theirs."""
    setup = Setup.load(tmp_path, [], {"turn": {"max_steps": 2}})
    manager = setup.manager(tmp_path / "sessions", lambda notice: None)
    model = ScriptedModel(*([uses(("call", "glob", {"pattern": "*"}))] * 9))
    editor = RecordingEditor(tmp_path)
    means = Means(setup=setup, workspace=Workspace(editor), editor=editor)
    turn = means.turn(manager.create(), "Go", AgentInfo(name="eager", steps=99), model)
    run(turn)
    assert len(model.requests) == 2
    manager.close()


def test_no_setting_shows_a_password(tmp_path: Path) -> None:
    """B52: not in a repr either."""
    store = {"kind": "redis", "url": "redis://:hunter22@127.0.0.1/0"}
    setup = Setup.load(tmp_path, [], {"store": store})
    assert "hunter22" not in repr(setup.settings)


def write_agent(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text)


def test_agents_of_the_user_and_of_the_workspace_can_be_selected(tmp_path: Path) -> None:
    """M5.5, M5.11: one of the user's may replace a built-in one."""
    root = tmp_path / "w"
    write_agent(tmp_path / "agents", "mine", "---\ndescription: Mine\n---\nYou are mine.")
    write_agent(tmp_path / "agents", "plan", "---\nmode: primary\n---\nMy own plan.")
    write_agent(tmp_path / "agents", "helper", "---\nmode: subagent\n---\nYou help.")
    write_agent(root / ".tiro/agents", "theirs", "---\ndescription: Theirs\n---\nYou are theirs.")
    setup = Setup.load(tmp_path, [root], {"agent": "mine"})
    assert setup.problems == []
    assert setup.agents.default == "mine"
    assert [agent.name for agent in setup.agents.selectable()] == [
        "build",
        "plan",
        "mine",
        "theirs",
    ]
    assert setup.agents.needed("plan").prompt == "My own plan."


def test_a_workspace_replaces_no_agent_and_is_told(tmp_path: Path) -> None:
    """A repository must not put its words or rules under a name that the user trusts."""
    root = tmp_path / "w"
    write_agent(tmp_path / "agents", "mine", "---\n---\nYou are mine.")
    write_agent(root / ".tiro/agents", "mine", "---\n---\nEvil.")
    write_agent(root / ".tiro/agents", "plan", "---\n---\nEvil.")
    setup = Setup.load(tmp_path, [root], {})
    assert setup.agents.needed("mine").prompt == "You are mine."
    assert setup.agents.needed("plan").native
    assert len(setup.problems) == 2
    assert all("cannot replace" in problem for problem in setup.problems)


def test_agents_of_a_workspace_that_is_not_trusted_are_not_there(tmp_path: Path) -> None:
    root = tmp_path / "w"
    write_agent(root / ".tiro/agents", "theirs", "---\n---\nYou are theirs.")
    setup = Setup.load(tmp_path, [root], {}, trusted=False)
    assert setup.agents.get("theirs") is None


@pytest.mark.parametrize("name", [" ", "a\nb", "\x1b[2J"])
def test_a_file_whose_name_no_agent_can_have_is_told_and_costs_only_itself(
    tmp_path: Path, name: str
) -> None:
    """M5.1: an invalid agent is among the problems, in a repository of others too."""
    root = tmp_path / "w"
    write_agent(tmp_path / "agents", "mine", "---\n---\nYou are mine.")
    for folder in (tmp_path / "agents", root / ".tiro/agents"):
        write_agent(folder, name, "---\n---\nHi")
    setup = Setup.load(tmp_path, [root], {})
    assert [agent.name for agent in setup.agents.selectable()] == ["build", "plan", "mine"]
    assert len(setup.problems) == 2
    assert all("needs a name" in problem for problem in setup.problems)
    assert all(problem.isprintable() for problem in setup.problems)


def test_what_is_told_of_a_lost_model_names_the_one_that_answers(tmp_path: Path) -> None:
    """B63: an agent's own model comes before the configuration's."""
    write_agent(tmp_path / "agents", "mine", "---\nmodel: openai/mine\n---\nYou are mine.")
    setup = Setup.load(tmp_path, [], {"model": "openai/m"})
    manager = setup.manager(tmp_path / "sessions", lambda notice: None)
    session = manager.create()
    session.change(model="gone/x")
    for agent, answers in (("build", "openai/m"), ("mine", "openai/mine")):
        session.set_agent(agent)
        (told,) = setup.missing(session)
        assert f"'gone/x' is not configured any more: {answers} answers" in told
    session.change(model="openai/x")
    assert setup.missing(session) == []
    manager.close()


def test_a_disk_that_does_not_answer_is_told_and_read_when_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dead network disk under the configuration or the workspace keeps nobody waiting."""
    root, back = tmp_path / "dead", threading.Event()
    folder = root / ".tiro" / "agents"
    folder.mkdir(parents=True)
    (folder / "mine.md").write_text("---\ndescription: d\n---\nHello")
    (root / ".tiro" / "config.yaml").write_text("turn: {max_steps: 3}")
    real_stat, real_open = os.stat, os.open

    def waited(path: Any) -> Any:
        if isinstance(path, str | Path) and Path(path).is_relative_to(root):
            back.wait()
        return path

    monkeypatch.setattr(os, "stat", lambda path, **k: real_stat(waited(path), **k))
    monkeypatch.setattr(os, "open", lambda path, *a, **k: real_open(waited(path), *a, **k))
    setup = Setup.load(tmp_path / "own", [root], {}, patience=Patience(1.0))
    assert [problem.partition(":")[0] for problem in setup.problems] == [
        f"{root}/.tiro/config.yaml cannot be read",
        f"{folder} cannot be read",
    ]
    assert setup.agents.get("mine") is None
    back.set()
    monkeypatch.undo()
    again = Setup.load(tmp_path / "own", [root], {}, patience=Patience())
    assert (again.problems, again.settings.turn.max_steps) == ([], 3)
    assert again.agents.get("mine") is not None


def test_a_disk_that_fails_gives_no_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """EIO, or a network that is gone, while folders are looked through."""

    def fail(path: Any, **_: Any) -> Any:
        raise OSError(errno.EIO, "Input/output error", str(path))

    monkeypatch.setattr(os, "stat", fail)
    setup = Setup.load(tmp_path, [tmp_path], {})
    monkeypatch.undo()
    assert setup.agents.get("build") is not None
