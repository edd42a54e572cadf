"""A large file while it is being brought: beside its place, then checked and put there at once."""

import asyncio
import contextlib
import errno
import hashlib
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Protocol

from msgspec import Struct

from tiro.errors import ModelError, StorageError
from tiro.models.model import Progress
from tiro.models.weights import make_directories

CHUNK_BYTES = 1024 * 1024
UNMEASURED_STEP_BYTES = 10 * CHUNK_BYTES
BETWEEN_SECONDS = 0.5
GGUF_MAGIC = b"GGUF"

OnProgress = Callable[[Progress], None]


class Reader(Protocol):
    """Something to copy from."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes, none at the end."""
        ...


class Expected(Struct, frozen=True):
    """What a file must be; None is unknown."""

    bytes: int | None = None
    sha256: str | None = None


class Brought(Struct, frozen=True):
    """What a file is."""

    bytes: int
    sha256: str


class PartFile:
    """The incomplete file, and what its server called that version of it."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.path = target.with_name(f".{target.name}.part")
        self._version = target.with_name(f".{target.name}.version")
        self._lock = target.with_name(f".{target.name}.lock")

    @property
    def size(self) -> int:
        """How much is there."""
        return self.path.stat().st_size if self.path.exists() else 0

    @property
    def version(self) -> str:
        """The ETag it came with; empty when there was none."""
        return self._version.read_text() if self._version.exists() else ""

    def begin(self, version: str = "") -> None:
        """Forget what is there and begin anew."""
        self.path.write_bytes(b"")
        self._version.write_text(version)

    def drop(self) -> None:
        """Take it away."""
        self.path.unlink(missing_ok=True)
        self._version.unlink(missing_ok=True)

    async def copy_from(self, reader: Reader, size: int | None, on_progress: OnProgress) -> None:
        """Fill it, or leave nothing; reading and writing wait in threads."""
        self.begin()
        done, meter = 0, Meter("Copying", on_progress)
        try:
            with self.path.open("ab") as file:
                while chunk := await asyncio.to_thread(reader.read, CHUNK_BYTES):
                    await asyncio.to_thread(file.write, chunk)
                    done += len(chunk)
                    meter.tell(done, size)
        except BaseException:
            self.drop()
            raise

    def check_room(self, missing_bytes: int) -> None:
        """Say at once when the disk is too full, instead of after half an hour."""
        free = shutil.disk_usage(self.target.parent).free
        if missing_bytes > free:
            raise StorageError(
                f"The disk is too full: {megabytes(missing_bytes)} are needed and "
                f"{megabytes(free)} are free in {str(self.target.parent)!r}",
                path=str(self.target),
                errno="ENOSPC",
            )

    def put_in_place(self, expected: Expected, source: str) -> Brought:
        """Check it and put it in its place; what is wrong is taken away."""
        with self.path.open("rb+") as file:
            magic = file.read(len(GGUF_MAGIC))
            file.seek(0)
            brought = Brought(self.size, hashlib.file_digest(file, "sha256").hexdigest())
            os.fsync(file.fileno())
        if reason := _mismatch(brought, magic, expected):
            self.drop()
            raise failure(f"What {source!r} gave is not the model: {reason}, nothing was kept")
        self.path.replace(self.target)
        self._version.unlink(missing_ok=True)
        return brought

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """One process at a time brings this file; what the disk refuses is a StorageError."""
        with self._disk_errors():
            make_directories(self.target.parent)
            with self._lock.open("ab") as lock:
                if not _lock(lock):
                    raise failure(f"Another process is bringing {self.target.stem!r} right now")
                yield

    @contextlib.contextmanager
    def _disk_errors(self) -> Iterator[None]:
        try:
            yield
        except StorageError:
            raise
        except OSError as error:
            name = errno.errorcode.get(error.errno or 0, "EIO")
            if name in ("ENOSPC", "EDQUOT"):
                with contextlib.suppress(OSError):
                    self.drop()  # half a model must not keep the disk full
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise StorageError(
                f"The model cannot be kept in {str(self.target.parent)!r}: {reason}",
                path=str(self.target),
                errno=name,
            ) from error


def failure(sentence: str, *, status: int | None = None, retryable: bool = False) -> ModelError:
    """A model that could not be brought."""
    return ModelError(
        sentence,
        provider="local",
        status=status,
        retryable=retryable,
        retry_after_seconds=None,
        body=None,
    )


def unreachable(what: str) -> ModelError:
    """Nobody answers where a model should come from."""
    return failure(
        f"{what} cannot be reached, is there a network? Try again with one (and the proxy it"
        " needs), or give a GGUF file of your own: tiro local pull PATH"
    )


class Meter:
    """Tells how far something is: by hundredths, no oftener than twice a second, and its end."""

    def __init__(
        self,
        doing: str,
        on_progress: OnProgress,
        monotonic_seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._doing = doing
        self._on_progress = on_progress
        self._monotonic_seconds = monotonic_seconds
        self._told_step = -1
        self._told_at = -math.inf

    def tell(self, done: int, total: int | None) -> None:
        """So much is done; most calls say nothing new."""
        step = 100 * done // total if total else done // UNMEASURED_STEP_BYTES
        now = self._monotonic_seconds()
        is_soon = now - self._told_at < BETWEEN_SECONDS and done != total
        if step == self._told_step or is_soon:
            return
        self._told_step, self._told_at = step, now
        of_total = f" of {megabytes(total)}" if total else ""
        fraction = min(1.0, done / total) if total else None
        self._on_progress(Progress(f"{self._doing}, {megabytes(done)}{of_total}", fraction))


def megabytes(size: int) -> str:
    """A size for people."""
    return f"{size / 1_000_000:,.1f} MB"


def _mismatch(brought: Brought, magic: bytes, expected: Expected) -> str:
    """What is wrong with a file, or nothing."""
    if expected.bytes not in (None, brought.bytes):
        return f"it has {brought.bytes:,} bytes instead of {expected.bytes:,}"
    if expected.sha256 not in (None, brought.sha256):
        return "its SHA-256 is another"
    return "" if magic == GGUF_MAGIC else "it is no GGUF file"


if sys.platform == "win32":

    def _lock(file: IO[bytes]) -> bool:
        """Windows goes without."""
        return True

else:
    import fcntl

    def _lock(file: IO[bytes]) -> bool:
        """Take the lock of an open file; it ends with the file."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
