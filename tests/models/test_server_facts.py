"""The context window that a server on this machine tells."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.models.wire import Wire, joined, model, refuses, request, says
from tiro.models.model import ModelFacts, Price

LOCAL = "http://127.0.0.1:8080/v1"


def window_after(*answers: httpx.Response | Exception, turns: int = 1, **given: Any) -> Any:
    """What is known after so many good answers, and the paths that were asked for it."""
    wire = Wire(*answers)

    async def ask() -> ModelFacts:
        asked = model(wire, **{"base_url": LOCAL, **given})
        for _ in range(turns):
            assert joined([delta async for delta in asked.stream(request())]) == "a"
        await asked.close()
        return asked.facts

    facts = asyncio.run(ask())
    paths = [r.url.path for r in wire.requests if r.method == "GET"]
    return facts.context_window, paths


def listed(*rows: Any) -> httpx.Response:
    return refuses(200, {"object": "list", "data": list(rows)})


@pytest.mark.parametrize(
    "row",
    [
        {"id": "m1", "meta": {"n_ctx": 4096, "n_ctx_train": 32_768}},
        {"id": "m1", "max_model_len": 4096},
        {"id": "m1", "loaded_context_length": 4096, "max_context_length": 32_768},
        {"id": "of-another-name", "meta": {"n_ctx": 4096}},
    ],
)
def test_a_server_tells_it_in_its_list(row: Any) -> None:
    assert window_after(listed(row), says("a"), says("a"), turns=2) == (4096, ["/v1/models"])


def test_ollama_tells_it_of_a_running_model() -> None:
    idle: Any = {"models": []}
    running = {"models": [{"name": "m1", "context_length": 4096}]}
    names = listed({"id": "m1"}, {"id": "m2"})
    answers = [
        names, refuses(200, idle), says("a"),
        listed({"id": "m1"}, {"id": "m2"}), refuses(200, running), says("a"),
        says("a"),
    ]  # fmt: skip
    window, paths = window_after(*answers, turns=3)
    assert window == 4096
    assert paths == ["/v1/models", "/api/ps"] * 2


@pytest.mark.parametrize(
    "answer",
    [
        listed(),
        listed({"id": "m1", "meta": None}),
        listed({"id": "m1", "meta": {"n_ctx": "many"}}, 7),
        listed({"id": "x", "max_model_len": 1}, {"id": "y", "max_model_len": 2}),
        refuses(200, {"hello": 1}),
        refuses(200, b"<html>"),
        refuses(200, b"{"),
        refuses(404),
        refuses(500),
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
    ],
)
def test_a_server_that_does_not_tell_leaves_it_unknown(answer: httpx.Response | Exception) -> None:
    assert window_after(answer, refuses(404), says("a"))[0] is None


def test_it_is_asked_three_times_at_most() -> None:
    asked = [refuses(404), refuses(404), says("a")]
    again = [refuses(404), refuses(404), says("a"), refuses(404), refuses(404), says("a")]
    window, paths = window_after(*asked, *again, says("a"), says("a"), turns=5)
    assert window is None
    assert len(paths) == 6


def test_what_the_user_configured_is_not_asked_for() -> None:
    facts = ModelFacts(context_window=1000)
    assert window_after(says("a"), models={"m1": facts}) == (1000, [])


def test_a_configured_price_stays() -> None:
    facts = ModelFacts(price_per_million=Price(1, 2))
    found = listed({"id": "m1", "max_model_len": 4096})
    assert window_after(found, says("a"), models={"m1": facts}) == (4096, ["/v1/models"])


def test_a_hosted_provider_is_not_asked() -> None:
    assert window_after(says("a"), base_url="https://provider.test/v1") == (None, [])
