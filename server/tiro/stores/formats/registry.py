"""Every format that a session can be exported to and imported from, by its name."""

from pathlib import PurePath

from tiro.errors import InvalidInputError
from tiro.stores.formats import json, jsonl, markdown, yaml
from tiro.stores.formats.agently import AGENTLY, AGENTLY_YAML
from tiro.stores.formats.format import Format, refused

FORMATS: tuple[Format, ...] = (
    jsonl.FORMAT,
    AGENTLY,
    AGENTLY_YAML,
    json.FORMAT,
    yaml.FORMAT,
    markdown.FORMAT,
)
"""In the order in which they are looked for: what is more special comes first."""

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


def name_for(path: str | None) -> str:
    """The name of the format that a file's name asks for; Markdown where it asks for none."""
    ending = PurePath(path or "").suffix.removeprefix(".").lower()
    name = SHORT_NAMES.get(ending, ending)
    return name if any(format.name == name for format in FORMATS) else "markdown"


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
