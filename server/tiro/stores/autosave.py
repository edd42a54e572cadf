"""Keeps the files of one live session up to date with it: the observer of its changes.

Every change is in the journal before the call that made it returns, by one write call. When the
disk refuses, the change stays in memory, the user is told once, and the next change writes the
whole session again (U9.5). Nothing raises into a commit. Everything here happens under the
session's own lock, except writing a snapshot's temporary file and waiting for fsync.
"""

import errno
import logging
import os
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Protocol

from tiro.errors import SessionFormatError, SessionInUseError, SessionNotFoundError, StorageError
from tiro.session.changes import Change, Set
from tiro.session.core import Core
from tiro.session.history import time_id
from tiro.session.messages import encode
from tiro.stores.disk import (
    Disk,
    Signature,
    make_directories,
    remove_stale,
    set_aside,
    temporary_file,
)
from tiro.stores.files import SessionFiles, State, encode_snapshot
from tiro.stores.journal import change_lines
from tiro.stores.lock import in_use, wait_for
from tiro.stores.names import file_stem, with_suffixes
from tiro.stores.reading import (
    SNAPSHOT_ENDING,
    Reading,
    Restored,
    errno_name,
    read_session,
    storage_error,
)
from tiro.stores.turns import Turns

Fsync = Literal["message", "turn", "never"]
IDLE_SECONDS = 0.25
SYNC_SECONDS = 1.0
RETRY_SECONDS = 1.0
SMALL_BYTES = 1_000_000

log = logging.getLogger(__name__)


class Owner(Protocol):
    """What a session's autosave asks of its manager."""

    disk: Disk
    fsync: Fsync
    autosave: bool

    def now(self) -> datetime:
        """The time of the manager's clock."""
        ...

    def redact(self, data: bytes) -> bytes:
        """The same bytes without the exact values of configured keys (U9.11)."""
        ...

    def told(self, reason: str, session: Core, detail: dict[str, Any]) -> None:
        """Tell the user something about the session's files; never raises."""
        ...

    def restored(self, session: Core) -> None:
        """Finish a session that was just restored from its files."""
        ...

    def schedule(self, autosave: "Autosave", session: Core) -> None:
        """Have `autosave.run` called when it is due."""
        ...


class Autosave:
    """The files of one live session, kept up to date until `detach`."""

    def __init__(self, session: Core, owner: Owner, directory: Path) -> None:
        self.owner = owner
        self.directory = directory
        self.saved_at: datetime | None = None
        self._session = weakref.ref(session)
        self._is_detached = False
        self._quiet = 0
        self._needs_snapshot = False
        """The journal cannot be added to: only a whole snapshot stores the next change."""
        self._wants_snapshot = False
        """The snapshot is to be brought up to date when the session is idle."""
        self._has_failed = False
        """The user was told that the last snapshot failed."""
        self._unsynced = False
        self._last_change = 0.0
        self._not_before = 0.0
        self._place: Path | None = None
        """Where the session lived before its file was taken away."""
        self._turns = Turns(lambda: owner.autosave)
        self._edit_seen: Signature | None = None
        session.observe(self._changed)

    @property
    def files(self) -> SessionFiles | None:
        """Where the session lives; None until the first stored message claims a name."""
        return self._turns.files

    def restore(self, session: Core, path: Path, reading: Reading) -> None:
        """Restore the session from these files, and let it live there from now on."""
        with session.lock:
            with self.silent():
                restored = reading.restore(session)
            self.owner.restored(session)
            self._turns.move_to(SessionFiles(path, self.owner.disk))
            self.directory = path.parent
            self._remember(session, reading, restored)
            self.saved_at = reading.saved_at(session)
        if self.owner.autosave:
            remove_stale(path)
            if self._is_pending():
                self.owner.schedule(self, session)

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Changes made inside are not stored: they come from the files, or go with a snapshot."""
        self._quiet += 1
        try:
            yield
        finally:
            self._quiet -= 1

    def is_stored(self, session: Core) -> bool:
        """Whether everything in the session survives a kill of this process."""
        with session.lock:
            return self.files is not None and self.files.stored_n == session.n

    def detach(self, session: Core) -> None:
        """Let go of the files for good: whatever happens to the session is no longer stored."""
        with session.lock:
            self._is_detached = True
            self._wants_snapshot = self._unsynced = False
            self._turns.move_to(None)

    # Taking turns with other processes (U9.8)

    def enter(self, session: Core) -> None:
        """Take the lock, waiting up to a second, and look what others wrote meanwhile.

        Raises SessionInUseError (with `pid` and `host`) while another process holds it.
        """

        def take() -> bool:
            with session.lock:
                is_first = not self._turns.is_held
                taken = self._turns.try_hold()
                if taken and is_first:
                    self._catch_up(session)
                return taken

        if not wait_for(take):
            raise in_use(self.files.holder_path if self.files else None)

    def leave(self, session: Core) -> None:
        """Give the lock back."""
        with session.lock:
            self._turns.release()
        if self._is_pending():
            self.owner.schedule(self, session)

    def name_holder(self, session: Core) -> None:
        """Say in a file beside the lock who holds it, until it is given back."""
        with session.lock:
            self._turns.name_holder()

    # Writing at other times than at a change

    def save(self, session: Core) -> Path:
        """Write a whole snapshot now and wait until it is on the disk.

        Raises StorageError or SessionInUseError; the session then lives on in memory.
        """
        self.enter(session)
        try:
            with session.lock:
                return self._save(session)
        finally:
            self.leave(session)

    def sync(self, session: Core) -> None:
        """Wait until everything stored is on the disk itself; never raises (U9.3)."""
        try:
            with session.lock:
                self._unsynced = False
                wait = self.files.journal.sync_later() if self.files else None
            if wait:
                wait()
        except OSError as error:
            self._sync_failed(session, error)

    def finish(self, session: Core) -> None:
        """Write what a session at rest should be: one snapshot and no journal; never raises."""
        if self.owner.autosave and not self._is_detached:
            with suppress(StorageError, SessionInUseError, OSError):
                self._finish(session)
        with session.lock:
            self._wants_snapshot = self._unsynced = False
            self._turns.rest()

    def due(self) -> float | None:
        """When `run` has something to do, by the monotonic clock; None for nothing."""
        times = []
        if self._wants_snapshot:
            times.append(max(self._last_change + IDLE_SECONDS, self._not_before))
        if self._unsynced and self.owner.fsync == "turn" and not self._turns.is_held:
            times.append(self._last_change + SYNC_SECONDS)
        return min(times, default=None)

    def run(self, session: Core, now: float) -> None:
        """Do what is due: the idle snapshot, the fsync; at rest no file stays open."""
        if self._wants_snapshot and now >= max(self._last_change + IDLE_SECONDS, self._not_before):
            self._wants_snapshot = False
            self._write_idle_snapshot(session)
        is_old = now >= self._last_change + SYNC_SECONDS
        if self._unsynced and is_old and not self._turns.is_held:
            self.sync(session)
        with session.lock:
            if not self._is_pending():
                self._turns.rest()

    # What follows runs under the session's lock. First: storing a change.

    def _changed(self, first_n: int, changes: tuple[Change, ...]) -> None:
        session = self._session()
        if session is not None and "agent" in session.unknown:
            _forget_lost_agent(session, changes)
        if session is None or self._quiet or self._is_detached or not self.owner.autosave:
            return
        try:
            self._store(session, first_n, changes)
        except OSError as error:
            self._failed(session, error)
        except Exception:  # a fault of ours must not undo the change that was just made
            self._needs_snapshot = True
            log.exception("A change could not be stored")
        self._last_change = time.monotonic()
        if self._is_pending():
            self.owner.schedule(self, session)

    def _store(self, session: Core, first_n: int, changes: tuple[Change, ...]) -> None:
        if self.files is None:
            if session.newest_first or session.archive_rows:
                self._claim(session)
            return
        if not self._turns.lock_for_one_write():
            self._needs_snapshot = True
            raise OSError(errno.EAGAIN, "another process is answering in this session")
        try:
            files = self._ours(session)
            if files is None:
                return
            must_be_whole = self._needs_snapshot or first_n != files.stored_n + 1
            if must_be_whole or self._has_failed:
                with nullcontext() if must_be_whole else suppress(OSError):
                    self._save_whole(session)
                    return
            self._append(session, files, first_n, changes)
        finally:
            self._turns.unlock_after_write()

    def _ours(self, session: Core) -> SessionFiles | None:
        """The files, if they may be added to; where they may not, all is stored elsewhere."""
        files = self.files
        assert files is not None
        state = files.look()
        if state is State.CHANGED and self._is_only_edited(files):
            self._wants_snapshot = True  # the edit is taken in when the session is idle
            return files
        if state is State.GONE:
            self._claim(session, first=files.path)
        elif state is State.CHANGED:
            self._fork(session)
        return files if state is State.SAME else None

    def _is_only_edited(self, files: SessionFiles) -> bool:
        """Whether the files hold all our stored changes and no others: an edit by hand."""
        if files.found == self._edit_seen and files.journal_is_same():
            return True
        try:
            reading = read_session(files.path)
        except SessionFormatError:
            return files.journal_is_same()  # the next snapshot sets the damaged file aside
        except (StorageError, SessionNotFoundError):
            return False
        if reading.last_n != files.stored_n:
            return False
        files.remember_journal(reading)
        self._edit_seen = reading.snapshot
        return True

    def _append(
        self, session: Core, files: SessionFiles, first_n: int, changes: tuple[Change, ...]
    ) -> None:
        lines = self.owner.redact(change_lines(first_n, changes))
        try:
            files.append(session.id, first_n, first_n + len(changes) - 1, lines)
        except OSError:
            self._needs_snapshot = True
            raise
        self.saved_at = session.updated
        self._unsynced = True
        if files.snapshot_bytes < SMALL_BYTES or files.journal_size * 4 >= files.snapshot_bytes:
            self._wants_snapshot = True
        if self.owner.fsync == "message":
            self.sync(session)

    # Whole snapshots

    def _save(self, session: Core) -> Path:
        try:
            state = self.files.look() if self.files else State.GONE
            if state is State.CHANGED:
                self._take_in(session)
            if state is State.GONE:
                self._claim(session, first=self.files.path if self.files else None)
            else:
                self._save_whole(session)
        except OSError as error:
            self._failed(session, error)
            raise storage_error(self._path_of(session), error, "write") from error
        return self._path_of(session)

    def _save_whole(self, session: Core) -> None:
        data, n = self._encode(session), session.n
        with temporary_file(self.owner.disk, self._path_of(session), data) as temporary:
            self._put_in_place(session, temporary, n)

    def _put_in_place(self, session: Core, temporary: Path, n: int) -> None:
        assert self.files is not None
        self.files.replace(temporary, n)
        self.saved_at = self.owner.now()
        if session.n == n:
            self.files.empty_journal(self._stamp())
            self._needs_snapshot = self._unsynced = self._wants_snapshot = False
        self._worked(session)

    def _write_idle_snapshot(self, session: Core) -> None:
        with session.lock:
            files = self.files
            if files is None or not self._is_behind(session) or not self.owner.autosave:
                return
            data, n = self._encode(session), session.n
        try:
            with temporary_file(self.owner.disk, files.path, data) as temporary, session.lock:
                self._put_idle_snapshot(session, files, temporary, n)
        except OSError as error:
            with session.lock:
                self._failed(session, error)

    def _put_idle_snapshot(
        self, session: Core, files: SessionFiles, temporary: Path, n: int
    ) -> None:
        if self.files is not files or not (self._turns.is_held or self._turns.try_lock()):
            self._wants_snapshot, self._not_before = True, time.monotonic() + RETRY_SECONDS
            return
        try:
            state = files.look()
            if state is State.SAME:
                self._put_in_place(session, temporary, n)
            elif state is State.CHANGED:
                self._take_in(session)
                if self._is_behind(session):
                    self._save_whole(session)
        finally:
            self._turns.unlock_after_write()

    def _finish(self, session: Core) -> None:
        self.enter(session)
        try:
            with session.lock:
                if self.files is None:
                    is_behind = bool(session.newest_first or session.archive_rows)
                else:
                    is_behind = self._is_behind(session) and self.files.look() is not State.GONE
                if is_behind:
                    self._save(session)
                if self._turns.is_last_hold and self.files is not None:
                    self.files.tidy()
        finally:
            self.leave(session)

    def _sync_failed(self, session: Core, error: OSError) -> None:
        """What that descriptor took may be lost: write everything anew through another one."""
        with session.lock:
            if self.files is None:
                return
            log.warning("fsync failed for %s: %s", self.files.path, error)
            self.files.stored_n = self.files.snapshot_n
            self._needs_snapshot = True
            self._turns.move_to(self.files)  # through another descriptor
        with suppress(StorageError, SessionInUseError):
            self.save(session)

    # Claims, forks and second looks

    def _claim(self, session: Core, *, skip: int = 0, first: Path | None = None) -> None:
        """Make the session's files under the first free name (U9.1), after `first`."""
        wanted, self._place = session.id, first or (None if skip else self._place)
        self._turns.move_to(None)
        try:
            self._turns.move_to(self._claim_free_name(session, skip))
        finally:
            if wanted is not None and wanted != session.id:
                detail = {"old_id": wanted, "path": str(self._path_of(session))}
                self.owner.told("renamed", session, detail)
        self._place = None
        self.saved_at = self.owner.now()
        self._needs_snapshot = self._unsynced = self._wants_snapshot = False
        self._worked(session)

    def _claim_free_name(self, session: Core, skip: int) -> SessionFiles:
        make_directories(self.owner.disk, self.directory)
        stem, first = session.id or time_id(self.owner.now()), self._place
        for id in islice(with_suffixes(stem), skip, None):
            files = SessionFiles(first or _path_in(self.directory, id), self.owner.disk)
            first = None
            if os.path.lexists(files.path):
                continue
            if session.id != id:
                with self.silent():
                    session.change(id=id)
            if files.claim(self._encode(session), session.n, self._stamp()):
                return files
        raise AssertionError("suffixes never end")

    def _fork(self, session: Core) -> None:
        """Keep both sides: what we hold goes under a new id, the files stay the others' (U9.8)."""
        self._claim(session, skip=1)

    def _catch_up(self, session: Core) -> None:
        """What to do first when the lock was taken: see what others wrote meanwhile."""
        if self.files is None:
            return
        try:
            if self.files.look() is not State.CHANGED:
                return
            if self.owner.autosave:
                self._take_in(session)
            elif session.n == self.files.stored_n:  # else ours wait for an explicit save
                self._take_over(session, self.files, read_session(self.files.path))
        except OSError as error:
            self._failed(session, error)
        except (SessionFormatError, SessionNotFoundError) as error:
            log.warning("The session's files could not be read again: %s", error)

    def _take_in(self, session: Core) -> None:
        """Take in what somebody else wrote to the files (U9.7, U9.8)."""
        files = self.files
        assert files is not None
        try:
            reading = read_session(files.path)
        except SessionFormatError as error:
            self._set_aside(session, files, error)
            return
        except SessionNotFoundError:
            return  # it went away just now; the next write sees to that
        if reading.stored.fields["id"] != session.id or session.n != files.stored_n:
            self._fork(session)  # another session stands there, or changes of ours are not in it
        else:
            self._take_over(session, files, reading)

    def _take_over(self, session: Core, files: SessionFiles, reading: Reading) -> None:
        before, n = encode(session.snapshot()), session.n
        is_older = reading.stored.fields["journal_n"] < files.snapshot_n
        with self.silent():
            restored = reading.restore(session, reading.missing_from(session) if is_older else ())
        self.owner.restored(session)
        self._remember(session, reading, restored)
        if is_older:
            session.n = max(n, session.n)  # a number is never given twice
            self._needs_snapshot = self._wants_snapshot = True
        if encode(session.snapshot()) != before:
            detail = {"dropped": restored.dropped, "bad": reading.bad}
            self.owner.told("changedOnDisk", session, detail)
        if self._wants_snapshot and self.owner.autosave:
            self._save_whole(session)

    def _set_aside(self, session: Core, files: SessionFiles, error: SessionFormatError) -> None:
        """Rename a damaged file and write ours in its place, with a notice."""
        if not files.journal_is_same():
            self._fork(session)  # another process wrote before the damage was done
            return
        aside = set_aside(self.owner.disk, files.path, self._stamp())
        self._save_whole(session)
        detail = {"path": str(aside), "reason": error.data.get("reason")}
        self.owner.told("changedOnDisk", session, detail)

    def _remember(self, session: Core, reading: Reading, restored: Restored) -> None:
        assert self.files is not None
        self.files.remember(reading)
        self._wants_snapshot = reading.bad > 0
        self._needs_snapshot = reading.bad > 0 or restored.was_pruned
        self._edit_seen = None

    # Small things

    def _failed(self, session: Core, error: OSError) -> None:
        detail = {
            "path": str(error.filename or self._path_of(session)),
            "errno": errno_name(error),
            "reason": error.strerror or str(error),
        }
        self._has_failed = True
        self.owner.told("saveFailed", session, detail)

    def _worked(self, session: Core) -> None:
        self._has_failed = False
        self.owner.told("saveResumed", session, {})

    def _encode(self, session: Core) -> bytes:
        return self.owner.redact(encode_snapshot(session, self.owner.now()))

    def _path_of(self, session: Core) -> Path:
        if self.files is not None:
            return self.files.path
        return _path_in(self.directory, session.id or time_id(self.owner.now()))

    def _stamp(self) -> str:
        return f"{self.owner.now().astimezone():%Y%m%d-%H%M%S}"

    def _is_behind(self, session: Core) -> bool:
        assert self.files is not None
        return session.n != self.files.snapshot_n or self._needs_snapshot

    def _is_pending(self) -> bool:
        return self._wants_snapshot or self._unsynced


def _path_in(directory: Path, id: str) -> Path:
    return directory / (file_stem(id) + SNAPSHOT_ENDING)


def _forget_lost_agent(session: Core, changes: tuple[Change, ...]) -> None:
    """Once somebody selects an agent, the name of the one that is gone leaves the file (M4.3)."""
    if any(isinstance(change, Set) and "agent" in change.fields for change in changes):
        del session.unknown["agent"]
