"""The chat session of part A: its data, its defaults, and what holds for every resize of it."""

import subprocess
import sys
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.session.histories import any_history
from tests.sizes import sized
from tiro import Message, Session
from tiro.session.cut import legal_cut
from tiro.session.tokens import message_length, text_length

EXAMPLES = sized(fast=60, normal=150, long=3000)


def talk(*contents: str, **options: Any) -> Session:
    session = Session(**options)
    for number, content in enumerate(contents):
        session.add_message("user" if number % 2 == 0 else "assistant", content)
    return session


def texts(messages: list[Message]) -> list[Any]:
    return [message.content for message in messages]


# --- data -----------------------------------------------------------------------------------


def test_a_new_session_is_empty_and_has_an_id_of_its_own() -> None:
    """A1.1, A1.4 to A1.7."""
    one, two = Session(), Session()
    assert len(one.id or "") == 32
    assert set(one.id or "") <= set("0123456789abcdef")
    assert one.id != two.id
    assert (one.memo, one.full_chat_history, one.current_chat_history) == ({}, [], [])
    assert (one._turns, one._last_resize_turn, one._memo_cursor) == (0, 0, 0)
    one.memo["k"] = 1
    assert two.memo == {}


def test_only_assistant_messages_are_turns() -> None:
    """A1.5: none is counted twice, and none is taken away by a resize."""
    session = Session().set_limit(messages=1)
    for role in ("user", "assistant", "tool", "system", "developer", "critic", "assistant"):
        session.add_message(role, "x")
    session.resize("lite")
    assert session._turns == 2


@pytest.mark.parametrize("role", ["user", "assistant", "system", "developer", "tool", "critic", ""])
@pytest.mark.parametrize(
    "content", ["text", "", [], ["a", {"text": "b"}], [{"type": "odd", "v": 1}]]
)
def test_a_message_keeps_role_content_and_every_further_field(role: str, content: Any) -> None:
    """A1.8: a dict and a message object alike."""
    row = {"role": role, "content": content, "name": "n", "mood": {"x": [1]}, "none": None}
    message = Message.from_dict({**row, "tool_calls": [{"id": "a"}], "tool_call_id": "t"})
    session = Session().append_message(row).append_message(message)
    first, second = (m.to_dict() for m in session.current_chat_history)
    assert {key: first[key] for key in row} == row
    assert {key: second[key] for key in message.to_dict()} == message.to_dict()
    assert session.full_chat_history == session.current_chat_history


@pytest.mark.parametrize("row", [{"role": "user"}, {"content": "x"}, {}])
def test_a_message_without_role_or_content_is_a_key_error(row: dict[str, Any]) -> None:
    """A1.9: and changes nothing, the counter of seqs included."""
    session = talk("one")
    before = session.snapshot()
    with pytest.raises(KeyError):
        session.append_message(row)
    assert session.snapshot() == before


def test_the_two_histories_are_independent() -> None:
    """A1.2, A1.3, A1.10: of each other, of what was given, and of what is read."""
    parts: list[Any] = [{"type": "text", "text": "x"}]
    row: dict[str, Any] = {"role": "user", "content": parts, "mood": []}
    session = Session().append_message(row).add_tool_result("a", parts)
    parts.append("later")
    row["mood"].append("later")
    for history in (session.full_chat_history, session.current_chat_history):
        history[0].content.append("read")  # type: ignore[union-attr]
        history.clear()
    assert session.full_chat_history == session.current_chat_history
    assert [m.to_dict().get("mood") for m in session.messages] == [[], None]
    assert session.messages[0].content == [{"type": "text", "text": "x"}]
    assert session.messages[1].content["content"] == [{"type": "text", "text": "x"}]  # type: ignore[call-overload,index]


def test_the_session_needs_no_agent() -> None:
    """A1.11, A0.1: nothing above it is loaded for a whole life of one."""
    code = """
import sys
from tiro import Session
session = Session().use_memo(messages=1).add_chat_history([{"role": "user", "content": "x"}] * 3)
session.load_json(session.to_json()).resize("deep")
print([name for name in sys.modules if name.startswith("tiro.")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "tiro.session.session" in done.stdout
    for part in ("agents", "models", "tools", "stores", "assistant", "protocol"):
        assert f"tiro.{part}" not in done.stdout


@pytest.mark.parametrize("memo", [None, 7, "text", [1], True])
def test_a_memo_that_is_no_dict_counts_as_empty(memo: Any) -> None:
    """A1.4, A10.3: for the default handlers, which then write a dict."""
    session = talk("one")
    session.change(memo=memo)
    session.set_memo_update_handler(lambda old, *_: {"was": old})
    session.use_memo().resize("lite")
    assert session.memo["was"] == {}


def test_the_schema_of_a_memo_is_nobodys_business() -> None:
    """A10.3."""
    odd = {"": None, "a": [{"b": [1, {"c": "é"}]}], "memo": "memo"}
    session = talk("one", memo_update_handler=lambda *_: odd)
    session.use_memo().resize("lite")
    assert {key: session.memo[key] for key in odd} == odd


# --- settings -------------------------------------------------------------------------------


def test_the_defaults() -> None:
    """A2.1, A2.2, A2.3, A2.4, A2.5, A2.6, A2.7, U8.1."""
    settings = Session().settings
    assert settings.integer("session.resize.every_n_turns") == 8
    assert settings.limit("chars") == settings["session.resize.max_messages_text_length"] == 12_000
    assert settings.limit("messages") is settings["session.resize.max_keep_messages_count"] is None
    assert len(settings["session.memo.instruct"]) == len(settings.instructions()) == 4
    assert settings["session.memo.enabled"] is None
    assert settings["session.mode"] == "lite"
    assert not settings["session.limit"]


def test_the_default_limit_of_characters_is_reached_at_12000() -> None:
    """A2.2, A3.6: characters, not tokens: one below it stays."""
    role = len("user") + 1
    assert talk("x" * (11_999 - role)).judge_resize() is None
    decision = talk("é" * (12_000 - role)).judge_resize()
    assert decision is not None
    assert (decision["type"], decision["reason"]) == ("deep", "max_messages_text_length")


def test_no_number_of_messages_is_too_many_by_default() -> None:
    """A2.3: not even those of a single turn; a number that is set is kept."""
    session = talk("?")
    for _ in range(700):
        session.add_message("tool", "ok")
    assert session.judge_resize() is None
    decision = session.set_settings("session.resize.max_keep_messages_count", 700).judge_resize()
    assert decision is not None
    assert (decision["type"], decision["reason"]) == ("lite", "max_keep_messages_count")
    assert len(session.resize()) == 700


def test_the_mode_decides_about_the_memo_and_is_lite_by_default() -> None:
    """A2.6, A5.1: memo distils, lite only shortens; no third word is a mode."""
    written = talk("one", memo_update_handler=lambda *_: {"k": 1})
    written.resize("lite")
    assert "k" not in written.memo
    written.set_settings("session.mode", "memo").add_message("user", "two")
    written.resize("lite")
    assert written.memo["k"] == 1
    with pytest.raises(ValueError, match="mode"):
        written.configure(mode="full")


@pytest.mark.parametrize(
    ("mode", "explicit", "expected"),
    [("lite", None, False), ("memo", None, True), ("lite", True, True), ("memo", False, False)],
)
def test_the_memo_follows_the_mode_unless_told(mode: str, explicit: Any, expected: bool) -> None:
    """A2.5, A2.10: in whatever order they were set."""
    for keys in (["mode", "memo.enabled"], ["memo.enabled", "mode"]):
        session = Session()
        for key in keys:
            session.set_settings(f"session.{key}", mode if key == "mode" else explicit)
        assert session.settings.memo_is_enabled() is expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [("do", ["do"]), (("a", None, 7), ["a", "7"]), ([None, 1.5], ["1.5"]), ([], [])],
)
def test_the_instructions_become_a_list_of_texts(given: Any, expected: list[str]) -> None:
    """A2.4."""
    session = Session().set_settings("session.memo.instruct", given)
    assert session.settings.instructions() == expected


@pytest.mark.parametrize("key", ["max_current_chars", "keep_last_messages"])
def test_legacy_keys_have_no_effect(key: str) -> None:
    """A2.11."""
    session = talk("one", "two", "three").set_settings(f"session.resize.{key}", 1)
    assert session.judge_resize() is None
    assert len(session.resize(True)) == 3


SETTERS: dict[str, Callable[[Session], Any]] = {
    "append_message": lambda s: s.append_message({"role": "user", "content": "x"}),
    "configure": lambda s: s.configure(),
    "set_limit": lambda s: s.set_limit(chars=1, messages=1),
    "use_lite": lambda s: s.use_lite(chars=1, messages=1, every_n_turns=1),
    "use_memo": lambda s: s.use_memo(chars=1, messages=1, every_n_turns=1),
    "set_settings": lambda s: s.set_settings("k", 1),
    "set_policy_handler": lambda s: s.set_policy_handler(None),
    "set_resize_handlers": lambda s: s.set_resize_handlers("x", lambda *_: None),
    "set_attachment_summary_handler": lambda s: s.set_attachment_summary_handler(None),
    "set_memo_update_handler": lambda s: s.set_memo_update_handler(None),
    "set_chat_history": lambda s: s.set_chat_history([]),
    "add_chat_history": lambda s: s.add_chat_history([]),
    "reset_chat_history": lambda s: s.reset_chat_history(),
    "load_json": lambda s: s.load_json("{}"),
    "load_yaml": lambda s: s.load_yaml("{}"),
}


@pytest.mark.parametrize("name", SETTERS)
def test_setters_return_the_session(name: str) -> None:
    """A1.9, A2.13, A2.14, A7.3, A8.1."""
    session = Session()
    assert SETTERS[name](session) is session


def test_shortcuts_set_what_is_given_and_leave_the_rest() -> None:
    """A2.13, A2.14: limits merge."""
    session = Session().use_memo(chars=50, every_n_turns=3).set_limit(messages=4).configure()
    settings = session.settings
    assert (settings.limit("chars"), settings.limit("messages")) == (50, 4)
    assert settings.integer("session.resize.every_n_turns") == 3
    assert settings["session.mode"] == "memo"
    session.use_lite(chars=60)
    assert (session.settings.limit("chars"), session.settings.limit("messages")) == (60, 4)
    assert session.settings["session.mode"] == "lite"


# --- resizes --------------------------------------------------------------------------------


def test_without_a_decision_the_window_comes_back_as_it_is() -> None:
    """A4.1."""
    session = talk("one", "two")
    before = session.snapshot()
    assert session.resize() == session.current_chat_history
    assert texts(session.resize()) == ["one", "two"]
    assert session.snapshot() == before


def filled(history: list[Message], **limits: Any) -> Session:
    session = Session().configure(limit=limits)
    for message in history:
        session.append_message(message)
    return session


LIMITS = st.none() | st.integers(-1, 120)


@given(any_history, LIMITS, st.none() | st.integers(-1, 16), st.sampled_from(["lite", "deep"]))
@settings(max_examples=EXAMPLES, deadline=None)
def test_pruning_keeps_the_longest_end_within_the_limits(
    history: list[Message], chars: int | None, count: int | None, kind: str
) -> None:
    """A4.10 to A4.12, A4.14, U2: said once more, the slow way; the full history stays."""
    session = filled(history, chars=chars, messages=count)
    before, full = session.messages, session.full_chat_history
    start = max(0, len(before) - count) if count is not None and count > 0 else 0
    while chars is not None and chars > 0 and start < len(before) - 1:
        if text_length(before[start:]) <= chars:
            break
        start += 1
    expected = before[legal_cut(before, start) :]
    assert texts(session.resize(kind)) == texts(expected)
    assert texts(session.full_chat_history) == texts(full)
    assert [m.seq for m in session.archive] == [
        m.seq for m in before[: len(before) - len(expected)]
    ]
    assert bool(session.messages) == bool(before), "the newest message stays"


@given(any_history, LIMITS)
@settings(max_examples=EXAMPLES, deadline=None)
def test_chunks_are_greedy_whole_and_in_order(history: list[Message], limit: int | None) -> None:
    """A4.8, A4.9: all of the history once; none could have taken the next message too."""
    chunks: list[list[Message]] = []

    def update(memo: Any, messages: list[Message], *_: Any) -> dict[str, Any]:
        chunks.append(messages)
        return {}

    session = filled(history, chars=limit).set_memo_update_handler(update)
    session.use_memo().resize("deep")
    assert [m.seq for chunk in chunks for m in chunk] == [m.seq for m in session.full_chat_history]
    assert all(chunks)
    if limit is None or limit <= 0:
        assert len(chunks) <= 1
        return
    for chunk, following in zip(chunks, [*chunks[1:], []], strict=False):
        assert len(chunk) == 1 or text_length(chunk) <= limit
        if following:
            assert text_length(chunk) + message_length(following[0]) > limit


@pytest.mark.parametrize("kind", ["lite", "deep"])
def test_a_memo_survives_where_nothing_is_pruned(kind: str) -> None:
    """A4.14, A1.6, A1.7."""
    session = talk("one", "two", memo_update_handler=lambda memo, *_: {**memo, "k": 1})
    session.use_memo().resize(kind)
    assert (session.memo["k"], session.archive, session.summary) == (1, [], "")
    assert (session._last_resize_turn, session._memo_cursor) == (1, 2)
    assert session.memo["last_resize"] == {"type": kind, "turn": 1, "reason": "force"}


@pytest.mark.parametrize("kind", ["lite", "deep"])
def test_a_bare_type_has_the_reason_of_its_handler(kind: str) -> None:
    """A4.4, A4.7 (e), A4.8 (e)."""
    session = talk("one", "two").set_policy_handler(lambda *_: kind)
    session.resize()
    assert session.memo["last_resize"] == {"type": kind, "turn": 1, "reason": f"{kind}_resize"}


def test_the_policy_rests_after_a_resize_until_its_turns_are_over() -> None:
    """A1.6, A3.6 (3)."""
    session = talk(*"abcd").configure(every_n_turns=2)
    assert (session.judge_resize() or {})["reason"] == "every_n_turns"
    session.resize()
    session.add_message("assistant", "x")
    assert session.judge_resize() is None
    session.add_message("assistant", "y")
    assert session.judge_resize() is not None


@pytest.mark.parametrize(
    ("content", "length"),
    [
        ("", 0),
        ("é漢🙂", 3),
        ([], 0),
        ([7, None, True], 1 + 4 + 4),
        ([{"text": ""}, {"text": 5}], len('{"text": 5}')),
        ([{"type": "text", "text": "abc"}, "de"], 5),
        ([{"é": date(2025, 2, 21)}], len('{"é": "2025-02-21"}')),
    ],
)
def test_a_length_is_a_number_of_characters(content: Any, length: int) -> None:
    """A3.7, A10.2: no tokens, no bytes, no escapes."""
    session = Session().append_message({"role": "tool", "content": content})
    assert session.text_length() == len("tool") + 1 + length
