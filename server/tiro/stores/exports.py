"""Exports as files: written so that nothing else is lost for one, read within bounds."""

import itertools
import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from tiro.errors import SessionFormatError, SessionNotFoundError, StorageError
from tiro.session.core import Core
from tiro.session.history import time_id
from tiro.session.json_text import decode, encode
from tiro.session.messages import Message
from tiro.session.snapshot import FIELDS, LISTS, StoredSession, read_snapshot
from tiro.session.times import from_rfc3339, rfc3339
from tiro.stores.blobs import blobs_beside
from tiro.stores.disk import make_directories, read_file, real_path, replace_file, signature_at
from tiro.stores.formats import registry
from tiro.stores.formats.format import Format, Imported, refused
from tiro.stores.idle_files import occupied
from tiro.stores.index import SavedSession
from tiro.stores.manager import SessionManager
from tiro.stores.reading import (
    JOURNAL_ENDING,
    SNAPSHOT_ENDING,
    beside,
    read_session,
    storage_error,
)

MAX_IMPORT_BYTES = 256_000_000
MOST_TWINS = 20


def stored_form(manager: SessionManager, id: str | None = None) -> dict[str, Any]:
    """The fields of a session's file as they would be written now, plain and in full.

    The current session's, or those of the one with this id. No string in them holds a configured
    key (U9.11): a format may escape what it likes. Raises as `SessionManager.load_id`.
    """
    session: Core | None = manager.current
    if id is None:
        session = manager.get()
    elif session is None or session.id != id:
        session = manager.read(id)
    with session.lock:
        fields = session.snapshot()
        lists = {name: fields.pop(name) for name in LISTS}
        stamp = f"{manager.now().astimezone():%Y-%m-%dT%H:%M:%S%z}"
        data = encode({**fields, "timestamp": stamp, **lists})
    plain: dict[str, Any] = decode(manager.redact(data))
    return plain


def write_export(manager: SessionManager, path: Path, id: str | None, text: str) -> Path:
    """Write an export of the session `id`; missing directories are made, for the owner only.

    It replaces nothing but an empty file or an earlier export of the same session, and never a
    file in which a session lives. Raises StorageError with `path` and `errno`; returns the path.
    """
    path = real_path(path)
    try:
        make_directories(manager.disk, path.parent)
        if not _may_be_replaced(manager, path, id):
            raise occupied(path)
        replace_file(manager.disk, path, text.encode())
    except StorageError:
        raise
    except OSError as error:
        raise storage_error(path, error, "write") from error
    return path


def read_import(path: Path, format: Format | None) -> Imported:
    """Read a session from a file, in this format or the one that its content has.

    With a session's own file go its journal and its large values beside it. Raises
    SessionNotFoundError without such a file, SessionFormatError for all that keeps it from being
    read; it stays as it is.
    """
    try:
        text = _read_text(path)
        chosen = format or registry.recognised(text)
        imported = chosen.loads(text)
        imported.format = chosen.name
        if chosen.name == "json" and _has_company(path):
            core = Core()
            read_session(path).restore(core)
            imported.stored = read_snapshot(encode(core.snapshot()))
        return imported
    except SessionFormatError as error:
        raise _unreadable(path, error.data["reason"], error.data["recovered"]) from error
    except StorageError as error:
        raise _unreadable(path, str(error)) from error


def date(stored: StoredSession, path: Path | None) -> None:
    """Give a session without an id that of its own time, so that it is the same at each import.

    Where it says none, that of its file is taken.
    """
    texts = [stored.fields["created_at"], stored.timestamp]
    texts += [message.timestamp for message in (*stored.archive, *stored.messages)]
    found = next((time for text in texts if (time := from_rfc3339(text)) is not None), None)
    if found is None and path is not None:
        with suppress(OSError):
            found = datetime.fromtimestamp(path.stat().st_mtime).astimezone()
    if found is not None:
        stored.fields["created_at"] = stored.fields["created_at"] or rfc3339(found)
        stored.fields["id"] = stored.fields["id"] or time_id(found)


class Twin(NamedTuple):
    """A saved session with the same messages as one that is imported."""

    id: str
    path: str
    holds_all: bool
    """Whether the other one has no memo, summary or state that this one lacks."""


class Twins:
    """The saved sessions as they are now, to find those with the same messages as others."""

    def __init__(self, manager: SessionManager) -> None:
        self._manager, self._rows = manager, list[SavedSession]()
        with suppress(StorageError):
            self._rows, _ = manager.list(limit=None)

    def of(self, stored: StoredSession) -> Twin | None:
        """The twin of this one; None where none is found, or where nothing is said in it.

        Of those with as many messages that with its id is looked at, and the newest `MOST_TWINS`.
        """
        said, id = _said([*stored.archive, *stored.messages]), stored.fields["id"]
        alike = [row for row in self._rows if row.error is None and said]
        alike = [row for row in alike if row.messages + row.archived == len(said)]
        alike.sort(key=lambda row: row.id != id)
        for row in itertools.islice(alike, MOST_TWINS):
            with suppress(SessionFormatError, SessionNotFoundError, StorageError):
                core, _ = self._manager.look_at(row.path)
                if _said([*core.archive_rows, *core.oldest_first()]) == said:
                    return Twin(row.id, row.path, _holds_all(core, stored))
        return None


def _holds_all(core: Core, stored: StoredSession) -> bool:
    fields, own = stored.fields, core.snapshot()
    names = ("memo", "summary", "state")
    return all(fields[name] in (FIELDS[name][1], own[name]) for name in names)


def _said(messages: Iterable[Message]) -> list[tuple[str, Any]]:
    """Who said what, without what was taken back."""
    rows = (m for m in messages if not m.marks().get("taken_back"))
    return [(message.role, message.content) for message in rows]


def _read_text(path: Path) -> str:
    try:
        found = signature_at(path)
        if found is not None and found.size > MAX_IMPORT_BYTES:
            raise refused(f"It is larger than {MAX_IMPORT_BYTES // 1_000_000} MB")
        return read_file(path)[0].decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SessionNotFoundError(f"There is no file {str(path)!r}", path=str(path)) from error
    except OSError as error:
        raise refused(error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise refused("It is not valid UTF-8") from error


def _may_be_replaced(manager: SessionManager, path: Path, id: str | None) -> bool:
    """Whether there is nothing, nothing in it, or an earlier export where no session lives."""
    if path.parent == manager.directory and path.name.endswith(SNAPSHOT_ENDING):
        return False
    if not os.path.lexists(path):
        return True
    data, signature = read_file(path)
    if signature.size == 0:
        return True
    live = manager.path_of(manager.current) if manager.current else None
    if path == live or os.path.lexists(beside(path, JOURNAL_ENDING)):
        return False
    return registry.earlier_id(data.decode("utf-8", "replace")) == (id or "")


def _has_company(path: Path) -> bool:
    """Whether something lies beside a file that can belong to its session."""
    return any(map(os.path.lexists, (beside(path, JOURNAL_ENDING), blobs_beside(path.parent))))


def _unreadable(path: Path, reason: str, recovered: int = 0) -> SessionFormatError:
    return SessionFormatError(
        f"{str(path)!r} cannot be read as a session: {reason}",
        path=str(path),
        reason=reason,
        recovered=recovered,
    )
