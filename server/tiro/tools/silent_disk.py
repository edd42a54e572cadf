"""Work on disks that may never answer, as one behind a dead network does not.

Whatever asks such a disk does it in a thread of its own, which is waited for, and then left alone.
"""

import asyncio
import contextlib
import contextvars
import functools
import os
import stat
import threading
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

ANSWER_SECONDS = 2.0
NEXT_SECONDS = 0.3
"""What others get while one does not answer: they may lie on the same disk."""

WORK_SECONDS = 3.0
"""Work that has begun is not given up as lightly: a whole system may be busy for that long."""
SLICES = 10
"""A process that was paused meanwhile has lost one of them at most."""

WHY = "its disk does not answer"
SILENT = f" cannot be read: {WHY}"

P = ParamSpec("P")
T = TypeVar("T")


class SilentDiskError(Exception):
    """No answer came, in words that go on after the name of what was asked about."""

    def __init__(self, place: object) -> None:
        super().__init__(SILENT)
        self.place = str(place)


class Patience:
    """How long disks are waited for, and which do not answer; for any thread."""

    def __init__(self, seconds: float = ANSWER_SECONDS, next_seconds: float = NEXT_SECONDS) -> None:
        self.seconds, self._next_seconds = seconds, next_seconds
        self._lock = threading.Lock()
        self._out: dict[str, threading.Thread] = {}

    def ask(self, place: object, question: Callable[[], T]) -> T:
        """What the question returns or raises; SilentDiskError where no answer comes.

        `place` is what is read, one word for the same each time. Nobody asks again where a thread
        was left alone, until it comes back.
        """
        answer: Future[T] = Future()
        thread = threading.Thread(
            target=_work, args=(question, answer), name="tiro-disk", daemon=True
        )
        with self._lock:
            self._out = {where: one for where, one in self._out.items() if one.is_alive()}
            if str(place) in self._out:
                raise SilentDiskError(place)
            seconds = self._next_seconds if self._out else self.seconds
        thread.start()
        for _ in range(SLICES):
            thread.join(seconds / SLICES)
        if thread.is_alive():
            with self._lock:
                self._out[str(place)] = thread
            raise SilentDiskError(place)
        return answer.result()


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `asyncio.to_thread`, in a thread of its own, which no end of a process waits for."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()
    call = functools.partial(contextvars.copy_context().run, function, *args, **kwargs)

    def settle(done: Future[T]) -> None:
        if answer.cancelled():
            return
        if (error := done.exception()) is not None:
            answer.set_exception(error)
        else:
            answer.set_result(done.result())

    def run() -> None:
        done: Future[T] = Future()
        _work(call, done)
        with contextlib.suppress(RuntimeError):  # the loop is gone, and nobody waits
            loop.call_soon_threadsafe(settle, done)

    threading.Thread(target=run, name="tiro-tool", daemon=True).start()
    return await answer


async def watched(work: Awaitable[T], paths: Callable[[], Iterable[str]], patience: Patience) -> T:
    """The result of work that takes as long as it takes, while the disks of these paths answer.

    They are asked for a sign each time so long has passed as one may take. Raises SilentDiskError
    once one of them does not; the work is then cancelled, and its threads are left alone. A cancel
    waits in the same way for what must not be left half done.
    """
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    try:
        await _ended(task, paths, patience)
    except asyncio.CancelledError:
        task.cancel()
        with contextlib.suppress(SilentDiskError):
            await _ended(task, paths, patience)
        raise
    finally:
        task.cancel()
    return task.result()


async def _ended(
    task: asyncio.Future[T], paths: Callable[[], Iterable[str]], patience: Patience
) -> None:
    while not (await asyncio.wait({task}, timeout=patience.seconds))[0]:
        for path in paths():
            await in_thread(patience.ask, path, functools.partial(touch, path))


def touch(path: str | os.PathLike[str]) -> None:
    """Read a little of what is there, if anything; whatever else is wrong is said by others."""
    with contextlib.suppress(OSError, ValueError):
        mode = os.stat(path).st_mode
        if stat.S_ISREG(mode):
            with open(path, "rb", buffering=0) as file:
                file.read(1)
        elif stat.S_ISDIR(mode):
            with os.scandir(path) as entries:
                next(entries, None)


def _work(question: Callable[[], T], answer: "Future[T]") -> None:
    try:
        answer.set_result(question())
    except BaseException as error:  # whoever asked hears of it
        answer.set_exception(error)
