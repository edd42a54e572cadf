"""A lock that is waited for in a thread is never lost."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.sizes import PATIENCE
from tiro.assistant.running_turn import entered


@pytest.mark.parametrize("cancels", [1, 2, 3])
def test_a_lock_whose_wait_is_cancelled_is_given_back(cancels: int) -> None:
    """B43: a cancel at any point, and any number of them, leaves the session usable."""
    told: list[str] = []
    begun, free = threading.Event(), threading.Event()

    @contextmanager
    def lock() -> Iterator[None]:
        begun.set()
        free.wait(PATIENCE)
        told.append("taken")
        yield
        told.append("given back")

    async def wait_for_it() -> None:
        async with entered(lock()):
            told.append("used")

    async def cancelled() -> None:
        waiting = asyncio.create_task(wait_for_it())
        assert await asyncio.to_thread(begun.wait, PATIENCE)
        for _ in range(cancels):
            waiting.cancel()
            await asyncio.sleep(0.01)
        free.set()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(cancelled())
    assert told == ["taken", "given back"]


def test_a_lock_is_given_back_though_its_release_is_cancelled() -> None:
    """B43: also where no thread is free for the release yet."""
    told: list[str] = []
    busy = threading.Event()

    @contextmanager
    def lock() -> Iterator[None]:
        told.append("taken")
        yield
        told.append("given back")

    async def use(used: asyncio.Event) -> None:
        async with entered(lock()):
            used.set()
            asyncio.get_running_loop().run_in_executor(None, busy.wait, PATIENCE)

    async def cancelled() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        used = asyncio.Event()
        using = asyncio.create_task(use(used))
        await used.wait()
        await asyncio.sleep(0.01)
        using.cancel()
        await asyncio.sleep(0.01)
        busy.set()
        await asyncio.wait({using})

    asyncio.run(cancelled())
    assert told == ["taken", "given back"]
