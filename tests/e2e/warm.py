"""Commands as forks of one warm process, for the many tests that start one more of them.

A `tiro serve` spends most of its start importing. Here one process imports every module of `tiro`
once and forks a command for each order: with descriptors, environment, working directory and umask
of its own, and from there through the same `main` as the console script (or another module, where
the words are those of `python -m`). The fork becomes a child
of the test process, so it is waited for, killed and looked at like any other; the server that a
command starts is a child of the command, forked too. Linux only; elsewhere (and wherever a test
says so) real processes are started instead.
"""

import asyncio
import ctypes
import gc
import importlib
import importlib.util
import io
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
IMPORTED_LATER = ("anyio._backends._asyncio", "anyio._core._synchronization", "httpcore", "yaml")
"""What a server imports when it is first needed: more than a third of what a fork would cost."""

POLL_SECONDS = 0.002


class Forked:
    """One forked command, with the part of `subprocess.Popen` that the driver uses."""

    def __init__(self, pid: int, stdin: int = -1, stdout: int = -1) -> None:
        self.pid = pid
        if stdin >= 0:
            self.stdin = os.fdopen(stdin, "wb", buffering=0)
            self.stdout = os.fdopen(stdout, "rb", buffering=0)
        self.returncode: int | None = None
        self._waiting = threading.Lock()

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        with self._waiting:
            if self.returncode is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and give the exit code."""
        until = time.monotonic() + (60 if timeout is None else timeout)
        while (code := self.poll()) is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired("tiro (forked)", timeout or 60)
            time.sleep(POLL_SECONDS)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


class WarmProcess:
    """The process that has imported everything and forks on order."""

    def __init__(self, path: str) -> None:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            env={**os.environ, "PYTHONPATH": path},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()

    def fork(
        self,
        env: Mapping[str, str],
        cwd: Path,
        stderr: int,
        umask: int = -1,
        words: Sequence[str] = ("serve",),
        stdout: int = -1,
    ) -> Forked:
        """Fork a command with pipes of its own, or with this as its stdout."""
        their_stdin, stdin = os.pipe()
        ours, their_stdout = os.pipe()
        target = their_stdout if stdout < 0 else stdout
        pid = self.begin(words, env, cwd, (their_stdin, target, stderr), umask)
        os.close(their_stdin)
        os.close(their_stdout)
        return Forked(pid, stdin, ours)

    def begin(
        self,
        words: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        descriptors: tuple[int, int, int],
        umask: int = -1,
    ) -> int:
        """Fork a command with these as stdin, stdout and stderr; its process id."""
        order = {"words": words, "env": dict(env), "cwd": str(cwd), "umask": umask}
        socket.send_fds(self._channel, [json.dumps(order).encode()], descriptors)
        answer = self._channel.recv(64)
        assert answer, "the warm process is gone"
        return int(answer)

    def close(self) -> None:
        """End it; the servers it forked live on."""
        self._channel.close()
        self._process.wait(60)


def is_possible() -> bool:
    """True where orphans can be adopted and descriptors sent."""
    return sys.platform == "linux"


def _serve_forks(channel: socket.socket) -> None:
    package = importlib.import_module("tiro")
    for module in pkgutil.walk_packages(package.__path__, "tiro."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in IMPORTED_LATER:
        importlib.import_module(name)
    if importlib.util.find_spec("sniffio") is None:
        sys.modules["sniffio"] = None  # type: ignore[assignment]  # not sought at each request
    gc.freeze()
    while True:
        message, given, _, _ = socket.recv_fds(channel, 1 << 20, 3)
        if not message:
            return
        reading, writing = os.pipe()
        between = os.fork()
        if not between:
            server = os.fork()
            if server:
                os.write(writing, str(server).encode())
                os._exit(0)
            channel.close()
            os.close(reading)
            os.close(writing)
            _become(json.loads(message), given)
        for descriptor in (*given, writing):
            os.close(descriptor)
        os.waitpid(between, 0)  # from here on the server is a child of the test process
        channel.send(os.read(reading, 64))
        os.close(reading)


def _become(order: dict[str, Any], given: list[int]) -> None:
    for target, descriptor in enumerate(given):
        os.dup2(descriptor, target)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(order["env"])
    time.tzset()
    os.chdir(order["cwd"])
    if order["umask"] >= 0:
        os.umask(order["umask"])
    asyncio.create_subprocess_exec = _forking_servers  # type: ignore[assignment]
    sys.exit(_run(order["words"]))


def _run(words: Sequence[str]) -> int:
    sys.stdin, sys.stdout, sys.stderr = _text(0), _text(1), _text(2)
    if words[0] == "-m":
        sys.argv = list(words[1:])
        runpy.run_module(words[1], run_name="__main__")
        return 0
    sys.argv = ["tiro", *words]
    return int(importlib.import_module("tiro.cli").main())


def _text(descriptor: int) -> io.TextIOWrapper:
    """Stdin, stdout or stderr, as Python makes them at its start."""
    before: Any = (sys.__stdin__, sys.__stdout__, sys.__stderr__)[descriptor]
    opened = open(descriptor, "rb" if descriptor == 0 else "wb", closefd=False)  # noqa: SIM115
    is_terminal = os.isatty(descriptor)
    return io.TextIOWrapper(
        opened,
        encoding=before.encoding,
        errors=before.errors,
        newline=None if descriptor == 0 else "\n",
        line_buffering=is_terminal or descriptor == 2,
    )


_START = asyncio.create_subprocess_exec


async def _forking_servers(*command: str, **given: Any) -> asyncio.subprocess.Process:
    """What starts a process, but for servers of ours: those are this one, forked."""
    if command == (sys.executable, "-m", "tiro", "serve"):
        given["preexec_fn"] = _be_its_server
    return await _START(*command, **given)


def _be_its_server() -> None:
    """In the child, where all is ready to execute the command: be it, and never go on."""
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)  # as Python's start does
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = 1
    try:
        code = _run(["serve"])
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve_forks(socket.socket(fileno=int(sys.argv[1])))
