"""Writes one live session's files whole, and takes in what others wrote to them.

A session claims a free name with its first message, moves to another one when its files turn out
to be somebody else's, and is brought up to date in place when they only went on (U9.1, U9.6 to
U9.8). Everything here happens under the session's own lock.
"""

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Protocol

from tiro.errors import SessionFormatError, SessionNotFoundError
from tiro.session.changes import decode_change, encode_change
from tiro.session.core import Core
from tiro.session.history import time_id
from tiro.session.json_text import encode
from tiro.session.messages import Message
from tiro.stores.blobs import Blobs, Held
from tiro.stores.disk import Disk, Signature, copy_aside, make_directories, temporary_file
from tiro.stores.names import file_stem, with_suffixes
from tiro.stores.output_files import OutputFiles
from tiro.stores.reading import (
    SNAPSHOT_ENDING,
    Reading,
    Restored,
    errno_name,
    read_session,
    storage_error,
)
from tiro.stores.session_files import SessionFiles, State, encode_snapshot
from tiro.stores.turns import Turns

Fsync = Literal["message", "turn", "never"]

log = logging.getLogger(__name__)


class Owner(Protocol):
    """What a session's autosave asks of its manager."""

    directory: Path
    """Where our own sessions lie."""

    disk: Disk
    fsync: Fsync
    autosave: bool

    def now(self) -> datetime:
        """The time of the manager's clock."""
        ...

    @property
    def secrets(self) -> Sequence[str]:
        """The exact values of configured keys, which no file holds (U9.11)."""
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


class Saving:
    """The files of one live session, and how far they are behind it."""

    def __init__(self, owner: Owner, directory: Path) -> None:
        self.owner = owner
        self.directory = directory
        self.saved_at: datetime | None = None
        self._turns = Turns(lambda: owner.autosave)
        self._blobs = Blobs(directory, owner.disk, owner)
        self.outputs = OutputFiles(lambda: self.directory, owner)
        """What its tools said that is too long to be held."""
        self._place: Path | None = None
        """Where the session lived before its file was taken away."""
        self._quiet = 0
        self._edit_seen: Signature | None = None
        self._needs_snapshot = False
        """The journal cannot be added to: only a whole snapshot stores the next change."""
        self._wants_snapshot = False
        """The snapshot is to be brought up to date when the session is idle."""
        self._has_failed = False
        """The user was told that the last snapshot failed."""
        self._unsynced = False

    @property
    def files(self) -> SessionFiles | None:
        """Where the session lives; None until the first stored message claims a name."""
        return self._turns.files

    @property
    def path(self) -> Path | None:
        """Where the session lives; None until the first stored message claims a name."""
        return self.files.path if self.files else None

    def stored_bytes(self) -> int:
        """The size of the snapshot, when it was written last."""
        return self.files.snapshot_bytes if self.files else 0

    def is_stored(self, session: Core) -> bool:
        """Whether everything in the session survives a kill of this process."""
        with session.lock:
            return self.files is not None and self.files.stored_n == session.n

    def is_gone(self) -> bool:
        """Whether it was stored and is not there any more: somebody deleted it."""
        return self.path is not None and not os.path.lexists(self.path)

    def held(self, session: Core) -> Held:
        """Finds the session's large values in memory."""
        return self._blobs.held_by((*session.archive_rows, *session.newest_first))

    def restore(self, session: Core, path: Path, reading: Reading, held: Held) -> None:
        """Restore the session from these files, and let it live there from now on.

        `held` has the large values whose files cannot be read.
        """
        with session.lock:
            restored = self._restore(session, path, reading, (), held)
            self._turns.move_to(SessionFiles(path, self.owner.disk))
            self.directory = path.parent
            self._remember(session, reading, restored)
            self.saved_at = reading.saved_at(session)
            if reading.bad or restored.dropped or restored.missing:
                self.owner.told("changed_on_disk", session, restored.detail(reading.bad))

    def _restore(
        self, session: Core, path: Path, reading: Reading, missing: Sequence[Message], held: Held
    ) -> Restored:
        if os.path.realpath(path.parent) != os.path.realpath(self.owner.directory):
            reading.keep_rules(session.rules)  # those in a file of elsewhere are nobody's answers
        with self.silent():
            restored = reading.restore(session, missing, held)
        self.owner.restored(session)
        return restored

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Changes made inside are not stored: they come from the files, or go with a snapshot."""
        self._quiet += 1
        try:
            yield
        finally:
            self._quiet -= 1

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
        path = self._path_of(session)
        with (
            self._encoded(session) as (data, n),
            temporary_file(self.owner.disk, path, data) as temporary,
        ):
            self._put_in_place(session, temporary, n)

    def _put_in_place(self, session: Core, temporary: Path, n: int) -> None:
        assert self.files is not None
        self.files.replace(temporary, n)
        self.saved_at = self.owner.now()
        if session.n == n:
            self.files.empty_journal(self._stamp())
            self._needs_snapshot = self._unsynced = self._wants_snapshot = False
        self._worked(session)

    def _claim(self, session: Core, *, skip: int = 0, first: Path | None = None) -> None:
        """Make the session's files under the first free name (U9.1), after `first`."""
        wanted, self._place = session.id, first or (None if skip else self._place)
        self._turns.move_to(None)
        try:
            self._turns.move_to(self._claim_free_name(session, skip))
        except OSError:
            if session.id != wanted:  # it is nobody's yet
                with self.silent():
                    session.change(id=wanted)
            raise
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
            with self._encoded(session) as (data, n):
                if files.claim(data, n, self._stamp(), for_turn=self._turns.is_kept):
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
        if self._is_other(session, reading) or session.n != files.stored_n:
            self._fork(session)  # another session stands there, or changes of ours are not in it
        else:
            self._take_over(session, files, reading)

    def _is_other(self, session: Core, reading: Reading) -> bool:
        """Whether what stands there now is another session than ours."""
        is_same = reading.stored.fields["id"] == session.id and not reading.contradicts(session)
        return not (is_same and self._goes_on_from_ours(reading))

    def _goes_on_from_ours(self, reading: Reading) -> bool:
        """Whether the change that we saw last is the one that its number names in the journal."""
        if self.files is None or self.files.journaled is None:
            return True
        n, change = self.files.journaled
        stored = decode_change(self.owner.redact(encode_change(n, change)))[1]
        return all(theirs == stored for number, theirs in reading.changes if number == n)

    def _take_over(self, session: Core, files: SessionFiles, reading: Reading) -> None:
        is_short = reading.last_n < files.stored_n
        if is_short and reading.snapshot == files.snapshot:
            self._keep_ours(session, files, reading)
            return
        is_older = is_short or reading.stored.fields["journal_n"] < files.snapshot_n
        before, n = encode(session.snapshot()), session.n
        missing = reading.missing_from(session) if is_older else ()
        restored = self._restore(session, files.path, reading, missing, self.held(session))
        self._remember(session, reading, restored)
        if is_older:
            session.n = max(n, session.n)  # a number is never given twice
            self._needs_snapshot = self._wants_snapshot = True
        if encode(session.snapshot()) != before:
            self.owner.told("changed_on_disk", session, restored.detail(reading.bad))
        if self._wants_snapshot and self.owner.autosave:
            self._save_whole(session)

    def _keep_ours(self, session: Core, files: SessionFiles, reading: Reading) -> None:
        """Somebody took stored changes out of the journal, all of which are here: write anew."""
        reading.bad = max(1, reading.bad)  # what is left of it is copied aside
        files.remember_journal(reading)
        self._save_whole(session)
        detail = {"bad": reading.bad, "reason": "The journal beside it was damaged"}
        self.owner.told("changed_on_disk", session, detail)

    def _set_aside(self, session: Core, files: SessionFiles, error: SessionFormatError) -> None:
        """Keep a damaged file under another name and put ours in its place, with a notice."""
        if not files.journal_is_same():
            self._fork(session)  # another process wrote before the damage was done
            return
        aside = copy_aside(self.owner.disk, files.path, self._stamp())
        self._save_whole(session)
        detail = {"path": str(aside), "reason": error.data.get("reason")}
        self.owner.told("changed_on_disk", session, detail)

    def _remember(self, session: Core, reading: Reading, restored: Restored) -> None:
        assert self.files is not None
        self.files.remember(reading)
        self._wants_snapshot = reading.bad > 0 or restored.rescued > 0
        self._needs_snapshot = self._wants_snapshot or restored.was_pruned
        self._edit_seen = None

    def _failed(self, session: Core, error: OSError) -> None:
        detail = {
            "path": str(error.filename or self._path_of(session)),
            "errno": errno_name(error),
            "reason": error.strerror or str(error),
        }
        self._has_failed = True
        self.owner.told("save_failed", session, detail)

    def _worked(self, session: Core) -> None:
        self._has_failed = False
        self.owner.told("save_resumed", session, {})

    @contextmanager
    def _encoded(self, session: Core) -> Iterator[tuple[bytes, int]]:
        """A snapshot, and up to which change; what it refers to stays at least until the end.

        Where large values cannot be stored, they are in the snapshot itself.
        """
        if self._blobs.path.parent != self.directory:
            self._blobs = Blobs(self.directory, self.owner.disk, self.owner)
        with self._blobs.referring() as references:
            with session.lock:
                data, n = encode_snapshot(session, self.owner.now(), references), session.n
            try:
                references.store()
            except OSError as error:
                log.warning("Large values stay in the session's own file: %s", error)
                with session.lock:
                    data, n = encode_snapshot(session, self.owner.now()), session.n
            yield self.owner.redact(data), n

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
