"""The thread that removes expired sessions of a store now and then (G4.10, G4.11).

It keeps neither the process nor the store alive, and ends with either.
"""

import logging
import threading
import weakref
from typing import Protocol

log = logging.getLogger(__name__)


class Expiring(Protocol):
    """Something that sessions expire in."""

    def delete_expired(self) -> int:
        """Remove what has expired."""
        ...


class Cleanup:
    """Calls `store.delete_expired()` every so many seconds, until it is stopped."""

    def __init__(self, store: Expiring, interval_seconds: float) -> None:
        self._stopped = stopped = threading.Event()
        # A store that nobody holds any more wakes the thread, which then finds nothing to clean.
        store_if_held = weakref.ref(store, lambda _: stopped.set())
        self._thread = threading.Thread(
            target=_run,
            args=(store_if_held, interval_seconds, stopped),
            name="tiro-cleanup",
            daemon=True,
        )
        self._thread.start()

    def stop(self) -> None:
        """End the thread, after what it is doing now; may be called any number of times."""
        self._stopped.set()
        if self._thread is not threading.current_thread():
            self._thread.join()


def _run(
    store_if_held: "weakref.ref[Expiring]", interval_seconds: float, stopped: threading.Event
) -> None:
    while not stopped.wait(interval_seconds):
        store = store_if_held()
        if store is None:
            return
        try:
            store.delete_expired()
        except Exception:  # it is tried again; a store that is out of reach fails no program
            log.exception("Expired sessions could not be removed")
        del store
