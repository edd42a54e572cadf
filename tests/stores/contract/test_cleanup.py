"""The thread that cleans up (G4.10, G4.11)."""

import gc
import threading
import weakref

from tests.sizes import PATIENCE
from tests.stores.contract.test_contract import until
from tiro.stores.cleanup import Cleanup
from tiro.stores.memory import MemoryStore
from tiro.stores.store import CLEANUP_SECONDS


class Expiring:
    """Counts how often it is cleaned up; fails the first time."""

    def __init__(self) -> None:
        self.calls = 0
        self.called_again = threading.Event()

    def delete_expired(self) -> int:
        """Count."""
        self.calls += 1
        if self.calls == 1:
            raise OSError("out of reach")
        self.called_again.set()
        return 0


def test_it_comes_again_and_again_also_after_a_failure() -> None:
    expiring = Expiring()
    before = set(threading.enumerate())
    cleanup = Cleanup(expiring, 0.001)
    (thread,) = set(threading.enumerate()) - before
    assert expiring.called_again.wait(PATIENCE)
    for _ in range(3):
        cleanup.stop()
    assert not thread.is_alive()


def test_it_ends_with_a_store_that_nobody_closed() -> None:
    before = set(threading.enumerate())
    store = MemoryStore(1e6)
    (thread,) = set(threading.enumerate()) - before
    held = weakref.ref(store)
    del store
    gc.collect()
    assert held() is None
    until(lambda: not thread.is_alive())


def test_it_comes_every_five_minutes() -> None:
    """G4.10."""
    assert CLEANUP_SECONDS == 300
