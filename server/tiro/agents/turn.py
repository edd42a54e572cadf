"""The loop of a turn: prompt → request → answer → tool uses → next request, told as events.

Law: whatever happens, and wherever it is stopped, every tool use in the session has exactly one
result, nothing that the model wrote is lost, and the last event is `Finished`. When the generator
itself is closed or its task is cancelled, the same is stored without further events.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import msgspec

from tiro.agents.agent import AgentInfo
from tiro.agents.events import Resized, Text, TurnEvent
from tiro.agents.permissions import PermissionDecision
from tiro.models.model import Model
from tiro.session.messages import Content
from tiro.tools.tool import Tool
from tiro.tools.workspace import PermissionAnswer, PermissionRequest, Workspace


class TurnSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a turn."""

    max_steps: int = 50
    max_output_tokens: int | None = None


async def _no_resize() -> Resized | None:
    return None


async def _reject(request: PermissionRequest) -> PermissionAnswer:
    return PermissionAnswer("reject")


class Turn(msgspec.Struct, kw_only=True):
    """All that one turn needs; it is run once."""

    session: Any
    """The session it belongs to; only the turn itself adds messages to it while it runs."""
    prompt: Content
    """What the user wrote, attachments included, as the content of the user's message."""
    model: Model
    agent: AgentInfo
    workspace: Workspace
    tools: Sequence[Tool] = ()
    """Already without those that the agent may never use."""
    system: str = ""
    """The system prompt without memo and summary, which each step adds anew."""
    settings: TurnSettings = TurnSettings()
    decide: Callable[[Tool, dict[str, Any]], PermissionDecision]
    """The permission decision for a tool use with this input."""
    before_step: Callable[[], Awaitable[Resized | None]] = _no_resize
    """Brings the session under its limits before each request; what it did becomes an event."""
    ask: Callable[[PermissionRequest], Awaitable[PermissionAnswer]] = _reject
    """The question to the user."""
    cancel: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    """Set by whoever wants the turn to stop."""


async def run_turn(turn: Turn) -> AsyncIterator[TurnEvent]:
    """Run the turn, and yield what happens until `Finished`.

    Consume it with `contextlib.aclosing`, so that leaving the loop early ends the turn too.
    """
    if turn.agent:
        raise NotImplementedError
    yield Text("")
