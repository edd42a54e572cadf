"""Wire values → domain values: what requests hold, as the assistant takes it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from tiro.assistant.prompt import Attachment
from tiro.errors import InvalidInputError
from tiro.protocol import types
from tiro.protocol.buffers import path_of


def given(params: msgspec.Struct) -> dict[str, Any]:
    """The fields that were given, null included, objects in them as dicts."""
    fields = {name: getattr(params, name) for name in params.__struct_fields__}
    return {
        name: given(value) if isinstance(value, msgspec.Struct) else value
        for name, value in fields.items()
        if value is not msgspec.UNSET
    }


def absolute(path: str | None) -> Path | None:
    """The path of a `file://` URI or a plain absolute path."""
    if path is None:
        return None
    if (found := path_of(path)) is None or "\0" in path:
        raise InvalidInputError(f"Give an absolute path or a file:// URI, not {path!r}")
    return found


def from_wire_attachments(
    attachments: Iterable[types.Attachment] | None, encoding: str
) -> list[Attachment]:
    """Attachments as the assistant takes them, with plain paths; positions are in this encoding."""
    return [
        Attachment(
            kind=one.kind,
            path=text_or_none(absolute(one.path)),
            range=None if one.range is None else msgspec.to_builtins(one.range),
            text=one.text,
            encoding=encoding,
        )
        for one in attachments or ()
    ]


def text_or_none(value: Path | None) -> str | None:
    """A path as text; None stays None."""
    return None if value is None else str(value)
