"""What a list says of a stored session, brought up to date at the cost of what has changed."""

from collections.abc import Iterable

import msgspec

from tiro.session.changes import Add, Change, Cover, DeleteState, Evict, Set, SetState
from tiro.session.core import Core
from tiro.stores.index import first_line

_PLAIN = (Add, Cover, DeleteState, Evict, Set, SetState)
"""Changes that take nothing back: they only add messages, or move them to the archive."""


class About(msgspec.Struct, frozen=True):
    """A session in a few words."""

    title: str | None
    """Its own, else the first line of the first prompt."""
    agent: str | None
    messages: int
    """The messages in the window."""
    archived: int
    """Those that have left it and were not taken back."""
    saved_at: str
    bytes: int
    """The size of the snapshot and the changes since."""


class Heading:
    """Follows one session, so that a list never has to read its messages."""

    def __init__(self, core: Core) -> None:
        self._first: str | None = None
        self._read(core)

    def follow(self, core: Core, changes: Iterable[Change]) -> None:
        """Take in changes that were made since the last call."""
        changes = tuple(changes)
        if not all(isinstance(change, _PLAIN) for change in changes):
            self._read(core)
        elif self._first is None:
            self._first = first_line([c.message for c in changes if isinstance(c, Add)])

    def about(self, core: Core, saved_at: str, size: int) -> About:
        """The session in a few words, as it is now."""
        return About(
            title=core.title or self._first,
            agent=core.agent,
            messages=len(core.newest_first),
            archived=core.archived,
            saved_at=saved_at,
            bytes=size,
        )

    def _read(self, core: Core) -> None:
        self._first = first_line([*core.archive_rows, *core.oldest_first()])
