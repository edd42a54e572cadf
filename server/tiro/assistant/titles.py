"""Titles that the `title` agent writes, in the background, after a turn (M5.13).

Until one is there, or where none comes, the first line of the first prompt is the title (M4.5).
What the user names is never named again.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from tiro.agents.asking import Reply
from tiro.session.messages import Message, text_of
from tiro.session.session import Session
from tiro.session.transcript import first_line
from tiro.stores.notices import Notice

if TYPE_CHECKING:
    from tiro.assistant.assistant import Assistant

MAX_CHARACTERS = 50
MAX_SHOWN_CHARACTERS = 2_000
"""What the agent is shown of a message."""

MAX_TRIES = 3

log = logging.getLogger(__name__)


class Titles:
    """Names the current session, at most one at a time."""

    def __init__(self, assistant: "Assistant", on_notice: Callable[[Notice], None]) -> None:
        self._assistant = assistant
        self._on_notice = on_notice
        self._task: asyncio.Task[None] | None = None
        self._tried: tuple[Session | None, int] = (None, 0)

    def start(self, session: Session) -> None:
        """Begin to name it, where it is due; costs nothing where it is not."""
        is_busy = self._task is not None and not self._task.done()
        if not is_busy and self._is_due(session):
            self._task = asyncio.create_task(self._name(session))
            self._assistant.turns.beside(self._task)

    async def close(self) -> None:
        """End what runs; the session keeps the title that it has."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def _is_due(self, session: Session) -> bool:
        if self._assistant.setup.settings.session.titles != "model" or session.turns == 0:
            return False
        owner, tries = self._tried
        return _is_unnamed(session) and (owner is not session or tries < MAX_TRIES)

    async def _name(self, session: Session) -> None:
        owner, tries = self._tried
        self._tried = (session, tries + 1 if owner is session else 1)
        try:
            title = await self._asked(session)
            async with self._assistant.memory.current(session):
                if title is None or not _is_unnamed(session):
                    return
                session.change(title=title)
            self._on_notice(Notice("titled", session, {}))
        except Exception as error:
            log.warning("No title for session %s: %s; its first line stays", session.id, error)

    async def _asked(self, session: Session) -> str | None:
        agent = self._assistant.setup.agents.needed("title")
        chat = await self._assistant.memory.chat(session, agent)
        shown = "\n\n".join(_shown(message) for message in _beginning(session))
        messages = [
            {"role": "system", "content": agent.prompt},
            {"role": "user", "content": shown},
        ]
        return usable_title(await chat.chat(messages=messages))


def usable_title(reply: Reply) -> str | None:
    """The title in an answer; None where there is none that a person would take."""
    if reply.stop_reason != "end_turn" or reply.tool_uses:
        return None
    lines = [line.strip() for line in reply.text.strip().splitlines() if line.strip()]
    if len(lines) != 1:
        return None
    title = lines[0].strip("\"'`*#“”«»„ ").rstrip(".").strip("\"'`*“”«»„ ")
    return title if 0 < len(title) <= MAX_CHARACTERS else None


def _is_unnamed(session: Session) -> bool:
    """Whether nobody has named it: it has the title that its first prompt gave it."""
    with session.lock:
        return session.title is not None and session.title == first_line(session.each())


def _beginning(session: Session) -> list[Message]:
    """The first prompt and the first answer to it."""
    said = [m for m in session.full() if m.role in ("user", "assistant") and text_of(m).strip()]
    first = next((n for n, message in enumerate(said) if message.role == "user"), 0)
    answer = next((m for m in said[first:] if m.role == "assistant"), None)
    return [message for message in (*said[first : first + 1], answer) if message is not None]


def _shown(message: Message) -> str:
    return f"[{message.role.upper()}] {text_of(message)[:MAX_SHOWN_CHARACTERS]}"
