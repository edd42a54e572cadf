"""The registry in which agents are found by name, and the default among them."""

from collections.abc import Sequence
from typing import get_args

from tiro.agents.agent_info import AgentInfo, Mode
from tiro.agents.built_in import built_in_agents
from tiro.agents.options import faults_of
from tiro.agents.permissions import problem_of
from tiro.errors import AgentNotFoundError

__all__ = ["DEFAULT_AGENT", "AgentInfo", "AgentRegistry", "built_in_agents"]

DEFAULT_AGENT = "build"


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

    def needed(self, name: str) -> AgentInfo:
        """The agent of this name that Tiro itself needs: the built-in one where it was removed."""
        return self._agents.get(name) or next(a for a in built_in_agents() if a.name == name)

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

    def adopt(self, other: "AgentRegistry") -> None:
        """Take over the agents and the default of another one."""
        self._agents, self._default = dict(other._agents), other._default

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


def _problem_of(agent: AgentInfo) -> str | None:
    """What is wrong with an agent, as one sentence, or None."""
    if not agent.name.strip() or "/" in agent.name or not agent.name.isprintable():
        return f"An agent needs a name that can be shown, without slashes, not {agent.name!r}"
    if agent.mode not in get_args(Mode):
        return f"The mode of agent {agent.name!r} must be primary, subagent or all"
    if agent.steps is not None and agent.steps < 1:
        return f"The steps of agent {agent.name!r} must be at least 1"
    for name, fault in faults_of(agent.options, is_own=True):
        return f"Option {name!r} of agent {agent.name!r} {fault}"
    permission = problem_of(agent.permission)
    return None if permission is None else f"Permission of agent {agent.name!r}: {permission}"
