"""What may be done to the messages of a session: add, answer, take back, edit, clear, pin."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from tiro.errors import InvalidInputError, InvalidMessageError
from tiro.session import foreign
from tiro.session.changes import Clear, Edit, Set, TakeBack
from tiro.session.core import Core, OldestFirst
from tiro.session.cut import group_ends, group_of
from tiro.session.messages import (
    KNOWN_BLOCKS,
    MARKS,
    OWN_ROLES,
    Content,
    Message,
    OpaqueBlock,
    ToolResultBlock,
    ToolUseBlock,
    as_message,
    blocks_of,
    copied,
    read_block,
    stored_blocks,
    tool_results_of,
    tool_uses_of,
)

Messages: TypeAlias = Message | Mapping[str, Any] | Iterable[Message | Mapping[str, Any]]
"""One message or several."""


def add(core: Core, message: Message | Mapping[str, Any]) -> tuple[list[Message], int]:
    """Append a message; a tool message with several results becomes one message per result (M1.4).

    Returns the messages as stored and how many were evicted. Raises KeyError for a dict without
    role or content, and then changes nothing.
    """
    return _append(core, _given(message))


def add_all(core: Core, messages: Messages) -> None:
    """Append one message or many, all of them or (KeyError, TypeError) none (A9.5).

    Marks of a session that they were read from stay behind.
    """
    given = _all_given(messages)
    with core.lock:
        for message in given:
            _append(core, message)


def set_all(core: Core, messages: Messages) -> None:
    """Put these messages in the place of both histories; the memo stays (A9.4)."""
    given = _all_given(messages)
    with core.lock:
        clear(core, keep_memo=True)
        for message in given:
            _append(core, message)


def checked(fields: dict[str, Any]) -> Message:
    """The message that a client sent, if it may become part of a conversation.

    Raises KeyError or TypeError (from `Message.from_dict`) for what is no message at all, and
    InvalidMessageError for a role or block that breaks the rules. Marks under `metadata.tiro`
    are ours and are dropped; seq is given by the session.
    """
    message = Message.from_dict({k: v for k, v in fields.items() if k != "seq" and v is not None})
    if message.role not in OWN_ROLES:
        roles = ", ".join(OWN_ROLES)
        raise _invalid(f"The role must be one of {roles}, not {message.role!r}")
    if message.role == "tool" and message.tool_call_id is None:
        _check_tool_content(message.content)
    for block in () if isinstance(message.content, str) else stored_blocks(message.content):
        _check_block(block)
    if message.metadata and MARKS in message.metadata:
        kept = {key: value for key, value in message.metadata.items() if key != MARKS}
        return Message.from_dict({**message.to_dict(), "metadata": kept})
    return message


def check_answers(core: Core, message: Message) -> None:
    """Refuse results for a tool use that is unknown or already answered (M2.5).

    Raises InvalidMessageError naming the tool use. O(window) for a message with results.
    """
    results = tool_results_of(message)
    if not results:
        return
    open_ids = open_tool_uses(core.newest_first)
    for result in results:
        if result.tool_use_id not in open_ids:
            raise InvalidMessageError(
                f"No open tool use has the id {result.tool_use_id!r}: it is unknown or was"
                " answered before",
                tool_use_id=result.tool_use_id,
                reason="no_open_tool_use",
            )
        open_ids.remove(result.tool_use_id)


def answer(tool_use_id: str, result: str | list[Any], is_error: bool = False) -> Message:
    """The tool message that answers a tool use."""
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": tool_use_id, "content": result}
    return Message("tool", {**block, "is_error": True} if is_error else block)


def time_id(time: datetime, number: int = 0) -> str:
    """An id made of the local time, such as `session-20261128-093000`; a number is a suffix."""
    return f"session-{time.astimezone():%Y%m%d-%H%M%S}" + (f"-{number:02d}" if number else "")


def named(core: Core) -> str:
    """The session's id; one without gets a time stamp, kept from then on (M2.8)."""
    with core.lock:
        if core.id is None:
            core.change(id=time_id(core.clock()))
        return core.id or ""


def open_tool_uses(newest_first: Iterable[Message]) -> set[str]:
    """The ids of all tool uses that no later message answers."""
    answered: set[str] = set()
    open_ids: set[str] = set()
    for message in newest_first:
        for use in tool_uses_of(message):
            if use.id in answered:
                answered.discard(use.id)
            else:
                open_ids.add(use.id)
        answered.update(result.tool_use_id for result in tool_results_of(message))
    return open_ids


def rewind(core: Core, to_seq: int) -> int:
    """Take back all messages of the window after `to_seq`; 0 takes back all (U1.4).

    A tool group on both sides of the boundary is taken back as a whole. Returns how many were
    taken back. Raises InvalidInputError for a seq that is not in the window.
    """
    with core.lock:
        rows = core.oldest_first()
        seqs = [row.seq for row in rows]
        if to_seq != 0 and to_seq not in seqs:
            raise _not_there(core, to_seq)
        keep = group_ends(rows, seqs.index(to_seq) + 1 if to_seq else 0)
        gone = [row.seq for row in rows[keep:] if row.seq is not None]
        if gone:
            core.commit(TakeBack(gone, core.stamp()))
        return len(gone)


def edit(core: Core, seq: int, content: Content) -> None:
    """Give a message of the window another content under the same seq.

    The earlier wording goes to the archive, taken back. Raises InvalidInputError for an unknown
    seq, InvalidMessageError for content that breaks the pairing of tool uses and results.
    """
    with core.lock:
        message = next((row for row in core.newest_first if row.seq == seq), None)
        if message is None:
            raise _not_there(core, seq)
        edited = checked({"role": message.role, "content": content})
        if _pairing(edited) != _pairing(message):
            raise _invalid(
                "An edit must keep the message's tool uses and results: their ids tie it to"
                " other messages"
            )
        core.commit(Edit(seq, content, core.stamp()))


def clear(core: Core, keep_memo: bool = False) -> None:
    """Empty the session: window, archive, summary, counters; id, agent, settings stay (U1.12)."""
    with core.lock:
        core.commit(Clear(keep_memo, core.stamp()))


def pin(core: Core, seq: int, pinned: bool = True) -> None:
    """Hold a message of the window, with its whole group, in the window (U2.8), or let it go."""
    with core.lock:
        rows = OldestFirst(core.newest_first)
        index = next((i for i, row in enumerate(rows) if row.seq == seq), None)
        if index is None:
            raise _not_there(core, seq)
        group = {rows[member].seq for member in group_of(rows, index)}
        pins = [kept for kept in core.pins if kept not in group]
        core.commit(Set({"pins": sorted([*pins, seq]) if pinned else pins}, core.stamp()))
        core.prune()  # what a pin held counts for max_history again


def _not_there(core: Core, seq: int) -> InvalidInputError:
    """The error for a message that is not in the window."""
    if any(row.seq == seq for row in core.archive_rows):
        return InvalidInputError(
            f"Message #{seq} has left the window: it can be read and searched, but not pinned or"
            " changed; undo the resize that took it out to have it back"
        )
    return InvalidInputError(f"There is no message #{seq}")


def _given(message: Message | Mapping[str, Any]) -> Message:
    """A message that shares nothing with what the caller holds (A1.10)."""
    return copied([as_message(message)])[0]


def _all_given(messages: Messages) -> list[Message]:
    if isinstance(messages, Message | Mapping):
        messages = [messages]
    given = [_given(message) for message in messages]
    marks: dict[str, None] = dict.fromkeys(
        ("pending", "taken_back", "window_only", *foreign.MARKED)
    )
    return [m.marked(**marks) for m in given]


def _append(core: Core, message: Message) -> tuple[list[Message], int]:
    with core.lock:
        added = [core.append(part) for part in _one_result_each(message)]
    return [stored for stored, _ in added], sum(evicted for _, evicted in added)


def _one_result_each(message: Message) -> list[Message]:
    """A tool message as messages of one result each, its content as an object."""
    if message.role != "tool" or not isinstance(message.content, list):
        return [message]
    blocks = message.content
    if not blocks or not all(isinstance(read_block(b), ToolResultBlock) for b in blocks):
        return [message]  # parts of one result, in the spelling with `tool_call_id`
    fields = message.to_dict()
    return [Message.from_dict({**fields, "content": block}) for block in blocks]


def _check_tool_content(content: Content) -> None:
    blocks = [content] if isinstance(content, dict) else content
    if isinstance(blocks, str) or not blocks:
        raise _invalid("A message of role tool must hold one tool_result block as its content")
    for block in blocks:
        if not isinstance(block, dict) or block.get("type") != "tool_result":
            raise _invalid("A message of role tool holds tool_result blocks and nothing else")


def _check_block(block: Any) -> None:
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        raise _invalid("Every content block must be an object with a string `type`")
    kind = block["type"]
    if kind in KNOWN_BLOCKS and isinstance(read_block(block), OpaqueBlock):
        raise _invalid(f"A {kind} block has a missing field or one of a wrong type")


def _pairing(message: Message) -> list[tuple[str, str]]:
    """What ties a message to others: the ids of its tool uses and results, in order."""
    ties = []
    for block in blocks_of(message):
        if isinstance(block, ToolUseBlock):
            ties.append(("use", block.id))
        elif isinstance(block, ToolResultBlock):
            ties.append(("result", block.tool_use_id))
    return ties


def _invalid(sentence: str) -> InvalidMessageError:
    return InvalidMessageError(sentence, reason=sentence)
