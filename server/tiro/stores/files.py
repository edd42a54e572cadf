"""`FileStore`: sessions as the files that the server keeps too, one or two for each (U9).

`<name>.json` is the snapshot, `<name>.journal` what came since; both editors and other programs
may use the same directory, each in its turn.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from tiro.errors import SessionFormatError, SessionInUseError, SessionNotFoundError
from tiro.session.changes import Change
from tiro.session.core import Core
from tiro.session.times import Clock, utc_now
from tiro.stores.disk import Disk, Signature, make_directories, signature_at, temporary_file
from tiro.stores.idle_files import locked, remove_session
from tiro.stores.journal import change_lines
from tiro.stores.kept import KeptStore
from tiro.stores.lock import in_use, wait_for
from tiro.stores.names import file_stem
from tiro.stores.reading import SNAPSHOT_ENDING, Reading, read_session, storage_error
from tiro.stores.session_files import SessionFiles, State, encode_snapshot
from tiro.stores.store import CLEANUP_SECONDS, expires_at, has_expired

log = logging.getLogger(__name__)


class FileStore(KeptStore):
    """Keeps sessions as files of one directory, which is made with the first of them."""

    def __init__(
        self,
        directory: str | Path,
        cleanup_interval_seconds: float = CLEANUP_SECONDS,
        clock: Clock = utc_now,
        disk: Disk | None = None,
    ) -> None:
        shelf = _Directory(Path(directory).absolute(), disk or Disk(), clock)
        super().__init__(shelf, cleanup_interval_seconds, clock)


class _Directory:
    """The session files of one directory as a shelf."""

    def __init__(self, path: Path, disk: Disk, clock: Clock) -> None:
        self._path = path
        self._disk = disk
        self._clock = clock
        self._expiries: dict[str, tuple[Signature, float | None]] = {}
        """By file name: when it expires, as of this version of the file."""

    def insert(self, session: Core) -> "_KeptFiles | None":
        """Make the files of a new session; None where there are some."""
        files = SessionFiles(self._path_of(session.id or ""), self._disk)
        with _told(files.path, "write"):
            make_directories(self._disk, self._path)
            data = encode_snapshot(session, self._clock())
            if not files.claim(data, session.n, _stamp(self._clock)):
                return None
        return _KeptFiles(files, self._clock, expires_at(session))

    def find(self, id: str) -> "_KeptFiles | None":
        """Read the files of a session; SessionFormatError for damaged ones."""
        try:
            reading = read_session(self._path_of(id))
        except SessionNotFoundError:
            return None
        return _KeptFiles.read(reading, self._disk, self._clock)

    def delete(self, id: str) -> bool:
        """Remove a session's files; SessionInUseError while another process answers in it."""
        path = self._path_of(id)
        with locked(self._disk, path):
            return remove_session(self._disk, path)

    def delete_expired(self, now: datetime) -> int:
        """Remove the files of all that have expired; damaged ones and those in use stay."""
        removed = 0
        for path, moment in self._all():
            if has_expired(moment, now):
                # Used, removed or damaged just now: the others expire all the same.
                with suppress(SessionInUseError, SessionNotFoundError, SessionFormatError):
                    removed += _KeptFiles.read(read_session(path), self._disk, self._clock).delete()
        return removed

    def count(self, now: datetime) -> int:
        """How many sessions have files, without the expired."""
        return sum(not has_expired(moment, now) for _, moment in self._all())

    def close(self) -> None:
        """Nothing: no file stays open."""

    def _all(self) -> list[tuple[Path, float | None]]:
        """Every session file that can be read, and when it expires; reads only changed ones."""
        found: dict[str, tuple[Signature, float | None]] = {}
        for name in _names(self._path):
            with _told(self._path / name, "read"):
                signature = signature_at(self._path / name)
            if signature is None:
                continue
            known = self._expiries.get(name)
            if known is None or known[0] != signature:
                try:
                    known = signature, read_session(self._path / name).expires_at
                except (SessionFormatError, SessionNotFoundError):
                    continue
            found[name] = known
        self._expiries = found
        return [(self._path / name, moment) for name, (_, moment) in found.items()]

    def _path_of(self, id: str) -> Path:
        return self._path / (file_stem(id) + SNAPSHOT_ENDING)


class _KeptFiles:
    """The files of one session, as they were last seen."""

    def __init__(
        self,
        files: SessionFiles,
        clock: Clock,
        expires_at: float | None,
        reading: Reading | None = None,
    ) -> None:
        self.expires_at = expires_at
        self._files = files
        self._clock = clock
        self._reading = reading
        self._has_failed = False
        """The journal cannot be trusted: what comes next is a whole snapshot (U9.5)."""

    @classmethod
    def read(cls, reading: Reading, disk: Disk, clock: Clock) -> "_KeptFiles":
        """The files that were just read."""
        files = SessionFiles(reading.path, disk)
        files.remember(reading)
        return cls(files, clock, reading.expires_at, reading)

    @property
    def snapshot_bytes(self) -> int:
        """The size of the snapshot."""
        return self._files.snapshot_bytes

    @property
    def changes_bytes(self) -> int:
        """The size of the journal."""
        return self._files.journal_size

    def restore(self, session: Core) -> None:
        """Bring a session to what was read; called once."""
        assert self._reading is not None
        restored = self._reading.restore(session)
        if restored.missing or restored.dropped or self._reading.bad:
            log.warning(
                "In the session %r, %d large values and %d lines of the journal cannot be used, and"
                " %d changes fit no message",
                *(session.id, restored.missing, self._reading.bad, restored.dropped),
            )
        self._reading = None

    def append(self, session: Core, first_n: int, changes: tuple[Change, ...]) -> bool:
        """Add lines to the journal, and wait until they are on the disk."""
        if self._has_failed or self._files.has_bad_journal:
            return self.replace(session)
        with self._held():
            if self._files.look() is not State.SAME:
                return False
            self._has_failed = True
            self._files.append(session.id, first_n, changes, change_lines(first_n, changes))
            if wait := self._files.journal.sync_later():
                wait()
            self._has_failed = False
            return True

    def replace(self, session: Core) -> bool:
        """Write the snapshot anew and empty the journal."""
        files = self._files
        with self._held():
            if files.look() is not State.SAME:
                return False
            data = encode_snapshot(session, self._clock())
            with temporary_file(files.disk, files.path, data) as temporary:
                files.replace(temporary, session.n)
            files.empty_journal(_stamp(self._clock))
            self._has_failed = False
            return True

    def delete(self) -> bool:
        """Remove the files unless another session has them by now."""
        path = self._files.path
        with self._held():
            try:
                is_same = read_session(path).expires_at == self.expires_at
            except SessionNotFoundError:
                return False
            return is_same and remove_session(self._files.disk, path)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Hold the session's lock; SessionInUseError while another process answers in it."""
        files = self._files
        with _told(files.path, "write"):
            try:
                if os.path.lexists(files.path) and not wait_for(files.journal.try_lock):
                    raise in_use(files.holder_path)
                yield
                files.tidy()
            finally:
                files.journal.close()


@contextmanager
def _told(path: Path, verb: str) -> Iterator[None]:
    """Tell what the disk refused."""
    try:
        yield
    except OSError as error:
        raise storage_error(path, error, verb) from error


def _names(directory: Path) -> list[str]:
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise storage_error(directory, error, "read") from error
    return [name for name in names if name.endswith(SNAPSHOT_ENDING) and name[0] != "."]


def _stamp(clock: Clock) -> str:
    return f"{clock().astimezone():%Y%m%d-%H%M%S}"
