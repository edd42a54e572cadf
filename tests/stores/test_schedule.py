"""The background thread: work that is due earlier than it was is not waited for."""

import threading
import time

from tests.sizes import PATIENCE
from tiro.stores.schedule import Schedule


class Work:
    """Something that is due when the test says so, once."""

    def __init__(self, at: float) -> None:
        self.at: float | None = at
        self.asked = threading.Event()
        self.done = threading.Event()

    def due(self) -> float | None:
        """When it is due."""
        self.asked.set()
        return self.at

    def run(self, now: float) -> None:
        """Be done."""
        self.at = None
        self.done.set()


def test_work_that_becomes_due_earlier_is_done_then() -> None:
    schedule, work = Schedule(), Work(time.monotonic() + 1e6)
    schedule.add(1, work)
    assert work.asked.wait(PATIENCE)
    work.at = time.monotonic()
    until = time.monotonic() + PATIENCE
    while not work.done.wait(0.01) and time.monotonic() < until:
        schedule.add(1, work)  # whatever the thread is doing when it is called
    assert work.done.is_set()
    schedule.close()
