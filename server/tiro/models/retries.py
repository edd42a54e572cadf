"""The rule for asking a provider again: only while nothing of the answer has been yielded."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

import httpx

from tiro.errors import ModelError
from tiro.models import failures
from tiro.models.model import Delta, Progress, RetryWait

MAX_REPEATS = 3
FIRST_BACKOFF_SECONDS = 0.5
Sleep = Callable[[float], Awaitable[object]]


async def with_retries(
    attempt: Callable[[], AsyncGenerator[Delta, None]],
    *,
    sleep: Sleep = asyncio.sleep,
    jitter: Callable[[], float] = random.random,
) -> AsyncGenerator[Delta, None]:
    """The deltas of the first attempt that begins to answer; a wait is told before it is waited."""
    repeats = 0
    while True:
        has_begun = False
        try:
            async with aclosing(attempt()) as deltas:
                async for delta in deltas:
                    has_begun = has_begun or not isinstance(delta, Progress)
                    yield delta
            return
        except ModelError as error:
            repeats += 1
            if has_begun or repeats > MAX_REPEATS or not _may_repeat(error):
                raise
            wait, reason = _wait_seconds(error, repeats, jitter), str(error)
        yield RetryWait(repeats, wait, reason)
        await sleep(wait)


def _may_repeat(error: ModelError) -> bool:
    """Long waits are the user's to decide: those a provider asks for, and another long silence."""
    asked_for = error.data.get("retry_after_seconds") or 0.0
    is_silence = isinstance(error.__cause__, httpx.ReadTimeout)
    retryable = bool(error.data.get("retryable"))
    return retryable and not is_silence and asked_for <= failures.LONGEST_WAIT_SECONDS


def _wait_seconds(error: ModelError, repeats: int, jitter: Callable[[], float]) -> float:
    asked_for = error.data.get("retry_after_seconds")
    if isinstance(asked_for, float):
        return asked_for
    return float(FIRST_BACKOFF_SECONDS * 2 ** (repeats - 1) * (1 + jitter()))
