"""A session's life, step by step, and what is left to compare of it afterwards."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tiro.session.json_text import decode, encode
from tiro.session.session import Session
from tiro.stores.manager import SessionManager

IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0K" * 9000},
}
Step = Callable[[SessionManager, Session], object]
MAX_HISTORY = 5


def use(id: str) -> list[dict[str, Any]]:
    """An assistant's content with text and one tool use."""
    return [
        {"type": "text", "text": "let me look"},
        {"type": "tool_use", "id": id, "name": "grep", "input": {"pattern": "é🙂"}},
    ]


def _turn(manager: SessionManager, session: Session) -> None:
    with manager.writing(session):
        session.add_message("user", [{"type": "text", "text": "in a turn"}, IMAGE])


def _change(manager: SessionManager, session: Session) -> None:
    with manager.changing(session):
        session.change(summary="so far", memo={"fact": [1, {"a": None}]})


LIFE: list[Step] = [
    lambda _, s: s.set_agent("plan"),
    lambda _, s: s.add_message("user", "one"),
    lambda _, s: s.add_message("assistant", use("c1")),
    lambda _, s: s.add_tool_result("c1", "found\nit"),
    lambda _, s: s.add_message("assistant", "done"),
    _turn,
    lambda _, s: s.add_message("assistant", use("c2")),
    lambda _, s: s.add_tool_result("c2", "x" * 70_000),
    lambda m, s: m.save(s),
    lambda _, s: s.set("key", {"v": 2**60}),
    _change,
    lambda _, s: s.edit_message(s.next_seq - 3, "edited"),
    lambda _, s: s.add_message("user", "more"),
    lambda _, s: s.rewind(s.next_seq - 2),
    lambda m, s: m.copy_to(s, Path(m.directory) / "copy" / "copy.json"),
    lambda _, s: s.add_message("user", "again", colour="red"),
    lambda m, s: m.end(s),
    lambda _, s: s.clear(),
    lambda _, s: s.add_message("user", "after clear"),
    lambda _, s: s.delete("key"),
    lambda m, _: m.close(),
    lambda _, s: s.add_message("assistant", "last"),
]
"""Each step changes a session at most once, in every way there is."""


def state_of(session: Session) -> dict[str, Any]:
    """Everything of a session but its times and counters of storing."""
    fields: dict[str, Any] = decode(encode(session.snapshot()))
    for name in ("created_at", "updated_at", "journal_n", "id", "timestamp"):
        fields.pop(name, None)
    for message in fields["messages"] + fields["archive"]:
        message.pop("timestamp")
    return fields
