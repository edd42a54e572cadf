"""Texts that wait to become user messages: what the user says while a step of a turn still runs.

They are kept in the session itself, so that a kill loses none of them. Until its place in the
conversation is clear (behind the results of the running step), a text is no message yet.
"""

from typing import Any

from tiro.errors import InvalidInputError
from tiro.session.changes import Add, Change, Set
from tiro.session.core import Core
from tiro.session.cut import STEERED
from tiro.session.messages import MARKS, Message
from tiro.session.times import rfc3339

MAX_QUEUED = 50
MAX_QUEUED_CHARACTERS = 100_000
"""What may wait besides the first text, which may have any length."""

QUEUED = "queued"
"""The key of the texts under Tiro's own marks in the session's metadata."""


def queued(core: Core) -> list[str]:
    """The texts that wait, oldest first."""
    marks = core.metadata.get(MARKS)
    texts = marks.get(QUEUED) if isinstance(marks, dict) else None
    return [text for text in texts if isinstance(text, str)] if isinstance(texts, list) else []


def queue(core: Core, text: str) -> None:
    """Let a text wait; it is in the journal when this returns.

    Raises InvalidInputError where too much waits already: each one writes all of them again.
    """
    with core.lock:
        texts = [*queued(core), text]
        if len(texts) > MAX_QUEUED or (texts[1:] and sum(map(len, texts)) > MAX_QUEUED_CHARACTERS):
            raise InvalidInputError(
                "Too much waits for the next step of the turn; wait for it, or cancel the turn"
            )
        core.change(metadata=_with_queue(core, texts))


def add_queued(core: Core) -> list[Message]:
    """Make user messages of all texts that wait, in one write; the messages as stored."""
    with core.lock:
        texts = queued(core)
        if not texts:
            return []
        at = core.stamp()
        added = [
            Message("user", text, seq=core.next_seq + index, timestamp=rfc3339(core.updated))
            for index, text in enumerate(texts)
        ]
        added = [message.marked(**{STEERED: True}) for message in added]
        adds: list[Change] = [Add(message, at) for message in added]
        core.commit(*adds, Set({"metadata": _with_queue(core, [])}, at))
        core.prune()
        return added


def _with_queue(core: Core, texts: list[str]) -> dict[str, Any]:
    """The session's metadata with these texts waiting, without a trace of none."""
    found = core.metadata.get(MARKS)
    marks = {k: v for k, v in found.items() if k != QUEUED} if isinstance(found, dict) else {}
    if texts:
        marks[QUEUED] = texts
    metadata = {key: value for key, value in core.metadata.items() if key != MARKS}
    return {**metadata, MARKS: marks} if marks else metadata
