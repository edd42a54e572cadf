"""The Agently form as JSON and as YAML: histories, memo, counters and own settings (A8, U7.4)."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from tiro.session import agently, yaml_text
from tiro.session.core import Core
from tiro.session.json_text import encode
from tiro.session.snapshot import read_snapshot
from tiro.stores.formats import json, yaml
from tiro.stores.formats.format import Format, Imported, refused


def dumps(write: Callable[[Core], str], fields: dict[str, Any]) -> str:
    """The session in this form; what was taken back, summary and state are not in it."""
    core = Core()
    core.restore(read_snapshot(encode(fields)))
    return write(core)


def loads_json(text: str) -> Imported:
    """Read JSON; SessionFormatError for what is none, or no session."""
    return _loaded(_json(text))


def loads_yaml(text: str) -> Imported:
    """Read YAML; SessionFormatError for what is none, or no session."""
    return _loaded(yaml.read(text)[0])


def looks_like_json(text: str) -> bool:
    """Whether it is one JSON object with a history in this form."""
    return json.looks_like(text) and _has_word(text) and _is_form(_json(text))


def looks_like_yaml(text: str) -> bool:
    """Whether a line of it begins with the key of such a history."""
    is_other = json.looks_like(text) or yaml.looks_like(text)
    return _LINE.search(text) is not None and not is_other


def _earlier_id(
    looks_like: Callable[[str], bool], read: Callable[[str], Any], text: str
) -> str | None:
    try:
        value = read(text) if looks_like(text) else {}
    except ValueError:
        return None
    return str(value.get("id") or "") if _is_form(value) else None


def _json(text: str) -> Any:
    return json.decode_or_none(text.encode("utf-8", "replace"))


def _yaml(text: str) -> Any:
    return yaml_text.loads(text)[0]


def _is_form(value: Any) -> bool:
    has_history = isinstance(value, dict) and not value.keys().isdisjoint(agently.HISTORIES)
    return has_history and "messages" not in value


def _has_word(text: str) -> bool:
    """Whether such a key is in it; searched in pieces, so that other threads go on meanwhile."""
    starts = range(0, len(text), _PIECE)
    return any(_WORD.search(text, at, at + _PIECE + _LONGEST) for at in starts)


def _loaded(value: Any) -> Imported:
    if isinstance(value, dict) and value.keys().isdisjoint(agently.HISTORIES):
        raise refused(f"It has neither {' nor '.join(agently.HISTORIES)}")
    core = Core()
    try:
        agently.load(core, value)
    except KeyError as error:
        raise refused(f"One of its messages has no {error}") from error
    except (TypeError, ValueError) as error:
        raise refused(str(error)) from error
    imported = json.read(encode(core.snapshot()), None)
    if alone := sum(bool(m.marks().get("window_only")) for m in core.newest_first):
        imported.notes.append(f"Only in the window, and not in the full history: {alone}")
    return imported


_WORD = re.compile("|".join(f'"{name}"' for name in agently.HISTORIES))
_PIECE, _LONGEST = 1_000_000, max(map(len, agently.HISTORIES)) + 2
_LINE = re.compile(rf"^(?:{'|'.join(agently.HISTORIES)}):", re.MULTILINE)

_KEEPS = frozenset(("memo", "settings", "archive"))

AGENTLY = Format(
    "agently",
    partial(dumps, agently.to_json),
    loads_json,
    looks_like_json,
    partial(_earlier_id, looks_like_json, _json),
    _KEEPS,
)
AGENTLY_YAML = Format(
    "agently-yaml",
    partial(dumps, agently.to_yaml),
    loads_yaml,
    looks_like_yaml,
    partial(_earlier_id, looks_like_yaml, _yaml),
    _KEEPS,
)
