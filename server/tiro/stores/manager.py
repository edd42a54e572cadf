"""`SessionManager`: the sessions of one directory, the current one among them.

Sessions that it made or loaded are stored by themselves after every change (autosave). Nothing
about storing ever fails a change: the user hears of it by a notice. Several processes may use one
directory; whoever changes a session does so inside `changing` or `writing`.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from tiro.errors import SessionExistsError, SessionInUseError, SessionNotFoundError, StorageError
from tiro.session.changes import Evict
from tiro.session.core import Core
from tiro.session.history import time_id
from tiro.session.redact import Redactor
from tiro.session.session import Session
from tiro.session.snapshot import StoredSession
from tiro.session.times import Clock, utc_now
from tiro.stores.autosave import Autosave
from tiro.stores.blobs import Held, nothing
from tiro.stores.disk import Disk, real_path
from tiro.stores.file_trash import FileTrash
from tiro.stores.idle_files import held, locked, remove_expired, remove_session, write_copy
from tiro.stores.index import Index, Listing, SavedSession, Version, matching
from tiro.stores.live import Live
from tiro.stores.lock import never
from tiro.stores.names import check_id, file_stem, safe_id, with_suffixes
from tiro.stores.notices import Notice, Notices
from tiro.stores.output_files import OutputFiles
from tiro.stores.reading import SNAPSHOT_ENDING, Reading, read_session
from tiro.stores.saving import Fsync
from tiro.stores.schedule import Schedule
from tiro.stores.session_files import encode_snapshot
from tiro.stores.store import has_expired
from tiro.stores.trash import Trash
from tiro.stores.upkeep import Agents, Due, Upkeep, lose_agent


class SessionManager:
    """Makes, keeps, saves, loads and lists the sessions of one directory.

    `on_notice` is called from any thread, also within a change, and must return at once. Without
    a `cache_directory` the list is kept in memory only.
    """

    def __init__(
        self,
        directory: str | Path,
        *,
        agents: Agents | None = None,
        clock: Clock = utc_now,
        default_max_history: float | None = 100,
        fsync: Fsync = "turn",
        autosave: bool = True,
        on_notice: Callable[[Notice], None] | None = None,
        cache_directory: str | Path | None = None,
        settings: Mapping[str, Any] | Any | None = None,
        secrets: Sequence[str] = (),
        disk: Disk | None = None,
    ) -> None:
        self.directory = Path(directory).absolute()
        self.agents = agents
        self.clock = clock
        self.default_max_history = default_max_history
        self.fsync: Fsync = fsync
        self.autosave = autosave
        self.ttl_seconds: float | None = None
        """How long a new session lives; one that is read keeps its own (G4.4)."""
        self.settings = settings
        self._redactor = Redactor(secrets)
        self.disk = disk or Disk()
        self.current: Session | None = None
        self._notices = Notices(on_notice)
        self.live = Live(self._new_upkeep)
        self._schedule = Schedule()
        self.cache_directory = Path(cache_directory) if cache_directory else None
        self._index: Listing = Index(self.directory, self.cache_directory, self.disk, clock)
        self._trash = FileTrash(self)

    def __enter__(self) -> "SessionManager":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def secrets(self) -> Sequence[str]:
        """What is kept out of files: the exact values of configured keys."""
        return self._redactor.secrets

    @secrets.setter
    def secrets(self, secrets: Iterable[str]) -> None:
        self._redactor = Redactor(secrets)

    @property
    def trash(self) -> Trash:
        """Where deleted sessions wait."""
        return self._trash

    @property
    def listing(self) -> Listing:
        """What is known of saved sessions."""
        return self._index

    # The current session and new ones

    def get(self) -> Session:
        """The current session, made on first use; the same object each time (M2.2)."""
        with self.live.lock:
            if self.current is None:
                self.current = self.create()
            return self.current

    def set_current(self, session: Session | None) -> None:
        """Make this the current session."""
        self.current = session

    def reset(self) -> None:
        """Forget the current session; the next `get` makes a new, empty one (M2.3)."""
        self.current = None

    def create(
        self,
        max_history: float | None = None,
        agent: str | None = None,
        id: str | None = None,
    ) -> Session:
        """A new editor session; `max_history` None is the default, `math.inf` is off.

        Raises InvalidSessionIdError for an unsafe id, SessionExistsError for a taken one.
        """
        if id is not None:
            check_id(id)
            if self._is_taken(id):
                raise SessionExistsError(f"A session with the id {id!r} exists already", id=id)
        limit = self.default_max_history if max_history is None else max_history
        return self._make(None if limit in (None, math.inf) else int(limit or 0), agent, id)

    def get_or_create(self, key: str) -> Session:
        """The channel session with this key: the same object as long as anyone holds it (N6.6)."""
        with self.live.lock:
            session = self.live.by_key.get(key)
            if session is None:
                path = self.path_of_id(key)
                session = self.load(path) if self._is_there(key) else self._make(None, None, key)
            self.live.by_key.put(key, session)
            return session

    def invalidate(self, key: str) -> None:
        """Drop the session with this key from the cache; the next one is read from its file."""
        self.live.drop_key(key)

    def claim_id(self, session: Session) -> str:
        """The session's id; one without gets a time stamp that no file has (M2.8).

        Claims no file: that happens with the first stored message.
        """
        with session.lock:
            if session.id is None:
                session.change(id=next(filter(self._is_free, with_suffixes(self._time_id()))))
            return session.id or ""

    # Storing

    @contextmanager
    def writing(self, session: Session, is_given_up: Callable[[], bool] = never) -> Iterator[None]:
        """Hold the session for a turn: other processes wait, and afterwards all is on disk.

        If another process or an editor wrote in the meantime, the session is brought up to date
        in place. Raises SessionInUseError when another process holds it for more than a second;
        `is_given_up`, asked while waiting, ends the wait earlier.
        """
        autosave = self.live.upkeep_of(session)
        autosave.enter(session, is_given_up)
        try:
            autosave.name_holder(session)
            yield
        finally:
            if self.fsync == "turn":
                autosave.sync(session)
            autosave.leave(session)

    @contextmanager
    def changing(self, session: Session) -> Iterator[None]:
        """Hold the session for one change outside a turn; a few microseconds when it is free."""
        autosave = self.live.upkeep_of(session)
        autosave.enter(session)
        try:
            yield
        finally:
            autosave.leave(session)

    def read_news(self) -> Any:
        """What another process wrote to the current session while nobody has a turn in it, or None.

        Waits for the disk alone, also where that never answers. Raises OSError.
        """
        session = self.current
        return self.live.upkeep_of(session).read_news(session) if session is not None else None

    def take_news(self, news: Any) -> None:
        """Take it into the current session, unless more has happened; a notice tells of it.

        Raises OSError.
        """
        if self.current is not None:
            self.live.upkeep_of(self.current).take_news(self.current, news)

    def is_stored(self, session: Session) -> bool:
        """Whether everything in the session survives a kill of this process from now on."""
        return self.live.upkeep_of(session).is_stored(session)

    def path_of(self, session: Session) -> Path | None:
        """Where the session lives; None before it was stored."""
        return self.live.upkeep_of(session).path

    def stored_bytes(self, session: Session, path: Path) -> int:
        """The size of what was just saved: of the session there, or of a copy of it."""
        upkeep = self.live.upkeep_of(session)
        return upkeep.stored_bytes() if path == upkeep.path else path.stat().st_size

    def saved_at(self, session: Session) -> datetime | None:
        """When the session was stored last."""
        return self.live.upkeep_of(session).saved_at

    def outputs(self, session: Session) -> OutputFiles | None:
        """Where outputs of its tools lie that are too long to be held; None for nowhere."""
        return self.live.upkeep_of(session).outputs

    def save(self, session: Session, file: str | Path | None = None) -> Path:
        """Write the session where it lives, or a copy to `file`; returns the path (M2.11).

        A session without an id gets one. Raises StorageError, SessionInUseError. O(all its bytes).
        """
        if file is not None:
            return self.copy_to(session, file)
        path = self.live.brought_back(session).save(session)
        with self.live.lock:
            if session.id is not None and session.id in self.live.by_key:
                self.live.by_key.put(session.id, session)
        return path

    def copy_to(self, session: Session, file: str | Path) -> Path:
        """Write a copy of the session to a file of its own; the session stays where it lives.

        It replaces nothing but an empty file or an older copy of the same session (M7.3). Raises
        StorageError, SessionInUseError.
        """
        path = real_path(Path(file))
        if path == self.path_of(session):
            return self.save(session)
        id = self.claim_id(session)
        data = self.redact(encode_snapshot(session, self.now()))
        write_copy(self.disk, path, id, data)
        return path

    def adopt(self, stored: StoredSession) -> Session:
        """A new session that holds what was read elsewhere, in a file of its own.

        It keeps its id if that is safe and free; permissions given in it are not taken over, and it
        lives as long as nobody deletes it. What the disk refuses stays in memory, and the user is
        told.
        """
        stored.fields |= {"journal_n": 0, "rules": [], "ttl_seconds": None}
        session = self._make(None, None, None)
        autosave = self.live.upkeep_of(session)
        with self.live.lock, session.lock, autosave.silent():
            wanted = with_suffixes(safe_id(stored.fields["id"] or "") or self._time_id())
            stored.fields["id"] = next(filter(self._is_free, wanted))
            session.restore(stored)
            if seqs := session.over_limit():
                session.commit(Evict(seqs, ""))
            self.restored(session)
        if self.autosave:
            with suppress(StorageError, SessionInUseError):
                autosave.save(session)
        return session

    def end(self, session: Session) -> Path | None:
        """Bring a session to rest: stored, in one file; its path, None where nothing is stored."""
        autosave = self.live.upkeep_of(session)
        autosave.finish(session)
        return autosave.path

    def close(self) -> None:
        """Write all that is not yet where it belongs; may be called any number of times."""
        self._schedule.close()
        with self.live.lock:
            live = self.live.all()
            self._schedule = Schedule()
        for session, autosave in live:
            autosave.finish(session)
        self._schedule.close()
        self._schedule = Schedule()
        self._index.close()

    # Saved sessions

    def load(self, file: str | Path) -> Session:
        """The session in this file, where it lives from now on (journal, lock beside); O(bytes).

        Raises SessionNotFoundError, SessionFormatError (the file stays as it is), StorageError.
        Permissions in a file outside the directory are not taken over. The current session stays
        the current one; where it is the same, it gives the large values whose files are gone.
        """
        path = real_path(Path(file))
        reading = self._reading(path)
        session, current = self._new_session(None, None, None), self.current
        here = self.live.upkeep_of(current) if current is not None else None
        held: Held = nothing
        if current is not None and isinstance(here, Autosave) and here.path == path:
            held = here.held(current)
        autosave = Autosave(session, self, self.directory)
        self.live.put(session, autosave)
        autosave.restore(session, path, reading, held)
        return session

    def load_id(self, id: str) -> Session:
        """The saved session with this id; raises as `load`, and InvalidSessionIdError."""
        return self.load(self.find(id))

    def find(self, id: str) -> Path:
        """The file of the saved session with this id; raises as `load_id`."""
        path = self._saved_path(id)
        if path is None:
            raise SessionNotFoundError(f"No saved session has the id {id!r}", id=id)
        return path

    def read(self, id: str) -> Core:
        """The saved session with this id, to look at; raises as `load_id`."""
        return self.look_at(str(self.find(id)))[0]

    def look_at(self, path: str) -> tuple[Core, datetime]:
        """The saved session with this path, to look at, and when it was saved; raises as `load`."""
        core, reading = Core(self.clock), self._reading(Path(path))
        reading.restore(core)
        return core, reading.saved_at(core)

    def lost_agent(self, session: Session) -> str | None:
        """The name of the agent that the session had and that does not exist any more."""
        name = session.unknown.get("agent")
        return name if isinstance(name, str) else None

    def latest(self) -> SavedSession | None:
        """The session saved last, of those that can be loaded and in which anything was said."""
        sound = (row for row in self._index.sessions() if row.error is None)
        return next((row for row in sound if row.messages or row.title), None)

    def list_saved(self) -> list[str]:
        """The paths of all session files of the directory, newest first; [] without one."""
        return [row.path for row in self._index.sessions()]

    def list(
        self, query: str | None = None, limit: int | None = 100, offset: int = 0
    ) -> tuple[list[SavedSession], int]:
        """The saved sessions, newest first, and how many there are in all.

        With a query only those whose title, id or agent contains it. A call to the system a file.
        """
        rows = matching(self._index.sessions(), query)
        end = None if limit is None else offset + limit
        return rows[offset:end], len(rows)

    def versions(self) -> Sequence[tuple[str, Version | None]]:
        """The path of every saved session that can be read, with what tells its version."""
        return self._index.versions()

    def delete(self, id: str) -> bool:
        """Remove a saved session's files for good; False where there is none.

        Live objects of it are no longer stored. Raises SessionInUseError while another process
        answers in it, StorageError where it cannot be removed, InvalidSessionIdError.
        """
        path = self._place_of(id)
        if path is None:
            return False
        with locked(self.disk, path), self.live.letting_go(id):
            return remove_session(self.disk, path)

    def delete_expired(self) -> int:
        """Remove all saved sessions whose time is over and that nobody uses; how many (G4.9)."""
        idle = [row for row in self._index.expired() if not self.live.of_id(row.id)]
        return sum(remove_expired(self.disk, Path(row.path), self.now()) for row in idle)

    def discard(self, id: str, seen: SavedSession | None = None) -> bool:
        """Move a saved session's files to the trash; False where there are none. As `delete`.

        One of which a row was `seen` goes only as it was then.
        """
        path = self._place_of(id)
        if path is None:
            return False
        with held(self.disk, path):
            if seen is not None and not self._index.is_as(seen):
                return False
            with self.live.letting_go(id):
                return self._trash.put(path)

    def path_of_id(self, id: str) -> Path:
        """Where a session with this id lies, or will."""
        return self.directory / (file_stem(id) + SNAPSHOT_ENDING)

    # What a session's autosave asks for (`saving.Owner`)

    def now(self) -> datetime:
        """The time of the manager's clock."""
        return self.clock()

    def redact(self, data: bytes) -> bytes:
        """The JSON of a file without the exact values of configured keys (U9.11)."""
        return self._redactor.json(data)

    def redact_text(self, text: str) -> str:
        """Text of a file without the exact values of configured keys (U9.11)."""
        return self._redactor.text(text)

    def told(self, reason: str, session: Core, detail: dict[str, Any]) -> None:
        """Pass a notice on; a directory's failure and its end are told once each."""
        if reason == "renamed":
            self.invalidate(detail["old_id"])
        autosave = self.live.find(session)
        directory = autosave.directory if autosave else self.directory
        self._notices.tell(Notice(reason, session, detail), directory)

    def restored(self, session: Core) -> None:
        """Finish a session that was just read: its agent may not exist any more."""
        lose_agent(session, self.agents)

    def schedule(self, upkeep: Upkeep, session: Core) -> None:
        """Have the work on what is stored of the session done when it is due."""
        self._schedule.add(id(upkeep), Due(upkeep, session))

    # Helpers

    def _make(self, max_history: int | None, agent: str | None, id: str | None) -> Session:
        session = self._new_session(max_history, agent, id)
        self.live.upkeep_of(session)
        return session

    def _new_session(self, max_history: int | None, agent: str | None, id: str | None) -> Session:
        session = Session(
            self.settings,
            id=id,
            max_history=max_history,
            agent=agent,
            clock=self.clock,
            new_id=lambda: None,
        )
        session.ttl_seconds = self.ttl_seconds
        return session

    def _new_upkeep(self, session: Core) -> Upkeep:
        return Autosave(session, self, self.directory)

    def _place_of(self, id: str) -> Path | None:
        """Where the session with this id lives; where there is none, live objects forget it."""
        live = self.live.of_id(id)
        lives_at = [path for session in live if (path := self.path_of(session)) is not None]
        path = lives_at[0] if lives_at else self._saved_path(id)
        if path is None:
            self.live.forget(id)
        return path

    def _saved_path(self, id: str) -> Path | None:
        """The file of a saved session; raises InvalidSessionIdError for what never was one."""
        if self._is_saved(id):
            return self.path_of_id(id)
        found = next((Path(r.path) for r in self._index.sessions() if r.id == id), None)
        if found is None:
            check_id(id)
        return found

    def _time_id(self) -> str:
        return time_id(self.now())

    def _is_free(self, id: str) -> bool:
        return not self._is_taken(id)

    def _is_taken(self, id: str) -> bool:
        return self._is_there(id) or bool(self.live.of_id(id))

    def _is_there(self, id: str) -> bool:
        """Whether a session is saved under this id; one that has expired makes room (G4.3)."""
        return self._is_saved(id) and not remove_expired(self.disk, self.path_of_id(id), self.now())

    def _reading(self, path: Path) -> Reading:
        """Read a session's files; one that has expired is not there any more (G4.5)."""
        reading = read_session(path)
        if has_expired(reading.expires_at, self.now()):
            raise SessionNotFoundError(f"The session {str(path)!r} has expired", path=str(path))
        return reading

    def _is_saved(self, id: str) -> bool:
        return os.path.lexists(self.path_of_id(id))
