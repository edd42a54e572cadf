"""What becomes of sessions while nobody asks."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.sizes import PATIENCE
from tiro.protocol import elsewhere
from tiro.protocol.elsewhere import LOOK_SECONDS, LOOKS_PER_CLEANUP, Elsewhere


async def test_what_has_expired_is_removed_every_five_minutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G4.10: also while no session is open, and once more after it failed."""
    assert LOOKS_PER_CLEANUP * LOOK_SECONDS == 300
    monkeypatch.setattr(elsewhere, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(elsewhere, "LOOKS_PER_CLEANUP", 3)
    cleanups, is_enough = 0, asyncio.Event()
    loop = asyncio.get_running_loop()
    connection: Any = SimpleNamespace(is_closing=False, order=asyncio.Lock())

    def delete_expired() -> int:
        nonlocal cleanups
        cleanups += 1
        if cleanups == 3:
            connection.is_closing = True
            loop.call_soon_threadsafe(is_enough.set)
        raise OSError("out of reach")

    assistant: Any = SimpleNamespace(
        manager=SimpleNamespace(current=None, delete_expired=delete_expired),
        running_turn_id=None,
    )
    looking = Elsewhere(connection, assistant)
    looking.start()
    await asyncio.wait_for(is_enough.wait(), PATIENCE)


async def test_old_sessions_go_a_minute_after_the_start_and_every_day(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert elsewhere.FIRST_TIDYING * LOOK_SECONDS == 60
    assert elsewhere.LOOKS_PER_DAY * LOOK_SECONDS == 24 * 3600
    monkeypatch.setattr(elsewhere, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(elsewhere, "FIRST_TIDYING", 2)
    monkeypatch.setattr(elsewhere, "LOOKS_PER_DAY", 5)
    times, is_enough = 0, asyncio.Event()
    connection: Any = SimpleNamespace(is_closing=False, order=asyncio.Lock())

    async def keep_order(order: asyncio.Lock) -> None:
        nonlocal times
        assert order is connection.order
        times += 1
        if times == 3:
            connection.is_closing = True
            is_enough.set()
        raise OSError("out of reach")

    assistant: Any = SimpleNamespace(
        manager=SimpleNamespace(current=None),
        deletion=SimpleNamespace(keep_order=keep_order),
        running_turn_id=None,
    )
    looking = Elsewhere(connection, assistant)
    looking.start()
    await asyncio.wait_for(is_enough.wait(), PATIENCE)
