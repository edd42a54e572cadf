"""One running turn: its task, its events, its end, and what waits until it is over."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from tiro.agents.events import Finished, TurnEvent, TurnOutcome
from tiro.agents.turn import run_turn
from tiro.agents.turn_input import Turn
from tiro.session.finished import finished
from tiro.session.queued import queue
from tiro.session.session import Session

EventListener = Callable[["RunningTurn", int, TurnEvent], None]


class TurnResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a prompt is answered with when its turn is over."""

    turn_id: str
    outcome: TurnOutcome
    context_size: Any


class RunningTurn:
    """A turn on its way, from its first event to the answer."""

    def __init__(self, turn_id: str, session: Session, turn: Turn, listener: EventListener) -> None:
        self.turn_id = turn_id
        self.session = session
        self._turn = turn
        self._listener = listener
        self._task: asyncio.Task[Finished] | None = None

    def start(
        self, holding: contextlib.AbstractAsyncContextManager[Any], when_over: Callable[[], None]
    ) -> None:
        """Begin; `holding` was entered and is left at the end, then `when_over` is called."""
        self._task = asyncio.create_task(self._run(holding, when_over), name=f"turn {self.turn_id}")

    async def outcome(self) -> TurnOutcome:
        """Wait for the end; raises the error that ended it, if one did.

        When the waiting task is cancelled, the turn is stopped as by `stop` first.
        """
        assert self._task is not None
        try:
            end = await asyncio.shield(self._task)
        except asyncio.CancelledError:
            await self.stop()
            raise
        if end.error is not None:
            raise end.error
        return end.outcome

    def steer(self, text: str) -> bool:
        """Let the turn take this before its next step; False when it takes nothing any more."""
        if self._turn.ended.is_set():
            return False
        queue(self.session, text)
        return True

    async def stop(self) -> None:
        """Cancel the turn and wait until it has left a clean session behind."""
        self._turn.cancel.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(
        self, holding: contextlib.AbstractAsyncContextManager[Any], when_over: Callable[[], None]
    ) -> Finished:
        n = 0
        try:
            async with contextlib.aclosing(run_turn(self._turn)) as events:
                async for event in events:
                    n += 1
                    if isinstance(event, Finished):
                        end = event
                    self._listener(self, n, event)
        finally:
            self.session.most_tokens = None
            try:
                await holding.__aexit__(None, None, None)
            finally:
                when_over()
        return end


@contextlib.asynccontextmanager
async def entered(
    holding: contextlib.AbstractContextManager[None], give_up: Callable[[], None] = lambda: None
) -> AsyncIterator[None]:
    """A lock as an async one: waiting for it happens in a thread.

    When the wait is cancelled, `give_up` ends it, or the lock is given back once it is had.
    """
    waiting = asyncio.create_task(asyncio.to_thread(holding.__enter__))
    try:
        await asyncio.shield(waiting)
    except asyncio.CancelledError:
        give_up()
        with contextlib.suppress(Exception):
            await finished(waiting)
        if waiting.exception() is None:
            await finished(asyncio.to_thread(holding.__exit__, None, None, None))
        raise
    try:
        yield
    finally:
        await finished(asyncio.to_thread(holding.__exit__, None, None, None))
