"""Entries and the messages of a session: one history, seen in two ways (G1, U6)."""

import threading
from collections import deque
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.session.histories import any_history, numbered
from tests.session.test_entries import any_entry, objects, texts, values
from tiro import Entry, Message, Session, provider_view
from tiro.session.entries import (
    entries_from_json,
    entries_to_json,
    get_tool_result_content,
    new_message_entry,
    new_tool_call_entry,
    new_tool_result_entry,
)
from tiro.session.entry_view import entries_of, messages_of
from tiro.session.json_text import encode
from tiro.session.messages import tool_results_of, tool_uses_of
from tiro.session.snapshot import read_snapshot

NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)


def reopened(session: Session) -> Session:
    """The session as it comes back from its file."""
    again = Session()
    again.restore(read_snapshot(encode(session.snapshot())))
    return again


def said(session: Session, limit: int = 0) -> list[str]:
    return [entry.content["text"] for entry in session.get_history(limit)]


def at(seconds: int, text: str) -> Entry:
    time = NOON + timedelta(seconds=seconds)
    return Entry(type="message", timestamp=time, content={"role": "user", "text": text})


# --- the session (G1) -----------------------------------------------------------------------


def test_a_session_has_two_times_equal_at_first() -> None:
    """G1.1; and both are the same after its file was read."""
    session = Session()
    assert session.id
    assert session.created_at == session.updated_at
    session.set("k", 1)
    assert session.created_at < session.updated_at
    again = reopened(session)
    assert (again.created_at, again.updated_at) == (session.created_at, session.updated_at)


def test_state_takes_any_value_and_none_is_one() -> None:
    """G1.2: a missing key is no error; a stored None differs from it."""
    session, thing = Session(), object()
    for key, value in (("task.current", {"n": [1]}), ("thing", thing), ("none", None)):
        session.set(key, value)
        assert session.get(key, "default") is value
        assert session.lookup(key) == (value, True)
    session.delete("none")
    session.delete("none")
    assert session.lookup("none") == (None, False)
    assert session.get("none", 5) == 5


def test_every_change_moves_updated_at_and_no_read_does() -> None:
    """G1.3: also a delete of what is missing, also while the clock stands still or goes back."""
    clock = deque([NOON, NOON, NOON - timedelta(hours=1)])
    session = Session(clock=lambda: clock[0] if len(clock) == 1 else clock.popleft())
    times = [session.updated_at]
    for change in (
        lambda: session.set("k", 1),
        lambda: session.delete("k"),
        lambda: session.delete("k"),
        lambda: session.add_entry(new_message_entry("user", "x")),
        lambda: session.add_entry(at(-9, "old")),
    ):
        change()
        session.get("k")
        session.lookup("k")
        session.get_history(0)
        times.append(session.updated_at)
    assert times == sorted(set(times))
    assert len(times) == 6
    assert session.created_at == NOON


def test_only_entries_of_a_known_type_are_taken() -> None:
    """G1.4: and what is refused changes nothing."""
    session = Session()
    before = session.updated_at
    for wrong in ({"type": "message"}, None, "text"):
        with pytest.raises(TypeError):
            session.add_entry(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="picture"):
        session.add_entry(Entry(type="picture", content={}))
    assert (session.get_history(0), session.updated_at) == ([], before)


def test_times_decide_and_the_later_added_wins_a_tie() -> None:
    """G1.5, G1.6, U1.2: newest first by time; prompts go by seq."""
    session = Session()
    for entry in (at(5, "b"), at(9, "d"), at(5, "c"), at(1, "a")):
        session.add_entry(entry)
    assert said(session) == ["d", "c", "b", "a"]
    assert said(session, 2) == ["d", "c"]
    assert said(session, -1) == said(session, 99) == said(session, 4) == ["d", "c", "b", "a"]
    assert [m.content for m in session.messages] == ["b", "d", "c", "a"]
    assert [m.seq for m in session.messages] == [1, 2, 3, 4]


def test_messages_and_entries_that_come_in_turn_keep_their_turns() -> None:
    """G1.6, M1.3: a message's own time has no microseconds, an entry's has."""
    session = Session(clock=lambda: NOON + timedelta(microseconds=900))
    session.add_entry(Entry(
        type="message", timestamp=NOON + timedelta(microseconds=700),
        content={"role": "user", "text": "a"},
    ))  # fmt: skip
    session.add_message("assistant", "b")
    session.add_message("user", "c")
    assert said(session) == ["c", "b", "a"]


def test_what_is_given_and_what_is_read_is_never_shared() -> None:
    """G1.7."""
    parameters: dict[str, Any] = {"deep": [1]}
    entry = new_tool_call_entry("t", parameters)
    session = Session().add_entry(entry)
    entry.metadata["later"] = 1
    parameters["deep"].append(2)
    read = session.get_history(0)[0]
    read.content["parameters"]["deep"].append(3)
    read.metadata["x"] = 1
    session.get_history(0).clear()
    (again,) = session.get_history(0)
    assert (again.content["parameters"], again.metadata) == ({"deep": [1]}, {})


def test_nothing_public_renews_or_ends_a_session() -> None:
    """G1.8."""
    assert not {"touch", "expires_at"} & {*dir(Session())}


def test_the_cap_of_the_history_moves_entries_to_the_archive() -> None:
    """G5.4, answer 16: max_history is that cap; it removes nothing."""
    session = Session(max_history=2)
    for second in range(5):
        session.add_entry(at(second, str(second)))
    assert [m.content for m in session.messages] == ["3", "4"]
    assert said(session) == ["4", "3", "2", "1", "0"]
    assert [entry.metadata for entry in session.get_history(0)] == [{}] * 5


def test_ten_threads_of_entries_and_state_lose_nothing() -> None:
    """G4.12: 10 threads of 100 adds give exactly 1,000 entries; no state write is lost."""
    session = Session()

    def work(name: int) -> None:
        for number in range(100):
            session.add_entry(new_message_entry("user", f"{name}-{number}"))
            session.set(f"{name}-{number}", number)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {*said(session)} == {f"{name}-{number}" for name in range(10) for number in range(100)}
    assert len(session.get_history(0)) == len(session.state) == 1000


# --- entries that were added as such (U6.3) -------------------------------------------------


@given(st.lists(any_entry, max_size=4))
def test_entries_that_were_added_come_back_as_they_were(entries: list[Entry]) -> None:
    """U6.1, U6.3: nothing is added to them, each is one message, and a file keeps them too."""
    session = Session()
    for entry in entries:
        session.add_entry(entry)
    assert len(session.messages) == len(entries)
    newest_first = sorted(entries, key=lambda entry: entry.timestamp)[::-1]
    assert session.get_history(0) == newest_first
    assert reopened(session).get_history(0) == newest_first


def test_a_result_without_a_call_id_answers_the_oldest_open_call_of_its_tool() -> None:
    """U6.3, G5.6: prompts are oldest first and keep call ids."""
    calls = [new_tool_call_entry(tool, {"n": n}) for n, tool in enumerate(["a", "b", "a"])]
    results = [new_tool_result_entry(tool, {"of": tool}) for tool in ("b", "a", "a", "a")]
    named = Entry(type="tool_result", content={"tool": "a"}, metadata={"call_id": "elsewhere"})
    session = Session()
    for entry in (new_message_entry("user", "go"), *calls, *results, named):
        session.add_entry(entry)
    uses = [use for message in session.messages for use in tool_uses_of(message)]
    assert [use.id for use in uses] == [call.id for call in calls]
    answers = [result.tool_use_id for m in session.messages for result in tool_results_of(m)]
    ids = [calls[1].id, calls[0].id, calls[2].id, results[3].id, "elsewhere"]
    assert answers == ids, "the one too many answers nobody"
    view = provider_view(session.messages)
    asked = [use.id for message in view for use in tool_uses_of(message)]
    told = [result.tool_use_id for message in view for result in tool_results_of(message)]
    assert asked == told == [call.id for call in calls]


def test_a_model_reads_the_error_and_what_there_is_beside_it() -> None:
    """G2.5, U6.1."""
    session = Session()
    session.add_entry(new_tool_call_entry("t"))
    session.add_entry(new_tool_result_entry("t", {"half": 1}, "broke off"))
    (result,) = tool_results_of(session.messages[-1])
    assert (result.content, result.is_error) == ('broke off\n{"half":1}', True)


class Uncopyable:
    """What the caller's own code may hand over."""

    def __deepcopy__(self, memo: Any) -> Any:
        raise RuntimeError("not me")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("nor this")

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return "a thing"


def test_a_result_that_cannot_be_copied_is_kept_as_its_text() -> None:
    """G1.4: adding raises for nothing else."""
    session = Session()
    session.add_entry(new_tool_result_entry("t", [Uncopyable(), {"k": (Uncopyable(), 1)}]))
    session.add_entry(new_tool_result_entry("t", frozenset([1])))
    entries = session.get_history(0)
    assert entries[1].content["result"] == ["a thing", {"k": ["a thing", 1]}]
    assert entries[0].content["result"] == frozenset([1])


def test_an_edited_entry_is_what_it_was_edited_to() -> None:
    """U1.2: it is the wording of another moment, so it is no longer the entry that was added."""
    session = Session()
    session.add_entry(Entry(type="message", content={"role": "user", "text": "typo", "x": 1}))
    session.edit_message(1, "right")
    (entry,) = session.get_history(0)
    assert entry.content == {"role": "user", "text": "right"}
    assert entry.metadata["message_seq"] == 1


# --- messages as entries (U6.1, U6.2) -------------------------------------------------------


def test_a_message_yields_an_entry_for_each_block() -> None:
    """U6.2: in block order, with one time; reserved keys say where it stood."""
    session = Session(id="s")
    session.add_message("user", "find", metadata={"mine": 1})
    session.add_message(
        "assistant",
        [
            {"type": "thinking", "thinking": "hm", "signature": "abc"},
            {"type": "text", "text": "looking"},
            {"type": "tool_use", "id": "c1", "name": "glob", "input": {"p": "*"}},
            {"type": "tool_use", "id": "c2", "name": "grep", "input": {}},
            {"type": "image", "source": {"type": "url", "url": "x"}},
        ],
    )
    session.add_tool_result("c2", "no such file", is_error=True)
    session.add_tool_result("c1", [{"type": "text", "text": "a.el"}])
    entries = session.get_history(0)[::-1]
    assert [(entry.type, entry.content) for entry in entries] == [
        ("message", {"role": "user", "text": "find"}),
        ("thinking", {"text": "hm", "signature": "abc"}),
        ("message", {"role": "assistant", "text": "looking"}),
        ("tool_call", {"tool": "glob", "parameters": {"p": "*"}}),
        ("tool_call", {"tool": "grep", "parameters": {}}),
        ("message", {"role": "assistant", "text": "[image]"}),
        ("tool_result",
         {"tool": "grep", "success": False, "result": None, "error": "no such file"}),
        ("tool_result", {
            "tool": "glob", "success": True, "error": "",
            "result": [{"type": "text", "text": "a.el"}],
        }),
    ]  # fmt: skip
    places = [(e.metadata["message_seq"], e.metadata["block"]) for e in entries]
    assert places == [(1, 0), *((2, n) for n in range(5)), (3, 0), (4, 0)]
    calls = [e.metadata.get("call_id") for e in entries]
    assert calls == [None, None, None, "c1", "c2", None, "c2", "c1"]
    assert entries[0].metadata["mine"] == 1
    assert len({entry.timestamp for entry in entries[1:6]}) == 1
    assert [e.id for e in entries] == [e.id for e in session.get_history(0)[::-1]], "each time"
    assert len({entry.id for entry in entries}) == 8
    assert session.get_history(1) == [entries[-1]]
    assert messages_of(entries) == session.messages


def test_the_raw_result_is_what_the_tool_said() -> None:
    """U6.1: also where the model was given less."""
    block = {"type": "tool_result", "tool_use_id": "c", "content": "sh…"}
    session = Session().append_message(Message("tool", block).marked(output="short and long"))
    (entry,) = session.get_history(0)
    assert get_tool_result_content(entry)[0].result == "short and long"
    assert messages_of([entry]) == session.messages


odd_blocks = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": texts}, optional={"cache": values}),
    st.fixed_dictionaries({"type": st.just("thinking"), "thinking": texts}),
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["tool_use", "hologram"]),
            "id": texts,
            "name": texts,
            "input": objects,
        }
    ),
    st.fixed_dictionaries(
        {"type": st.just("tool_result"), "tool_use_id": texts, "content": texts | values},
        optional={"is_error": st.booleans()},
    ),
    st.fixed_dictionaries({"type": st.just("attachment"), "kind": texts, "text": texts}),
    values,
)
marks = st.fixed_dictionaries(
    {}, optional={"tiro": st.just({"pending": True}) | values, "block": values, "call_id": values}
)
odd_messages = st.builds(
    lambda role, content, more, metadata: Message.from_dict(
        {**more, "metadata": metadata, "role": role, "content": content}
    ),
    st.sampled_from(["user", "assistant", "tool", "system", "critic", ""]),
    texts | st.lists(odd_blocks, max_size=3) | objects,
    st.fixed_dictionaries(
        {},
        optional={
            "timestamp": st.sampled_from(
                ["2026-11-28T09:30:00.000Z", "2025-02-21T14:30:15-0800", "yesterday", ""]
            ),
            "name": texts,
            "tool_call_id": texts,
            "tool_calls": st.lists(values, max_size=2),
            "mood": values,
        },
    ),
    st.none() | objects | marks,
)


@given(st.lists(odd_messages, max_size=4).map(numbered) | any_history)
def test_messages_come_back_from_their_entries_as_they_were(messages: list[Message]) -> None:
    """U6.1, G3: any messages, also by way of the entries' JSON."""
    entries = entries_of(messages, "s")
    assert messages_of(entries) == messages
    if all(encode(m.to_dict()).decode().find("\ufffd") < 0 for m in messages):
        assert messages_of(entries_from_json(entries_to_json(entries))) == messages


@given(st.lists(any_entry, max_size=5))
def test_entries_of_no_message_become_one_each(entries: list[Entry]) -> None:
    """U6.3: the way in and out of a list, without a session."""
    assert entries_of(messages_of(entries)) == entries


def test_a_history_that_moves_to_another_session_keeps_its_pairs() -> None:
    """U6.2, U6.3: entry by entry, in the order of time."""
    first = Session()
    first.add_message("user", "go")
    first.add_message("assistant", [{"type": "tool_use", "id": "c", "name": "t", "input": {}}])
    first.add_tool_result("c", "done")
    second = Session()
    entries = first.get_history(0)
    for entry in reversed(entries):
        second.add_entry(entry)
    assert second.get_history(0) == entries
    view = provider_view(second.messages)
    assert [use.id for m in view for use in tool_uses_of(m)] == ["c"]
    assert [result.tool_use_id for m in view for result in tool_results_of(m)] == ["c"]


def test_entries_are_in_the_file_of_their_session(tmp_path: Path) -> None:
    """G5.3, U9.2: written when they are added, and as they were."""
    from tiro.stores.manager import SessionManager

    entries = [new_message_entry("user", "hi"), new_tool_result_entry("t", {"raw": [1, None]})]
    manager = SessionManager(tmp_path)
    session = manager.create(id="mine")
    for entry in entries:
        session.add_entry(entry)
    session.set("task.current", {"step": 2})
    again = SessionManager(tmp_path).load(tmp_path / "mine.json")
    assert again.get_history(0) == entries[::-1]
    assert again.get("task.current") == {"step": 2}
    assert again.updated_at >= session.created_at
