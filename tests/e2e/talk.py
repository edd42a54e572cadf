"""What the end-to-end tests say most often, in one word each."""

import json
from pathlib import Path
from typing import Any

from tests.e2e.client import Pending, Server


def ask(server: Server, prompt: Any = "hi", timeout: float = 20.0, **more: Any) -> dict[str, Any]:
    """Run a whole turn and give its result."""
    result: dict[str, Any] = begin_ask(server, prompt, **more).result(timeout)
    return result


def begin_ask(server: Server, prompt: Any = "hi", **more: Any) -> Pending:
    """Start a turn without waiting."""
    return server.begin("tiro/turn/start", {"prompt": prompt, **more})


def add(server: Server, role: str, content: Any, **more: Any) -> dict[str, Any]:
    """Add one message."""
    result: dict[str, Any] = server.request(
        "tiro/session/addMessage", {"role": role, "content": content, **more}
    )
    return result


def use(id_: str, name: str = "read_file", **given: Any) -> dict[str, Any]:
    """A tool_use block."""
    return {"type": "tool_use", "id": id_, "name": name, "input": given}


def result(id_: str, content: Any = "done", **more: Any) -> dict[str, Any]:
    """A tool_result block."""
    return {"type": "tool_result", "tool_use_id": id_, "content": content, **more}


def view(server: Server, **params: Any) -> dict[str, Any]:
    """The session as `get` shows it."""
    shown: dict[str, Any] = server.request("tiro/session/get", params)
    return shown


def window(server: Server) -> list[tuple[str, Any]]:
    """Role and content of every message in the window, oldest first."""
    return [(m["role"], m["content"]) for m in view(server)["messages"]]


def words(server: Server) -> list[str]:
    """The text of every message in the window, tool blocks as their ids."""
    return [text_of(content) for _, content in window(server)]


def text_of(content: Any) -> str:
    """All text in a content, blocks joined by a space."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return " ".join(text_of(block) for block in content)
    kind = content["type"]
    if kind == "tool_use":
        return f"use:{content['id']}"
    if kind == "tool_result":
        return f"result:{content['tool_use_id']}:{text_of(content['content'])}"
    return str(content.get("text", content.get("thinking", kind)))


def stored(path: Path) -> dict[str, Any]:
    """A session file as its JSON."""
    value: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return value
