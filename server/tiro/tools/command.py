"""One command while it runs, with everything that it starts: its output, its end, its ending.

A keeper, a process of its own, starts the command and ends all of it; see `command_keeper`. What
the command prints comes here directly. The keeper lives as long as anything that the command has
left running, and no longer than this process.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from tiro.errors import ToolError
from tiro.tools.command_keeper import descendants

GRACE_SECONDS = 1.0
"""How long a command may take to end by itself once it was told to."""
PATIENCE_SECONDS = 5.0
"""How long a keeper may take to end everything; it needs three seconds at most."""
READ_BYTES = 65536
MAX_REST_BYTES = 1 << 20
"""A pipe holds less; so what still comes is printed by somebody who is left running."""

NOT_STARTED = "The command could not be started ({why}); nothing was run"
GONE = (
    "The process that watches over the command ended unexpectedly, and the command with it; what"
    " left the command's process group may still run"
)

_PROGRAM = str(Path(__file__).with_name("command_keeper.py"))


class Ended(msgspec.Struct, frozen=True):
    """How a command ended."""

    status: int
    """The exit code; below zero the signal that ended it."""
    background: list[int]
    """The processes that it has left running, where the system tells."""
    is_open: bool = False
    """Whether somebody is left who could still print."""


class _Answer(msgspec.Struct):
    status: int = 0
    background: list[int] = []
    error: str | None = None
    group: int | None = None
    """The process group of the command, told before it is started; nothing else is told then."""


class Command:
    """A command that was started; `ended` must be awaited, or `end` called.

    `on_output` gets what is printed, stdout and stderr in their order, in the event loop's thread;
    where it gives something to wait for, no more is read before. Raises ToolError when it cannot be
    started at all.
    """

    def __init__(
        self,
        argv: Sequence[str],
        directory: int,
        environment: Mapping[str, str],
        on_output: Callable[[bytes], asyncio.Future[None] | None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_output = on_output
        self._told = b""
        self._group: int | None = None
        self._output: int | None = None
        self._is_told_to_end = False
        self._answer: asyncio.Future[_Answer] = self._loop.create_future()
        self._gone = asyncio.Event()
        self._start(argv, directory, environment)

    async def ended(self) -> Ended:
        """Wait until the command has ended; by then all that it has printed was handed over."""
        answer = await asyncio.shield(self._answer)
        self._read_rest()
        is_open = self._output is not None
        self._stop_reading()
        if is_open and not self._is_told_to_end:
            with contextlib.suppress(OSError):
                self._line.send(b"d")
        if answer.error is not None or (not is_open and not answer.background):
            self.end()
            await self._gone.wait()
        if answer.error is not None:
            raise ToolError(answer.error)
        return Ended(answer.status, answer.background, is_open)

    def end(self) -> None:
        """Let the keeper end the command and all that it has started; may be called again."""
        if not self._is_told_to_end:
            self._is_told_to_end = True
            with contextlib.suppress(OSError):  # the keeper may be gone
                self._line.shutdown(socket.SHUT_WR)
            self._loop.call_later(PATIENCE_SECONDS, self._force)

    def _end_group(self) -> None:
        """End what a keeper has left that is gone itself: those who did not leave the group."""
        if self._group is not None:
            with contextlib.suppress(OSError):
                os.killpg(self._group, signal.SIGKILL)

    def _force(self) -> None:
        """End a keeper that does not answer, such as one that its command has stopped."""
        if self._keeper.returncode is None:
            for pid in (*descendants(self._keeper.pid), self._keeper.pid):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)

    def _start(self, argv: Sequence[str], directory: int, environment: Mapping[str, str]) -> None:
        output, output_end = os.pipe()
        line, line_end = socket.socketpair()
        given = (str(output), str(output_end), str(directory), str(GRACE_SECONDS))
        try:
            self._keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", _PROGRAM, *given, *argv],
                stdin=line_end.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(output, output_end, directory),
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            os.close(output)
            line.close()
            raise ToolError(NOT_STARTED.format(why=error.strerror)) from error
        finally:
            os.close(output_end)
            line_end.close()
        self._output, self._line = output, line
        os.set_blocking(output, False)
        self._loop.add_reader(output, self._read)
        self._loop.add_reader(line, self._hear)  # holds this object while the keeper lives

    def _read(self) -> int:
        """Hand over what can be read at once; how much that was."""
        assert self._output is not None, "only an open pipe is read"
        try:
            data = os.read(self._output, READ_BYTES)
        except BlockingIOError:
            return 0
        if data and (behind := self._on_output(data)) is not None:
            self._loop.remove_reader(self._output)
            behind.add_done_callback(self._read_on)
        elif not data:
            self._stop_reading()
        return len(data)

    def _read_on(self, _: object) -> None:
        if self._output is not None:
            self._loop.add_reader(self._output, self._read)

    def _read_rest(self) -> None:
        """Hand over what was printed before the command ended."""
        total = 0
        while self._output is not None and total < MAX_REST_BYTES and (length := self._read()):
            total += length

    def _stop_reading(self) -> None:
        output, self._output = self._output, None
        if output is not None:
            self._loop.remove_reader(output)
            os.close(output)

    def _hear(self) -> None:
        """Take what the keeper tells; of the command's start and of its end."""
        try:
            data = self._line.recv(READ_BYTES)
        except ConnectionError:  # it was killed before it had read all
            data = b""
        *lines, self._told = (self._told + data).split(b"\n")
        for answer in map(_understood, lines):
            self._group = answer.group or self._group
            if answer.group is None and not self._answer.done():
                self._answer.set_result(answer)
        if data:
            return
        self._loop.remove_reader(self._line)
        if not self._answer.done():
            self._end_group()
            self._answer.set_result(_Answer(error=GONE))
        self.end()
        self._line.close()
        self._keeper.wait()  # it has closed its end, so it is as good as gone
        self._gone.set()


def _understood(told: bytes) -> _Answer:
    """The keeper's answer."""
    try:
        answer = msgspec.json.decode(told, type=_Answer)
    except ValueError:  # msgspec's errors are of this kind
        return _Answer(error=GONE)
    if answer.error is not None:
        answer.error = NOT_STARTED.format(why=answer.error)
    return answer
