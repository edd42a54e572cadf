"""What a session keeps of a request: what the user said and the answer, or parts (A9.9)."""

import re
from collections.abc import Mapping
from typing import Any

from tiro.session import yaml_text
from tiro.session.json_text import decode
from tiro.session.settings import SessionSettings


def recorded(given: Any, output: str, settings: SessionSettings) -> list[dict[str, Any]]:
    """The user message and, unless the answer is empty, the assistant message (A9.8)."""
    said = _picked(given, settings, "input")
    messages = [{"role": "user", "content": as_text(said)}]
    if output.strip():
        answer = _picked(output, settings, "output")
        messages.append({"role": "assistant", "content": as_text(answer)})
    return messages


def as_text(value: Any) -> str:
    """A text as it is, anything else as YAML."""
    return value if isinstance(value, str) else yaml_text.dumps(value).removesuffix("...\n").strip()


def _picked(value: Any, settings: SessionSettings, side: str) -> Any:
    """What `session.record.<side>.paths` names in the value: the first one found, or all by path.

    All of the value where no path is set or none leads anywhere, so that nothing is lost.
    """
    paths = settings[f"session.record.{side}.paths"]
    paths = [paths] if isinstance(paths, str) else paths or []
    parts = _parsed(value) if paths else None
    found = {path: part for path in paths if (part := _at(parts, path)) is not None}
    if not found:
        return value
    if settings[f"session.record.{side}.mode"] == "first":
        return next(iter(found.values()))
    return found


def _parsed(value: Any) -> Any:
    """The value of a text that is JSON, such as a structured answer."""
    try:
        return decode(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None


def _at(value: Any, path: str) -> Any:
    """The part at a path such as `a.b.0`, `a.b[0]` or `/a/b/0`; None where there is none."""
    for step in path.strip("/").split("/") if "/" in path else re.findall(r"[^.\[\]]+", path):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value
