"""Sessions as files: which one is the current one, and what is done to the others.

Whatever makes another session the current one ends the turn and saves the old session first.
"""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tiro.assistant.named_paths import to_be_read, to_be_written
from tiro.assistant.results import Cleared, Exported, Saved
from tiro.assistant.running_turn import entered
from tiro.assistant.turns import Turns
from tiro.errors import (
    InvalidInputError,
    SessionFormatError,
    SessionInUseError,
    SessionNotFoundError,
    StorageError,
)
from tiro.session.large import MARK as LARGE
from tiro.session.queued import add_queued, queued
from tiro.session.redact import redact_shapes_in
from tiro.session.session import Session
from tiro.session.snapshot import StoredSession
from tiro.stores.index import SavedSession
from tiro.stores.manager import SessionManager
from tiro.stores.names import MAX_ID_LENGTH, check_id, safe_id
from tiro.stores.store import expires_at, has_expired
from tiro.tools.silent_disk import Patience

if TYPE_CHECKING:
    from tiro.stores.exports import Twins
    from tiro.stores.formats.format import Imported
    from tiro.stores.places import Progress
    from tiro.stores.search import Hit, Search

DEFAULT_HITS = 20
MOST_HITS = 1000

Weigh: TypeAlias = Callable[[Session], Awaitable[None]]


class SavedSessions:
    """The sessions of one directory, as the current one comes from there and goes there."""

    def __init__(
        self, manager: SessionManager, turns: Turns, weigh: Weigh, patience: Patience
    ) -> None:
        """`weigh` measures a session that is about to become the current one, beside all else.

        `patience` is for the disks of files that a client names.
        """
        self._manager = manager
        self._turns = turns
        self._patience = patience
        self._search: Search | None = None
        self._searching = ThreadPoolExecutor(1, "tiro-search")
        """Searches wait for each other here, and nothing else waits for one (P12)."""
        self._weigh = weigh
        self._unsaved: list[Session] = []  # kept alive for the manager, which tries them again

    async def new(
        self,
        id: str | None,
        title: str | None,
        agent: str | None,
        max_history: int | None,
    ) -> Session:
        """End the old session as `clear` does, and begin one with these."""
        session = self._manager.create(id=id, agent=agent, max_history=max_history)
        await self.clear()
        self._manager.set_current(session)
        if title is not None:
            session.change(title=title)
        return session

    async def clear(self) -> Cleared:
        """End the turn, save the session if it holds anything, and begin an empty one.

        What the disk refuses stays in memory, and is tried again from time to time.
        """
        await self._turns.cancel()
        session = self._manager.current
        self._manager.reset()
        self._turns.overtake()
        if session is None:
            return Cleared(0, None)
        saved = None
        if self._manager.autosave and (session.newest_first or session.archive_rows):
            saved = await asyncio.to_thread(self._manager.end, session)
            if not self._manager.is_stored(session):
                self._unsaved.append(session)
                saved = None
        return Cleared(len(session.newest_first), saved)

    async def save(self, path: Path | None = None) -> Saved:
        """Write the session's own file, or a copy to `path`; StorageError when it cannot be."""
        await to_be_written(path, self._patience)
        session = self._manager.get()
        written = await asyncio.to_thread(self._manager.save, session, path)
        return Saved(written, session.id or "", self._manager.stored_bytes(session, written))

    async def load(
        self, path: Path | None = None, id: str | None = None, latest: bool | None = None
    ) -> Session:
        """Make a saved session the current one; the old one is ended and saved first.

        The target is read before the old session is touched; what cannot be read raises
        SessionFormatError or SessionNotFoundError and changes nothing. An id that no client may
        give raises InvalidSessionIdError, here and in `export` and `delete`.
        """
        if id is not None:
            check_id(id)
        if sum((path is not None, id is not None, bool(latest))) != 1:
            raise InvalidInputError("Give exactly one of `path`, `id` and `latest`")
        await to_be_read(path, self._patience)
        current = self._manager.current
        loaded = self._kept(path, id)
        if loaded is None:
            loaded = await asyncio.to_thread(_read, self._manager, path, id)
        file = self._manager.path_of(loaded)
        if current is not None and file is not None and self._manager.path_of(current) == file:
            await self._turns.cancel()
            self._turns.overtake()
            await asyncio.to_thread(self._manager.end, current)
            if self._manager.autosave and self._manager.live.is_held_back(current):
                loaded = current  # it holds more than its file, which takes no more
            else:
                loaded = await asyncio.to_thread(self._manager.load, file)
            await self._weigh(loaded)
        else:
            await self._weigh(loaded)
            await self.clear()
        self._manager.set_current(loaded)
        if queued(loaded):  # its turn was killed, unless another process runs it right now
            with contextlib.suppress(SessionInUseError):
                async with entered(self._manager.changing(loaded)):
                    add_queued(loaded)
        return loaded

    def _kept(self, path: Path | None, id: str | None) -> Session | None:
        """The session there that holds more than its file: the disk has refused the rest."""
        for one in self._held_back():
            if one.id == id if path is None else self._manager.path_of(one) == path:
                return one
        return None

    def _held_back(self) -> Sequence[Session]:
        """Those that the disk has still refused, and that nobody has deleted."""
        live = self._manager.live
        self._unsaved = [one for one in self._unsaved if live.is_held_back(one)]
        return self._unsaved

    async def latest(self) -> SavedSession | None:
        """The saved session that `load` takes as the latest."""
        return await asyncio.to_thread(self._manager.latest)

    async def list(
        self, query: str | None = None, limit: int | None = None, offset: int | None = None
    ) -> tuple[Sequence[SavedSession], int]:
        """A page of the saved sessions, newest first, and how many there are."""
        count = 100 if limit is None else limit
        return await asyncio.to_thread(self._manager.list, query, count, offset or 0)

    async def export(
        self, format: str, id: str | None, path: Path | None, is_redacted: bool
    ) -> Exported:
        """A session as text of this format, in a file or as it is.

        Without an id the current session; redacted, it is without what has the shape of a key.
        Raises InvalidInputError for an unknown format, SessionNotFoundError, SessionFormatError,
        StorageError.
        """
        if id is not None:
            check_id(id)
        await to_be_written(path, self._patience)
        return await asyncio.to_thread(_export, self._manager, format, id, path, is_redacted)

    async def import_from(
        self, path: Path | None, text: str | None, format: str | None, is_once: bool = False
    ) -> tuple[Session, Sequence[str]]:
        """Make what is in a file or a text the current session, in a new file of ours.

        If it is wanted only once, one that is here already becomes the current one instead. Also
        what was not taken over as it was, in sentences. What cannot be read raises
        SessionFormatError or SessionNotFoundError and changes nothing.
        """
        if (path is None) == (text is None):
            raise InvalidInputError("Give exactly one of `path` and `text`")
        await to_be_read(path, self._patience)
        imported = await asyncio.to_thread(_import, path, text or "", format)
        notes = [*imported.notes, *_losses(imported.stored)]
        given = imported.stored.fields["id"] or ""
        await self.clear()
        twins = await asyncio.to_thread(_twins, self._manager, imported.stored, path)
        twin = await asyncio.to_thread(twins.of, imported.stored)
        notes += await asyncio.to_thread(self._adopt_others, imported.others, twins)
        if is_once and twin is not None and twin.holds_all:
            return await self.load(path=Path(twin.path)), [*notes, "It is here already"]
        session = await asyncio.to_thread(self._manager.adopt, imported.stored)
        await self._weigh(session)
        self._manager.set_current(session)
        if given != safe_id(given):
            notes.append(f"It is {session.id!r} here: {given[:MAX_ID_LENGTH]!r} is no session id")
        elif given not in ("", session.id) and twin is None:
            notes.append(f"It is {session.id!r} here: another session has the id {given!r}")
        if twin is not None:
            notes.append(f"The session {twin.id!r} has the same messages; this one is a second one")
        return session, notes

    def _adopt_others(self, others: Sequence[StoredSession], twins: "Twins") -> Sequence[str]:
        """Save the further sessions of an import, oldest first; what is to be said of them.

        None comes a second time.
        """
        found = [twins.of(stored) for stored in others]
        new = [s for s, twin in zip(others, found, strict=True) if not (twin and twin.holds_all)]
        counts = {"that are here already": len(others) - len(new)}
        if not self._manager.autosave:
            counts["left out as nothing is saved by itself"] = len(new)
            new = []
        again = unsaved = 0
        for stored in new:
            wanted = safe_id(stored.fields["id"] or "")
            session = self._manager.adopt(stored)
            again += wanted not in ("", session.id)
            self._manager.end(session)
            if not self._manager.is_stored(session):
                self._unsaved.append(session)
                unsaved += 1
        counts["that could not be stored yet"] = unsaved
        counts["in it, each a saved session now"] = len(new) - unsaved
        counts["whose id another session had before"] = again
        return [f"Older conversations {what}: {n}" for what, n in counts.items() if n]

    async def search(
        self, query: str, limit: int | None, on_progress: "Progress"
    ) -> "Sequence[Hit]":
        """The newest messages of all sessions, saved or not, that hold all of the query.

        One at a time; one that is cancelled ends, or never begins. Raises InvalidInputError for an
        empty query. `on_progress` is called from another thread.
        """
        if not query.strip():
            raise InvalidInputError("Give at least one word to search for - at `$.query`")
        search = self._opened()
        count = min(DEFAULT_HITS if limit is None else limit, MOST_HITS)
        current = [] if self._manager.current is None else [self._manager.current]
        live = list(dict.fromkeys([*current, *self._held_back()]))
        is_over = threading.Event()
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._searching, search.find, query, count, live, on_progress, is_over.is_set
            )
        finally:
            is_over.set()

    async def forget_deleted(self) -> None:
        """Have the index of the search forget at once what is saved no more.

        Waits for nothing but that; a search that runs has it forgotten when it is over.
        """
        search = self._opened()
        with contextlib.suppress(StorageError):  # what it is of is deleted all the same
            if not await asyncio.to_thread(search.forget_deleted):
                self._searching.submit(search.forget_deleted)

    def close(self) -> None:
        """End a search that is running; there is none any more."""
        if self._search is not None:
            self._search.close()
        self._searching.shutdown(cancel_futures=True)

    def has_expired(self) -> bool:
        """Whether the time of the current session is over, and no turn goes on in it; cheap."""
        session = self._manager.current
        if session is None or self._turns.turn_id is not None:
            return False
        return has_expired(expires_at(session), self._manager.now())

    async def end_expired(self) -> bool:
        """Delete the current session if its time is over (G4.4); whether it was.

        One of which nothing is stored yet begins its time anew. While another process answers in
        it, it stays.
        """
        session = self._manager.current
        if session is None or not self.has_expired():
            return False
        if session.id is None or self._manager.path_of(session) is None:
            session.created = self._manager.now()
            return False
        with contextlib.suppress(SessionInUseError, StorageError):
            await asyncio.to_thread(self._manager.delete, session.id)
            self._manager.reset()
            self._turns.overtake()
            return True
        return False

    def _opened(self) -> "Search":
        from tiro.stores.search import Search  # who never searches never pays for it

        if self._search is None:
            self._search = Search(self._manager)
        return self._search

    async def rename(self, id: str, title: str | None) -> None:
        """Give any saved session a title, or take its own away; the current one stays that.

        Raises SessionNotFoundError, SessionInUseError while another process answers in it,
        StorageError, SessionFormatError.
        """
        check_id(id)
        current = self._manager.current
        if current is not None and current.id == id:
            async with entered(self._manager.changing(current)):
                await asyncio.to_thread(_rename_current, self._manager, current, title)
        else:
            await asyncio.to_thread(_rename, self._manager, id, title)


def _rename_current(manager: SessionManager, current: Session, title: str | None) -> None:
    before = current.title
    current.change(title=title)
    if manager.autosave and current in manager.live.held_back():
        try:
            manager.save(current)
        except StorageError:
            current.change(title=before)
            raise


def _rename(manager: SessionManager, id: str, title: str | None) -> None:
    session = manager.load_id(id)
    try:
        with manager.changing(session):
            session.change(title=title)
            if not manager.is_stored(session):
                manager.save(session)
    except BaseException:  # what was refused does not happen later on
        manager.live.upkeep_of(session).detach(session)
        raise
    manager.end(session)


def _export(
    manager: SessionManager, format: str, id: str | None, path: Path | None, is_redacted: bool
) -> Exported:
    from tiro.stores import exports  # who never exports never pays for it
    from tiro.stores.formats import registry
    from tiro.stores.formats.format import losses

    chosen = registry.to_write(format)
    fields = exports.stored_form(manager, id)
    shown = redact_shapes_in(fields) if is_redacted else fields
    text = chosen.dumps(shown)
    was_redacted = is_redacted and shown != fields
    written = None if path is None else exports.write_export(manager, path, shown["id"], text)
    return Exported(
        path=written,
        text=text if path is None else None,
        was_redacted=was_redacted,
        losses=losses(chosen, fields),
    )


def _import(path: Path | None, text: str, format: str | None) -> "Imported":
    from tiro.stores import exports
    from tiro.stores.formats import registry

    chosen = None if format is None else registry.named(format)
    if path is not None:
        return exports.read_import(path, chosen)
    return (chosen or registry.recognised(text)).loads(text)


def _twins(manager: SessionManager, stored: StoredSession, path: Path | None) -> "Twins":
    from tiro.stores import exports

    exports.date(stored, path)
    return exports.Twins(manager)


def _losses(stored: StoredSession) -> list[str]:
    """What a session that comes from elsewhere does not bring with it."""
    losses = []
    if stored.fields["rules"]:
        losses.append("Permissions that were given in it hold no more")
    if any(LARGE in message.marks() for message in [*stored.messages, *stored.archive]):
        losses.append("Large values that lay in files of their own are missing")
    return losses


def _read(manager: SessionManager, path: Path | None, id: str | None) -> Session:
    """Read a saved session, by default the newest; the current one stays the current one.

    Raises SessionNotFoundError, and SessionFormatError for whatever else keeps it from being read:
    a folder, a pipe, a missing permission or a damaged file.
    """
    if id is not None:
        return manager.load_id(id)
    latest = manager.latest() if path is None else None
    file = path if latest is None else Path(latest.path)
    if file is None:
        raise SessionNotFoundError("No session has been saved yet", id="latest")
    try:
        return manager.load(file)
    except StorageError as error:
        reason = str(error)
        raise SessionFormatError(reason, path=str(file), reason=reason, recovered=0) from error
