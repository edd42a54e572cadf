"""While a model writes a summary or a memo everything else goes on; nothing is lost by it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Pending, Server
from tests.e2e.provider import Provider
from tests.e2e.talk import add, ask, begin_ask, until, view, words
from tests.sizes import PATIENCE

Begin = Callable[..., tuple[Pending, replies.Hold]]
OLD = ["question", "answer"]


@pytest.fixture
def asked(server: Server, provider: Provider) -> Iterator[Begin]:
    """Begins a compaction, or something like it, of two messages; its model is silent."""
    add(server, "user", "question")
    add(server, "assistant", "answer")

    hold = replies.Hold()

    def begin(name: str = "compact", text: str = "So far.", **params: Any) -> Any:
        provider.script(replies.stream(hold, replies.text_chunk(text)))
        pending = server.begin(f"tiro/session/{name}", params)
        hold.wait()
        return pending, hold

    yield begin
    hold.release()


@pytest.mark.parametrize("name", ["compact", "resize", "previewResize"])
def test_a_silent_model_holds_up_nothing(server: Server, asked: Begin, name: str) -> None:
    """U4.5: what is added meanwhile stays in the window, behind the result."""
    server.request("tiro/session/configure", {"memoEnabled": True, "limit": {"messages": 1}})
    params = {} if name == "compact" else {"force": "deep"}
    pending, hold = asked(name, '{"memo": {"topic": "x"}}' if params else "So far.", **params)
    assert words(server) == OLD
    assert server.request("tiro/session/statistics")["user"] == 1
    assert server.request("tiro/session/setAgent", {"name": "plan"})["agent"]["name"] == "plan"
    add(server, "user", "late")
    assert not pending.done
    hold.release()
    done = pending.result()
    assert done["tokensAfter"] < done["tokensBefore"] + 20
    if name == "compact":
        assert (done["evicted"], done["total"], done["summary"]) == (2, 1, "So far.")
    assert words(server)[-1] == "late"
    assert ask(server, "go on")["stopReason"] == "end_turn"
    assert [m["content"] for m in view(server, limit=9)["messages"]][:3] == [*OLD, "late"]


def test_a_turn_begins_and_ends_meanwhile(server: Server, provider: Provider, asked: Begin) -> None:
    pending, hold = asked()
    assert ask(server, "and this?")["text"] == "ok"
    hold.release()
    assert (pending.result()["evicted"], words(server)) == (2, ["and this?", "ok"])


def test_the_result_waits_for_the_end_of_a_turn_that_runs(
    server: Server, provider: Provider, asked: Begin
) -> None:
    """A running turn keeps the window it has: M7.1, M6.5."""
    pending, hold = asked()
    in_turn = replies.Hold()
    provider.script(
        replies.stream(in_turn, *replies.tools(("c", "list_directory", {"path": "."})).steps[1:])
    )
    turn = begin_ask(server, "and this?")
    in_turn.wait()
    hold.release()
    assert provider.chats[0].answered.wait(PATIENCE)
    server.request("tiro/session/getId")  # it is answered in order, in its place
    assert not pending.done
    in_turn.release()
    assert turn.result()["stopReason"] == "end_turn"
    sent = [message["content"] for message in provider.last.messages]
    assert sent[:3] == [*OLD, "and this?"]
    assert (pending.result()["evicted"], words(server)[0]) == (2, "and this?")
    assert ask(server, "go on")["stopReason"] == "end_turn"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("clear", {}),
        ("new", {"title": "another"}),
        ("rewind", {"toSeq": 1}),
        ("editMessage", {"seq": 1, "content": "another question"}),
        ("pin", {"seq": 1, "pinned": True}),
    ],
)
@pytest.mark.parametrize("name", ["compact", "resize", "previewResize"])
def test_who_changes_the_session_meanwhile_wins(
    server: Server, asked: Begin, name: str, method: str, params: Any
) -> None:
    """N4.8, U4.4: the answer is dropped, in the old session too, and nobody waits for it."""
    server.request("tiro/session/configure", {"memoEnabled": True, "limit": {"messages": 1}})
    id_ = server.request("tiro/session/getId")["id"]
    force = {} if name == "compact" else {"force": "deep"}
    pending, hold = asked(name, '{"memo": {"topic": "x"}}' if force else "So far.", **force)
    server.request(f"tiro/session/{method}", params)
    before = view(server, limit=9)
    error = pending.error()
    hold.release()
    assert (error.kind, error.data["reason"]) == ("resizeFailed", "overtaken")
    after = view(server, limit=9)
    for field in ("messages", "archived", "summary", "memo", "pins", "id"):
        assert after.get(field) == before.get(field)
    if before["id"] != id_:
        server.request("tiro/session/load", {"id": id_})
        assert (words(server), view(server)["summary"]) == (OLD, "")
    assert ask(server, "go on")["stopReason"] == "end_turn"


def test_two_compactions_at_once_run_one_after_the_other(
    server: Server, provider: Provider, asked: Begin
) -> None:
    first, hold = asked()
    second = server.begin("tiro/session/compact")
    assert words(server) == OLD
    hold.release()
    assert first.result()["evicted"] == 2
    assert (second.result()["decision"], second.result()["evicted"]) == (None, 0)
    assert len(provider.chats) == 1


def test_what_asks_no_model_keeps_its_order(server: Server, provider: Provider) -> None:
    """Protocol 1: a later read sees what was requested before it."""
    for n in range(3):
        add(server, "user", f"question {n}")
        add(server, "assistant", f"answer {n}")
    server.request("tiro/session/configure", {"limit": {"messages": 2}})
    resize = server.begin("tiro/session/resize", {"force": "lite"})
    read = server.begin("tiro/session/get")
    assert [m["content"] for m in read.result()["messages"]] == ["question 2", "answer 2"]
    assert resize.result()["evicted"] == 4


def summarising(server: Server, provider: Provider) -> replies.Hold:
    """A turn has ended, and the model of the summary says `So far.` when this is released."""
    server.request("tiro/session/configure", {"maxHistory": 2, "summaryEnabled": True})
    hold = replies.Hold()
    provider.script(replies.text("ok"), replies.stream(hold, replies.text_chunk("So far.")))
    add(server, "user", "one")
    ask(server)
    hold.wait()
    return hold


@pytest.mark.parametrize("name", ["compact", "resize", "previewResize", "summary"])
def test_settings_that_change_meanwhile_end_no_answer(
    server: Server, provider: Provider, asked: Begin, name: str
) -> None:
    """Who was asked first goes on; the next question goes to the provider of the new settings."""
    changed = {"providers": {"fake": {"headers": {"x-new": "1"}}}}
    if name == "summary":
        hold = summarising(server, provider)
    else:
        server.request("tiro/session/configure", {"memoEnabled": True, "limit": {"messages": 1}})
        force = {} if name == "compact" else {"force": "deep"}
        pending, hold = asked(name, '{"memo": {"topic": "x"}}' if force else "So far.", **force)
    server.notify("workspace/didChangeConfiguration", {"settings": changed})
    assert server.request("tiro/status")["problems"] == []
    hold.release()
    if name == "summary":
        until(lambda: server.request("tiro/memo/get")["summary"] == "So far.")
    elif name == "compact":
        assert pending.result()["summary"] == "So far."
    else:
        found = pending.result()
        assert (found["memo"]["topic"], found["memoRefused"]) == ("x", None)
    ask(server, "go on")
    assert provider.last.headers["x-new"] == "1"


def test_what_is_asked_in_the_background_ends_with_its_session(
    server: Server, provider: Provider
) -> None:
    """N4.8: nobody could store it any more."""
    hold = summarising(server, provider)
    request = provider.last
    server.request("tiro/session/clear")
    assert request.closed_by_client()
    hold.release()
