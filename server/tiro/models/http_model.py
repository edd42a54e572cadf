"""A model behind HTTP, whatever the format: one attempt, repeated without what is not taken.

What a server says it does not take (a parameter, tools, images) is left out of the request, then
and later; the session keeps it. Each thing is left out once, so this always comes to an end.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, ClassVar, Protocol

import httpx

from tiro.models import refusals
from tiro.models.http_answer import Answer
from tiro.models.model import Delta, Finished, ModelFacts, ModelRequest, Progress, known_facts
from tiro.models.model_list import refused
from tiro.models.retries import Sleep, with_retries
from tiro.models.server_facts import told_facts
from tiro.models.tool_input import new_tool_id
from tiro.models.transport import Transport, is_loopback
from tiro.session.json_text import encode

MAX_QUESTIONS = 3
"""How often a server on this machine is asked for a window; Ollama knows it from the second on."""
GRACE_SECONDS = 2.0
"""How long the end of a stream is waited for once the model has given its reason to stop."""

TOLD = {
    "tools": "{name} takes no tools and is asked without them",
    "images": "{name} takes no images and is asked without them",
}
"""What the user is told when a thing is left out; the rest is left out in silence."""


class Reader(Protocol):
    """Reads one answer of a format into deltas."""

    is_ended: bool
    """Nothing of the answer can follow."""
    is_finished: bool
    """The model has given its reason to stop; the rest is not worth a long wait."""

    def read_events(self, events: list[bytes]) -> list[Delta]:
        """The deltas of events that arrived together."""
        ...

    def read_document(self, body: bytes) -> list[Delta]:
        """The deltas of an answer that came whole."""
        ...

    def close(self) -> list[Delta]:
        """The last deltas; an error when the answer has no mark of its end."""
        ...


class HttpModel:
    """One model of one provider; a format says what is sent and reads what comes."""

    path: ClassVar[str]
    """Where an answer is asked for, below the base_url."""
    optional: ClassVar[tuple[str, ...]]
    """What a request can do without, the most easily missed first."""

    def __init__(
        self,
        transport: Transport,
        name: str,
        *,
        facts: ModelFacts | None = None,
        sleep: Sleep = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
        new_id: Callable[[], str] = new_tool_id,
    ) -> None:
        self.provider = transport.provider
        self.name = f"{self.provider.name}/{name}"
        self.facts = facts or known_facts(self.provider, name)
        self.refused: set[str] = set()
        """What the server was found not to take."""
        self._own_name = name
        self._transport = transport
        self._sleep = sleep
        self._jitter = jitter
        self._new_id = new_id
        self._questions = MAX_QUESTIONS if is_loopback(self.provider) else 1

    def wire_request(self, request: ModelRequest) -> dict[str, Any]:
        """The body that would be sent; see `Model.wire_request`."""
        raise NotImplementedError

    def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """Ask once and yield the answer as it comes; see `Model.stream`."""
        return with_retries(lambda: self.ask(request), sleep=self._sleep, jitter=self._jitter)

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def ask(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """One attempt; what a server says it does not take is left out, then and later.

        The end of the answer is told when its connection can be used again: whoever hears it stops
        reading.
        """
        if self._questions and self._lacks_facts():
            self._questions -= 1
            self.facts = await self._with_told_facts()
        while True:
            wire, end, error = self.wire_request(request), list[Delta](), None
            async with self._transport.post(self.path, encode(wire)) as answer:
                if not 200 <= answer.status < 300:
                    error = await refused(self._transport, answer)
                else:
                    async with aclosing(self._read(answer)) as deltas:
                        async for delta in deltas:
                            if isinstance(delta, Finished):
                                end.append(delta)
                            else:
                                yield delta
            if error is None:
                for delta in end:
                    yield delta
                return
            changed = self._learn(error, wire)
            if changed is None:
                raise error
            if changed in TOLD:
                yield Progress(TOLD[changed].format(name=self.name))

    # What a format says

    def _reader(self) -> Reader:
        raise NotImplementedError

    def _lacks_facts(self) -> bool:
        """Whether the server is worth asking for what is known about the model."""
        return is_loopback(self.provider) and self.facts.context_window is None

    def _learn(self, error: Exception, wire: dict[str, Any]) -> str | None:
        """What the next request does otherwise after this error; None when nothing would help."""
        part = refusals.refused_part(error, wire, self.optional)
        if part is None or part in self.refused:
            return None
        self.refused.add(part)
        return part

    # The answer

    async def _read(self, answer: Answer) -> AsyncGenerator[Delta, None]:
        reader = self._reader()
        match await answer.first_character():
            case "<":
                raise refusals.web_page(self.provider, await answer.refusal_body())
            case "{" | "[":
                for delta in reader.read_document(await answer.document()):
                    yield delta
                    answer.limits.said(delta)
            case _:
                async with aclosing(self._read_events(answer, reader)) as deltas:
                    async for delta in deltas:
                        yield delta
        for delta in reader.close():
            yield delta

    async def _read_events(self, answer: Answer, reader: Reader) -> AsyncGenerator[Delta, None]:
        async with aclosing(answer.events()) as pieces:
            while not reader.is_ended:
                try:
                    async with asyncio.timeout(GRACE_SECONDS if reader.is_finished else None):
                        events = await anext(pieces, None)
                except (TimeoutError, httpx.TransportError):
                    if not reader.is_finished:
                        raise
                    return
                if events is None:
                    return
                for delta in reader.read_events(events):
                    yield delta
                    answer.limits.said(delta)

    async def _with_told_facts(self) -> ModelFacts:
        """What the user configured, else what the server tells, else what was known before."""
        told = await told_facts(self._transport, self._own_name)
        own = self.provider.models.get(self._own_name, ModelFacts())
        return ModelFacts(
            own.context_window or told.context_window or self.facts.context_window,
            own.max_output_tokens or told.max_output_tokens or self.facts.max_output_tokens,
            self.facts.price_per_million,
        )
