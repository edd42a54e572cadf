"""A search keeps nobody waiting, and nobody needs it any longer once it is cancelled (P12)."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.sizes import PATIENCE
from tiro.assistant.saved_sessions import SavedSessions
from tiro.assistant.turns import Turns
from tiro.session.session import Session
from tiro.stores.manager import SessionManager
from tiro.tools.silent_disk import Patience

COUNT = 4


class Waiting:
    """Hears of a search's progress, and keeps it waiting there until it may go on."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.may_go_on = threading.Event()
        self.calls = 0

    def __call__(self, done: int, total: int) -> None:
        self.calls += 1
        self.has_begun.set()
        self.may_go_on.wait(PATIENCE)


async def nothing(session: Session) -> None:
    """Weighs nothing."""


@pytest.fixture(params=["index", "files"])
def saved(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SavedSessions]:
    """Some sessions in which something is found; every progress is told."""
    monkeypatch.setattr("tiro.stores.search.LONG_SECONDS", 0.0)
    monkeypatch.setattr("tiro.stores.search.REPORT_SECONDS", 0.0)
    cache = tmp_path / "cache" if request.param == "index" else None
    with SessionManager(tmp_path / "sessions", cache_directory=cache) as manager:
        for number in range(COUNT):
            manager.create(id=f"s{number}").add_message("user", f"needle {number}")
        saved = SavedSessions(manager, Turns(lambda *_: None), nothing, Patience())
        yield saved
        saved.close()


async def begun(saved: SavedSessions, waiting: Waiting) -> "asyncio.Task[object]":
    """A search that is under way."""
    task: asyncio.Task[object] = asyncio.create_task(saved.search("needle", None, waiting))
    with ThreadPoolExecutor(1) as own:
        has_begun = own.submit(waiting.has_begun.wait, 30)
        assert await asyncio.wrap_future(has_begun)
    return task


def test_what_else_needs_a_thread_does_not_wait_for_a_search(saved: SavedSessions) -> None:
    """Also when the client gave it up: a change waited for the threads that searches held."""

    async def check() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        waiting = Waiting()
        task = await begun(saved, waiting)
        task.cancel()
        change = asyncio.ensure_future(asyncio.to_thread(lambda: "done"))
        await asyncio.wait({change}, timeout=PATIENCE)
        is_done = change.done()
        waiting.may_go_on.set()
        assert is_done

    asyncio.run(check())


def test_a_cancelled_search_ends_and_those_behind_it_never_begin(saved: SavedSessions) -> None:
    """The first one stops where it is; the next that somebody waits for finds everything."""

    async def check() -> None:
        waiting, behind = Waiting(), Waiting()
        behind.may_go_on.set()
        first = await begun(saved, waiting)
        others = [asyncio.create_task(saved.search("needle", None, behind)) for _ in range(20)]
        await asyncio.sleep(0)
        for task in (first, *others):
            task.cancel()
        last = asyncio.create_task(saved.search("needle", None, lambda *_: None))
        await asyncio.wait({first, *others})
        waiting.may_go_on.set()
        assert len(await last) == COUNT
        assert (waiting.calls, behind.calls) == (1, 0)

    asyncio.run(check())


def test_a_session_is_weighed_before_it_is_the_current_one(tmp_path: Path) -> None:
    """P12: whoever asks for the current one meanwhile must not wait until it has been weighed."""
    with SessionManager(tmp_path / "sessions") as manager:
        old = manager.create(id="old")
        old.add_message("user", "one")
        weighed: list[str | None] = []

        async def weigh(session: Session) -> None:
            assert manager.current is not session
            weighed.append(session.id)

        saved = SavedSessions(manager, Turns(lambda *_: None), weigh, Patience())

        async def check() -> None:
            await saved.import_from(None, '{"id": "new", "messages": []}', None)
            await saved.load(id="old")
            await saved.load(id="old")  # the current one is read again

        asyncio.run(check())
        assert weighed == ["new", "old", "old"]
        saved.close()
