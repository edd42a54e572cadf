"""Who answers: the agents, the built-in ones, and the registry they are found in."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from tiro.errors import AgentNotFoundError

Mode = Literal["primary", "subagent", "all"]
Permission = Any


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
    options: dict[str, Any] = {}
    steps: int | None = None
    """The most requests to the model in one turn; None: as configured."""
    permission: Permission = None
    """Its permission rules (M5.6); an empty set allows."""


class AgentRegistry:
    """The agents by name (M5.1)."""

    def __init__(self) -> None:
        raise NotImplementedError

    @property
    def default(self) -> str:
        """The name of the default agent."""
        raise NotImplementedError

    def get(self, name: str | None) -> AgentInfo | None:
        """The agent of this name, or None."""
        raise NotImplementedError

    def list(self) -> list[AgentInfo]:
        """All agents, in the order of their registration."""
        raise NotImplementedError

    def selectable(self) -> "Sequence[AgentInfo]":
        """What a user may choose: not hidden, and primary or all (M5.5)."""
        raise NotImplementedError

    def names(self, hidden: bool = False) -> "Sequence[str]":
        """The names of the agents, hidden ones only on demand."""
        raise NotImplementedError

    def register(self, agent: AgentInfo) -> None:
        """Add an agent, or replace the one of its name; ValueError for an invalid one."""
        raise NotImplementedError

    def unregister(self, name: str) -> bool:
        """Take an agent away; False when there is none."""
        raise NotImplementedError

    def set_default(self, name: str) -> None:
        """Choose the default agent; AgentNotFoundError for an unknown name."""
        raise AgentNotFoundError

    def reset(self) -> None:
        """Back to the built-in agents."""
        raise NotImplementedError
