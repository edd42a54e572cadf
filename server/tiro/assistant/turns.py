"""The turns of the current session: one at a time, and what waits for its end."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar
from uuid import uuid4

from tiro.agents.turn_input import Turn
from tiro.assistant.running_turn import EventListener, RunningTurn
from tiro.errors import InvalidInputError, TurnInProgressError, TurnNotFoundError
from tiro.session.finished import finished
from tiro.session.session import Session

T = TypeVar("T")


class StartingTurn:
    """A turn that waits for what it needs before it can run."""

    def __init__(self, turn_id: str, waits_for: "asyncio.Task[Any]") -> None:
        self.turn_id = turn_id
        self.is_stopped = False
        self._waits_for = waits_for
        self._is_over = asyncio.Event()

    async def stop(self) -> None:
        """Let it not begin, and wait until it has given up."""
        self.is_stopped = True
        self._waits_for.cancel()
        await self._is_over.wait()

    def end(self) -> None:
        """It waits no more."""
        self._is_over.set()


class Turns:
    """At most one turn, which runs or is starting."""

    def __init__(self, on_event: EventListener) -> None:
        self._on_event = on_event
        self._waiting: list[Callable[[], None]] = []
        self.asked: dict[asyncio.Task[Any], Callable[[], Any]] = {}
        """The tasks that ask models besides the turn, and what ends their waiting."""
        self.running: RunningTurn | None = None
        self._starting: StartingTurn | None = None
        self.beside_others: Callable[[Awaitable[Any]], Awaitable[Any]] = _awaited
        """Waits for something while other use cases go on, and comes back to its place."""

    @property
    def turn_id(self) -> str | None:
        """The id of the turn that runs or is starting."""
        turn = self.running or self._starting
        return turn.turn_id if turn else None

    def refuse_another(self) -> None:
        """Raise TurnInProgressError while there is one."""
        if self.turn_id is not None:
            raise TurnInProgressError(
                "A turn is running in this session; wait for its end or cancel it",
                turn_id=self.turn_id,
            )

    async def prepared(self, turn_id: str, work: Coroutine[Any, Any, T]) -> T | None:
        """What a turn needs before it can run, while others go on; None where it was stopped.

        It counts as a turn from now on. Raises what the work raises.
        """
        task: asyncio.Task[T] = asyncio.create_task(_awaited(self.beside_others(work)))
        starting = self._starting = StartingTurn(turn_id, task)
        try:
            await asyncio.wait({task})
            return None if starting.is_stopped else task.result()
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await finished(task)
            self._starting = None
            self._over()
            starting.end()

    def start(
        self,
        turn_id: str,
        session: Session,
        turn: Turn,
        holding: contextlib.AbstractAsyncContextManager[Any],
    ) -> RunningTurn:
        """Begin a turn; `holding`, the right to write, was entered and is left at its end."""
        self.running = RunningTurn(turn_id, session, turn, self._on_event)
        self.running.start(holding, self._over)
        return self.running

    def when_over(self, action: Callable[[], None]) -> None:
        """Do it when there is no turn: at once, or at the end of the one that there is."""
        if self.turn_id is None:
            action()
        else:
            self._waiting.append(action)

    def overtake(self) -> None:
        """End what a model is asked besides the turn: its session is not the current one now."""
        for give_up in tuple(self.asked.values()):
            give_up()

    def beside(self, task: asyncio.Task[Any]) -> None:
        """Count a task that asks a model in the background for the current session."""
        self.asked[task] = task.cancel
        task.add_done_callback(self.asked.pop)

    async def cancel(self, turn_id: str | None = None) -> bool:
        """Stop the turn; False when there is none, TurnNotFoundError for another id."""
        turn = self._found(turn_id)
        if turn is None:
            return False
        await turn.stop()
        return True

    def steer(self, text: str, turn_id: str | None = None) -> None:
        """Add a user message before the next step of the running turn.

        It survives a kill from now on. Raises InvalidInputError for a blank text, TurnNotFoundError
        when no turn runs or it takes nothing any more.
        """
        if not text.strip():
            raise InvalidInputError("The text is empty; write what to tell the turn")
        turn = self._found(turn_id)
        if not isinstance(turn, RunningTurn) or not turn.steer(text):
            raise TurnNotFoundError(
                "No turn is running that could take this; send it as a prompt", turn_id=turn_id
            )

    def _found(self, turn_id: str | None) -> RunningTurn | StartingTurn | None:
        if turn_id is not None and turn_id != self.turn_id:
            raise TurnNotFoundError(f"The turn {turn_id!r} is not running", turn_id=turn_id)
        return self.running or self._starting

    def _over(self) -> None:
        """There is no turn any more, and its session is clean: what waited for this happens."""
        self.running = None
        waiting, self._waiting = self._waiting, []
        for action in waiting:
            action()


def new_turn_id() -> str:
    """An id that no other turn has."""
    return uuid4().hex


async def _awaited(work: Awaitable[T]) -> T:
    return await work
