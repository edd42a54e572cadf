"""Entries as values (G2, G3): what they hold, how they are read, and their JSON."""

import json
import uuid
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiro import Entry, InvalidMessageError
from tiro.session.entries import (
    MessageContent,
    ToolCallContent,
    ToolResultContent,
    entries_from_json,
    entries_to_json,
    get_message_content,
    get_tool_call_content,
    get_tool_result_content,
    new_message_entry,
    new_tool_call_entry,
    new_tool_result_entry,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, values, max_size=3)
contents = st.one_of(
    st.tuples(st.just("message"), st.builds(MessageContent, texts, texts)),
    st.tuples(st.just("tool_call"), st.builds(ToolCallContent, texts, objects | values)),
    st.tuples(
        st.just("tool_result"), st.builds(ToolResultContent, texts, st.booleans(), values, texts)
    ),
    st.tuples(st.just("thinking"), values | st.builds(lambda text: {"text": text}, texts)),
    st.tuples(st.sampled_from(["message", "tool_call", "tool_result"]), values),
)
times = st.datetimes(
    datetime(1990, 1, 1),  # noqa: DTZ001  # the strategy wants it plain
    datetime(2090, 1, 1),  # noqa: DTZ001
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))]),
)
any_entry = st.builds(
    lambda id, shape, time, metadata: Entry(
        id=str(id), type=shape[0], timestamp=time, content=shape[1], metadata=metadata
    ),
    st.uuids(),
    contents,
    times,
    objects,
)


def test_the_constructors_fill_an_entry() -> None:
    """G2.1, G2.3 to G2.5, G2.7."""
    before = datetime.now(UTC)
    entries = [
        new_message_entry("user", "hello"),
        new_tool_call_entry("glob", {"pattern": "*.el"}),
        new_tool_result_entry("glob", ["a.el"], None),
        new_tool_result_entry("glob", ["half"], OSError("disk is gone")),
    ]
    after = datetime.now(UTC)
    assert [entry.content for entry in entries] == [
        {"role": "user", "text": "hello"},
        {"tool": "glob", "parameters": {"pattern": "*.el"}},
        {"tool": "glob", "success": True, "result": ["a.el"], "error": ""},
        {"tool": "glob", "success": False, "result": ["half"], "error": "disk is gone"},
    ]
    assert [e.type for e in entries] == ["message", "tool_call", "tool_result", "tool_result"]
    assert all(str(uuid.UUID(entry.id)) == entry.id for entry in entries)
    assert len({entry.id for entry in entries}) == 4
    assert all(before <= entry.timestamp <= after for entry in entries)
    assert all(entry.metadata == {} for entry in entries)
    entries[0].metadata["mine"] = 1
    assert entries[1].metadata == {}, "each has its own"


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_a_message_entry_takes_three_roles(role: str) -> None:
    """G2.3."""
    assert new_message_entry(role, "x").content["role"] == role
    with pytest.raises(InvalidMessageError):
        new_message_entry("tool", "x")


def test_content_is_read_by_its_type() -> None:
    """G2.6: the wrong type gives empty content and False; fields read like attributes and keys."""
    message = new_message_entry("user", "hello")
    call, result = new_tool_call_entry("glob", {"n": 1}), new_tool_result_entry("glob", None, "no")
    said, ok = get_message_content(message)
    assert (said.role, said["text"], ok) == ("user", "hello", True)
    use, ok = get_tool_call_content(call)
    assert (use.tool, dict(use), ok) == ("glob", {"tool": "glob", "parameters": {"n": 1}}, True)
    answer, ok = get_tool_result_content(result)
    assert (answer.success, answer.get("error"), answer.get("x", 7), ok) == (False, "no", 7, True)
    assert get_message_content(call) == (MessageContent("", ""), False)
    assert get_tool_call_content(result) == (ToolCallContent("", {}), False)
    assert get_tool_result_content(message) == (ToolResultContent("", False, None, ""), False)
    with pytest.raises(KeyError):
        said["color"]
    assert said != MessageContent("user", "bye")
    assert said != call.content


def test_the_json_of_an_entry_has_five_keys() -> None:
    """G3.1: the time is RFC 3339, `error` is there even when empty."""
    time = datetime(2026, 11, 28, 9, 30, 0, 123456, tzinfo=UTC)
    entry = Entry(
        id="1", type="tool_result", timestamp=time, content={"tool": "t", "success": True}
    )
    assert json.loads(entry.to_json()) == {
        "id": "1",
        "type": "tool_result",
        "timestamp": "2026-11-28T09:30:00.123456Z",
        "content": {"tool": "t", "success": True, "result": None, "error": ""},
        "metadata": {},
    }


def test_what_json_does_not_know_is_written_as_its_text() -> None:
    """G2.5, G3.1."""
    entry = new_tool_result_entry("t", {"at": uuid.UUID(int=1), "half": "\ud83d"})
    again = Entry.from_json(entry.to_json())
    assert again.content["result"] == {"at": str(uuid.UUID(int=1)), "half": "\ufffd"}


@given(any_entry)
def test_an_entry_is_equal_after_its_json(entry: Entry) -> None:
    """G3.3, G2.2: whatever it holds, and the extractors go on working."""
    again = Entry.from_json(entry.to_json())
    assert again == entry
    assert type(again.content) is type(entry.content)
    for read in (get_message_content, get_tool_call_content, get_tool_result_content):
        assert read(again) == read(entry)


@given(st.lists(any_entry, max_size=4))
def test_a_list_is_an_array_in_its_order(entries: list[Entry]) -> None:
    """G3.2."""
    text = entries_to_json(entries)
    assert [row["id"] for row in json.loads(text)] == [entry.id for entry in entries]
    assert entries_from_json(text) == entries


@pytest.mark.parametrize("metadata", ['"metadata": null,', ""])
def test_fields_that_are_unknown_or_missing_are_no_error(metadata: str) -> None:
    """G3.4."""
    entry = Entry.from_json(
        '{"id": "1", "type": "message", "timestamp": "2024-05-01T10:00:00.123456789+02:00",'
        f' {metadata} "content": {{"role": "user", "text": "x", "lang": "en"}}, "more": [1]}}'
    )
    assert entry.metadata == {}
    assert entry.timestamp == datetime(2024, 5, 1, 8, 0, 0, 123456, tzinfo=UTC)
    assert get_message_content(entry) == (MessageContent("user", "x"), True)
    assert Entry(type="thinking", content=None, metadata=None).metadata == {}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[]", TypeError),
        ('"x"', TypeError),
        ("{", ValueError),
        ("{}", ValueError),
        ('{"id": "1", "type": "message", "timestamp": "noon"}', ValueError),
        ('{"id": "1", "type": "picture", "timestamp": "2024-05-01T10:00:00Z"}', ValueError),
    ],
)
def test_what_is_no_entry_is_refused(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        Entry.from_json(text)
    with pytest.raises((TypeError, ValueError)):
        entries_from_json(text if text == "{}" else f"[{text}]")
