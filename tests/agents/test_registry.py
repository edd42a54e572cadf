"""The agents and their registry (M5.1 to M5.5)."""

from typing import Any

import pytest

from tiro.agents.registry import AgentInfo, AgentRegistry, built_in_agents
from tiro.errors import AgentNotFoundError


def test_built_in_agents() -> None:
    """M5.2, as far as they are there; M5.5: explore is for other agents only."""
    registry = AgentRegistry()
    assert list(registry.names()) == ["build", "plan", "explore"]
    assert [agent.name for agent in registry.selectable()] == ["build", "plan"]
    assert registry.default == "build"
    for agent in registry.list():
        assert agent.native
        assert agent.description
        assert agent.prompt.startswith("You")


def test_agent_has_the_documented_fields() -> None:
    """M5.3."""
    assert set(AgentInfo.__struct_fields__) == {
        *("name", "description", "mode", "native", "hidden", "temperature", "top_p", "color"),
        *("model", "prompt", "options", "steps", "permission"),
    }


def test_get_of_an_unknown_name_is_none() -> None:
    registry = AgentRegistry()
    assert registry.get("nobody") is None
    assert registry.get(None) is None


def test_register_replaces_and_unregister_tells_whether_there_was_one() -> None:
    registry = AgentRegistry()
    mine = AgentInfo(name="plan", description="mine")
    registry.register(mine)
    assert registry.get("plan") is mine
    assert len(registry.list()) == 3
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
        AgentInfo(name="a", permission="maybe"),  # type: ignore[arg-type]
        AgentInfo(name="a", permission={"read": "maybe"}),  # type: ignore[dict-item]
    ],
)
def test_invalid_agent_is_rejected(agent: AgentInfo) -> None:
    registry = AgentRegistry()
    with pytest.raises(ValueError, match="gent"):
        registry.register(agent)
    assert list(registry.names()) == ["build", "plan", "explore"]


def test_default_is_only_an_existing_agent() -> None:
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
    assert [agent.name for agent in built_in_agents()] == ["build", "plan", "explore"]
