"""Every file of a sessions directory read: what is damaged, in plain words, and what can be mended.

Nothing is deleted. What a repair replaces is copied to `<name>.bad-<stamp>` first, and what holds
nothing that could be read is renamed so. A session that another process is using stays as it is.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from tiro.errors import SessionFormatError, SessionInUseError, SessionNotFoundError, StorageError
from tiro.session.changes import Add
from tiro.session.core import Core
from tiro.session.json_text import encode
from tiro.session.snapshot import SCHEMA_VERSION
from tiro.stores.blobs import blobs_beside, is_whole
from tiro.stores.disk import Disk, claim_file, copy_aside, is_empty, replace_file, set_aside
from tiro.stores.idle_files import locked
from tiro.stores.journal import Journal, read_journal
from tiro.stores.lock import in_use, wait_for
from tiro.stores.names import file_stem
from tiro.stores.reading import (
    JOURNAL_ENDING,
    SNAPSHOT_ENDING,
    Reading,
    beside,
    read_session,
    storage_error,
)
from tiro.stores.salvage import salvaged, told_of
from tiro.stores.session_files import encode_snapshot

HASH_CHARACTERS = 64


class Finding(msgspec.Struct, frozen=True):
    """One thing that is damaged."""

    path: str
    problem: str
    """What is wrong with it, a sentence."""
    remedy: str | None
    """What a repair does or has done, a sentence; None where nothing can be done."""
    is_repaired: bool = False


class Verified(msgspec.Struct, frozen=True):
    """What a look at everything found."""

    sessions: int
    """How many session files there are."""
    findings: list[Finding]

    def is_sound(self) -> bool:
        """Whether nothing is damaged any more."""
        return all(finding.is_repaired for finding in self.findings)


class Damage(msgspec.Struct, frozen=True):
    """One thing that is damaged, and how it is mended."""

    path: Path | str
    problem: str
    remedy: str | None = None
    mend: Callable[[], str] | None = None
    """Does it, and says what has been done."""


def verify(directory: Path, *, now: datetime) -> Verified:
    """Read every session, journal and large value of a directory.

    Raises StorageError where the directory cannot be read.
    """
    return _looked(directory, _Look(directory, now, Disk()), told)


def repair(directory: Path, *, now: datetime, disk: Disk | None = None) -> Verified:
    """The same, and mend what can be."""
    return _looked(directory, _Look(directory, now, disk or Disk()), mended)


def _looked(directory: Path, look: "_Look", tell: Callable[["Damage"], Finding]) -> Verified:
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        return Verified(0, [])
    except OSError as error:
        raise storage_error(directory, error, "read") from error
    snapshots = [name for name in names if _is_session(name, SNAPSHOT_ENDING)]
    journals = [name for name in names if _is_session(name, JOURNAL_ENDING)]
    findings = [
        tell(damage)
        for damages in (
            *(look.at_session(directory / name) for name in snapshots),
            *(look.at_journal(directory / name) for name in journals),
            look.at_values(),
        )
        for damage in damages
    ]
    return Verified(len(snapshots), findings)


class _Look:
    """One look through a directory."""

    def __init__(self, directory: Path, now: datetime, disk: Disk) -> None:
        self._directory, self._now, self._disk = directory, now, disk
        self._stamp = f"{now.astimezone():%Y%m%d-%H%M%S}"

    def at_session(self, path: Path) -> Iterator[Damage]:
        """What is wrong with a snapshot and its journal."""
        try:
            reading = read_session(path)
        except SessionNotFoundError:
            return  # deleted meanwhile
        except StorageError as error:
            yield Damage(path, str(error))
            return
        except SessionFormatError as error:
            yield self._unreadable(path, error)
            return
        restored = reading.restore(Core())
        if reading.bad:
            yield Damage(
                beside(path, JOURNAL_ENDING),
                f"{counted(reading.bad, 'line')} of the journal cannot be used",
                "all else is put into the session file, and the journal kept aside",
                lambda: self._fold(path),
            )
        if restored.missing:
            yield Damage(
                path,
                f"{counted(restored.missing, 'large value')} to which it refers cannot be read;"
                " the messages hold only how they began",
            )

    def at_journal(self, path: Path) -> Iterator[Damage]:
        """A journal whose session file is gone."""
        snapshot = path.with_name(path.name.removesuffix(JOURNAL_ENDING) + SNAPSHOT_ENDING)
        if os.path.lexists(snapshot):
            return
        try:
            adds = _adds(path.read_bytes())
        except FileNotFoundError:
            return
        except OSError as error:
            yield Damage(path, str(storage_error(path, error, "read")))
            return
        if adds:
            yield Damage(
                path,
                f"its session file is gone; {counted(adds, 'message')} can be read in the journal",
                "a session file is made of them, and the journal kept aside",
                lambda: self._remake(snapshot),
            )

    def at_values(self) -> Iterator[Damage]:
        """Large values that are not what their name says."""
        blobs = blobs_beside(self._directory)
        try:
            names = sorted(os.listdir(blobs))
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            yield Damage(blobs, str(storage_error(blobs, error, "read")))
            return
        for name in names:
            path = blobs / name
            if len(name) == HASH_CHARACTERS and path.is_file() and not is_whole(path):
                yield Damage(
                    path,
                    "this large value is damaged: it is not what was stored",
                    "it is set aside",
                    lambda path=path: self._set_aside(path),  # type: ignore[misc]  # bound here
                )

    def _unreadable(self, path: Path, error: SessionFormatError) -> Damage:
        reason = str(error.data.get("reason", error))
        if error.data.get("is_newer"):
            return Damage(path, reason)
        if is_empty(path) and not beside(path, JOURNAL_ENDING).exists():
            return Damage(path, reason, "it is set aside", lambda: self._set_aside(path))
        return Damage(
            path,
            f"{reason[:1].lower()}{reason[1:]}",
            "what can be read becomes the session file, and the damaged one is kept aside",
            lambda: self._salvage(path),
        )

    def _fold(self, path: Path) -> str:
        """Put what snapshot and journal say into a new snapshot."""
        with locked(self._disk, path) as journal:
            reading = read_session(path)
            if journal is not None and reading.bad:
                copy_aside(self._disk, journal.path, self._stamp)
            return self._write(path, reading, journal)

    def _salvage(self, path: Path) -> str:
        with locked(self._disk, path) as journal:
            found = salvaged(path.read_bytes())
            journaled = b"" if journal is None else journal.path.read_bytes()
            if not found.is_worth_keeping and not _adds(journaled):
                return self._set_aside(path)
            data = found.encoded(_id_of(path, found.fields.get("id"), journaled))
            copy_aside(self._disk, path, self._stamp)
            if journal is not None:
                copy_aside(self._disk, journal.path, self._stamp)
            replace_file(self._disk, path, data)
            return self._write(path, read_session(path), journal, found.lost)

    def _remake(self, path: Path) -> str:
        journal = Journal(beside(path, JOURNAL_ENDING), self._disk)
        try:
            if not wait_for(journal.try_lock):
                raise in_use(None)
            header = read_journal(journal.path.read_bytes(), None).header
            id = header.id if header else None
            copy_aside(self._disk, journal.path, self._stamp)
            empty: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "id": id, "messages": []}
            if claim_file(self._disk, path, encode(empty)) is None:
                raise in_use(None)
            return self._write(path, read_session(path), journal)
        finally:
            journal.close()

    def _write(
        self, path: Path, reading: Reading, journal: Journal | None, lost: Sequence[str] = ()
    ) -> str:
        """Write what was read as the snapshot; large values stay where they lie."""
        core = Core()
        reading.restore_stored(core)
        replace_file(self._disk, path, encode_snapshot(core, self._now))
        if journal is not None:
            journal.cut(0)
        return told_of(core, "`.bad-…`", lost)

    def _set_aside(self, path: Path) -> str:
        return f"it is set aside as {set_aside(self._disk, path, self._stamp).name!r}"


def mended(damage: Damage) -> Finding:
    """Mend it, as far as that can be done, and tell of it."""
    finding = told(damage)
    if damage.mend is None:
        return finding
    try:
        done = damage.mend()
    except (SessionInUseError, StorageError, SessionFormatError, SessionNotFoundError) as error:
        return msgspec.structs.replace(finding, remedy=f"not repaired: {error}")
    except OSError as error:
        reason = storage_error(Path(damage.path), error, "write")
        return msgspec.structs.replace(finding, remedy=f"not repaired: {reason}")
    return msgspec.structs.replace(finding, remedy=done, is_repaired=True)


def told(damage: Damage) -> Finding:
    """Tell of it."""
    return Finding(str(damage.path), damage.problem, damage.remedy)


def _id_of(path: Path, salvaged: Any, journal: bytes) -> str | None:
    """The id of a damaged file's session: what its name or its journal confirms; None: its name."""
    if isinstance(salvaged, str) and path.name == file_stem(salvaged) + SNAPSHOT_ENDING:
        return salvaged
    header = read_journal(journal, None).header
    return header.id if header else None


def _adds(journal: bytes) -> int:
    """How many messages can be read in a journal."""
    return sum(isinstance(change, Add) for _, change in read_journal(journal, None).changes)


def _is_session(name: str, ending: str) -> bool:
    return name.endswith(ending) and not name.startswith(".")


def counted(count: int, noun: str) -> str:
    """So many of these, in words."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
