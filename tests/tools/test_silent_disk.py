"""A disk that does not answer costs a moment, and is told (N: a dead network disk)."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sizes import PATIENCE
from tiro.tools.silent_disk import Patience, SilentDiskError, in_thread, watched


@pytest.fixture
def back() -> Iterator[threading.Event]:
    """Set when the disk answers again; at the end of the test at the latest."""
    event = threading.Event()
    yield event
    event.set()


def test_what_is_answered_or_raised_is_passed_on() -> None:
    patience = Patience()
    assert patience.ask("a", lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        patience.ask("a", lambda: 1 // 0)


def test_a_silent_disk_is_given_up_and_not_asked_again_until_it_answers(
    back: threading.Event,
) -> None:
    patience = Patience(0.05, PATIENCE)
    asked: list[int] = []

    def question() -> str:
        asked.append(1)
        back.wait()
        return "here"

    for _ in range(3):
        with pytest.raises(SilentDiskError, match="does not answer"):
            patience.ask("a", question)
    assert len(asked) == 1
    assert patience.ask("b", lambda: "other") == "other"
    back.set()
    for thread in threading.enumerate():
        if thread.name == "tiro-disk":
            thread.join(PATIENCE)
    patience.seconds = PATIENCE
    assert patience.ask("a", question) == "here"


def test_work_that_is_slow_goes_on_while_its_disk_answers(tmp_path: Path) -> None:
    """How long a tool may take is no question of the disk."""
    patience, asked = Patience(0.05), threading.Event()

    def paths() -> list[str]:
        patience.seconds = PATIENCE
        asked.set()
        return [str(tmp_path)]

    def slow() -> str:
        assert asked.wait(PATIENCE)
        return "done"

    assert asyncio.run(watched(in_thread(slow), paths, patience)) == "done"


def test_a_cancel_waits_until_the_work_has_ended_in_order(back: threading.Event) -> None:
    """What a cancelled write has left is taken back before anybody goes on."""
    ended: list[str] = []
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await in_thread(back.wait)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            ended.append("taken back")
            raise

    async def cancelled() -> None:
        task = asyncio.create_task(watched(work(), list, Patience()))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert ended == ["taken back"]


def test_a_cancel_does_not_wait_for_a_disk_that_fell_silent(back: threading.Event) -> None:
    """What must not be left half done is waited for while its disk answers, and no longer."""
    begun, is_silent = asyncio.Event(), threading.Event()

    class Disks(Patience):
        def ask(self, place: object, question: object) -> Any:
            if is_silent.is_set():
                raise SilentDiskError(place)

    async def work() -> None:
        begun.set()
        try:
            await in_thread(back.wait)
        finally:
            await in_thread(back.wait)

    async def cancelled() -> None:
        task = asyncio.create_task(watched(work(), lambda: ["a"], Disks(0.01)))
        await begun.wait()
        is_silent.set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
