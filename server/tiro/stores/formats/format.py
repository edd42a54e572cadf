"""What a format is: a session as text, and back."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from tiro.errors import SessionFormatError
from tiro.session.messages import Message
from tiro.session.snapshot import StoredSession


class Imported(msgspec.Struct):
    """A session that was read from a text, and what became of it on the way."""

    stored: StoredSession
    notes: list[str]
    """What is not as it was in the text, each a sentence."""


class Format(NamedTuple):
    """One format by its name."""

    name: str
    dumps: Callable[[dict[str, Any]], str]
    """The text of a session, given as the plain fields of its file (`exports.stored_form`)."""
    loads: Callable[[str], Imported]
    """The session in a text; raises SessionFormatError with `reason` and `recovered`."""
    looks_like: Callable[[str], bool]
    """Whether a text is probably meant as this format; costs little for any other."""
    earlier_id: Callable[[str], str | None]
    """The id of the session whose export a text is; None for what is no export."""


def refused(reason: str, recovered: int = 0) -> SessionFormatError:
    """The error for a text that cannot be read."""
    return SessionFormatError(
        f"The text cannot be read as a session: {reason}", reason=reason, recovered=recovered
    )


def history(fields: dict[str, Any]) -> list[Message]:
    """The messages that were not taken back, those in the archive first."""
    rows = [Message.from_dict(row) for name in ("archive", "messages") for row in fields[name]]
    return [row for row in rows if not row.marks().get("taken_back")]
