"""Codex' transcripts (rollouts): JSON lines, each an item of what went to and fro. Only read.

Items of older versions stand bare, those of newer ones in a `payload`. What Codex adds by itself
(its environment, its instructions), what it tells its own interface, and turns that were taken
back are left out, counted.
"""

from collections.abc import Sequence
from typing import Any

from tiro.stores.formats import lines, responses
from tiro.stores.formats.conversation import Conversation, named
from tiro.stores.formats.format import Format, Imported, no_dumps, no_export

_WRAPPED = ("session_meta", "response_item", "turn_context", "event_msg", "compacted")
_OWN_TEXTS = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<INSTRUCTIONS>",
    "# AGENTS.md instructions",
    "<turn_aborted>",
    "<skill>",
    "<subagent_notification>",
)
_OWN = "written by Codex itself"
_TELLING = {"user_message": "user", "agent_message": "assistant"}
"""Events that repeat a message, and whose; they are read where the message itself is missing."""


def loads(text: str) -> Imported:
    """Read the lines; broken ones are left out and counted."""
    conversation, id, bad = Conversation(), None, 0
    values = list(lines.values(text))
    missing = {"user", "assistant"} - set(map(_role_in, values))
    for line in values:
        item = _item(line)
        if item is None:
            bad += 1
        elif line.get("type") == "session_meta" or _is_old_meta(line):
            id = id or item.get("id")
        elif line.get("type") == "response_item" or (line is item and "record_type" not in line):
            _take(conversation, item, line.get("timestamp"))
        elif line.get("type") == "event_msg":
            _hear(conversation, item, line.get("timestamp"), missing)
        elif line.get("type") == "compacted" and not conversation.rows:
            _begin(conversation, item, line.get("timestamp"))
        elif "record_type" not in line:
            conversation.leave_out(named(line.get("type")))
    return conversation.imported(id, notes=lines.broken_note(bad))


def looks_like(text: str) -> bool:
    """Whether one of the first lines is one of that program's."""
    first = lines.first_objects(text, 20)
    if any(line.get("type") in _WRAPPED and "payload" in line for line in first):
        return True
    return bool(first) and _is_old_meta(first[0])


def _is_old_meta(line: dict[str, Any]) -> bool:
    return {"id", "timestamp", "instructions"} <= line.keys() and "type" not in line


def _item(line: Any) -> dict[str, Any] | None:
    """What a line holds; None for a broken one."""
    if not isinstance(line, dict):
        return None
    item = line.get("payload", line)
    is_bare = item is line and line.get("type") in _WRAPPED
    return item if isinstance(item, dict) and not is_bare else None


def _role_in(line: Any) -> str | None:
    """Whose message a line holds; None for what is none, or is Codex' own."""
    item = _item(line)
    if item is None or item.get("type") != "message" or not isinstance(item.get("content"), list):
        return None
    role = item.get("role")
    return role if isinstance(role, str) and not _is_own(role, item["content"]) else None


def _take(conversation: Conversation, item: dict[str, Any], at: Any) -> None:
    if not responses.take(conversation, item, at, _is_own):
        conversation.leave_out(_OWN)


def _hear(conversation: Conversation, event: dict[str, Any], at: Any, missing: set[str]) -> None:
    """What Codex told its interface: nothing new, unless it took turns back."""
    kind, text = event.get("type"), event.get("message")
    role = _TELLING.get(kind) if isinstance(kind, str) else None
    if kind == "thread_rolled_back":
        _take_back(conversation, event.get("num_turns"))
    elif role in missing and isinstance(text, str) and text:
        block = {"type": "text", "text": text}
        conversation.answer([block], at) if role == "assistant" else conversation.add(
            "user", [block], at
        )
    else:
        conversation.leave_out("events for its interface")


def _take_back(conversation: Conversation, count: Any) -> None:
    """Leave out the newest turns, so many."""
    begins = [n for n, row in enumerate(conversation.rows) if row["role"] == "user"]
    if type(count) is int and count > 0 and begins:
        start = begins[max(0, len(begins) - count)]
        conversation.leave_out("in turns that were taken back", len(conversation.rows) - start)
        del conversation.rows[start:]


def _begin(conversation: Conversation, compacted: dict[str, Any], at: Any) -> None:
    """What a transcript begins with that goes on after a compaction elsewhere."""
    history = compacted.get("replacement_history")
    for item in history if isinstance(history, list) else ():
        if isinstance(item, dict):
            _take(conversation, item, at)
    summary = compacted.get("message")
    if not conversation.rows and isinstance(summary, str) and summary.strip():
        conversation.add("user", [{"type": "text", "text": summary}], at)


def _is_own(role: str, blocks: Sequence[Any]) -> bool:
    """Whether a message is none of the user's or the model's."""
    texts = [block.get("text") for block in blocks if isinstance(block, dict)]
    is_all_own = bool(texts) and all(
        isinstance(t, str) and t.lstrip().startswith(_OWN_TEXTS) for t in texts
    )
    return role not in ("user", "assistant") or (role == "user" and is_all_own)


FORMAT = Format("codex", no_dumps, loads, looks_like, no_export)
