"""An answer in the form of Anthropic's messages, streamed or whole, read into deltas.

Text that arrives together leaves together. What is signed stays as it came, byte for byte; events
of an unknown type are passed over, blocks of an unknown type are kept with what came into them.
What has no type is what its keys say: a server may leave that out, and text is never lost.
"""

import json
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from tiro.models import refusals
from tiro.models.joined_text import JoinedText
from tiro.models.model import (
    MAX_COUNT,
    BlockDone,
    Delta,
    Finished,
    Price,
    ProviderSettings,
    TextDelta,
    ThinkingDelta,
    ToolUseDelta,
    ToolUseDone,
)
from tiro.models.tool_input import UNNAMED, new_tool_id, read_tool_input
from tiro.session.json_text import MAX_NESTING, clean, encode, is_nested_deeper
from tiro.session.messages import StopReason, Usage

_STOP_REASONS: dict[str, StopReason] = {
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "refusal": "refusal",
}
"""What is not listed (`end_turn`, `stop_sequence`, `pause_turn`, `tool_use`) the model chose."""

_USAGE_KEYS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


_BLOCKS = {"text": "text", "thinking": "thinking"}
_DELTAS = {
    "text": "text_delta",
    "thinking": "thinking_delta",
    "signature": "signature_delta",
    "partial_json": "input_json_delta",
}
"""What a block or a delta is that has a string under this key and no type."""
_OURS = {"text", "thinking", "tool_use"}


class _Open(Struct, eq=False):
    """A block that is still being written."""

    block: dict[str, Any]
    """As it came at its start."""
    kind: str
    """Its type; "" as long as nothing tells it."""
    number: int = 0
    """Of a tool use: which of the answer's tool uses it is."""
    input_json: list[str] = []
    signatures: list[str] = []
    others: list[dict[str, Any]] = []
    """The deltas of unknown types."""

    def whole(self) -> dict[str, Any]:
        """The block with what came into it: texts go on, all else takes the place of what was."""
        block, pieces = dict(self.block), dict[str, list[str]]()
        for delta in self.others:
            for key, value in delta.items():
                if key == "type":
                    continue
                if isinstance(value, str) and isinstance(block.get(key, ""), str):
                    pieces.setdefault(key, [block.get(key, "")]).append(value)
                else:
                    block[key] = value
        written = read_tool_input("".join(self.input_json))
        texts = {key: "".join(texts) for key, texts in pieces.items()}
        return {**block, **texts, **({"input": written} if written else {})}


class AnswerReader:
    """Reads one answer; `is_ended` says that nothing of it can follow."""

    def __init__(
        self,
        provider: ProviderSettings,
        price: Price | None = None,
        *,
        new_id: Callable[[], str] = new_tool_id,
    ) -> None:
        self.is_ended = False
        self.is_finished = False
        """Never before the end: a reason to stop is not the end in this format."""
        self._provider = provider
        self._price = price
        self._new_id = new_id
        self._stop_reason: StopReason = "end_turn"
        self._usage: dict[str, int] = {}
        self._open: dict[int | None, _Open] = {}
        self._tool_uses = 0
        self._text = JoinedText()
        self._thinking = JoinedText()

    def read_events(self, events: list[bytes]) -> list[Delta]:
        """The deltas of events that arrived together."""
        deltas: list[Delta] = []
        for data in map(bytes.strip, events):
            if data and data != b"[DONE]" and not self.is_ended:
                self._read(self._decode(data), deltas)
        self._flush(deltas)
        return deltas

    def read_document(self, body: bytes) -> list[Delta]:
        """The deltas of an answer that came whole: some servers do not stream."""
        message = self._decode(body)
        self._raise_fault(message)
        content = message.get("content")
        if not isinstance(content, list):
            raise refusals.unreadable(self._provider, body)
        deltas: list[Delta] = []
        for block in filter(lambda block: isinstance(block, dict), content):
            self._start(None, block, deltas)
            self._stop(None, deltas)
        self._count(message.get("usage"))
        self._note_reason(message)
        self.is_ended = True
        return deltas

    def close(self) -> list[Delta]:
        """The last deltas; an error when the answer has no mark of its end."""
        if not self.is_ended:
            raise refusals.cut_off(self._provider)
        deltas: list[Delta] = []
        for index in list(self._open):
            self._stop(index, deltas)
        self._flush(deltas, is_last=True)
        reason = self._stop_reason
        if self._tool_uses and reason == "end_turn":
            reason = "tool_use"
        deltas.append(Finished(reason, from_wire_usage(self._usage, self._price)))
        return deltas

    def _read(self, event: dict[str, Any], deltas: list[Delta]) -> None:
        match event.get("type") or _kind_of_event(event):
            case "content_block_delta":
                self._add(_index(event), _object(event, "delta"), deltas)
            case "content_block_start":
                self._start(_index(event), _object(event, "content_block"), deltas)
            case "content_block_stop":
                self._stop(_index(event), deltas)
            case "message_start":
                self._count(_object(event, "message").get("usage"))
            case "message_delta":
                self._count(event.get("usage"))
                self._note_reason(_object(event, "delta"))
            case "message_stop":
                self.is_ended = True
            case _:
                self._raise_fault(event)

    def _start(self, index: int | None, block: dict[str, Any], deltas: list[Delta]) -> None:
        opened = self._open[index] = _Open(block, _kind(block, _BLOCKS))
        match opened.kind:
            case "text":
                self._add_text(_text(block, "text"), deltas)
            case "thinking":
                self._add_thinking(_text(block, "thinking"), deltas)
            case "tool_use":
                self._flush(deltas)
                opened.number, self._tool_uses = self._tool_uses, self._tool_uses + 1
                deltas.append(_piece(opened, ""))

    def _add(self, index: int | None, delta: dict[str, Any], deltas: list[Delta]) -> None:
        match _kind(delta, _DELTAS):
            case "text_delta":
                self._learn(index, "text")
                self._add_text(_text(delta, "text"), deltas)
            case "thinking_delta":
                self._learn(index, "thinking")
                self._add_thinking(_text(delta, "thinking"), deltas)
            case "signature_delta" if index in self._open:
                self._open[index].signatures.append(_text(delta, "signature"))
            case "input_json_delta" if index in self._open:
                opened, piece = self._open[index], _text(delta, "partial_json")
                opened.input_json.append(piece)
                if opened.kind == "tool_use":
                    deltas.append(_piece(opened, piece))
            case _ if index in self._open and self._open[index].kind not in _OURS:
                self._open[index].others.append(delta)
            case _:
                self._add_text(_text(delta, "text"), deltas)

    def _learn(self, index: int | None, kind: str) -> None:
        """A block that did not say what it is shows it."""
        if index in self._open and not self._open[index].kind:
            self._open[index].kind = kind

    def _stop(self, index: int | None, deltas: list[Delta]) -> None:
        opened = self._open.pop(index, None)
        if opened is None or opened.kind == "text":
            return
        self._flush(deltas, is_last=True)
        if opened.kind == "thinking":
            signature = "".join(opened.signatures) or _text(opened.block, "signature")
            deltas.append(ThinkingDelta("", signature))
        elif opened.kind == "tool_use":
            deltas.append(self._tool_use(opened))
        elif (block := opened.whole()) and not is_nested_deeper(block, MAX_NESTING):
            deltas.append(BlockDone(clean(block)))

    def _tool_use(self, opened: _Open) -> ToolUseDone:
        """The tool use as it was written; some servers give the whole input at its start."""
        raw = clean("".join(opened.input_json))
        at_start = opened.block.get("input")
        if not raw and at_start:
            raw = encode(at_start).decode()
        tool_id = _text(opened.block, "id") or self._new_id()
        name = _text(opened.block, "name") or UNNAMED
        return ToolUseDone(id=tool_id, name=name, input=read_tool_input(raw), raw=raw)

    def _count(self, usage: Any) -> None:
        """Take counts that only grow; a server that tells them late begins with zeros."""
        if isinstance(usage, dict):
            for key in _USAGE_KEYS:
                value = usage.get(key)
                if isinstance(value, int | float) and 0 <= value < MAX_COUNT:
                    self._usage[key] = max(int(value), self._usage.get(key, 0))

    def _note_reason(self, fields: dict[str, Any]) -> None:
        if fields.get("stop_reason"):
            self._stop_reason = _STOP_REASONS.get(str(fields["stop_reason"]), "end_turn")

    def _raise_fault(self, event: dict[str, Any]) -> None:
        """Raise what the event says went wrong; llama.cpp's server says it without `error`."""
        if event.get("error"):
            raise refusals.from_wire_fault(self._provider, event["error"])
        if event.get("type") == "error" or isinstance(event.get("message"), str):
            raise refusals.from_wire_fault(self._provider, event)

    def _decode(self, data: bytes) -> dict[str, Any]:
        try:
            value = _decode_with_halves(data)
        except (ValueError, RecursionError) as error:
            raise refusals.unreadable(self._provider, data) from error
        if not isinstance(value, dict):
            raise refusals.unreadable(self._provider, data)
        return value

    def _add_text(self, text: str, deltas: list[Delta]) -> None:
        if self._thinking.is_waiting:
            self._flush(deltas)
        self._text.add(text)

    def _add_thinking(self, thinking: str, deltas: list[Delta]) -> None:
        if self._text.is_waiting:
            self._flush(deltas)
        self._thinking.add(thinking)

    def _flush(self, deltas: list[Delta], *, is_last: bool = False) -> None:
        if thinking := self._thinking.take(is_last=is_last):
            deltas.append(ThinkingDelta(thinking))
        if text := self._text.take(is_last=is_last):
            deltas.append(TextDelta(text))


def from_wire_usage(usage: dict[str, int], price: Price | None) -> Usage | None:
    """Tokens as reported, where the cached ones are apart already; None when nothing was."""
    if not usage:
        return None
    tokens = Usage(*(usage.get(key, 0) for key in _USAGE_KEYS))
    cost = None if price is None else price.cost_usd(tokens)
    return Usage(
        tokens.input_tokens,
        tokens.output_tokens,
        tokens.cache_read_tokens,
        tokens.cache_write_tokens,
        cost,
    )


def _decode_with_halves(data: bytes) -> Any:
    """Half of a character stays half: the next event may hold the other one."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return json.loads(data.decode("utf-8", "replace"))


def _kind(fields: dict[str, Any], kinds: dict[str, str]) -> str:
    """The type of a block or a delta, else what its keys say; "" where they say nothing."""
    given = fields.get("type")
    if isinstance(given, str):
        return given
    return next((kind for key, kind in kinds.items() if isinstance(fields.get(key), str)), "")


def _kind_of_event(event: dict[str, Any]) -> str:
    """What an event is that does not say it."""
    if isinstance(event.get("content_block"), dict):
        return "content_block_start"
    if not isinstance(event.get("delta"), dict):
        return ""
    return "message_delta" if "stop_reason" in event["delta"] else "content_block_delta"


def _index(event: dict[str, Any]) -> int | None:
    """Which block the event is about."""
    index = event.get("index")
    return index if isinstance(index, int) else None


def _object(fields: dict[str, Any], key: str) -> dict[str, Any]:
    value = fields.get(key)
    return value if isinstance(value, dict) else {}


def _text(fields: dict[str, Any], key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def _piece(opened: _Open, input_json: str) -> ToolUseDelta:
    """A new piece of a tool use, to be shown."""
    name = _text(opened.block, "name")
    return ToolUseDelta(index=opened.number, name=name, input_json=input_json)
