"""What a format is: a session as text, and back."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from tiro.errors import SessionFormatError
from tiro.session.messages import Message
from tiro.session.snapshot import FIELDS, LISTS, StoredSession


class Imported(msgspec.Struct):
    """A session that was read from a text, and what became of it on the way."""

    stored: StoredSession
    notes: list[str]
    """What is not as it was in the text, each a sentence."""
    others: list[StoredSession] = []
    """Further sessions in the same text, oldest first; `stored` is the newest of all."""
    format: str = ""
    """The name of the format that a file has."""


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
    keeps: frozenset[str] = frozenset()
    """The fields that this form has a place for, besides the id and the messages; see `ALL`."""
    losses_within: Callable[[dict[str, Any]], list[str]] = lambda fields: []
    """What of the messages themselves it has no place for, in sentences."""


TIMES, OTHERS = "times", "others"
"""What a form may keep besides: when each message was said, fields that Tiro does not know."""
ALL = frozenset(FIELDS) | frozenset(LISTS) | {TIMES, OTHERS}
"""What a form keeps that loses nothing."""


def no_dumps(fields: dict[str, Any]) -> str:
    """The `dumps` of a format that is only read; who asks the registry never comes here."""
    raise NotImplementedError


def no_export(text: str) -> None:
    """The `earlier_id` of a format that is only read, or does not say whose it is."""


def losses(format: Format, fields: dict[str, Any]) -> list[str]:
    """What of a session a form has no place for: a sentence, or nothing where nothing is lost."""
    lost = [word for name, word in _PARTS.items() if fields.get(name) and name not in format.keeps]
    archived = [Message.from_dict(row) for row in fields["archive"]]
    if (count := sum(map(_is_taken_back, archived))) and not format.keeps >= ALL:
        lost.append("1 message" if count == 1 else f"{count} messages")
        lost[-1] += " that you took back"
    if len(archived) > count and "archive" not in format.keeps:
        lost.append("where the window begins")
    if TIMES not in format.keeps and len({message.timestamp for message in history(fields)}) > 1:
        lost.append("when each message was said")
    if OTHERS not in format.keeps and any(others_of(fields).values()):
        lost.append("fields of other programs")
    whole = [f"What {format.name} has no place for: {', '.join(lost)}"] if lost else []
    return [*whole, *format.losses_within(fields)]


def refused(reason: str, recovered: int = 0) -> SessionFormatError:
    """The error for a text that cannot be read."""
    return SessionFormatError(
        f"The text cannot be read as a session: {reason}", reason=reason, recovered=recovered
    )


def history(fields: dict[str, Any]) -> list[Message]:
    """The messages that were not taken back, those in the archive first."""
    rows = [Message.from_dict(row) for name in ("archive", "messages") for row in fields[name]]
    return [row for row in rows if not _is_taken_back(row)]


def others_of(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of another program that Tiro does not know and has kept."""
    own = {*FIELDS, *LISTS, "schema_version", "timestamp"}
    return {name: value for name, value in fields.items() if name not in own}


def _is_taken_back(message: Message) -> bool:
    return bool(message.marks().get("taken_back"))


_PARTS = {
    "title": "the title",
    "agent": "the agent",
    "model": "the model",
    "memo": "the memo",
    "summary": "the summary",
    "state": "the state",
    "metadata": "the metadata",
    "pins": "the pins",
    "settings": "the session's settings",
}
"""What people would miss: field → its name for them."""
