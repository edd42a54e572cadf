"""The one legal cut: where the window may begin when it has to get shorter (U2).

A *group* is an assistant message with its tool uses and the messages that answer them. No cut
separates a group, so a provider never sees a result without its tool use or the other way round.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from tiro.session.messages import Message, seq_of, tool_results_of, tool_uses_of

Boundary = Literal["group", "user"]

STEERED = "steered"
"""The mark on what a user said to a running turn: it begins no new one."""


LastAnswer = Callable[[Iterable[str]], int | None]
"""No message with a greater seq answers one of these tool uses; None where that is not known."""


def legal_cut(
    messages: Sequence[Message],
    start: int,
    boundary: Boundary = "group",
    last_answer: LastAnswer = lambda _: None,
) -> int:
    """The index at which the kept part begins when it should begin at `start`.

    `messages` are oldest first. With boundary `group` (max_history, resize) the result is at least
    `start`, so the kept part is at most what was wanted, unless the newest group needs more room
    (U2.4). With `user` (trim) the kept part begins with a user message (N2.4), and 0 means that no
    such cut exists. Reads the part before the cut once, and of the rest, where that part holds a
    tool use, as much as `last_answer` says.
    """
    start = max(0, min(start, len(messages)))
    if boundary == "user":
        return _user_cut(messages, start)
    if start == 0:
        return 0
    newest_group = _group_start(messages, len(messages) - 1)
    start = min(start, newest_group)
    behind = _behind_answers(messages, start, last_answer)
    return behind if behind <= newest_group else _before_groups(messages, newest_group)


def group_ends(messages: Sequence[Message], end: int) -> int:
    """The largest number of messages up to `end` that ends with a whole group.

    What stays when everything from `end` on is taken back: a group with answers on both sides
    goes as a whole.
    """
    while True:
        earliest = end
        for index in range(end, len(messages)):
            for result in tool_results_of(messages[index]):
                call = _call_index(messages, index, result.tool_use_id)
                if call is not None and call < end:
                    earliest = min(earliest, call)
        if earliest == end:
            return end
        end = earliest


def group_of(messages: Sequence[Message], index: int) -> set[int]:
    """The indexes of the group that the message at `index` belongs to; just `index` if none."""
    call = index if tool_uses_of(messages[index]) else _group_start(messages, index)
    members = {index, call}
    if not tool_uses_of(messages[call]):
        return members
    for later in range(call + 1, len(messages)):
        for result in tool_results_of(messages[later]):
            if _call_index(messages, later, result.tool_use_id) == call:
                members.add(later)
    return members


def unread_group(messages: Sequence[Message]) -> set[int]:
    """The indexes of the group that its user has steered since: no model has read its results.

    Empty where the newest message is part of its group itself, or where another prompt came since.
    """
    index = len(messages) - 1
    while index >= 0 and is_steered(messages[index]):
        index -= 1
    if index in (-1, len(messages) - 1) or not tool_results_of(messages[index]):
        return set()
    return group_of(messages, index)


def is_steered(message: Message) -> bool:
    """Whether a message was said to a running turn."""
    return STEERED in message.marks()


def opens_turn(message: Message) -> bool:
    """Whether a message is what a user said, no answer to a tool use."""
    return message.role == "user" and not tool_results_of(message)


def _user_cut(messages: Sequence[Message], start: int) -> int:
    """The cut of N2.4: at `start`, else back to a user message, else forward to one, else 0."""
    if start == len(messages) or opens_turn(messages[start]):
        return start
    for index in range(start - 1, 0, -1):
        if opens_turn(messages[index]):
            return index
    for index in range(start + 1, len(messages)):
        if opens_turn(messages[index]):
            return index
    return 0


def _group_start(messages: Sequence[Message], index: int) -> int:
    """Where the group of the message at `index` begins: its earliest tool use, or itself."""
    calls = [
        call
        for result in tool_results_of(messages[index])
        if (call := _call_index(messages, index, result.tool_use_id)) is not None
    ]
    return min(calls, default=index)


def _call_index(messages: Sequence[Message], before: int, tool_use_id: str) -> int | None:
    """The latest message before index `before` that makes the tool use with this id."""
    for index in range(before - 1, -1, -1):
        if any(use.id == tool_use_id for use in tool_uses_of(messages[index])):
            return index
    return None


def _behind_answers(messages: Sequence[Message], start: int, last_answer: LastAnswer) -> int:
    """The first index from `start` on with no answer, at or after it, to what lies before it."""
    cut_away: set[str] = set()
    read = 0
    while True:
        for index in range(read, start):
            cut_away.update(use.id for use in tool_uses_of(messages[index]))
        if not cut_away:
            return start
        read, moved = start, start
        open_ids, last = set(cut_away), last_answer(cut_away)
        for index in range(start, len(messages)):
            if last is not None and seq_of(messages[index]) > last:
                break
            open_ids.difference_update(use.id for use in tool_uses_of(messages[index]))
            if any(result.tool_use_id in open_ids for result in tool_results_of(messages[index])):
                moved = index + 1
        if moved == start:
            return start
        start = moved


def _before_groups(messages: Sequence[Message], start: int) -> int:
    """The last index up to `start` that separates no group."""
    while True:
        calls = [
            call
            for index in range(start, len(messages))
            for result in tool_results_of(messages[index])
            if (call := _call_index(messages, index, result.tool_use_id)) is not None
        ]
        earliest = min(calls, default=start)
        if earliest >= start:
            return start
        start = earliest
