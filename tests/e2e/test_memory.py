"""Memory through the real server: preview, apply, undo, compact, memo, pins, the summary (A, N)."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.e2e.talk import add, ask, at_rest, until, view, words


def talk(server: Server, count: int) -> None:
    for n in range(count):
        add(server, "user", f"question {n}")
        add(server, "assistant", f"answer {n}")


def settled(server: Server, provider: Provider, count: int) -> None:
    """Wait for the last summary too: its request must not meet the next test's script."""
    provider.wait_for(count)
    until(lambda: not memory(server)["summaryInProgress"])


def memory(server: Server) -> dict[str, Any]:
    got: dict[str, Any] = server.request("tiro/memo/get")
    return got


# --- preview, apply, undo -------------------------------------------------------------------


def test_a_preview_changes_nothing_and_is_applied_as_shown(server: Server) -> None:
    talk(server, 4)
    server.request("tiro/session/configure", {"limit": {"messages": 4}})
    before = at_rest(server)
    shown = server.request("tiro/session/previewResize", {"force": "lite"})
    assert {**view(server), "updatedAt": 0} == {**before, "updatedAt": 0}
    assert (shown["evict"], shown["keep"]) == ([1, 2, 3, 4], [5, 6, 7, 8])
    assert shown["tokensAfter"] < shown["tokensBefore"]
    given = {"draftId": shown["draftId"], "memo": {"mine": 1}, "summary": "my summary"}
    done = server.request("tiro/session/applyResize", given)
    assert (done["evicted"], done["total"], done["summary"]) == (4, 4, "my summary")
    assert done["memo"]["mine"] == 1


def test_a_draft_lives_through_added_messages_only(server: Server) -> None:
    """Protocol, applyResize."""
    talk(server, 2)
    server.request("tiro/session/configure", {"limit": {"messages": 2}})
    shown = server.request("tiro/session/previewResize", {"force": "lite"})
    add(server, "user", "late")
    assert server.request("tiro/session/applyResize", {"draftId": shown["draftId"]})["evicted"] == 2
    assert words(server)[-1] == "late"
    for act in (("tiro/session/rewind", {"toSeq": 4}), ("tiro/memo/set", {"memo": {"x": 1}})):
        shown = server.request("tiro/session/previewResize", {"force": "lite"})
        server.request(*act)
        error = server.error("tiro/session/applyResize", {"draftId": shown["draftId"]})
        assert (error.code, error.data["reason"]) == (-32041, "stale")


def test_a_preview_of_nothing_has_no_draft(server: Server) -> None:
    talk(server, 1)
    shown = server.request("tiro/session/previewResize")
    assert (shown["decision"], shown["draftId"], shown["evict"]) == (None, None, [])
    assert server.error("tiro/session/applyResize", {"draftId": "x"}).data["reason"] == "stale"


def test_undo_works_once_also_after_a_restart(start: StartServer, home: Home) -> None:
    server = start()
    talk(server, 3)
    server.request("tiro/session/configure", {"limit": {"messages": 2}})
    server.request("tiro/session/resize", {"force": "lite"})
    saved = server.request("tiro/session/save")["path"]
    server.kill()
    server = start()
    server.request("tiro/session/load", {"path": saved})
    add(server, "user", "since")
    shown = server.request("tiro/session/undoResize")
    assert [m["seq"] for m in shown["messages"]] == [1, 2, 3, 4, 5, 6, 7]
    error = server.error("tiro/session/undoResize")
    assert (error.code, error.data["reason"]) == (-32041, "nothingToUndo")


# --- compaction -----------------------------------------------------------------------------


def test_compaction_folds_the_window_into_the_summary(server: Server, provider: Provider) -> None:
    """M7.1: one request without tools; the next turn knows the summary and nothing is deleted."""
    talk(server, 3)
    provider.script(replies.text("They spoke of three things."))
    done = server.request("tiro/session/compact")
    assert (done["evicted"], done["total"], done["summary"]) == (
        6,
        0,
        "They spoke of three things.",
    )
    assert "tools" not in provider.last.body
    assert "question 2" in provider.last.messages[-1]["content"]
    ask(server, "and now?")
    assert "They spoke of three things." in provider.last.system
    assert len(view(server, limit=50)["messages"]) == 8


@pytest.mark.parametrize(
    "reply",
    [
        replies.text(""),
        replies.text(" \n"),
        replies.text('{"a": 1}'),
        replies.text("half", finish="length"),
        replies.tools(("c", "read_file", {"path": "a"})),
        replies.error(400),
        replies.Reply([replies.ROLE, replies.text_chunk("half of it"), replies.Break(reset=True)]),
    ],
)
def test_a_compaction_that_fails_changes_nothing(
    server: Server, provider: Provider, reply: replies.Reply
) -> None:
    """B18, B19: a clear error, and the next prompt works."""
    talk(server, 3)
    server.request("tiro/memo/set", {"summary": "old"})
    before = view(server)
    provider.script(reply)
    error = server.error("tiro/session/compact")
    assert error.code in (-32041, -32032)
    after = view(server)
    assert (after["messages"], after["summary"]) == (before["messages"], "old")
    assert provider.scripted == 0
    assert ask(server, "still there?")["stopReason"] == "end_turn"


def test_a_compaction_that_gains_nothing_leaves_all_as_it_was(
    server: Server, provider: Provider
) -> None:
    """B18, M7.1: a short talk and a wordy summary; the numbers are told."""
    talk(server, 3)
    server.request("tiro/memo/set", {"summary": "old"})
    before = view(server)
    provider.script(replies.text("They spoke of this and that, at length. " * 40))
    error = server.error("tiro/session/compact")
    assert (error.kind, error.data["reason"]) == ("resizeFailed", "noGain")
    assert re.search(r"the summary takes [\d,]+ tokens, what it stands for \d+;", error.message)
    after = view(server)
    assert (after["messages"], after["summary"]) == (before["messages"], "old")


def test_a_compaction_can_be_cancelled(server: Server, provider: Provider) -> None:
    """B18 (iii)."""
    talk(server, 2)
    hold = replies.Hold()
    provider.script(replies.Reply([replies.ROLE, replies.text_chunk("half"), hold]))
    pending = server.begin("tiro/session/compact")
    hold.wait()
    server.notify("$/cancelRequest", {"id": pending.id})
    assert pending.error().code == -32800
    assert len(view(server)["messages"]) == 4
    assert view(server)["summary"] == ""
    assert ask(server, "go on")["stopReason"] == "end_turn"


def test_a_compaction_is_refused_during_a_turn(server: Server, provider: Provider) -> None:
    """M7.1, M6.5."""
    hold = replies.Hold()
    provider.script(replies.Reply([replies.ROLE, hold, *replies.text("x").steps[1:]]))
    pending = server.begin("tiro/turn/start", {"prompt": "hi"})
    hold.wait()
    for method in ("compact", "resize", "undoResize"):
        assert server.error(f"tiro/session/{method}").kind == "turnInProgress"
    assert server.error("tiro/session/applyResize", {"draftId": "x"}).kind == "turnInProgress"
    hold.release()
    pending.result()


def test_with_nothing_to_compact_no_model_is_called(server: Server, provider: Provider) -> None:
    """M7.1."""
    done = server.request("tiro/session/compact")
    assert (done["decision"], done["evicted"]) == (None, 0)
    assert provider.chats == []


def test_with_everything_pinned_there_is_nothing_to_compact(
    server: Server, provider: Provider
) -> None:
    """M7.1, answer 5: said in a sentence, and no model is called."""
    talk(server, 1)
    for seq in (1, 2):
        server.request("tiro/session/pin", {"seq": seq, "pinned": True})
    error = server.error("tiro/session/compact")
    assert (error.kind, error.data["reason"]) == ("resizeFailed", "allPinned")
    assert "pinned" in error.message
    assert provider.chats == []


# --- memo, summary, pins --------------------------------------------------------------------


def test_memo_and_summary_are_read_and_written(server: Server, provider: Provider) -> None:
    assert memory(server) == {
        "memo": {},
        "memoText": "{}",
        "summary": "",
        "memoCursor": 0,
        "lastResize": None,
        "summaryInProgress": False,
    }
    server.request("tiro/memo/set", {"memo": {"name": "Ann"}})
    server.request("tiro/memo/set", {"summary": "earlier"})
    assert (memory(server)["memo"], memory(server)["summary"]) == ({"name": "Ann"}, "earlier")
    ask(server, "hi")
    system = provider.last.system
    assert '"name":"Ann"' in system.replace(" ", "")
    server.request("tiro/memo/set", {"memo": {"å": {}, "none": None}})
    assert memory(server)["memoText"] == '{\n  "å": {},\n  "none": null\n}'
    assert system.endswith("earlier")


def test_memo_mode_asks_the_model_at_a_resize(server: Server, provider: Provider) -> None:
    """A5.2, A5.3."""
    talk(server, 2)
    server.request("tiro/session/configure", {"mode": "memo", "limit": {"messages": 2}})
    provider.script(replies.text('```json\n{"memo": {"topic": "questions"}}\n```'))
    done = server.request("tiro/session/resize", {"force": "lite"})
    assert done["memo"]["topic"] == "questions"
    assert json.loads(provider.last.messages[-1]["content"])["current_memo"] == {}


def test_a_pinned_message_stays(server: Server) -> None:
    """U2.8."""
    talk(server, 3)
    assert server.request("tiro/session/pin", {"seq": 1, "pinned": True}) == {"pins": [1]}
    server.request("tiro/session/configure", {"limit": {"messages": 2}})
    server.request("tiro/session/resize", {"force": "lite"})
    assert [m["seq"] for m in view(server)["messages"]] == [1, 5, 6]
    assert server.request("tiro/session/pin", {"seq": 1, "pinned": False}) == {"pins": []}
    assert server.error("tiro/session/pin", {"seq": 99, "pinned": True}).code == -32602


def test_pins_may_not_take_half_of_the_budget(start: StartServer, home: Home) -> None:
    """U2.8."""
    home.write_config(
        providers={"fake": home.fake(models={"fake-model": {"context_window": 4000}})}
    )
    server = start()
    add(server, "user", "many words here " * 600)
    assert server.error("tiro/session/pin", {"seq": 1, "pinned": True}).code == -32602
    assert view(server)["pins"] == []


def test_an_edited_pin_may_not_take_half_of_the_budget(start: StartServer, home: Home) -> None:
    """U2.8: to let a pinned message grow is to pin more; nothing of it is changed."""
    home.write_config(
        providers={"fake": home.fake(models={"fake-model": {"context_window": 4000}})}
    )
    server = start()
    add(server, "user", "short")
    add(server, "user", "not pinned")
    server.request("tiro/session/pin", {"seq": 1, "pinned": True})
    long = "many words here " * 600
    error = server.error("tiro/session/editMessage", {"seq": 1, "content": long})
    assert error.code == -32602
    assert "let others go" in error.message
    assert view(server)["messages"][0]["content"] == "short"
    server.request("tiro/session/editMessage", {"seq": 2, "content": long})


def test_a_system_message_larger_than_the_window_ends_nothing(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """U3.9: it is sent without its middle, is told by its seq, and stays so outside the window."""
    home.write_config(
        providers={"fake": home.fake(models={"fake-model": {"context_window": 4000}})}
    )
    server = start()
    add(server, "user", "before")
    add(server, "system", f"FIRST {'many words here ' * 4000} LAST")
    for n in range(3):
        assert ask(server, f"turn {n}")["stopReason"] == "end_turn"
    server.request("tiro/session/resize", {"force": "deep"})
    server.request("tiro/session/configure", {"maxHistory": 2})
    done = ask(server, "after")
    assert done["contextSize"]["tokens"] < 4000
    assert "FIRST" in provider.last.system
    assert "LAST" in provider.last.system
    (told,) = server.named("window/showMessage")
    assert "System message 2 is too long" in told["message"]


# --- the background summary -----------------------------------------------------------------


def test_what_leaves_the_window_is_summarised_after_the_turn(
    server: Server, provider: Provider
) -> None:
    """U8.4, N4.6, N3.6: the reply does not wait, the client is told, the next turn has it."""
    server.request("tiro/session/configure", {"maxHistory": 4, "summaryEnabled": True})
    talk(server, 4)
    hold = replies.Hold()
    provider.script(replies.text("the reply"))
    provider.script(replies.Reply([replies.ROLE, hold, *replies.text("A summary.").steps[1:]]))
    assert ask(server, "hello")["text"] == "the reply"
    hold.wait()
    assert memory(server)["summaryInProgress"] is True
    hold.release()
    changed = server.wait_notification(
        "tiro/session/changed", lambda told: told["reason"] == "summary"
    )
    assert changed["id"]
    assert memory(server)["summary"] == "A summary."
    ask(server, "and now?")
    asked = [request for request in provider.chats if request.tool_names]
    assert asked[-1].system.endswith("A summary.")
    settled(server, provider, 4)


def test_a_summary_that_fails_is_tried_again_with_the_next_turn(
    server: Server, provider: Provider
) -> None:
    """N3.7, N3.8."""
    server.request("tiro/session/configure", {"maxHistory": 4, "summaryEnabled": True})
    talk(server, 4)
    provider.script(replies.text("one"), replies.text(" "), replies.text("two"))
    provider.script(replies.text("Good."))
    ask(server, "hello")
    until(lambda: len(provider.chats) == 2 and not memory(server)["summaryInProgress"])
    assert memory(server)["summary"] == ""
    ask(server, "again")
    until(lambda: memory(server)["summary"] == "Good.")
    assert "question 0" in provider.last.messages[-1]["content"]


def test_a_late_summary_never_reaches_another_session(server: Server, provider: Provider) -> None:
    """N4.8."""
    server.request("tiro/session/configure", {"maxHistory": 2, "summaryEnabled": True})
    talk(server, 3)
    hold = replies.Hold()
    provider.script(replies.text("reply"))
    provider.script(replies.Reply([replies.ROLE, hold, *replies.text("Late.").steps[1:]]))
    ask(server, "hello")
    hold.wait()
    path = server.request("tiro/session/clear")["savedAs"]
    hold.release()
    ask(server, "a new session")
    assert memory(server)["summary"] == ""
    assert json.loads(Path(path).read_text("utf-8"))["summary"] == ""


# --- overflow and budget --------------------------------------------------------------------

OVERFLOW = json.dumps(
    {
        "error": {
            "code": 400,
            "message": "request (9031 tokens) exceeds the available context size (4096 tokens)",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 9031,
            "n_ctx": 4096,
        }
    }
)


def overflow() -> replies.Reply:
    kind = [("content-type", "application/json")]
    return replies.Reply([OVERFLOW.encode()], status=400, headers=kind, framing="length")


def test_an_overflow_leads_to_one_resize_and_one_retry(server: Server, provider: Provider) -> None:
    """U8, B20: what the provider says counts, whatever was estimated."""
    for n in range(6):
        add(server, "user", f"{n} " + "some words and more of them " * 60)
        add(server, "assistant", "yes")
    provider.script(overflow(), replies.text("fits now"))
    done = ask(server, "the newest")
    assert (done["text"], done["steps"], len(provider.chats)) == ("fits now", 1, 2)
    assert len(provider.chats[1].body["messages"]) < len(provider.chats[0].body["messages"])
    assert provider.chats[1].messages[-1]["content"] == "the newest"
    assert any(event["type"] == "resize" for event in server.events(done["turnId"]))


def test_an_overflow_is_never_a_loop(server: Server, provider: Provider) -> None:
    """U8: after one retry it is contextOverflow; the session is usable."""
    for n in range(6):
        add(server, "user", f"{n} " + "some words and more of them " * 60)
    provider.script(overflow(), overflow())
    error = server.error("tiro/turn/start", {"prompt": "the newest"})
    assert (error.kind, len(provider.chats)) == ("contextOverflow", 2)
    assert error.data["contextWindow"] == 4096
    assert ask(server, "again")["stopReason"] == "end_turn"


def test_a_turn_stops_before_it_passes_its_budget(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """budgetExceeded."""
    home.write_config(turn={"budget": {"tokens": 1}})
    server = start()
    error = server.error("tiro/turn/start", {"prompt": "hi"})
    assert (error.code, error.kind, error.data["budget"]) == (-32034, "budgetExceeded", 1)
    assert error.data["estimate"] > 1
    assert provider.chats == []


# --- what a question costs, and who else writes ------------------------------------------------


def files(home: Home) -> list[str]:
    return sorted(path.name for path in (home.config_dir / "sessions").glob("*.json"))


def summarised_late(server: Server, provider: Provider) -> replies.Hold:
    """A turn whose summary is held by the provider."""
    server.request("tiro/session/configure", {"maxHistory": 2, "summaryEnabled": True})
    talk(server, 3)
    hold = replies.Hold()
    provider.script(replies.text("reply"))
    provider.script(replies.Reply([replies.ROLE, hold, *replies.text("Late.").steps[1:]]))
    ask(server, "hello")
    hold.wait()
    return hold


def test_a_summary_that_comes_while_another_process_writes_forks_nothing(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """N4.8, U9.8: what it cost is written with it, under the same lock."""
    one = start()
    hold = summarised_late(one, provider)
    id_ = view(one)["id"]
    other = start()
    other.request("tiro/session/load", {"id": id_})
    ask(other, "from the other editor")
    hold.release()
    until(lambda: not memory(one)["summaryInProgress"])
    add(one, "user", "and back")
    assert view(one)["id"] == id_
    assert len(files(home)) == 1
    said = [m["content"] for m in view(one, limit=50)["messages"]]
    assert "from the other editor" in said
    ask(one, "once more")  # where both came too late, this turn asks again
    until(lambda: memory(one)["summary"] in ("Late.", "ok"))


def test_a_summary_of_an_object_that_was_replaced_writes_nothing(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """N4.8: the same session was cleared and loaded again meanwhile."""
    server = start()
    hold = summarised_late(server, provider)
    id_ = view(server)["id"]
    server.request("tiro/session/clear")
    server.request("tiro/session/load", {"id": id_})
    hold.release()
    ask(server, "once more")
    server.request("tiro/session/save")
    assert [name for name in files(home) if name.endswith("-01.json")] == []


def test_what_a_summary_cost_is_counted(server: Server, provider: Provider) -> None:
    """Usage is over the session."""
    server.request("tiro/session/configure", {"maxHistory": 2, "summaryEnabled": True})
    talk(server, 3)
    usage = replies.usage_chunk(prompt=100, completion=7)
    provider.script(replies.text("one"), replies.text("Sum.", usage=usage))
    ask(server, "hello")
    until(lambda: memory(server)["summary"] == "Sum.")
    ask(server, "again")
    until(lambda: server.request("tiro/session/statistics")["usage"]["inputTokens"] >= 110)
    settled(server, provider, 4)


def test_a_summary_that_is_never_usable_is_asked_for_less_and_less(
    server: Server, provider: Provider
) -> None:
    """B19, B20: not two requests a turn for ever."""
    server.request("tiro/session/configure", {"maxHistory": 2, "summaryEnabled": True})
    talk(server, 3)

    def answer(request: Any) -> replies.Reply:
        is_summary = "tools" not in request.body
        return replies.text("half", finish="length" if is_summary else "stop")

    provider.otherwise(answer)
    for n in range(8):
        ask(server, f"turn {n}")
        until(lambda: not memory(server)["summaryInProgress"])
    asked = [chat for chat in provider.chats if "tools" not in chat.body]
    assert 2 <= len(asked) <= 4
    assert memory(server)["summary"] == ""


def test_what_failed_in_one_session_delays_no_other(server: Server, provider: Provider) -> None:
    """N3.7: each session tries again at its own next turn."""
    provider.otherwise(lambda r: replies.text("ok" if r.tool_names else ""))
    for _ in range(4):
        server.request("tiro/session/clear")
        server.request("tiro/session/configure", {"maxHistory": 2, "summaryEnabled": True})
        talk(server, 3)
        before = len(provider.chats)
        ask(server, "a turn")
        provider.wait_for(before + 2)
        until(lambda: not memory(server)["summaryInProgress"])


def test_a_preview_ends_with_a_change_while_it_is_made(server: Server, provider: Provider) -> None:
    """Protocol: one that came while the memo's model was asked ends the preview."""
    talk(server, 3)
    server.request("tiro/session/configure", {"mode": "memo", "limit": {"messages": 2}})
    hold = replies.Hold()
    provider.script(replies.Reply([replies.ROLE, hold, *replies.text('{"a": 1}').steps[1:]]))
    pending = server.begin("tiro/session/previewResize", {"force": "lite"})
    hold.wait()
    server.request("tiro/session/rewind", {"toSeq": 4})
    assert pending.error().data["reason"] == "overtaken"
    hold.release()
    assert len(view(server)["messages"]) == 4


def test_the_buffer_limit_trims_before_a_turn(server: Server, provider: Provider) -> None:
    """N4.1, U8.4: off unless it is set."""
    settings = {"session": {"summary": {"message_buffer_limit": 6, "message_buffer_min": 2}}}
    server.notify("workspace/didChangeConfiguration", {"settings": settings})
    talk(server, 5)
    ask(server, "hello")
    assert len(provider.last.messages) == 3
    server.notify("workspace/didChangeConfiguration", {"settings": {}})


def test_a_draft_that_another_process_overtook_is_stale(start: StartServer) -> None:
    """Protocol, applyResize: the user's text is refused aloud, never dropped."""
    one = start()
    talk(one, 3)
    one.request("tiro/session/configure", {"limit": {"messages": 2}})
    shown = one.request("tiro/session/previewResize", {"force": "lite"})
    other = start()
    other.request("tiro/session/load", {"id": view(one)["id"]})
    other.request("tiro/memo/set", {"summary": "theirs"})
    given = {"draftId": shown["draftId"], "summary": "mine"}
    assert one.error("tiro/session/applyResize", given).data["reason"] == "stale"
    assert memory(one)["summary"] == "theirs"


def test_an_undo_of_wrong_types_breaks_nothing(server: Server, provider: Provider) -> None:
    """A session file is the user's: what it holds may be anything."""
    undo = {"seqs": [1], "pending": "x", "memo": {}, "summary": 5, "memo_cursor": "q",
            "last_resize_turn": [], "other": 1}  # fmt: skip
    stored = {"id": "s2", "messages": [{"role": "user", "content": "x"}], "undo": undo}
    server.request("tiro/session/import", {"text": json.dumps(stored)})
    server.request("tiro/session/undoResize")
    assert memory(server)["summary"] == ""
    assert ask(server, "hello")["stopReason"] == "end_turn"
