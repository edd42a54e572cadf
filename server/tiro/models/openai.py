"""Models behind OpenAI's chat completions: OpenAI, OpenRouter, Ollama, llama.cpp, vLLM, others."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

import httpx

from tiro.models import openai_failure
from tiro.models.model import (
    Delta,
    ModelFacts,
    ModelRequest,
    Progress,
    ProviderSettings,
    known_facts,
)
from tiro.models.openai_answer import AnswerReader
from tiro.models.openai_facts import with_window
from tiro.models.openai_list import refused
from tiro.models.openai_request import to_wire_request
from tiro.models.openai_tool_uses import new_tool_id
from tiro.models.transport import Answer, Sleep, Transport, is_loopback, with_retries
from tiro.session.messages import encode

MAX_QUESTIONS = 3
"""How often a server on this machine is asked for a window; Ollama knows it from the second on."""
GRACE_SECONDS = 2.0
"""How long `[DONE]` is waited for once the model has given its reason to stop."""


class OpenAIModel:
    """One model of one provider."""

    def __init__(
        self,
        provider: ProviderSettings,
        name: str,
        *,
        facts: ModelFacts | None = None,
        extra: Mapping[str, Any] | None = None,
        http: httpx.AsyncBaseTransport | None = None,
        sleep: Sleep = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
        new_id: Callable[[], str] = new_tool_id,
    ) -> None:
        self.name = f"{provider.name}/{name}"
        self._own_name = name
        self.facts = facts or known_facts(provider, name)
        self.provider = provider
        self._extra = dict(extra or {})
        self._transport = openai_transport(provider, http)
        self._sleep = sleep
        self._jitter = jitter
        self._new_id = new_id
        self._refused: set[str] = set()
        self._questions = MAX_QUESTIONS if is_loopback(provider) else 0

    def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """Ask once and yield the answer as it comes; see `Model.stream`."""
        return with_retries(lambda: self.ask(request), sleep=self._sleep, jitter=self._jitter)

    def wire_request(self, request: ModelRequest) -> dict[str, Any]:
        """The body that would be sent; see `Model.wire_request`."""
        wire = to_wire_request(request, refused=self._refused, prefer=self._limit_name())
        return {**wire, **self._extra}

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def ask(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """One attempt; what a server says it does not take is left out, then and later."""
        if self._questions and self.facts.context_window is None:
            self._questions -= 1
            self.facts = await with_window(self._transport, self._own_name, self.facts)
        while True:
            wire = self.wire_request(request)
            async with self._transport.post("/chat/completions", encode(wire)) as answer:
                if 200 <= answer.status < 300:
                    async with aclosing(self._read(answer)) as deltas:
                        async for delta in deltas:
                            yield delta
                    return
                error = await refused(self._transport, answer)
            parameter = openai_failure.refused_parameter(error, wire)
            if parameter is None:
                raise error
            self._refused.add(parameter)
            if parameter == "tools":
                yield Progress(f"{self.name} takes no tools and is asked without them")

    async def _read(self, answer: Answer) -> AsyncGenerator[Delta, None]:
        reader = AnswerReader(self.provider, self.facts.price_per_million, new_id=self._new_id)
        match await answer.first_character():
            case "<":
                raise openai_failure.web_page(self.provider, await answer.refusal_body())
            case "{" | "[":
                for delta in reader.read_document(await answer.document()):
                    yield delta
            case _:
                async with aclosing(self._read_events(answer, reader)) as deltas:
                    async for delta in deltas:
                        yield delta
        for delta in reader.close():
            yield delta

    async def _read_events(
        self, answer: Answer, reader: AnswerReader
    ) -> AsyncGenerator[Delta, None]:
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

    def _limit_name(self) -> str:
        """OpenAI itself wants the new name of the output limit, all others know the old one."""
        is_openai = "api.openai.com" in self.provider.base_url
        return "max_completion_tokens" if is_openai else "max_tokens"


def openai_transport(
    provider: ProviderSettings, http: httpx.AsyncBaseTransport | None = None
) -> Transport:
    """The way to a provider of this format."""
    key = (provider.api_key or "").strip()
    authorization = {"authorization": f"Bearer {key}"} if key else {}
    return Transport(provider, authorization=authorization, http=http)
