"""Codex' transcripts (rollouts): JSON lines, each an item of what went to and fro. Only read.

Items of older versions stand bare, those of newer ones in a `payload`. What Codex adds by itself
(its environment, its instructions, reasoning that only its provider can read) is left out, counted.
"""

from collections.abc import Iterable
from typing import Any

from tiro.session.json_text import encode
from tiro.stores.formats import json, lines
from tiro.stores.formats.conversation import Conversation, own_block
from tiro.stores.formats.format import Format, Imported, no_dumps, no_export

_WRAPPED = ("session_meta", "response_item", "turn_context", "event_msg", "compacted")
_OWN_TEXTS = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<INSTRUCTIONS>",
    "# AGENTS.md instructions",
)
_OWN = "written by Codex itself"


def loads(text: str) -> Imported:
    """Read the lines; broken ones are left out and counted."""
    conversation, id, bad = Conversation(), None, 0
    for line in lines.values(text):
        if not isinstance(line, dict):
            bad += 1
            continue
        item = line.get("payload") if line.get("type") in _WRAPPED else line
        if not isinstance(item, dict):
            bad += 1
        elif line.get("type") == "session_meta" or _is_old_meta(line):
            id = id or item.get("id")
        elif line.get("type") == "response_item" or (line is item and "record_type" not in line):
            _take(conversation, item, line.get("timestamp"))
    return conversation.imported(id, notes=lines.broken_note(bad))


def looks_like(text: str) -> bool:
    """Whether one of the first lines is one of that program's."""
    first = lines.first_objects(text, 20)
    if any(line.get("type") in _WRAPPED and "payload" in line for line in first):
        return True
    return bool(first) and _is_old_meta(first[0])


def _is_old_meta(line: dict[str, Any]) -> bool:
    return {"id", "timestamp", "instructions"} <= line.keys() and "type" not in line


def _take(conversation: Conversation, item: dict[str, Any], at: Any) -> None:
    """One item; what is none that we know is left out and counted by its type."""
    kind = item.get("type")
    if kind == "message" and isinstance(item.get("content"), list):
        _take_message(conversation, item, at)
    elif kind == "reasoning":
        _take_reasoning(conversation, item, at)
    elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
        given = item.get("arguments", item.get("input", item.get("action")))
        name = item.get("name") if isinstance(item.get("name"), str) else "shell"
        use = {"id": _call_id(item), "name": name, "input": _input(given)}
        conversation.answer([{"type": "tool_use", **use}], at)
    elif kind in ("function_call_output", "custom_tool_call_output"):
        conversation.result(_call_id(item), _output(item.get("output")), at)
    else:
        conversation.leave_out(kind[:40] if isinstance(kind, str) else "items of no type")


def _take_message(conversation: Conversation, item: dict[str, Any], at: Any) -> None:
    role, blocks = item.get("role"), [own_block(block) for block in item["content"]]
    if role == "assistant":
        conversation.answer(blocks, at)
    elif role == "user" and not _is_own(blocks):
        conversation.add("user", blocks, at)
    else:
        conversation.leave_out(_OWN)


def _is_own(blocks: Iterable[Any]) -> bool:
    texts = [block.get("text") for block in blocks if isinstance(block, dict)]
    return bool(texts) and all(
        isinstance(t, str) and t.lstrip().startswith(_OWN_TEXTS) for t in texts
    )


def _take_reasoning(conversation: Conversation, item: dict[str, Any], at: Any) -> None:
    lists = [value for name in ("summary", "content") if isinstance(value := item.get(name), list)]
    parts = [part for value in lists for part in value]
    texts = [part["text"] for part in parts if isinstance(part, dict) and _has_text(part)]
    if texts:
        conversation.answer([{"type": "thinking", "thinking": "\n\n".join(texts)}], at)
    else:
        conversation.leave_out("reasoning that only its provider can read")


def _has_text(part: dict[str, Any]) -> bool:
    return isinstance(part.get("text"), str)


def _call_id(item: dict[str, Any]) -> str:
    id = item.get("call_id") or item.get("id")
    return id if isinstance(id, str) else ""


def _input(given: Any) -> dict[str, Any]:
    """A tool's input: an object as it is or as JSON text; any other text as `input`."""
    if isinstance(given, str):
        value = json.decode_or_none(given.encode("utf-8", "replace"))
        return value if isinstance(value, dict) else {"input": given}
    return given if isinstance(given, dict) else {}


def _output(output: Any) -> str | list[Any]:
    if isinstance(output, dict) and isinstance(output.get("content"), str):
        return str(output["content"])
    if isinstance(output, list):
        return [own_block(block) for block in output]
    return output if isinstance(output, str) else encode(output).decode()


FORMAT = Format("codex", no_dumps, loads, looks_like, no_export)
