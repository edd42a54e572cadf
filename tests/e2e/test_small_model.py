"""A memory that a larger model wrote, in the hands of one with a small window."""

import json
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import MODEL, Provider
from tests.e2e.talk import add, ask, fill, result, text_of, until, use, view

WINDOW = 8_000
FACTS = " ".join(f"fact-{n}" for n in range(1_500))
"""More than a model with this window can be given beside messages and an answer."""


def two_models(home: Home, provider: Provider, **session: Any) -> None:
    """A large model and `fake/small`."""
    provider.model_names = [MODEL, "small"]
    models = {MODEL: {"context_window": 100_000}, "small": {"context_window": WINDOW}}
    home.write_config(providers={"fake": home.fake(models=models)}, session=session)


def in_small(start: StartServer, home: Home, provider: Provider) -> Server:
    """A server whose session the small model answers, without a background summary."""
    two_models(home, provider, summary={"enabled": False})
    server = start()
    server.request("tiro/models/set", {"name": "fake/small"})
    return server


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
        return replies.text(
            json.dumps({"memo": {"new": 1}}) if is_memo else "A new one, of all it read"
        )

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
    server = in_small(start, home, provider)
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
    assert sum(text_of(m["content"]).count("word") for m in provider.last.messages) < 300


@pytest.mark.parametrize("counted", [1.0, 1.3], ids=["as estimated", "more than estimated"])
def test_tool_results_that_do_not_fit_beside_a_prompt_are_sent_in_part(
    start: StartServer, home: Home, provider: Provider, counted: float
) -> None:
    """U8.2: the turn goes on, the model is told what is missing, and what is stored is whole."""
    two_models(home, provider, summary={"enabled": False})
    home.write("big.txt", "".join(f"line {n:06d} of a text\n" for n in range(1_500)))
    server = start()
    server.request("tiro/models/set", {"name": "fake/small"})
    ask(server, "hello")
    taken = server.request("tiro/session/contextSize")["breakdown"]
    prompt = "word " * 4_000 if counted == 1 else "word " * 2_800
    read = [(f"t{n}", "read_file", {"path": "big.txt", "start_line": n * 300}) for n in (1, 2, 3)]

    def answer(request: Any) -> replies.Reply:
        said = "".join(text_of(m["content"] or "") for m in request.messages)
        count = said.count("word ") + len(said.replace("word ", "")) / 3
        if count * counted + taken["system"] + taken["tools"] > WINDOW:
            return replies.error(400, "prompt is too long", code="context_length_exceeded")
        step = sum(m["role"] == "tool" for m in request.messages)
        return replies.tools(*read) if step == 0 else replies.text("answer")

    provider.otherwise(answer)
    done = ask(server, prompt)
    assert (done["text"], done["steps"]) == ("answer", 2)
    sent = [text_of(m["content"]) for m in provider.last.messages if m["role"] == "tool"]
    assert len(sent) == 3
    assert all("characters left out here, which do not fit" in text for text in sent)
    assert all("line 000" in text for text in sent)
    assert provider.last.messages[0]["content"] == prompt
    stored = view(server)["messages"][-4:-1]
    assert all(len(text_of(m["content"])) > 7_000 for m in stored)
    assert all("do not fit" not in text_of(m["content"]) for m in stored)


def test_system_messages_give_way_to_a_long_prompt(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """U2.4, U8.2: it is answered, all of it, which is told once; a short one has them all again."""
    server = in_small(start, home, provider)
    for _ in range(4):
        add(server, "system", "rule " * 600)
    for _ in range(2):
        assert ask(server, "word " * 5_500)["text"] == "ok"
        assert provider.last.messages[-1]["content"] == "word " * 5_500
        assert 0 < provider.last.system.count("rule ") < 300
    told = [row["message"] for row in server.named("window/showMessage")]
    assert sum(text.startswith("System messages have no room") for text in told) == 1
    ask(server, "short again")
    assert provider.last.system.count("rule ") > 2_390


def test_a_provider_that_counts_more_refuses_once_not_every_time(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """U8: the next turns know how large a request is, also where no usage is reported."""
    server = in_small(start, home, provider)
    ask(server, "hello")
    taken = server.request("tiro/session/contextSize")["breakdown"]

    def answer(request: Any) -> replies.Reply:
        said = sum(text_of(m["content"]).count("word ") for m in request.messages)
        count = round((said + taken["system"] + taken["tools"]) * 1.5)
        if count > WINDOW:
            return replies.error(400, "prompt is too long", code="context_length_exceeded")
        return replies.text("word " * 10)

    provider.otherwise(answer)
    before = len(provider.chats)
    for _ in range(15):
        assert ask(server, "word " * 800)["stopReason"] == "end_turn"
    assert len(provider.chats) - before - 15 <= 2


def test_what_a_refusal_left_room_for_is_over_with_its_turn(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """U8.2: the next request may take the whole window again, and so it is measured."""
    server = in_small(start, home, provider)
    ask(server, "hello")
    words = "word " * 900
    server.request("tiro/memo/set", {"memo": {"facts": words}, "summary": words})

    def memory() -> int:
        parts = server.request("tiro/session/contextSize")["breakdown"]
        return int(parts["memo"] + parts["summary"])

    whole = memory()
    long = replies.error(400, "prompt is too long", code="context_length_exceeded")
    provider.script(long, replies.text("answer"))
    assert ask(server, "word " * 1_500)["text"] == "answer"
    assert provider.last.system.count("word ") < 1_500
    assert memory() >= whole


def test_a_result_that_is_sent_in_part_is_explained(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """Protocol, explain: the request as it is, and that this message is not sent whole."""
    two_models(home, provider)
    server = start()
    server.request("tiro/models/set", {"name": "fake/small"})
    ask(server, "hello")
    add(server, "user", "look")
    add(server, "assistant", [use("t1", path="big.txt")])
    seq = add(server, "tool", result("t1", "word " * 9_000))["seq"]
    explained = server.request("tiro/session/explain")
    assert {"seq": seq, "rule": "result_in_part"} in explained["repairs"]
    assert "left out here" in explained["messages"][-1]["content"]
    assert explained["tokens"]["tokens"] < WINDOW


def test_the_sizes_of_a_preview_are_those_of_what_is_shown(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """The meter: a summary that the model sees in part only counts for that."""
    server = in_small(start, home, provider)
    fill(server, *("word " * 200 for _ in range(4)))
    server.request("tiro/memo/set", {"summary": FACTS[: len(FACTS) // 2]})
    provider.otherwise(lambda _: replies.text("All of it is told here in short."))
    shown = server.request("tiro/session/previewResize", {"force": "compact"})
    done = server.request("tiro/session/applyResize", {"draftId": shown["draftId"]})
    assert shown["summary"] == done["summary"] == "All of it is told here in short."
    assert (shown["tokensBefore"], shown["tokensAfter"]) == (
        done["tokensBefore"],
        done["tokensAfter"],
    )
    assert 0 < done["tokensAfter"] < done["tokensBefore"] < WINDOW
