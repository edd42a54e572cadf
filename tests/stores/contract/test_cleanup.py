"""The thread that cleans up (G4.10, G4.11)."""

import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

from tests.sizes import PATIENCE, SECONDS
from tests.stores.contract.test_contract import until
from tiro.stores.cleanup import Cleanup
from tiro.stores.memory import MemoryStore
from tiro.stores.store import CLEANUP_SECONDS

ROOT = Path(__file__).parents[3]


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


def test_it_keeps_no_process_alive(tmp_path: Path) -> None:
    """G4.11: a program that closed none of its stores comes to its end."""
    code = (
        "import sys; from pathlib import Path; from tests.stores.contract.stores import open_store;"
        "stores = [open_store(kind, Path(sys.argv[1]), '') for kind in sys.argv[2:]];"
        "[store.create('x') for store in stores]; print('end')"
    )
    kinds = ("memory", "files", "sqlite", "hybrid")
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), *kinds],
        capture_output=True,
        text=True,
        timeout=SECONDS - 5,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "server"), str(ROOT)))},
    )
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr


def test_it_comes_every_five_minutes() -> None:
    """G4.10."""
    assert CLEANUP_SECONDS == 300
