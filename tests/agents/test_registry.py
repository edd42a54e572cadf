"""The agents and their registry (M5.1 to M5.5)."""

from typing import Any

import pytest

from tiro.agents.agent_info import AgentInfo
from tiro.agents.built_in import built_in_agents
from tiro.agents.permissions import OPEN_SET, Rules
from tiro.agents.registry import AgentRegistry
from tiro.errors import AgentNotFoundError
from tiro.tools.files import file_tools
from tiro.tools.search import search_tools


def test_built_in_agents() -> None:
    """M5.2; M5.5: general and explore are for other agents only."""
    registry = AgentRegistry()
    assert [(agent.name, agent.mode, agent.hidden) for agent in registry.list()] == [
        ("build", "primary", False),
        ("plan", "primary", False),
        ("general", "subagent", True),
        ("explore", "subagent", False),
        ("compaction", "primary", True),
        ("title", "primary", True),
        ("summary", "primary", True),
    ]
    assert [agent.name for agent in registry.selectable()] == ["build", "plan"]
    assert registry.default == "build"
    for agent in registry.list():
        assert agent.native
        assert agent.description
    assert len({agent.prompt for agent in registry.list()}) == 7


def test_the_prompts_of_the_hidden_agents_say_what_m5_13_asks() -> None:
    """M5.13."""
    said = {agent.name: agent.prompt.lower() for agent in AgentRegistry().list()}
    for word in ("done", "files", "next", "wishes", "decisions", "brief"):
        assert word in said["compaction"]
    for word in ("one line", "50 characters", "nothing before or after"):
        assert word in said["title"]
    for word in ("pull request", "first person", "two or three sentences", "question"):
        assert word in said["summary"]


def test_agents_that_only_write_have_no_tools() -> None:
    """M5.9, M5.10."""
    registry = AgentRegistry()
    for name in ("compaction", "title", "summary"):
        agent = registry.get(name)
        assert agent is not None
        rules = Rules(agent=agent.permission, default=OPEN_SET)
        assert not [tool for tool in (*file_tools(), *search_tools()) if rules.offers(tool)]


def test_an_agent_that_tiro_needs_is_there_though_somebody_removed_it() -> None:
    registry = AgentRegistry()
    registry.unregister("title")
    assert registry.needed("title").prompt
    registry.register(AgentInfo(name="title", prompt="mine"))
    assert registry.needed("title").prompt == "mine"


def test_agent_has_the_documented_fields() -> None:
    """M5.3."""
    assert set(AgentInfo.__struct_fields__) == {
        *("name", "description", "mode", "native", "hidden", "temperature", "top_p", "color"),
        *("model", "prompt", "options", "steps", "permission"),
    }


def test_get_of_an_unknown_name_is_none() -> None:
    """M5.1."""
    registry = AgentRegistry()
    assert registry.get("nobody") is None
    assert registry.get(None) is None


def test_register_replaces_and_unregister_tells_whether_there_was_one() -> None:
    """M5.1."""
    registry = AgentRegistry()
    mine = AgentInfo(name="plan", description="mine")
    registry.register(mine)
    assert registry.get("plan") is mine
    assert len(registry.list()) == 7
    assert registry.unregister("plan")
    assert not registry.unregister("plan")
    registry.reset()
    assert registry.get("plan") != mine


@pytest.mark.parametrize(
    "agent",
    [
        AgentInfo(name=""),
        AgentInfo(name="  "),
        AgentInfo(name="a/b"),
        AgentInfo(name="a", mode="odd"),  # type: ignore[arg-type]  # what a file may hold
        AgentInfo(name="a", steps=0),
        AgentInfo(name="a", options={"messages": []}),
        AgentInfo(name="a", permission="maybe"),  # type: ignore[arg-type]
        AgentInfo(name="a", permission={"read": "maybe"}),  # type: ignore[dict-item]
    ],
)
def test_invalid_agent_is_rejected(agent: AgentInfo) -> None:
    """M5.1."""
    registry = AgentRegistry()
    with pytest.raises(ValueError, match="gent"):
        registry.register(agent)
    assert list(registry.names()) == ["build", "plan", "explore"]


def test_default_is_only_an_existing_agent() -> None:
    """M5.1."""
    registry = AgentRegistry()
    registry.set_default("plan")
    with pytest.raises(AgentNotFoundError) as raised:
        registry.set_default("nobody")
    assert raised.value.data == {"name": "nobody", "available": ["build", "plan", "explore"]}
    assert registry.default == "plan"
    registry.unregister("plan")
    assert registry.default == "build"


def test_hidden_agents_are_named_on_demand_only() -> None:
    registry = AgentRegistry()
    registry.register(AgentInfo(name="title", hidden=True, mode="primary"))
    assert "title" not in registry.names()
    assert "title" in registry.names(hidden=True)
    assert "title" not in [agent.name for agent in registry.selectable()]


@pytest.mark.parametrize(
    ("mode", "is_offered"), [("all", True), ("primary", True), ("subagent", False)]
)
def test_selection_by_mode(mode: Any, is_offered: bool) -> None:
    registry = AgentRegistry()
    registry.register(AgentInfo(name="x", mode=mode))
    assert ("x" in [agent.name for agent in registry.selectable()]) is is_offered


def test_registries_share_nothing() -> None:
    AgentRegistry().register(AgentInfo(name="x"))
    assert AgentRegistry().get("x") is None
    assert [agent.name for agent in built_in_agents()][:3] == ["build", "plan", "general"]
