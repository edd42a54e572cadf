"""The journal's text: what is read of it when its end or its middle is broken (U9.2, U9.4)."""

import pytest

from tiro.session.changes import Add, Change, Evict, Set
from tiro.session.messages import Message
from tiro.stores.journal import JournalText, change_lines, header_line, read_journal

AT = "2026-01-01T00:00:00.000Z"


def add(seq: int, text: str = "héllo\u2028 🙂") -> Add:
    return Add(Message("user", text, seq=seq, timestamp=AT), AT)


CHANGES: tuple[Change, ...] = (add(1), Evict([1], AT), add(2), Set({"title": "x"}, AT), add(3))


def text_of(*changes: Change, first_n: int = 1) -> bytes:
    return header_line("s", first_n - 1) + change_lines(first_n, changes)


def numbers(read: JournalText) -> list[int]:
    return [n for n, _ in read.changes]


def test_what_was_written_is_read() -> None:
    read = read_journal(text_of(*CHANGES), 0)
    assert [change for _, change in read.changes] == list(CHANGES)
    assert (numbers(read), read.bad, read.header and read.header.id) == ([1, 2, 3, 4, 5], 0, "s")


def test_a_torn_tail_is_cut_at_every_byte() -> None:
    """U9.4: whatever a kill or a full disk left of the last line, all lines before it count."""
    whole = text_of(*CHANGES)
    ends = [i + 1 for i, byte in enumerate(whole) if byte == 10]
    for length in range(len(whole) + 1):
        read = read_journal(whole[:length], 0)
        complete = [end for end in ends if end <= length]
        assert read.size == (complete[-1] if complete else 0)
        assert numbers(read) == list(range(1, max(1, len(complete))))
        assert read.bad == 0


@pytest.mark.parametrize("tail", [b"\x00" * 8192, b'{"n":6', b"garbage", b"\xff\xfe"])
def test_rubbish_behind_the_last_line_is_torn(tail: bytes) -> None:
    """U9.4, B10"""
    whole = text_of(*CHANGES)
    read = read_journal(whole + tail, 0)
    assert (read.size, len(read.changes), read.bad) == (len(whole), 5, 0)


def test_lines_that_the_snapshot_holds_are_skipped() -> None:
    """U9.2"""
    assert numbers(read_journal(text_of(*CHANGES), 3)) == [4, 5]


def test_without_a_journal_n_the_base_counts() -> None:
    """U7.2: somebody took the field out of the file."""
    assert numbers(read_journal(text_of(*CHANGES, first_n=41), None)) == [41, 42, 43, 44, 45]


@pytest.mark.parametrize("broken", [b"rubbish", b"", b"null", b"[]", b'{"n":3,"op":"jump"}', b"\0"])
def test_behind_a_broken_line_only_adds_count(broken: bytes) -> None:
    """U9.4"""
    lines = text_of(*CHANGES).split(b"\n")
    lines[2] = broken  # in the place of the eviction
    read = read_journal(b"\n".join(lines), 0)
    assert [change for _, change in read.changes] == [CHANGES[0], CHANGES[2], CHANGES[4]]
    assert read.bad == 2  # the broken one and the `set` behind it


def test_behind_a_gap_only_adds_count() -> None:
    """U9.4"""
    read = read_journal(text_of(*CHANGES, first_n=11), 5)
    assert numbers(read) == [11, 13, 15]
    assert read.bad == 2


def test_a_gap_with_only_adds_behind_it_is_reported() -> None:
    assert read_journal(text_of(add(9), first_n=9), 5).bad == 1


def test_lines_in_the_wrong_order_lose_no_message() -> None:
    """U9.4: the remaining adds count, wherever they stand."""
    header, first, second, third, end = text_of(add(1), add(2), add(3)).split(b"\n")
    read = read_journal(b"\n".join([header, third, first, second, end]), 0)
    assert numbers(read) == [1, 2, 3]
    assert read.bad >= 1


def test_a_number_given_twice_is_no_second_change() -> None:
    """U9.2: n never restarts."""
    read = read_journal(text_of(add(1)) + change_lines(1, (add(2),)), 0)
    assert numbers(read) == [1]
    assert read.bad == 1


def test_a_broken_header_is_reported_and_the_numbers_take_its_place() -> None:
    """A snapshot without a number gives them nothing to go on from: then only adds count."""
    whole = b"x" + text_of(*CHANGES)
    read = read_journal(whole, 0)
    assert read.header is None
    assert (numbers(read), read.bad) == ([1, 2, 3, 4, 5], 1)
    read = read_journal(whole, None)
    assert numbers(read) == [1, 3, 5]
    assert read.bad >= 1


def test_an_empty_journal_says_nothing() -> None:
    assert read_journal(b"", 7) == JournalText(None, [], 0, 0)
