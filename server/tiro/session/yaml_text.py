"""Values as YAML text and back, exactly: text only, no file (A8.5).

Safe in what it reads: no tag makes an object, keys stay text, and aliases that would grow beyond
all bounds are refused. What is ambiguous or invisible is quoted when it is written.
"""

import re
from typing import Any

from tiro.session.json_text import clean, decode, encode

MAX_VALUES = 20_000_000
"""How many values and characters a text may stand for, an alias counted at each use."""


def dumps(value: Any) -> str:
    """The JSON value with its keys in their order, long texts as blocks of lines."""
    import yaml  # who never writes YAML never pays for it

    text = encode(value).decode()
    stand_ins = _stand_ins(text)
    written: str = yaml.dump(
        decode(text.translate(stand_ins)) if stand_ins else value,
        Dumper=_dumper(yaml),
        allow_unicode=True,
        sort_keys=False,
        width=2**31 - 1,
    )
    return written.translate({ord(to): chr(char) for char, to in stand_ins.items()})


def loads(text: str) -> tuple[Any, bytes]:
    """The value of a YAML text, and its JSON; ValueError for what has none, or is far too much."""
    import yaml

    try:
        value = yaml.load(clean(text), Loader=_loader(yaml))
        _check_size(value, {})
        return value, encode(value)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(_reason(error)) from error


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


def _stand_ins(text: str) -> dict[int, str]:
    """Private characters that the text does not hold, one for each emoji and the like in it.

    The fast writer would make a number of such a character, and one line of the text around it.
    """
    unused = (chr(code) for code in range(0xE000, 0xF900) if chr(code) not in text)
    return dict(zip(map(ord, sorted(set(_BEYOND_BMP.findall(text)))), unused, strict=False))


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


_BEYOND_BMP = re.compile("[\U00010000-\U0010fffe]")
_LINES = re.compile(r"[^\x00-\x09\x0b-\x1f\x7f-\xa0\u2028\u2029\ufeff]*")
"""Texts without characters that YAML takes for line breaks, or that nobody sees."""
