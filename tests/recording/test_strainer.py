"""No secret in bytes that come in pieces, however they are cut (B52)."""

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiro.recording.strainer import MAX_HELD_BYTES, SHORTEST_START, Secrets, Strainer

SECRET = "sk-c0ffee-5ec4e7"
ODD = 'p"ä/ss\\word&1'


def strained(*pieces: bytes, secrets: tuple[str, ...] = (SECRET,)) -> list[bytes]:
    """What comes out when all is told, piece by piece."""
    strainer = _strainer(*secrets)
    out: list[bytes] = []
    for piece in pieces:
        strainer.feed(piece)
        out += strainer.take()
    return [*out, *strainer.take_all()]


def delta(text: str) -> bytes:
    chunk = {"id": "chat-1", "choices": [{"delta": {"content": text}, "finish_reason": None}]}
    return f"data: {json.dumps(chunk)}\n\n".encode()


def said(stream: bytes) -> str:
    """The text that a reader of such a stream puts together."""
    events = [json.loads(line[6:]) for line in stream.decode().split("\n\n") if line]
    return "".join(event["choices"][0]["delta"]["content"] for event in events)


@pytest.mark.parametrize("at", range(1, len(SECRET)))
def test_secret_is_cut_by_the_network(at: int) -> None:
    before, after = f'{{"error": "no {SECRET[:at]}'.encode(), f'{SECRET[at:]} here"}}'.encode()
    first, second = strained(before, after)
    assert json.loads(first + second) == {"error": "no [secret] here"}


@pytest.mark.parametrize("at", range(1, len(SECRET)))
def test_secret_is_spelled_in_two_deltas(at: int) -> None:
    first, *rest = strained(delta(f"It is {SECRET[:at]}"), delta(f"{SECRET[at:]}, really"))
    assert SECRET[:at] not in said(first) or at < SHORTEST_START
    assert SECRET[at:] not in said(b"".join(rest))


def test_secret_is_spelled_letter_by_letter_in_pieces_of_three_bytes() -> None:
    stream = b"".join(map(delta, SECRET))
    pieces = [stream[n : n + 3] for n in range(0, len(stream), 3)]
    out = strained(*pieces)
    assert len(out) == len(pieces)
    assert said(b"".join(out)).replace("[secret]", "") in ("", "sk-")


def test_half_a_secret_at_the_end_is_cut() -> None:
    """A stream that breaks off in the middle of a key still shows most of it."""
    assert said(strained(delta(f"It is {SECRET[:10]}"))[0]) == "It is [secret]"
    assert strained(f"It is {SECRET[:10]}".encode()) == [b"It is [secret]"]


def test_rest_of_a_secret_that_was_not_waited_for_is_cut() -> None:
    strainer = _strainer(SECRET)
    strainer.feed(delta(SECRET[:7]))
    (first,) = strainer.take_all()
    strainer.feed(delta(SECRET[7:10]))
    strainer.feed(delta(SECRET[10:] + "!"))
    text = said(first + b"".join(strainer.take_all()))
    assert text.replace("[secret]", "") == "!"


@pytest.mark.parametrize(
    "shown",
    [
        ODD,
        json.dumps(ODD)[1:-1],
        json.dumps(ODD, ensure_ascii=False)[1:-1],
        quote(ODD),
        quote(ODD, ""),
    ],
)
def test_secret_is_found_in_each_spelling(shown: str) -> None:
    assert strained(f"<{shown}>".encode(), secrets=(ODD,)) == [b"<[secret]>"]


def test_short_values_are_no_secrets() -> None:
    """Else a dummy key such as "x" would make the file unreadable."""
    assert strained(b"xx none xx", secrets=("x", "none", "")) == [b"xx none xx"]


def test_pieces_without_a_secret_come_at_once_and_unchanged() -> None:
    strainer = _strainer(SECRET)
    pieces = [delta("one"), delta("two")[:30], delta("two")[30:], b"\xff\xfe", b"", b"{}"]
    came = []
    for piece in pieces[:1] + pieces[3:]:
        strainer.feed(piece)
        came += strainer.take()
    assert came == pieces[:1] + pieces[3:]
    assert strained(*pieces) == pieces


def test_waiting_has_an_end() -> None:
    """A string that never ends is not kept in memory for ever."""
    strainer = _strainer(SECRET)
    strainer.feed(b'{"content": "')
    assert strainer.take() == []
    strainer.feed(b"x" * MAX_HELD_BYTES)
    assert sum(map(len, strainer.take())) > MAX_HELD_BYTES


PARTS = st.sampled_from([SECRET, SECRET[:5], SECRET[:12], SECRET[4:], "s", "hello ", "sk-sk-", "é"])


@given(st.lists(PARTS, max_size=6), st.data())
def test_secret_is_never_readable(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    texts = [text[at:end] for at, end in _spans(len(text), data, [1, 2, 5, 9])]
    stream = b"".join(map(delta, texts))
    pieces = [stream[at:end] for at, end in _spans(len(stream), data, [1, 7, 40, 200])]
    out = strained(*pieces)
    assert len(out) == len(pieces)
    whole = b"".join(out)
    assert SECRET not in said(whole)
    assert SECRET.encode() not in whole
    if SECRET not in text and not any(text.endswith(SECRET[:n]) for n in range(4, len(SECRET))):
        assert out == pieces


def _strainer(*secrets: str) -> Strainer:
    kept_out = Secrets()
    kept_out.add(secrets)
    return Strainer(kept_out)


def _spans(length: int, data: st.DataObject, sizes: list[int]) -> Iterator[tuple[int, int]]:
    at = 0
    while at < length:
        size = data.draw(st.sampled_from(sizes))
        yield at, at + size
        at += size
