"""Other programs' sessions open in Tiro and go back unchanged (U7.4, M4.2, N6)."""

import datetime
import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.session.histories import says, user
from tests.sizes import sized
from tests.stores.test_formats import ODD, form, opened, sessions
from tiro import Message, SessionFormatError
from tiro.session.changes import Cover, Evict, TakeBack
from tiro.session.core import Core
from tiro.session.foreign import given_back
from tiro.session.json_text import clean
from tiro.stores.formats import registry
from tiro.stores.formats.format import history, losses

EXAMPLES = sized(fast=40, normal=100, long=2000)
TEXTS = st.one_of(st.sampled_from(ODD), st.text(max_size=12)).map(clean)
BLOCKS = st.lists(
    st.sampled_from(
        [
            {"type": "text", "text": "I look"},
            {"type": "tool_use", "id": "c1", "name": "glob", "input": {"pattern": "*.el"}},
            {"type": "hologram", "v": [1, None]},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "Q"}},
        ]
    ),
    max_size=3,
)
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "a.el"}
CALL = {"id": "c1", "type": "function", "function": {"name": "glob", "arguments": '{"p": 1}'}}


@st.composite
def foreign_messages(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Messages as other programs write them: both spellings of tools, with and without times."""
    rows = []
    for _ in range(draw(st.integers(0, 6))):
        content = draw(st.one_of(TEXTS, BLOCKS, st.just(RESULT), st.none()))
        row: dict[str, Any] = {"role": draw(st.sampled_from(["user", "assistant", "tool", "x"]))}
        row["content"] = content
        more = {
            "timestamp": st.sampled_from(["2025-10-29T00:59:38.317123", "2025-10-29T01:00:00Z"]),
            "name": st.one_of(st.none(), TEXTS),
            "tool_calls": st.sampled_from([[], [CALL]]),
            "tool_call_id": TEXTS,
            "reasoning_content": TEXTS,
            "metadata": st.sampled_from([{}, {"channel": "cli"}, None]),
            "x": st.sampled_from([None, 2**70, {"deep": [1.5]}]),
        }
        for key in draw(st.sets(st.sampled_from(sorted(more)))):
            row[key] = draw(more[key])
        rows.append(row)
    return rows


TURNED = "The messages came newest first; they go out oldest first"


def again(text: str, name: str, *, turned: bool | None = False) -> str:
    """The text, read and written again; `turned`: whether a note tells that it was turned round."""
    chosen = registry.recognised(text)
    assert chosen.name == name
    imported = chosen.loads(text)
    assert set(imported.notes) <= {TURNED}
    assert turned is None or bool(imported.notes) == turned
    return chosen.dumps({**form(opened(imported)), "timestamp": imported.stored.timestamp})


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


# nanobot


HEADER = {
    "_type": "metadata",
    "key": "telegram:42",
    "created_at": "2025-10-29T00:59:38.317000",
    "updated_at": "2025-10-29T01:59:38.317000",
    "metadata": {"lang": "de"},
    "last_consolidated": 0,
    "summary": "",
}


@given(rows=foreign_messages(), covered=st.integers(0, 7))
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_nanobot_file_goes_back_unchanged(rows: list[dict[str, Any]], covered: int) -> None:
    """U7.4, N6.1: equal messages, equal facts, and what Tiro does not know."""
    first = {**HEADER, "last_consolidated": min(covered, len(rows)), "workspace": {"v": 1}}
    text = again(lines(first, *rows), "nanobot")
    assert [json.loads(line) for line in text.split("\n")[:-1]] == [
        {**first, "workspace": {"v": 1}},
        *rows,
    ]


def test_what_nanobot_has_summarised_is_out_of_the_window() -> None:
    """N6.1: a summary and how many messages it covers."""
    rows = [{"role": "user", "content": f"{n}"} for n in range(3)]
    text = lines({**HEADER, "last_consolidated": 2, "summary": "counted"}, *rows)
    core = opened(registry.recognised(text).loads(text))
    assert [m.content for m in core.oldest_first()] == ["2"]
    assert (core.summary, core.id, core.metadata) == ("counted", "telegram:42", {"lang": "de"})
    assert not any(m.marks().get("pending") for m in core.archive_rows)


def test_a_session_of_tiro_is_written_for_nanobot_without_keys_of_ours() -> None:
    """U7.4: no seq, no marks, no field that nanobot does not have; times are told."""
    text = registry.named("nanobot").dumps(form(talk()))
    first, *rows = map(json.loads, text.splitlines())
    assert set(first) == set(HEADER)
    assert [set(row) for row in rows] == [{"role", "content", "timestamp"}] * 2
    assert registry.recognised(text).name == "nanobot"
    assert registry.earlier_id(text) == "s"


def test_our_own_lines_are_not_taken_for_nanobots() -> None:
    text = registry.named("jsonl").dumps(form(talk()))
    assert registry.recognised(text).name == "jsonl"


def test_broken_lines_of_nanobot_are_left_out_and_told() -> None:
    """N6.5."""
    text = lines(HEADER, {"role": "user", "content": "a"}) + '{"role": "us\n[1]\n7\n{"role": "x"}\n'
    imported = registry.recognised(text).loads(text)
    assert imported.notes == ["4 lines are broken and were left out"]
    assert [m.content for m in imported.stored.messages] == ["a"]


# magent


STAMP = "2026-01-31T23:59:59+0100"


@given(rows=foreign_messages())
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_magent_file_goes_back_unchanged(rows: list[dict[str, Any]]) -> None:
    """U7.4, M4.2, M1.4: equal messages, and what Tiro does not know."""
    value = {"id": "session-1", "messages": rows, "timestamp": STAMP, "buffer-content": "* x"}
    back = json.loads(again(json.dumps(value), "magent", turned=None))
    assert back.pop("timestamp")[:4] == "2026"
    assert back.pop("messages") in (rows, rows[::-1])  # answer 17: the newest may come first
    assert back == {"id": "session-1", "buffer-content": "* x"}


def test_messages_of_magent_get_the_time_of_their_file() -> None:
    """U7.5."""
    value = {"id": "s", "messages": [{"role": "user", "content": "q"}], "timestamp": STAMP}
    core = opened(registry.recognised(json.dumps(value)).loads(json.dumps(value)))
    assert [m.timestamp for m in core.oldest_first()] == [STAMP]


def test_an_old_magent_file_lists_the_newest_first() -> None:
    """Answer 17: the result stands before its use there."""
    use = {"type": "tool_use", "id": "c1", "name": "glob", "input": {}}
    rows = [
        {"role": "tool", "content": RESULT},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": "look"},
    ]
    text = json.dumps({"id": "s", "messages": rows, "timestamp": STAMP})
    back = json.loads(again(text, "magent", turned=True))
    assert back["messages"] == rows[::-1]


def test_ids_that_a_model_uses_again_do_not_turn_a_file_round() -> None:
    """Answer 17: some servers count their calls from one in every answer; results get lost."""
    use = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "c1", "name": "g", "input": {}}],
    }
    turn = [{"role": "user", "content": "look"}, use, {"role": "tool", "content": RESULT}]
    for rows in (turn * 3, turn[2:] + turn, turn[2:] + turn * 2):
        text = json.dumps({"id": "s", "messages": rows, "timestamp": STAMP})
        assert json.loads(again(text, "magent"))["messages"] == rows
        text = json.dumps({"id": "s", "messages": (turn * 2)[::-1], "timestamp": STAMP})
        assert json.loads(again(text, "magent", turned=True))["messages"] == turn * 2


def test_a_session_of_tiro_is_written_for_magent_without_keys_of_ours() -> None:
    """U7.4, M4.2."""
    fields = {**form(talk()), "timestamp": "2026-01-31T22:59:59.000Z"}
    value = json.loads(registry.named("magent").dumps(fields))
    assert set(value) == {"id", "messages", "timestamp"}
    assert value["messages"] == [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "second"},
    ]
    assert len(value["timestamp"]) == len(STAMP)


@pytest.mark.parametrize(
    "text",
    [
        '{"id": "x", "timestamp": "t", "messages": [{"role": "user"}]}',
        '{"id": "x", "timestamp": "t", "messages": [7]}',
        '{"id": "x", "timestamp": "t", "messages": {}}',
        '{"id": "x", "timestamp": "t", "messages": [',
    ],
)
def test_a_broken_magent_file_is_refused(text: str) -> None:
    """Protocol section 1: nothing is loaded in part."""
    with pytest.raises(SessionFormatError) as caught:
        registry.recognised(text).loads(text)
    assert caught.value.data["reason"]


def test_a_session_file_of_tiro_is_none_of_magent() -> None:
    """M4.2: schema_version decides the reading."""
    for fields in ({**form(talk()), "timestamp": STAMP}, {"messages": [], "title": "t", "id": "i"}):
        assert registry.recognised(json.dumps(fields)).name == "json"


# go-agent


TIMES = [
    "2025-10-29T00:59:38.317123456+02:00",
    "2025-10-29T00:59:38Z",
    "2025-10-29T02:59:38.5+02:00",
]
CONTENTS: dict[str, list[Any]] = {
    "message": [{"role": "user", "text": "hi"}, {"role": "assistant", "text": "", "tone": 1}],
    "tool_call": [{"tool": "glob", "parameters": {"p": "*"}}, {"tool": "x", "parameters": None}],
    "tool_result": [
        {"tool": "glob", "success": True, "result": ["a.el", {"n": 2**70}], "error": ""},
        {"tool": "glob", "success": False, "result": None, "error": "no"},
        {"tool": "x", "success": True, "result": "kept", "error": "beside"},
    ],
    "thinking": [{"text": "hm"}, "hm", None, {"deep": [1]}],
}


@st.composite
def entries(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Entries as that program writes them, in their order."""
    rows = []
    for number in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(sorted(CONTENTS)))
        row: dict[str, Any] = {
            "id": draw(st.sampled_from([f"id-{number}", "same", ""])),
            "type": kind,
            "timestamp": draw(st.sampled_from(TIMES)),
            "content": draw(st.sampled_from(CONTENTS[kind]) | TEXTS),
            "metadata": draw(st.sampled_from([{}, {"k": "v"}, {"message_seq": 1, "block": 0}])),
        }
        rows.append(row | draw(st.sampled_from([{}, {"parent": "p"}, {"x": [None]}])))
    return rows


@given(rows=entries())
@settings(max_examples=EXAMPLES, deadline=None)
def test_entries_of_go_agent_go_back_unchanged(rows: list[dict[str, Any]]) -> None:
    """G3.1, G3.2, G3.4, U6.3: each as it came, its time to the nanosecond."""
    text = json.dumps(rows)
    assert registry.recognised(text).name == "go-agent"
    imported = registry.recognised(text).loads(text)
    back = json.loads(registry.named("go-agent").dumps(form(opened(imported))))
    assert back == (rows[::-1] if imported.notes else rows)


def test_entries_become_messages_that_can_be_asked_about() -> None:
    """U6.3: a result without a call id answers the oldest open call of its tool."""
    rows = [
        {"id": "1", "type": "message", "timestamp": TIMES[1], "content": CONTENTS["message"][0]},
        {"id": "2", "type": "tool_call", "timestamp": TIMES[1],
         "content": CONTENTS["tool_call"][0]},
        {"id": "3", "type": "tool_result", "timestamp": TIMES[1], "metadata": None,
         "content": CONTENTS["tool_result"][1]},
    ]  # fmt: skip
    text = json.dumps(rows)
    core = opened(registry.recognised(text).loads(text))
    assert [m.role for m in core.oldest_first()] == ["user", "assistant", "tool"]
    use = {"type": "tool_use", "id": "2", "name": "glob", "input": {"p": "*"}}
    assert core.oldest_first()[1].content == [use]
    back = json.loads(registry.named("go-agent").dumps(form(core)))
    assert back == [{**row, "metadata": {}} for row in rows]  # G3.4


def test_entries_that_came_newest_first_are_turned_round() -> None:
    """G1.5, G5.6: a history lists them so; prompts are oldest first."""
    rows = [
        {"id": f"{n}", "type": "message", "timestamp": f"2025-01-0{n}T00:00:00Z", "metadata": {},
         "content": {"role": "user", "text": f"{n}"}}
        for n in (3, 2, 1)
    ]  # fmt: skip
    imported = registry.recognised(json.dumps(rows)).loads(json.dumps(rows))
    assert [m.content for m in imported.stored.messages] == ["1", "2", "3"]
    assert imported.notes == ["The entries came newest first; they go out oldest first"]


def test_what_is_edited_goes_out_as_edited() -> None:
    """What an entry came with holds only while it says the same."""
    row = {"id": "1", "type": "message", "timestamp": TIMES[0], "metadata": {}, "parent": "p",
           "content": {"role": "user", "text": "old", "tone": 1}}  # fmt: skip
    text = json.dumps([row])
    fields = form(opened(registry.recognised(text).loads(text)))
    fields["messages"][0]["content"] = "new"
    (back,) = json.loads(registry.named("go-agent").dumps(fields))
    assert back == {**row, "content": {"role": "user", "text": "new"}}


def test_a_session_of_tiro_is_written_as_entries_without_keys_of_ours() -> None:
    """U6.2, U7.4: an entry for each block, G3.1's keys and nothing beside them."""
    core = talk()
    use = {"type": "tool_use", "id": "c1", "name": "glob", "input": {"p": 1}}
    core.append(Message("assistant", [{"type": "text", "text": "I look"}, use]))
    core.append(Message("tool", RESULT))
    rows = json.loads(registry.named("go-agent").dumps(form(core)))
    assert [row["type"] for row in rows] == [
        *["message"] * 3,
        "tool_call",
        "tool_result",
    ]
    assert all(set(row) == {"id", "type", "timestamp", "content", "metadata"} for row in rows)
    assert all(row["metadata"] == {} for row in rows)
    assert rows[-1]["content"] == {"tool": "glob", "success": True, "result": "a.el", "error": ""}
    assert registry.recognised(json.dumps(rows)).name == "go-agent"
    assert told(core, "go-agent") == []
    core.append(Message("user", BLOCK_OF_A_PICTURE))
    assert told(core, "go-agent") == [
        "Messages of which entries say less (pictures, attachments, other blocks and fields): 1"
    ]


BLOCK_OF_A_PICTURE = [{"type": "image", "source": {"type": "base64", "data": "Q"}}]


@pytest.mark.parametrize(
    "change",
    [{"type": "magic"}, {"timestamp": "yesterday"}, {"id": 7}, {"metadata": []}],
)
def test_an_item_that_is_no_entry_is_named(change: dict[str, Any]) -> None:
    good = {"id": "1", "type": "message", "timestamp": TIMES[1], "content": {}}
    with pytest.raises(SessionFormatError, match="Item 2") as caught:
        registry.named("go-agent").loads(json.dumps([good, {**good, **change}]))
    assert caught.value.data["recovered"] == 1


# what a form has no place for


def talk() -> Core:
    core = Core()
    core.append(user("first"))
    core.append(says("second"))
    core.change(id="s")
    return core


def told(core: Core, name: str) -> list[str]:
    return losses(registry.named(name), form(core))


@pytest.mark.parametrize("name", registry.WRITTEN)
def test_nothing_is_said_where_nothing_is_lost(name: str) -> None:
    core = Core(lambda: datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC))
    core.append(user("first"))
    core.append(says("second"))
    assert told(core, name) == []


@pytest.mark.parametrize("name", registry.WRITTEN)
@given(core=sessions(), picture=st.booleans())
@settings(max_examples=sized(fast=15, normal=40, long=1000), deadline=None)
def test_what_does_not_come_back_is_told(name: str, core: Core, picture: bool) -> None:
    """Issue 8: the round trip is equal, or what the export loses is said by its kind."""
    if picture:
        core.append(Message("user", BLOCK_OF_A_PICTURE))
    fields, said = form(core), " ".join(told(core, name))
    if name == "markdown":
        assert "only names a part" in said
        return
    back = form(opened(registry.named(name).loads(registry.named(name).dumps(fields))))
    for field, word in LOST.items():
        assert back.get(field) == fields.get(field) or word in said or not fields.get(field)
    if "of which entries say less" in said:
        return
    before, after = [plain(history(rows)) for rows in (fields, back)]
    times = [[row.pop("timestamp") for row in rows] for rows in (before, after)]
    if name == "magent" and before[::-1] == after:  # the oldest results lack their uses
        times[1].reverse()
    else:
        assert before == after
    is_told = "when each message was said" in said
    assert times[0] == times[1] or is_told == (len(set(times[0])) > 1)


LOST = {
    "title": "the title",
    "memo": "the memo",
    "summary": "the summary",
    "state": "the state",
    "metadata": "the metadata",
    "settings": "the session's settings",
    "future": "fields of other programs",
}


def plain(messages: list[Message]) -> list[dict[str, Any]]:
    """The messages without what Tiro alone gives them."""
    return [given_back(message, has_times=True) for message in messages]


@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("json", ""),
        ("yaml", ""),
        ("jsonl", "1 message that you took back"),
        ("nanobot", "the title, the memo, the state, 1 message that you took back"),
        (
            "magent",
            "the title, the memo, the summary, the state, 1 message that you took back,"
            " where the window begins, when each message was said",
        ),
        (
            "agently",
            "the title, the summary, the state, 1 message that you took back,"
            " when each message was said",
        ),
        (
            "go-agent",
            "the title, the memo, the summary, the state, 1 message that you took back,"
            " where the window begins",
        ),
        (
            "markdown",
            "the memo, the summary, the state, 1 message that you took back, where the window"
            " begins",
        ),
    ],
)
def test_a_form_says_what_it_has_no_place_for(name: str, lost: str) -> None:
    """Issue 8: a lossy direction says what it loses."""
    seconds = itertools.count()
    core = Core(lambda: datetime.datetime(2026, 1, 1, 0, 0, next(seconds), tzinfo=datetime.UTC))
    for text in ("first", "taken back", "third", "last"):
        core.append(user(text))
    at = core.stamp()
    core.commit(Evict([1], at), Cover([1], at), TakeBack([2], at))
    core.change(title="T", memo={"k": 1}, summary="s")
    core.state = {"k": 1}
    assert told(core, name) == ([f"What {name} has no place for: {lost}"] if lost else [])
