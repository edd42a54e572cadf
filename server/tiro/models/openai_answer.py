"""An answer in the form of OpenAI's chat completions, streamed or whole, read into deltas.

Text that arrives together leaves together: the deltas of one piece from the network are joined.
"""

from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec

from tiro.models import refusals
from tiro.models.joined_text import JoinedText
from tiro.models.model import (
    MAX_COUNT,
    BlockDone,
    Delta,
    Finished,
    Price,
    Progress,
    ProviderSettings,
    TextDelta,
    ThinkingDelta,
)
from tiro.models.openai_tool_uses import ToolUses
from tiro.models.openai_wire import TextShape, WireAnswer, WireChoice, WirePiece, decode_answer
from tiro.models.tool_input import new_tool_id
from tiro.session.json_text import MAX_NESTING, clean, is_nested_deeper
from tiro.session.messages import StopReason, Usage

DONE = b"[DONE]"

_STOP_REASONS: dict[str, StopReason] = {
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "model_length": "max_tokens",
    "content_filter": "refusal",
    "refusal": "refusal",
}
"""What is not listed, such as `stop` and `tool_calls`, is an end that the model chose."""


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
        """The model has given its reason to stop; usage may follow."""
        self._provider = provider
        self._price = price
        self._stop_reason: StopReason = "end_turn"
        self._usage: Usage | None = None
        self._tool_uses = ToolUses(new_id)
        self._shape = TextShape()
        self._text = JoinedText()
        self._thinking = JoinedText()

    def read_events(self, events: list[bytes]) -> list[Delta]:
        """The deltas of events that arrived together."""
        deltas: list[Delta] = []
        if (text := self._shape.text_in(events)) is not None:
            self._add_text(text, deltas)
            events = []
        for data in map(bytes.strip, events):
            if data == DONE:
                self.is_ended = True
                break
            if data:
                self._shape.learn(data, self._read(data, deltas))
        self._flush(deltas)
        return deltas

    def read_document(self, body: bytes) -> list[Delta]:
        """The deltas of an answer that came whole: some servers do not stream."""
        deltas: list[Delta] = []
        if not self._read(body, deltas).choices:
            raise refusals.unreadable(self._provider, body)
        self._flush(deltas)
        self.is_ended = True
        return deltas

    def close(self) -> list[Delta]:
        """The last deltas; an error when the answer has no mark of its end."""
        if not self.is_ended and not self.is_finished:
            raise refusals.cut_off(self._provider)
        deltas: list[Delta] = []
        self._flush(deltas, is_last=True)
        tool_uses = self._tool_uses.done()
        deltas += tool_uses
        reason = self._stop_reason
        if tool_uses and reason == "end_turn":
            reason = "tool_use"
        deltas.append(Finished(reason, self._usage))
        return deltas

    def _read(self, data: bytes, deltas: list[Delta]) -> WireAnswer:
        answer = self._decode(data)
        if answer.error or answer.object == "error" or (answer.message and not answer.choices):
            raise refusals.from_wire_fault(self._provider, _fault(answer))
        if answer.usage is not None:
            self._usage = from_wire_usage(answer.usage, self._price) or self._usage
        if answer.prompt_progress is not None:
            deltas += _from_wire_progress(answer.prompt_progress)
        if answer.choices:
            self._read_choice(answer.choices[0], deltas)
        return answer

    def _read_choice(self, choice: WireChoice, deltas: list[Delta]) -> None:
        if choice.error:
            raise refusals.from_wire_fault(self._provider, choice.error)
        piece = choice.delta or choice.message
        if piece is not None:
            self._read_piece(piece, deltas)
        if choice.finish_reason:
            self._finish(str(choice.finish_reason))

    def _read_piece(self, piece: WirePiece, deltas: list[Delta]) -> None:
        """One delta: the usual one holds text and nothing else, so that comes first."""
        thinking = piece.reasoning_content or piece.reasoning or piece.thinking
        if thinking or isinstance(piece.content, list | dict):
            is_deep = is_nested_deeper(piece.content, MAX_NESTING)
            parts = [] if is_deep else list(_parts(piece.content))
            if isinstance(thinking, str) and "thought" not in (kind for kind, _ in parts):
                parts.insert(0, ("thought", thinking))
            for kind, part in parts:
                self._read_part(kind, part, deltas)
        elif piece.content and isinstance(piece.content, str):
            self._add_text(piece.content, deltas)
        if piece.refusal and isinstance(piece.refusal, str):
            self._text.add(piece.refusal)
            self._stop_reason = "refusal"
        tool_calls = piece.tool_calls
        if not tool_calls and piece.function_call:
            tool_calls = [{"function": piece.function_call}]
        if tool_calls and isinstance(tool_calls, list):
            self._flush(deltas)
            deltas += self._tool_uses.add(tool_calls)

    def _read_part(self, kind: str, part: Any, deltas: list[Delta]) -> None:
        if kind == "said":
            self._add_text(part, deltas)
        elif kind == "thought":
            self._flush_text(deltas)
            self._thinking.add(part)
        else:
            self._flush(deltas, is_last=True)
            deltas.append(BlockDone(clean(part)))

    def _add_text(self, text: str, deltas: list[Delta]) -> None:
        if self._thinking.is_waiting:
            self._flush_thinking(deltas)
        self._text.add(text)

    def _finish(self, wire_reason: str) -> None:
        if wire_reason == "error":
            raise refusals.from_wire_fault(self._provider, {"message": "it gave no reason"})
        self.is_finished = True
        if self._stop_reason != "refusal":
            self._stop_reason = _STOP_REASONS.get(wire_reason, "end_turn")

    def _decode(self, data: bytes) -> WireAnswer:
        try:
            return decode_answer(data)
        except (ValueError, RecursionError) as error:
            raise refusals.unreadable(self._provider, data) from error

    def _flush(self, deltas: list[Delta], *, is_last: bool = False) -> None:
        self._flush_thinking(deltas, is_last=is_last)
        self._flush_text(deltas, is_last=is_last)

    def _flush_text(self, deltas: list[Delta], *, is_last: bool = False) -> None:
        if text := self._text.take(is_last=is_last):
            deltas.append(TextDelta(text))

    def _flush_thinking(self, deltas: list[Delta], *, is_last: bool = False) -> None:
        if text := self._thinking.take(is_last=is_last):
            deltas.append(ThinkingDelta(text))


def from_wire_usage(usage: Any, price: Price | None) -> Usage | None:
    """Tokens as reported, the cached ones taken out of the prompt's; None when unreadable."""
    if not isinstance(usage, dict):
        return None
    details = usage.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens") if isinstance(details, dict) else None)
    cached = cached or _count(usage.get("prompt_cache_hit_tokens"))
    prompt = _count(usage.get("prompt_tokens"))
    cached = min(cached, prompt)
    tokens = Usage(prompt - cached, _count(usage.get("completion_tokens")), cached)
    cost = usage.get("cost")
    if price is not None:
        cost = price.cost_usd(tokens)
    if isinstance(cost, int | float) and not isinstance(cost, bool):
        return msgspec.structs.replace(tokens, cost_usd=float(cost))
    return tokens


def _count(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and 0 < value < MAX_COUNT else 0


def _from_wire_progress(progress: Any) -> list[Progress]:
    """How far llama.cpp's server has read the prompt."""
    match progress:
        case {"total": int(total), "processed": int(processed)} if total > 0:
            return [Progress("Reading the prompt", min(1.0, processed / total))]
        case _:
            return []


def _parts(content: Any) -> Iterator[tuple[Literal["said", "thought", "other"], Any]]:
    """What is said and what is thought in content that may be a part or a list of parts.

    Of a part of no known type what reads as text is text; one without any is kept as it came.
    """
    for part in content if isinstance(content, list) else [content]:
        match part:
            case str(text) if text:
                yield "said", text
            case {"type": "thinking" | "reasoning", **fields}:
                yield from _thought(_first(fields, ("thinking", "reasoning", "text")))
            case {"thinking": inner} if "text" not in part:
                yield from _thought(inner)
            case dict() if (inner := _first(part, ("text", "refusal", "content"))) is not None:
                yield from _parts(inner)
            case dict() if part:
                yield "other", part


def _thought(content: Any) -> Iterator[tuple[Literal["thought"], str]]:
    thought = "".join(part for kind, part in _parts(content) if kind == "said")
    if thought:
        yield "thought", thought


def _first(fields: dict[Any, Any], keys: tuple[str, ...]) -> Any:
    """What is under the first of these keys that there is."""
    return next((fields[key] for key in keys if fields.get(key) is not None), None)


def _fault(answer: WireAnswer) -> Any:
    """What tells the fault: the error itself, or the fields beside it."""
    if answer.error:
        return answer.error
    return {"message": answer.message, "code": answer.code, "type": answer.type}
