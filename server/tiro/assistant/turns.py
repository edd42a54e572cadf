"""The turns of the current session: one at a time, and what waits for its end."""

import contextlib
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from tiro.agents.turn_input import Turn
from tiro.assistant.running_turn import EventListener, RunningTurn
from tiro.errors import InvalidInputError, TurnInProgressError, TurnNotFoundError
from tiro.session.session import Session


class Turns:
    """At most one running turn."""

    def __init__(self, on_event: EventListener) -> None:
        self._on_event = on_event
        self._waiting: list[Callable[[], None]] = []
        self.running: RunningTurn | None = None

    def refuse_another(self) -> None:
        """Raise TurnInProgressError while one runs."""
        if self.running is not None:
            raise TurnInProgressError(
                "A turn is running in this session; wait for its end or cancel it",
                turn_id=self.running.turn_id,
            )

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
        """Do it when no turn runs: at once, or at the end of the one that does."""
        if self.running is None:
            action()
        else:
            self._waiting.append(action)

    async def cancel(self, turn_id: str | None = None) -> bool:
        """Stop the running turn; False when none runs, TurnNotFoundError for another id."""
        running = self._found(turn_id)
        if running is None:
            return False
        await running.stop()
        return True

    def steer(self, text: str, turn_id: str | None = None) -> None:
        """Add a user message before the next step of the running turn.

        It survives a kill from now on. Raises InvalidInputError for a blank text, TurnNotFoundError
        when no turn runs or it takes nothing any more.
        """
        if not text.strip():
            raise InvalidInputError("The text is empty; write what to tell the turn")
        running = self._found(turn_id)
        if running is None or not running.steer(text):
            raise TurnNotFoundError(
                "No turn is running that could take this; send it as a prompt", turn_id=turn_id
            )

    def _found(self, turn_id: str | None) -> RunningTurn | None:
        running = self.running
        if turn_id is not None and (running is None or running.turn_id != turn_id):
            raise TurnNotFoundError(f"The turn {turn_id!r} is not running", turn_id=turn_id)
        return running

    def _over(self) -> None:
        """The turn has ended and its session is clean: whatever waited for this happens now."""
        self.running = None
        waiting, self._waiting = self._waiting, []
        for action in waiting:
            action()


def new_turn_id() -> str:
    """An id that no other turn has."""
    return uuid4().hex
