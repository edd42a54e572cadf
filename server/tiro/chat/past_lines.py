"""What was typed in earlier chats: a bounded file of its own, readable for its owner only."""

import contextlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

from tiro.config.directories import state_directory
from tiro.session.secrets import redact
from tiro.stores.disk import Disk, replace_file

MAX_LINES = 1000
MAX_CHARS = 10_000
"""A longer text (a pasted file) is not remembered."""
FILE_NAME = "chat-history.jsonl"


def usual_file() -> Path:
    """The file in the platform's state directory."""
    return state_directory() / FILE_NAME


class PastLines:
    """The lines, oldest first, one JSON string a line so that a text of several lines is one.

    A file that cannot be read or written costs the memory only; nobody is told.
    """

    def __init__(self, path: Path, secrets: Sequence[str] = ()) -> None:
        self._path = path
        self._secrets = secrets

    def load(self) -> list[str]:
        """The newest MAX_LINES lines; a file that has grown long is cut to them."""
        try:
            found = self._path.read_bytes().splitlines()
        except OSError:
            return []
        if len(found) > 2 * MAX_LINES:
            self._replace(found[-MAX_LINES:])
        return [text for line in found[-MAX_LINES:] if (text := _text_of(line)) is not None]

    def add(self, text: str) -> None:
        """Remember a text at once, without the secrets that are configured."""
        if len(text) <= MAX_CHARS:
            line = json.dumps(redact(text, self._secrets)).encode() + b"\n"
            self._append(line)

    def _replace(self, lines: Sequence[bytes]) -> None:
        with contextlib.suppress(OSError):
            replace_file(Disk(), self._path, b"\n".join(lines) + b"\n")

    def _append(self, line: bytes) -> None:
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            how = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            with os.fdopen(os.open(self._path, how, 0o600), "wb") as file:
                file.write(line)


def _text_of(line: bytes) -> str | None:
    with contextlib.suppress(ValueError):
        text = json.loads(line)
        return text if isinstance(text, str) else None
    return None
