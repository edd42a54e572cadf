"""Waiting for work that must not be left half done, or whose result somebody has to give back."""

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def finished(work: Awaitable[T]) -> T:
    """The result of work that must not be left half done, however often the wait is cancelled."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    return task.result()
