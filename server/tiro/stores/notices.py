"""What the user should know about the files of sessions, each thing once."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from tiro.session.core import Core

log = logging.getLogger(__name__)


class Notice(msgspec.Struct, frozen=True):
    """Something about a session's files that its user should know."""

    reason: str
    """`save_failed`, `save_resumed`, `changed_on_disk`, `renamed`; `expired`, `titled`."""
    session: Core
    detail: dict[str, Any]


class Notices:
    """Passes notices on to one listener; a directory's failure and its end are told once each."""

    def __init__(self, listener: Callable[[Notice], None] | None) -> None:
        self._listener = listener
        self._failing: set[Path] = set()
        self._lock = threading.Lock()

    def tell(self, notice: Notice, directory: Path) -> None:
        """Tell it, from any thread; nothing that the listener raises comes back."""
        if notice.reason in ("save_failed", "save_resumed"):
            with self._lock:
                if (notice.reason == "save_failed") == (directory in self._failing):
                    return
                self._failing ^= {directory}
        log.info("%s: %s", notice.reason, notice.detail)
        if self._listener is None:
            return
        try:
            self._listener(notice)
        except Exception:  # a fault of the listener must not undo the change being stored
            log.exception("A notice could not be delivered")
