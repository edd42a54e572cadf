"""Providers that never finish but go on sending: memory is bounded, cancel works, all is kept."""

from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.provider import Provider
from tests.e2e.replies import ROLE, Endless, Reply
from tests.e2e.talk import ask, begin_ask, until, view, words
from tests.e2e.turns import failed_turn
from tests.processes import peak_memory_bytes

PIECE = "some words " * 6_000
MOST_GROWTH_BYTES = 200_000_000
"""What the largest answer takes in pieces, as a message, in files and on its way to the editor."""
MOST_EMPTY_GROWTH_BYTES = 20_000_000
"""Where nothing of an answer comes, nothing is kept."""
SENT_BYTES = 20_000_000


def sent_bytes(provider: Provider) -> int:
    return sum(size for _, size in provider.last.sent)


def endless_tool() -> Reply:
    begun = replies.calls_chunk(replies.call("c1", "read_file", '{"path": "'))
    more = replies.calls_chunk(replies.call(None, None, PIECE))
    return Reply([ROLE, replies.text_chunk("I will read."), begun, Endless(more)])


ANSWERS: dict[str, tuple[Reply, str]] = {
    "text": (Reply([ROLE, Endless(replies.text_chunk(PIECE))]), "some words some words"),
    "thinking": (
        Reply(
            [ROLE, replies.text_chunk("Hm."), Endless(replies.chunk({"reasoning_content": PIECE}))]
        ),
        "Hm.",
    ),
    "tool": (endless_tool(), "I will read."),
    "line": (
        Reply([ROLE, replies.text_chunk("So far."), b"data: ", Endless(PIECE.encode())]),
        "So far.",
    ),
}


@pytest.mark.parametrize("what", ANSWERS)
def test_an_answer_that_never_ends_is_ended(server: Server, provider: Provider, what: str) -> None:
    """One clear error; what had arrived is stored and marked, and the next request is valid."""
    reply, kept = ANSWERS[what]
    assert ask(server)["stopReason"] == "end_turn"
    before = peak_memory_bytes(server.process.pid)
    provider.script(reply)
    error, _ = failed_turn(server)
    assert "'fake' sent an answer" in str(error)
    assert peak_memory_bytes(server.process.pid) - before < MOST_GROWTH_BYTES
    assert provider.last.closed_by_client()
    assert len(provider.chats) == 2, "it was not asked again"
    partial = view(server)["messages"][-1]
    assert partial["metadata"]["tiro"]["interrupted"] is True
    assert words(server)[-1].startswith(kept)
    server.request("tiro/session/rewind", {"toSeq": 3})
    assert ask(server, "go on")["stopReason"] == "end_turn"


@pytest.mark.parametrize(
    ("reply", "size"),
    [
        (Reply([Endless(b": keep-alive\n\n" * 4000)]), SENT_BYTES),
        (Reply([ROLE, Endless(b": keep-alive\n\n" * 4000)]), SENT_BYTES),
        (Reply([Endless(b"\r\n \n" * 10_000)]), SENT_BYTES),
        (Reply([Endless(b"HTTP/1.1 100 Continue\r\n\r\n" * 2000)], framing="raw"), 2_000_000),
    ],
    ids=["comments", "comments after the role", "blank lines", "interim answers"],
)
def test_an_answer_that_never_begins_takes_no_memory_and_is_cancelled(
    server: Server, provider: Provider, reply: Reply, size: int
) -> None:
    assert ask(server)["stopReason"] == "end_turn"
    before = peak_memory_bytes(server.process.pid)
    provider.script(reply)
    turn = begin_ask(server, "go")
    provider.wait_for(2)
    until(lambda: sent_bytes(provider) > size)
    server.request("tiro/turn/cancel")
    assert turn.result()["stopReason"] == "cancelled"
    assert peak_memory_bytes(server.process.pid) - before < MOST_EMPTY_GROWTH_BYTES
    assert provider.last.closed_by_client()
    assert ask(server, "go on")["stopReason"] == "end_turn"


def test_headers_that_never_end_are_an_error(server: Server, provider: Provider) -> None:
    """Nothing of an answer was shown, so it is asked again."""
    head: list[Any] = [b"HTTP/1.1 200 OK\r\n", Endless(b"x-more: and more\r\n" * 1000)]
    provider.script(Reply(head, framing="raw"))
    assert ask(server)["stopReason"] == "end_turn"
    assert len(provider.chats) == 2


def test_a_large_answer_is_cancelled_at_any_time(server: Server, provider: Provider) -> None:
    provider.script(Reply([ROLE, Endless(replies.text_chunk("word "))]))
    turn = begin_ask(server, "go")
    until(lambda: len(server.events()) > 5)
    server.request("tiro/turn/cancel")
    assert turn.result()["stopReason"] == "cancelled"
    assert words(server)[-1].startswith("word word")
    assert ask(server, "go on")["stopReason"] == "end_turn"
