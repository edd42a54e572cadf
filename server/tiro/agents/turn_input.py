"""All that one turn is given, and the request that follows from it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from tiro.agents import events
from tiro.agents.agent_info import AgentInfo
from tiro.agents.budget import Spending
from tiro.agents.permissions import Rules
from tiro.agents.prompt import build_request, rows_sent
from tiro.agents.settings import TurnSettings
from tiro.errors import ContextOverflowError
from tiro.models.model import Model, ModelRequest, ToolSchema
from tiro.session.core import Core
from tiro.session.messages import Content, Usage
from tiro.session.results import Rows
from tiro.session.secrets import KnownSecrets
from tiro.tools.editor import PermissionAnswer, PermissionRequest
from tiro.tools.long_output import OutputKeeper
from tiro.tools.seen import SeenTexts
from tiro.tools.silent_disk import WORK_SECONDS, Patience
from tiro.tools.tool import EditRecorder, Tool, Unrecorded
from tiro.tools.workspace import Workspace


async def _no_resize(
    _: ContextOverflowError | None, tell: Callable[[str], None]
) -> events.Resized | None:
    return None


async def _reject(_: PermissionRequest) -> PermissionAnswer:
    return PermissionAnswer("reject")


class Turn(msgspec.Struct, kw_only=True):
    """All that one turn needs; it is run once."""

    session: Core
    """The session it belongs to; only the turn itself adds messages to it while it runs."""
    prompt: Content
    """What the user wrote, attachments included, as the content of the user's message."""
    model: Model
    agent: AgentInfo
    workspace: Workspace
    tools: Sequence[Tool] = ()
    """What may be offered; those that the rules always deny are left out."""
    system: str = ""
    """The system prompt without what the session adds to it (messages, memo, summary)."""
    settings: TurnSettings = TurnSettings()
    rules: Rules = Rules()
    """The permission rules, without the session's own."""
    rules_now: Callable[[], Rules] | None = None
    """Those of the agent that the user has selected by now; what they deny, no answer allows."""
    before_step: Callable[
        [ContextOverflowError | None, Callable[[str], None]], Awaitable[events.Resized | None]
    ] = _no_resize
    """Brings the session under its limits before each request; what it did becomes an event.

    It is given the error with which a provider refused the request before as too long, and raises
    it where the request cannot get shorter; and something that passes on what it waits for.
    """
    ask: Callable[[PermissionRequest], Awaitable[PermissionAnswer]] = _reject
    """The question to the user."""
    edits: Callable[[str], EditRecorder] = lambda tool_use_id: Unrecorded()
    """Where the tool use with this id records each change of a file."""
    keep_output: Callable[[], OutputKeeper | None] = lambda: None
    """Finds who keeps an output of a tool that is too long to be held."""
    spending: Spending = msgspec.field(default_factory=Spending)
    """What counts against the budget; a sub-agent's turn has that of its caller."""
    on_usage: Callable[[Usage], None] = lambda usage: None
    """Hears what each request has used."""
    rules_in: Core | None = None
    """The session that keeps the user's "always" answers; None: the turn's own."""
    seen: SeenTexts = msgspec.field(default_factory=SeenTexts)
    """Which texts of files the model has seen in this turn."""
    patience: Patience = msgspec.field(default_factory=lambda: Patience(WORK_SECONDS, WORK_SECONDS))
    """With the disks that its tools ask."""
    secrets: KnownSecrets = msgspec.field(default_factory=KnownSecrets)
    """What is taken out of all that tools give back."""
    cancel: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    """Set by whoever wants the turn to stop."""
    ended: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    """Set by the turn when nothing more becomes part of it, before its last event."""


def offered_tools(tools: Sequence[Tool], rules: Rules) -> list[Tool]:
    """The tools a model is offered: those of which some use may run (M5.10)."""
    return [tool for tool in tools if rules.offers(tool)]


def tools_of(turn: Turn) -> list[Tool]:
    """The tools of a turn: none for a model that does not get to see them."""
    return offered_tools(turn.tools, turn.rules) if turn.model.facts.takes_tools else []


def schemas_of(tools: Sequence[Tool]) -> list[ToolSchema]:
    """The tools as a request carries them."""
    return [ToolSchema(tool.name, tool.description, tool.shown) for tool in tools]


def request_of(turn: Turn) -> ModelRequest:
    """The next request of a turn, exactly as its model gets it; changes nothing."""
    return build_request(
        turn.session,
        turn.model,
        turn.agent,
        turn.system,
        schemas_of(tools_of(turn)),
        max_output_tokens=turn.settings.max_output_tokens,
    )


def rows_of(turn: Turn) -> Rows:
    """Window and archive as that request shows them."""
    tools, window = schemas_of(tools_of(turn)), turn.model.facts.context_window
    return rows_sent(turn.session, turn.system, tools, window)
