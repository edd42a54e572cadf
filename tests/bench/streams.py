"""A row about a model's stream: a burst of deltas through transport and adapter."""

import asyncio
import socket
import threading

import httpx

from tests.bench.deltas import HEAD, chunk, read_request
from tests.bench.row import Row, medians, ratio_row
from tiro.models.model import ModelFacts, ModelRequest, ProviderSettings, TextDelta
from tiro.models.openai import OpenAIModel
from tiro.session.messages import Message

DELTAS = 20_000
TIMES = 15


def rows() -> list[Row]:
    """20,000 deltas sent at once, against httpx reading and splitting the same stream."""
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_serve, args=(listener,), daemon=True).start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    facts = {"m": ModelFacts(context_window=1)}
    model = OpenAIModel(
        ProviderSettings(name="bench", api="openai", base_url=url, models=facts), "m"
    )
    with asyncio.Runner() as runner:
        client = httpx.AsyncClient(verify=False)  # it is plain HTTP on this machine
        ours, baseline = medians(
            lambda: runner.run(_ask(model)), lambda: runner.run(_split(client, url)), TIMES
        )
        runner.run(client.aclose())
        runner.run(model.close())
    listener.close()
    what = f"stream: {DELTAS:,} deltas at once, through transport and adapter"
    return [ratio_row(what, ours, baseline, 1.5, "httpx splitting it")]


async def _ask(model: OpenAIModel) -> None:
    prompt = Message("user", [{"type": "text", "text": "hi"}])
    request = ModelRequest(model="m", messages=[prompt])
    texts = [d.text async for d in model.stream(request) if isinstance(d, TextDelta)]
    assert len("".join(texts)) == 2 * DELTAS


async def _split(client: httpx.AsyncClient, url: str) -> None:
    async with client.stream("POST", f"{url}/chat/completions", content=b"{}") as response:
        lines = [line async for line in response.aiter_lines() if line]
    assert len(lines) == DELTAS + 2


def _serve(listener: socket.socket) -> None:
    end = chunk({}, "stop") + b"data: [DONE]\n\n"
    body = HEAD + chunk({"content": "ab"}) * DELTAS + end
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            read_request(connection)
            connection.sendall(body)
