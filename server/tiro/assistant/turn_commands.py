"""The commands that a turn ran, out of its session: an undo of its edits leaves that done."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tiro.agents.tool_uses import COMMANDS, NOTHING_RUN
from tiro.errors import TiroError
from tiro.session.hidden import visible
from tiro.session.messages import Message, seq_of, tool_results_of, tool_uses_of
from tiro.session.times import from_rfc3339
from tiro.stores.manager import SessionManager
from tiro.tools.shell import is_reading

if TYPE_CHECKING:
    from tiro.session.core import Core

MAX_CHARS = 100
"""So much of a command is told, on one line."""


def commands_beside(
    manager: SessionManager, session_id: str | None, times: Sequence[str]
) -> list[str]:
    """The commands of the turn that made edits at these times (RFC 3339), in short, each once.

    Without those that only read. Empty where the session is not stored any more, or cannot be
    read.
    """
    try:
        messages = _messages(manager, session_id)
    except TiroError:
        return []
    turns = [_turn_at(messages, time) for time in times]
    found = dict.fromkeys(command for turn in turns for command in _commands(turn))
    return list(map(_in_short, found))


def _messages(manager: SessionManager, id: str | None) -> Sequence[Message]:
    session: Core | None = manager.current
    if id is not None and (session is None or session.id != id):
        session = manager.read(id)
    if session is None:
        return []
    with session.lock:
        return sorted([*session.archive_rows, *session.newest_first], key=seq_of)


def _turn_at(messages: Sequence[Message], time: str) -> Sequence[Message]:
    """The messages of the turn that ran then.

    What the user said between two steps of it begins no other one.
    """
    at = from_rfc3339(time)
    begins = [
        index
        for index, message in enumerate(messages)
        if message.role == "user" and (index == 0 or messages[index - 1].role != "tool")
    ]
    begun = [
        index
        for index in begins
        if at and (there := from_rfc3339(messages[index].timestamp)) and there <= at
    ]
    if not begun:
        return []
    return messages[begun[-1] : next((i for i in begins if i > begun[-1]), None)]


def _commands(turn: Sequence[Message]) -> list[str]:
    """Those of the turn itself, and those that sub-agents have run, which their results name."""
    found: list[str] = []
    for index, message in enumerate(turn):
        given = [
            use.input.get("command")
            for use in tool_uses_of(message)
            if use.name == "run_command" and _has_begun(use.id, turn[index + 1 :])
        ]
        found += [one for one in given if isinstance(one, str) and not is_reading(one)]
        within = message.marks().get(COMMANDS)
        found += [one for one in within or () if isinstance(one, str)]
    return found


def _has_begun(id: str, after: Sequence[Message]) -> bool:
    """Whether a command was run; where a kill kept its result away, it may have been.

    Its result is the next one with its id: some models give each step's tool uses the same ones.
    """
    results = (one for message in after for one in tool_results_of(message))
    result = next((one for one in results if one.tool_use_id == id), None)
    if result is None or not result.is_error:
        return True
    return not any(words in str(result.content) for words in NOTHING_RUN)


def _in_short(command: str) -> str:
    line = visible(" ".join(command.split()))
    return line if len(line) <= MAX_CHARS else f"{line[: MAX_CHARS - 1]}…"
