"""No secret in bytes that come in pieces, however they are cut (B52)."""

import itertools
import json
import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiro.recording import strainer as strainer_module
from tiro.recording.shapes import shapes_in
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
    assert said(b"".join(out)).replace("[secret]", "") in ("", "sk", "sk-")


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
    is_begun = any(text.endswith(SECRET[:n]) for n in range(4, len(SECRET)))
    if SECRET not in text and not is_begun and not re.search(r"sk-[\w-]{8}", text):
        assert out == pieces


def _strainer(*secrets: str) -> Strainer:
    kept_out = Secrets()
    kept_out.add(secrets)
    return Strainer(kept_out)


def _spans(length: int, data: st.DataObject, sizes: list[int]) -> Iterator[tuple[int, int]]:
    drawn = data.draw(st.lists(st.sampled_from(sizes), min_size=1, max_size=12))
    at = 0
    for size in itertools.cycle(drawn):
        if at >= length:
            return
        yield at, at + size
        at += size


KEYS = [
    "sk-ant-api03-" + "a1B2c3D4e5" * 6,
    "ghp_" + "a1B2c3D4e5F6" * 3,
    "AKIA" + "A1B2C3D4E5F6G7H8",
    "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl1",
]
LINES = ("a1B2c3D4e5F6g7H8" * 4 + "\n") * 25
PRIVATE = f"-----BEGIN PRIVATE KEY-----\n{LINES}-----END PRIVATE KEY-----"


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize("cut", [11, 100_000])
def test_what_looks_like_a_key_is_cut_though_nobody_named_it(key: str, size: int, cut: int) -> None:
    """A key that somebody pastes, or a tool reads, spelled in deltas and cut by the network."""
    shown = _shown(f"My key is {key}, and that is all.", size, cut)
    left = shown.removeprefix("My key is ").removesuffix(", and that is all.")
    assert left == key[: len(left)]
    assert len(left) <= SHORTEST_START


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize("cut", [11, 100_000])
def test_a_password_in_an_address_is_cut_however_it_is_spelled(size: int, cut: int) -> None:
    """What makes it one, the @, comes behind it."""
    shown = _shown("See https://me:hunter2pass@h.org/x?token=a1b2c3d4e5 now", size, cut)
    assert shown == "See https://me:@h.org/x?token= now"


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_an_address_without_a_password_stays_also_at_the_end(size: int) -> None:
    text = "It runs at http://localhost:11434/v1?n=2 or http://some-name-0123456789:11434"
    assert _shown(text, size, 1000) == text


@pytest.mark.parametrize("size", [5, 300, 9000])
def test_a_private_key_is_cut(size: int) -> None:
    shown = _shown(f"See {PRIVATE}, and that is all.", size, 1000)
    assert shown.startswith("See ")
    assert shown.endswith(", and that is all.")
    assert "a1B2" not in shown


@pytest.mark.parametrize("at", range(12, 31, 3))
def test_a_private_key_is_cut_where_its_first_line_is_and_the_rest_comes_at_once(at: int) -> None:
    shown = said(b"".join(strained(delta(PRIVATE[:at]), delta(PRIVATE[at:]), secrets=())))
    assert "a1B2" not in shown


@pytest.mark.parametrize("key", KEYS)
def test_a_key_in_a_body_and_the_beginning_of_one_at_an_end(key: str) -> None:
    body = json.dumps({"text": f"export KEY={key}", "list": [key], "n": 1}).encode()
    (out,) = strained(body, secrets=())
    assert json.loads(out) == {"text": "export KEY=[secret]", "list": ["[secret]"], "n": 1}
    assert strained(f"It is {key[:-2]}".encode(), secrets=())[0].startswith(b"It is [secret]")


def test_an_open_private_key_does_not_cut_what_follows_it() -> None:
    body = json.dumps({"text": PRIVATE[:500], "next": ["word"] * 50}).encode()
    (out,) = strained(body, secrets=())
    assert json.loads(out) == {"text": "[secret]", "next": ["word"] * 50}


def test_words_that_begin_like_keys_stay() -> None:
    words = [delta("a task-force, sk-"), delta("fading-circle and eyJ"), delta(" or AKIA.")]
    assert strained(*words, secrets=()) == words


def _shown(text: str, size: int, cut: int) -> str:
    """A text that was spelled in deltas of this size and cut into pieces, less what was cut out."""
    stream = b"".join(delta(text[at : at + size]) for at in range(0, len(text), size))
    pieces = [stream[at : at + cut] for at in range(0, len(stream), cut)]
    out = strained(*pieces, secrets=())
    assert len(out) == len(pieces)
    return said(b"".join(out)).replace("[secret]", "")


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_a_key_is_cut_that_follows_a_letter_of_another_text(key: str, size: int) -> None:
    """Two texts under one key: where the first ends with a letter, the key is no part of a word."""
    deltas = [delta("All is ok"), *(delta(key[at : at + size]) for at in range(0, len(key), size))]
    shown = said(b"".join(strained(*deltas, delta(", it is."), secrets=())))
    left = shown.replace("[secret]", "").removeprefix("All is ok").removesuffix(", it is.")
    assert left == key[: len(left)]
    assert len(left) <= SHORTEST_START


def of_block(index: int, text: str) -> bytes:
    return f'data: {{"index": {index}, "delta": {{"text": {json.dumps(text)}}}}}\n\n'.encode()


@pytest.mark.parametrize("key", [*KEYS, SECRET])
def test_a_key_is_cut_that_comes_in_turns_with_another_block(key: str) -> None:
    """As arguments of two tool uses do: each block is a text of its own."""
    pieces = [of_block(index, letter) for letter in f" {key} " for index in (0, 1)]
    out = b"".join(strained(*pieces)).decode()
    for block in "01":
        letters = re.findall(rf'"index": {block}, "delta": {{"text": "([^"]*)"', out)
        left = "".join(letters).replace("[secret]", "").strip()
        assert left == key[: len(left)]
        assert len(left) <= SHORTEST_START


def escaped(text: str, backslashes: str = "\\") -> str:
    return "".join(f"{backslashes}u{ord(letter):04x}" for letter in text)


@pytest.mark.parametrize("key", [*KEYS, SECRET])
@pytest.mark.parametrize("cut", [7, 40, 1000])
@pytest.mark.parametrize("backslashes", ["\\", "\\\\"])
def test_a_key_is_cut_however_json_writes_its_letters(key: str, cut: int, backslashes: str) -> None:
    """Some of them by their numbers, here every second one, or all; also of JSON in JSON."""
    half = "".join(
        letter if at % 2 else escaped(letter, backslashes) for at, letter in enumerate(key)
    )
    for written in (half, escaped(key, backslashes)):
        body = f'{{"content": "It is {written}, no?"}}'.encode()
        pieces = [body[at : at + cut] for at in range(0, len(body), cut)]
        whole = json.loads(b"".join(strained(*pieces)))["content"]
        text = json.loads(f'"{whole}"').replace("[secret]", "")
        left = text.removeprefix("It is ").removesuffix(", no?")
        assert left == key[: len(left)]
        assert len(left) <= SHORTEST_START


def test_a_long_key_that_comes_letter_by_letter_is_searched_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a private key costs seconds, and the recording misses its end."""
    looked: list[int] = []

    def counted(data: bytes) -> list[tuple[int, int]]:
        looked.append(len(data))
        return shapes_in(data)

    monkeypatch.setattr(strainer_module, "shapes_in", counted)
    costs = []
    for lines in (LINES, 4 * LINES):
        key = f"-----BEGIN PRIVATE KEY-----\n{lines}-----END PRIVATE KEY-----"
        looked.clear()
        shown = said(b"".join(strained(*map(delta, key), delta(", that is all."), secrets=())))
        assert "a1B2" not in shown
        costs.append(sum(looked))
    assert costs[1] < 5 * costs[0]


def test_no_more_than_the_letters_of_an_escape_is_cut() -> None:
    text = r'{"a": "\u0041\u0042 caf\u00e9 \/ \u0022\\u00e9", "b": "' + escaped(KEYS[1]) + '"}'
    (out,) = strained(text.encode(), secrets=())
    assert json.loads(out) == {"a": 'AB caf\u00e9 / "\\u00e9', "b": "[secret]"}
