"""What a turn leaves in its session: messages, usage, "always" rules.

Once the session has been cleared under the turn, it leaves nothing more there.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from tiro.agents.calls import Call
from tiro.agents.events import Stored
from tiro.session.changes import Change, Clear, Set
from tiro.session.core import Core
from tiro.session.messages import Message, Usage
from tiro.session.queued import add_queued, queued


class Record:
    """The messages that one turn has added so far, and its usage.

    `gone` is set when the session is cleared under the turn (B62). `rules_in` is the session whose
    "always" rules hold, where that is another.
    """

    def __init__(self, session: Core, gone: asyncio.Event, rules_in: Core | None = None) -> None:
        self.session = session
        self._rules_in = rules_in or session
        self.first_seq = self.last_seq = 0
        self.usage = Usage()
        self.calls = list[Call]()
        """All that the model has called."""
        self._is_gone = False
        self._gone = gone
        self._loop = asyncio.get_running_loop()
        self.close = session.observe(self._notice)
        """Ends the watch over the session; called once."""

    def store(self, message: Message) -> list[Stored]:
        """Append a finished message to the session, where the journal has it at once."""
        if self._is_gone:
            return []
        stored, _ = self.session.append(message)
        return [self._counted(stored)]

    @property
    def has_queued(self) -> bool:
        """Whether the user has said something that is no message yet."""
        return not self._is_gone and bool(queued(self.session))

    def store_queued(self) -> list[Stored]:
        """Make user messages of what the user has said meanwhile."""
        return [] if self._is_gone else [self._counted(m) for m in add_queued(self.session)]

    def count(self, usage: Usage) -> None:
        """Add the usage of one step to that of the turn and of the session."""
        self.usage += usage
        self._set(usage=self.session.usage + usage)

    @property
    def remembered(self) -> Sequence[Any]:
        """The rules that the user has answered "always" to."""
        return self._rules_in.rules

    def remember(self, rules: Sequence[dict[str, Any]]) -> None:
        """Add rules that the user has answered "always" to."""
        if not self._is_gone and rules:
            session = self._rules_in
            session.commit(Set({"rules": [*session.rules, *rules]}, session.stamp()))

    def _counted(self, stored: Message) -> Stored:
        seq = stored.seq or 0
        self.first_seq = self.first_seq or seq
        self.last_seq = seq
        return Stored(seq, stored.role)

    def _set(self, **fields: Any) -> None:
        if not self._is_gone:
            self.session.commit(Set(fields, self.session.stamp()))

    def _notice(self, _: int, changes: tuple[Change, ...]) -> None:
        """Called by whoever changes the session, in any thread."""
        if any(isinstance(change, Clear) for change in changes):
            self._is_gone = True
            self._loop.call_soon_threadsafe(self._gone.set)
