"""Full-text search over the messages of saved and live sessions, the newest message first.

What is found is always read from the sessions themselves, so a hit is never out of date.
"""

import heapq
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path

import msgspec

from tiro.errors import SessionFormatError, SessionNotFoundError, StorageError
from tiro.session.core import Core, from_rfc3339, rfc3339
from tiro.session.messages import Message
from tiro.session.session import Session
from tiro.session.words import Phrase, phrases, searchable, snippet, words
from tiro.stores.index import SavedSession
from tiro.stores.manager import SessionManager
from tiro.stores.reading import read_session

Progress = Callable[[int, int], None]
"""Hears how many of how many sessions have been read."""

log = logging.getLogger(__name__)


class Hit(msgspec.Struct, frozen=True):
    """A message in which everything was found."""

    id: str | None
    """The session's id; None while it has none."""
    path: str | None
    """The session's file; None where it is only in memory."""
    seq: int
    role: str
    saved_at: str | None
    snippet: str
    """One line of about 160 characters around the first thing found."""
    taken_back: bool
    """Whether it is a wording or a message that the user has taken back."""


class Place(msgspec.Struct, frozen=True):
    """A message that can be a hit, and where it comes from."""

    order: tuple[int, str, int]
    """The newest first when sorted downwards: milliseconds, session, seq."""
    core: Core
    path: str | None
    saved_at: str | None
    message: Message
    text: str


class Search:
    """Searches the sessions of one manager."""

    def __init__(self, manager: SessionManager) -> None:
        self._manager = manager

    def find(
        self,
        query: str,
        limit: int,
        live: Sequence[Session] = (),
        on_progress: Progress = lambda done, total: None,
    ) -> list[Hit]:
        """The newest messages that hold every word and every "phrase" of the query.

        `live` sessions are searched as they are in memory, all others as they are saved.
        """
        wanted = phrases(query)
        if not wanted or not limit:
            return []
        living = {str(self._manager.path_of(session) or id(session)): session for session in live}
        rows, _ = self._manager.list(limit=None)
        saved = [row for row in rows if row.error is None and row.path not in living]
        found = scan(saved, wanted, limit, on_progress)
        for session in living.values():
            found += newest(matching(self._live_places(session), wanted), limit)
        return [self._hit(place, wanted) for place in newest(found, limit)]

    def _live_places(self, session: Session) -> list[Place]:
        path, saved_at = self._manager.path_of(session), self._manager.saved_at(session)
        with session.lock:
            return list(
                places(
                    session, str(path) if path else None, rfc3339(saved_at) if saved_at else None
                )
            )

    def _hit(self, place: Place, wanted: Sequence[Phrase]) -> Hit:
        shown = self._manager.redact((snippet(place.text, wanted) or "").encode()).decode()
        return Hit(
            id=place.core.id,
            path=place.path,
            seq=place.message.seq or 0,
            role=place.message.role,
            saved_at=place.saved_at,
            snippet=shown,
            taken_back=bool(place.message.marks().get("taken_back")),
        )


def places(core: Core, path: str | None, saved_at: str | None) -> Iterator[Place]:
    """All messages of a session, its archive too."""
    for message in (*core.archive_rows, *core.oldest_first()):
        order = (moment(core, message), path or "", message.seq or 0)
        yield Place(order, core, path, saved_at, message, searchable(message))


def moment(core: Core, message: Message) -> int:
    """When a message was said, in milliseconds; when the session changed where it does not say."""
    return int((from_rfc3339(message.timestamp) or core.updated).timestamp() * 1000)


def newest(found: Iterable[Place], limit: int) -> list[Place]:
    """The newest of them."""
    return heapq.nlargest(limit, found, key=attrgetter("order"))


def matching(found: Iterable[Place], wanted: Sequence[Phrase]) -> Iterator[Place]:
    """Those that hold every phrase."""
    for place in found:
        spaced = words(place.text)
        if all(phrase.is_in(spaced) for phrase in wanted):
            yield place


def scan(
    rows: Sequence[SavedSession], wanted: Sequence[Phrase], limit: int, on_progress: Progress
) -> list[Place]:
    """The newest places in these saved sessions, by reading every file."""

    def read() -> Iterator[Place]:
        for number, row in enumerate(rows):
            on_progress(number, len(rows))
            yield from matching(saved_places(row.path), wanted)

    return newest(read(), limit)


def saved_places(path: str) -> Iterator[Place]:
    """All messages of a saved session; none of one that cannot be read."""
    core = Core()
    try:
        reading = read_session(Path(path))
    except (SessionFormatError, SessionNotFoundError, StorageError) as error:
        log.info("Not searched: %s", error)
        return
    reading.restore(core)
    yield from places(core, path, rfc3339(reading.saved_at(core)))
