"""Saved sessions that nobody wants: to the trash, out of it, and gone for good."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from tiro.errors import InvalidInputError, TiroError
from tiro.stores.index import SavedSession
from tiro.stores.names import check_id
from tiro.stores.retention import Going, Plan, Rule, plan
from tiro.stores.trash import Deleted, Restored

if TYPE_CHECKING:
    from tiro.assistant.assistant import Assistant


NO_RULE = (
    "Give an age or a size (`--older-than 90d`, `--keep-under 500MB`), or set `retention` in the"
    " configuration"
)
PRUNED = (
    "{count} old session{s} went to the trash, as `retention` says; `tiro sessions trash` lists"
    " what is there"
)

Order: TypeAlias = AbstractAsyncContextManager[Any]
"""What is done inside is done between the requests of the client."""

log = logging.getLogger(__name__)


class Deletion:
    """What is done to saved sessions besides using them."""

    def __init__(self, assistant: "Assistant") -> None:
        self._assistant = assistant
        self._manager = assistant.manager

    async def discard(self, id: str) -> bool:
        """Move a saved session to the trash; deleting the current one begins an empty one.

        False where there is none. Raises TurnInProgressError, SessionInUseError, StorageError (also
        where it holds what cannot be stored: that would not come back), InvalidSessionIdError.
        """
        return await self._take_away(id, self._discard_whole)

    async def delete(self, id: str) -> bool:
        """Remove a saved session for good, and what the trash holds of that id; as `discard`."""
        was_saved = await self._take_away(id, self._manager.delete)
        was_in_trash = await asyncio.to_thread(self._manager.trash.empty, id)
        return was_saved or was_in_trash > 0

    async def deleted(self, limit: int | None, offset: int | None) -> tuple[Sequence[Deleted], int]:
        """A page of the trash, deleted last first, and how much is in it."""
        count = 100 if limit is None else limit
        return await asyncio.to_thread(self._manager.trash.page, count, offset or 0)

    async def restore(self, id: str) -> Restored:
        """Bring a session back from the trash; raises SessionNotFoundError, StorageError."""
        return await asyncio.to_thread(self._manager.trash.restore, id)

    async def empty(self, id: str | None) -> int:
        """Empty the trash, or remove what has this id; how many sessions that were."""
        return await asyncio.to_thread(self._manager.trash.empty, id)

    # By age and size

    async def plan(self, rule: Rule) -> Plan:
        """What would go by a rule, which one without limits takes from the settings.

        Never the current session, one that another process is at or that holds more than is
        stored, nor a damaged one. Raises InvalidInputError where nothing is limited.
        """
        wanted = self._configured() if rule.is_empty() else rule
        if wanted.is_empty():
            raise InvalidInputError(NO_RULE)
        return await asyncio.to_thread(self._plan, wanted)

    async def prune(self, going: Sequence[Going], order: Order) -> Sequence[Going]:
        """Move these to the trash, each of them in `order`; those that went.

        One that somebody is at by now, or has changed since the plan, stays.
        """
        gone = []
        for one in going:
            async with order:
                if await asyncio.to_thread(self._discard, one.saved):
                    gone.append(one)
        if gone:
            await self._tidy()
        return gone

    async def keep_order(self, order: Order) -> None:
        """Do what the settings say of old sessions and of the trash; each change in `order`.

        What went is told.
        """
        days = self._assistant.setup.settings.retention.trash_days
        if days is not None:
            oldest = self._manager.now() - timedelta(days=days)
            await asyncio.to_thread(self._manager.trash.drop_older, oldest)
        if self._configured().is_empty():
            return
        gone = await self.prune((await self.plan(Rule())).going, order)
        if gone:
            self._assistant.say(PRUNED.format(count=len(gone), s="" if len(gone) == 1 else "s"))

    def _configured(self) -> Rule:
        settings = self._assistant.setup.settings.retention
        megabytes = settings.max_total_mb
        size = None if megabytes is None else int(megabytes * 1_000_000)
        return Rule(settings.max_age_days, size)

    def _plan(self, rule: Rule) -> Plan:
        listing = self._manager.listing
        rows = listing.sessions()
        return plan(rows, rule, self._manager.now(), self._stays, listing.values_of)

    def _stays(self, saved: SavedSession) -> bool:
        current = self._manager.current
        if current is not None and current.id == saved.id:
            return True
        live = self._manager.live.of_id(saved.id)
        if not all(self._manager.is_stored(session) for session in live):
            return True
        return not self._is_found(saved) or self._manager.listing.is_open(saved)

    def _is_found(self, saved: SavedSession) -> bool:
        """Whether its id leads to it, and not to another file with the same one."""
        try:
            return str(self._manager.find(saved.id)) == saved.path
        except TiroError:
            return False

    def _discard_whole(self, id: str) -> bool:
        held_back = self._manager.live.held_back() if self._manager.autosave else ()
        for session in self._manager.live.of_id(id):
            if session in held_back:
                self._manager.save(session)
        return self._manager.discard(id)

    def _discard(self, planned: SavedSession) -> bool:
        try:
            return not self._stays(planned) and self._manager.discard(planned.id, planned)
        except TiroError as error:  # the others go all the same
            log.warning("A session stays that was to go: %s", error)
            return False

    async def _tidy(self) -> None:
        await asyncio.to_thread(self._manager.trash.tidy)
        await self._assistant.saved.forget_deleted()

    async def _take_away(self, id: str, take: Callable[[str], bool]) -> bool:
        check_id(id)
        current = self._manager.current
        is_current = current is not None and current.id == id
        if is_current:
            self._assistant.turns.refuse_another()
        is_done = await asyncio.to_thread(take, id)
        if is_current:
            self._manager.reset()
            self._assistant.turns.overtake()
        if is_done:
            await self._tidy()
        return is_done or is_current
