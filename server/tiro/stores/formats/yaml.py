"""YAML: the value of the session file as a text for people, lossless both ways (U7.1, A8.5).

Safe in what it reads: no tag makes an object, keys stay text, and aliases that would grow beyond
all bounds are refused. What is ambiguous or invisible is quoted when it is written.
"""

import re
from typing import Any

from tiro.session.messages import clean, encode
from tiro.stores.formats import json
from tiro.stores.formats.format import Format, Imported, refused

MAX_VALUES = 20_000_000
"""How many values and characters a text may stand for, an alias counted at each use."""


def dumps(fields: dict[str, Any]) -> str:
    """The fields in their order, long texts as blocks of lines."""
    import yaml  # who never exports YAML never pays for it

    text: str = yaml.dump(
        fields, Dumper=_dumper(yaml), allow_unicode=True, sort_keys=False, width=2**31 - 1
    )
    return text


def loads(text: str) -> Imported:
    """Read YAML; raises SessionFormatError for what is none, or stands for far too much."""
    value, data = _read(text)
    return json.read(data, value)


def looks_like(text: str) -> bool:
    """Whether a line of the text begins with the key that every session has."""
    return _KEY.search(text) is not None and not json.looks_like(text)


def earlier_id(text: str) -> str | None:
    """The id in a session's YAML."""
    try:
        return json.id_in(_read(text)[0]) if looks_like(text) else None
    except ValueError:
        return None


def _read(text: str) -> tuple[Any, bytes]:
    """The value that a text stands for, also as JSON."""
    import yaml

    try:
        value = yaml.load(clean(text), Loader=_loader(yaml))
        _check_size(value, {})
        data = encode(value)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise refused(_reason(error)) from error
    return value, data


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "The YAML is nested too deeply"
    mark = getattr(error, "problem_mark", None)
    where = f" in line {mark.line + 1}" if mark is not None else ""
    return f"The text is no valid YAML{where} ({getattr(error, 'problem', None) or error})"


def _check_size(value: Any, sizes: dict[int, int]) -> int:
    """How many values and characters this stands for; ValueError beyond `MAX_VALUES`."""
    if isinstance(value, str):
        return 1 + len(value)
    if not isinstance(value, dict | list):
        if isinstance(value, int | float | None):
            return 1
        raise ValueError(f"a {type(value).__name__} has no place in a session")
    size = sizes.get(id(value))
    if size is None:
        sizes[id(value)] = MAX_VALUES + 1  # whoever meets it again inside itself stops there
        parts = value.values() if isinstance(value, dict) else value
        size = sizes[id(value)] = 1 + sum(_check_size(part, sizes) for part in parts)
    if size > MAX_VALUES:
        raise ValueError("its aliases stand for more than a session can hold")
    return size


def _dumper(yaml: Any) -> Any:
    """A safe dumper that repeats shared values and shows texts so that they come back the same."""

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            return True

    Dumper.add_representer(
        str,
        lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, _style(text)),
    )
    return Dumper


def _loader(yaml: Any) -> Any:
    """A safe loader for plain values only: keys as they are written, no dates, no merging."""

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
            found = {}
            for key, value in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise yaml.constructor.ConstructorError(
                        None, None, "a key is no text", key.start_mark
                    )
                found[key.value] = self.construct_object(value, deep=deep)
            return found

    Loader.yaml_implicit_resolvers = {
        first: [pair for pair in pairs if not pair[0].endswith((":timestamp", ":merge"))]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return Loader


def _style(text: str) -> str | None:
    """How a text is written: in lines, in quotes with escapes, or as YAML sees fit."""
    if not text.isprintable() and not _LINES.fullmatch(text):
        return '"'
    return "|" if "\n" in text else None


_KEY = re.compile(r"^(?:messages|full_chat_history):", re.MULTILINE)
_LINES = re.compile(r"[^\x00-\x09\x0b-\x1f\x7f-\xa0\u2028\u2029\ufeff]*")
"""Texts without characters that YAML takes for line breaks, or that nobody sees."""

FORMAT = Format("yaml", dumps, loads, looks_like, earlier_id)
