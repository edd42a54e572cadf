"""One background thread that does what is due later; it sleeps while nothing is.

Work is keyed, so that something already waiting is not added twice. The thread starts with work,
ends when there was none for a while, and never keeps the process alive: what must not be lost was
written before.
"""

import logging
import threading
import time
from typing import Protocol

LINGER_SECONDS = 5.0

log = logging.getLogger(__name__)


class Work(Protocol):
    """Something that is due now and then until it has nothing left to do."""

    def due(self) -> float | None:
        """When it is due, by the monotonic clock; None when it has nothing left to do."""
        ...

    def run(self, now: float) -> None:
        """Do what is due by `now`."""
        ...


class Schedule:
    """Runs each piece of work when it is due, until it has nothing left to do."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._work: dict[int, Work] = {}
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._wakes_at = 0.0
        """Until when the thread sleeps, by the monotonic clock."""

    def add(self, key: int, work: Work) -> None:
        """Have this work run when it is due; what already waits under the key is kept.

        Called again when work that waits is due earlier than it was.
        """
        with self._changed:
            if self._is_closed:
                return
            if key in self._work:
                due = self._work[key].due()
                if due is not None and due < self._wakes_at:
                    self._changed.notify()
                return
            self._work[key] = work
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name="tiro-store", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """End the thread after what it is doing now, without what is not due yet."""
        with self._changed:
            self._is_closed = True
            self._work.clear()
            thread, self._thread = self._thread, None
            self._changed.notify()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _loop(self) -> None:
        while (work := self._next()) is not None:
            try:
                work.run(time.monotonic())
            except Exception:  # one session's fault must not stop the others' saving
                log.exception("Background work failed")

    def _next(self) -> Work | None:
        """The next work that is due, once it is; None at the end."""
        with self._changed:
            while not self._is_closed:
                times = {key: work.due() for key, work in self._work.items()}
                for key in [key for key, at in times.items() if at is None]:
                    del self._work[key], times[key]
                if not times:
                    if not self._changed.wait(LINGER_SECONDS) and not self._work:
                        self._thread = None
                        return None
                    continue
                key, at = min(times.items(), key=lambda item: item[1] or 0.0)
                seconds = (at or 0.0) - time.monotonic()
                if seconds <= 0:
                    return self._work[key]
                self._wakes_at = at or 0.0
                self._changed.wait(seconds)
        return None
