"""The trash of sessions in files: a folder for each, named by when it was deleted (`Trash`).

Law: a session moves by the move of its snapshot, in one step. What that needs is brought before it,
and what is left of the session goes after it; so whatever ends this process, all of it is on one of
the two sides, and what is on the other stands for nothing.
"""

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from tiro.errors import SessionFormatError, StorageError
from tiro.session.core import Core
from tiro.stores.blobs import blobs_beside, bringing, remove_unreferenced
from tiro.stores.disk import (
    Disk,
    is_empty,
    make_directories,
    read_file,
    remove_stale,
    replace_file,
    set_aside,
)
from tiro.stores.index import saved_session_at
from tiro.stores.live import Live
from tiro.stores.lock import directory_lock, try_lock, wait_for
from tiro.stores.names import file_stem, with_suffixes
from tiro.stores.reading import (
    JOURNAL_ENDING,
    SNAPSHOT_ENDING,
    beside,
    errno_name,
    read_session,
    storage_error,
    values_of,
)
from tiro.stores.session_files import HOLDER_ENDING, encode_snapshot
from tiro.stores.store import has_expired
from tiro.stores.trash import Deleted, Restored, not_in_trash

LOCK_SECONDS = 10.0
"""How long one process waits for another that is at the trash."""
BUSY = "Another process is at the trash {path!r}; try again"


class Home(Protocol):
    """What the trash asks of the manager of the sessions."""

    directory: Path
    disk: Disk
    live: Live

    def now(self) -> datetime:
        """The time of the manager's clock."""
        ...

    def redact(self, data: bytes) -> bytes:
        """The same bytes without the exact values of configured keys (U9.11)."""
        ...

    def path_of_id(self, id: str) -> Path:
        """Where a session with this id lies."""
        ...


class FileTrash:
    """The deleted sessions of one directory, in its folder `trash`."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._left: set[Path] = set()
        """Where large values may lie that only sessions in the trash refer to."""

    @property
    def path(self) -> Path:
        """The folder."""
        return self._home.directory / "trash"

    def page(self, limit: int | None = 100, offset: int = 0) -> tuple[list[Deleted], int]:
        """As `Trash.page`; costs a look at each folder, and reads the sessions of the page."""
        entries = self._entries()
        end = None if limit is None else offset + limit
        found = [_deleted(entry) for entry in entries[offset:end]]
        rows = [row for row in found if row is not None]
        return rows, len(entries) - (len(found) - len(rows))

    def put(self, path: Path) -> bool:
        """Move a session's files here, whose lock the caller holds; False where there are none.

        Raises StorageError, with everything as it was.
        """
        disk = self._home.disk
        try:
            values = values_of(path)
            with self._held(), self._new_folder(path) as folder:
                self._bring(path, folder, values)
                _move(disk, path, folder / path.name)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _not_moved(path, error) from error
        with contextlib.suppress(OSError):
            disk.unlink(beside(path, HOLDER_ENDING))
        remove_stale(path)
        if blobs_beside(path.parent).is_dir():
            self._left.add(path.parent)
        return True

    def restore(self, id: str) -> Restored:
        """As `Trash.restore`."""
        try:
            with self._held():
                entry = self._find(id)
                restored = self._restore(entry, id)
                with contextlib.suppress(OSError):  # it stands for nothing any more
                    self._remove(entry.folder)
                return restored
        except OSError as error:
            raise storage_error(self.path, error, "write") from error

    def empty(self, id: str | None = None) -> int:
        """As `Trash.empty`."""
        if id is None:
            return self._remove_all(self._folders())
        return self._remove_all([entry for entry in self._entries() if _id_of(entry) == id])

    def drop_older(self, moment: datetime) -> int:
        """As `Trash.drop_older`; and what has expired meanwhile goes, too."""
        now = self._home.now()
        return self._remove_all(
            [f for f in self._folders() if f.deleted_at < moment or f.has_expired(now)]
        )

    def tidy(self) -> None:
        """As `Trash.tidy`: remove large values that only sessions in the trash refer to."""
        while self._left:
            remove_unreferenced(self._left.pop(), self._home.disk)

    # Looking

    def _folders(self) -> list["_Folder"]:
        """What is in the trash, deleted last first; also what a kill left without a session."""
        try:
            names = os.listdir(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise storage_error(self.path, error, "read") from error
        found = (_folder_at(self.path / name) for name in sorted(names, reverse=True))
        return [folder for folder in found if folder is not None]

    def _entries(self) -> list["_Folder"]:
        now = self._home.now()
        return [f for f in self._folders() if f.has_session and not f.has_expired(now)]

    def _find(self, id: str) -> "_Folder":
        """The session with this id that was deleted last; SessionNotFoundError."""
        entries, name = self._entries(), file_stem(id) + SNAPSHOT_ENDING
        likely = [entry for entry in entries if entry.snapshot.name == name]
        for entry in [*likely, *entries]:
            if _id_of(entry) == id:
                return entry
        raise not_in_trash(id)

    # Moving

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        """One process at a time changes the trash; raises OSError, StorageError."""
        make_directories(self._home.disk, self.path)
        lock = directory_lock(self.path)
        try:
            if not wait_for(lambda: try_lock(lock), LOCK_SECONDS):
                raise StorageError(BUSY.format(path=str(self.path)), path=str(self.path))
            yield
        finally:
            os.close(lock)

    @contextlib.contextmanager
    def _new_folder(self, path: Path) -> Iterator[Path]:
        """A folder for the session at `path`; what fails inside leaves none."""
        disk = self._home.disk
        stamp = self._home.now().astimezone(UTC).strftime(_STAMP)
        for name in with_suffixes(stamp + path.name.removesuffix(SNAPSHOT_ENDING)):
            with contextlib.suppress(FileExistsError):
                disk.make_directory(folder := self.path / name)
                break
        try:
            yield folder
        except BaseException:
            with contextlib.suppress(OSError):
                self._remove(folder)
            raise

    def _bring(self, path: Path, folder: Path, values: set[str]) -> None:
        """Have in the folder what the session at `path` needs besides its snapshot."""
        disk = self._home.disk
        with bringing(disk, blobs_beside(path.parent), blobs_beside(folder), values):
            journal = _journal_of(path)
            if journal:
                replace_file(disk, beside(folder / path.name, JOURNAL_ENDING), journal)
            disk.sync_directory(folder)
            disk.sync_directory(self.path)

    def _restore(self, entry: "_Folder", id: str) -> Restored:
        """Bring it back under the first id that is free; raises OSError, with all as it was."""
        values = blobs_beside(entry.folder)
        names = set(os.listdir(values)) if values.is_dir() else set[str]()
        new_id, path = self._claim(id, entry.snapshot.name)
        try:
            target = blobs_beside(path.parent)
            with bringing(self._home.disk, values, target, names):
                if new_id == id or not self._write_as(entry, path, new_id):
                    self._move_back(entry, path)
        except BaseException:
            if is_empty(path):
                for left in (beside(path, JOURNAL_ENDING), path):
                    with contextlib.suppress(OSError):
                        self._home.disk.unlink(left)
            raise
        return Restored(new_id, str(path), id)

    def _claim(self, id: str, name: str) -> tuple[str, Path]:
        """The first free id and file, which is made without a byte: nobody else takes it now."""
        for new_id in with_suffixes(id):
            own = self._home.path_of_id(new_id)
            if self._home.live.of_id(new_id) or (os.path.lexists(own) and not is_empty(own)):
                continue
            paths = [self._home.directory / name, own] if new_id == id else [own]
            for path in paths:
                if self._claim_file(path):
                    return new_id, path
        raise AssertionError("suffixes never end")

    def _claim_file(self, path: Path) -> bool:
        """Make this file, unless it is there; one without a byte is a restore that was killed."""
        try:
            os.close(self._home.disk.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return is_empty(path)
        return True

    def _move_back(self, entry: "_Folder", path: Path) -> None:
        """Put the files in the place that was claimed, byte for byte."""
        disk = self._home.disk
        journal, target = _journal_of(entry.snapshot), beside(path, JOURNAL_ENDING)
        if (left := _bytes(target)) and left != journal:
            set_aside(disk, target, self._stamp())
        if journal:
            replace_file(disk, target, journal)
        _move(disk, entry.snapshot, path)

    def _write_as(self, entry: "_Folder", path: Path, id: str) -> bool:
        """Write the session with another id; False, and nothing done, where it is damaged."""
        try:
            reading = read_session(entry.snapshot)
        except SessionFormatError:
            return False
        core = Core()
        if reading.restore_stored(core).dropped or reading.bad:
            return False
        core.id = id
        data = self._home.redact(encode_snapshot(core, reading.saved_at(core)))
        replace_file(self._home.disk, path, data)
        return True

    # Removing

    def _remove_all(self, folders: Sequence["_Folder"]) -> int:
        """Remove these for good; how many sessions that were. Raises StorageError.

        What is gone by then was removed, or brought back, by another process.
        """
        removed = 0
        for path in (folder.folder for folder in folders):
            try:
                with self._held(), contextlib.suppress(FileNotFoundError):
                    found = _folder_at(path)
                    if found is not None:
                        self._remove(path)
                        removed += found.has_session
            except StorageError:
                raise
            except OSError as error:
                raise storage_error(path, error, "write") from error
        return removed

    def _remove(self, folder: Path) -> None:
        """Remove a folder, the snapshot first: without that it stands for nothing."""
        disk = self._home.disk
        for path in sorted(folder.glob("*"), key=lambda path: path.suffix != SNAPSHOT_ENDING):
            if path.is_dir() and not path.is_symlink():
                self._remove(path)
            else:
                disk.unlink(path)
        os.rmdir(folder)

    def _stamp(self) -> str:
        return f"{self._home.now().astimezone():%Y%m%d-%H%M%S}"


class _Folder(NamedTuple):
    """One folder of the trash."""

    folder: Path
    deleted_at: datetime
    snapshot: Path
    has_session: bool
    """Whether the snapshot is there."""

    def has_expired(self, now: datetime) -> bool:
        """Whether the time of the session is over; reads all of one that has such a time."""
        try:
            with open(self.snapshot, "rb") as file:
                if _NEVER in file.read(_LOOK_BYTES):
                    return False
        except OSError:
            return False
        return has_expired(saved_session_at(self.snapshot).expires_at, now)


def _folder_at(path: Path) -> _Folder | None:
    """The folder with this name; None for what is none of ours."""
    try:
        deleted_at = datetime.strptime(path.name[:_STAMP_LENGTH], _STAMP).replace(tzinfo=UTC)
        names = [name for name in os.listdir(path) if _is_snapshot(name)]
    except (ValueError, OSError):
        return None
    snapshot = path / (names[0] if names else SNAPSHOT_ENDING)
    return _Folder(path, deleted_at, snapshot, bool(names))


def _is_snapshot(name: str) -> bool:
    return name.endswith(SNAPSHOT_ENDING) and not name.startswith(".")


def _deleted(entry: _Folder) -> Deleted | None:
    """A line of the list; None where it was taken away meanwhile."""
    saved = saved_session_at(entry.snapshot)
    try:
        size = sum(path.stat().st_size for path in entry.folder.rglob("*") if path.is_file())
    except FileNotFoundError:
        return None
    if not os.path.lexists(entry.snapshot):
        return None
    saved = msgspec.structs.replace(saved, bytes=size)
    return Deleted(entry.deleted_at, saved)


def _id_of(entry: _Folder) -> str:
    return saved_session_at(entry.snapshot).id


def _journal_of(path: Path) -> bytes:
    return _bytes(beside(path, JOURNAL_ENDING))


def _bytes(path: Path) -> bytes:
    """What is in a file; nothing where there is none."""
    try:
        return read_file(path)[0]
    except FileNotFoundError:
        return b""


def _move(disk: Disk, source: Path, target: Path) -> None:
    """Move a file in one step, for good; raises OSError."""
    try:
        disk.replace(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        replace_file(disk, target, read_file(source)[0])
        disk.unlink(source)
    with contextlib.suppress(OSError):  # it has moved: whoever asks may see that
        disk.sync_directory(target.parent)
        disk.sync_directory(source.parent)


def _not_moved(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"{str(path)!r} could not be moved to the trash: {error.strerror or error}; deleting it"
        " for good needs no room",
        path=str(path),
        errno=errno_name(error),
    )


_NEVER, _LOOK_BYTES = b'\n"ttl_seconds":null', 100_000
"""The line of a session that never expires, and where it stands but after a very long memo."""
_STAMP = "%Y%m%dT%H%M%S%fZ-"
_STAMP_LENGTH = len("20260101T000000000000Z-")
