"""Full-text search over the messages of saved and live sessions, the newest message first.

An index answers where it can; where it cannot (no SQLite with full text, no directory for caches,
a full disk), every file is read, which is slower and finds the same.
"""

import hashlib
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from tiro.session.session import Session
from tiro.session.times import rfc3339
from tiro.session.words import Phrase, phrases, snippet
from tiro.stores.lock import never
from tiro.stores.manager import SessionManager
from tiro.stores.places import (
    EndedError,
    Place,
    Progress,
    matching,
    newest,
    places_in,
    saved_places,
)

if TYPE_CHECKING:
    from tiro.stores.search_index import SearchIndex

LONG_SECONDS = 0.5
REPORT_SECONDS = 0.1


class Hit(msgspec.Struct, frozen=True):
    """A message in which everything was found."""

    id: str | None
    path: str | None
    seq: int
    role: str
    saved_at: str | None
    snippet: str
    """One line of about 160 characters around the first thing found."""
    taken_back: bool


class Search:
    """Searches the sessions of one manager; one search at a time."""

    def __init__(self, manager: SessionManager) -> None:
        self._manager = manager
        self._index = _index_of(manager)
        self._lock = threading.Lock()
        self._is_closed = False

    def find(
        self,
        query: str,
        limit: int,
        live: Sequence[Session] = (),
        on_progress: Progress = lambda done, total: None,
        is_given_up: Callable[[], bool] = never,
    ) -> list[Hit]:
        """The newest messages that hold every word and every "phrase" of the query.

        `live` sessions are searched as they are in memory, all others as they are saved. Nothing
        is found by a search that `is_given_up`, asked again and again, ends. Costs a list of the
        sessions, what changed since the last search, and the rows that the index finds.
        """
        wanted = phrases(query)
        if not wanted or not limit:
            return []
        living = {str(self._manager.path_of(session) or id(session)): session for session in live}
        report = self._reporting(on_progress, is_given_up)
        try:
            with self._lock:
                found = self._saved(wanted, limit, living.keys(), report)
        except EndedError:
            return []
        for session in living.values():
            found += newest(matching(self._live_places(session), wanted), limit)
        return [_hit(place, wanted) for place in newest(found, limit)]

    def forget_deleted(self) -> bool:
        """Have the index forget what is saved no more; False, and nothing done, during a search."""
        if self._index is None:
            return True
        if not self._lock.acquire(blocking=False):
            return False
        try:
            self._index.forget_all_but(self._manager.versions())
        finally:
            self._lock.release()
        return True

    def close(self) -> None:
        """End a search that is running, and let go of the index."""
        self._is_closed = True
        with self._lock:
            if self._index is not None:
                self._index.close()

    def _saved(
        self, wanted: Sequence[Phrase], limit: int, living: Collection[str], on_progress: Progress
    ) -> list[Place]:
        """The newest places in all saved sessions but those that live in this process."""
        versions = self._manager.versions()
        if self._index is not None:
            found = self._index.places(versions, wanted, limit, living, on_progress)
            if found is not None:
                return found

        def read() -> Iterator[Place]:
            for number, (path, _) in enumerate(versions):
                on_progress(number, len(versions))
                if path not in living:
                    yield from matching(saved_places(path, self._manager.look_at), wanted)

        return newest(read(), limit)

    def _live_places(self, session: Session) -> list[Place]:
        """The messages of a live session, redacted as its file would be."""
        path, saved_at = self._manager.path_of(session), self._manager.saved_at(session)
        with session.lock:
            places = places_in(
                session,
                None if path is None else str(path),
                None if saved_at is None else rfc3339(saved_at),
            )
            redact = self._manager.redact_text
            return [msgspec.structs.replace(place, text=redact(place.text)) for place in places]

    def _reporting(self, on_progress: Progress, is_given_up: Callable[[], bool]) -> Progress:
        """Ends the search where nobody waits for it, and passes on what is worth telling."""
        told = time.monotonic() + LONG_SECONDS - REPORT_SECONDS

        def report(done: int, total: int) -> None:
            nonlocal told
            if self._is_closed or is_given_up():
                raise EndedError
            if time.monotonic() - told >= REPORT_SECONDS:
                told = time.monotonic()
                on_progress(done, total)

        return report


def _hit(place: Place, wanted: Sequence[Phrase]) -> Hit:
    return Hit(
        id=place.id,
        path=place.path,
        seq=place.seq,
        role=place.role,
        saved_at=place.saved_at,
        snippet=snippet(place.text, wanted) or "",
        taken_back=place.taken_back,
    )


def _index_of(manager: SessionManager) -> "SearchIndex | None":
    """The index of a manager's directory; None where there cannot be one."""
    if manager.cache_directory is None:
        return None
    try:
        from tiro.stores.search_index import SearchIndex  # SQLite is not in every Python
    except ImportError:
        return None
    name = hashlib.sha256(os.fsencode(manager.directory)).hexdigest()[:16]
    path = manager.cache_directory / f"search-{name}.db"
    return SearchIndex(path, manager.disk, manager.look_at)
