"""The saved session that somebody asks for, by its path, by its id, or the newest one."""

from pathlib import Path

from tiro.errors import SessionFormatError, SessionNotFoundError, StorageError
from tiro.session.session import Session
from tiro.stores.manager import SessionManager


def read_saved(manager: SessionManager, path: Path | None, id: str | None) -> Session:
    """Read it; the current session stays the current one.

    Raises SessionNotFoundError, and SessionFormatError for whatever else keeps it from being read:
    a folder, a pipe, a missing permission or a damaged file.
    """
    if id is not None:
        return manager.load_id(id)
    file = path or manager.latest()
    if file is None:
        raise SessionNotFoundError("No session has been saved yet", id="latest")
    try:
        return manager.load(file)
    except StorageError as error:
        reason = str(error)
        raise SessionFormatError(reason, path=str(file), reason=reason, recovered=0) from error
