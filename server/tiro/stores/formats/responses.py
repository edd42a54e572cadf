"""Items as OpenAI's Responses API has them: what a conversation is made of there, one by one."""

from collections.abc import Callable, Iterable
from typing import Any

from tiro.session.json_text import encode
from tiro.stores.formats import json
from tiro.stores.formats.conversation import Conversation, named, own_block

CALLS = ("function_call", "custom_tool_call", "local_shell_call", "tool_search_call")
OUTPUTS = (
    "function_call_output",
    "custom_tool_call_output",
    "local_shell_call_output",
    "tool_search_output",
)


def is_item(value: Any) -> bool:
    """Whether a value is an item, and no message of a chat."""
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "message":
        return isinstance(value.get("role"), str) and isinstance(value.get("content"), str | list)
    return isinstance(kind, str) and (kind in (*CALLS, *OUTPUTS, "reasoning"))


def take(
    conversation: Conversation,
    item: dict[str, Any],
    at: Any = None,
    is_own: Callable[[str, list[Any]], bool] = lambda role, blocks: False,
) -> bool:
    """Add an item to the conversation; what is none that we know is left out, by its type.

    False for a message that a program has written itself: `is_own` says of which.
    """
    kind = item.get("type")
    if kind == "message" and isinstance(item.get("content"), str | list):
        return _take_message(conversation, item, at, is_own)
    if kind == "reasoning":
        _take_reasoning(conversation, item, at)
    elif kind in CALLS and (id := _call_id(item)):
        given = item.get("arguments", item.get("input", item.get("action")))
        use = {"id": id, "name": _name(item), "input": tool_input(given, "input")}
        conversation.answer([{"type": "tool_use", **use}], at)
    elif kind in OUTPUTS and (id := _call_id(item)):
        output = item.get("output", item.get("tools"))
        is_error = isinstance(output, dict) and output.get("success") is False
        conversation.result(id, _output(output), at, is_error)
    else:
        conversation.leave_out(named(kind))
    return True


def tool_input(given: Any, name: str) -> dict[str, Any]:
    """A tool's input: an object as it is or as JSON text; any other text under this name."""
    if isinstance(given, str):
        value = json.decode_or_none(given.encode("utf-8", "replace"))
        return value if isinstance(value, dict) else {name: given}
    return given if isinstance(given, dict) else {}


def _take_message(
    conversation: Conversation,
    item: dict[str, Any],
    at: Any,
    is_own: Callable[[str, list[Any]], bool],
) -> bool:
    role, content = str(item.get("role")), item["content"]
    blocks = [own_block(block) for block in (content if isinstance(content, list) else [content])]
    if is_own(role, blocks):
        return False
    if role == "assistant":
        conversation.answer(blocks, at)
    else:
        conversation.add(role, blocks, at)
    return True


def _take_reasoning(conversation: Conversation, item: dict[str, Any], at: Any) -> None:
    lists = [value for name in ("summary", "content") if isinstance(value := item.get(name), list)]
    texts = [text for part in _objects(lists) if isinstance(text := part.get("text"), str)]
    if texts:
        conversation.answer([{"type": "thinking", "thinking": "\n\n".join(texts)}], at)
    else:
        conversation.leave_out("reasoning that only its provider can read")


def _objects(lists: Iterable[list[Any]]) -> Iterable[dict[str, Any]]:
    return (part for value in lists for part in value if isinstance(part, dict))


def _name(item: dict[str, Any]) -> str:
    name = item.get("name")
    if isinstance(name, str):
        return name
    return "tool_search" if item.get("type") == "tool_search_call" else "shell"


def _call_id(item: dict[str, Any]) -> str | None:
    """What ties a call to its output; None where a provider's own tool has neither."""
    id = item.get("call_id") or item.get("id")
    is_the_providers = item.get("execution") == "server"
    return id if isinstance(id, str) and not is_the_providers else None


def _output(output: Any) -> str | list[Any]:
    if isinstance(output, dict) and isinstance(output.get("content"), str):
        return str(output["content"])
    if isinstance(output, list) and not any(_is_tool(part) for part in output):
        return [own_block(block) for block in output]
    return output if isinstance(output, str) else encode(output).decode()


def _is_tool(part: Any) -> bool:
    """Whether it is a tool that a search for tools has found."""
    return isinstance(part, dict) and part.get("type") in ("function", "namespace")
