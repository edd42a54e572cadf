"""A session while a model is asked about it: what is written is stored between turns, or dropped.

While a model writes, everything else goes on. Messages that are added meanwhile are kept and follow
the result (U4.5); whoever ends the session, takes messages back, edits or pins one, wins (N4.8).
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
        self._is_rewritten = False

    def __enter__(self) -> Self:
        self._forget = self._session.observe(self._see)
        return self

    def __exit__(self, *_: object) -> None:
        self._forget()

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
                    yield
                    return

    def _check(self) -> None:
        if self._is_rewritten or self._manager.current is not self._session:
            raise overtaken()

    def _see(self, _: int, changes: tuple[Change, ...]) -> None:
        self._is_rewritten |= not all(map(_leaves_messages, changes))


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
