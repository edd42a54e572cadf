"""What the end-to-end tests say most often, in one word each."""

import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.client import Pending, Server
from tests.e2e.home import Home
from tests.e2e.warm import WarmProcess
from tests.sizes import PATIENCE

BREAKDOWN = {
    "system", "tools", "memo", "summary", "user", "assistant", "toolUse", "toolResult",
    "attachments",
}  # fmt: skip


def ask(
    server: Server, prompt: Any = "hi", timeout: float = PATIENCE, **more: Any
) -> dict[str, Any]:
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


def at_rest(server: Server) -> dict[str, Any]:
    """The session as `get` shows it once it is saved: `savedAt` would change in an idle moment."""
    server.request("tiro/session/save")
    return view(server)


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


def check_size(size: dict[str, Any]) -> int:
    """A ContextSize that adds up; gives its tokens."""
    assert set(size) >= {"tokens", "errorPercent", "contextWindow", "ratio", "breakdown"}
    assert set(size["breakdown"]) == BREAKDOWN
    assert sum(size["breakdown"].values()) == size["tokens"]
    if size["contextWindow"]:
        assert size["ratio"] == pytest.approx(size["tokens"] / size["contextWindow"], abs=0.001)
    tokens: int = size["tokens"]
    return tokens


def fill(server: Server, *contents: str) -> None:
    """Add user and assistant messages in turn."""
    for content, role in zip(contents, itertools.cycle(["user", "assistant"]), strict=False):
        add(server, role, content)


def latest(server: Server) -> list[str]:
    """Load the latest session and give its texts."""
    server.request("tiro/session/load", {"latest": True})
    return words(server)


def everything(home: Home, warm: WarmProcess | None) -> set[str]:
    """Every text in any session of this home, as a fresh process reads them."""
    with Server(home, warm=warm) as reader:
        reader.initialize()
        found: set[str] = set()
        for row in reader.request("tiro/session/list", {"limit": 1000})["sessions"]:
            reader.request("tiro/session/load", {"path": row["path"]})
            found |= set(words(reader))
        reader.check()
        return found


def leftovers(home: Home) -> list[str]:
    """Temporary files in the sessions directory that stay there: a server may be writing one."""
    end = time.monotonic() + PATIENCE
    while found := [p.name for p in home.sessions.iterdir() if ".tmp" in p.name]:
        if time.monotonic() > end:
            break
        time.sleep(0.01)
    return found


def until(condition: Callable[[], bool]) -> None:
    """Wait for what the server does in the background."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
