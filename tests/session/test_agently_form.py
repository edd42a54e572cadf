"""The Agently form (A8): what goes out comes back, and what cannot be read changes nothing."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.session.histories import any_history
from tests.sizes import sized
from tiro import Message, Session
from tiro.session.agently import places
from tiro.session.changes import Change, Cover, decode_change, encode_change
from tiro.session.core import Core

EXAMPLES = sized(fast=60, normal=120, long=2000)
KEYS = ["id", "memo", "full_chat_history", "current_chat_history", "settings", "turns"]
KEYS += ["last_resize_turn", "memo_cursor"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
JSON_AND_YAML: list[tuple[Callable[[Session], str], Callable[[Session, str], Session]]] = [
    (Session.to_json, Session.load_json),
    (Session.to_yaml, Session.load_yaml),
]


def talk(*contents: str, **options: Any) -> Session:
    session = Session(**options)
    for number, content in enumerate(contents):
        session.add_message("user" if number % 2 == 0 else "assistant", content)
    return session


def texts(messages: list[Message]) -> list[Any]:
    return [message.content for message in messages]


def form(session: Session) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(session.to_json())
    return value


def text_of(full: Any, current: Any, **more: Any) -> str:
    return json.dumps({"full_chat_history": full, "current_chat_history": current, **more})


def row(content: Any, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


# --- out ------------------------------------------------------------------------------------


def test_the_form_has_exactly_these_keys() -> None:
    """A8.1, A8.2: in JSON and in YAML, which say the same."""
    session = talk("one", "two", id="s")
    assert list(form(session)) == KEYS
    assert yaml.safe_load(session.to_yaml()) == form(session)


def test_messages_go_out_as_they_came_in() -> None:
    """A1.8, U7.4: with every extra field, and without a key of our own."""
    rows = [
        row([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "u"}}]),
        row("", "assistant", tool_calls=[{"id": "a", "function": {"name": "f"}}], mood="calm"),
        row("r", "tool", tool_call_id="a", name="f", metadata={"x": 1}),
    ]
    session = Session()
    for item in rows:
        session.append_message(item)
    session.set_limit(messages=1).resize("lite")
    assert form(session)["full_chat_history"] == rows
    assert form(session)["current_chat_history"] == rows[1:]


def test_what_was_taken_back_stays_at_home() -> None:
    """Answer 4."""
    session = talk("one", "two", "three")
    session.rewind(2)
    session.edit_message(1, "ONE")
    assert [m["content"] for m in form(session)["full_chat_history"]] == ["ONE", "two"]


@pytest.mark.parametrize("number", range(2))
def test_text_that_is_not_ascii_is_readable_and_may_come_escaped(number: int) -> None:
    """A8.5."""
    out, into = JSON_AND_YAML[number]
    session = talk("Grüße, 漢字 🙂", "\ue000\n🙂🎉")
    assert "Grüße, 漢字 🙂" in out(session)
    assert "🙂🎉" in out(session)
    assert form(into(Session(), out(session))) == form(session)
    escaped = json.dumps({"full_chat_history": [row("Gr\u00fc\u00dfe \u6f22")]}, ensure_ascii=True)
    assert texts(into(Session(), escaped).full_chat_history) == ["Grüße 漢"]


def test_only_own_settings_go_out_and_never_credentials() -> None:
    """A8.6."""
    session = Session({"session.mode": "memo", "model": {"api_key": "sk-parent"}})
    session.set_settings("session.resize.every_n_turns", 3)
    session.set_settings("model", {"name": "m", "apiKey": "k", "inner": {"access_token": "t"}})
    session.set_settings("model.api_key", "k").set_settings("proxy.password", "p")
    session.set_settings("note", "sk-ant-api03-" + "a" * 40)
    expected = {"session.resize.every_n_turns": 3, "model": {"name": "m", "inner": {}}}
    assert form(session)["settings"] == expected


ODD_SETTINGS: list[Any] = [len, object(), {1: 2}, {"f": len}, [len], {1, 2}, float("nan"), b"x"]


@pytest.mark.parametrize("value", ODD_SETTINGS, ids=repr)
def test_a_setting_that_json_cannot_hold_never_breaks_the_export(value: Any) -> None:
    """A8.6: nor does it leave a trace that somebody would read as a setting."""
    session = talk("one").set_settings("session.memo.model", value)
    assert form(session)["settings"] == {}
    assert yaml.safe_load(session.to_yaml())["settings"] == {}
    assert session.settings["session.memo.model"] is value


# --- settings that stay in memory -----------------------------------------------------------


def observed(core: Core) -> list[Change]:
    """Every change of this session, as a journal holds it."""
    changes: list[Change] = []
    core.observe(lambda first, new: changes.extend(map(read_back, new)))
    return changes


def read_back(change: Change) -> Change:
    return decode_change(encode_change(1, change))[1]


@pytest.mark.parametrize("value", ODD_SETTINGS, ids=repr)
def test_a_setting_that_json_cannot_hold_stays_in_memory(value: Any) -> None:
    """A2.14: the journal replayed knows nothing of it, and no text stands in its place."""
    session, again = Session(), Session()
    changes = observed(session)
    session.set_settings("session.mode", "memo").set_settings("session.memo.model", "by name")
    session.set_settings("session.memo.model", value)
    assert session.settings["session.memo.model"] is value
    again.commit(*changes)
    assert again.own_settings == {"session.mode": "memo"}
    assert session.snapshot()["settings"] == {"session.mode": "memo"}
    session.set_settings("session.memo.model", "by name")
    assert session.settings["session.memo.model"] == "by name"


def test_a_model_in_the_settings_works_while_a_journal_listens() -> None:
    """A5.2, answer 13."""
    session = talk("one", "two")
    changes = observed(session)
    session.set_settings("session.memo.model", lambda messages: '{"memo": {"a": 1}}')
    session.use_memo().resize("lite")
    again = talk("one", "two")
    again.commit(*changes)
    assert again.memo["a"] == 1


# --- in -------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(2))
@given(history=any_history, data=st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_round_trip_keeps_it_all(
    number: int, history: list[Message], data: st.DataObject
) -> None:
    """A8.7, A1.8: both histories, rich content, extra fields, memo, counters; also once more."""
    out, into = JSON_AND_YAML[number]
    session = Session()
    for message in history:
        extra = data.draw(st.dictionaries(st.text(max_size=3), VALUES, max_size=2))
        session.append_message({**message.to_dict(), **{f"x{key}": extra[key] for key in extra}})
    session.change(
        memo=data.draw(VALUES),
        turns=len(history) + 2,
        last_resize_turn=data.draw(st.integers(0, len(history) + 2)),
        memo_cursor=data.draw(st.integers(0, len(session.full_chat_history))),
    )
    session.set_limit(messages=data.draw(st.integers(1, 15)), chars=10**6)
    session.resize("lite" if data.draw(st.booleans()) else False)
    again = into(Session(), out(session))
    assert form(again) == form(session)
    assert form(into(again, out(session))) == form(session)
    assert again._turns == session._turns
    assert len(again.messages) == len(session.messages)


@given(history=any_history, more=any_history, shown=st.sets(st.integers(0, 13)))
@settings(max_examples=EXAMPLES, deadline=None)
def test_the_window_is_found_again_in_the_full_history(
    history: list[Message], more: list[Message], shown: set[int]
) -> None:
    """U7.5, answer 4: any part of it in its order is; each message stands for one only."""
    part = [message for index, message in enumerate(history) if index in shown]
    found = places(history, part)
    assert None not in found
    assert found == sorted(set(found), key=lambda place: place or 0)
    for place, message in zip(places(history, more), more, strict=True):
        assert place is None or history[place].content == message.content


def test_equal_messages_are_matched_from_the_end() -> None:
    """Answer 4: the window is the end of the history; a naive search finds its beginning."""
    yes = [Message("user", "go on") for _ in range(4)]
    assert places(yes, yes[:2]) == [2, 3]
    one, two = Message("user", "1"), Message("user", "2")
    assert places([one, two, one, two], [one, two]) == [2, 3]
    assert places([one, two], [two, one]) == [None, 0]


def test_what_is_only_in_the_window_is_marked_and_stays_out_of_the_full_history() -> None:
    """U1.6, U7.5: seqs are in order, and given once."""
    full = [row("one"), row("two", "assistant"), row("three"), row("four", "assistant")]
    text = json.dumps(
        {"full_chat_history": full, "current_chat_history": [row("in short"), *full[2:]]}
    )
    session = Session().load_json(text)
    assert texts(session.messages) == ["in short", "three", "four"]
    assert [bool(m.marks().get("window_only")) for m in session.messages] == [True, False, False]
    assert texts(session.full_chat_history) == ["one", "two", "three", "four"]
    assert texts(session.archive) == ["one", "two"]
    seqs = [m.seq for m in [*session.archive, *session.messages]]
    assert sorted(seqs, key=lambda seq: seq or 0) == [1, 2, 3, 4, 5]
    assert session.add_message("user", "five").messages[-1].seq == 6
    assert json.loads(session.to_json())["current_chat_history"][0] == row("in short")


def test_messages_that_no_memo_covers_wait_for_a_summary() -> None:
    """U4.1: out of the window and raw for the next one, but for those that the memo has read."""
    full = [row("one"), row("two"), row("three")]
    value = {"full_chat_history": full, "current_chat_history": full[2:], "memo_cursor": 1}
    assert texts(Session().load_json(json.dumps(value)).pending()) == ["one", "two"]
    value["memo"] = {"k": 1}
    assert texts(Session().load_json(json.dumps(value)).pending()) == ["two"]


def test_a_new_window_alone_leaves_the_full_history() -> None:
    """A8.3, U4.3, U1.4: what leaves the window waits, what was covered or taken back stays so."""
    session = talk("one", "two", "three", "four", "taken back")
    session.rewind(4)
    session.set_limit(messages=2).resize("lite")
    session.commit(Cover([1], session.stamp()))
    session.load_json(json.dumps({"current_chat_history": [row("two", "assistant"), row("three")]}))
    assert texts(session.messages) == ["two", "three"]
    assert [m.marks() for m in session.messages] == [{}, {}]
    assert texts(session.archive) == ["one", "four", "taken back"]
    assert texts(session.pending()) == ["four"]
    assert [m.seq for m in session.full_chat_history] == [1, 2, 3, 4]


PARTS: dict[str, Any] = {
    "id": ("other", lambda s: s.id),
    "memo": ([1], lambda s: s.memo),
    "settings": ({"session.mode": "memo"}, lambda s: s.settings["session.mode"]),
    "turns": (9, lambda s: s._turns),
    "last_resize_turn": (1, lambda s: s._last_resize_turn),
    "memo_cursor": (1, lambda s: s._memo_cursor),
    "full_chat_history": (
        [row("x"), row("two", "assistant")],
        lambda s: texts(s.full_chat_history),
    ),
    "current_chat_history": ([row("x")], lambda s: texts(s.messages)),
}


@pytest.mark.parametrize("name", PARTS)
def test_loading_applies_only_the_keys_that_are_there(name: str) -> None:
    """A8.3."""
    session = talk("one", "two", "three", "four", id="mine").set_settings("own", 1)
    before = {key: read(session) for key, (_, read) in PARTS.items()}
    assert session.load_json(json.dumps({name: PARTS[name][0], "unknown": 1})) is session
    after = {key: read(session) for key, (_, read) in PARTS.items()}
    assert {key for key in PARTS if before[key] != after[key]} == {name}
    assert session.settings["own"] == 1, "settings are merged"


def test_an_id_and_counters_are_made_what_they_should_be() -> None:
    """A8.3: a null id says nothing."""
    session = Session(id="mine").load_json('{"turns": "3", "last_resize_turn": 2.0}')
    assert (session._turns, session._last_resize_turn) == (3, 2)
    assert session.load_json('{"id": 7}').id == "7"
    assert session.load_json('{"id": null, "settings": "no dict"}').id == "7"


def test_settings_that_come_beat_those_in_memory() -> None:
    """A8.3."""
    session = Session().set_settings("a", len).set_settings("b", len)
    session.load_json('{"settings": {"a": 1}}')
    assert (session.settings["a"], session.settings["b"]) == (1, len)


@pytest.mark.parametrize(
    ("turns", "last", "cursor", "expected"),
    [(-1, -5, -1, (0, 0, 0)), (2, 9, 99, (2, 2, 3)), (10**30, 0, 10**30, (2**53 - 1, 0, 3))],
)
def test_counters_out_of_range_are_clamped(
    turns: int, last: int, cursor: int, expected: Any
) -> None:
    """A8.7."""
    value = {"turns": turns, "last_resize_turn": last, "memo_cursor": cursor}
    session = talk("one", "two", "three").load_json(json.dumps(value))
    assert (session._turns, session._last_resize_turn, session._memo_cursor) == expected


def test_a_shorter_history_clamps_the_cursor_that_is_there() -> None:
    """A8.7: a cursor beyond the end would hide what is added next from the memo."""
    session = talk("one", "two", "three")
    session.resize("lite")
    session.load_json(json.dumps({"full_chat_history": [row("x")]}))
    assert session._memo_cursor == 1


BAD: list[tuple[Any, type[Exception]]] = [
    ("[]", TypeError),
    ("7", TypeError),
    ("null", TypeError),
    ('"text"', TypeError),
    ("{", ValueError),
    ("", ValueError),
    ("[" * 100_000, ValueError),
    ('{"turns": null}', ValueError),
    ('{"turns": true}', ValueError),
    ('{"memo_cursor": "x"}', ValueError),
    ('{"last_resize_turn": 1e999}', ValueError),
    ('{"full_chat_history": {}}', TypeError),
    ('{"full_chat_history": null}', TypeError),
    ('{"full_chat_history": ["text"]}', TypeError),
    ('{"current_chat_history": [{"role": "user"}]}', KeyError),
    ('{"current_chat_history": [{"role": 1, "content": ""}]}', TypeError),
]


@pytest.mark.parametrize("into", [Session.load_json, Session.load_yaml])
@pytest.mark.parametrize(("text", "error"), BAD, ids=lambda value: str(value)[:40])
def test_what_cannot_be_read_changes_nothing(
    text: str, error: type[Exception], into: Callable[[Session, str], Session]
) -> None:
    """A8.4, A10.1: also where something before it in the text was good."""
    if text == "" and into is Session.load_yaml:
        error = TypeError  # YAML's empty document is null
    session = talk("one", "two", id="mine").set_settings("model", len)
    session.change(memo={"k": 1})
    changes = observed(session)
    before = session.snapshot()
    with pytest.raises(error):
        into(session, text.replace("{", '{"id": "new", "memo": 1, "settings": {"model": 2},', 1)
             if text.startswith('{"') else text)  # fmt: skip
    assert session.snapshot() == before
    assert session.settings["model"] is len
    assert changes == []


@pytest.mark.parametrize(
    "text", ["a: [1", "!!python/object:os.system {}", "a: &x [*x]\n", "\t- a: b"]
)
def test_yaml_that_is_none_is_a_value_error(text: str) -> None:
    """A8.4."""
    with pytest.raises(ValueError, match=r"YAML|tag"):
        Session().load_yaml(text)


def test_a_journal_sees_one_commit_that_makes_the_same_session() -> None:
    """U9.2, answer 16: replayed, it is the session that was loaded."""
    session, again = talk("old", "older", id="s"), talk("old", "older", id="s")
    session.pin(1)
    again.pin(1)
    commits: list[tuple[Change, ...]] = []
    session.observe(lambda first, new: commits.append(tuple(map(read_back, new))))
    full = [row("one", name="Ann", mood="calm"), row([{"type": "?", "v": 1}], "critic")]
    session.load_json(text_of(full, full[1:], memo={"k": 1}, turns=4, settings={"a": 1}))
    assert len(commits) == 1
    again.commit(*commits[0])
    left_out = {"created_at": 0, "updated_at": 0}
    assert {**again.snapshot(), **left_out} == {**session.snapshot(), **left_out}


def test_a_load_makes_another_conversation_of_it() -> None:
    """U1.2, U2.8, M3.4: no seq twice, no pin, no undo, no summary of the old one; limits hold."""
    session = talk("one", "two", "three", max_history=2)
    session.resize("lite")
    session.update_summary("about one")
    session.pin(3)
    session.load_json(
        json.dumps({name: [row(n) for n in "abc"] for name in PARTS if "hist" in name})
    )
    assert [m.seq for m in session.full_chat_history] == [4, 5, 6]
    assert texts(session.messages) == ["b", "c"]
    assert (session.pins, session.undo, session.summary) == ([], None, "")


def test_a_resize_that_began_before_a_load_is_dropped() -> None:
    """U4.4."""
    session = talk("one", "two")

    def update(*_: Any) -> Any:
        session.load_json(
            json.dumps({"full_chat_history": [row("new")], "current_chat_history": []})
        )
        return {"old": True}

    session.set_memo_update_handler(update).use_memo().resize("deep")
    assert session.memo == {}
    assert texts(session.full_chat_history) == ["new"]


def test_a_foreign_mark_hides_nothing() -> None:
    """U1.6: what a file says of itself under our key is not believed."""
    mark = {"tiro": {"taken_back": True}, "x": 1}
    value = {"full_chat_history": [row("one", metadata=mark, seq=77)]}
    session = Session().load_json(json.dumps(value))
    (message,) = session.full_chat_history
    assert (message.seq, message.metadata) == (1, {"x": 1, "tiro": {"pending": True}})


def test_a_time_that_a_message_brings_goes_out_again() -> None:
    """U7.4, U7.5: others get the time of the import, which is nobody else's business."""
    full = [row("one", timestamp="2025-02-21T22:30:15Z"), row("two")]
    session = Session().load_json(text_of(full, full))
    assert session.messages[0].timestamp == "2025-02-21T22:30:15Z"
    assert session.messages[1].timestamp
    assert form(session)["full_chat_history"] == full
