"""YAML: the value of the session file as a text for people, lossless both ways (U7.1, A8.5)."""

import re
from typing import Any

from tiro.session import yaml_text
from tiro.stores.formats import json
from tiro.stores.formats.format import ALL, Format, Imported, refused


def dumps(fields: dict[str, Any]) -> str:
    """The fields in their order, long texts as blocks of lines."""
    return yaml_text.dumps(fields)


def loads(text: str) -> Imported:
    """Read YAML; raises SessionFormatError for what is none, or stands for far too much."""
    value, data = read(text)
    return json.read(data, value)


def looks_like(text: str) -> bool:
    """Whether a line of the text begins with the key that every session has."""
    return _KEY.search(text) is not None and not json.looks_like(text)


def earlier_id(text: str) -> str | None:
    """The id in a session's YAML."""
    try:
        return json.id_in(read(text)[0]) if looks_like(text) else None
    except ValueError:
        return None


def read(text: str) -> tuple[Any, bytes]:
    """The value that a text stands for, also as JSON; SessionFormatError for none."""
    try:
        return yaml_text.loads(text)
    except ValueError as error:
        raise refused(str(error)) from error


_KEY = re.compile(r"^messages:", re.MULTILINE)

FORMAT = Format("yaml", dumps, loads, looks_like, earlier_id, ALL)
