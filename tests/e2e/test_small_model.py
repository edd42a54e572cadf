"""A memory that a larger model wrote, in the hands of one with a small window."""

import json
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import MODEL, Provider
from tests.e2e.talk import ask, fill, text_of, until

WINDOW = 8_000
FACTS = " ".join(f"fact-{n}" for n in range(1_500))
"""More than a model with this window can be given beside messages and an answer."""


def two_models(home: Home, provider: Provider, **session: Any) -> None:
    """A large model and `fake/small`."""
    provider.model_names = [MODEL, "small"]
    models = {MODEL: {"context_window": 100_000}, "small": {"context_window": WINDOW}}
    home.write_config(providers={"fake": home.fake(models=models)}, session=session)


@pytest.fixture
def written(provider: Provider) -> list[str]:
    """What each model was asked to write a memo or a summary of, as `model: text`."""
    asked: list[str] = []

    def answer(request: Any) -> replies.Reply:
        if request.tool_names:
            return replies.text("answer")
        said = text_of(request.messages[-1]["content"])
        asked.append(f"{request.body['model']}: {said}")
        is_memo = "current_memo" in said
        return replies.text(json.dumps({"memo": {"new": 1}}) if is_memo else "new")

    provider.otherwise(answer)
    return asked


def test_what_a_small_model_cannot_be_given_whole_it_does_not_replace(
    start: StartServer, home: Home, provider: Provider, written: list[str]
) -> None:
    """U4.1: in a turn, after it, in resize, compaction and preview; told once, and not asked."""
    two_models(home, provider, mode="memo", summary={"enabled": True})
    server = start()
    fill(server, *(f"message {n}" for n in range(8)))
    given = {"memo": {"facts": FACTS}, "summary": FACTS}
    server.request("tiro/memo/set", given)
    server.request("tiro/session/configure", {"maxHistory": 6, "everyNTurns": 1})
    server.request("tiro/models/set", {"name": "fake/small"})

    def memory() -> dict[str, Any]:
        got: dict[str, Any] = server.request("tiro/memo/get")
        return {"memo": {"facts": got["memo"]["facts"]}, "summary": got["summary"]}

    for n in range(3):
        assert ask(server, f"turn {n}")["stopReason"] == "end_turn"
        until(lambda: not server.request("tiro/memo/get")["summaryInProgress"])
        assert memory() == given
    told = [row["message"] for row in server.named("window/showMessage")]
    assert sum("summary of this conversation is not up to date" in text for text in told) == 1
    for name in ("resize", "previewResize"):
        found = server.request(f"tiro/session/{name}", {"force": "deep"})
        assert "larger context window" in found["memoRefused"]
        assert memory() == given
    for name, params in (("compact", {}), ("previewResize", {"force": "compact"})):
        error = server.error(f"tiro/session/{name}", params)
        assert (error.kind, error.data["reason"]) == ("resizeFailed", "unreadable")
    assert memory() == given
    assert written == []
    server.request("tiro/models/set", {"name": f"fake/{MODEL}"})
    server.request("tiro/session/resize", {"force": "deep"})
    server.request("tiro/session/compact")
    assert all(text.startswith(f"{MODEL}: ") for text in written)
    assert all(FACTS in text for text in written)
    assert "message 0" in written[0]
    assert "turn 2" in written[-1]


@pytest.mark.parametrize("counted", [1.0, 1.3], ids=["as estimated", "more than estimated"])
def test_memo_and_summary_give_way_to_a_long_prompt(
    start: StartServer, home: Home, provider: Provider, counted: float
) -> None:
    """U2.4, U8.2: it is answered, all of it; that little is left of the memory is told once."""
    two_models(home, provider, summary={"enabled": False})
    server = start()
    server.request("tiro/models/set", {"name": "fake/small"})
    ask(server, "hello")
    words = "word " * 1_000
    server.request("tiro/memo/set", {"memo": {"facts": words}, "summary": words})
    taken = server.request("tiro/session/contextSize")["breakdown"]
    room = int((WINDOW * 0.9 - taken["system"] - taken["tools"]) / counted) - 100

    def answer(request: Any) -> replies.Reply:
        said = [request.system, *(text_of(m["content"]) for m in request.messages)]
        count = sum(text.count("word ") for text in said)
        is_long = count * counted + taken["system"] + taken["tools"] > WINDOW
        long = replies.error(400, "prompt is too long", code="context_length_exceeded")
        return long if is_long else replies.text("answer")

    provider.otherwise(answer)
    for _ in range(2):
        assert ask(server, "word " * room)["text"] == "answer"
        assert provider.last.messages[-1]["content"] == "word " * room
    told = [row["message"] for row in server.named("window/showMessage")]
    assert [text.partition(" has no room")[0] for text in told] == ["The memo", "The summary"]
    got = server.request("tiro/memo/get")
    assert (got["memo"]["facts"], got["summary"]) == (words, words)
    ask(server, "short again")
    assert provider.last.system.count("word ") > 1_990
    assert all("word" not in text_of(m["content"]) for m in provider.last.messages)
