"""A process of its own that starts one command and ends it, with all that it has started.

It is run by its path with nothing but the standard library; `tools/command.py` talks to it. Its
arguments: the two ends of the pipe that the command writes to and the directory, as file
descriptors; the seconds of grace; the command with its arguments. Stdin is one end of a socket, and
so is all else that it listens to, as nobody can open those through /proc. Lines of JSON go to
stdin: the `group` of the command before it is started, an `error` when it could not be; and when it
has ended, `status` (as Python shows it: below zero it is the signal) and `background`, the
processes that it has left behind.

The socket is the life line too: when its other end closes, however its owner died, everything that
the command has started is told to end, and killed when it does not. Until then background processes
run on. A byte that comes says that nobody else reads the pipe any more: what they print from then
on is dropped, so that no broken pipe ends them.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36
NOT_STARTED = 127
LEAVING_SECONDS = 0.1
"""How long children that are about to end anyway may take after the command."""
POLL_SECONDS = 0.01
GROUP_POLL_SECONDS = 1.0
KILL_SECONDS = 2.0
READ_BYTES = 65536
IS_LINUX = sys.platform == "linux"
"""Only there do orphans come to this process, and only there does /proc tell who they are."""


class Keeper:
    """The command, the life line, and what is left of it."""

    def __init__(self, output: tuple[int, int], directory: int, grace: float, argv: list[str]):
        self._read_end, write_end = output
        self._grace_seconds = grace
        signal.signal(signal.SIGCHLD, lambda *_: None)  # wakes the waits below
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        self._is_told_to_end = False
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._told_to_end)
        self._pid = start(argv, directory, write_end)
        os.close(write_end)
        self._status: int | None = None
        self._has_children = True

    def run(self) -> None:
        """Wait for the command's end, tell it, and stay as long as anything is left."""
        while self._status is None:
            if 0 in select.select([0, self._woken.fileno()], [], [])[0] or self._is_told_to_end:
                self._end_all()
            self._reap()
        self._wait(LEAVING_SECONDS)
        left = sorted(descendants(os.getpid())) or [self._pid] * self._has_children  # or its group
        tell({"status": self._status, "background": left})
        watched = [0, self._woken.fileno()]
        while self._has_children:
            poll = None if IS_LINUX else GROUP_POLL_SECONDS
            ready = select.select(watched, [], [], poll)[0]
            if self._is_told_to_end:
                self._end_all()
                return
            if 0 in ready:
                if not os.read(0, 1):
                    self._end_all()
                    return
                watched.append(self._read_end)
            if self._read_end in ready and not self._drop():
                watched.remove(self._read_end)
            self._reap()

    def _told_to_end(self, number: int, frame: object) -> None:
        """A command may end its own keeper; what it has started ends with it."""
        self._is_told_to_end = True

    def _drop(self) -> bool:
        """Read what was printed; False when nobody can print any more."""
        with contextlib.suppress(BlockingIOError):
            return bool(os.read(self._read_end, READ_BYTES))
        return True

    def _reap(self) -> None:
        """Note every child that has ended."""
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(READ_BYTES)
        try:
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == self._pid:
                    self._status = os.waitstatus_to_exitcode(found[1])
        except ChildProcessError:
            self._has_children = not IS_LINUX and self._group_lives()

    def _group_lives(self) -> bool:
        try:
            os.killpg(self._pid, 0)
        except OSError:
            return False
        return True

    def _wait(self, seconds: float) -> None:
        """Until all children have ended, for so long at most."""
        end = time.monotonic() + seconds
        while self._has_children and time.monotonic() < end:
            time.sleep(POLL_SECONDS)
            self._reap()

    def _end_all(self) -> None:
        self._signal(signal.SIGTERM)
        self._wait(self._grace_seconds)
        end = time.monotonic() + KILL_SECONDS
        while self._has_children and time.monotonic() < end:
            self._signal(signal.SIGKILL)  # again and again: some may just be starting others
            self._wait(POLL_SECONDS)
        if self._status is None:
            self._status = -signal.SIGKILL

    def _signal(self, number: int) -> None:
        """To the command's group, once, and to whatever has left it."""
        is_group = self._status is None or not IS_LINUX
        if is_group:
            with contextlib.suppress(OSError):
                os.killpg(self._pid, number)
        for pid in descendants(os.getpid()):
            with contextlib.suppress(OSError):
                if not is_group or os.getpgid(pid) != self._pid:
                    os.kill(pid, number)


def main() -> None:
    """Keep one command."""
    read_end, write_end, directory = map(int, sys.argv[1:4])
    for descriptor in (read_end, write_end, directory):
        os.set_inheritable(descriptor, False)  # they are not for the command
    if IS_LINUX:
        prctl = ctypes.CDLL(None).prctl
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        prctl(PR_SET_DUMPABLE, 0)  # its descriptors are not for the command
    try:
        keeper = Keeper((read_end, write_end), directory, float(sys.argv[4]), sys.argv[5:])
    except OSError as error:
        tell({"error": error.strerror or type(error).__name__})
        return
    os.close(directory)
    keeper.run()


def start(argv: list[str], directory: int, output: int) -> int:
    """Start the command in a session of its own; its process id, which is that of its group too.

    Raises OSError, also for what fails in the new process before the program runs.
    """
    failed, fails = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            failed.close()
            fails.recv(1)  # who it is has been told by then, whatever it does to this process
            become(argv, directory, output)
        except OSError as error:
            fails.send(str(error.errno or 0).encode())
        finally:
            os._exit(NOT_STARTED)
    fails.close()
    tell({"group": pid})
    with failed:
        failed.send(b"\0")
        number = failed.recv(READ_BYTES)
    if number:
        raise OSError(int(number), os.strerror(int(number)))
    return pid


def become(argv: list[str], directory: int, output: int) -> None:
    """Turn this new process into the command."""
    os.setsid()
    if IS_LINUX:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.fchdir(directory)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, programs rely on them
        signal.signal(number, signal.SIG_DFL)
    os.execv(argv[0], argv)


def descendants(pid: int) -> Iterator[int]:
    """The processes below one; none where /proc does not tell."""
    with contextlib.suppress(OSError, ValueError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb") as children:
                for child in map(int, children.read().split()):
                    yield child
                    yield from descendants(child)


def tell(answer: dict[str, Any]) -> None:
    """Say it in one line; nobody may be there to hear it."""
    with contextlib.suppress(OSError):
        os.write(0, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main()
