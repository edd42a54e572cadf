"""Turns for tests: made of scripts, run to their end, and checked for what always holds."""

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.fakes import RecordingEditor, ScriptedModel, Step
from tiro.agents.agent_info import AgentInfo
from tiro.agents.events import Finished, Started, Stored, Text, ToolUse, TurnEvent
from tiro.agents.turn import run_turn
from tiro.agents.turn_input import Turn
from tiro.session.core import Core
from tiro.session.messages import Message, blocks_of, tool_results_of, tool_uses_of
from tiro.tools.tool import Tool, ToolOutput, ToolRun
from tiro.tools.workspace import Workspace

AGENT = AgentInfo(name="build", prompt="You are a test.")


def a_turn(
    *scripts: Sequence[Step],
    prompt: Any = "go",
    tools: Sequence[Tool] = (),
    session: Core | None = None,
    **given: Any,
) -> Turn:
    """A turn with a scripted model; whatever a Turn has may be given."""
    fields: dict[str, Any] = {
        "session": session if session is not None else Core(),
        "prompt": prompt,
        "model": ScriptedModel(*scripts),
        "agent": AGENT,
        "workspace": Workspace(RecordingEditor(Path("/nowhere"))),
        "tools": tools,
        "system": AGENT.prompt,
    }
    return Turn(**{**fields, **given})


async def events_of(turn: Turn, *, stop_after: int | None = None) -> list[TurnEvent]:
    """Run a turn, by default to its end, and return its events."""
    seen: list[TurnEvent] = []
    async with contextlib.aclosing(run_turn(turn)) as events:
        async for event in events:
            seen.append(event)
            if len(seen) == stop_after:
                break
    return seen


def run(turn: Turn) -> list[TurnEvent]:
    """Run a turn to its end and check what always holds."""
    events = asyncio.run(events_of(turn))
    assert_sound(turn.session)
    assert_well_told(turn, events)
    return events


def finished(events: Sequence[TurnEvent]) -> Finished:
    """The last event."""
    last = events[-1]
    assert isinstance(last, Finished)
    return last


def told(session: Core) -> list[tuple[str, Any]]:
    """The session as (role, content), oldest first; a tool result as (id, content, is_error)."""
    rows: list[tuple[str, Any]] = []
    for message in session.oldest_first():
        results = tool_results_of(message) if message.role == "tool" else []
        content: Any = message.content
        if results:
            content = (results[0].tool_use_id, results[0].content, results[0].is_error)
        rows.append((message.role, content))
    return rows


def statuses(events: Sequence[TurnEvent], tool_use_id: str) -> list[str]:
    """The statuses that a tool use went through."""
    return [e.status for e in events if isinstance(e, ToolUse) and e.tool_use.id == tool_use_id]


def assert_sound(session: Core) -> None:
    """Every tool use has exactly one result, after it, and nothing blank is stored (B03, B36)."""
    open_uses: list[str] = []
    for message in session.oldest_first():
        if message.role != "tool":
            assert not open_uses, f"{open_uses} have no result before {message}"
        for result in tool_results_of(message):
            assert result.tool_use_id in open_uses, f"{result} answers nothing, or twice"
            open_uses.remove(result.tool_use_id)
        open_uses += [use.id for use in tool_uses_of(message)]
        assert _is_something(message), f"{message} is blank"
    assert not open_uses, f"{open_uses} have no result"


def assert_well_told(turn: Turn, events: Sequence[TurnEvent]) -> None:
    """The events have their order, and say what is in the session."""
    assert isinstance(events[0], Started)
    assert [type(event) for event in events].count(Finished) == 1
    outcome = finished(events).outcome
    stored = [event.seq for event in events if isinstance(event, Stored)]
    rows = [m for m in turn.session.oldest_first() if (m.seq or 0) >= outcome.first_seq]
    assert stored == [message.seq for message in rows]
    assert stored[-1:] == [outcome.last_seq]
    heard = "".join(event.delta for event in events if isinstance(event, Text))
    assert all(part.strip() in heard for part in outcome.text.split("\n"))
    if isinstance(turn.model, ScriptedModel):
        for request in turn.model.requests:
            assert_strict(request.messages)


def assert_strict(messages: Sequence[Message]) -> None:
    """What a strict provider demands: each call answered once, directly after it; nothing blank."""
    assert messages[0].role == "user"
    open_uses: list[str] = []
    for message in messages:
        results = [r.tool_use_id for r in tool_results_of(message)]
        assert results == open_uses[: len(results)], f"{message} is out of place"
        open_uses = open_uses[len(results) :]
        if not results:
            assert not open_uses, f"{open_uses} are not answered before {message}"
            open_uses = [use.id for use in tool_uses_of(message)]
        assert _is_something(message)
    assert not open_uses


def a_tool(
    name: str = "look",
    *,
    waits: asyncio.Event | None = None,
    ticks: int = 0,
    error: BaseException | None = None,
    output: str = "seen",
    is_error: bool = False,
    starts: list[str] | None = None,
    ends: list[str] | None = None,
    **fields: Any,
) -> Tool:
    """A tool that waits for an event, lets the loop turn some times, then answers or raises."""

    async def run_it(_: dict[str, Any], run: ToolRun) -> ToolOutput:
        if starts is not None:
            starts.append(run.tool_use_id)
        if waits is not None:
            await waits.wait()
        for _tick in range(ticks):
            await asyncio.sleep(0)
        if error is not None:
            raise error
        if ends is not None:
            ends.append(run.tool_use_id)
        return ToolOutput(output, is_error)

    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    base = Tool(
        name=name,
        description=name,
        input_schema=schema,
        effect="read",
        permission_key="read",
        run=run_it,
    )
    return msgspec.structs.replace(base, **fields)


def _is_something(message: Message) -> bool:
    blocks = blocks_of(message)
    return bool(blocks) and all(getattr(block, "text", "x").strip() for block in blocks)
