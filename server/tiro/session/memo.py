"""The memo: key facts of a conversation, brought up to date from its messages (A5, A6).

Who writes it is handed in: a handler of the caller's, or a model. Pictures and other payloads never
reach either memo or model; they are named by a short summary of their own.

`quality.py` looks at a model's answer first; a model that can be held to `SCHEMA` is. This makes
sure of its form, not of its truth: a very small model invents facts. So nothing rests on a memo
alone: the messages stay raw in the archive, and people see a memo before it is applied, write it
themselves, and undo it.
"""

import copy
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from tiro.errors import ResizeError
from tiro.session.cap import Cap
from tiro.session.handlers import Handlers, awaited
from tiro.session.messages import (
    Message,
    ToolResultBlock,
    ToolUseBlock,
    read_block,
    result_text,
    tool_uses_of,
)
from tiro.session.quality import answer_in, check_new, check_old, keep_words, refused
from tiro.session.settings import SessionSettings

BOOKKEEPING = "last_resize"
"""The key of the memo that tells about resizes; no model ever sees it (A5.6, U5.1)."""

MAX_TOOL_CHARACTERS = 2_000
"""What a tool use or its result may take of the text that the memo is made from."""

_TEXT = {"type": "string", "maxLength": 400}
_TEXTS = {"type": "array", "items": _TEXT, "maxItems": 20}
_FACT = [_TEXT, _TEXTS, {"type": "number"}, {"type": "boolean"}]
_FACTS = {"type": "object", "additionalProperties": {"anyOf": _FACT}}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"memo": {"type": "object", "additionalProperties": {"anyOf": [*_FACT, _FACTS]}}},
    "required": ["memo"],
    "additionalProperties": False,
}
"""The JSON Schema of a model's answer; texts are bounded, so that a small model finds its end."""

REFERENCES = ("file", "url", "path", "id", "name")
DETAILS = ("name", "mime_type", "size", "width", "height", "duration")
MAX_REFERENCE_CHARACTERS = 200


class Update(msgspec.Struct, frozen=True):
    """What came of bringing the memo up to date."""

    memo: dict[str, Any] | None = None
    """The new memo; None where the old one stays."""
    refused: str | None = None
    """Why a model's answer was not taken, as a sentence."""
    is_too_large: bool = False
    """Whether that was its size: of fewer messages it may be shorter."""


async def updated(
    memo: Any,
    messages: list[Message],
    settings: SessionSettings,
    handlers: Handlers,
    pinned: Sequence[str] = (),
) -> Update:
    """The memo after these messages, asked for once (A5.1 to A5.4).

    Pinned texts that the memo holds must be in a model's new one. Raises what the handler or the
    model raises.
    """
    if not messages:
        return Update()
    before = facts(memo)
    named = [await _named(message, handlers) for message in messages]
    attachments = [summary for summaries in named for summary in summaries]
    if handlers.memo_update is not None:
        answer = await awaited(handlers.memo_update, before, messages, attachments, settings)
        return Update(answer if isinstance(answer, dict) else None)
    model = handlers.memo_model or settings.get("session.memo.model")
    if model is None:
        return Update()
    cap = handlers.memo_cap
    try:
        check_old(_json(before), "memo", cap)
    except ResizeError as error:
        return Update(refused=str(error))
    shown = list(map(_serialised, messages, named))
    text = _json({"current_memo": before, "messages": shown, "attachments": attachments})
    limits = [] if cap is None else [cap.told()]
    orders = [*settings.instructions(), *limits, *keep_words(pinned, before)]
    reply = await _reply(model, orders, text)
    try:
        return Update(usable(reply, before, len(text), pinned, cap))
    except ResizeError as error:
        return Update(refused=str(error), is_too_large=error.data.get("reason") == "too_large")


def usable(
    reply: Any,
    before: dict[str, Any],
    replaced: int,
    pinned: Sequence[str],
    cap: Cap | None = None,
) -> dict[str, Any] | None:
    """The memo in a model's reply; None where it found nothing to note.

    ResizeError naming why it cannot replace the memo of before and the messages, which were
    `replaced` characters.
    """
    found = memo_in(answer_in(reply, "memo"))
    if found is None:
        raise refused("memo", "it is no JSON object", "no_object")
    if before and not found:
        raise refused("memo", "it is empty", "empty")
    check_new(found, before, replaced, pinned, "memo", cap)
    return found or None


def facts(memo: Any) -> dict[str, Any]:
    """A copy of the memo without its bookkeeping; what is no dict counts as empty (A1.4)."""
    known = memo if isinstance(memo, dict) else {}
    return copy.deepcopy({key: value for key, value in known.items() if key != BOOKKEEPING})


def memo_in(reply: Any) -> dict[str, Any] | None:
    """The memo in a model's reply, as a dict or as JSON text; None where there is none (A5.3)."""
    if isinstance(reply, str):
        fenced = re.search(r"```(?:json)?\s*\n(.*?)\n\s*```", reply, re.DOTALL)
        try:
            reply = json.loads(fenced.group(1) if fenced else reply)
        except (ValueError, RecursionError):
            return None
    if not isinstance(reply, dict):
        return None
    inner = reply.get("memo")
    found = inner if isinstance(inner, dict) else reply
    return {key: value for key, value in found.items() if key != BOOKKEEPING}


def attachment_summaries(message: Message | Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each part of a message that is not text as `{type, ref, meta}` (A6.1 to A6.4)."""
    content = message["content"]
    parts = content if isinstance(content, list) else []
    return [_summary(part) for part in parts if _has_summary(part)]


async def _named(message: Message, handlers: Handlers) -> list[dict[str, Any]]:
    if handlers.attachment_summary is None:
        return attachment_summaries(message)
    answer = await awaited(handlers.attachment_summary, message)
    return list(answer) if isinstance(answer, Iterable) else []


def _serialised(message: Message, summaries: list[dict[str, Any]]) -> dict[str, Any]:
    """A message as the model reads it: text stays, all else becomes its summary (A5.5)."""
    content = message.content
    if isinstance(content, str) and not message.tool_calls:
        return {"role": message.role, "content": content}
    by_part = iter(summaries)
    shown = []
    for part in content if isinstance(content, list) else [content] if content else []:
        summary = next(by_part, None) if _has_summary(part) else None
        shown.append(_text_part(part) or summary or {"type": str(_field(part, "type"))})
    if message.tool_calls:
        calls = tool_uses_of(msgspec.structs.replace(message, content=""))
        shown += [part for call in calls if (part := _text_part(msgspec.to_builtins(call)))]
    return {"role": message.role, "content": shown}


def _text_part(part: Any) -> dict[str, Any] | None:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if not isinstance(part, dict):
        return None
    if isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    block = read_block(part)
    if isinstance(block, ToolUseBlock):
        text = f"{block.name} {_json(block.input)}"
    elif isinstance(block, ToolResultBlock):
        text = result_text(block.content)
    else:
        return None
    return {"type": part["type"], "text": text[:MAX_TOOL_CHARACTERS]}


def _has_summary(part: Any) -> bool:
    kind = _field(part, "type")
    return isinstance(kind, str) and kind != "text"


def _summary(part: Any) -> dict[str, Any]:
    kind = str(_field(part, "type"))
    sources = [part, _field(part, kind)]
    found = {
        name: [value for source in sources if _is_scalar(value := _field(source, name))]
        for name in {*REFERENCES, *DETAILS}
    }
    reference = next((value for name in REFERENCES for value in found[name] if value), None)
    meta = {name: _shortened(found[name][0]) for name in DETAILS if found[name]}
    return {"type": kind, "ref": _shortened(reference), "meta": meta}


def _is_scalar(value: Any) -> bool:
    """Whether it can be a name or a number; bytes and objects are payloads."""
    return isinstance(value, str | int | float)


def _field(part: Any, name: str) -> Any:
    if isinstance(part, Mapping):
        return part.get(name)
    return None if isinstance(part, str | int | float | None) else getattr(part, name, None)


def _shortened(reference: Any) -> Any:
    """A reference without a payload in it: of a `data:` URI only the type stays (A6.4)."""
    if not isinstance(reference, str):
        return reference
    if reference.startswith("data:"):
        return reference.partition(",")[0][:MAX_REFERENCE_CHARACTERS]
    return reference[:MAX_REFERENCE_CHARACTERS]


async def _reply(model: Any, instructions: list[str], text: str) -> Any:
    """What a model says: a callable that takes messages, or an object with `chat` (N3.2)."""
    messages = [
        {"role": "system", "content": "\n".join(instructions)},
        {"role": "user", "content": text},
    ]
    if callable(model):
        return await awaited(model, messages)
    return await awaited(lambda: model.chat(messages=messages, tools=None, model=None))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
