"""Sessions that cannot be stored where they belong when a server ends: kept elsewhere, and told.

Where the store is away (a full disk, a server that is down, a file that another program has locked)
a session goes on in memory. The end of the process would be the end of it.
"""

import contextlib
import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tiro.session.core import Core
from tiro.session.history import time_id
from tiro.stores.disk import claim_file, make_directories
from tiro.stores.manager import SessionManager
from tiro.stores.names import file_stem, with_suffixes
from tiro.stores.reading import SNAPSHOT_ENDING
from tiro.stores.session_files import encode_snapshot
from tiro.tools.silent_disk import WHY, Patience, SilentDiskError

FOLDER = "rescued"
"""Where they are kept, in the config directory."""

WRITE_SECONDS = 0.3
"""How long each disk may take: the whole end of a server has two seconds."""

RESCUED = (
    "The session {id!r} cannot be saved where it belongs. All of it is in {path!r}:"
    " `tiro sessions import` takes it from there"
)
LOST = "The session {id!r} cannot be saved anywhere: {reason}"
WAITING = (
    "Sessions that could not be saved are in {folder!r}: `tiro sessions import` takes them from"
    " there, and then the files can go"
)

log = logging.getLogger(__name__)


class Rescue:
    """What is kept elsewhere of the sessions of one manager."""

    def __init__(self, manager: SessionManager, config_dir: Path) -> None:
        self._manager = manager
        self._folder = config_dir / FOLDER
        self._patience = Patience(WRITE_SECONDS, WRITE_SECONDS)
        self._kept: list[tuple[Core, Path | None, str]] = []

    def write(self) -> None:
        """Keep what holds more than is stored; never raises, and no writer holds it up."""
        live = self._manager.live
        for session in live.said(WRITE_SECONDS) if self._manager.autosave else []:
            id = session.id or time_id(self._manager.now())
            try:
                data = self._encoded(session)
                if data is not None:
                    self._kept.append((session, *self._written(id, data)))
            except Exception as error:  # the others are to be kept, and all is to be closed
                log.warning("The session %r is not kept elsewhere", id, exc_info=True)
                self._kept.append((session, None, LOST.format(id=id, reason=error)))

    def told(self) -> list[str]:
        """What the user should know of it, one sentence each."""
        for _, _, sentence in self._kept:
            log.warning("%s", sentence)
        return [sentence for _, _, sentence in self._kept]

    def drop_stored(self) -> None:
        """Remove what is stored where it belongs by now."""
        for session, path, _ in self._kept:
            if path is not None and not self._manager.live.is_held_back(session):
                with contextlib.suppress(OSError):
                    os.unlink(path)
                    path.parent.rmdir()  # unless others are in it
        self._kept = [one for one in self._kept if self._manager.live.is_held_back(one[0])]

    def _encoded(self, session: Core) -> bytes | None:
        """The snapshot of what holds more than is stored; its writer may wait for a silent disk."""
        manager = self._manager
        if not session.lock.acquire(timeout=WRITE_SECONDS):
            raise TimeoutError(WHY)
        try:
            if manager.live.is_held_back(session):
                return manager.redact(encode_snapshot(session, manager.now()))
            return None
        finally:
            session.lock.release()

    def _written(self, id: str, data: bytes) -> tuple[Path | None, str]:
        reason = ""
        for name, open_folder in self._folders():
            keep = partial(self._claimed, open_folder, id, data)
            try:
                path = self._patience.ask(name, keep)
            except (OSError, SilentDiskError) as error:
                reason = str(error).strip()
            else:
                return path, RESCUED.format(id=id, path=str(path))
        return None, LOST.format(id=id, reason=reason)

    def _folders(self) -> Iterator[tuple[Path | str, Callable[[], Path | str]]]:
        """The one in the config directory; where that takes nothing, a new one of our own."""
        yield self._folder, lambda: self._folder
        yield tempfile.gettempdir(), partial(tempfile.mkdtemp, prefix="tiro-rescued-")

    def _claimed(self, open_folder: Callable[[], Path | str], id: str, data: bytes) -> Path:
        disk, folder = self._manager.disk, Path(open_folder())
        make_directories(disk, folder)
        for name in with_suffixes(id):
            path = folder / (file_stem(name) + SNAPSHOT_ENDING)
            if claim_file(disk, path, data) is not None:
                return path
        raise AssertionError("suffixes never end")


def waiting(config_dir: Path) -> list[str]:
    """What to tell of sessions that an earlier end has left there."""
    folder = config_dir / FOLDER
    with contextlib.suppress(OSError):
        if any(name.endswith(SNAPSHOT_ENDING) for name in os.listdir(folder)):
            return [WAITING.format(folder=str(folder))]
    return []
