"""The life of one connection: frames in and out, and its end in order.

Law: stdout carries frames and nothing else. Once the end has begun (`exit`, a closed stdin, a dead
editor, a broken stdout, a signal) the process is gone within two seconds, whatever it is doing:
what can be finished is finished in order, and a watchdog thread does the rest.
"""

import asyncio
import contextlib
import functools
import logging
import signal
import time
from collections.abc import Callable
from typing import Any, Protocol

from tiro.protocol import types
from tiro.protocol.closing import ANSWER_SECONDS
from tiro.protocol.frames import (
    BrokenFrameError,
    FrameReader,
    FrameWriter,
    Stdio,
    answered_id,
    is_hung_up,
)
from tiro.protocol.service import Service
from tiro.protocol.watch import EditorWatch, end_process_after

logger = logging.getLogger(__name__)

LAST_SECONDS = 1.7
"""How long the end may take before the watchdog ends the process."""

ORDER_SECONDS = 1.4
"""How long an end in order may take before what is still open is answered without it."""

WRITE_SECONDS = 0.5
"""How long the client may take to read the last frames."""

MAX_OPEN_REQUESTS = 5000
"""With more requests than this waiting for their turn, no further message is taken."""

ROOM_SECONDS = 0.02
PARSE_ERROR = -32700
UNREADABLE = "The message is not valid JSON"
EXITS = ({"jsonrpc": "2.0", "method": "exit"}, {"jsonrpc": "2.0", "method": "exit", "params": None})
SIGNALS = ("SIGTERM", "SIGHUP", "SIGINT")


class Listener(Protocol):
    """Hears every body, in the threads where it comes and goes; nothing here may wait."""

    def received(self, body: bytes) -> None:
        """The client has sent this, readable or not."""
        ...

    def sent(self, body: bytes) -> None:
        """A body goes to the client."""
        ...


async def live(service: Service, stdio: Stdio, listener: Listener | None = None) -> int:
    """Serve one client until the end; the exit code of the process."""
    return await Lifetime(service, stdio, listener).run()


class Lifetime:
    """Reader, writer, watch and the end of one connection."""

    def __init__(self, service: Service, stdio: Stdio, listener: Listener | None = None) -> None:
        self._service = service
        self._protocol = service.server.protocol
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._exit_code = 1
        self._read_fd = stdio.read_fd
        self._writer = FrameWriter(
            stdio.write_fd,
            on_error=self._broken_stdout,
            on_body=listener.sent if listener else _nobody,
        )
        self._watch = EditorWatch(stdio.write_fd, lambda: self.end(1))
        self._reader = FrameReader(
            stdio.read_fd,
            on_message=self._received,
            on_unreadable=self._not_decoded,
            on_end=self._end_of_stdin,
            on_body=listener.received if listener else _nobody,
        )

    async def run(self) -> int:
        """Serve until the end."""
        self._protocol.outlet = self._writer
        self._service.connection.when_idle = self._when_idle
        self._service.connection.has_room = lambda: self._writer.has_room(0)
        self._service.greeting.on_editor = self._watch.watch_process
        self._protocol.on_exit = self._exit
        for name in SIGNALS:
            number = getattr(signal, name, None)
            if number and not _is_nohup(number):
                with contextlib.suppress(NotImplementedError):  # on Windows
                    # One that comes just before the loop falls asleep must wake it, or it waits.
                    self._loop.add_signal_handler(number, lambda: None)
                signal.signal(number, lambda *_: self.end(1))
        self._watch.start()
        self._reader.start()
        code = await self._ended
        await self._close()
        await self._protocol.shutdown_answered()
        await asyncio.to_thread(self._writer.close, WRITE_SECONDS)
        await asyncio.to_thread(self._service.editor.close)
        return code

    async def _close(self) -> None:
        closing = asyncio.ensure_future(self._service.closing.close())
        await asyncio.wait({closing}, timeout=ORDER_SECONDS)
        if not closing.done():
            self._protocol.give_up()
        await closing

    def end(self, exit_code: int) -> None:
        """Begin the end, from any thread; the first one counts."""
        end_process_after(LAST_SECONDS, lambda: self._exit_code)
        self._call(self._end, exit_code)

    def _exit(self, exit_code: int) -> None:
        """The client said `exit`: this counts before the end of stdin that may follow at once."""
        self._end(exit_code)
        self.end(exit_code)

    def _end(self, exit_code: int) -> None:
        if not self._ended.done():
            self._exit_code = exit_code
            self._ended.set_result(exit_code)

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call something in the loop's thread; afterwards when the loop is gone nothing matters."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)

    # --- called in the reader's and the writer's thread ---------------------------------------

    def _received(self, message: Any) -> None:
        """Hand a message over, but no more of them than can be worked on and answered.

        A client that has left without reading its answers gets no more of them.
        """
        if message in EXITS:  # the loop may wait for a disk, and never hear of it
            self._exit_code = 0 if self._protocol.state == "shut_down" else 1
            end_process_after(LAST_SECONDS, lambda: self._exit_code)
        hung_up_at: float | None = None
        while not self._has_room():
            if hung_up_at is None and is_hung_up(self._read_fd):
                hung_up_at = time.monotonic()
            if hung_up_at is not None and time.monotonic() - hung_up_at > ANSWER_SECONDS:
                self.end(1)
                return
        self._call(self._protocol.handle_message, message)

    def _not_decoded(self, body: bytes) -> None:
        self._call(self._unreadable, UNREADABLE, answered_id(body))

    def _has_room(self) -> bool:
        if self._protocol.open_requests > MAX_OPEN_REQUESTS:
            time.sleep(ROOM_SECONDS)
            return False
        return self._writer.has_room(ROOM_SECONDS)

    def _end_of_stdin(self, error: BrokenFrameError | None) -> None:
        if error is not None:
            self._call(self._unreadable, str(error))
        self.end(1)

    def _broken_stdout(self, error: OSError) -> None:
        logger.warning("The client does not read any more: %s", error.strerror)
        self.end(1)

    def _when_idle(self, callback: Callable[[], None]) -> bool:
        return self._writer.when_idle(functools.partial(self._call, callback))

    def _unreadable(self, why: str, answers: int | None = None) -> None:
        """Say so, unless it answers a request of ours: then whoever waits for it hears of it."""
        if answers is None or not self._protocol.refuse_answer(answers):
            self._protocol.send_error(None, types.ErrorObject(PARSE_ERROR, why))


def _is_nohup(number: int) -> bool:
    """Whether the editor was started to outlive its terminal, and we with it."""
    is_ignored = signal.getsignal(number) is signal.SIG_IGN
    return is_ignored and number == getattr(signal, "SIGHUP", None)


def _nobody(body: bytes) -> None:
    """Nobody listens."""
