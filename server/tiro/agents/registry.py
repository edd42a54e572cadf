"""Who answers: the agents, the built-in ones, and the registry they are found in."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from tiro.agents.permissions import SECRET_FILES, Kind, Permission, problem_of
from tiro.errors import AgentNotFoundError

Mode = Literal["primary", "subagent", "all"]

DEFAULT_AGENT = "build"


class AgentInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An agent: its name, its standing instructions, its model and its rules (M5.3)."""

    name: str
    description: str = ""
    mode: Mode = "all"
    native: bool = False
    """Built in."""
    hidden: bool = False
    """Never offered to a user."""
    temperature: float | None = None
    top_p: float | None = None
    color: str | None = None
    model: str | None = None
    """`provider/name`; None: the session's."""
    prompt: str = ""
    """The system prompt."""
    options: Mapping[str, Any] = {}
    steps: int | None = None
    """The most requests to the model in one turn; None: as configured."""
    permission: Permission = None
    """Its permission rules (M5.6); an empty set allows."""


class AgentRegistry:
    """The agents by name, in the order of their registration (M5.1)."""

    def __init__(self) -> None:
        self._agents: dict[str, AgentInfo] = {}
        self._default = DEFAULT_AGENT
        self.reset()

    @property
    def default(self) -> str:
        """The name of the default agent."""
        return self._default

    def get(self, name: str | None) -> AgentInfo | None:
        """The agent of this name, or None."""
        return self._agents.get(name) if name is not None else None

    def names(self, hidden: bool = False) -> Sequence[str]:
        """The names of the agents, the hidden ones only on demand."""
        return [agent.name for agent in self._agents.values() if hidden or not agent.hidden]

    def register(self, agent: AgentInfo) -> None:
        """Add an agent, or replace the one of its name; ValueError says what is wrong with it."""
        problem = _problem_of(agent)
        if problem is not None:
            raise ValueError(problem)
        self._agents[agent.name] = agent

    def unregister(self, name: str) -> bool:
        """Take an agent away; False when there is none. The default agent then is `build` again."""
        found = self._agents.pop(name, None) is not None
        if name == self._default:
            self._default = DEFAULT_AGENT
        return found

    def set_default(self, name: str) -> None:
        """Choose the default agent; AgentNotFoundError for an unknown name."""
        if name not in self._agents:
            raise AgentNotFoundError(
                f"There is no agent {name!r}; choose one of {', '.join(self._agents)}",
                name=name,
                available=list(self.names()),
            )
        self._default = name

    def reset(self) -> None:
        """Back to the built-in agents and their default."""
        self._agents = {agent.name: agent for agent in built_in_agents()}
        self._default = DEFAULT_AGENT

    def list(self) -> Sequence[AgentInfo]:
        """All agents, hidden ones included."""
        return [*self._agents.values()]

    def selectable(self) -> Sequence[AgentInfo]:
        """What a user may choose: not hidden, and of mode primary or all (M5.5)."""
        return [a for a in self._agents.values() if not a.hidden and a.mode != "subagent"]


def built_in_agents() -> Sequence[AgentInfo]:
    """The agents that are always there."""
    return [
        AgentInfo(
            name="build",
            description="Answers questions about the workspace and helps with the work on it",
            mode="primary",
            native=True,
            prompt=_prompt("build"),
        ),
        AgentInfo(
            name="plan",
            description="Works out how something should be done, and changes nothing",
            mode="primary",
            native=True,
            prompt=_prompt("plan"),
            permission=PLAN_PERMISSION,
        ),
        AgentInfo(
            name="explore",
            description="Finds things in the workspace",
            mode="subagent",
            native=True,
            prompt=_prompt("explore"),
            permission=EXPLORE_PERMISSION,
        ),
    ]


PLAN_FILES: Sequence[tuple[str, Kind]] = ((".tiro/plan/*.md", "allow"), ("*", "deny"))
"""Where the plan agent may write (M5.8)."""

PLAN_PERMISSION: Permission = {"edit": PLAN_FILES, "write": PLAN_FILES, "bash": "deny"}
EXPLORE_PERMISSION: Permission = {
    "read": SECRET_FILES,
    "grep": "allow",
    "glob": "allow",
    "*": "deny",
}


def _prompt(name: str) -> str:
    return (Path(__file__).parent / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()


def _problem_of(agent: AgentInfo) -> str | None:
    """What is wrong with an agent, as one sentence, or None."""
    if not agent.name.strip() or "/" in agent.name:
        return f"An agent needs a name without slashes, not {agent.name!r}"
    if agent.mode not in get_args(Mode):
        return f"The mode of agent {agent.name!r} must be primary, subagent or all"
    if agent.steps is not None and agent.steps < 1:
        return f"The steps of agent {agent.name!r} must be at least 1"
    permission = problem_of(agent.permission)
    return None if permission is None else f"Permission of agent {agent.name!r}: {permission}"
