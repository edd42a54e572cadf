"""`tiro` with one call to the system that fails, at one place: `python -m tests.faults.hook serve`.

With `-m MODULE` it is that program in the place of `tiro`.

TIRO_FAULT names place, operation and fault as JSON; it holds until the file `healed` is there.
TIRO_PLACES names a file into which each place and operation is written as it is met, and `hit` as
the fault happens. A place is the call in the innermost frame of the package that is no helper.
"""

import builtins
import errno
import fcntl
import io
import json
import os
import runpy
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import tiro
from tiro.cli import main

HELPERS = ("stores/disk.py", "tools/opening.py", "tools/silent_disk.py")
"""What others do their work on files with: the place is theirs."""
FAULT = json.loads(os.environ.get("TIRO_FAULT", "null"))
PLACES = os.environ.get("TIRO_PLACES")
NETWORK = ("models/transport.py", 0, 0)
"""The place of what goes over a socket."""
PACKAGE = os.path.dirname(tiro.__file__) + os.sep
BY_SYSTEM = (
    "open", "write", "fsync", "fdatasync", "ftruncate", "replace", "rename", "link", "unlink",
    "remove", "mkdir", "rmdir", "stat", "lstat", "fstat", "scandir", "listdir", "readlink",
    "chmod", "fchmod", "utime", "pipe", "dup", "dup2", "getxattr", "setxattr", "listxattr",
    "statvfs", "read",
)  # fmt: skip

real_open, real_write, real_stat = os.open, os.write, os.stat
met = set[tuple[Any, ...]]()


def check(
    operation: str,
    fail: Callable[[int], Exception] | None = None,
    at: tuple[str, int, int] | None = None,
    path: Any = None,
) -> None:
    """Write down who asks for an operation; raise where this one has to fail."""
    if not (FAULT or PLACES):
        return
    place = at or place_of(sys._getframe(2))
    if place is None:
        return
    if (place, operation) not in met:
        met.add((place, operation))
        note([*place, operation])
    if FAULT and (*place, operation) == (*FAULT["place"], FAULT["operation"]) and not is_healed():
        note(["hit"])
        if FAULT["fault"] == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if FAULT["fault"] == "short":
            raise ShortError
        code = getattr(errno, FAULT["fault"])
        if fail:
            raise fail(code)
        raise OSError(code, os.strerror(code), *([os.fspath(path)] if path else []))


class ShortError(Exception):
    """A write is to take half of what it was given."""


def is_healed() -> bool:
    try:
        real_stat(FAULT["healed"])
    except OSError:
        return False
    return True


def note(what: list[Any]) -> None:
    if PLACES:
        into = real_open(PLACES, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        real_write(into, json.dumps(what).encode() + b"\n")
        os.close(into)


def place_of(frame: Any) -> tuple[str, int, int] | None:
    """File, last line and last column of the call; a helper's only where nobody else asked."""
    helper = None
    while frame is not None:
        if frame.f_code.co_filename.startswith(PACKAGE):
            file = frame.f_code.co_filename.removeprefix(PACKAGE)
            spans = list(frame.f_code.co_positions())
            _, line, _, column = spans[frame.f_lasti // 2]
            if file not in HELPERS:
                return (file, line or 0, column or 0)
            helper = helper or (file, line or 0, column or 0)
        frame = frame.f_back
    return helper


def watched(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    def asked(*given: Any, **named: Any) -> Any:
        try:
            named_path = given[0] if given and isinstance(given[0], str | os.PathLike) else None
            check(name, path=named_path)
        except ShortError:
            return call(given[0], memoryview(given[1])[: max(1, len(given[1]) // 2)])
        return call(*given, **named)

    return asked


class Raw(io.FileIO):
    """An open file whose reads and writes can fail."""

    def read(self, *given: Any) -> Any:
        check("read")
        return super().read(*given)

    def readall(self) -> Any:
        check("read")
        return super().readall()

    def readinto(self, buffer: Any) -> Any:
        check("read")
        return super().readinto(buffer)

    def write(self, data: Any) -> Any:
        try:
            check("write")
        except ShortError:
            return super().write(memoryview(data)[: max(1, len(data) // 2)])
        return super().write(data)

    def truncate(self, *given: Any) -> Any:
        check("ftruncate")
        return super().truncate(*given)


def opened(
    file: Any,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Any = None,
) -> Any:
    """As `open`, over a `Raw`."""
    if not isinstance(file, int):
        check("open", path=file)
    raw = Raw(file, mode.replace("b", "").replace("t", ""), closefd, opener)
    if buffering == 0:
        return raw
    buffer: Any
    if "+" in mode:
        buffer = io.BufferedRandom(raw)
    else:
        buffer = io.BufferedReader(raw) if "r" in mode else io.BufferedWriter(raw)
    if "b" in mode:
        return buffer
    text = io.TextIOWrapper(buffer, encoding, errors, newline, buffering == 1)
    text.mode = mode  # type: ignore[misc]
    return text


CODES = {
    "ENOSPC": sqlite3.SQLITE_FULL, "EACCES": sqlite3.SQLITE_CANTOPEN,
    "EMFILE": sqlite3.SQLITE_CANTOPEN, "EROFS": sqlite3.SQLITE_READONLY,
    "EBUSY": sqlite3.SQLITE_BUSY,
}  # fmt: skip
WORDS = {
    sqlite3.SQLITE_FULL: "database or disk is full",
    sqlite3.SQLITE_CANTOPEN: "unable to open database file",
    sqlite3.SQLITE_READONLY: "attempt to write a readonly database",
    sqlite3.SQLITE_BUSY: "database is locked",
    sqlite3.SQLITE_IOERR: "disk I/O error",
}


def as_sqlite(code: int) -> Exception:
    """The same fault as SQLite tells it."""
    number = CODES.get(errno.errorcode[code], sqlite3.SQLITE_IOERR)
    error = sqlite3.OperationalError(WORDS[number])
    error.sqlite_errorcode = number
    return error


class Connection(sqlite3.Connection):
    """A database whose statements can fail."""

    def execute(self, *given: Any) -> Any:
        check("execute", as_sqlite)
        return super().execute(*given)


connect, start = sqlite3.connect, subprocess.Popen._execute_child  # type: ignore[attr-defined]


def connected(*given: Any, **named: Any) -> Any:
    """As `sqlite3.connect`."""
    check("connect", as_sqlite)
    return connect(*given, factory=Connection, **named)


def started(self: Any, *given: Any) -> Any:
    """As a process is started."""
    check("start")
    return start(self, *given)


def on_network(name: str) -> Callable[..., Any]:
    """A method of sockets, for those to other machines; nobody of ours stands in its frames."""
    call = getattr(socket.socket, name)

    def asked(self: Any, *given: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            check(name, at=NETWORK)
        return call(self, *given)

    return asked


def install() -> None:
    """Put what can fail in the place of the system's own, wherever a name stands for it."""
    changed = dict[Any, Any]()
    for name in BY_SYSTEM:
        call = getattr(os, name)
        changed[call] = watched(name, call)
        for known in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
            if call in known:
                known.add(changed[call])
    changed[fcntl.flock] = watched("flock", fcntl.flock)
    changed[socket.socketpair] = watched("socketpair", socket.socketpair)
    changed[open] = opened
    changed[connect] = connected
    ours = [module for name, module in sys.modules.items() if name.split(".")[0] == "tiro"]
    for module in (os, io, builtins, fcntl, socket, sqlite3, *ours):
        for name, value in list(vars(module).items()):
            if isinstance(value, Callable) and value in changed:  # type: ignore[arg-type]
                setattr(module, name, changed[value])
    subprocess.Popen._execute_child = started  # type: ignore[attr-defined]
    for name in ("connect", "recv", "send"):
        setattr(socket.socket, name, on_network(name))


if __name__ == "__main__":
    install()
    if sys.argv[1:2] == ["-m"]:
        sys.argv = sys.argv[2:]
        runpy.run_module(sys.argv[0], run_name="__main__")
    sys.exit(main())
