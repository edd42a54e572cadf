"""What an answer may hold, and how long it may be kept waiting for by signs of life."""

import asyncio
import itertools
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.models.wire import (
    Body,
    Wire,
    anthropic,
    event,
    joined,
    model,
    piece,
    request,
    streams,
    text,
)
from tiro.errors import ModelError
from tiro.models import answer_limits, transport
from tiro.models.answer_limits import MAX_CHARACTERS, MAX_TOOL_USES, AnswerLimits
from tiro.models.http_model import HttpModel
from tiro.models.model import Delta, ProviderSettings, TextDelta
from tiro.models.model_list import list_rows
from tiro.models.openai import OpenAIModel
from tiro.models.transport import Transport

PROVIDER = ProviderSettings(name="acme", api="openai", base_url="http://acme.test")


def fails(asked: HttpModel) -> tuple[str, list[Delta]]:
    """The sentence with which a request ends, and what came before."""
    deltas: list[Delta] = []

    async def read() -> None:
        async for delta in asked.stream(request()):
            deltas.append(delta)

    with pytest.raises(ModelError) as raised:
        asyncio.run(read())
    return str(raised.value), deltas


class Endless(Body):
    """A body that never ends."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for step in itertools.cycle(self.steps):
            assert isinstance(step, bytes)
            yield step


def test_all_that_came_is_given_before_the_error() -> None:
    told, deltas = fails(model(Wire(httpx.Response(200, stream=Endless(text("x" * 1_000_000))))))
    assert told.startswith("The provider 'acme' sent an answer that does not end, ")
    assert len(joined(deltas)) == MAX_CHARACTERS


def test_a_long_answer_in_small_pieces_is_one() -> None:
    """128,000 tokens, each in a piece of its own, as the largest models write them."""
    limits = AnswerLimits(PROVIDER)
    for _ in range(128_000):
        limits.said(TextDelta("tokens"))


def test_empty_pieces_without_end_count() -> None:
    limits = AnswerLimits(PROVIDER)
    with pytest.raises(ModelError, match="does not end"):
        list(map(limits.said, [TextDelta("")] * 1_000_000))


def test_tool_uses_without_end() -> None:
    numbers = range(MAX_TOOL_USES + 1)
    uses = [{"index": i, "id": f"c{i}", "function": {"name": "f"}} for i in numbers]
    told, _ = fails(model(Wire(streams(piece(tool_calls=uses), piece("tool_calls")))))
    assert "too many tool uses" in told


def test_what_a_format_holds_back_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signature is told with its end only."""
    monkeypatch.setattr(answer_limits, "MAX_EVENT_BYTES", 100_000)
    block = {"type": "thinking", "thinking": "", "signature": ""}
    opened = event({"type": "content_block_start", "index": 0, "content_block": block})
    more = {"type": "signature_delta", "signature": "x" * 1000}
    filled = event({"type": "content_block_delta", "index": 0, "delta": more})
    told, _ = fails(anthropic(Wire(streams(opened, *[filled] * 200))))
    assert "does not end" in told


@pytest.mark.parametrize("kept_alive_by", [b": ping\n\n", b"\n\n", b"{ ", b'data: {"x": 1}\n\n'])
def test_signs_of_life_are_waited_for_so_long(
    monkeypatch: pytest.MonkeyPatch, kept_alive_by: bytes
) -> None:
    """And it is not asked again: it would be for as long again."""
    monkeypatch.setattr(answer_limits, "EMPTY_SECONDS", 0.05)
    told, deltas = fails(model(Wire(httpx.Response(200, stream=Slow(*[kept_alive_by] * 100)))))
    assert "kept the connection alive for too long without an answer, ask again" in told
    assert deltas == []


class Slow(Body):
    """A pause in front of each chunk."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in super().__aiter__():
            await asyncio.sleep(0.01)
            yield chunk


def test_each_piece_begins_the_wait_anew() -> None:
    clock = iter([0.0, 1799.0, 1799.0, 3598.0, 3600.0])
    limits = AnswerLimits(PROVIDER, now=lambda: next(clock))
    limits.came()
    limits.said(TextDelta("x"))
    limits.came()
    with pytest.raises(ModelError, match="alive"):
        limits.came()


def test_a_head_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "EMPTY_SECONDS", 0.01)

    async def never(request: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    asked = OpenAIModel(PROVIDER, "m1", http=httpx.MockTransport(never))
    told, _ = fails(asked)
    assert "without an answer" in told


def test_a_short_answer_that_drips_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of models; each piece alone comes soon enough."""
    monkeypatch.setattr(transport, "SHORT_ANSWER_SECONDS", 0.05)
    body = Slow(b'{"data": [', *[b" "] * 100, b"]}")
    wire = Wire(httpx.Response(200, stream=body))
    with pytest.raises(ModelError, match="did not come to the end"):
        asyncio.run(list_rows(Transport(PROVIDER, authorization={}, http=wire.http), 0.04))
    assert body.is_closed
