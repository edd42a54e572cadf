"""Every format that a session can be exported to and imported from, by its name."""

from pathlib import PurePath

from tiro.errors import InvalidInputError
from tiro.stores.formats import (
    chatgpt,
    claude_code,
    codex,
    go_agent,
    gptel,
    json,
    jsonl,
    magent,
    markdown,
    messages,
    nanobot,
    yaml,
)
from tiro.stores.formats.agently import AGENTLY, AGENTLY_YAML
from tiro.stores.formats.format import Format, no_dumps, refused

FORMATS: tuple[Format, ...] = (
    claude_code.FORMAT,
    codex.FORMAT,
    nanobot.FORMAT,
    jsonl.FORMAT,
    chatgpt.FORMAT,
    go_agent.FORMAT,
    messages.FORMAT,
    messages.REQUEST,
    AGENTLY,
    magent.FORMAT,
    json.FORMAT,
    gptel.FORMAT,
    AGENTLY_YAML,
    yaml.FORMAT,
    markdown.FORMAT,
)
"""In the order in which they are looked for: what is more special comes first."""

WRITTEN = tuple(format.name for format in FORMATS if format.dumps is not no_dumps)
"""The names of those that a session can be exported to; the others are only read."""

SHORT_NAMES = {"md": "markdown", "yml": "yaml"}
"""What people and files' names call a format → its name."""


def named(name: str) -> Format:
    """The format with this name; InvalidInputError says which there are."""
    full = SHORT_NAMES.get(name, name)
    found = next((format for format in FORMATS if format.name == full), None)
    if found is None:
        known = ", ".join(sorted(format.name for format in FORMATS))
        raise InvalidInputError(f"The format {name!r} is not known; choose one of {known}")
    return found


def to_write(name: str) -> Format:
    """The format with this name; InvalidInputError also for one that is only read."""
    chosen = named(name)
    if chosen.name not in WRITTEN:
        known = ", ".join(sorted(WRITTEN))
        raise InvalidInputError(f"{name!r} can only be imported; export to one of {known}")
    return chosen


def name_for(path: str | None) -> str:
    """The name of the format that a file's name asks for; Markdown where it asks for none."""
    ending = PurePath(path or "").suffix.removeprefix(".").lower()
    name = SHORT_NAMES.get(ending, ending)
    return name if name in WRITTEN else "markdown"


def recognised(text: str) -> Format:
    """The format that a text has, by its content; SessionFormatError for none."""
    found = next((format for format in FORMATS if format.looks_like(text)), None)
    if found is None:
        raise refused("It is in no format that Tiro knows")
    return found


def earlier_id(text: str) -> str | None:
    """The id of the session whose export this text is; None for what is no export."""
    found = next((format for format in FORMATS if format.looks_like(text)), None)
    return found.earlier_id(text) if found else None
