"""Replies of the local provider in the Anthropic style; the sibling of `replies`.

The functions of the same name make the same reply in this style. `answer` takes blocks that are
opened, filled and closed one after the other, as the real API streams them.
"""

import json
from collections.abc import Iterable
from typing import Any

from tests.e2e.replies import Reply, Step

Piece = dict[str, Any]
STOP_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}
"""The stop reasons of the other style, as this one names them."""


def event(kind: str, **fields: Any) -> bytes:
    """One event with its name, its JSON unescaped, as the real API sends it."""
    data = json.dumps({"type": kind, **fields}, ensure_ascii=False).encode()
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)


def start(**usage: int) -> bytes:
    """The event that opens every stream."""
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "fake-model",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 1, **usage},
    }
    return event("message_start", message=message)


PING = event("ping")
STOP = event("message_stop")


def opened(index: int, **block: Any) -> bytes:
    """The start of a block."""
    return event("content_block_start", index=index, content_block=block)


def filled(index: int, **delta: Any) -> bytes:
    """A piece of a block."""
    return event("content_block_delta", index=index, delta=delta)


def closed(index: int) -> bytes:
    """The end of a block."""
    return event("content_block_stop", index=index)


def text_block(index: int, *pieces: str) -> list[bytes]:
    """A block of text in pieces, without its end when it has none."""
    deltas = [filled(index, type="text_delta", text=piece) for piece in pieces]
    return [opened(index, type="text", text=""), *deltas, closed(index)]


def thinking_block(index: int, *pieces: str, signature: str | None) -> list[bytes]:
    """A block of thinking; without a signature it is cut before it is signed."""
    deltas = [filled(index, type="thinking_delta", thinking=piece) for piece in pieces]
    steps = [opened(index, type="thinking", thinking="", signature=""), *deltas]
    if signature is None:
        return steps
    return [*steps, filled(index, type="signature_delta", signature=signature), closed(index)]


def redacted_block(index: int, data: str) -> list[bytes]:
    """A block of thinking that only the provider can read."""
    return [opened(index, type="redacted_thinking", data=data), closed(index)]


def use_block(index: int, id_: str, name: str, *pieces: str) -> list[bytes]:
    """A tool use with its input in pieces."""
    deltas = [filled(index, type="input_json_delta", partial_json=piece) for piece in pieces]
    head = opened(index, type="tool_use", id=id_, name=name, input={})
    return [head, *deltas, closed(index)]


def ending(stop: str = "end_turn", **usage: int) -> list[Step]:
    """The regular end of a stream: stop reason and usage, message_stop."""
    delta = {"stop_reason": STOP_REASONS.get(stop, stop), "stop_sequence": None}
    return [event("message_delta", delta=delta, usage={"output_tokens": 5, **usage}), STOP]


def answer(
    *blocks: list[bytes], stop: str = "end_turn", usage: dict[str, int] | None = None
) -> Reply:
    """A whole answer of those blocks."""
    told = usage or {}
    at_end = {key: value for key, value in told.items() if key == "output_tokens"}
    at_start = {key: value for key, value in told.items() if key != "output_tokens"}
    steps = [step for block in blocks for step in block]
    return Reply([start(**at_start), PING, *steps, *ending(stop, **at_end)])


def text(*pieces: str, finish: str = "stop") -> Reply:
    """An assistant text, one delta for each piece."""
    return answer(text_block(0, *pieces), stop=finish)


def tools(*uses: tuple[str, str, Any], before: str = "", finish: str = "tool_use") -> Reply:
    """Tool uses, given as (id, name, input), after an optional text."""
    blocks = [text_block(0, before)] if before else []
    for id_, name, given in uses:
        raw = json.dumps(given) if isinstance(given, dict) else given
        blocks.append(use_block(len(blocks), id_, name, raw[:3], raw[3:]))
    return answer(*blocks, stop=finish)


def fault(message: str = "Overloaded", kind: str = "overloaded_error") -> bytes:
    """An error in the middle of a stream."""
    return event("error", error={"type": kind, "message": message})


KINDS = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error",
    404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error",
    529: "overloaded_error",
}  # fmt: skip


def error(status: int, message: str = "no", headers: Iterable[tuple[str, str]] = ()) -> Reply:
    """A refusal in this style's format."""
    fields = {"type": KINDS.get(status, "api_error"), "message": message}
    body = json.dumps({"type": "error", "error": fields, "request_id": "req_1"}).encode()
    given = [("content-type", "application/json"), *headers]
    return Reply([body], status=status, headers=given, framing="length")


def plain(*content: dict[str, Any], stop: str = "end_turn") -> Reply:
    """A whole message that is not streamed."""
    body = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "fake-model",
        "content": list(content), "stop_reason": stop, "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }  # fmt: skip
    given = [("content-type", "application/json")]
    return Reply([json.dumps(body).encode()], headers=given, framing="length")
