"""A lock that is waited for in a thread is never lost."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tiro.assistant.running_turn import entered


def test_a_lock_whose_wait_is_cancelled_is_given_back() -> None:
    """B43: a cancel at any point leaves the session usable."""
    told: list[str] = []
    free = threading.Event()

    @contextmanager
    def lock() -> Iterator[None]:
        free.wait(5)
        told.append("taken")
        yield
        told.append("given back")

    async def wait_for_it() -> None:
        async with entered(lock()):
            told.append("used")

    async def cancelled() -> None:
        waiting = asyncio.create_task(wait_for_it())
        await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.sleep(0)
        free.set()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(cancelled())
    assert told == ["taken", "given back"]
