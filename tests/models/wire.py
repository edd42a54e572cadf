"""Answers of a provider as a test scripts them: exact bytes in exact chunks, no network."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import httpx
import pytest

from tiro.errors import ModelError
from tiro.models.anthropic import AnthropicModel
from tiro.models.http_model import HttpModel
from tiro.models.model import (
    Delta,
    ModelFacts,
    ModelRequest,
    ProviderSettings,
    TextDelta,
    ThinkingDelta,
)
from tiro.models.openai import OpenAIModel
from tiro.models.retries import Sleep
from tiro.session.messages import Message

SECRET = "sk-5ec4e7-c0ffee-c0ffee"
URL = "https://provider.test/v1"

Step = bytes | Exception | asyncio.Event
"""What a scripted body does next: send, break, or wait until the event is set."""


class Body(httpx.AsyncByteStream):
    """A body in exact chunks, which notes when it was read to its end and when it was closed."""

    def __init__(self, *steps: Step) -> None:
        self.steps = steps
        self.is_read = self.is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for step in self.steps:
            if isinstance(step, asyncio.Event):
                await step.wait()
            elif isinstance(step, Exception):
                raise step
            else:
                yield step
        self.is_read = True

    async def aclose(self) -> None:
        self.is_closed = True


class Wire:
    """Gives its answers in order and records the requests; an exception is raised instead."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    @property
    def http(self) -> httpx.MockTransport:
        return httpx.MockTransport(self._answer)

    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.requests]

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Waits:
    """Stands for the clock: notes each wait and ends it at once."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def settings(**given: Any) -> ProviderSettings:
    return ProviderSettings(
        **{"name": "acme", "api": "openai", "base_url": URL, "api_key": SECRET, **given}
    )


def model(
    wire: Wire | None,
    *,
    waits: Sleep | None = None,
    jitter: Callable[[], float] = lambda: 0.0,
    **given: Any,
) -> OpenAIModel:
    """A model over that wire; without one over the real network of this machine."""
    numbers = iter(range(1, 100))
    return OpenAIModel(
        settings(**given),
        "m1",
        http=wire.http if wire else None,
        sleep=waits or Waits(),
        jitter=jitter,
        new_id=lambda: f"made_{next(numbers)}",
    )


def anthropic(wire: Wire, *, waits: Sleep | None = None, **given: Any) -> AnthropicModel:
    """As `model`, in the other format; it knows its limits, so it does not ask for them."""
    facts = {"m1": ModelFacts(200_000, 64_000)}
    numbers = iter(range(1, 100))
    return AnthropicModel(
        settings(**{"api": "anthropic", "models": facts, **given}),
        "m1",
        http=wire.http,
        sleep=waits or Waits(),
        jitter=lambda: 0.0,
        new_id=lambda: f"made_{next(numbers)}",
    )


def request(*messages: Message, **given: Any) -> ModelRequest:
    asked = list(messages) or [Message("user", [{"type": "text", "text": "hi"}])]
    return ModelRequest(model="m1", messages=asked, **given)


def streams(*steps: Step, **headers: str) -> httpx.Response:
    """A streamed answer in exactly these chunks."""
    kind = {"content-type": "text/event-stream", **headers}
    return httpx.Response(200, headers=kind, stream=Body(*steps))


def refuses(status: int, body: Any = "", **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, headers=sent, stream=Body(content))


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def piece(finish: str | None = None, **delta: Any) -> bytes:
    """One chunk of a chat completions stream."""
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def text(said: str, finish: str | None = None) -> bytes:
    return piece(finish, content=said)


def says(*texts: str) -> httpx.Response:
    """A whole good answer."""
    return streams(*map(text, texts), piece("stop"), DONE)


DONE = b"data: [DONE]\n\n"


async def ask(asked: HttpModel, wanted: ModelRequest | None = None) -> list[Delta]:
    """The deltas of one request; the model is closed."""
    try:
        return [delta async for delta in asked.stream(wanted or request())]
    finally:
        await asked.close()


def answer(*responses: httpx.Response | Exception, **given: Any) -> list[Delta]:
    """The deltas that these answers give."""
    return asyncio.run(ask(model(Wire(*responses), **given)))


def joined(deltas: Sequence[Delta], kind: type[TextDelta] | type[ThinkingDelta] = TextDelta) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, kind))


def only(deltas: Sequence[Delta], *kinds: type[Any]) -> list[Delta]:
    return [delta for delta in deltas if isinstance(delta, kinds)]


def run(*answers: httpx.Response | Exception, **given: Any) -> tuple[list[Delta], Waits, Wire]:
    """The deltas of a model whose server answers like this, its waits, and what was sent."""
    waits, wire = Waits(), Wire(*answers)
    return asyncio.run(ask(model(wire, waits=waits, **given))), waits, wire


def fails(*answers: httpx.Response | Exception, **given: Any) -> tuple[ModelError, Wire]:
    """The error of such a model."""
    wire = Wire(*answers)
    with pytest.raises(ModelError) as caught:
        asyncio.run(ask(model(wire, **given)))
    return caught.value, wire


def broken(asked: HttpModel) -> tuple[list[Delta], ModelError]:
    """The deltas that come before a model's stream breaks, and how it ends."""

    async def read() -> tuple[list[Delta], ModelError]:
        deltas: list[Delta] = []
        try:
            async for delta in asked.stream(request()):
                deltas.append(delta)
        except ModelError as error:
            return deltas, error
        finally:
            await asked.close()
        raise AssertionError(f"ended well: {deltas}")

    return asyncio.run(read())
