"""The tools of the library's agent: a caller's functions, and a request that uses them (G5.5)."""

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from tiro.agents.answer import Answer
from tiro.agents.asking import answer_of, deltas_of
from tiro.errors import ModelError, ToolError
from tiro.models.model import (
    BlockDone,
    ModelRequest,
    TextDelta,
    ThinkingDelta,
    ToolSchema,
    ToolUseDone,
)
from tiro.session.entries import Entry, new_tool_result_entry
from tiro.session.entry_history import owned
from tiro.session.entry_view import message_of
from tiro.session.handlers import awaited
from tiro.session.messages import Message, text_of
from tiro.tools.tool import check_input, object_schema

Ask = Callable[[list[Message]], Awaitable[ModelRequest]]
"""Makes the request that has these messages behind the input."""


class AgentTool(msgspec.Struct, frozen=True):
    """A function that the model may have called with an object as its keyword arguments."""

    schema: ToolSchema
    function: Callable[..., Any]


class Answered(msgspec.Struct, frozen=True):
    """How a request ended."""

    output: str
    request: ModelRequest
    """The last one that was sent."""
    steps: list[Message]
    """Every tool call and result before the answer, oldest first."""


def tool_of(
    function: Callable[..., Any],
    name: str | None,
    description: str | None,
    input_schema: dict[str, Any] | None,
) -> AgentTool:
    """The function as a tool, by its own name and docstring unless there are others."""
    schema = {**object_schema({}), "additionalProperties": True}
    about = description if description is not None else function.__doc__ or ""
    return AgentTool(
        ToolSchema(name or function.__name__, about.strip(), input_schema or schema), function
    )


async def answered(
    model: Any, ask: Ask, tools: Mapping[str, AgentTool], max_requests: int
) -> Answered:
    """Ask until the model uses no tool any more; what it uses is run, one after the other.

    Raises ModelError when `max_requests` are not enough, and what the model raises. What a tool
    raises is told to the model.
    """
    steps: list[Message] = []
    for _ in range(max_requests):
        request = await ask(steps)
        if not hasattr(model, "stream"):
            return Answered(await answer_of(model, request), request, steps)
        answer = await _heard(model, request)
        message = answer.take_message()
        if not answer.tool_uses:
            return Answered("" if message is None else text_of(message), request, steps)
        if message is not None:
            steps.append(message)
        steps += [await _result(tools, use) for use in answer.tool_uses]
    raise ModelError(f"The model used tools in {max_requests} requests and has not answered yet")


async def _heard(model: Any, request: ModelRequest) -> Answer:
    answer = Answer()
    async with contextlib.aclosing(deltas_of(model, request)) as deltas:
        async for delta in deltas:
            if isinstance(delta, TextDelta):
                answer.add_text(delta)
            elif isinstance(delta, ThinkingDelta):
                answer.add_thinking(delta)
            elif isinstance(delta, BlockDone):
                answer.add_block(delta)
            elif isinstance(delta, ToolUseDone):
                answer.add_tool_use(delta)
    return answer


async def _result(tools: Mapping[str, AgentTool], use: ToolUseDone) -> Message:
    """The message that answers a tool use; it keeps the result as the tool gave it."""
    try:
        entry = new_tool_result_entry(use.name, await _run(tools, use))
    except Exception as error:  # whatever it is, the model may do it another way
        entry = new_tool_result_entry(use.name, None, str(error) or type(error).__name__)
    kept = Entry(type=entry.type, content=entry.content, metadata={"call_id": use.id})
    message = message_of(owned(kept), use.id)
    return msgspec.structs.replace(message, timestamp=None)  # as all that is recorded


async def _run(tools: Mapping[str, AgentTool], use: ToolUseDone) -> Any:
    if use.name not in tools:
        known = ", ".join(tools) or "none"
        raise ToolError(f"There is no tool {use.name!r} (known: {known}). Nothing was run")
    if use.input is None:
        raise ToolError("The input is not a JSON object. Nothing was run")
    tool = tools[use.name]
    given = check_input(tool.schema.input_schema, use.input)
    return await awaited(partial(tool.function, **given))
