"""After a turn: the background summary of what left the window, so that no reply ever waits for it.

What fails goes on waiting, and a later turn tries again (N3.7), less and less often.
"""

import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from tiro.assistant.asked import is_overtaken
from tiro.assistant.setbacks import Setbacks
from tiro.session.core import Core
from tiro.session.session import Session
from tiro.stores.notices import Notice

if TYPE_CHECKING:
    from tiro.assistant.assistant import Assistant
    from tiro.session.summary import Summarizer

MOST_TURNS_SKIPPED = 15
"""How many turns a summary that failed again and again is not asked for, at most."""

NO_SUMMARY = (
    "The summary of this conversation is not up to date: {}. What left the window is kept, and it"
    " is tried again after a later turn"
)

log = logging.getLogger(__name__)


class SummaryUpkeep:
    """Starts the summary of the current session, where it is due."""

    def __init__(self, assistant: "Assistant", on_notice: Callable[[Notice], None]) -> None:
        self._assistant = assistant
        self._on_notice = on_notice
        self._summarizers: set[Summarizer] = set()
        self._setbacks = Setbacks()
        self._skipped = 0
        """For how many turns none was asked for, since the last one failed."""

    async def start(self, session: Session) -> None:
        """Begin to write it, where it is due; never raises."""
        if not self._is_due(session):
            return
        try:
            await self._begin(session)
        except Exception as error:
            log.warning("No summary of session %s: %s; it is tried again", session.id, error)
            self._failed(session, error)

    async def close(self) -> None:
        """End what runs; what it was about goes on waiting."""
        for summarizer in tuple(self._summarizers):
            await summarizer.close()

    def _is_due(self, session: Session) -> bool:
        enabled = session.settings["session.summary.enabled"]
        if not enabled or session.summary_in_progress or not session.pending():
            return False
        failures = self._setbacks.of(session)
        if self._skipped < min(2 ** max(0, failures - 1) - 1, MOST_TURNS_SKIPPED):
            self._skipped += 1
            return False
        self._skipped = 0
        return True

    async def _begin(self, session: Session) -> None:
        summarizer = await self._assistant.memory.summarizer(session)
        if session.summary_in_progress or self._assistant.manager.current is not session:
            return
        summarizer.storing, summarizer.on_failure = self._storing, self._failed
        self._summarizers.add(summarizer)
        task = summarizer.fire_and_forget(session, None, session.pending(), session.summary)
        task.add_done_callback(lambda _: self._summarizers.discard(summarizer))
        self._assistant.turns.beside(task)

    @contextlib.asynccontextmanager
    async def _storing(self, session: Core) -> AsyncIterator[None]:
        async with self._assistant.memory.current(session):
            yield
        self._setbacks.end(session)
        self._on_notice(Notice("summary", session, {}))

    def _failed(self, session: Core, error: Exception) -> None:
        """Count it; the user hears of the first one in a row."""
        if self._assistant.manager.current is not session or is_overtaken(error):
            return
        if self._setbacks.is_first(session):
            self._assistant.say(NO_SUMMARY.format(error))
