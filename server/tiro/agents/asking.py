"""One question to a model outside a turn: for a summary, a memo, a title. No tools, no events."""

import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

import msgspec

from tiro.errors import ModelError
from tiro.models.model import Finished, Model, ModelRequest, TextDelta, ToolUseDone
from tiro.session.messages import Message, StopReason, Usage

NO_END = "The answer of the model broke off; try again"


class Reply(msgspec.Struct, frozen=True):
    """What the model said; `tool_uses` are the names of tools that it wanted all the same."""

    text: str
    stop_reason: StopReason
    tool_uses: list[str]
    usage: Usage | None


class Chat:
    """A model in the form that a summariser and a memo ask for (N3.2).

    `on_usage` hears what each question cost.
    """

    def __init__(
        self,
        model: Model,
        on_usage: Callable[[Usage], None] = lambda usage: None,
        max_output_tokens: int | None = None,
    ) -> None:
        self.model = model
        self._on_usage = on_usage
        self._max_output_tokens = max_output_tokens

    async def chat(
        self,
        *,
        messages: Sequence[Mapping[str, str]],
        tools: None = None,
        model: str | None = None,
    ) -> Reply:
        """Ask with one system and one user message; raises what the model's stream raises."""
        reply = await ask(
            self.model,
            system="\n".join(m["content"] for m in messages if m["role"] == "system"),
            text="\n".join(m["content"] for m in messages if m["role"] != "system"),
            max_output_tokens=self._max_output_tokens,
        )
        if reply.usage is not None:
            self._on_usage(reply.usage)
        return reply


async def ask(
    model: Model, *, system: str, text: str, max_output_tokens: int | None = None
) -> Reply:
    """Put one question to a model and wait for all of its answer.

    Raises ModelError or ContextOverflowError; a cancel closes the connection at once.
    """
    request = ModelRequest(
        model=model.name.partition("/")[2] or model.name,
        messages=[Message("user", [{"type": "text", "text": text}])],
        system=system,
        max_output_tokens=max_output_tokens,
    )
    pieces: list[str] = []
    uses: list[str] = []
    async with contextlib.AsyncExitStack() as stack:
        stream: Any = model.stream(request)
        if isinstance(stream, AsyncGenerator):
            stream = await stack.enter_async_context(contextlib.aclosing(stream))
        async for delta in stream:
            if isinstance(delta, TextDelta):
                pieces.append(delta.text)
            elif isinstance(delta, ToolUseDone):
                uses.append(delta.name)
            elif isinstance(delta, Finished):
                return Reply("".join(pieces), delta.stop_reason, uses, delta.usage)
    raise ModelError(NO_END, provider=model.name.partition("/")[0])
