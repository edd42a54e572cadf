"""Questions to disks that may never answer, as one behind a dead network does not.

Each is asked in a thread of its own, which is waited for, and then left alone. Nobody asks again at
a place where one was left alone, until it comes back.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from tiro.agents.settings_file import UnreadableFileError

ANSWER_SECONDS = 2.0
NEXT_SECONDS = 0.3
"""What others get while one does not answer: they may lie on the same disk."""

WHY = "its disk does not answer"
SILENT = f" cannot be read: {WHY}"

T = TypeVar("T")


class Patience:
    """How long disks are waited for, and which do not answer; for any thread."""

    def __init__(self, seconds: float = ANSWER_SECONDS) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._out: dict[str, threading.Thread] = {}

    def ask(self, place: object, question: Callable[[], T]) -> T:
        """What the question returns or raises; UnreadableFileError where no answer comes.

        `place` is what is read, one word for the same each time.
        """
        answer: Future[T] = Future()
        thread = threading.Thread(
            target=_work, args=(question, answer), name="tiro-disk", daemon=True
        )
        with self._lock:
            self._out = {where: one for where, one in self._out.items() if one.is_alive()}
            if str(place) in self._out:
                raise UnreadableFileError(SILENT)
            seconds = NEXT_SECONDS if self._out else self._seconds
        thread.start()
        thread.join(seconds)
        if thread.is_alive():
            with self._lock:
                self._out[str(place)] = thread
            raise UnreadableFileError(SILENT)
        return answer.result()


def _work(question: Callable[[], T], answer: "Future[T]") -> None:
    try:
        answer.set_result(question())
    except BaseException as error:  # whoever asked hears of it
        answer.set_exception(error)
