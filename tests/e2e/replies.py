"""Replies of the local provider: exact bytes in exact chunks, with pauses, holds and breaks.

A `Reply` is a status, headers and steps. A step is bytes (one write), a `Pause`, a `Hold` (until a
test releases it), a `Break` (the connection ends there) or an `Endless` (it never ends). Status and
headers go out with the first bytes, so a pause or hold in front of them is a provider that has not
answered at all; the step b"" sends the headers alone. The functions below make the common replies
of the OpenAI style; a test with odd bytes writes its own steps.
"""

import json
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from tests.sizes import PATIENCE

EVENT_STREAM = "text/event-stream"
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Pause:
    """Nothing is sent for that long; it ends early when the client goes away."""

    seconds: float


@dataclass(frozen=True)
class Break:
    """The connection ends here: closed cleanly, or reset."""

    reset: bool = False


@dataclass
class Hold:
    """Nothing is sent until a test releases it; `reached` tells the test that it is there."""

    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def wait(self, timeout: float = PATIENCE) -> None:
        """Wait until the provider has come to this step."""
        assert self.reached.wait(timeout), "the provider never came to the hold"

    def release(self) -> None:
        """Let the provider go on."""
        self.released.set()


@dataclass(frozen=True)
class Endless:
    """The same bytes over and over, as long as the client reads them."""

    data: bytes


Step = bytes | Pause | Hold | Break | Endless
Framing = Literal["chunked", "length", "close", "raw"]


@dataclass(frozen=True)
class Reply:
    """One answer; "chunked": each bytes step is one chunk; "raw": the steps hold the head too."""

    steps: Sequence[Step] = ()
    status: int = 200
    headers: Sequence[tuple[str, str]] = (("content-type", EVENT_STREAM),)
    framing: Framing = "chunked"


def event(payload: Any) -> bytes:
    """One server-sent event, its JSON unescaped, as real providers send it."""
    return b"data: " + json.dumps(payload, ensure_ascii=False).encode() + b"\n\n"


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **extra: Any) -> bytes:
    """One chat.completion.chunk event with that delta and finish reason."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return event(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1700000000,
            "model": "fake-model",
            "choices": [choice],
            **extra,
        }
    )


ROLE = chunk({"role": "assistant", "content": ""})
"""The chunk that opens every stream."""


def text_chunk(text: str) -> bytes:
    """One chunk of assistant text."""
    return chunk({"content": text})


def usage_chunk(prompt: int = 10, completion: int = 5, cached: int = 0) -> bytes:
    """The last chunk of a stream with include_usage: no choices, only usage."""
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return event(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1700000000,
            "model": "fake-model",
            "choices": [],
            "usage": usage,
        }
    )


def ending(finish: str = "stop", usage: bytes | None = None) -> list[Step]:
    """The regular end of a stream: finish reason, usage, [DONE]."""
    return [chunk(finish=finish), usage_chunk() if usage is None else usage, DONE]


def stream(*steps: Step, finish: str = "stop", usage: bytes | None = None) -> Reply:
    """A stream of those steps with its regular end."""
    return Reply([ROLE, *steps, *ending(finish, usage)])


def text(*pieces: str, finish: str = "stop", usage: bytes | None = None) -> Reply:
    """An assistant text, one delta for each piece."""
    return stream(*[text_chunk(piece) for piece in pieces], finish=finish, usage=usage)


def call(
    id_: str | None, name: str | None, arguments: Any, index: int | None = 0
) -> dict[str, Any]:
    """One entry of a delta's tool_calls; None leaves a field out, a dict becomes its JSON."""
    given = json.dumps(arguments) if isinstance(arguments, dict) else arguments
    function = {"name": name, "arguments": given}
    entry: dict[str, Any] = {"index": index, "id": id_, "type": "function" if id_ else None}
    entry = {key: value for key, value in entry.items() if value is not None}
    entry["function"] = {key: value for key, value in function.items() if value is not None}
    return entry


def calls_chunk(*entries: dict[str, Any]) -> bytes:
    """One chunk with those tool_calls entries."""
    return chunk({"tool_calls": list(entries)})


def tools(*uses: tuple[str, str, Any], before: str = "", usage: bytes | None = None) -> Reply:
    """Tool calls, given as (id, name, input), after an optional text."""
    steps: list[Step] = [text_chunk(before)] if before else []
    steps += [calls_chunk(call(id_, name, "", i)) for i, (id_, name, _) in enumerate(uses)]
    steps += [calls_chunk(call(None, None, given, i)) for i, (_, _, given) in enumerate(uses)]
    return stream(*steps, finish="tool_calls", usage=usage)


def error(
    status: int, message: str = "no", headers: Iterable[tuple[str, str]] = (), code: str = "error"
) -> Reply:
    """A refusal in the provider's error format."""
    body = json.dumps({"error": {"message": message, "type": code, "param": None, "code": code}})
    given = [("content-type", "application/json"), *headers]
    return Reply([body.encode()], status=status, headers=given, framing="length")


def page(status: int = 200, text: str = "<html>nothing to see</html>") -> Reply:
    """A web page where an API should be."""
    return Reply(
        [text.encode()], status=status, headers=[("content-type", "text/html")], framing="length"
    )


def plain(message: str = "ok") -> Reply:
    """A whole chat completion that is not streamed."""
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "fake-model",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": message},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }
    given = [("content-type", "application/json")]
    return Reply([json.dumps(body).encode()], headers=given, framing="length")


def split(raw: bytes, *positions: int) -> list[Step]:
    """Cut bytes at those positions, to be sent as separate chunks."""
    edges = [0, *positions, len(raw)]
    return [raw[a:b] for a, b in pairwise(edges) if a < b]
