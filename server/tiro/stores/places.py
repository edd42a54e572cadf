"""Messages as places where a search may find something: read from sessions, compared, sorted."""

import heapq
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from operator import attrgetter
from pathlib import Path

import msgspec

from tiro.errors import SessionFormatError, SessionNotFoundError, StorageError
from tiro.session.core import Core
from tiro.session.messages import Message
from tiro.session.times import from_rfc3339, rfc3339
from tiro.session.words import Phrase, holds, searchable
from tiro.stores.reading import read_session

Progress = Callable[[int, int], None]
"""Hears how many of how many sessions have been read; called when that takes long.

Raises EndedError to end the search.
"""

LookAt = Callable[[str], tuple[Core, datetime]]
"""The saved session with this path, and when it was saved."""

log = logging.getLogger(__name__)


class EndedError(Exception):
    """The search was closed or given up while it ran."""


class Place(msgspec.Struct, frozen=True):
    """A message that can be found, and where it is."""

    moment: int
    """When it was said, in milliseconds since 1970."""
    path: str | None
    """The session's file; None where it is only in memory."""
    id: str | None
    """The session's id; None while it has none."""
    saved_at: str | None
    seq: int
    role: str
    taken_back: bool
    """Whether it is a wording or a message that the user has taken back."""
    text: str

    @property
    def order(self) -> tuple[int, str, int, str]:
        """What sorts the newest first, downwards."""
        return self.moment, self.path or "", self.seq, self.text


def places_in(core: Core, path: str | None, saved_at: str | None) -> Iterator[Place]:
    """All messages of a session, its archive too."""
    for message in (*core.archive_rows, *core.oldest_first()):
        yield Place(
            moment=_moment(core, message),
            path=path,
            id=core.id,
            saved_at=saved_at,
            seq=message.seq or 0,
            role=message.role,
            taken_back=bool(message.marks().get("taken_back")),
            text=searchable(message),
        )


def look_at_file(path: str) -> tuple[Core, datetime]:
    """The session in this file, and when it was saved; raises as `read_session`."""
    core, reading = Core(), read_session(Path(path))
    reading.restore(core)
    return core, reading.saved_at(core)


def saved_places(path: str, look_at: LookAt = look_at_file) -> list[Place]:
    """All messages of a saved session; none of one that cannot be read."""
    try:
        core, saved_at = look_at(path)
    except (SessionFormatError, SessionNotFoundError, StorageError) as error:
        log.info("Not searched: %s", error)
        return []
    return list(places_in(core, path, rfc3339(saved_at)))


def matching(places: Iterable[Place], wanted: Sequence[Phrase]) -> Iterator[Place]:
    """Those that hold every phrase."""
    return (place for place in places if holds(place.text, wanted))


def newest(places: Iterable[Place], limit: int) -> list[Place]:
    """The newest of them, in their order."""
    return heapq.nlargest(limit, places, key=attrgetter("order"))


def _moment(core: Core, message: Message) -> int:
    """When a message was said; when its session changed where it does not tell."""
    return int((from_rfc3339(message.timestamp) or core.updated).timestamp() * 1000)
