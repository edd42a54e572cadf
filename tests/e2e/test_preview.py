"""A user's way: see what a resize would do, edit it, apply it, undo it, pin, and trust the meter.

Written from PROTOCOL.md as the author of a client would, with what such clients get wrong.
"""

import json
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.e2e.talk import add, ask, begin_ask, fill, result, use, view, words

WINDOW = 8_000


def seqs(server: Server) -> list[int]:
    return [message["seq"] for message in view(server)["messages"]]


def groups(server: Server, count: int) -> None:
    """So many questions, each answered with a tool: four messages each."""
    for n in range(count):
        add(server, "user", f"question {n}")
        add(server, "assistant", [{"type": "text", "text": "I look."}, use(f"c{n}", path="a")])
        add(server, "user", [result(f"c{n}")])
        add(server, "assistant", f"answer {n}")


def limited(server: Server, messages: int = 8) -> None:
    server.request("tiro/session/configure", {"limit": {"messages": messages}})


def preview(server: Server, force: str = "lite") -> dict[str, Any]:
    shown: dict[str, Any] = server.request("tiro/session/previewResize", {"force": force})
    return shown


def apply(server: Server, draft: dict[str, Any], **edits: Any) -> dict[str, Any]:
    given = {"draftId": draft["draftId"], **edits}
    done: dict[str, Any] = server.request("tiro/session/applyResize", given)
    return done


def in_window(home: Home, tokens: int, **session: Any) -> None:
    models = {"fake-model": {"context_window": tokens}}
    home.write_config(providers={"fake": home.fake(models=models)}, session=session)


def is_stale(server: Server, draft: dict[str, Any]) -> bool:
    error = server.error("tiro/session/applyResize", {"draftId": draft["draftId"]})
    return (error.kind, error.data["reason"]) == ("resizeFailed", "stale")


# --- see, edit, apply, undo -----------------------------------------------------------------


def test_the_sizes_of_a_preview_are_those_of_the_result(server: Server, provider: Provider) -> None:
    """The meter: what comes in with the memo is counted as well as what goes."""
    groups(server, 5)
    limited(server)
    server.request("tiro/session/configure", {"memoEnabled": True})
    facts = {"facts": [f"The {n}th fact is of some length" for n in range(20)]}
    provider.script(replies.text(json.dumps({"memo": facts})))
    shown = preview(server)
    assert shown["memo"]["facts"] == facts["facts"]
    done = apply(server, shown)
    assert done["tokensBefore"] == shown["tokensBefore"]
    assert done["tokensAfter"] == pytest.approx(shown["tokensAfter"], abs=5)  # rounded in parts
    assert done["tokensAfter"] == view(server)["contextSize"]["tokens"]
    assert seqs(server) == shown["keep"]


@pytest.mark.parametrize("force", ["compact", "lite"])
def test_a_previews_sizes_hold_where_the_model_is_only_chosen_for_it(
    start: StartServer, home: Home, provider: Provider, force: str
) -> None:
    """None is set; what the first that can be used has taught about sizes counts from then on."""
    home.write_config(model=None, providers={"fake": home.fake()})
    server = start()
    groups(server, 4)
    size = view(server)["contextSize"]["tokens"]
    provider.script(replies.text("ok", usage=replies.usage_chunk(size // 2)))
    ask(server, "look")
    id_ = view(server)["id"]
    server.close()
    server = start()
    server.request("tiro/session/load", {"id": id_})
    limited(server)
    server.request("tiro/session/configure", {"memoEnabled": True})
    provider.otherwise(lambda request: replies.text("All of it, and here is what was found."))
    shown = preview(server, force)
    done = apply(server, shown)
    assert done["tokensBefore"] == shown["tokensBefore"]
    assert done["tokensAfter"] == pytest.approx(shown["tokensAfter"], abs=5)


@pytest.mark.parametrize("seq", [1, 99])
def test_a_pin_of_what_is_not_in_the_window_says_where_it_is(
    server: Server, provider: Provider, seq: int
) -> None:
    groups(server, 2)
    provider.script(replies.text("All of it."))
    server.request("tiro/session/compact")
    told = server.error("tiro/session/pin", {"seq": seq, "pinned": True}).message
    assert told.startswith(
        "Message #1 has left the window: it can be read" if seq == 1 else "There is no message #99"
    )


@pytest.mark.parametrize("memo", [[], "nonsense", 5, {"a": [None, {"b": "\x00"}]}, {}])
def test_any_memo_that_is_json_is_the_users_to_write(
    server: Server, provider: Provider, memo: Any
) -> None:
    """A1.4, A10.3: it is kept, the next turn works, and undo brings the old one back."""
    groups(server, 3)
    server.request("tiro/memo/set", {"memo": {"old": 1}})
    limited(server)
    before = seqs(server)
    done = apply(server, preview(server), memo=memo)
    if isinstance(memo, dict):
        assert done["memo"].pop("last_resize")["type"] == "lite"
    assert done["memo"] == json.loads(json.dumps(memo).replace("\\u0000", "�"))
    assert server.request("tiro/session/undoResize")["memo"] == {"old": 1}
    assert seqs(server) == before
    assert ask(server, "go on")["stopReason"] == "end_turn"


def test_a_memo_of_the_users_is_not_told_as_refused(server: Server, provider: Provider) -> None:
    """What the model wrote was refused; what the user wrote in its place was not."""
    groups(server, 3)
    server.request("tiro/session/configure", {"memoEnabled": True})
    limited(server)
    provider.script(replies.text("no JSON"))
    shown = preview(server)
    assert "no JSON object" in shown["memoRefused"]
    done = apply(server, shown, memo={"mine": 1})
    assert (done["memo"]["mine"], done["memoRefused"]) == (1, None)


def test_a_draft_lives_through_a_whole_turn(start: StartServer, provider: Provider) -> None:
    """A turn adds messages; that it is the session's first, and costs something, is no change."""
    server = start()
    groups(server, 3)
    shown = preview(server)
    provider.script(replies.tools(("c9", "list_files", {})), replies.text("Done."))
    ask(server, "look")
    done = apply(server, shown, summary="mine")
    assert done["summary"] == "mine"
    assert seqs(server)[-4:] == [13, 14, 15, 16]


def test_a_draft_is_applied_once_and_only_where_it_was_made(server: Server) -> None:
    groups(server, 3)
    limited(server)
    first = preview(server)
    second = preview(server)
    assert is_stale(server, first)
    apply(server, second)
    assert is_stale(server, second)
    server.request("tiro/session/undoResize")
    assert is_stale(server, second)
    third = preview(server)
    server.request("tiro/session/clear")
    assert is_stale(server, third)
    assert server.error("tiro/session/undoResize").data["reason"] == "nothingToUndo"


def test_an_undo_after_more_turns_keeps_what_they_said(server: Server, provider: Provider) -> None:
    """Undo of a compaction: the window of before, and all that was said since."""
    fill(server, "one", "two", "three", "four")
    provider.script(replies.text("They counted to four."), replies.text("five"))
    server.request("tiro/session/compact")
    ask(server, "and then?")
    assert words(server) == ["and then?", "five"]
    shown = server.request("tiro/session/undoResize")
    assert words(server) == ["one", "two", "three", "four", "and then?", "five"]
    assert shown["summary"] == ""
    ask(server, "go on")
    assert "They counted" not in provider.last.system


@pytest.mark.parametrize("pinned", [6, 7])
def test_a_pin_in_a_pair_holds_the_pair(server: Server, provider: Provider, pinned: int) -> None:
    """U2.8: either half; and either half lets it go."""
    groups(server, 5)
    assert server.request("tiro/session/pin", {"seq": pinned, "pinned": True})["pins"] == [pinned]
    limited(server, 4)
    shown = preview(server)
    assert shown["keep"] == [6, 7, 17, 18, 19, 20]
    apply(server, shown)
    assert ask(server, "go on")["stopReason"] == "end_turn"
    other = {6: 7, 7: 6}[pinned]
    assert server.request("tiro/session/pin", {"seq": other, "pinned": False})["pins"] == []
    error = server.error("tiro/session/pin", {"seq": 999, "pinned": True})
    assert error.code == -32602


# --- a compaction, seen before --------------------------------------------------------------


def test_a_compaction_is_shown_edited_and_undone(server: Server, provider: Provider) -> None:
    """The summary that would be written is there to be read first; a turn does not end that."""
    groups(server, 5)
    server.request("tiro/session/pin", {"seq": 1, "pinned": True})
    provider.script(replies.text("Five questions, question 0 first."))
    shown = preview(server, "compact")
    assert (shown["decision"]["type"], shown["keep"]) == ("compact", [1])
    assert shown["evict"] == list(range(2, 21))
    assert shown["summary"] == "Five questions, question 0 first."
    assert (view(server)["summary"], len(seqs(server))) == ("", 20)
    add(server, "user", "one more")
    done = apply(server, shown, memo={"mine": 1})
    assert 0 < done["tokensAfter"] - shown["tokensAfter"] < 60  # the memo, and what came since
    assert (done["evicted"], done["summary"], done["memo"]) == (19, shown["summary"], {"mine": 1})
    undone = server.request("tiro/session/undoResize")
    assert (undone["summary"], undone["total"]) == ("", 21)
    provider.script(replies.text("Seven."))
    assert apply(server, preview(server, "compact"), summary="mine")["summary"] == "mine"


@pytest.mark.parametrize("reply", ["", "words and more " * 2_000])
def test_a_compaction_that_cannot_be_shown_leaves_all_as_it_was(
    server: Server, provider: Provider, reply: str
) -> None:
    """An unusable summary, and one that gains no room; nothing to fold asks nobody."""
    assert preview(server, "compact")["draftId"] is None
    assert provider.chats == []
    groups(server, 2)
    provider.script(replies.text(reply))
    params = {"force": "compact"}
    assert server.error("tiro/session/previewResize", params).kind == "resizeFailed"
    assert len(seqs(server)) == 8
    provider.script(replies.text("Short."))
    shown = preview(server, "compact")
    server.request("tiro/memo/set", {"summary": "another"})
    assert is_stale(server, shown)


# --- a memo of any size ---------------------------------------------------------------------


def test_a_memo_that_fills_the_window_is_shown_in_part_and_costs_no_message(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """B20: the request shows its beginning and end, which is told once; nothing else changes."""
    in_window(home, WINDOW)
    server = start()
    fill(server, *(f"message {n}" for n in range(12)))
    server.request("tiro/memo/set", {"memo": {"all": "words and more " * 70_000}})
    sizes = server.request("tiro/session/contextSize")["breakdown"]
    assert sizes["memo"] <= WINDOW / 4
    for n in range(2):
        assert ask(server, f"hello {n}")["stopReason"] == "end_turn"
    assert "characters left out here" in provider.last.system
    assert seqs(server) == list(range(1, 17))
    assert len(server.request("tiro/memo/get")["memo"]["all"]) == 15 * 70_000
    (problem,) = server.request("tiro/status")["problems"]
    assert "memo is too long" in problem
    assert [told["message"] for told in server.named("window/showMessage")] == [problem]
    server.request("tiro/memo/set", {"memo": {}})
    assert server.request("tiro/status")["problems"] == []


def test_no_text_of_a_memo_breaks_what_is_stored(start: StartServer, provider: Provider) -> None:
    """Section 2: lone surrogates and U+0000 become U+FFFD, in keys too; it is the same on load."""
    server = start()
    fill(server, "one", "two")
    body = (
        rb'{"jsonrpc":"2.0","id":"m","method":"tiro/memo/set","params":'
        rb'{"memo":{"k\udc00":"a\u0000b\ud83d"},"summary":"s\ud800"}}'
    )
    server.send_body(body)
    server.wait_until(lambda: bool(server.answers_to("m")), "memo/set")
    expected = ({"k�": "a�b�"}, "s�")
    got = server.request("tiro/memo/get")
    assert (got["memo"], got["summary"]) == expected
    ask(server, "go on")
    id_ = view(server)["id"]
    server.kill()
    server = start()
    loaded = server.request("tiro/session/load", {"id": id_})
    assert (loaded["memo"], loaded["summary"]) == expected


# --- while something else goes on -----------------------------------------------------------


def test_while_a_turn_runs_all_that_would_change_its_window_is_refused(
    start: StartServer, provider: Provider
) -> None:
    """M7.1 and section 4: a preview is allowed, as is writing the memo."""
    server, hold = start(), replies.Hold()
    groups(server, 3)
    provider.script(replies.stream(replies.text_chunk("half"), hold, replies.text_chunk(" done")))
    turn = begin_ask(server, "hello")
    hold.wait()
    for method in ("compact", "resize", "undoResize"):
        assert server.error(f"tiro/session/{method}", {}).kind == "turnInProgress"
    shown = preview(server)
    error = server.error("tiro/session/applyResize", {"draftId": shown["draftId"]})
    assert error.kind == "turnInProgress"
    assert server.request("tiro/memo/set", {"memo": {"now": 1}})["memo"] == {"now": 1}
    hold.release()
    assert turn.result()["text"] == "half done"
    assert view(server)["memo"] == {"now": 1}


def test_what_another_process_answers_in_is_left_alone(
    start: StartServer, provider: Provider
) -> None:
    """U9.8: who it is that answers is told; a preview reads only; afterwards all of it works."""
    one, hold = start(), replies.Hold()
    groups(one, 3)
    limited(one)
    one.request("tiro/session/save")
    other = start()
    other.request("tiro/session/load", {"id": view(one)["id"]})
    provider.script(replies.stream(replies.text_chunk("half"), hold, replies.text_chunk(" done")))
    turn = begin_ask(other, "hello")
    hold.wait()
    asked: list[tuple[str, dict[str, Any]]] = [
        ("tiro/session/resize", {"force": "lite"}),
        ("tiro/session/compact", {}),
    ]
    assert preview(one)["draftId"]
    chats = len(provider.chats)
    for method, params in asked:
        error = one.error(method, params)
        assert (error.kind, bool(error.data["pid"])) == ("sessionInUse", True), method
    hold.release()
    turn.result()
    done = one.request("tiro/session/resize", {"force": "lite"})
    assert words(one)[-2:] == ["hello", "half done"]
    assert done["total"] == len(words(one)) == 7  # eight would begin with the half of a pair
    assert len(provider.chats) == chats  # nothing was paid for in vain


def test_a_buffer_limit_below_its_minimum_trims(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """N7.1, N4.1: whoever sets only the limit, below 10, still gets answers."""
    home.write_config(
        providers={"fake": home.fake()},
        session={"summary": {"enabled": False, "message_buffer_limit": 6}},
    )
    server = start()
    fill(server, *(f"message {n}" for n in range(12)))
    assert ask(server, "hello")["stopReason"] == "end_turn"
    assert words(server)[0] == "message 6"
