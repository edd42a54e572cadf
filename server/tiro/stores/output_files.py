"""Outputs that are too long to be held: on the disk while they come, a part in each file.

The files lie among the other large values (see `blobs`), and a message refers to them by a mark.
From the first file until its session's turn has ended, nobody removes what nothing refers to.
"""

import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from tiro.session.json_text import clean
from tiro.session.large import Part
from tiro.session.redact import Redactor
from tiro.session.secrets import Pieces
from tiro.stores.blobs import Keys, blobs_beside, read_blob
from tiro.stores.disk import Disk, make_directories, replace_file
from tiro.stores.lock import directory_lock, try_lock_shared, wait_for

PART_CHARS = 1 << 20
MAX_TURN_BYTES = 256_000_000
"""With so much from one turn, no further output of it is kept; its result tells what is lost."""


class Owner(Keys, Protocol):
    """What is asked of a session's manager."""

    disk: Disk
    autosave: bool


class OutputFiles:
    """Those of one live session; for any thread."""

    def __init__(self, directory: Callable[[], Path], owner: Owner) -> None:
        self._directory, self._owner = directory, owner
        self._lock = threading.Lock()
        self._held: int | None = None
        self._written = 0

    @property
    def path(self) -> Path:
        """The folder in which they lie."""
        return blobs_beside(self._directory())

    def keeper(self) -> "OutputWriter | None":
        """Keeps one more output; None where nothing is stored unasked, or enough is by now."""
        if not self._owner.autosave or self._written >= MAX_TURN_BYTES:
            return None
        return OutputWriter(self, Redactor(self._owner.secrets).spelled)

    def read(self, part: Part) -> str | None:
        """The text of a part; None where it is not whole."""
        return read_blob(self.path.parent / part.blob)

    def are_there(self, parts: list[Part]) -> bool:
        """Whether no part is missing."""
        return all((self.path.parent / part.blob).is_file() for part in parts)

    def write(self, data: bytes) -> str:
        """Put a part on the disk; its hash. Raises OSError."""
        self._share_lock()
        name = hashlib.sha256(data).hexdigest()
        self._written += len(data)
        replace_file(self._owner.disk, self.path / name, data)
        return name

    def close(self) -> None:
        """Let others remove what nothing refers to; what is written is referred to by now."""
        with self._lock:
            held, self._held, self._written = self._held, None, 0
        if held is not None:
            os.close(held)

    def _share_lock(self) -> None:
        with self._lock:
            if self._held is not None:
                return
            make_directories(self._owner.disk, self.path)
            held = directory_lock(self.path)
            if not wait_for(lambda: try_lock_shared(held)):
                os.close(held)
                raise TimeoutError(f"{self.path} is in use")
            self._held = held


class OutputWriter:
    """Keeps one output, without the keys that are configured; see `tools/long_output.py`."""

    def __init__(self, files: OutputFiles, secrets: list[str]) -> None:
        self._files = files
        self._pieces = Pieces(secrets)
        self._text = ""
        self._parts: list[dict[str, Any]] = []

    def add(self, text: str) -> None:
        """Keep the next piece; raises OSError."""
        self._text += clean(self._pieces.add(text))
        while len(self._text) >= PART_CHARS:
            self._write(self._text[:PART_CHARS])
            self._text = self._text[PART_CHARS:]

    def end(self) -> list[dict[str, Any]]:
        """Keep the last of it; the mark that refers to all of it. Raises OSError."""
        self._text += clean(self._pieces.rest())
        if self._text:
            self._write(self._text)
        return self._parts

    def _write(self, text: str) -> None:
        self._parts.append(
            {"blob": f"blobs/{self._files.write(text.encode())}", "chars": len(text)}
        )
