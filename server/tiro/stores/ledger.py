"""The edit ledger: one append-only file for all sessions and processes, and the texts beside it.

Law: what `add` has returned for survives a kill and a power cut, texts first; what it has raised
for is not there. Texts are stored as they are: undo writes them into the user's files (U9.11).

`ledger.jsonl` holds a line for each edit and for each change of its state, `texts/<sha256>` the
texts, compressed. Every change holds the lock on the file, so no text is removed that a line is
about to name. A torn last line is cut away; a broken one is skipped, told once, and kept.
"""

import contextlib
import functools
import logging
import os
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from tiro.errors import StorageError
from tiro.session.edits import (
    Became,
    Edit,
    Line,
    Made,
    bytes_of,
    decode_line,
    encode_line,
    hash_of,
    ids_of,
    replay,
)
from tiro.stores.disk import (
    FILE_MODE,
    Disk,
    Signature,
    is_stale,
    make_directories,
    read_file,
    remove_stale,
    replace_file,
    signature_at,
)
from tiro.stores.journal import Journal
from tiro.stores.lock import try_lock, wait_for
from tiro.stores.reading import storage_error

MAX_EDITS = 2000
MAX_TEXT_BYTES = 200_000_000
"""What is kept at most: the newest edits, while their compressed texts take no more than this."""

MAX_MEMORY_BYTES = 50_000_000
"""The same for those that are in memory only."""

LOCK_SECONDS = 10.0
"""How long one process waits for another, which may be writing large texts."""

FORGOTTEN = (
    "Saving is off, so edits of files are kept in memory only, and there is no more room: the"
    " oldest can no longer be undone"
)
DAMAGED = "{count} lines of {path!r} cannot be read; the edits in them cannot be undone"
UNNOTED = "What was undone or redone could not be noted in {path!r} ({why}); the files are right"
UNRECORDED = (
    "Edits of files cannot be recorded at the moment, so they could not be undone later: no file"
    " is changed until that works again"
)
MOVING = "moving.lock"
MOVING_NOW = "Another process is undoing or redoing edits; ask again when it is done"
BUSY = "Another process holds the ledger of edits {path!r}; try again"
NO_TEXT = "The text that {path!r} is to get back is missing or damaged; nothing was changed"

log = logging.getLogger(__name__)


class Ledger:
    """The edits of a configuration directory; its methods may be called from any thread.

    While `is_kept` says no, what is added stays in memory and ends with this process. `tell` hears
    what a user should know, each thing once.
    """

    def __init__(
        self,
        directory: Path,
        disk: Disk | None = None,
        is_kept: Callable[[], bool] = lambda: True,
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.path = directory / "ledger.jsonl"
        self._texts = directory / "texts"
        self._disk = disk or Disk()
        self._is_kept = is_kept
        self._tell = tell
        self._lock = threading.RLock()
        self._read: tuple[Signature | None, list[Line]] = None, []
        self._replayed: tuple[tuple[list[Line], list[_Unkept]], list[Edit]] = ([], []), []
        self._told_damaged = 0
        self._unkept: list[_Unkept] = []
        """What is in memory only: whole edits, and marks that could not be stored yet."""
        self._unkept_texts: dict[str, bytes] = {}
        """The texts of edits that are in memory only, compressed."""

    def add(self, made: Made, texts: Mapping[str, str]) -> None:
        """Record an edit whose texts have these hashes; raises StorageError."""
        with self._lock:
            if not self._is_kept():
                self._unkept.append(_Unkept(self._last_stored(), made))
                for name, text in texts.items():
                    self._unkept_texts.setdefault(name, zlib.compress(bytes_of(text), _LEVEL))
                self._forget()
                return
            try:
                with self._held() as journal:
                    self._store_texts(texts)
                    self._append(journal, [made])
            except StorageError:
                self._tell(UNRECORDED)
                raise

    def mark(self, mark: Became) -> None:
        """Record what became of edits of a file; never raises: memory keeps what no disk takes.

        What became of edits on the disk is noted there also while nothing else is kept: the next
        process would take them for as they were.
        """
        with self._lock:
            own = {line.id for _, line in self._unkept if isinstance(line, Made)}
            after = self._last_stored()
            self._unkept += [_Unkept(after, part) for part in _parts(mark, own)]
            waiting = [line for _, line in self._unkept if not own.issuperset(ids_of(line))]
            if not waiting:
                return
            try:
                with self._held() as journal:
                    self._append(journal, waiting)
            except StorageError as error:
                self._tell(UNNOTED.format(path=str(self.path), why=error.data.get("errno")))
                return
            self._unkept = [one for one in self._unkept if own.issuperset(ids_of(one.line))]

    def edits(self) -> list[Edit]:
        """All edits, oldest first, those of other processes too; raises StorageError.

        While nothing changes it is the same list.
        """
        with self._lock:
            lines = self._stored(), [*self._unkept]
            if lines != self._replayed[0]:
                self._replayed = lines, replay(_in_order(*lines))
            return self._replayed[1]

    def claim(self) -> Callable[[], None]:
        """Let no other process undo or redo until the answer is called; raises StorageError."""
        try:
            descriptor = os.open(self.path.parent / MOVING, os.O_RDWR | os.O_CREAT, FILE_MODE)
        except OSError as error:  # no ledger yet, or none that can be written
            log.debug("Undo and redo are not locked: %s", error)
            return lambda: None
        try:
            is_taken = wait_for(functools.partial(try_lock, descriptor), LOCK_SECONDS)
        except OSError as error:
            os.close(descriptor)
            raise storage_error(self.path, error, "write") from error
        if not is_taken:
            os.close(descriptor)
            raise StorageError(MOVING_NOW, path=str(self.path))
        return functools.partial(os.close, descriptor)

    def text(self, made: Made, name: str) -> str:
        """The text of an edit that has this hash; raises StorageError."""
        try:
            stored = self._unkept_texts.get(name) or read_file(self._texts / name)[0]
            data = zlib.decompress(stored)
            text = data.decode("utf-8", "surrogatepass")
        except (OSError, zlib.error, UnicodeDecodeError) as error:
            raise StorageError(NO_TEXT.format(path=made.path), path=made.path) from error
        if hash_of(text) != name:
            raise StorageError(NO_TEXT.format(path=made.path), path=made.path)
        return text

    def prune(self) -> None:
        """Drop the oldest edits beyond the limits, and texts that no line names; never raises."""
        if not os.path.exists(self.path):
            return
        try:
            with self._lock, self._held():
                remove_stale(self.path)
                lines = _whole_lines(read_file(self.path)[0])
                edits = replay(line for line in map(_decoded, lines) if line is not None)
                kept = _newest(edits, self._sizes(), MAX_TEXT_BYTES)
                # First: whoever finds the new file does not wait for the lock on this one.
                self._remove_unnamed({name for edit in kept.values() for name in _names(edit.made)})
                if len(kept) < len(edits):
                    data = b"".join(raw + b"\n" for raw in lines if _belongs(raw, kept))
                    replace_file(self._disk, self.path, data)
        except OSError as error:
            log.warning("The ledger of edits could not be pruned: %s", error)

    def _forget(self) -> None:
        """Drop the oldest edits in memory beyond its limits, and tell that, unless they failed."""
        sizes = {name: len(data) for name, data in self._unkept_texts.items()}
        made = {line.id for _, line in self._unkept if isinstance(line, Made)}
        if len(made) <= MAX_EDITS and sum(sizes.values()) <= MAX_MEMORY_BYTES:
            return
        edits = replay(line for _, line in self._unkept)
        kept = _newest(edits, sizes, MAX_MEMORY_BYTES)
        gone = made - kept.keys()
        self._unkept = [one for one in self._unkept if not gone.issuperset(ids_of(one.line))]
        named = {name for edit in kept.values() for name in _names(edit.made)}
        self._unkept_texts = {n: data for n, data in self._unkept_texts.items() if n in named}
        if any(edit.made.id in gone and edit.state != "failed" for edit in edits):
            self._tell(FORGOTTEN)

    @contextlib.contextmanager
    def _held(self) -> Iterator[Journal]:
        """The file, with its lock; any OSError in the block becomes a StorageError."""
        try:
            make_directories(self._disk, self._texts)
            journal = Journal(self.path, self._disk)
            try:
                if not wait_for(journal.try_lock, LOCK_SECONDS):
                    raise StorageError(BUSY.format(path=str(self.path)), path=str(self.path))
                yield journal
            finally:
                journal.unlock()
                journal.close()
        except StorageError:
            raise
        except OSError as error:
            raise storage_error(self.path, error, "write") from error

    def _store_texts(self, texts: Mapping[str, str]) -> None:
        for name, text in texts.items():
            path = self._texts / name
            if not path.exists():
                replace_file(self._disk, path, zlib.compress(bytes_of(text), _LEVEL))

    def _append(self, journal: Journal, lines: Sequence[Line]) -> None:
        """Put lines behind the last whole one, and wait until they are on the disk."""
        data, _ = read_file(self.path)
        size = data.rfind(b"\n") + 1
        if size < len(data):
            journal.cut(size)
        journal.append(b"".join(map(encode_line, lines)), size)
        sync = journal.sync_later()
        assert sync is not None, "the journal is open"
        try:
            sync()
        except OSError:
            with contextlib.suppress(OSError):
                journal.cut(size)
            raise

    def _stored(self) -> list[Line]:
        """The lines of the file, read again when it is another one."""
        try:
            if signature_at(self.path) == self._read[0]:
                return self._read[1]
            data, signature = read_file(self.path)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise storage_error(self.path, error, "read") from error
        found = [_decoded(raw) for raw in _whole_lines(data)]
        self._read = signature, [line for line in found if line is not None]
        if found.count(None) > self._told_damaged:
            self._told_damaged = found.count(None)
            self._tell(DAMAGED.format(count=found.count(None), path=str(self.path)))
        return self._read[1]

    def _last_stored(self) -> bytes:
        """The last line of the file, empty where none is known."""
        try:
            lines = self._stored()
        except StorageError:
            lines = self._read[1]
        return encode_line(lines[-1]) if lines else b""

    def _sizes(self) -> dict[str, int]:
        """The texts that are there, with the bytes that they take."""
        with os.scandir(self._texts) as entries:
            return {entry.name: entry.stat().st_size for entry in entries}

    def _remove_unnamed(self, named: set[str]) -> None:
        for name in self._sizes():
            if name not in named and (len(name) == _HASH_LENGTH or is_stale(self._texts / name)):
                self._disk.unlink(self._texts / name)


class _Unkept(NamedTuple):
    """A line in memory, and the last one that the file had when it came."""

    after: bytes
    line: Line


def _in_order(stored: list[Line], unkept: Sequence[_Unkept]) -> list[Line]:
    """All lines as they came, wherever they are kept; a place that was pruned is the beginning."""
    if not unkept:
        return stored
    places = {encode_line(line): place for place, line in enumerate(stored, 1)}
    lines, place = list[Line](), 0
    for after, line in unkept:
        start, place = place, max(place, places.get(after, 0))
        lines += [*stored[start:place], line]
    return lines + stored[place:]


def _newest(edits: list[Edit], sizes: dict[str, int], max_bytes: int) -> dict[str, Edit]:
    """The edits to keep, by id: the newest that happened, as far as both limits allow."""
    kept: dict[str, Edit] = {}
    counted: set[str] = set()
    total = 0
    for edit in reversed(edits):
        if edit.state == "failed":
            continue
        new = set(_names(edit.made)) - counted
        total += sum(sizes.get(name, 0) for name in new)
        if len(kept) == MAX_EDITS or total > max_bytes:
            break
        counted |= new
        kept[edit.made.id] = edit
    return kept


def _parts(mark: Became, own: set[str]) -> list[Became]:
    """The mark of the edits that are in memory only, and that of those on the disk."""
    kept = [id for id in mark.ids if id not in own]
    unkept = [id for id in mark.ids if id in own]
    return [msgspec.structs.replace(mark, ids=ids) for ids in (unkept, kept) if ids]


def _names(made: Made) -> list[str]:
    return [name for name in (made.before, made.after) if name is not None]


def _belongs(raw: bytes, kept: Mapping[str, Edit]) -> bool:
    """Whether a line stays: one of an edit that stays, or one that cannot be read."""
    line = _decoded(raw)
    return line is None or not kept.keys().isdisjoint(ids_of(line))


def _whole_lines(data: bytes) -> list[bytes]:
    """The lines of the file; what follows the last line break is a torn write."""
    return data.split(b"\n")[:-1]


def _decoded(raw: bytes) -> Line | None:
    try:
        return decode_line(raw)
    except ValueError:  # msgspec's errors are of this kind
        return None


_HASH_LENGTH = 64
_LEVEL = 3
"""Of zlib: twice as fast as its usual one, and hardly larger."""
