"""Facts, prices and addresses."""

import pytest

from tests.models.wire import settings
from tiro.models.model import ModelFacts, Price, bare_url, known_facts
from tiro.session.messages import Usage


@pytest.mark.parametrize(
    ("url", "bare"),
    [
        ("https://e.test/v1", "https://e.test/v1"),
        ("https://e.test", "https://e.test"),
        ("https://u:p@e.test:8/v1?key=k#f", "https://e.test:8/v1"),
        ("https://u:p/w@e.test/v1", "https://e.test/v1"),
        ("https://e.test?key=a/b@c", "https://e.test"),
        ("u:p@e.test/v1", "e.test/v1"),
        ("", ""),
    ],
)
def test_a_bare_url_has_no_secret(url: str, bare: str) -> None:
    assert bare_url(url) == bare


def test_a_price_counts_each_kind_once() -> None:
    usage = Usage(1_000_000, 2_000_000, 4_000_000, 8_000_000)
    assert Price(input=1, output=10).cost_usd(usage) == 1 + 20 + 4 + 8
    assert Price(input=1, output=10, cache_read=0.5).cost_usd(usage) == 1 + 20 + 2 + 8


def test_configured_facts_beat_public_ones() -> None:
    own = ModelFacts(context_window=1000)
    assert known_facts(settings(models={"gpt-4o": own}), "gpt-4o") is own


@pytest.mark.parametrize(
    ("name", "window"),
    [
        ("gpt-4o-mini", 128_000),
        ("gpt-4.1", 1_047_576),
        ("anthropic/claude-sonnet-4-5", 200_000),
        ("unheard-of", None),
    ],
)
def test_public_facts(name: str, window: int | None) -> None:
    assert known_facts(settings(), name).context_window == window


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("claude-3-haiku-20240307", 4096),
        ("claude-3-5-sonnet-20241022", 8192),
        ("claude-3-7-sonnet-latest", 64_000),
        ("claude-opus-4-20250514", 32_000),
        ("claude-opus-4-1", 32_000),
        ("claude-opus-4-5-20251101", 64_000),
        ("claude-sonnet-4-20250514", 64_000),
        ("claude-haiku-4-5", 64_000),
        ("claude-opus-9", None),
    ],
)
def test_public_output_limits(name: str, limit: int | None) -> None:
    """None: the provider is asked for it."""
    assert known_facts(settings(), name).max_output_tokens == limit


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v1", "http://localhost/v1", "http://[::1]/v1"])
def test_a_server_on_this_machine_chooses_its_window_itself(url: str) -> None:
    assert known_facts(settings(base_url=url), "deepseek-r1").context_window is None


def test_an_embedded_model_has_the_window_it_is_started_with() -> None:
    assert known_facts(settings(api="local"), "smollm2-135m").context_window == 8192


@pytest.mark.parametrize(
    ("name", "takes"), [("smollm2-135m", False), ("qwen2.5-coder-0.5b", True), ("my-own", True)]
)
def test_a_model_whose_chat_format_has_no_tools_is_known(name: str, takes: bool) -> None:
    """What it does not get to see is not sent, and takes no room of its window."""
    assert known_facts(settings(api="local"), name).takes_tools is takes
