"""A session while a model is asked about it: what is written is stored between turns, or dropped.

While a model writes, everything else goes on. Messages that are added meanwhile are kept and follow
the result (U4.5); whoever ends the session, takes messages back, edits or pins one, wins (N4.8):
nobody waits for the model then.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Self

from tiro.errors import ResizeError
from tiro.session.changes import Add, Change, Cover, DeleteState, Evict, Set, SetState
from tiro.session.core import Core
from tiro.session.session import Session

if TYPE_CHECKING:
    from tiro.assistant.assistant import Assistant


class Asked:
    """Watches a session within `with`; `writing` is what holds it for one change."""

    def __init__(
        self,
        assistant: "Assistant",
        session: Session,
        writing: Callable[[Core], contextlib.AbstractAsyncContextManager[Session]],
    ) -> None:
        self._turns, self._manager = assistant.turns, assistant.manager
        self._session, self._writing = session, writing
        self._is_rewritten = self._is_storing = self._is_given_up = False

    def __enter__(self) -> Self:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self._task is not None:
            self._turns.asked[self._task] = self.give_up
        self._forget = self._session.observe(self._see)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._forget()
        if self._task is None:
            return
        self._turns.asked.pop(self._task, None)
        if not self._is_given_up:
            return
        if self._task.uncancel() == 0 and kind is asyncio.CancelledError:
            raise overtaken() from None

    def give_up(self) -> None:
        """End the waiting for a result that could not be stored any more."""
        if self._task is not None and not (self._is_given_up or self._is_storing):
            self._is_given_up = True
            self._task.cancel()

    @contextlib.asynccontextmanager
    async def storing(self, _: Core) -> AsyncIterator[None]:
        """Hold the session to store the result in it, while no turn runs.

        Raises ResizeError (`overtaken`) when what was asked about is not there any more.
        """
        while True:
            over = asyncio.Event()
            self._turns.when_over(over.set)
            await over.wait()
            self._check()
            async with self._writing(self._session):
                self._check()
                if self._turns.running is None:
                    self._is_storing = True
                    yield
                    return

    def _check(self) -> None:
        if self._is_rewritten or self._manager.current is not self._session:
            raise overtaken()

    def _see(self, _: int, changes: tuple[Change, ...]) -> None:
        if not self._is_storing and not all(map(_leaves_messages, changes)):
            self._is_rewritten = True
            self._loop.call_soon_threadsafe(self.give_up)


def overtaken() -> ResizeError:
    """The error for a result that came too late."""
    return ResizeError(
        "The session changed while a model was asked about it; nothing was changed, try again",
        reason="overtaken",
    )


def is_overtaken(error: Exception) -> bool:
    """Whether an error only says that a result came too late."""
    return isinstance(error, ResizeError) and error.data.get("reason") == "overtaken"


def _leaves_messages(change: Change) -> bool:
    """Whether the messages that were there still say the same, and may still leave the window."""
    if isinstance(change, Set):
        return "pins" not in change.fields
    return isinstance(change, Add | Evict | Cover | SetState | DeleteState)
