"""The messages of the current session, as a client changes them: add, answer, edit, take back."""

from typing import TYPE_CHECKING, Any

from tiro.assistant.pins import check_edit
from tiro.assistant.results import Added
from tiro.session import history
from tiro.session.messages import Content
from tiro.session.session import Session

if TYPE_CHECKING:
    from tiro.assistant.assistant import Assistant


class Messages:
    """What may be done to messages, each refused while a turn runs."""

    def __init__(self, assistant: "Assistant") -> None:
        self._assistant = assistant

    async def add(self, fields: dict[str, Any]) -> Added:
        """Add a client's message; refused while a turn runs. O(1), with results O(window)."""
        async with self._assistant.changing(during_turn=False) as session:
            message = history.checked(fields)
            history.check_answers(session, message)
            added, pruned = history.add(session, message)
            total, stored = len(session.newest_first), self._assistant.manager.is_stored(session)
            return Added(added[-1].seq or 0, total, pruned, stored)

    async def answer(
        self, tool_use_id: str, content: str | list[Any], is_error: bool | None = None
    ) -> Added:
        """Answer an open tool use; refused while a turn runs."""
        message = history.answer(tool_use_id, content, bool(is_error))
        return await self.add(message.to_dict())

    async def rewind(self, to_seq: int) -> Session:
        """Take back all messages after this one."""
        async with self._assistant.changing(during_turn=False) as session:
            history.rewind(session, to_seq)
            return session

    async def edit(self, seq: int, content: Content) -> Session:
        """Give a message another content; InvalidInputError where it is pinned and too long."""
        async with self._assistant.changing(during_turn=False) as session:
            check_edit(
                session, seq, content, self._assistant.setup.budget(self._assistant.context_size())
            )
            history.edit(session, seq, content)
            return session
