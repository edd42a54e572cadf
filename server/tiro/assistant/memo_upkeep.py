"""After a turn: reading into the memo what there was no time for before its reply, piece by piece.

Each piece is stored by itself, so a kill loses one at most. Whoever changes the memo meanwhile
wins, and what was not read then is read by the next resize.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable

from tiro.assistant.asked import is_overtaken
from tiro.session.core import Core
from tiro.session.memo_reading import Runs, behind, keep_up, read
from tiro.session.policy import Budget
from tiro.session.session import Session

REQUESTS = 4
"""How often a model is asked for one piece: a run that is too long for it is halved."""

MOST_SECONDS = 600.0
"""How long the reading of one piece may take."""
TOO_SLOW = "the model gave no whole answer in {:.0f} seconds"

Writing = Callable[[Core], contextlib.AbstractAsyncContextManager[None]]
"""The right to store something in a session; raises when it is not the current one any more."""

log = logging.getLogger(__name__)


class Upkeep:
    """The one reading that may run."""

    most_seconds = MOST_SECONDS

    def __init__(
        self,
        writing: Writing,
        budget: Callable[[], Budget | None],
        on_reading: Callable[[Core, str | None], None],
    ) -> None:
        """`on_reading` hears why a piece could not be read, or None for each that was."""
        self._writing, self._budget, self._on_reading = writing, budget, on_reading
        self._task: asyncio.Task[None] | None = None

    def start(self, session: Session) -> "asyncio.Task[None] | None":
        """Begin where the session's memo is behind; nothing that goes wrong is raised."""
        is_running = self._task is not None and not self._task.done()
        if session.memo_goal and not is_running:
            self._task = asyncio.create_task(self._run(session), name=f"memo {session.id}")
            return self._task
        return None

    async def close(self) -> None:
        """Cancel the reading; it begins anew with the next resize."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self, session: Session) -> None:
        goal = session.memo_goal
        try:
            while await self._has_read(session):
                pass
        except TimeoutError:
            self._on_reading(session, TOO_SLOW.format(self.most_seconds))
        except Exception as error:
            log.warning("The memo of session %s was not brought up to date: %s", session.id, error)
            if not is_overtaken(error):
                self._on_reading(session, str(error))
        finally:
            if session.memo_goal == goal:
                session.memo_goal = 0

    async def _has_read(self, session: Session) -> bool:
        """Read and store the next piece; False where there is none, or it could not be."""
        left, settings = behind(session), session.settings
        if not left or not settings.memo_is_enabled():
            return False
        memo, cursor, budget = session.memo, session.memo_cursor, self._budget()
        runs = Runs(settings.limit("chars"), budget.chunk() if budget else None, REQUESTS)
        async with asyncio.timeout(self.most_seconds):
            reading = await read(session, memo, left, settings, runs)
        if reading.count:
            async with self._writing(session):
                is_stored = keep_up(session, memo, cursor, reading)
        if reading.count or reading.refused is not None:
            self._on_reading(session, reading.refused)
        return bool(reading.count) and is_stored and reading.refused is None
