"""B28, B29: events come out of bytes the same, wherever the network cuts them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiro.models.server_sent_events import EventReader, EventTooLargeError


def read(*chunks: bytes) -> list[str]:
    reader = EventReader()
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    return [data.decode() for data in [*events, *reader.close()]]


def check(stream: bytes, *expected: str) -> None:
    """Whole, in each two-chunk split, and byte by byte."""
    assert read(stream) == list(expected)
    for at in range(len(stream) + 1):
        assert read(stream[:at], stream[at:]) == list(expected), at
    assert read(*(stream[i : i + 1] for i in range(len(stream)))) == list(expected)


def test_data_with_and_without_a_space_after_the_colon() -> None:
    check(b"data: a\n\ndata:b\n\ndata:  c\n\n", "a", "b", " c")


def test_comments_blank_lines_and_other_fields_are_passed_over() -> None:
    check(
        b": ping\n\n:\n\n\n\nid: 7\nretry: 3000\nnonsense\ndata: a\n: in between\ndata: b\n\n",
        "a\nb",
    )


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_each_line_end_ends_a_line(end: bytes) -> None:
    check(end.join([b"data: a", b"data: b", b"", b"data: c", b"", b""]), "a\nb", "c")


def test_mixed_line_ends() -> None:
    check(b"data: a\r\n\ndata: b\r\rdata: c\n\r\n", "a", "b", "c")


def test_the_event_is_complete_with_its_last_cr_already() -> None:
    reader = EventReader()
    assert reader.feed(b"data: a\r\r") == [b"a"]
    assert reader.feed(b"\ndata: b\r\n\r") == [b"b"]
    assert reader.feed(b"\n") == []


def test_a_byte_order_mark_at_the_start_only() -> None:
    check("\ufeffdata: \ufeffa\n\n".encode(), "\ufeffa")


def test_names_are_passed_over() -> None:
    check(b"event: error\ndata: a\n\ndata: b\n\nevent: ping\n\ndata: c\n\n",
          "a", "b", "c")  # fmt: skip


def test_data_without_a_value_is_an_empty_line() -> None:
    check(b"data: a\ndata\ndata: b\n\ndata:\n\n", "a\n\nb", "")


@pytest.mark.parametrize(
    "mark", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e"]
)
def test_only_cr_and_lf_end_a_line(mark: str) -> None:
    check(f"data: é{mark}漢🙂\n\n".encode(), f"é{mark}漢🙂")


@pytest.mark.parametrize("end", [b"", b"\n", b"\r", b"\r\n"])
def test_the_last_event_may_lack_its_blank_line(end: bytes) -> None:
    check(b"data: a\n\ndata: b" + end, "a", "b")


LINES = st.sampled_from(
    [
        "data: é漢🙂",
        "data:x",
        "data",
        ": c",
        "event: e",
        "event",
        "id: 1",
        "\u2028",
        "",
        "",
        "data: \u0085",
    ]
)
ENDS = st.sampled_from(["\n", "\r", "\r\n"])


@given(st.lists(st.tuples(LINES, ENDS), max_size=12), st.data())
def test_any_split_gives_the_same_events(lines: list[tuple[str, str]], data: st.DataObject) -> None:
    stream = "".join(line + end for line, end in lines).encode()
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=6).map(sorted))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert read(*chunks) == read(stream)


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8")), max_size=5), ENDS)
def test_what_is_written_is_read(texts: list[str], end: str) -> None:
    stream = "".join(f"data: {text}{end}{end}" for text in texts).encode()
    assert read(stream) == texts


@pytest.mark.parametrize("chunk", [b"x" * 50, b"data: " + b"x" * 30 + b"\n", b"data\n"])
def test_an_event_without_an_end_is_refused(chunk: bytes) -> None:
    reader = EventReader(max_event_bytes=200)
    chunks = [chunk + b"data: yyyy\n" * (chunk == b"data\n")] * 100
    with pytest.raises(EventTooLargeError):
        list(map(reader.feed, chunks))


def test_many_events_larger_than_the_limit_together_are_fine() -> None:
    reader = EventReader(max_event_bytes=200)
    events = [event for _ in range(100) for event in reader.feed(b"data: " + b"x" * 90 + b"\n\n")]
    assert events == [b"x" * 90] * 100
