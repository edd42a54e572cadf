"""Keeps the files of one live session up to date with it: the observer of its changes.

Every change is in the journal before the call that made it returns, by one write call. When the
disk refuses, the change stays in memory, the user is told once, and the next change writes the
whole session again (U9.5). Nothing raises into a commit. Everything here happens under the
session's own lock, except writing out a snapshot's temporary file and waiting for fsync.
"""

import errno
import logging
import os
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Protocol

from tiro.errors import SessionFormatError, SessionInUseError, SessionNotFoundError, StorageError
from tiro.session.changes import Add, Change
from tiro.session.core import Core
from tiro.session.history import time_id
from tiro.session.messages import Message, encode
from tiro.stores.disk import (
    Disk,
    make_directories,
    remove_stale,
    set_aside,
    temporary_file,
)
from tiro.stores.files import (
    SNAPSHOT_ENDING,
    Reading,
    SessionFiles,
    State,
    encode_snapshot,
    errno_name,
    read_session,
    storage_error,
)
from tiro.stores.journal import change_lines
from tiro.stores.lock import read_holder, remove_holder, write_holder
from tiro.stores.names import file_stem, with_suffixes

Fsync = Literal["message", "turn", "never"]
IDLE_SECONDS = 0.25
SYNC_SECONDS = 1.0
WAIT_SECONDS = 1.0
SMALL_BYTES = 1_000_000
_POLL_SECONDS = 0.005

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

    def schedule(self, autosave: "Autosave", session: Core) -> None:
        """Have `autosave.run` called when it is due."""
        ...


class Autosave:
    """The files of one live session, kept up to date until `detach`."""

    def __init__(self, session: Core, owner: Owner, directory: Path) -> None:
        self.owner = owner
        self.directory = directory
        self.files: SessionFiles | None = None
        self.stored_n = 0
        """The last change that is in the files, and so survives a kill."""
        self.saved_at: datetime | None = None
        self._session = weakref.ref(session)
        self._snapshot_n = 0
        self._snapshot_bytes = 0
        self._needs_snapshot = False
        self._unsynced = False
        self._wants_snapshot = False
        self._last_change = 0.0
        self._not_before = 0.0
        self._held = 0
        self._named = False
        self._was_busy = False
        self._quiet = 0
        self._edit_seen: Any = None
        self._stop = session.observe(self._changed)

    def attach(self, session: Core, path: Path, reading: Reading) -> None:
        """Let the session live in these files, from which it was just restored."""
        self.files = SessionFiles(path, self.owner.disk)
        self.directory = path.parent
        self._remember(session, reading)
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
            return self.files is not None and self.stored_n == session.n

    # Taking turns with other processes (U9.8)

    def enter(self, session: Core) -> None:
        """Take the lock, waiting up to a second, and look what others wrote meanwhile.

        Raises SessionInUseError (with `pid` and `host`) while another process holds it.
        """
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            with session.lock:
                if self._held or self._try_lock():
                    self._held += 1
                    if self._held == 1:
                        self._enter_first(session)
                    return
            if time.monotonic() >= deadline:
                raise self._in_use()
            time.sleep(_POLL_SECONDS)

    def leave(self, session: Core) -> None:
        """Give the lock back."""
        with session.lock:
            self._held -= 1
            if self._held == 0:
                if self._named and self.files is not None:
                    remove_holder(self.files.holder_path)
                self._named = False
                self._unlock()
        if self._is_pending():
            self.owner.schedule(self, session)

    def name_holder(self, session: Core) -> None:
        """Say in a file beside the lock who holds it, until it is given back."""
        with session.lock:
            self._named = True
            if self.files is not None and self.owner.autosave:
                write_holder(self.files.holder_path)

    # Writing

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

    def due(self) -> float | None:
        """When `run` has something to do, by the monotonic clock; None for nothing."""
        if self.files is None or not self._is_pending():
            return None
        times = []
        if self._wants_snapshot:
            times.append(self._last_change + IDLE_SECONDS)
        if self._unsynced and self.owner.fsync == "turn" and not self._held:
            times.append(self._last_change + SYNC_SECONDS)
        return max(min(times), self._not_before) if times else None

    def run(self, session: Core, now: float) -> None:
        """Do what is due: the idle snapshot, the fsync; at rest no file stays open."""
        if self._wants_snapshot and now >= self._last_change + IDLE_SECONDS:
            self._wants_snapshot = False
            self._write_idle_snapshot(session)
        if self._unsynced and not self._held and now >= self._last_change + SYNC_SECONDS:
            self.sync(session)
        with session.lock:
            if self.files is not None and not self._held and not self._is_pending():
                self.files.journal.close()

    def finish(self, session: Core) -> None:
        """Write what a session at rest should be: one snapshot and no journal; never raises."""
        with suppress(StorageError, SessionInUseError, OSError):
            self._finish(session)
        with session.lock:
            self._wants_snapshot = self._unsynced = False
            if self.files is not None:
                self.files.journal.close()

    def detach(self, session: Core) -> None:
        """Let go of the files for good: whatever happens to the session is no longer stored."""
        with session.lock:
            self._stop()
            self._stop = lambda: None
            if self.files is not None:
                self.files.journal.close()
            self.files = None
            self._wants_snapshot = self._unsynced = False

    # What follows runs under the session's lock.

    def _changed(self, first_n: int, changes: tuple[Change, ...]) -> None:
        session = self._session()
        if session is None or self._quiet or not self.owner.autosave:
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
        if not self._held and not self._wait_for_lock():
            raise OSError(errno.EAGAIN, "another process is answering in this session")
        try:
            if self._is_ours(session):
                if self._needs_snapshot or first_n != self.stored_n + 1:
                    self._save_whole(session)
                else:
                    self._append(session, first_n, changes)
        finally:
            if not self._held:
                self._unlock()

    def _is_ours(self, session: Core) -> bool:
        """Whether the files may be added to; where they may not, all is stored elsewhere."""
        assert self.files is not None
        state = self.files.look()
        if state is State.SAME:
            return True
        if state is State.GONE:
            self._claim_again(session)
            return False
        if self._is_only_edited():
            self._wants_snapshot = True  # the edit is taken in when the session is idle
            return True
        self._fork(session)
        return False

    def _is_only_edited(self) -> bool:
        """Whether the files hold all our stored changes and no others: an edit by hand."""
        assert self.files is not None
        seen = self.files.signatures()
        if seen == self._edit_seen:
            return True
        try:
            last_n = read_session(self.files.path).last_n
        except SessionFormatError:
            last_n = self.stored_n  # an unreadable file is set aside by the next snapshot
        except (StorageError, SessionNotFoundError):
            return False
        if last_n == self.stored_n:
            self._edit_seen = seen
            return True
        return False

    def _append(self, session: Core, first_n: int, changes: tuple[Change, ...]) -> None:
        assert self.files is not None
        lines = self.owner.redact(change_lines(first_n, changes))
        try:
            self.files.append(session.id, first_n, lines)
        except OSError:
            self._needs_snapshot = True
            raise
        self.stored_n = first_n + len(changes) - 1
        self.saved_at = session.updated
        self._unsynced = True
        size = self.files.journal_size
        if self._snapshot_bytes < SMALL_BYTES or size * 4 >= self._snapshot_bytes:
            self._wants_snapshot = True
        if self.owner.fsync == "message":
            self.sync(session)

    def _save(self, session: Core) -> Path:
        try:
            if self.files is not None and self.files.look() is State.GONE:
                self._claim_again(session)
            elif self.files is None:
                self._claim(session)
            else:
                self._save_whole(session)
        except OSError as error:
            self._failed(session, error)
            raise storage_error(self._path_of(session), error, "write") from error
        assert self.files is not None
        return self.files.path

    def _save_whole(self, session: Core) -> None:
        assert self.files is not None
        data, n = self._encode(session), session.n
        with temporary_file(self.owner.disk, self.files.path, data) as temporary:
            self._put_in_place(session, temporary, n, len(data))

    def _put_in_place(self, session: Core, temporary: Path, n: int, size: int) -> None:
        assert self.files is not None
        self.files.replace(temporary)
        self._snapshot_n, self._snapshot_bytes = n, size
        self.stored_n = max(n, self.stored_n)
        self.saved_at = self.owner.now()
        self._needs_snapshot = self._needs_snapshot and session.n != n
        self.files.sync_directory()
        if session.n == n:
            self.files.empty_journal(self._stamp())
            self._unsynced = self._wants_snapshot = False
        self._worked(session)

    def _write_idle_snapshot(self, session: Core) -> None:
        with session.lock:
            files = self.files
            if files is None or not self._is_behind(session) or not self.owner.autosave:
                return
            data, n = self._encode(session), session.n
        try:
            with temporary_file(self.owner.disk, files.path, data) as temporary, session.lock:
                if self.files is not files or not (self._held or self._try_lock()):
                    self._wants_snapshot, self._not_before = True, time.monotonic() + 1
                    return
                try:
                    if files.look() is State.SAME:
                        self._put_in_place(session, temporary, n, len(data))
                    else:
                        self._refresh(session)
                finally:
                    if not self._held:
                        self._unlock()
        except OSError as error:
            with session.lock:
                self._failed(session, error)

    def _finish(self, session: Core) -> None:
        if not self.owner.autosave:
            return
        self.enter(session)
        try:
            with session.lock:
                if self.files is None:
                    is_behind = bool(session.newest_first or session.archive_rows)
                else:
                    is_behind = self._is_behind(session) and self.files.look() is not State.GONE
                if is_behind:
                    self._save(session)
                if self._held == 1 and self.files is not None:
                    self.files.remove_journal()
        finally:
            self.leave(session)

    # Claims, forks and second looks

    def _claim(self, session: Core, *, skip: int = 0, first: Path | None = None) -> None:
        """Make the session's files under the first free name (U9.1)."""
        wanted = session.id
        try:
            self._claim_free_name(session, skip, first)
        finally:
            if wanted is not None and wanted != session.id:
                detail = {"old_id": wanted, "path": str(self._path_of(session))}
                self.owner.told("renamed", session, detail)
        if self._held:
            self._try_lock()
            if self._named:
                self.name_holder(session)
        self._worked(session)

    def _claim_free_name(self, session: Core, skip: int, first: Path | None) -> None:
        make_directories(self.owner.disk, self.directory)
        stem = session.id or time_id(self.owner.now())
        for id in islice(with_suffixes(stem), skip, None):
            path = first or self.directory / (file_stem(id) + SNAPSHOT_ENDING)
            first = None
            if os.path.lexists(path):
                continue
            if session.id != id:
                with self.silent():
                    session.change(id=id)
            n, data = session.n, self._encode(session)
            files = SessionFiles(path, self.owner.disk)
            if files.claim(data, self._stamp()):
                break
        self.files = files
        self.directory = path.parent
        self.stored_n = self._snapshot_n = n
        self._snapshot_bytes = len(data)
        self.saved_at = self.owner.now()
        self._needs_snapshot = self._unsynced = self._wants_snapshot = False

    def _claim_again(self, session: Core) -> None:
        """Write the whole session where its file was taken away under it."""
        assert self.files is not None
        path = self.files.path
        self._unlock()
        self.files.journal.close()
        self.files = None
        self._claim(session, first=path)

    def _fork(self, session: Core) -> None:
        """Keep both sides: what we hold goes under a new id, the files stay the others' (U9.8)."""
        assert self.files is not None
        self._unlock()
        self.files.journal.close()
        self.files = None
        self._needs_snapshot = True
        self._claim(session, skip=1)

    def _refresh(self, session: Core) -> None:
        """Take over what the files say, if somebody else wrote them (U9.7, U9.8)."""
        assert self.files is not None
        state = self.files.look()
        if state in (State.SAME, State.GONE):
            return
        try:
            reading = read_session(self.files.path)
        except SessionFormatError as error:
            self._set_aside(session, error)
            return
        if reading.stored.fields["id"] != session.id or session.n != self.stored_n:
            self._fork(session)  # another session stands there, or changes of ours are not in it
        else:
            self._take_over(session, reading)

    def _take_over(self, session: Core, reading: Reading) -> None:
        before, n = encode(session.snapshot()), session.n
        missing: list[Message] = []
        if reading.stored.fields["journal_n"] < self._snapshot_n:
            missing = _unknown_to(session, reading)
        with self.silent():
            dropped = reading.restore(session, missing)
        self._remember(session, reading)
        if session.n < n or missing:
            session.n = max(n, session.n)  # a number is never given twice
            self._needs_snapshot = self._wants_snapshot = True
        if encode(session.snapshot()) != before:
            self.owner.told("changedOnDisk", session, {"dropped": dropped, "bad": reading.bad})
        if self._needs_snapshot and self.owner.autosave:
            self._save_whole(session)

    def _set_aside(self, session: Core, error: SessionFormatError) -> None:
        """Rename a damaged file and write ours in its place, with a notice."""
        assert self.files is not None
        aside = set_aside(self.owner.disk, self.files.path, self._stamp())
        self._claim_again(session)
        detail = {"path": str(aside), "reason": error.data.get("reason")}
        self.owner.told("changedOnDisk", session, detail)

    def _remember(self, session: Core, reading: Reading) -> None:
        assert self.files is not None
        self.files.remember(reading)
        self.stored_n = session.n
        self._snapshot_n = reading.stored.fields["journal_n"]
        self._snapshot_bytes = reading.snapshot.size
        self._needs_snapshot = reading.bad > 0
        self._wants_snapshot = self._needs_snapshot
        self._edit_seen = None

    # Small things

    def _enter_first(self, session: Core) -> None:
        if self.files is None:
            return
        try:
            self._refresh(session)
        except OSError as error:
            self._failed(session, error)

    def _try_lock(self) -> bool:
        """Take the lock if it is free. Where no lock can be had, the signatures must do."""
        if self.files is None:
            return True
        if not self.owner.autosave and not self.files.journal.exists():
            return True
        try:
            return self.files.journal.try_lock()
        except OSError:
            return True

    def _wait_for_lock(self) -> bool:
        """The lock for one write; a second's patience, but not at every change of a long turn."""
        deadline = 0.0 if self._was_busy else time.monotonic() + WAIT_SECONDS
        while not self._try_lock():
            if time.monotonic() >= deadline:
                self._was_busy = self._needs_snapshot = True
                return False
            time.sleep(_POLL_SECONDS)
        self._was_busy = False
        return True

    def _unlock(self) -> None:
        if self.files is not None:
            self.files.journal.unlock()

    def _in_use(self) -> SessionInUseError:
        holder = read_holder(self.files.holder_path) if self.files else read_holder(Path())
        who = f" (process {holder.pid} on {holder.host})" if holder.pid else ""
        return SessionInUseError(
            f"Another process{who} is answering in this session right now; try again when it is"
            " done",
            pid=holder.pid,
            host=holder.host,
        )

    def _failed(self, session: Core, error: OSError) -> None:
        path = str(error.filename or self._path_of(session))
        reason = error.strerror or str(error)
        detail = {"path": path, "errno": errno_name(error), "reason": reason}
        self.owner.told("saveFailed", session, detail)

    def _worked(self, session: Core) -> None:
        self.owner.told("saveResumed", session, {})

    def _sync_failed(self, session: Core, error: OSError) -> None:
        """What that descriptor took may be lost: write everything anew through another one."""
        with session.lock:
            if self.files is None:
                return
            self.files.journal.close()
            if self._held:
                self._try_lock()
            self._needs_snapshot = True
            self.stored_n = min(self.stored_n, self._snapshot_n)
            log.warning("fsync failed for %s: %s", self.files.path, error)
        with suppress(StorageError, SessionInUseError):
            self.save(session)

    def _encode(self, session: Core) -> bytes:
        return self.owner.redact(encode_snapshot(session, self.owner.now()))

    def _path_of(self, session: Core) -> Path:
        if self.files is not None:
            return self.files.path
        stem = file_stem(session.id) if session.id else time_id(self.owner.now())
        return self.directory / (stem + SNAPSHOT_ENDING)

    def _stamp(self) -> str:
        return f"{self.owner.now().astimezone():%Y%m%d-%H%M%S}"

    def _is_behind(self, session: Core) -> bool:
        return session.n != self._snapshot_n or self._needs_snapshot

    def _is_pending(self) -> bool:
        return self._wants_snapshot or self._unsynced


def _unknown_to(session: Core, reading: Reading) -> list[Message]:
    """Our messages that are younger than an older file somebody put back, oldest first."""
    next_seq = reading.stored.fields["next_seq"]
    added = {c.message.seq for _, c in reading.changes if isinstance(c, Add)}
    rows = [*session.archive_rows, *session.oldest_first()]
    return [m for m in rows if (m.seq or 0) >= next_seq and m.seq not in added]
