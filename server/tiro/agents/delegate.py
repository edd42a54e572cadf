"""The tool that gives a task to another agent: a turn of its own, in a window of its own.

What that agent does is seen under the tool use it works for, and what it costs is part of the turn.
It may do nothing that its caller may not (M5.9), and gives no task on: it is not offered this tool.
"""

import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import msgspec

from tiro.agents import events
from tiro.agents.agent_info import AgentInfo
from tiro.agents.turn import run_turn
from tiro.agents.turn_input import Turn
from tiro.errors import TiroError, ToolError
from tiro.tools.tool import Tool, ToolOutput, ToolRun

NAME = "delegate"
DELEGATE = (
    "Give a task to another agent, which works by itself and answers once. It knows nothing of this"
    " conversation: say all it needs. Use it for long work whose result is short. Agents: {agents}"
)
NO_ANSWER = "(it gave no answer)"
STOPPED = "{text}\n\n[The agent {name} stopped early: {reason}.]"
FAILED = "The agent {name} failed: {error}. What it had said: {text}"

Begin = Callable[[AgentInfo, str, ToolRun], Awaitable[Turn]]
"""Makes the turn in which an agent does a task for a tool use."""


def delegate_tool(agents: Sequence[AgentInfo], begin: Begin) -> Tool:
    """The tool, for these agents."""
    named = {agent.name: agent for agent in agents}
    told = " · ".join(f"{agent.name} ({agent.description})" for agent in agents)

    async def run(given: dict[str, Any], run: ToolRun) -> ToolOutput:
        try:
            turn = await begin(named[given["agent"]], given["task"], run)
        except TiroError as error:  # such as a model that cannot be opened
            raise ToolError(f"{error}. Nothing was run; do it yourself or ask the user") from error
        async with contextlib.aclosing(run_turn(turn)) as happened:
            async for event in happened:
                if isinstance(event, events.Finished):
                    return _result(given["agent"], event)
                for seen in _as_seen(run.tool_use_id, event):
                    run.on_event(seen)
        raise AssertionError("a turn that was not cancelled ends with Finished")

    return Tool(
        name=NAME,
        description=DELEGATE.format(agents=told),
        input_schema={
            "type": "object",
            "properties": {
                "agent": {"type": "string", "enum": list(named)},
                "task": {"type": "string", "minLength": 1},
            },
            "required": ["agent", "task"],
            "additionalProperties": False,
        },
        effect="read",  # what the agent does is judged use by use
        permission_key=NAME,
        run=run,
        subject_field="agent",
    )


def id_within(parent: str, tool_use_id: str) -> str:
    """The id under which a tool use of a sub-agent is seen: no two in a turn are the same."""
    return f"{parent}/{tool_use_id}"


def _as_seen(parent: str, event: events.TurnEvent) -> Iterator[events.TurnEvent]:
    """An event of the agent's turn as it is seen in the turn that called it."""
    match event:
        case events.Text(delta=delta):
            yield events.ToolOutput(parent, delta)
        case events.ToolUse(tool_use=shown):
            shown = msgspec.structs.replace(shown, id=id_within(parent, shown.id))
            yield msgspec.structs.replace(event, tool_use=shown, parent_tool_use_id=parent)
        case events.ToolOutput(tool_use_id=id, delta=delta):
            yield events.ToolOutput(id_within(parent, id), delta)
        case events.ToolResult(tool_use_id=id):
            yield msgspec.structs.replace(event, tool_use_id=id_within(parent, id), seq=None)
        case events.Retry() | events.Progress():
            yield event


def _result(name: str, finished: events.Finished) -> ToolOutput:
    outcome = finished.outcome
    text = outcome.text or NO_ANSWER
    if finished.error is not None:
        told = FAILED.format(name=name, error=finished.error, text=text)
        return ToolOutput(told, is_error=True)
    if outcome.stop_reason != "end_turn":
        return ToolOutput(STOPPED.format(text=text, name=name, reason=outcome.stop_reason))
    return ToolOutput(text)
