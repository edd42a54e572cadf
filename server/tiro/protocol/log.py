"""The log of the process: to stderr or into one file, without secrets, and never a prompt.

Law: what is logged is about messages, never a message. pygls logs whole ones at INFO, so it and
other libraries are heard from WARNING on, whatever the level; of them only httpx, which names the
address of each request, follows it. A log that cannot be written disturbs nobody.
"""

import contextlib
import logging
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from tiro.config.directories import state_directory
from tiro.config.settings import LogSettings
from tiro.errors import StorageError
from tiro.session.redact import redact_shapes
from tiro.session.secrets import redact
from tiro.stores.disk import Disk, make_directories

MAX_FILE_BYTES = 1_000_000
"""A larger file becomes `<name>.1`, in the place of the one before it."""

FORMAT = "%(asctime)s.%(msecs)03d %(levelname)s %(name)s[%(process)d]: %(message)s"
TIME_FORMAT = "%Y-%m-%dT%H:%M:%S"
OURS = ("tiro", "httpx")
"""The loggers that follow the level."""


class ProcessLog:
    """The one handler of a process; it goes to stderr until `follow` says otherwise."""

    def __init__(self, *, max_file_bytes: int = MAX_FILE_BYTES) -> None:
        self._secrets: set[str] = set()
        self._max_file_bytes = max_file_bytes
        self._settings: LogSettings | None = None
        self._problems: list[str] = []
        self._handler: logging.Handler | None = None

    def keep_out(self, secrets: Iterable[str]) -> None:
        """Let none of these values into the log from now on; may be called from any thread."""
        self._secrets = self._secrets.union(secrets)

    def follow(self, settings: LogSettings) -> list[str]:
        """Log as these say; what is wrong with them, one sentence each."""
        if settings == self._settings:
            return self._problems
        self._settings, self._problems = settings, []
        handler: logging.Handler = logging.StreamHandler(sys.stderr)
        if settings.file:
            try:
                handler = _LogFile(path_of(settings.file), self._max_file_bytes)
            except StorageError as error:
                self._problems = [f"{error}; stderr is used"]
        handler.setFormatter(_Formatter(lambda: self._secrets))
        self._replace(handler)
        for name in OURS:
            logging.getLogger(name).setLevel(settings.level.upper())
        return self._problems

    def close(self) -> None:
        """Give the file back."""
        self._replace(None)

    def _replace(self, handler: logging.Handler | None) -> None:
        root, before = logging.getLogger(), self._handler
        self._handler = handler
        if handler is not None:
            root.addHandler(handler)
        if before is not None:
            root.removeHandler(before)
            before.close()


def path_of(file: str) -> Path:
    """Where a configured file is: a relative one lies in the platform's directory for state."""
    return state_directory() / os.path.expanduser(file)


class _Formatter(logging.Formatter):
    """A line of the log, tracebacks included, without secrets."""

    def __init__(self, secrets: Callable[[], Iterable[str]]) -> None:
        super().__init__(FORMAT, TIME_FORMAT)
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        return redact_shapes(redact(super().format(record), self._secrets()))


class _LogFile(logging.Handler):
    """Appends to a file that several processes may share; each notices when another moved it."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        """Open or make the file; StorageError when that cannot be done."""
        super().__init__()
        self._path, self._max_bytes = path, max_bytes
        self._writing = threading.Lock()
        try:
            make_directories(Disk(), path.parent)
            self._fd: int | None = _opened(path)
        except OSError as error:
            why = error.strerror or str(error)
            raise StorageError(f"The log {str(path)!r} cannot be written: {why}") from error

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line; an error of the disk loses this line and nothing else."""
        with contextlib.suppress(Exception), self._writing:
            self._write((self.format(record) + "\n").encode("utf-8", "replace"))

    def close(self) -> None:
        """Give the file back."""
        with self._writing:
            self._let_go()
        super().close()

    def _write(self, line: bytes) -> None:
        fd = self._fd
        if fd is None or not self._is_current(fd):
            fd = self._reopened()
        if os.fstat(fd).st_size + len(line) > self._max_bytes:
            with contextlib.suppress(OSError):  # Windows moves no file that somebody has open
                os.replace(self._path, f"{self._path}.1")
            fd = self._reopened()
        os.write(fd, line)

    def _is_current(self, fd: int) -> bool:
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(fd))
        except FileNotFoundError:
            return False

    def _reopened(self) -> int:
        self._let_go()
        self._fd = fd = _opened(self._path)
        return fd

    def _let_go(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


def _opened(path: Path) -> int:
    """The file for appending, for its owner only; raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    fd = os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0), 0o600)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is no regular file")
        if stat.S_IMODE(status.st_mode) & 0o077 and hasattr(os, "fchmod"):
            os.fchmod(fd, 0o600)
    except OSError:
        os.close(fd)
        raise
    return fd
