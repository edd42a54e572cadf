"""Messages as entries and back, without loss (U6).

A message yields an entry for each of its blocks; reserved keys of their metadata say which message
and which block that was, and the key `tiro` whatever an entry cannot say. An entry that was added
as one is a message with the mark ENTRY, which gives it back as it came, with nothing added.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import msgspec

from tiro.session.entries import (
    MESSAGE,
    THINKING,
    TOOL_CALL,
    TOOL_RESULT,
    Entry,
    EntryContent,
    MessageContent,
    ToolCallContent,
    ToolResultContent,
)
from tiro.session.json_text import encode
from tiro.session.large import OUTPUT
from tiro.session.messages import (
    ENTRY,
    MARKS,
    AttachmentBlock,
    Block,
    Content,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    blocks_of,
    opaque_label,
    read_block,
    result_text,
    stored_blocks,
    tool_results_of,
    tool_uses_of,
)
from tiro.session.times import exact_rfc3339, from_rfc3339

SEQ, BLOCK, CALL = "message_seq", "block", "call_id"
"""The reserved keys in the metadata of an entry that is a part of a message (U6.2)."""
_RAW, _REST, _LACKS, _LISTED = "raw", "rest", "lacks", "listed"
"""Under `tiro` in an entry's metadata: its block as stored; and of its message the fields that are
different, those that it lacks, and that its content is a list."""
_NOTES = (_RAW, _REST, _LACKS, _LISTED)


def entries_of(messages: Sequence[Message], scope: str = "") -> list[Entry]:
    """The entries of messages, in their order; `messages_of` gives the same messages back.

    The id of an entry is made of `scope` (a session's id), the message's seq and the block's
    position, so it is the same each time. Without a time a message's entries have that of 1970.
    """
    at, tools = datetime.fromtimestamp(0, UTC), tools_of(messages)
    return [entry for message in messages for entry in view(message, tools, scope, at)]


def messages_of(entries: Iterable[Entry]) -> list[Message]:
    """The messages whose entries these are, oldest first; an entry of none becomes one itself.

    The entries of one message stand together, in the order of their blocks.
    """
    messages, calls = list[Message](), OpenCalls()
    for parts in _grouped(entries):
        is_part = _position(parts[0]) is not None
        message = _assembled(parts) if is_part else message_of(parts[0], calls.id_for(parts[0]))
        calls.see(message)
        messages.append(message)
    return messages


def message_of(entry: Entry, call_id: str) -> Message:
    """The message that an added entry becomes; `call_id` ties tool calls and results together."""
    mark: dict[str, Any] = {"id": entry.id}
    if isinstance(entry.content, ToolResultContent):
        mark["tool"] = entry.content.tool
    role, block = _block(entry, call_id)
    content = _content(entry, block)
    time = exact_rfc3339(entry.timestamp)
    metadata = {key: value for key, value in entry.metadata.items() if key != MARKS}
    message = Message(role, content, timestamp=time, metadata=metadata).marked(**{ENTRY: mark})
    shown = _as_added(message, mark, entry.timestamp)
    for name in ("type", "content", "metadata"):
        value = getattr(entry, name)
        if not _is_same(value, getattr(shown, name)):
            mark[name] = msgspec.structs.asdict(value) if _is_typed(value) else value
    return message


def view(message: Message, tools: Mapping[str, str], scope: str, at: datetime) -> list[Entry]:
    """The entries of one message, in the order of its blocks; `at` stands for a time it lacks."""
    time = from_rfc3339(message.timestamp) or at
    if (mark := entry_mark(message)) is not None:
        return [_as_added(message, mark, time)]
    found = []
    for index, (raw, block) in enumerate(_blocks(message)):
        call = _call_id(block)
        kind, content = _shown(block, message, tools.get(call, ""))
        entry = Entry(
            id=str(uuid5(NAMESPACE_URL, f"tiro:{scope}/{message.seq}/{index}")),
            type=kind,
            timestamp=time,
            content=content,
            metadata={**_without_ours(message.metadata or {}), SEQ: message.seq, BLOCK: index},
        )
        if call:
            entry.metadata[CALL] = call
        if raw is not None and _block(entry, call)[1] != raw:
            _note(entry, _RAW, raw)
        found.append(entry)
    _note_rest(found[0], message, _fields(found))
    return found


def entry_mark(message: Message) -> dict[str, Any] | None:
    """What a message says of the entry that it was added as; None for any other message."""
    mark = message.marks().get(ENTRY)
    return mark if isinstance(mark, dict) and isinstance(mark.get("id"), str) else None


def says_less(entries: Iterable[Entry]) -> bool:
    """Whether entries say less of their message than there is, but for the notes beside them."""
    return any(_noted(entry, name, None) is not None for entry in entries for name in (_RAW, _REST))


def tools_of(messages: Iterable[Message]) -> dict[str, str]:
    """The name of the tool by the id of each tool use."""
    return {use.id: use.name for message in messages for use in tool_uses_of(message)}


class OpenCalls:
    """The tool calls that have no result yet, of what was seen so far."""

    def __init__(self) -> None:
        self._open: dict[str, str] = {}
        """The tool of each, by its id, the oldest first."""

    def see(self, message: Message) -> None:
        """Go on to the next message."""
        if isinstance(message.content, str) and not (message.tool_calls or message.tool_call_id):
            return  # most messages
        for use in tool_uses_of(message):
            self._open[use.id] = use.name
        for result in tool_results_of(message):
            self._open.pop(result.tool_use_id, None)

    def id_for(self, entry: Entry) -> str:
        """The id of the call that an entry is, or that it answers."""
        named = entry.metadata.get(CALL)
        if isinstance(named, str) and named:
            return named
        if isinstance(entry.content, ToolResultContent):
            tool = entry.content.tool
            return next((id for id, name in self._open.items() if name == tool), entry.id)
        return entry.id


def _as_added(message: Message, mark: Mapping[str, Any], time: datetime) -> Entry:
    """The entry that was added and became this message."""
    block = next(iter(blocks_of(message)), TextBlock(""))
    kind, content = _shown(block, message, str(mark.get("tool", "")))
    own = {key: value for key, value in (message.metadata or {}).items() if key != MARKS}
    metadata = mark.get("metadata")
    return Entry(
        id=mark["id"],
        type=mark.get("type", kind),
        timestamp=time,
        content=mark.get("content", content),
        metadata=metadata if isinstance(metadata, dict) else own,
    )


def _blocks(message: Message) -> list[tuple[Any, Block]]:
    """The blocks of a message, each as it is stored and in its typed form.

    None stands for the former where the content is no list of blocks, as in OpenAI's spelling.
    """
    found: list[tuple[Any, Block]]
    if message.tool_calls is not None or message.tool_call_id is not None:
        found = [(None, block) for block in blocks_of(message)]
    elif isinstance(message.content, str):
        found = [(None, TextBlock(message.content))]
    else:
        found = [(block, read_block(block)) for block in stored_blocks(message.content)]
    return found or [(None, TextBlock(""))]


def _shown(block: Block, message: Message, tool: str) -> tuple[str, Any]:
    """The type and the content of the entry that shows a block."""
    if isinstance(block, ToolUseBlock):
        return TOOL_CALL, ToolCallContent(block.name, block.input)
    if isinstance(block, ThinkingBlock):
        signature = {} if block.signature is None else {"signature": block.signature}
        return THINKING, {"text": block.thinking, **signature}
    if isinstance(block, ToolResultBlock):
        if block.is_error:
            return TOOL_RESULT, ToolResultContent(tool, False, None, result_text(block.content))
        output = message.marks().get(OUTPUT)
        result = output if isinstance(output, str) else block.content
        return TOOL_RESULT, ToolResultContent(tool, True, result, "")
    if isinstance(block, TextBlock | AttachmentBlock):
        return MESSAGE, MessageContent(message.role, block.text)
    label = "[image]" if isinstance(block, ImageBlock) else opaque_label(block)
    return MESSAGE, MessageContent(message.role, label)


def _block(entry: Entry, call_id: str) -> tuple[str, dict[str, Any]]:
    """The role and the block that say what an entry says."""
    content = entry.content
    if isinstance(content, MessageContent):
        return content.role, {"type": "text", "text": content.text}
    if isinstance(content, ToolCallContent) and isinstance(content.parameters, dict):
        use = {"type": "tool_use", "id": call_id, "name": content.tool}
        return "assistant", {**use, "input": content.parameters}
    if isinstance(content, ToolResultContent):
        result = {"type": "tool_result", "tool_use_id": call_id, "content": _told(content)}
        return "tool", result if content.success else {**result, "is_error": True}
    if entry.type == THINKING:
        content = content if isinstance(content, Mapping) else {"text": content}
        text, signature = content.get("text"), content.get("signature")
        block = {"type": "thinking", "thinking": text if isinstance(text, str) else _text(content)}
        signed = {"signature": signature} if isinstance(signature, str) else {}
        return "assistant", {**block, **signed}
    return "assistant", {"type": "text", "text": _text(content)}


def _content(entry: Entry, block: dict[str, Any]) -> Content:
    """A message's content of this one block, in the form that is usual for it."""
    if block["type"] == "text":
        return str(block["text"])
    return block if entry.type == TOOL_RESULT else [block]


def _told(content: ToolResultContent) -> str | list[Any]:
    """A result as a model reads it: an error before what there is beside it."""
    result = content.result
    if content.success and _is_blocks(result):
        return list(result)
    parts = [content.error, "" if result is None else _text(result)]
    return "\n".join(part for part in parts if part)


def _fields(parts: list[Entry]) -> dict[str, Any]:
    """The fields of the message whose entries these are, as far as they say it themselves."""
    first = parts[0]
    metadata = _without_ours(first.metadata)
    roles, blocks = zip(*(_block(part, part.metadata.get(CALL, "")) for part in parts), strict=True)
    said = [part.content.role for part in parts if isinstance(part.content, MessageContent)]
    whole = [_noted(part, _RAW, block) for part, block in zip(parts, blocks, strict=True)]
    is_usual = len(parts) == 1 and whole[0] is blocks[0]
    fields = {
        "role": said[0] if said else roles[0],
        "content": _content(first, blocks[0]) if is_usual else whole,
        "seq": first.metadata[SEQ],
        "timestamp": exact_rfc3339(first.timestamp),
        "metadata": metadata or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _note_rest(first: Entry, message: Message, told: dict[str, Any]) -> None:
    """Keep beside a message's first entry what its entries say otherwise than it, or not at all."""
    fields = message.to_dict()
    if lacks := sorted(told.keys() - fields.keys()):
        _note(first, _LACKS, lacks)
    rest = {k: v for k, v in fields.items() if k not in told or told[k] != v}
    if rest.get("content") == _in_list(told["content"]):
        del rest["content"]
        _note(first, _LISTED, True)
    if rest:
        _note(first, _REST, rest)


def _assembled(parts: list[Entry]) -> Message:
    """The message that these entries are parts of."""
    first, told = parts[0], _fields(parts)
    if _noted(first, _LISTED, False):
        told["content"] = _in_list(told["content"])
    lacks, rest = _noted(first, _LACKS, []), _noted(first, _REST, {})
    fields = {name: value for name, value in told.items() if name not in lacks}
    return Message.from_dict({**fields, **rest})


def _in_list(content: Any) -> list[Any]:
    """The content as a list of its one block."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else [content]


def _grouped(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Entries that are parts of one message together, each other one by itself."""
    parts: list[Entry] = []
    for entry in entries:
        here, last = _position(entry), _position(parts[-1]) if parts else None
        goes_on = here is not None and last is not None and here[0] == last[0] and here[1] > last[1]
        if parts and not goes_on:
            yield parts
            parts = []
        parts.append(entry)
    if parts:
        yield parts


def _position(entry: Entry) -> tuple[Any, int] | None:
    """Which block of which message the entry is; None for one that is no part of any."""
    block = entry.metadata.get(BLOCK)
    return (entry.metadata[SEQ], block) if SEQ in entry.metadata and type(block) is int else None


def _without_ours(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata without all that an entry has beside those of its message."""
    kept = {key: value for key, value in metadata.items() if key not in (SEQ, BLOCK, CALL, MARKS)}
    if isinstance(marks := metadata.get(MARKS), dict):
        own = {name: value for name, value in marks.items() if name not in _NOTES}
        return {**kept, MARKS: own} if own else kept
    return kept


def _note(entry: Entry, name: str, value: Any) -> None:
    """Keep beside an entry that was just made what it cannot say."""
    marks = entry.metadata.get(MARKS)
    entry.metadata[MARKS] = {**(marks if isinstance(marks, dict) else {}), name: value}


def _noted(entry: Entry, name: str, default: Any) -> Any:
    marks = entry.metadata.get(MARKS)
    return marks.get(name, default) if isinstance(marks, dict) else default


def _call_id(block: Block) -> str:
    if isinstance(block, ToolUseBlock):
        return block.id
    return block.tool_use_id if isinstance(block, ToolResultBlock) else ""


def _is_same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except Exception:  # of values of the caller, such as arrays of numbers
        return False


def _is_typed(value: Any) -> bool:
    return isinstance(value, EntryContent)


def _is_blocks(result: Any) -> bool:
    """Whether a result is a list of blocks that models take as one."""
    return isinstance(result, list) and all(
        isinstance(read_block(block), TextBlock | ImageBlock) and isinstance(block, dict)
        for block in result
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else encode(value).decode()
