"""The provider view (U3): whatever the history is, a provider accepts the request."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.session.histories import any_history, numbered, result, says, user, uses
from tiro import Message, provider_view
from tiro.session.json_text import encode
from tiro.session.meter import Meter
from tiro.session.provider_view import (
    INTERRUPTED,
    PLACEHOLDER,
    put_in_front,
    standing_instructions,
    viewed,
)


def check_contract(view: list[Message]) -> None:
    """What every provider demands of a request's messages."""
    if view:
        assert view[0].role == "user"
    seen: set[str] = set()
    index = 0
    while index < len(view):
        message = view[index]
        assert message.role in ("user", "assistant")
        assert isinstance(message.content, list)
        assert message.content
        ids = []
        for block in message.content:
            if block["type"] == "text":
                assert block["text"].strip()
            if block["type"] == "tool_use":
                ids.append(block["id"])
        assert not seen & set(ids)
        assert len(ids) == len(set(ids))
        seen |= set(ids)
        answers = view[index + 1 : index + 1 + len(ids)]
        assert [a.role for a in answers] == ["tool"] * len(ids)
        assert [a["content"]["tool_use_id"] for a in answers] == ids
        index += 1 + len(ids)
    encode([m.content for m in view]).decode("utf-8", "strict")
    "".join(str(m.content) for m in view).encode("utf-8", "strict")


def texts(view: list[Message]) -> list[Any]:
    """Role and content, where a single text stands for its block."""
    rows = []
    for message in view:
        content: Any = message.content
        if isinstance(content, list) and len(content) == 1 and content[0]["type"] == "text":
            content = content[0]["text"]
        rows.append((message.role, content))
    return rows


@given(any_history, any_history, st.booleans(), st.booleans())
def test_view_of_any_history_keeps_the_contract(
    window: list[Message], archive: list[Message], merge: bool, thinking: bool
) -> None:
    """U3.2 to U3.8."""
    view = provider_view(window, archive, merge=merge, thinking=thinking)
    check_contract(view)
    if any(m.role == "user" for m in window):
        assert view


@given(any_history, any_history, st.booleans(), st.booleans())
def test_view_changes_nothing_when_applied_to_its_own_output(
    window: list[Message], archive: list[Message], merge: bool, thinking: bool
) -> None:
    """U3.1: idempotent, deterministic, and the stored history stays as it is."""
    before = encode([m.to_dict() for m in window])
    once = provider_view(window, archive, merge=merge, thinking=thinking)
    assert provider_view(once, archive, merge=merge, thinking=thinking) == once
    assert provider_view(window, archive, merge=merge, thinking=thinking) == once
    assert encode([m.to_dict() for m in window]) == before


@given(any_history)
def test_view_loses_no_text_of_the_window(window: list[Message]) -> None:
    """Open point 8: no text of the kept window is lost."""
    shown = encode([m.content for m in provider_view(window)]).decode()
    for message in window:
        if message.role in ("user", "assistant") and isinstance(message.content, str):
            clean = message.content.replace("\ud83d", "\ufffd")
            assert not clean.strip() or encode(clean).decode()[1:-1] in shown


def test_an_unanswered_tool_use_gets_one_result() -> None:
    """U3.4."""
    view = provider_view(numbered([user(), uses("a", "b"), result("a"), user("go on")]))
    assert [m.role for m in view] == ["user", "assistant", "tool", "tool", "user"]
    assert view[2]["content"]["content"] == "found"
    assert view[3]["content"]["content"] == INTERRUPTED


def test_a_late_result_is_moved_and_a_second_one_dropped() -> None:
    """U3.3."""
    window = numbered([user(), uses("a"), user("?"), result("a", "1st"), result("a", "2nd")])
    view = provider_view(window)
    assert [m.role for m in view] == ["user", "assistant", "tool", "user"]
    assert view[2]["content"]["content"] == "1st"


def test_an_orphan_result_goes_alone() -> None:
    """U3.5: only it, not the history around it."""
    view = provider_view(numbered([user("one"), says("two"), result("x"), user("three")]))
    assert texts(view) == [("user", "one"), ("assistant", "two"), ("user", "three")]


def test_repeated_ids_become_different_ones() -> None:
    """U3.4: the id is made from seq and block position."""
    window = numbered([user(), uses("a"), result("a", "1"), uses("a"), result("a", "2")])
    view = provider_view(window)
    assert [m["content"][0]["id"] for m in view if m.role == "assistant"] == ["a", "call_4_0"]
    assert [m["content"]["content"] for m in view if m.role == "tool"] == ["1", "2"]


def test_a_window_without_its_prompt_gets_the_archived_one() -> None:
    """U3.2: the nearest earlier user message that was not taken back."""
    archive = numbered([user("first"), says(), user("second"), user("mistake")])
    archive[3] = archive[3].marked(taken_back=True)
    assert texts(provider_view([says("an answer")], archive)) == [
        ("user", "second"),
        ("assistant", "an answer"),
    ]
    assert texts(provider_view([says("an answer")])) == [
        ("user", PLACEHOLDER),
        ("assistant", "an answer"),
    ]


def test_what_is_put_in_front_is_earlier_than_what_follows() -> None:
    """U1.2: a pinned answer is not sent after the prompt of a later turn."""
    rows = numbered([user("first"), says("pinned"), user("second"), says(), user("third")])
    window, archive = [rows[1], rows[4]], [rows[0], rows[2], rows[3]]
    assert texts(provider_view(window, archive)) == [
        ("user", "first"),
        ("assistant", "pinned"),
        ("user", "third"),
    ]
    assert put_in_front(window, reversed(archive)) == rows[0]
    assert put_in_front(rows[4:], reversed(rows[:4])) is None
    assert put_in_front([], archive) is None


def test_blank_text_is_dropped_and_the_newest_user_message_stays() -> None:
    """U3.6."""
    assert texts(provider_view([user("  "), says("")])) == [("user", PLACEHOLDER)]
    assert texts(provider_view([user("a"), says(" \n"), user("b")])) == [
        ("user", "a"),
        ("user", "b"),
    ]


def test_merging_joins_neighbours_of_one_role() -> None:
    """U3.7."""
    view = provider_view([user("a"), user("b"), says("c"), says("d")], merge=True)
    assert [m.role for m in view] == ["user", "assistant"]
    assert [b["text"] for b in view[0]["content"]] == ["a", "b"]


def test_system_messages_go_to_the_system_prompt() -> None:
    """U3.9."""
    history = [Message("system", "be kind"), user("hi"), Message("developer", "be brief")]
    assert texts(provider_view(history)) == [("user", "hi")]
    assert standing_instructions(history) == ["be kind", "be brief"]
    assert texts(provider_view([user("hi"), Message("critic", "hm")])) == [
        ("user", "hi"),
        ("user", "[critic] hm"),
    ]


def test_both_spellings_of_tool_data_are_seen() -> None:
    """U1.9."""
    call = {"id": "k", "type": "function", "function": {"name": "glob", "arguments": '{"p": 1}'}}
    view = provider_view(
        [
            user(),
            Message("assistant", "", tool_calls=[call]),
            Message("tool", "found", tool_call_id="k"),
        ]
    )
    use = {"type": "tool_use", "id": "k", "name": "glob", "input": {"p": 1}}
    assert view[1].content == [use]
    assert view[2].content == {"type": "tool_result", "tool_use_id": "k", "content": "found"}


def test_thinking_is_sent_only_on_demand_and_as_it_came() -> None:
    """U3.7."""
    block = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    window = [user(), Message("assistant", [block, {"type": "text", "text": "x"}])]
    assert provider_view(window)[1].content == [{"type": "text", "text": "x"}]
    assert provider_view(window, thinking=True)[1]["content"][0] == block


@pytest.mark.parametrize("depth", [150, 300, 490, 900])
def test_a_deep_tool_input_is_sent_or_left_out_but_ends_no_session(depth: int) -> None:
    """U3.1: what a model or a file nested too deeply makes no later request impossible."""
    deep: Any = "x"
    for _ in range(depth):
        deep = [deep]
    block = {"type": "tool_use", "id": "a", "name": "glob", "input": {"pattern": deep}}
    answer = {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "t", "x": deep}]}
    window = numbered([user(), Message("assistant", [block]), Message("tool", answer)])
    view = provider_view(window)
    check_contract(view)
    assert provider_view(view) == view
    assert Meter().measure(window).tokens > 0
    assert (view[1]["content"][0]["input"] == {"pattern": deep}) == (depth <= 200)


def test_a_number_that_servers_do_not_read_is_replaced() -> None:
    """U3.8: those in Python refuse more than 4,300 digits, with each request that holds them."""
    block = {"type": "tool_use", "id": "a", "name": "glob", "input": {"x": [10**4400, 10**30, 1]}}
    window = [user(), Message("assistant", [block]), result("a")]
    sent, kept, one = provider_view(window)[1]["content"][0]["input"]["x"]
    assert (type(sent), kept, one) == (str, 10**30, 1)
    assert repairs(*window) == [(2, "unsendable")]


def repairs(*messages: Message, archive: list[Message] | None = None, **given: bool) -> list[Any]:
    """The repairs of a window, as (seq, rule)."""
    made = viewed(numbered(list(messages)), archive or [], **given)
    return [(repair.seq, repair.rule) for repair in made.repairs]


def blocks(*given: dict[str, Any], role: str = "assistant") -> Message:
    return Message(role, list(given))


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
WORD = {"type": "text", "text": "word"}
BLANK = {"type": "text", "text": " "}
ODD = {"type": "odd", "x": 1}


def test_a_sound_history_is_not_repaired() -> None:
    made = viewed(numbered([user(), uses("a", "b"), result("a"), result("b"), says()]))
    assert (made.repairs, made.left) == ([], {})
    assert made.sent == {1, 2, 3, 4, 5}


def test_each_repair_has_the_name_of_its_rule() -> None:
    """U3.2 to U3.9, each rule by its own smallest history."""
    assert repairs(user(), uses("a")) == [(2, "missing_result")]
    assert repairs(user(), uses("a"), user("go on"), result("a")) == [(4, "moved_result")]
    assert repairs(user(), uses("a", "b"), result("b"), result("a")) == [(3, "moved_result")]
    assert repairs(user(), uses("a"), result("a"), uses("a"), result("a")) == [(4, "new_id")]
    assert repairs(user(" "), says()) == [(1, "empty"), (1, "placeholder")]
    assert repairs(says()) == [(1, "placeholder")]
    assert repairs(user(), user(), merge=True) == [(2, "merged")]
    assert repairs(Message("critic", "no")) == [(1, "role_as_text")]
    assert repairs(user("a\ud800b")) == [(1, "unsendable")]
    assert repairs(user(), blocks(WORD, BLANK)) == [(2, "empty")]
    assert repairs(user(), blocks(THOUGHT, WORD)) == [(2, "thinking")]
    assert repairs(user(), blocks(THOUGHT, WORD), thinking=True) == []
    assert repairs(user(), blocks(WORD, ODD, ODD)) == [(2, "unknown_block")]
    earlier = [Message("user", "earlier")]
    assert repairs(says(), archive=earlier) == [(0, "user_in_front")]


@pytest.mark.parametrize(
    ("message", "part"),
    [
        (says(" "), "empty"),
        (Message("assistant", []), "empty"),
        (blocks(THOUGHT), "thinking"),
        (blocks({"type": "redacted_thinking", "data": "x"}), "thinking"),
        (blocks(ODD), "unknown_block"),
        (result("nothing"), "orphan_result"),
    ],
)
def test_a_message_of_which_nothing_is_sent_is_left_out(message: Message, part: str) -> None:
    made = viewed(numbered([user(), message, user("go on")]))
    assert made.left == {2: part}
    assert made.sent == {1, 3}
    assert made.repairs == []


def test_a_second_answer_is_left_out() -> None:
    made = viewed(numbered([user(), uses("a"), result("a"), result("a", "again")]))
    assert made.left == {4: "orphan_result"}


@given(any_history, any_history, st.booleans())
def test_every_message_is_sent_or_left_out_with_a_reason(
    window: list[Message], archive: list[Message], thinking: bool
) -> None:
    rows = numbered(window)
    made = viewed(rows, archive, thinking=thinking)
    told = made.sent | made.left.keys()
    for row in rows:
        if row.role not in ("system", "developer") and not row.marks().get("taken_back"):
            assert row.seq in told
    assert not made.sent & made.left.keys()
    again = viewed(made.messages, archive, thinking=thinking)
    assert (again.repairs, again.left) == ([], {})
