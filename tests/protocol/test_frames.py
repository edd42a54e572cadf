"""Frames: protocol section 1. What arrives in odd pieces, what is no JSON, who does not read."""

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.sizes import PATIENCE
from tiro.protocol import frames
from tiro.protocol.frames import (
    MAX_BODY_BYTES,
    BrokenFrameError,
    FrameParser,
    FrameReader,
    FrameWriter,
    decode_body,
    encode_body,
    frame,
)
from tiro.session.json_text import is_nested_deeper

BODY = b'{"jsonrpc": "2.0"}'


def parsed(*pieces: bytes) -> list[bytes]:
    parser = FrameParser()
    return [body for piece in pieces for body in parser.feed(piece)]


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: 18\r\n\r\n",
        b"content-length: 18\r\n\r\n",
        b"CONTENT-LENGTH:18\r\n\r\n",
        b"Content-Length :\t 18  \r\n\r\n",
        b"Content-Length: 18\n\n",
        b"Content-Length: 18\r\n\n",
        b"Content-Length: 18\n\r\n",
        b"Content-Length: 0018\r\n\r\n",
        b"Content-Length: 18\r\nContent-Length: 18\r\n\r\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 18\r\n\r\n",
        b"X-Odd\r\nContent-Length: 18\r\n\r\n",
    ],
)
def test_a_header_block_is_read_however_it_is_written(header: bytes) -> None:
    assert parsed(header + BODY) == [BODY]
    assert parsed(*[bytes([byte]) for byte in header + BODY]) == [BODY]
    assert parsed(header + BODY + header + BODY) == [BODY, BODY]


@pytest.mark.parametrize(
    "header",
    [
        b"\r\n",
        b"\n\n",
        b"X-Odd: 1\r\n\r\n",
        b"Content-Length: \r\n\r\n",
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: +1\r\n\r\n",
        b"Content-Length: 1.0\r\n\r\n",
        b"Content-Length: 1e3\r\n\r\n",
        b"Content-Length: 0x10\r\n\r\n",
        b"Content-Length: 1_0\r\n\r\n",
        "Content-Length: ٣\r\n\r\n".encode(),
        b"Content-Length: 18\r\nContent-Length: 19\r\n\r\n",
        b"Content-Length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1),
        b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
        b"x" * 10_000,
    ],
)
def test_a_header_block_without_usable_length_is_broken(header: bytes) -> None:
    with pytest.raises(BrokenFrameError):
        parsed(header)
    with pytest.raises(BrokenFrameError):
        parsed(*[bytes([byte]) for byte in header])


def test_the_largest_length_is_usable_and_an_empty_body_is_a_body() -> None:
    assert parsed(b"Content-Length: %d\r\n\r\n" % MAX_BODY_BYTES) == []
    assert parsed(frame(b"") + frame(BODY)) == [b"", BODY]


@hypothesis.given(st.lists(st.binary(max_size=40), max_size=6), st.integers(1, 30))
def test_bodies_survive_any_chunking(bodies: list[bytes], size: int) -> None:
    stream = b"".join(map(frame, bodies))
    assert parsed(*[stream[i : i + size] for i in range(0, len(stream), size)]) == bodies


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b"nope",
        b'{"a": 1} x',
        b'{"a": 01}',
        b'"\xff"',
        b'"\xed\xa0\xbd"',  # a lone surrogate in the bytes themselves is no UTF-8
        b'"a\x01b"',
        "\ufeff{}".encode(),
        "{}".encode("utf-16"),
        b"[" * 201 + b"]" * 201,
        b"[" * 1000 + b"]" * 1000,
        b"[" * 100_000,
        b'{"a":' * 300_000,
        b"1" * 5000,
    ],
)
def test_what_is_no_json_or_nested_too_deeply_raises_value_error(body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # which one is no part of the contract
        decode_body(body)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"[" * 200 + b"]" * 200, None),
        (b'"\\ud83d"', "\ufffd"),
        (b'{"\\ud83d": "\\ud83d\\ude42"}', {"\ufffd": "\U0001f642"}),
        (b"[1e400, -1e400]", [None, None]),
        (b"123456789012345678901234567890", 123456789012345678901234567890),
        (b'"\\u0000"', "\0"),  # kept: only what goes to a client is cleaned of it
        (b'{"b": 1, "a": 2}', {"b": 1, "a": 2}),
    ],
)
def test_odd_json_is_read_and_cleaned(body: bytes, value: Any) -> None:
    read = decode_body(body)
    assert value is None or read == value


def test_brackets_in_text_do_not_count_as_nesting() -> None:
    value = {"text": "[" * 5000, "list": [[]] * 500}
    assert decode_body(json.dumps(value).encode()) == value


@hypothesis.given(st.integers(1, 12), st.integers(1, 12), st.booleans())
def test_nesting_is_counted_with_the_root_as_1(depth: int, limit: int, as_object: bool) -> None:
    value: Any = "leaf"
    for _ in range(depth):
        value = {"a": value, "b": 1} if as_object else [value, 1]
    assert is_nested_deeper(value, limit) == (depth > limit)


def test_what_goes_out_is_strict_json_for_every_editor() -> None:
    """B12: Emacs loses the whole message for a lone surrogate or a NUL."""
    value = {"a\ud83d": ["x\0y", "\ud83d\ude42", float("nan"), float("inf"), 2**70, {"\0": None}]}
    text = encode_body(value).decode("utf-8", "strict")
    assert "\\u0000" not in text
    assert json.loads(text, parse_constant=lambda _: pytest.fail("no JSON")) == {
        "a\ufffd": ["x\ufffdy", "\ufffd\ufffd", None, None, 2**70, {"\ufffd": None}]
    }


def test_a_backslash_before_u0000_is_text() -> None:
    assert json.loads(encode_body({"a": "\\u0000"})) == {"a": "\\u0000"}


@hypothesis.given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
        lambda inner: st.lists(inner) | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), inner
        ),
        max_leaves=15,
    )
)  # fmt: skip
def test_values_come_back_value_for_value(value: Any) -> None:
    back = decode_body(encode_body(value))
    assert back == value
    assert json.dumps(back) == json.dumps(value), "key order, int and float stay what they are"


# --- the writer -----------------------------------------------------------------------------------


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        with contextlib.suppress(OSError):
            os.close(end)


def test_frames_go_out_whole_and_in_order(pipe: tuple[int, int]) -> None:
    writer = FrameWriter(pipe[1], on_error=lambda error: pytest.fail(str(error)))
    bodies = [b'{"n": %d, "x": "%b"}' % (n, b"y" * (n * 37 % 5000)) for n in range(300)]
    got: list[bytes] = []

    def read() -> None:
        parser = FrameParser()
        while len(got) < len(bodies):
            got.extend(parser.feed(os.read(pipe[0], 1000)))

    reader = threading.Thread(target=read)
    reader.start()
    for body in bodies:
        writer.put(body)
    reader.join(PATIENCE)
    writer.close(5)
    assert got == bodies


def test_a_client_that_does_not_read_never_blocks_put(pipe: tuple[int, int]) -> None:
    """House 6.8: pygls' own writer stands still here, and the loop with it."""
    writer = FrameWriter(pipe[1], on_error=lambda error: None)
    idle = threading.Event()
    for _ in range(100):
        writer.put(b"x" * 100_000)
    assert not writer.when_idle(idle.set)
    left = 100 * (100_000 + len("Content-Length: 100000\r\n\r\n"))
    while left:
        left -= len(os.read(pipe[0], left))
    assert idle.wait(PATIENCE)
    assert writer.when_idle(lambda: pytest.fail("already idle"))
    writer.close(5)


def test_a_broken_pipe_is_told_once_and_frees_the_memory(pipe: tuple[int, int]) -> None:
    told: list[OSError] = []
    broken = threading.Event()

    def note(error: OSError) -> None:
        told.append(error)
        broken.set()

    writer = FrameWriter(pipe[1], on_error=note)
    os.close(pipe[0])
    for _ in range(50):
        writer.put(b"x" * 100_000)
    assert broken.wait(PATIENCE)
    writer.put(b"late")
    assert writer.has_room(0)
    writer.close(5)
    assert len(told) == 1
    assert writer.when_idle(lambda: None)


def test_closing_writes_what_is_queued(pipe: tuple[int, int]) -> None:
    writer = FrameWriter(pipe[1], on_error=lambda error: None)
    writer.put(BODY)
    writer.close(10)
    assert parsed(os.read(pipe[0], 1000)) == [BODY]


def test_a_non_blocking_descriptor_is_written_whole(pipe: tuple[int, int]) -> None:
    os.set_blocking(pipe[1], False)
    done = threading.Thread(target=frames.write_all, args=(pipe[1], b"z" * 500_000))
    done.start()
    total = 0
    while total < 500_000:
        total += len(os.read(pipe[0], 1 << 16))
    done.join(PATIENCE)
    assert total == 500_000


def test_the_writer_tells_when_far_too_much_is_unread(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "MAX_WAITING_BYTES", 200_000)
    writer = FrameWriter(pipe[1], on_error=lambda error: None)
    for _ in range(10):
        writer.put(b"x" * 100_000)
    assert not writer.has_room(0)
    assert not writer.has_room(0.01)
    for _ in range(9):
        left = 100_000
        while left:
            left -= len(os.read(pipe[0], left))
    assert writer.has_room(10)
    writer.close(0)


def test_a_hung_up_pipe_is_noticed_although_there_is_more_to_read(pipe: tuple[int, int]) -> None:
    assert not frames.is_hung_up(pipe[0])
    os.write(pipe[1], b"more")
    assert not frames.is_hung_up(pipe[0])
    os.close(pipe[1])
    assert frames.is_hung_up(pipe[0])


# --- the reader -----------------------------------------------------------------------------------


def heard(stream: bytes) -> list[Any]:
    """What a reader tells about a stream, in order."""
    read_end, write_end = os.pipe()
    told: list[Any] = []
    over = threading.Event()

    def end(error: BrokenFrameError | None) -> None:
        told.append("broken" if error else "end")
        over.set()

    reader = FrameReader(
        read_end,
        on_message=told.append,
        on_unreadable=lambda body: told.append("unreadable"),
        on_end=end,
    )
    reader.start()
    os.write(write_end, stream)
    os.close(write_end)
    assert over.wait(PATIENCE)
    os.close(read_end)
    return told


def test_the_reader_tells_messages_bad_bodies_and_the_end() -> None:
    stream = frame(b'{"a": 1}') + frame(b"") + frame(b"{") + frame(b"[2]")
    assert heard(stream) == [{"a": 1}, "unreadable", "unreadable", [2], "end"]


def test_after_a_broken_header_nothing_more_is_read() -> None:
    assert heard(frame(b"1") + b"Content-Length: x\r\n\r\n" + frame(b"2")) == [1, "broken"]


def test_a_body_cut_off_by_the_end_is_dropped() -> None:
    assert heard(frame(b"1") + frame(b'{"a": 1}')[:-3]) == [1, "end"]


def test_a_body_that_is_cut_within_a_string_takes_no_time() -> None:
    """As a client cuts it that counts characters for bytes; each quote was tried to the end."""
    body = b'{"jsonrpc":"2.0","id":7,"result":"' + b'\\"' * 1_000_000
    assert frames.answered_id(body) == 7
    assert frames.answered_id(b'{"id":7,"method":"' + b'\\"' * 1_000_000) is None
