"""What a provider that fails leaves: retries, waits, errors told, usage kept (B33, B34)."""

import json
import socket
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import API_KEY, Provider
from tests.e2e.replies import DONE, ROLE, Break, Reply
from tests.e2e.talk import ask, begin_ask, window, words
from tests.e2e.turns import events, failed_turn, joined


def test_b33_an_error_inside_the_stream_is_told_never_text(
    server: Server, provider: Provider
) -> None:
    fault = replies.event({"error": {"message": "overloaded now", "code": 529}})
    provider.script(Reply([ROLE, replies.text_chunk("half"), fault, DONE]))
    error, found = failed_turn(server)
    assert joined(found) == "half"
    assert "overloaded now" in json.dumps(error.error)
    assert len(provider.chats) == 1
    assert "overloaded" not in json.dumps(window(server))


@pytest.mark.parametrize(
    "fault",
    [
        replies.error(429, "slow down", [("retry-after", "0")]),
        replies.error(503, "later"),
        replies.error(529, "overloaded"),
        replies.error(500, "oops"),
        Reply([Break(reset=True)]),
        Reply([ROLE, Break(reset=True)]),
        Reply([replies.event({"error": {"message": "overloaded", "code": 529}})]),
    ],
    ids=["429", "503", "529", "500", "reset", "reset before a delta", "error before a delta"],
)
def test_b33_before_the_first_delta_it_tries_again(
    server: Server, provider: Provider, fault: Reply
) -> None:
    provider.script(fault, replies.text("after all"))
    done = ask(server)
    assert done["text"] == joined(events(server, done)) == "after all"
    assert len(provider.chats) == 2
    waits = [e for e in events(server, done) if e["type"] == "retry"]
    assert [e["attempt"] for e in waits] == [1]
    assert waits[0]["waitSeconds"] >= 0
    assert waits[0]["reason"]
    assert words(server) == ["hi", "after all"]


def test_b34_retry_after_is_respected(server: Server, provider: Provider) -> None:
    provider.script(replies.error(429, "slow", [("retry-after", "1.5")]))
    done = ask(server)
    first, second = provider.chats
    assert second.arrived - first.arrived >= 1.5
    wait = next(e for e in events(server, done) if e["type"] == "retry")
    assert 1.5 <= wait["waitSeconds"] < 4


def test_b34_a_very_long_wait_is_told_instead(server: Server, provider: Provider) -> None:
    provider.script(replies.error(429, "come back later", [("retry-after", "3600")]))
    error, _ = failed_turn(server)
    assert (error.data["status"], error.data["retryable"]) == (429, True)
    assert error.data["retryAfterSeconds"] == 3600
    assert len(provider.chats) == 1


def test_b34_a_garbage_wait_is_a_backoff(server: Server, provider: Provider) -> None:
    provider.script(replies.error(429, "slow", [("retry-after", "soon\x7f")]))
    assert ask(server)["text"] == "ok"
    assert len(provider.chats) == 2


def test_a_provider_that_is_not_there_fails_cleanly(start: StartServer, home: Home) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        dead = {"api": "openai", "base_url": f"http://127.0.0.1:{port}/v1", "api_key": "x"}
        home.write_config(providers={"dead": dead}, model="dead/m")
        server = start()
        turn = begin_ask(server, "go")
        error = turn.error()
    assert error.kind in ("modelFailed", "modelNotConfigured")
    assert "dead" in str(error.data)
    stored = ["go"] if error.kind == "modelFailed" else []  # nothing is stored without a model
    assert words(server) == stored


def test_a_provider_that_goes_away_fails_cleanly(start: StartServer, home: Home) -> None:
    with Provider() as brief:
        home.provider = brief
        home.write_config()
        server = start()
        assert ask(server)["text"] == "ok"
    error = begin_ask(server, "go").error()
    assert error.kind in ("modelFailed", "modelNotConfigured")
    assert words(server)[:2] == ["hi", "ok"]


def test_b33_it_gives_up_after_a_few_tries(server: Server, provider: Provider) -> None:
    provider.script(*(replies.error(503, "later", [("retry-after", "0")]) for _ in range(9)))
    error, found = failed_turn(server)
    assert (error.data["status"], error.data["retryable"]) == (503, True)
    assert 2 <= len(provider.chats) <= 4
    attempts = [e["attempt"] for e in found if e["type"] == "retry"]
    assert attempts == list(range(1, len(provider.chats)))


def test_a_provider_that_falls_silent_is_a_failure(
    start: StartServer, home: Home, provider: Provider
) -> None:
    home.write_config(providers={"fake": home.fake(timeout_seconds=4)})
    server = start()
    provider.script(replies.stream(replies.text_chunk("half"), replies.Hold()))
    _, found = failed_turn(server)
    assert joined(found) == "half"
    assert words(server) == ["go", "half"]
    assert provider.last.closed_by_client()


def test_a_provider_is_what_its_settings_say(
    start: StartServer, home: Home, provider: Provider
) -> None:
    own = home.fake(
        base_url=f"{provider.base_url}/",
        headers={"x-own": "yes"},
        api_key_command=f"echo {API_KEY}",
        api_key_env=None,
        default_model="fake-model",
    )
    home.write_config(providers={"own": own}, model="own/some/model:with-parts")
    assert ask(start())["text"] == "ok"
    assert provider.last.path == "/v1/chat/completions"
    assert provider.last.headers["x-own"] == "yes"
    assert provider.last.body["model"] == "some/model:with-parts"


def test_redirects_and_pages_are_errors_not_text(server: Server, provider: Provider) -> None:
    page = [("content-type", "text/html")]
    provider.script(Reply([b"<html>login</html>"], headers=page, framing="length"))
    failed_turn(server)
    assert "<html>" not in json.dumps(window(server))


# Usage


def test_usage_of_the_openai_style_counts_the_cache_once(
    server: Server, provider: Provider
) -> None:
    provider.script(replies.text("ok", usage=replies.usage_chunk(184_704, 49, cached=183_936)))
    usage = ask(server)["usage"]
    assert (usage["inputTokens"], usage["cacheReadTokens"], usage["outputTokens"]) == (
        768,
        183_936,
        49,
    )


def test_usage_may_be_missing_or_odd(server: Server, provider: Provider) -> None:
    odd: list[Any] = [None, {}, {"prompt_tokens": None}, {"prompt_tokens": "5"}, 5,
                      {"prompt_tokens": 5, "prompt_tokens_details": None}]  # fmt: skip
    for value in odd:
        last = replies.event({"choices": [], "usage": value})
        provider.script(replies.text("fine", usage=last))
        assert ask(server)["text"] == "fine"
