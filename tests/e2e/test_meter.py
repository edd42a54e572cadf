"""The meter through the real server: it learns from reports, a model apart, and remembers."""

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import anthropic_replies, replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import Provider, Recorded
from tests.e2e.styles import Style, both_styles
from tests.e2e.talk import ask, check_size, text_of
from tiro.session.tokens import estimate_tokens

TEXTS = ("plain words go here and there " * 30, "if (x[1] == 2) { y = 3; }\n" * 30)
FACTOR = 1.3


def counted(request: Recorded) -> int:
    """What this provider counts: 1.3 times what the meter says without any report."""
    texts = [request.system, *(text_of(m["content"]) + "x" * 18 for m in request.messages)]
    tools = [tool.get("function", tool) for tool in request.body.get("tools", [])]
    texts += [
        "".join(v if isinstance(v, str) else json.dumps(v) for v in t.values()) for t in tools
    ]
    return round(FACTOR * sum(map(estimate_tokens, texts)))


def reporting(request: Recorded) -> replies.Reply:
    return replies.text("ok", usage=replies.usage_chunk(counted(request)))


def cached(request: Recorded) -> replies.Reply:
    """The same in each style's own words, nearly all of it read from a cache (B23)."""
    count = counted(request)
    if not request.is_anthropic:
        return replies.text("ok", usage=replies.usage_chunk(count, cached=count - 3))
    told = {"input_tokens": 3, "cache_read_input_tokens": count - 102}
    usage = {**told, "cache_creation_input_tokens": 99}
    return anthropic_replies.answer(anthropic_replies.text_block(0, "ok"), usage=usage)


def size(server: Server, draft: str = "") -> dict[str, Any]:
    found: dict[str, Any] = server.request("tiro/session/contextSize", {"draft": draft})
    check_size(found)
    return found


def off(server: Server, provider: Provider, prompt: str) -> float:
    """How far the meter is off for the next request, in percent of what the provider counts."""
    expected = size(server, prompt)["tokens"]
    ask(server, prompt)
    true = counted(provider.last)
    return float(abs(expected - true) / true * 100)


@pytest.fixture
def counting(provider: Provider) -> Provider:
    provider.otherwise(reporting)
    return provider


@both_styles
def test_b23_what_a_cache_holds_counts_once(
    start: StartServer, provider: Provider, style: Style
) -> None:
    """B23: it is beside Anthropic's input_tokens, and inside OpenAI's prompt_tokens."""
    provider.otherwise(cached)
    server = start()
    server.request("tiro/models/set", {"name": style.model})
    errors = [off(server, provider, TEXTS[n % 2]) for n in range(5)]
    assert errors[0] > 15
    assert max(errors[3:]) < 4


def kept_in(home: Home) -> Path:
    (found,) = home.root.glob("cache/**/calibrations.json")
    return found


def test_reports_correct_the_meter_and_the_error_is_shown(
    start: StartServer, counting: Provider
) -> None:
    server = start()
    assert size(server)["errorPercent"] is None
    errors = [off(server, counting, TEXTS[n % 2]) for n in range(5)]
    assert errors[0] > 15
    assert max(errors[3:]) < 4
    shown = size(server)["errorPercent"]
    assert 0 < shown < errors[0]


def test_what_was_learned_outlives_the_process(
    start: StartServer, home: Home, counting: Provider
) -> None:
    server = start()
    for n in range(4):
        ask(server, TEXTS[n % 2])
    assert server.shutdown() == 0
    if sys.platform != "win32":
        assert stat.S_IMODE(kept_in(home).stat().st_mode) == 0o600
    again = start()
    assert size(again)["errorPercent"] is not None
    assert off(again, counting, TEXTS[0]) < 4


def test_each_model_has_a_calibration_of_its_own(
    start: StartServer, home: Home, counting: Provider
) -> None:
    names = {"fake-model": {"context_window": 100_000}, "gpt-x": {"context_window": 50_000}}
    home.write_config(providers={"fake": home.fake(models=names)})
    server = start()
    for n in range(4):
        ask(server, TEXTS[n % 2])
    mine = size(server)
    server.request("tiro/models/set", {"name": "fake/gpt-x"})
    other = size(server)
    assert (other["errorPercent"], other["contextWindow"]) == (None, 50_000)
    assert other["tokens"] < mine["tokens"] * 0.85
    chinese = "解析器以小块读取文件" * 50
    grown = size(server, chinese)["tokens"] - other["tokens"]
    assert grown == pytest.approx(0.75 * len(chinese), abs=6)  # as that family of models counts
    server.request("tiro/models/set", {"name": "fake/fake-model"})
    assert size(server) == mine


def test_a_session_that_is_loaded_is_measured_with_what_is_known(
    start: StartServer, counting: Provider
) -> None:
    server = start()
    for n in range(4):
        ask(server, TEXTS[n % 2])
    server.request("tiro/session/new", {})
    assert off(server, counting, TEXTS[1]) < 4
    explained = server.request("tiro/session/explain", {"draft": TEXTS[0]})
    assert explained["tokens"] == size(server, TEXTS[0])


def test_tools_that_a_model_does_not_get_to_see_are_neither_sent_nor_counted(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """U8.2: in a small window they would be half of what counts."""
    models = {"fake-model": {"context_window": 4_000, "takes_tools": False}}
    home.write_config(providers={"fake": home.fake(models=models)})
    server = start()
    size = server.request("tiro/session/contextSize")
    assert (size["breakdown"]["tools"], size["contextWindow"]) == (0, 4_000)
    assert server.request("tiro/session/explain", {"draft": "hello"})["tools"] == []
    provider.script(replies.text("Hi."))
    done = ask(server, "hello")
    assert "tools" not in provider.last.body
    assert done["contextSize"]["breakdown"]["tools"] == 0


def test_a_provider_that_is_named_alone_is_measured_as_the_model_that_answers(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """U8.2: its window counts, and the tools only where that model is sent them."""
    models = {"fake-model": {"context_window": 4_000, "takes_tools": False}}
    home.write_config(model="fake", providers={"fake": home.fake(models=models)})
    server = start()
    ask(server, "hello")
    size = server.request("tiro/session/contextSize")
    assert (size["breakdown"]["tools"], size["contextWindow"]) == (0, 4_000)
