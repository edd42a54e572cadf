"""The memo: key facts of a conversation, brought up to date from its messages (A5, A6).

Who writes it is handed in: a handler of the caller's, or a model. Pictures and other payloads never
reach either memo or model; they are named by a short summary of their own.
"""

import copy
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tiro.session.handlers import Handlers, awaited
from tiro.session.messages import (
    Message,
    ToolResultBlock,
    ToolUseBlock,
    read_block,
    result_text,
    tool_uses_of,
)
from tiro.session.settings import SessionSettings

BOOKKEEPING = "last_resize"
"""The key of the memo that tells about resizes; no model ever sees it (A5.6, U5.1)."""

MAX_TOOL_CHARACTERS = 2_000
"""What a tool use or its result may take of the text that the memo is made from."""

REFERENCES = ("file", "url", "path", "id", "name")
DETAILS = ("name", "mime_type", "size", "width", "height", "duration")
MAX_REFERENCE_CHARACTERS = 200


async def updated(
    memo: Any, messages: list[Message], settings: SessionSettings, handlers: Handlers
) -> dict[str, Any] | None:
    """The memo after these messages; None where nobody made one (A5.1 to A5.4).

    Raises what the handler or the model raises. One call of it a run.
    """
    if not messages:
        return None
    before = facts(memo)
    named = [await _named(message, handlers) for message in messages]
    attachments = [summary for summaries in named for summary in summaries]
    if handlers.memo_update is not None:
        answer = await awaited(handlers.memo_update, before, messages, attachments, settings)
        return answer if isinstance(answer, dict) else None
    model = handlers.memo_model or settings.get("session.memo.model")
    if model is None:
        return None
    request = {
        "current_memo": before,
        "messages": list(map(_serialised, messages, named)),
        "attachments": attachments,
    }
    return memo_in(await _reply(model, settings.instructions(), request))


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
        text = f"{block.name} {json.dumps(block.input, ensure_ascii=False, default=str)}"
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


async def _reply(model: Any, instructions: list[str], request: dict[str, Any]) -> Any:
    """What a model says: a callable that takes messages, or an object with `chat` (N3.2)."""
    messages = [
        {"role": "system", "content": "\n".join(instructions)},
        {"role": "user", "content": json.dumps(request, ensure_ascii=False, default=str)},
    ]
    if callable(model):
        reply = await awaited(model, messages)
    else:
        reply = await awaited(lambda: model.chat(messages=messages, tools=None, model=None))
    return reply if isinstance(reply, str | dict) else getattr(reply, "text", None)
