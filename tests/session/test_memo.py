"""The memo and the handlers that a caller may put in place of the defaults (A2.8, A4 to A7)."""

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.session.histories import result, uses
from tests.sizes import PATIENCE
from tiro import Session
from tiro.session import resize
from tiro.session.memo import attachment_summaries, facts, memo_in

Calls = list[tuple[Any, ...]]


def recording(calls: Calls, answer: Callable[..., Any]) -> Callable[..., Any]:
    """A handler that notes what it was called with."""

    def handler(*arguments: Any) -> Any:
        calls.append(arguments)
        return answer(*arguments)

    return handler


def texts(messages: list[Any]) -> list[Any]:
    return [message["content"] for message in messages]


def talk(session: Session, *contents: str) -> Session:
    for number, content in enumerate(contents):
        session.add_message("user" if number % 2 == 0 else "assistant", content)
    return session


# --- reading into the memo ------------------------------------------------------------------


def test_lite_reads_what_is_new_into_the_memo() -> None:
    """A4.7, A5.4: once each message, and the memo of before goes along."""
    calls: Calls = []
    session = Session(memo_update_handler=recording(calls, lambda memo, *_: {**memo, "n": 1}))
    talk(session.use_memo(messages=2), "one", "two", "three").resize("lite")
    assert texts(calls[0][1]) == ["one", "two", "three"]
    assert session.memo["n"] == 1
    talk(session, "four").resize("lite")
    assert texts(calls[1][1]) == ["four"]
    assert calls[1][0] == {"n": 1}, "A5.6: the bookkeeping is no fact"
    assert session._memo_cursor == 4


def test_without_a_new_message_nothing_is_read_again() -> None:
    """A4.13."""
    calls: Calls = []
    session = Session(memo_update_handler=recording(calls, lambda memo, *_: {"n": len(calls)}))
    talk(session.use_memo(), "one").resize("deep")
    session.resize("deep")
    session.resize("lite")
    assert len(calls) == 1
    talk(session, "two").resize("deep")
    assert len(calls) == 2


def test_deep_reads_everything_chunk_by_chunk() -> None:
    """A4.8, A4.9: greedy, in order, a longer message alone, each call with the memo before it."""
    calls: Calls = []
    update = recording(calls, lambda memo, messages, *_: {"k": memo.get("k", 0) + 1})
    session = Session(memo_update_handler=update)
    session.use_memo(chars=30)
    for content in ("a" * 8, "b" * 8, "c" * 100, "d"):
        session.add_message("user", content)
    session.resize("deep")
    assert [[len(text) for text in texts(call[1])] for call in calls] == [[8, 8], [100], [1]]
    assert [call[0].get("k", 0) for call in calls] == [0, 1, 2]
    assert session.memo["k"] == 3


@pytest.mark.parametrize("off", [0, -1, None])
def test_without_a_limit_deep_reads_one_chunk(off: int | None) -> None:
    """A4.9, A4.12."""
    calls: Calls = []
    session = Session(memo_update_handler=recording(calls, lambda memo, *_: memo))
    session.set_settings("session.resize.max_messages_text_length", off)
    talk(session.use_memo(), "one" * 9_000, "two", "three").resize("deep")
    assert len(calls) == 1
    assert len(session.messages) == 3


def test_lite_mode_moves_the_cursor_and_deep_still_reads_all() -> None:
    """A4.7 (c): the raw messages stay."""
    calls: Calls = []
    session = Session(memo_update_handler=recording(calls, lambda memo, *_: {"x": 1}))
    talk(session, "one", "two").resize("lite")
    assert (calls, session._memo_cursor) == ([], 2)
    session.use_memo().resize("deep")
    assert texts(calls[0][1]) == ["one", "two"]


@pytest.mark.parametrize("answer", [None, "text", ["list"], 7])
def test_a_memo_that_is_no_dict_leaves_the_old_one(answer: Any) -> None:
    """A5.4."""
    session = Session(memo_update_handler=lambda *_: answer)
    session.change(memo={"kept": True})
    talk(session.use_memo(), "one").resize("lite")
    assert session.memo["kept"] is True


@pytest.mark.parametrize("kind", ["lite", "deep"])
@pytest.mark.parametrize("reply", ["no JSON", "", "[1]", None, '{"memo": {}}'])
def test_a_reply_that_is_no_memo_counts_as_nothing_read(kind: str, reply: Any) -> None:
    """A5.3, U4.2: memo, cursor and marks stay; the window is pruned; the next one reads it all."""
    asked: list[str] = []

    def model(messages: Any) -> Any:
        asked.append(messages[1]["content"])
        return reply if len(asked) == 1 else '{"memo": {"b": 2}}'

    session = Session({"session.memo.model": model})
    session.change(memo={"a": 1})
    talk(session.use_memo(messages=1), "one", "two", "three").resize(kind)
    assert (facts(session.memo), session._memo_cursor) == ({"a": 1}, 0)
    assert [m.seq for m in session.pending()] == [1, 2]
    assert texts(session.messages) == ["three"]
    talk(session, "four").resize(kind)
    assert (facts(session.memo), session._memo_cursor, session.pending()) == ({"b": 2}, 4, [])
    assert "one" in asked[1]


def test_a_reply_that_is_no_memo_ends_the_reading_there() -> None:
    """A4.8, U4.2: what was read before it stays read."""
    replies = ['{"memo": {"a": 1}}', "no JSON", '{"memo": {"b": 2}}']
    session = Session({"session.memo.model": lambda _: replies.pop(0)})
    session.use_memo(chars=7)
    for content in "123":
        session.add_message("user", content)
    session.resize("deep")
    assert (facts(session.memo), session._memo_cursor, len(replies)) == ({"a": 1}, 1, 1)
    assert [m.seq for m in session.pending()] == [2]


def test_a_handler_that_leaves_the_memo_has_read_the_messages() -> None:
    """A4.7 (c), A5.4: the cursor moves, and what no memo holds still waits for a summary."""
    session = Session(memo_update_handler=lambda *_: None)
    talk(session.use_memo(messages=1), "one", "two").resize("lite")
    assert session._memo_cursor == 2
    assert [m.seq for m in session.pending()] == [1]


def test_a_custom_handler_moves_no_cursor() -> None:
    """A1.7: no memo has read anything; one that shortens the history shortens it too."""
    calls: Calls = []
    session = Session(memo_update_handler=recording(calls, lambda *_: {"x": 1}))
    talk(session.use_memo(), "one", "two", "three").resize("lite")
    session.set_resize_handlers("mine", lambda f, c, m, s: (f[2:], c, m)).resize("mine")
    assert session._memo_cursor == 1
    talk(session, "four").set_resize_handlers("mine", lambda *_: None).resize("mine")
    session.resize("lite")
    assert texts(calls[1][1]) == ["four"]


def test_what_is_taken_back_takes_the_cursor_along() -> None:
    """Answer 2: it counts messages that are not taken back, so later ones are not passed over."""
    calls: Calls = []
    session = Session(memo_update_handler=recording(calls, lambda *_: {"x": len(calls)}))
    talk(session.use_memo(), "one", "two", "three", "four").resize("lite")
    session.rewind(2)
    assert session._memo_cursor == 2
    talk(session, "five", "six").resize("lite")
    assert texts(calls[1][1]) == ["five", "six"]
    session.rewind(1)
    resize.undo(session)
    assert session._memo_cursor == 1


def test_what_an_updated_memo_has_read_is_covered() -> None:
    """U4.3, answer 18: the others wait for a summary."""
    session = Session(memo_update_handler=lambda memo, *_: {"x": 1})
    talk(session.set_limit(messages=1), "one", "two", "three").resize("lite")
    assert [m.seq for m in session.pending()] == [1, 2]
    talk(session.use_memo(messages=1), "four").resize("lite")
    assert [m.seq for m in session.pending()] == [1, 2, 3], "lite has read the fourth only"
    session.resize("deep")
    assert [m.seq for m in session.pending()] == [1, 2, 3], "nothing new came: A4.13"
    talk(session, "five").resize("deep")
    assert session.pending() == []


# --- failures -------------------------------------------------------------------------------


def fails(*_: Any) -> Any:
    raise RuntimeError("no")


def fails_after_changes(full: Any, current: Any, memo: Any, settings: Any) -> Any:
    full.clear()
    current.clear()
    memo["broken"] = True
    raise RuntimeError("no")


@pytest.mark.parametrize("kind", ["lite", "deep", "custom"])
def test_a_failing_handler_changes_nothing(kind: str) -> None:
    """A4.6, U4.2: even one that changed its arguments before."""
    session = Session(memo_update_handler=fails, resize_handlers=None)
    session.set_resize_handlers("custom", fails_after_changes)
    session.change(memo={"kept": 1})
    talk(session.use_memo(messages=1), "one", "two", "three")
    before = session.snapshot()
    with pytest.raises(RuntimeError, match="no"):
        session.resize(kind)
    assert {**session.snapshot(), "updated_at": None} == {**before, "updated_at": None}


# --- handlers of the caller's ---------------------------------------------------------------


async def drops_the_first(full: Any, current: Any, memo: Any, settings: Any) -> Any:
    return full, current[1:], {**memo, "by": settings["session.mode"]}


@pytest.mark.parametrize("is_async", [True, False])
def test_a_custom_handler_replaces_the_three(is_async: bool) -> None:
    """A4.3, A4.5, A7.1."""

    def sync(*arguments: Any) -> Any:
        assert threading.current_thread() is not threading.main_thread()
        return asyncio.run(drops_the_first(*arguments))

    session = talk(Session(), "one", "two", "three")
    session.set_resize_handlers("archive", drops_the_first if is_async else sync)
    assert texts(session.resize("archive")) == ["two", "three"]
    assert session.memo["by"] == "lite"
    assert texts(session.full_chat_history) == ["one", "two", "three"]
    assert [m.seq for m in session.pending()] == [1]


def test_the_reason_of_the_decision_stands_in_the_memo() -> None:
    """A4.4."""
    session = talk(Session(), "one", "two")
    keeps = {"type": "mine", "turn": 7, "reason": "own words"}
    session.set_resize_handlers("mine", lambda f, c, m, s: (f, c, {"last_resize": keeps}))
    session.set_policy_handler(lambda *_: "mine").resize()
    assert session.memo["last_resize"] == keeps, "a bare type leaves the handler's text"
    session.set_policy_handler(lambda *_: {"type": "mine", "reason": "why"}).resize()
    assert session.memo["last_resize"] == {**keeps, "reason": "why"}
    session.set_resize_handlers("mine", lambda f, c, m, s: (f, c, {"last_resize": "odd"})).resize()
    assert session.memo["last_resize"] == {"type": "mine", "turn": 1, "reason": "why"}
    session.set_resize_handlers("mine", lambda f, c, m, s: (f, c, "no dict")).resize()
    assert session.memo == "no dict"


def test_a_handler_may_write_messages() -> None:
    """U1.6: what is only in the window is marked and saved, and never in the full history."""
    note = {"role": "user", "content": "in short: one and two"}
    session = talk(Session(), "one", "two", "three")
    session.set_resize_handlers("mine", lambda f, c, m, s: (f, [note, c[-1]], m))
    session.resize("mine")
    assert texts(session.messages) == ["in short: one and two", "three"]
    assert texts(session.full_chat_history) == ["one", "two", "three"]
    assert [m.seq for m in session.messages] == [4, 3], "answer 3: in the handler's order"
    session.add_message("user", "four")
    assert session.messages[-1].seq == 5


def test_a_new_message_in_both_histories_is_one_message() -> None:
    """U1.6, A1.3."""
    note = {"role": "user", "content": "note"}
    session = talk(Session(), "one")
    session.set_resize_handlers("mine", lambda f, c, m, s: ([*f, note, note], [note, note], m))
    session.resize("mine")
    assert [m.seq for m in session.full_chat_history] == [1, 2, 3]
    assert [m.seq for m in session.messages] == [2, 3]
    assert not any(m.marks().get("window_only") for m in session.messages)


def test_only_a_custom_handler_may_shorten_the_full_history() -> None:
    """U1.4; what was taken back stays in the archive (answer 2)."""
    session = talk(Session(), "one", "two", "three")
    session.rewind(2)
    session.set_resize_handlers("mine", lambda f, c, m, s: (f[1:], c[1:], m))
    session.resize("mine")
    assert texts(session.full_chat_history) == ["two"]
    assert texts(session.archive) == ["three"]


def test_a_pinned_message_that_a_handler_dropped_is_put_back() -> None:
    """U2.8, answer 5."""
    session = talk(Session(), "one", "two", "three")
    session.pin(1)
    session.set_resize_handlers("mine", lambda f, c, m, s: (f, c[-1:], m))
    assert texts(session.resize("mine")) == ["one", "three"]
    assert session.pins == [1]


def test_none_from_a_handler_leaves_all_as_it_is() -> None:
    """A hint from practice; the decision still counts as a resize (A1.6)."""
    session = talk(Session(), "one", "two").set_resize_handlers("mine", lambda *_: None)
    assert texts(session.resize("mine")) == ["one", "two"]
    assert session._last_resize_turn == 1


def test_the_constructors_table_replaces_the_whole() -> None:
    """A2.8: a type that it lacks is missing."""
    session = talk(Session(resize_handlers={"mine": lambda *_: None}), "one")
    with pytest.raises(KeyError, match="lite"):
        session.resize("lite")
    session.resize("mine")


@pytest.mark.parametrize("kind", ["deep", "mine"])
def test_messages_added_meanwhile_follow_the_result(kind: str) -> None:
    """U4.5; a sync handler runs beside the loop (A7.1)."""
    session = talk(Session(), "one", "two", "three")
    begun, go_on = threading.Event(), threading.Event()

    def slow(*arguments: Any) -> Any:
        begun.set()
        assert go_on.wait(PATIENCE)
        return {"x": 1} if kind == "deep" else (arguments[0], arguments[1][-1:], {"x": 1})

    session.set_memo_update_handler(slow).set_resize_handlers("mine", slow)
    session.use_memo(messages=1)

    async def both() -> None:
        resizing = asyncio.create_task(session.async_resize(kind))
        await asyncio.to_thread(begun.wait, 10)
        session.add_message("user", "late")
        go_on.set()
        await resizing

    asyncio.run(both())
    assert texts(session.messages) == ["three", "late"]
    assert texts(session.full_chat_history) == ["one", "two", "three", "late"]
    assert session.judge_resize(False) is not None, "the late message wakes the triggers"


def test_a_result_for_a_session_that_was_cleared_is_dropped() -> None:
    """U4.4."""
    session = talk(Session(), "one", "two")

    def update(*_: Any) -> Any:
        session.clear()
        session.add_message("user", "new")
        return {"x": 1}

    session.set_memo_update_handler(update).use_memo().resize("deep")
    assert (texts(session.messages), session.memo) == (["new"], {})


def test_a_memo_that_was_set_meanwhile_wins() -> None:
    """U4.1: what its reader would have covered stays pending."""
    session = talk(Session(), "one", "two", "three")

    def update(*_: Any) -> Any:
        session.change(memo={"mine": 1})
        return {"x": 1}

    session.set_memo_update_handler(update).use_memo(messages=1).resize("deep")
    assert session.memo["mine"] == 1
    assert "x" not in session.memo
    assert [m.seq for m in session.pending()] == [1, 2]
    assert session._memo_cursor == 0


# --- undo -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["lite", "mine"])
def test_undo_brings_back_window_memo_and_summary(kind: str) -> None:
    """One level, with what was added since, and what was pending is pending again (U4.1)."""
    session = talk(Session(), "zero", "one", "two", "three")
    session.set_limit(messages=3).resize("lite")
    session.change(memo={"m": 1}, summary="before")
    session.set_resize_handlers("mine", lambda f, c, m, s: (f, c[-1:], {"m": 2}))
    session.set_limit(messages=1).resize(kind)
    session.change(summary="after")
    session.add_message("user", "four")
    resize.undo(session)
    assert texts(session.messages) == ["one", "two", "three", "four"]
    assert (session.memo, session.summary) == ({"m": 1}, "before")
    assert [m.seq for m in session.pending()] == [1]
    with pytest.raises(Exception, match="no resize to undo"):
        resize.undo(session)


@pytest.mark.parametrize("kind", ["lite", "deep"])
def test_a_resize_that_changes_nothing_is_not_the_one_to_undo(kind: str) -> None:
    """Such as one that a turn makes by itself, of which nobody hears."""
    session = talk(Session(), "one", "two", "three")
    session.set_limit(messages=2).resize("lite")
    session.resize(kind)
    resize.undo(session)
    assert texts(session.messages) == ["one", "two", "three"]


def test_undo_brings_back_nothing_that_was_taken_back() -> None:
    """U1.4."""
    session = talk(Session(), "one", "two", "three")
    session.set_limit(messages=2).resize("lite")
    session.rewind(2)
    resize.undo(session)
    assert texts(session.messages) == ["one", "two"]


def test_max_history_holds_for_undo_and_handlers() -> None:
    """M3.4: a window that a reload would prune is not left behind."""
    session = talk(Session(), "one", "two", "three", "four")
    session.set_limit(messages=1).resize("lite")
    session.change(max_history=2)
    resize.undo(session)
    assert texts(session.messages) == ["three", "four"]
    session.set_resize_handlers("mine", lambda f, c, m, s: (f, f, m)).resize("mine")
    assert texts(session.messages) == ["three", "four"]


# --- the model and its input ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "memo"),
    [
        ({"memo": {"a": 1}}, {"a": 1}),
        ({"a": 1}, {"a": 1}),
        ('{"memo": {"a": 1}}', {"a": 1}),
        ('Here it is:\n```json\n{"a": 1}\n```', {"a": 1}),
        ({"memo": "text", "b": 2}, {"memo": "text", "b": 2}),
        ("no JSON", None),
        ("[1]", None),
        ("", None),
        (None, None),
    ],
)
def test_the_memo_in_a_reply(reply: Any, memo: Any) -> None:
    """A5.3."""
    assert memo_in(reply) == memo


class Chat:
    """A provider in the form of N3.2."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    async def chat(self, **given: Any) -> str:
        self.calls.append(given)
        return '{"memo": {"a": 1}}'


def test_the_model_gets_memo_messages_attachments_and_instructions() -> None:
    """A5.2, A5.5, A5.6, A2.4."""
    chat = Chat()
    session = Session({"session.memo.model": chat, "session.memo.instruct": ["do", None, 7]})
    session.change(memo={"old": 1, "last_resize": {}})
    payload = "A" * 5_000
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{payload}"}}
    session.add_message("user", [{"type": "text", "text": "look"}, image])
    session.append_message(uses("a")).append_message(result("a"))
    session.use_memo().resize("lite")
    assert session.memo["a"] == 1
    (call,) = chat.calls
    system, user = call["messages"]
    assert (system["content"], call["tools"]) == ("do\n7", None)
    given = json.loads(user["content"])
    assert given.keys() == {"current_memo", "messages", "attachments"}
    assert given["current_memo"] == {"old": 1}
    assert payload not in user["content"]
    named = {"type": "image_url", "ref": "data:image/png;base64", "meta": {}}
    assert given["messages"][0]["content"] == [{"type": "text", "text": "look"}, named]
    assert named in given["attachments"]


@pytest.mark.parametrize("content", ["", "I look", [{"type": "text", "text": "I look"}]])
def test_the_model_reads_tool_uses_in_either_spelling(content: Any) -> None:
    """A5.2, U1.9: `tool_calls` are no less part of what happened."""
    chat = Chat()
    session = Session({"session.memo.model": chat})
    call = {"id": "a", "function": {"name": "glob", "arguments": '{"n": "*.el"}'}}
    session.append_message({"role": "assistant", "content": content, "tool_calls": [call]})
    session.use_memo().resize("lite")
    (message,) = json.loads(chat.calls[0]["messages"][1]["content"])["messages"]
    shown = [part["text"] for part in message["content"]]
    assert shown == ["I look", 'glob {"n": "*.el"}'][not content :]


def test_no_model_and_no_handler_leave_the_memo() -> None:
    """A5.1."""
    session = talk(Session(), "one", "two")
    session.use_memo(messages=1).resize("lite")
    assert session.memo.keys() == {"last_resize"}
    assert [m.seq for m in session.pending()] == [1]


@pytest.mark.parametrize(
    ("part", "summary"),
    [
        ({"type": "text", "text": "x"}, None),
        ({"no": "type"}, None),
        ("text", None),
        (
            {"type": "file", "file": "", "url": "u", "name": "n", "size": 3, "other": 1},
            {"type": "file", "ref": "u", "meta": {"name": "n", "size": 3}},
        ),
        (
            {"type": "audio", "audio": {"id": "i", "duration": 2}},
            {"type": "audio", "ref": "i", "meta": {"duration": 2}},
        ),
        ({"type": "odd", "odd": 5}, {"type": "odd", "ref": None, "meta": {}}),
        (
            {"type": "file", "file": {"file": "f", "data": "A" * 999}, "url": "u"},
            {"type": "file", "ref": "f", "meta": {}},
        ),
        (
            {"type": "file", "file": b"\0" * 999, "path": "", "id": 7, "name": {"x": 1}},
            {"type": "file", "ref": 7, "meta": {}},
        ),
        (
            {
                "type": "image",
                "url": "",
                "name": "",
                "image": {"url": "n", "name": "m", "width": 0},
            },
            {"type": "image", "ref": "n", "meta": {"name": "", "width": 0}},
        ),
        (
            {"type": "a", "url": "data:image/png;base64," + "A" * 999, "name": "n" * 999},
            {"type": "a", "ref": "data:image/png;base64", "meta": {"name": "n" * 200}},
        ),
    ],
)
def test_attachments_are_named(part: Any, summary: Any) -> None:
    """A6.1, A6.2, A6.3, A6.4."""
    message = {"role": "user", "content": [part]}
    assert attachment_summaries(message) == ([] if summary is None else [summary])
    assert attachment_summaries({"role": "user", "content": "text"}) == []


@pytest.mark.parametrize("is_async", [True, False])
def test_attachments_may_be_named_by_the_caller(is_async: bool) -> None:
    """A6.5."""
    calls: Calls = []

    async def named(message: Any) -> Any:
        return [{"mine": message["content"]}]

    session = Session(
        attachment_summary_handler=named if is_async else lambda m: [{"mine": m["content"]}],
        memo_update_handler=recording(calls, lambda *_: {}),
    )
    talk(session.use_memo(), "one").resize("lite")
    assert calls[0][2] == [{"mine": "one"}]
