"""The state of the current session, the caller's own: its keys read, set and deleted."""

from typing import TYPE_CHECKING, Any

from tiro.session.changes import DeleteState, SetState

if TYPE_CHECKING:
    from tiro.assistant.assistant import Assistant


class State:
    """Keys and values that mean something to the caller alone."""

    def __init__(self, assistant: "Assistant") -> None:
        self._assistant = assistant

    async def get(self, key: str) -> tuple[bool, Any]:
        """Whether the state has this key, and its value."""
        return key in self._assistant.session.state, self._assistant.session.state.get(key)

    async def set(self, key: str, value: Any) -> None:
        """Set a key of the caller's own state."""
        async with self._assistant.changing() as session:
            session.commit(SetState(key, value, session.stamp()))

    async def delete(self, key: str) -> bool:
        """Delete a key of the state; whether there was one."""
        async with self._assistant.changing() as session:
            there = key in session.state
            if there:
                session.commit(DeleteState(key, session.stamp()))
            return there
