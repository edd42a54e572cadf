"""The JSON of chat completions answers: what is read of it, and a quick way past most of it."""

import json
import re
from typing import Any

import msgspec
from msgspec import Struct

LESSONS = 8
"""How many events are looked at for a shape, before it is clear that this server has none."""


class WirePiece(Struct):
    """A `delta` of a stream or the `message` of a whole answer; servers put anything into it."""

    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    thinking: Any = None
    refusal: Any = None
    tool_calls: Any = None
    function_call: Any = None
    """What came before `tool_calls`, and some older servers still send."""


class WireChoice(Struct):
    """One of several answers; only the first is read."""

    delta: WirePiece | None = None
    message: WirePiece | None = None
    finish_reason: Any = None
    error: Any = None


class WireAnswer(Struct):
    """A whole answer, or one event of a stream."""

    choices: list[WireChoice] | None = None
    usage: Any = None
    error: Any = None
    object: Any = None
    message: Any = None
    code: Any = None
    type: Any = None
    prompt_progress: Any = None


_DECODER = msgspec.json.Decoder(WireAnswer)
_STRING_BODIES = re.compile(rb'(?:[^"\\\x00-\x1f]++|\n|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
"""What stands between the quotes of JSON strings, each body on a line of its own."""
_PROBE = "\u2603"


def decode_answer(data: bytes) -> WireAnswer:
    """Read strictly first; what only Python's `json` accepts is read too, but no odd shapes.

    Halves of characters outside the BMP stay halves: the next event may hold the other one.
    Raises ValueError or RecursionError.
    """
    try:
        return _DECODER.decode(data)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.convert(json.loads(data.decode("utf-8", "replace")), WireAnswer)


class TextShape:
    """The bytes around the text, which are the same in most events of a stream.

    An event with the same bytes around another JSON string is the same event with another text.
    So the texts of a burst are cut out and read together: that costs a fifth.
    """

    def __init__(self) -> None:
        self._before = self._after = b""
        self._lessons = LESSONS

    def text_in(self, events: list[bytes]) -> str | None:
        """Their texts joined, if all of them are of the shape that was learned."""
        before, after = self._before, self._after
        if not before or not events or min(map(len, events)) < len(before) + len(after):
            return None
        start, end = len(before), -len(after)
        texts = [e[start:end] for e in events if e.startswith(before) and e.endswith(after)]
        if len(texts) != len(events) or _STRING_BODIES.fullmatch(b"\n".join(texts)) is None:
            return None
        try:
            return msgspec.json.decode(b'"%b"' % b"".join(texts), type=str)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    def learn(self, data: bytes, answer: WireAnswer) -> None:
        """Take this event's shape, if it holds text and nothing else."""
        if not self._lessons or not answer.choices:
            return
        self._lessons -= 1
        text = _only_text(answer)
        if not text:
            return
        quoted = b'"' + text.encode("utf-8", "replace") + b'"'
        at = data.rfind(quoted) + 1
        before, after = data[:at], data[at + len(quoted) - 2 :]
        if at and _text_of(before + _PROBE.encode() + after) == _PROBE:
            self._before, self._after = before, after


def _text_of(data: bytes) -> str | None:
    """The text of an event with nothing but text."""
    try:
        answer = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return _only_text(answer)


def _only_text(answer: WireAnswer) -> str | None:
    """The text of an answer in which nothing else could be missed."""
    match answer:
        case WireAnswer(choices=[WireChoice(delta=WirePiece(content=str(text)))]):
            only = [WireChoice(delta=WirePiece(content=text))]
            return text if answer == WireAnswer(choices=only, object=answer.object) else None
        case _:
            return None
