"""Reading session files (U7): what is no session is refused, everything else is kept."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.session.histories import any_history
from tiro import Message, SessionFormatError
from tiro.session.core import Core
from tiro.session.json_text import decode, encode
from tiro.session.snapshot import SCHEMA_VERSION, read_snapshot


def opened(fields: dict[str, Any]) -> Core:
    """The session that a file with these fields holds."""
    core = Core()
    core.restore(read_snapshot(encode(fields)))
    return core


def test_a_file_with_three_fields_loads() -> None:
    """U7.2, M4.2."""
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    core = opened({"id": "s", "messages": messages, "timestamp": "2025-02-21T14:30:15-0800"})
    assert [(m.seq, m.role, m.content) for m in core.oldest_first()] == [
        (1, "user", "a"),
        (2, "assistant", "b"),
    ]
    assert core.next_seq == 3
    assert {m.timestamp for m in core.oldest_first()} == {"2025-02-21T14:30:15-0800"}


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_that_no_clock_can_show_is_no_time(time: str) -> None:
    """U7.2: the file opens all the same."""
    row = {"role": "user", "content": "a", "timestamp": time}
    core = opened({"messages": [row], "created_at": time, "updated_at": time, "timestamp": time})
    assert core.oldest_first()[0].timestamp == time


def test_unknown_fields_and_blocks_survive() -> None:
    """U7.2, B14."""
    message = {
        "x-y": {"jsonrpc": "2.0"},
        "role": "critic",
        "content": [{"class": 1, "type": "hologram", "n": 12345678901234567890123}],
    }
    fields = {"id": "s", "messages": [message], "future": {"z": 1, "a": 2}}
    saved = decode(encode(opened(fields).snapshot()))
    assert saved["future"] == {"z": 1, "a": 2}
    assert list(saved["future"]) == ["z", "a"]
    (kept,) = saved["messages"]
    assert kept["x-y"] == message["x-y"]
    assert kept["content"] == message["content"]
    assert list(kept["content"][0]) == ["class", "type", "n"]


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"  \n", b"\0" * 8192, b"[]", b"null", b'"text"', b"{}", b'{"messages": {}}', b"{"),
        b'{"messages": [], "title": "caf\xe9"}',
        b'{"messages": [], "x": "caf\xe9"}',
        b'{"messages": [], "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_what_is_no_session_is_refused(data: bytes) -> None:
    """B10: a list, null, an empty file, NULs."""
    with pytest.raises(SessionFormatError) as caught:
        read_snapshot(data)
    assert caught.value.data["reason"]


@pytest.mark.parametrize("cut", [0.3, 0.5, 0.9])
def test_a_damaged_file_says_what_could_be_recovered(cut: float) -> None:
    """Protocol: `recovered`, and B10 cut in half."""
    rows = [{"role": "user", "content": f"message {n}"} for n in range(100)]
    data = encode({"id": "s", "messages": rows})
    with pytest.raises(SessionFormatError) as caught:
        read_snapshot(data[: int(len(data) * cut)])
    assert 0 < caught.value.data["recovered"] < 100
    with pytest.raises(SessionFormatError) as caught:
        read_snapshot(data + b"\0" * 8192)
    assert caught.value.data["recovered"] == 100


def test_a_newer_schema_is_refused_and_says_so() -> None:
    """U7.3, B14."""
    with pytest.raises(SessionFormatError, match="newer"):
        read_snapshot(encode({"schema_version": SCHEMA_VERSION + 1, "messages": []}))


@pytest.mark.parametrize("wrong", ["x", True, -5, 10**30, None, [], {}])
@pytest.mark.parametrize(
    "name", ["next_seq", "turns", "memo_cursor", "last_resize_turn", "max_history", "journal_n"]
)
def test_a_wrong_counter_never_hides_messages(name: str, wrong: Any) -> None:
    """Hints: bad offsets loaded from disk hid whole histories."""
    rows = [{"role": "user", "content": "a", "seq": 4}]
    core = opened({"messages": rows, name: wrong})
    assert [m.seq for m in core.oldest_first()] == [4]
    assert core.next_seq >= 5
    assert 0 <= core.memo_cursor <= 1


@pytest.mark.parametrize("seqs", [[1, 1], [0, 2], [None, 3], ["1", 2]])
def test_seqs_are_made_unique(seqs: list[Any]) -> None:
    """U1.2."""
    rows = [{"role": "user", "content": str(seq), "seq": seq} for seq in seqs]
    core = opened({"messages": rows})
    assert [m.seq for m in core.oldest_first()] == [1, 2]


def test_a_file_without_version_that_is_newest_first_is_turned_round() -> None:
    """Open point 17."""
    use = {"type": "tool_use", "id": "a", "name": "glob", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "a", "content": "x"}
    rows = [
        {"role": "tool", "content": answer},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": "find"},
    ]
    core = opened({"id": "s", "messages": rows})
    assert [m.role for m in core.oldest_first()] == ["user", "assistant", "tool"]


def test_what_only_a_lenient_reader_accepts_is_cleaned() -> None:
    """B12: a lone surrogate in a file, and NaN."""
    data = (
        b'{"messages": [{"role": "user", "content": "a\\ud83d", "x": NaN}], "state": {"n": 1e999}}'
    )
    core = Core()
    core.restore(read_snapshot(data))
    assert core.oldest_first()[0].content == "a\ufffd"
    encode(core.snapshot()).decode("utf-8", "strict")


def test_a_byte_order_mark_is_no_damage() -> None:
    """Editors on Windows write one."""
    assert read_snapshot(b"\xef\xbb\xbf" + encode({"messages": []})).messages == []


@given(any_history, any_history)
def test_what_we_write_we_read_back(window: list[Message], archive: list[Message]) -> None:
    """U7.1: value for value, also unknown roles, blocks and fields."""
    shifted = [m.to_dict() | {"seq": (m.seq or 0) + len(archive)} for m in window]
    fields = {"schema_version": 1, "messages": shifted, "archive": [m.to_dict() for m in archive]}
    core = opened(fields)
    given = {m["seq"]: m for m in shifted}
    for message in core.oldest_first():
        kept = message.to_dict()
        assert encode({k: kept[k] for k in given[message["seq"]]}) == encode(given[message["seq"]])
    assert encode(core.snapshot()) == encode(opened(decode(encode(core.snapshot()))).snapshot())


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """Never another error than the one that says so."""
    with contextlib.suppress(SessionFormatError):
        read_snapshot(data)
