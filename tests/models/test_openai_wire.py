"""A burst is read quickly and exactly as it is read event by event."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.wire import joined, settings
from tiro.errors import ModelError
from tiro.models.openai_answer import AnswerReader
from tiro.models.openai_wire import TextShape, decode_answer


def event(body: str, **more: Any) -> bytes:
    """An event whose text is this JSON string body, right or wrong."""
    piece: dict[str, Any] = {"content": "@", **more}
    choice = {"index": 0, "delta": piece, "finish_reason": None}
    data = {"id": "chatcmpl-1", "model": "@m", "choices": [choice], "usage": None}
    return json.dumps(data).replace('"content": "@"', f'"content": "{body}"').encode()


FIRST = event("first")


def read(*bursts: list[bytes]) -> tuple[str, bool]:
    """The text, and whether it ended in an error."""
    reader = AnswerReader(settings())
    deltas = reader.read_events([])
    try:
        for burst in bursts:
            deltas += reader.read_events(burst)
        deltas += reader.read_events([b"[DONE]"])
        deltas += reader.close()
    except ModelError:
        return joined(deltas), True
    return joined(deltas), False


BODIES = st.one_of(
    st.text(max_size=6).map(lambda text: json.dumps(text)[1:-1]),
    st.text(max_size=6).map(lambda text: json.dumps(text, ensure_ascii=False)[1:-1]).filter(
        lambda body: all(not "\ud800" <= char <= "\udfff" for char in body)
    ),
    st.sampled_from(["\\ud83d", "\\ude42", "\\n", "\\", '"', '\\"', "\\u12", "\x0b", "\n", ""]),
    st.sampled_from(['x"},"finish_reason":"stop"}],"y":[{"z":"', '","tool_calls":[],"role":"']),
)  # fmt: skip


@given(st.lists(BODIES, max_size=8))
def test_a_burst_gives_what_its_events_give(bodies: list[str]) -> None:
    events = [event(body) for body in bodies]
    one_by_one, failed = read([FIRST], *([e] for e in events))
    together, also_failed = read([FIRST], events)
    assert failed == also_failed
    assert failed or together == one_by_one


@given(st.lists(st.sampled_from([FIRST, event("é漢🙂"), event("x", role="assistant"),
                                 event("y", reasoning="hm"), event("a\\nb")]), max_size=10),
       st.data())  # fmt: skip
def test_other_events_in_between(events: list[bytes], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(events)))
    assert read(events[:cut], events[cut:]) == read(*([e] for e in events))


def test_a_shape_is_learned_and_holds_for_any_text() -> None:
    shape = TextShape()
    shape.learn(FIRST, decode_answer(FIRST))
    assert shape.text_in([event("a"), event("\\u00e9\\n"), event("漢")]) == "aé\n漢"
    assert shape.text_in([event("\\ud83d"), event("\\ude42")]) == "🙂"


@pytest.mark.parametrize(
    "other",
    [
        event("a", reasoning="b"),
        event("a").replace(b"null", b'"stop"', 1),
        event("a").replace(b"chatcmpl-1", b"chatcmpl-2"),
        event("a")[:-1],
        event("a") + b" ",
        event("\\"),
        event('"'),
        event("\\ud83d"),
        FIRST.replace(b'first"', b""),
        b"",
    ],
)
def test_an_event_of_another_shape_is_not_taken_for_text(other: bytes) -> None:
    shape = TextShape()
    shape.learn(FIRST, decode_answer(FIRST))
    assert shape.text_in([event("a"), other, event("a")]) is None


@pytest.mark.parametrize(
    "odd",
    [
        event(""),
        event("a", tool_calls=[{}]),
        event("@m").replace(b'"content": "@m"', b'"content": 1'),
        b'{"choices":[]}',
        b'{"usage":{}}',
    ],
)
def test_nothing_is_learned_from_an_event_without_only_text(odd: bytes) -> None:
    shape = TextShape()
    shape.learn(odd, decode_answer(odd))
    assert shape.text_in([odd]) is None


def test_a_text_that_stands_elsewhere_too() -> None:
    """The last place where the text stands may not be the content."""
    data = event("stop").replace(b'"usage": null', b'"usage": null, "z": "stop"')
    shape = TextShape()
    shape.learn(data, decode_answer(data))
    assert shape.text_in([data]) in (None, "stop")
