"""Keeps the files of one live session up to date with it: the observer of its changes.

Every change is in the journal before the call that made it returns, by one write call. When the
disk refuses, the change stays in memory, the user is told once, and the next change writes the
whole session again (U9.5). Nothing raises into a commit. Everything here happens under the
session's own lock, except writing a snapshot's temporary file and waiting for fsync.
"""

import errno
import logging
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from tiro.errors import SessionFormatError, SessionInUseError, SessionNotFoundError, StorageError
from tiro.session.changes import Change
from tiro.session.core import Core
from tiro.stores.blobs import Held, remove_unreferenced
from tiro.stores.disk import Signature, narrow, remove_stale, temporary_file
from tiro.stores.journal import change_lines
from tiro.stores.lock import in_use, never, wait_for
from tiro.stores.reading import Reading, read_session
from tiro.stores.saving import Owner, Saving
from tiro.stores.session_files import SessionFiles, State
from tiro.stores.upkeep import forget_lost_agent

IDLE_SECONDS = 0.25
SYNC_SECONDS = 1.0
RETRY_SECONDS = 1.0
REFUSED_SECONDS = 2.0
SMALL_BYTES = 1_000_000

log = logging.getLogger(__name__)


class Schedules(Owner, Protocol):
    """A manager that also has things done later."""

    def schedule(self, autosave: "Autosave", session: Core) -> None:
        """Have `autosave.run` called when it is due."""
        ...


class Autosave(Saving):
    """The files of one live session, kept up to date until `detach`."""

    owner: Schedules

    def __init__(self, session: Core, owner: Schedules, directory: Path) -> None:
        super().__init__(owner, directory)
        self._session = weakref.ref(session)
        self._is_detached = False
        self._last_change = 0.0
        self._not_before = 0.0
        self._is_refused = False
        """At rest, with something that the disk did not take."""
        self._left_alone: Signature | None = None
        """A state of the file that is nothing to be taken in before a change of ours."""
        session.observe(self._changed)

    def restore(self, session: Core, path: Path, reading: Reading, held: Held) -> None:
        """As `Saving.restore`, and have done what is to be done of it."""
        super().restore(session, path, reading, held)
        if self.owner.autosave:
            remove_stale(path)
            narrow(path)
            if self._is_pending():
                self.owner.schedule(self, session)

    def detach(self, session: Core) -> None:
        """Let go of the files for good: whatever happens to the session is no longer stored."""
        with session.lock:
            self._is_detached = True
            self._wants_snapshot = self._unsynced = False
            self._turns.move_to(None)

    # Taking turns with other processes (U9.8)

    def enter(self, session: Core, is_given_up: Callable[[], bool] = never) -> None:
        """Take the lock, waiting up to a second, and look what others wrote meanwhile.

        Raises SessionInUseError (with `pid` and `host`) while another process holds it.
        """

        def take() -> bool:
            with session.lock:
                is_first = not self._turns.is_held
                taken = self._turns.try_hold()
                if taken and is_first:
                    try:
                        self._catch_up(session)
                    except BaseException:
                        self._turns.release()
                        raise
                return taken

        if not wait_for(take, is_given_up=is_given_up):
            raise in_use(self.files.holder_path if self.files else None)

    def leave(self, session: Core) -> None:
        """Give the lock back."""
        with session.lock:
            self._turns.release()
            if not self._turns.is_held:
                self.outputs.close()
            if not self._is_pending():
                self._turns.rest()
        if self._is_pending():
            self.owner.schedule(self, session)

    def read_news(self, session: Core) -> Reading | None:
        """What others wrote while nothing goes on here; waits for the disk, and for no lock.

        What cannot be read stays for the next change to see to. Raises OSError.
        """
        files = self.files
        if files is None or self._turns.is_held or session.n != files.stored_n:
            return None
        found = files.news()
        if found is None or found == self._left_alone or not files.are_free():
            return None  # while another process has its turn; at its end there is more to see
        try:
            return read_session(files.path)
        except (SessionFormatError, SessionNotFoundError, StorageError):
            self._left_alone = found
            return None

    def take_news(self, session: Core, news: Reading) -> None:
        """Take in what was just read, if it is still what stands there; raises OSError.

        Another session stays for the next change to see to.
        """
        with session.lock:
            files = self.files
            if files is None or self._turns.is_held or session.n != files.stored_n:
                return
            if not self._turns.try_hold():
                return
            try:
                if files.look() is not State.CHANGED or not files.are_as_read(news):
                    return
                if self._is_other(session, news):
                    self._left_alone = news.snapshot
                else:
                    self._take_over(session, files, news)
            finally:
                self.leave(session)

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
        """Write what a session at rest should be: one snapshot and no journal; never raises.

        What the disk refuses is tried again from time to time.
        """
        is_kept = self.owner.autosave and not self._is_detached
        if is_kept:
            with suppress(StorageError, SessionInUseError, OSError):
                self._finish(session)
            if self._blobs.has_dropped:
                self._blobs.has_dropped = False
                remove_unreferenced(self.directory, self.owner.disk)
        with session.lock:
            self._is_refused = is_kept and self._has_more(session)
            self._wants_snapshot, self._unsynced = self._is_refused, False
            self._not_before = time.monotonic() + REFUSED_SECONDS
            self._turns.rest()
        if self._is_refused:
            self.owner.schedule(self, session)

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
            self.finish(session) if self._is_refused else self._write_idle_snapshot(session)
        is_old = now >= self._last_change + SYNC_SECONDS
        if self._unsynced and is_old and not self._turns.is_held:
            self.sync(session)
        with session.lock:
            if not self._is_pending():
                self._turns.rest()

    # What follows runs under the session's lock. First: storing a change.

    def _changed(self, first_n: int, changes: tuple[Change, ...]) -> None:
        session = self._session()
        if session is not None:
            forget_lost_agent(session, changes)
        if session is None or self._quiet or self._is_detached or not self.owner.autosave:
            return
        try:
            self._store(session, first_n, changes)
        except OSError as error:
            self._failed(session, error)
        except Exception:  # a fault of ours must not undo the change that was just made
            self._needs_snapshot = True
            log.exception("A change could not be stored")
        self._last_change, self._is_refused = time.monotonic(), False
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
            if files is not None:
                self._write(session, files, first_n, changes)
        finally:
            self._turns.unlock_after_write()

    def _write(
        self, session: Core, files: SessionFiles, first_n: int, changes: tuple[Change, ...]
    ) -> None:
        """Write a change to files that are ours: whole where it must be, else to the journal."""
        is_edited = files.found != files.snapshot
        must_be_whole = self._needs_snapshot or first_n != files.stored_n + 1
        if must_be_whole and is_edited:
            self._fork(session)  # nobody's edit is overwritten, and no change of ours lost
        elif must_be_whole:
            self._save_whole(session)
        else:
            if self._has_failed and not is_edited:
                with suppress(OSError):
                    self._save_whole(session)
                    return
            self._append(session, files, first_n, changes)

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
        files.append(session.id, first_n, changes, lines)
        self.saved_at = session.updated
        self._unsynced = True
        if files.snapshot_bytes < SMALL_BYTES or files.journal_size * 4 >= files.snapshot_bytes:
            self._wants_snapshot = True
        if self.owner.fsync == "message":
            self.sync(session)

    def _write_idle_snapshot(self, session: Core) -> None:
        with session.lock:
            files = self.files
            if files is None or not self._is_behind(session) or not self.owner.autosave:
                return
            before = files.snapshot
        disk = self.owner.disk
        try:
            with (
                self._encoded(session) as (data, n),
                temporary_file(disk, files.path, data) as temporary,
                session.lock,
            ):
                if self.files is not files or files.snapshot != before:
                    self._put_off_snapshot()  # what is there now is newer than ours
                else:
                    self._put_idle_snapshot(session, files, temporary, n)
        except OSError as error:
            with session.lock:
                self._failed(session, error)

    def _put_idle_snapshot(
        self, session: Core, files: SessionFiles, temporary: Path, n: int
    ) -> None:
        if not (self._turns.is_held or self._turns.try_lock()):
            self._put_off_snapshot()
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

    def _put_off_snapshot(self) -> None:
        self._wants_snapshot, self._not_before = True, time.monotonic() + RETRY_SECONDS

    def _finish(self, session: Core) -> None:
        self.enter(session)
        try:
            with session.lock:
                if self._has_more(session) or self._blobs.are_missing():
                    self._save(session)
        finally:
            self.leave(session)

    def _has_more(self, session: Core) -> bool:
        """Whether it holds what its files do not; one whose file was removed keeps nothing back."""
        if self.files is None:
            return bool(session.newest_first or session.archive_rows)
        return self._is_behind(session) and self.files.look() is not State.GONE

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
