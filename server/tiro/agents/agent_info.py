"""What an agent is: who answers, with which prompt, model and rules."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from tiro.agents.permissions import Permission

Mode = Literal["primary", "subagent", "all"]


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
    """What editors may show it in: a name, or `#rrggbb`."""
    model: str | None = None
    """`provider/name`; None: the session's."""
    prompt: str = ""
    """The system prompt."""
    options: Mapping[str, Any] = {}
    """More parameters of its requests, by the provider's own names."""
    steps: int | None = None
    """The most requests to the model in one turn; None: as configured."""
    permission: Permission = None
    """Its permission rules (M5.6); an empty set allows."""
