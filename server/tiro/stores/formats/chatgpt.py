"""ChatGPT's export, `conversations.json`: conversations as trees of messages. Only read.

Of each tree the branch is read that was shown last. The newest conversation is the session that is
gone on with; the others are sessions too.
"""

from collections.abc import Iterator
from typing import Any

from tiro.session.json_text import clean, encode
from tiro.stores.formats import json
from tiro.stores.formats.conversation import Conversation, moment
from tiro.stores.formats.format import Format, Imported, no_dumps, no_export, refused
from tiro.stores.formats.responses import tool_input

_OWN_TYPES = ("reasoning_recap", "user_editable_context", "model_editable_context")


def loads(text: str) -> Imported:
    """Read one conversation or a list of them; those without any message are left out."""
    value = json.decode_or_none(clean(text.removeprefix("\ufeff")).encode())
    trees = value if isinstance(value, list) else [value]
    found = [
        tree for tree in trees if isinstance(tree, dict) and isinstance(tree.get("mapping"), dict)
    ]
    left_out = dict[str, int]()
    read = [
        (tree, conversation)
        for tree in sorted(found, key=_age)
        if (conversation := _read(tree, left_out)).rows
    ]
    if not read:
        raise refused("It has no conversation with a message")
    sessions = [
        conversation.imported(tree.get("conversation_id") or tree.get("id"), tree.get("title"))
        for tree, conversation in read
    ]
    notes = list(dict.fromkeys(note for session in sessions for note in session.notes))
    newest = sessions.pop()
    newest.others = [session.stored for session in sessions]
    newest.notes = notes
    if empty := len(trees) - len(read):
        newest.notes.append(f"Conversations without a message that can be read: {empty}")
    return newest


def looks_like(text: str) -> bool:
    """Whether it is such a conversation, or a list that begins with one."""
    if not json.looks_like(text) or '"mapping"' not in text[:_LOOK]:
        return False
    first = json.first_item(text)
    return isinstance(first, dict) and isinstance(first.get("mapping"), dict)


def _age(tree: dict[str, Any]) -> float:
    times = (tree.get("update_time"), tree.get("create_time"))
    return next((time for time in times if isinstance(time, int | float)), 0)


def _read(tree: dict[str, Any], left_out: dict[str, int]) -> Conversation:
    conversation, calls = Conversation(left_out), list[str]()
    nodes = tree["mapping"]
    path = list(_path(nodes, tree.get("current_node")))
    for node in reversed(path):
        if isinstance(message := node.get("message"), dict):
            _take(conversation, message, calls)
    shown = {id(node) for node in path}
    for node in nodes.values():
        if isinstance(node, dict) and id(node) not in shown and _text_of(node.get("message")):
            conversation.leave_out("in branches that were left")
    return conversation


def _path(nodes: dict[str, Any], current: Any) -> Iterator[dict[str, Any]]:
    """The nodes from the one that was shown last up to the root."""
    seen = set[str]()
    at = current if isinstance(current, str) and current in nodes else _last_leaf(nodes)
    while isinstance(at, str) and at not in seen and isinstance(node := nodes.get(at), dict):
        seen.add(at)
        yield node
        at = node.get("parent")


def _last_leaf(nodes: dict[str, Any]) -> str | None:
    leaves = (
        name for name, node in nodes.items() if isinstance(node, dict) and not node.get("children")
    )
    return next(reversed(list(leaves)), None)


def _take(conversation: Conversation, message: dict[str, Any], calls: list[str]) -> None:
    """One message; `calls` are the tool uses that wait for their result."""
    author, content = message.get("author"), message.get("content")
    role = author.get("role") if isinstance(author, dict) else None
    at, text = moment(message.get("create_time")), _text_of(message)
    if role == "tool":
        _take_result(conversation, text, at, calls)
    elif not isinstance(content, dict) or _is_hidden(message) or role not in ("user", "assistant"):
        if text:
            conversation.leave_out("written by ChatGPT itself")
    elif role == "user" and text:
        conversation.add("user", text, at)
    elif content.get("content_type") == "thoughts" and text:
        conversation.answer([{"type": "thinking", "thinking": text}], at)
    elif (tool := message.get("recipient")) not in (None, "all") and isinstance(tool, str):
        calls.append(f"{message.get('id') or len(conversation.rows)}")
        use = {"id": calls[-1], "name": tool, "input": tool_input(text, "text")}
        conversation.answer([{"type": "tool_use", **use}], at)
    elif text:
        conversation.answer([{"type": "text", "text": text}], at)
    if files := _files(message):
        conversation.leave_out("pictures, recordings and files that are not in this file", files)


def _take_result(conversation: Conversation, text: str, at: str | None, calls: list[str]) -> None:
    """What a tool gave: often in several messages, of which the first answers the oldest use."""
    last = conversation.rows[-1] if conversation.rows else None
    if calls:
        conversation.result(calls.pop(0), text, at)
    elif text and last is not None and last["role"] == "tool":
        last["content"]["content"] = "\n\n".join(filter(None, (last["content"]["content"], text)))
    elif text:
        conversation.leave_out("results of tools that nobody called")


def _is_hidden(message: dict[str, Any]) -> bool:
    metadata, content = message.get("metadata"), message.get("content")
    hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation")
    return bool(hidden) or (isinstance(content, dict) and content.get("content_type") in _OWN_TYPES)


def _files(message: dict[str, Any]) -> int:
    """How many files a message refers to; a picture is named twice."""
    content, metadata = message.get("content"), message.get("metadata")
    parts = content.get("parts") if isinstance(content, dict) else None
    given = metadata.get("attachments") if isinstance(metadata, dict) else None
    pointers = [part for part in parts if _is_pointer(part)] if isinstance(parts, list) else []
    return max(len(pointers), len(given) if isinstance(given, list) else 0)


def _is_pointer(part: Any) -> bool:
    kind = part.get("content_type") if isinstance(part, dict) else None
    return isinstance(kind, str) and kind.endswith("asset_pointer")


def _text_of(message: Any) -> str:
    """What a message says; pictures and recordings, which lie elsewhere, are shown as `[…]`."""
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, dict):
        return ""
    parts = content.get("parts", content.get("thoughts", [content]))
    texts = [_part(part) for part in parts] if isinstance(parts, list) else []
    text = "\n\n".join(text for text in texts if text.strip())
    language = content.get("language")
    is_code = content.get("content_type") == "code" and message.get("recipient") in (None, "all")
    if is_code and text:
        return f"```{language if isinstance(language, str) else ''}\n{text}\n```"
    return text


def _part(part: Any) -> str:
    if not isinstance(part, dict):
        return part if isinstance(part, str) else ""
    for name in ("text", "content", "result"):
        if isinstance(part.get(name), str):
            return str(part[name])
    kind = part.get("content_type")
    return f"[{kind if isinstance(kind, str) else encode(part).decode()[:80]}]"


_LOOK = 1_000_000

FORMAT = Format("chatgpt", no_dumps, loads, looks_like, no_export)
