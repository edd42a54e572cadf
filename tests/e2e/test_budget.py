"""The token budget: a request is made to fit its model's context window, or refused (U8.2)."""

import pytest

from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.e2e.talk import add, ask, view


@pytest.fixture
def small(start: StartServer, home: Home) -> Server:
    """A server whose model has a context window of 4,000 tokens."""
    tiny = home.fake(models={"fake-model": {"context_window": 4000}})
    home.write_config(providers={"fake": tiny})
    return start()


def test_the_token_budget_decides_before_all_else(small: Server, provider: Provider) -> None:
    assert small.request("tiro/session/judgeResize")["decision"] is None
    for _ in range(10):
        add(small, "user", "some words and more of them " * 60)
    decision = small.request("tiro/session/judgeResize")["decision"]
    assert (decision["type"], decision["reason"], decision["severity"]) == (
        "deep",
        "token_budget",
        200,
    )


def test_a_long_session_is_made_to_fit(small: Server, provider: Provider) -> None:
    for _ in range(10):
        add(small, "user", "some words and more of them " * 60)
    done = ask(small, "THE NEWEST QUESTION")
    assert done["stopReason"] == "end_turn"
    assert provider.last.messages[-1]["content"].endswith("THE NEWEST QUESTION")
    assert done["contextSize"]["tokens"] <= 4000
    assert len(view(small, limit=50)["messages"]) == 12


def test_what_cannot_fit_is_an_error_and_no_request(small: Server, provider: Provider) -> None:
    error = small.error("tiro/turn/start", {"prompt": "many words here " * 4000})
    assert (error.code, error.kind) == (-32033, "contextOverflow")
    assert error.data["contextWindow"] == 4000
    assert error.data["tokens"] > 4000
    assert provider.chats == []
