"""A question to a model outside a turn, and all of its answer: no tools, no events."""

import contextlib
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from tiro.agents.agent_info import AgentInfo
from tiro.agents.options import output_limit
from tiro.errors import ModelError
from tiro.models.model import Delta, Finished, Model, ModelRequest, TextDelta, ToolUseDone
from tiro.session.handlers import awaited
from tiro.session.messages import Message, StopReason, TextBlock, Usage, blocks_of, text_of

NOBODY = AgentInfo(name="nobody")
"""Asks with no parameters of its own."""

NO_END = "The answer of the model broke off; try again"


class Reply(msgspec.Struct, frozen=True):
    """What the model said; `tool_uses` are the names of tools that it wanted all the same."""

    text: str
    stop_reason: StopReason
    tool_uses: list[str]
    usage: Usage | None


class Chat:
    """A model in the form that a summariser and a memo ask for (N3.2).

    `on_usage` hears what each question cost, `on_asking` that one begins. A model that can be held
    to the JSON Schema `response_schema` is; the parameters of the requests are those of `agent`.
    """

    def __init__(
        self,
        model: Model,
        on_usage: Callable[[Usage], None] = lambda usage: None,
        max_output_tokens: int | None = None,
        on_asking: Callable[[], None] = lambda: None,
        response_schema: dict[str, Any] | None = None,
        agent: AgentInfo = NOBODY,
    ) -> None:
        self.model = model
        self._on_usage = on_usage
        self._max_output_tokens = max_output_tokens
        self._on_asking = on_asking
        self._response_schema = response_schema
        self._agent = agent

    async def chat(
        self,
        *,
        messages: Sequence[Mapping[str, str]],
        tools: None = None,
        model: str | None = None,
    ) -> Reply:
        """Ask with one system and one user message; raises what the model's stream raises."""
        self._on_asking()
        reply = await ask(
            self.model,
            system="\n".join(m["content"] for m in messages if m["role"] == "system"),
            text="\n".join(m["content"] for m in messages if m["role"] != "system"),
            max_output_tokens=self._max_output_tokens,
            response_schema=self._response_schema,
            agent=self._agent,
        )
        if reply.usage is not None:
            self._on_usage(reply.usage)
        return reply


async def ask(
    model: Model,
    *,
    system: str,
    text: str,
    max_output_tokens: int | None = None,
    response_schema: dict[str, Any] | None = None,
    agent: AgentInfo = NOBODY,
) -> Reply:
    """Put one question to a model and wait for all of its answer, with an agent's parameters.

    Raises ModelError or ContextOverflowError; a cancel closes the connection at once.
    """
    request = ModelRequest(
        model=model.name.partition("/")[2] or model.name,
        messages=[Message("user", [{"type": "text", "text": text}])],
        system=system,
        max_output_tokens=output_limit(agent.options) or max_output_tokens,
        temperature=agent.temperature,
        top_p=agent.top_p,
        options=agent.options,
        response_schema=response_schema,
    )
    return await streamed(model, request)


async def answer_of(model: Any, request: ModelRequest) -> str:
    """The answer of a model that streams, or of a callable from messages to text (answer 12).

    Raises TypeError for a callable that answers with anything else, and what the model raises.
    """
    if hasattr(model, "stream"):
        return (await streamed(model, request)).text
    reply = await awaited(model, list(_as_dicts(request)))
    text = reply if isinstance(reply, str) else getattr(reply, "text", None)
    if not isinstance(text, str):
        raise TypeError(f"A model must answer with a text, not {reply!r}")
    return text


async def streamed(model: Any, request: ModelRequest) -> Reply:
    """All of a model's answer to a request. Raises as `ask`."""
    pieces: list[str] = []
    uses: list[str] = []
    async with contextlib.aclosing(deltas_of(model, request)) as deltas:
        async for delta in deltas:
            if isinstance(delta, TextDelta):
                pieces.append(delta.text)
            elif isinstance(delta, ToolUseDone):
                uses.append(delta.name)
            elif isinstance(delta, Finished):
                finished = delta
    return Reply("".join(pieces), finished.stop_reason, uses, finished.usage)


async def deltas_of(model: Any, request: ModelRequest) -> AsyncGenerator[Delta, None]:
    """What a model yields, up to its `Finished`; ModelError where the stream ends without one."""
    async with contextlib.AsyncExitStack() as stack:
        stream: Any = model.stream(request)
        if isinstance(stream, AsyncGenerator):
            stream = await stack.enter_async_context(contextlib.aclosing(stream))
        async for delta in stream:
            yield delta
            if isinstance(delta, Finished):
                return
    raise ModelError(NO_END, provider=getattr(model, "name", "").partition("/")[0])


def _as_dicts(request: ModelRequest) -> Iterator[dict[str, Any]]:
    """A request as plain messages: the system prompt first, content that is only text as text."""
    if request.system:
        yield {"role": "system", "content": request.system}
    for message in request.messages:
        is_text = all(isinstance(block, TextBlock) for block in blocks_of(message))
        yield {"role": message.role, "content": text_of(message) if is_text else message.content}
