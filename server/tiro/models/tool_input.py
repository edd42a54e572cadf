"""The input of a tool use, out of the text in which a model wrote it."""

import uuid
from typing import Any

from tiro.session.json_text import MAX_NESTING, decode, is_nested_deeper

UNNAMED = "unknown"
"""Stands for the name of a tool use that came with arguments only."""


def new_tool_id() -> str:
    """An id for a tool use that came without one."""
    return f"call_{uuid.uuid4().hex}"


def read_tool_input(raw: str) -> dict[str, Any] | None:
    """The arguments as an object; nothing at all means none, None that they cannot be read."""
    if raw.strip() in ("", "null"):
        return {}
    try:
        value = decode(raw)
    except (ValueError, RecursionError):
        return None
    is_usable = isinstance(value, dict) and not is_nested_deeper(value, MAX_NESTING)
    return value if is_usable else None
