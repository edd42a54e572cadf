"""The lock by which several processes use one session in turn: advisory, on its journal (U9.8).

The system drops it when its holder dies, so it is never stale. Who holds it for longer than one
write leaves its process and host in a file beside it, for the message that others show.
"""

import contextlib
import errno
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from tiro.errors import SessionInUseError
from tiro.session.json_text import encode
from tiro.stores.disk import FILE_MODE
from tiro.stores.processes import machine

WAIT_SECONDS = 1.0
"""How long one process waits for another: longer than any write, shorter than any patience."""
_POLL_SECONDS = 0.005
_START = 19
"""Where /proc/<pid>/stat says when a process began, counted from its state on."""


class Holder(msgspec.Struct, frozen=True):
    """Who is answering in a session right now, as far as it said so."""

    pid: int | None = None
    host: str | None = None
    life: str | None = None
    """What tells the process from all others that ever had its number: its machine, its start."""


if sys.platform == "win32":
    import msvcrt

    _FAR = 1 << 40  # a byte no journal reaches, so that the lock never stops a reader

    def try_lock(descriptor: int) -> bool:
        """Take the lock if it is free."""
        try:
            os.lseek(descriptor, _FAR, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EDEADLK):
                return False
            raise
        return True

    def unlock(descriptor: int) -> None:
        """Give the lock back."""
        with contextlib.suppress(OSError):
            os.lseek(descriptor, _FAR, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

    try_lock_shared = try_lock_alone = try_lock

    def directory_lock(path: Path) -> int:
        """An open descriptor that stands for a directory; closing it gives its lock back."""
        return os.open(path / ".lock", os.O_RDWR | os.O_CREAT, FILE_MODE)

else:
    import fcntl

    def try_lock(descriptor: int) -> bool:
        """Take the lock if it is free; costs less than a microsecond."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            # A file system without locks: the signatures of the files still tell who wrote.
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
                raise
        return True

    def try_lock_shared(descriptor: int) -> bool:
        """Take the lock unless somebody has it alone; without locks nobody ever has."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def try_lock_alone(descriptor: int) -> bool:
        """Take the lock if nobody else has it; raises OSError where there are no locks."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def unlock(descriptor: int) -> None:
        """Give the lock back."""
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)

    def directory_lock(path: Path) -> int:
        """An open descriptor that stands for a directory; closing it gives its lock back."""
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY)


def is_locked(path: Path) -> bool:
    """Whether somebody holds the lock of this file right now, or that cannot be known."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        return not try_lock(descriptor)
    except OSError:
        return True
    finally:
        os.close(descriptor)


def never() -> bool:
    """Nobody gives up waiting."""
    return False


def wait_for(
    take: Callable[[], bool],
    seconds: float = WAIT_SECONDS,
    is_given_up: Callable[[], bool] = never,
) -> bool:
    """Try to take a lock until it is free, for so long or until given up; whether it was taken."""
    deadline = time.monotonic() + seconds
    while not take():
        if time.monotonic() >= deadline or is_given_up():
            return False
        time.sleep(_POLL_SECONDS)
    return True


def in_use(holder_path: Path | None) -> SessionInUseError:
    """As `held_by`, by whoever said in this file that it holds the session."""
    return held_by(read_holder(holder_path) if holder_path else Holder())


def held_by(holder: Holder) -> SessionInUseError:
    """The error for a session that another process holds, with that process's number and host."""
    who = f" (process {holder.pid} on {holder.host})" if holder.pid else ""
    return SessionInUseError(
        f"Another process{who} is answering in this session right now; try again when it is done",
        pid=holder.pid,
        host=holder.host,
    )


def this_process() -> Holder:
    """What others are told of this process."""
    return Holder(os.getpid(), socket.gethostname(), _life())


def is_gone(holder: Holder) -> bool:
    """Whether it was a process of this machine that has ended; False where that is not known."""
    here = machine()
    if not holder.pid or holder.life is None or here is None:
        return False
    if not holder.life.startswith(f"{here}/"):
        return False
    stat = _stat(holder.pid)
    if stat is None:
        return not _exists(holder.pid)  # of another user, it may be hidden in /proc
    is_dead = stat[0] in (b"Z", b"X")  # its parent has not asked for its end yet
    return is_dead or holder.life != f"{here}/{stat[_START].decode()}"


def _life() -> str | None:
    here, stat = machine(), _stat(os.getpid())
    return f"{here}/{stat[_START].decode()}" if here and stat else None


def _stat(pid: int) -> list[bytes] | None:
    """What the system says of a process, its state first; None where it says nothing."""
    try:
        data = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = data.rpartition(b")")[2].split()  # in front stands a name that may hold anything
    return fields if len(fields) > _START else None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def write_holder(path: Path) -> None:
    """Say who holds the lock; a failure only costs the others a name."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with contextlib.suppress(OSError):
        descriptor = os.open(path, flags, FILE_MODE)
        try:
            os.write(descriptor, encode(this_process()))
        finally:
            os.close(descriptor)


def read_holder(path: Path) -> Holder:
    """Who said that it holds the lock."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Holder)
    except (OSError, ValueError):
        return Holder()


def remove_holder(path: Path) -> None:
    """Take the name back."""
    with contextlib.suppress(OSError):
        os.unlink(path)
