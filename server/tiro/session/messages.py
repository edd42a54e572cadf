"""Messages and their content blocks, as they are stored and as typed readings of that.

A message's content is the user's data and is kept exactly as it came: a string, one block, or a
list of blocks, where a block is a plain dict with a `type`. The block classes below are typed
*readings* of such dicts (`blocks_of`); writing goes through the dict, so unknown blocks, unknown
fields, key order and integers of any size survive every round trip.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from tiro.session.json_text import decode

Content: TypeAlias = str | list[Any] | dict[str, Any]
StopReason = Literal[
    "end_turn", "max_tokens", "max_steps", "tool_use", "refusal", "cancelled", "error"
]

OWN_ROLES = ("user", "assistant", "tool", "system")
"""The roles a client may send; imported sessions may hold others, and keep them."""

MARKS = "tiro"
"""The reserved key in a message's metadata under which Tiro keeps its own marks."""

ENTRY = "entry"
"""Tiro's mark on a message that was added as an entry: its id, and what no message can say."""


class Message(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False
):
    """One role and its content; `seq` and `timestamp` are given by the session it belongs to.

    Reads like a mapping too: `m["role"]`, `m.get("name")`, `dict(m)`. A message is never changed
    in place. Fields that Tiro does not know are kept in `extra`.
    """

    role: str
    content: Content
    seq: int | None = None
    timestamp: str | None = None
    name: str | None = None
    tool_calls: list[Any] | None = None
    tool_call_id: str | None = None
    metadata: dict[str, Any] | None = None
    # The odd name and the length keep a decoder out of it: unknown fields come in by `from_dict`.
    extra: Annotated[dict[str, Any], msgspec.Meta(max_length=0)] = msgspec.field(
        default_factory=dict, name="$extra"
    )

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Message":
        """Make a message of any dict with a role and content; whatever else is in it is kept.

        Raises KeyError without `role` or `content`, TypeError for a role that is no string or
        content that is neither string, object nor list.
        """
        role, content = fields["role"], fields["content"]
        if not isinstance(role, str):
            raise TypeError("A message's role must be a string")
        if content is None and fields.get("tool_calls"):
            content = ""  # OpenAI's way to say that an assistant message has tool calls only
        if not isinstance(content, str | list | dict):
            raise TypeError("A message's content must be a string, a block or a list of blocks")
        known: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        for key, value in fields.items():
            if key in ("role", "content"):
                continue
            fits = key in _KINDS and isinstance(value, _KINDS[key]) and type(value) is not bool
            (known if fits else extra)[key] = value
        return cls(role, content, **known, extra=extra)

    def to_dict(self) -> dict[str, Any]:
        """The message as plain values, in the form of the session file."""
        fields: dict[str, Any] = {}
        for key in _FIELDS:
            value = getattr(self, key)
            if value is not None:
                fields[key] = value
        return {**fields, **{k: v for k, v in self.extra.items() if k not in fields}}

    def marks(self) -> dict[str, Any]:
        """Tiro's own marks on this message, such as `pending`; an empty dict when it has none."""
        marks = self.metadata.get(MARKS) if self.metadata else None
        return marks if isinstance(marks, dict) else {}

    def marked(self, **marks: Any) -> "Message":
        """A copy with these marks set; a mark of None is taken away."""
        kept = {key: value for key, value in {**self.marks(), **marks}.items() if value is not None}
        if kept == self.marks():
            return self
        metadata = {key: value for key, value in (self.metadata or {}).items() if key != MARKS}
        if kept:
            metadata[MARKS] = kept
        return msgspec.structs.replace(self, metadata=metadata or None)

    def keys(self) -> list[str]:
        """The names of the fields that this message has."""
        return list(self.to_dict())

    def get(self, key: str, default: Any = None) -> Any:
        """The field `key`, or `default` where the message has none."""
        value = getattr(self, key) if key in _FIELDS else self.extra.get(key)
        return default if value is None else value

    def __getitem__(self, key: str) -> Any:
        if key in _FIELDS and (value := getattr(self, key)) is not None:
            return value
        return self.extra[key]

    def __contains__(self, key: object) -> bool:
        return key in self.to_dict()

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())


_FIELDS = tuple(name for name in Message.__struct_fields__ if name != "extra")
_KINDS: dict[str, type | tuple[type, ...]] = {
    "seq": int,
    "timestamp": str,
    "name": str,
    "tool_calls": list,
    "tool_call_id": str,
    "metadata": dict,
}


class TextBlock(msgspec.Struct, frozen=True, tag="text"):
    """Text of the user or the model."""

    text: str


class ThinkingBlock(msgspec.Struct, frozen=True, tag="thinking"):
    """What a model thought before it answered; a signature goes back byte for byte."""

    thinking: str
    signature: str | None = None


class ToolUseBlock(msgspec.Struct, frozen=True, tag="tool_use"):
    """The model's wish to run a tool."""

    id: str
    name: str
    input: dict[str, Any]


class ToolResultBlock(msgspec.Struct, frozen=True, tag="tool_result"):
    """What a tool answered to the tool use with this id."""

    tool_use_id: str
    content: str | list[Any]
    is_error: bool = False


class ImageBlock(msgspec.Struct, frozen=True, tag="image"):
    """A picture: `source` holds its type, media type, and data (base64) or url."""

    source: dict[str, Any]


class AttachmentBlock(msgspec.Struct, frozen=True, tag="attachment"):
    """What an editor added to a prompt: a file, a selection, a buffer, diagnostics, text."""

    kind: str
    text: str
    path: str | None = None
    range: dict[str, Any] | None = None


class OpaqueBlock(msgspec.Struct, frozen=True):
    """A block of a type that Tiro does not know; `data` is the block as it came."""

    data: dict[str, Any]


REDACTED_THINKING = "redacted_thinking"
"""The type of an opaque block with reasoning that only its provider can read."""


def opaque_label(block: OpaqueBlock) -> str:
    """What stands for the block where only text can stand; nothing for reasoning."""
    kind = block.data.get("type", "block")
    return "" if kind == REDACTED_THINKING else f"[{kind}]"


KnownBlock: TypeAlias = (
    TextBlock | ThinkingBlock | ToolUseBlock | ToolResultBlock | ImageBlock | AttachmentBlock
)
Block: TypeAlias = KnownBlock | OpaqueBlock

KNOWN_BLOCKS: dict[str, type[Any]] = {
    "text": TextBlock,
    "thinking": ThinkingBlock,
    "tool_use": ToolUseBlock,
    "tool_result": ToolResultBlock,
    "image": ImageBlock,
    "attachment": AttachmentBlock,
}


class Usage(msgspec.Struct, frozen=True):
    """Tokens that a provider reported; `input_tokens` never contains the cached ones."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None

    def tokens(self) -> int:
        """All tokens together."""
        read = self.input_tokens + self.cache_read_tokens + self.cache_write_tokens
        return read + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            sum(costs) if costs else None,
        )


def read_block(block: Any) -> Block:
    """Read one stored block as its typed form.

    What is no well-formed block of a known type comes back as an OpaqueBlock. Costs about 1 µs.
    """
    if not isinstance(block, dict):
        return TextBlock(block) if isinstance(block, str) else OpaqueBlock({"value": block})
    kind = KNOWN_BLOCKS.get(block.get("type", "")) if isinstance(block.get("type"), str) else None
    if kind is None:
        return OpaqueBlock(block)
    try:
        typed: Block = msgspec.convert(block, kind)
    except msgspec.ValidationError:
        return OpaqueBlock(block)
    return typed


def stored_blocks(content: Content) -> list[Any]:
    """The content as a list of stored blocks: a string is one text block, a dict a list of one."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [content] if isinstance(content, dict) else content


def blocks_of(message: Message) -> list[Block]:
    """All blocks of a message as typed values, in order, both spellings of tool data included.

    `tool_calls` and `tool_call_id` (the OpenAI spelling) read as tool_use and tool_result blocks.
    """
    content = message.content
    if message.tool_call_id is not None and message.role == "tool":
        value = [content] if isinstance(content, dict) else content
        if not any(isinstance(read_block(b), ToolResultBlock) for b in stored_blocks(content)):
            return [ToolResultBlock(message.tool_call_id, value)]
    if isinstance(content, str):  # most messages
        blocks: list[Block] = [TextBlock(content)]
    else:
        blocks = [read_block(block) for block in stored_blocks(content)]
    if message.tool_calls is None:
        return blocks
    known = {block.id for block in blocks if isinstance(block, ToolUseBlock)}
    calls = [_read_tool_call(call) for call in message.tool_calls]
    if content == "":
        blocks = []
    return blocks + [call for call in calls if call is not None and call.id not in known]


def tool_uses_of(message: Message) -> list[ToolUseBlock]:
    """The tool uses of an assistant message, in order; none for any other role."""
    if message.role != "assistant" or (
        isinstance(message.content, str) and message.tool_calls is None
    ):
        return []
    return [block for block in blocks_of(message) if isinstance(block, ToolUseBlock)]


def tool_results_of(message: Message) -> list[ToolResultBlock]:
    """The tool results a message carries; ours are in messages of role tool, one in each.

    Imported messages of role user may carry some too (Anthropic's form).
    """
    if isinstance(message.content, str) and message.tool_call_id is None:
        return []
    if message.role not in ("tool", "user"):
        return []
    return [block for block in blocks_of(message) if isinstance(block, ToolResultBlock)]


def text_of(message: Message) -> str:
    """The text of a message: its text blocks joined by line breaks; thinking is not text."""
    if isinstance(message.content, str):
        return message.content
    texts = [block.text for block in blocks_of(message) if isinstance(block, TextBlock)]
    return "\n".join(texts)


def result_text(content: str | list[Any]) -> str:
    """The text of a tool result's content; an image in it is shown as `[image]`."""
    if isinstance(content, str):
        return content
    parts = []
    for block in map(read_block, content):
        if isinstance(block, TextBlock | AttachmentBlock):
            parts.append(block.text)
        elif isinstance(block, OpaqueBlock):
            parts.append(f"[{block.data.get('type', 'block')}]")
        else:
            parts.append(f"[{block.__struct_config__.tag}]")
    return "\n".join(parts)


def as_message(item: Message | Mapping[str, Any]) -> Message:
    """A message as it is, a dict as one; KeyError for one without role or content."""
    return item if isinstance(item, Message) else Message.from_dict(dict(item))


def seq_of(message: Message) -> int:
    """The seq of a message; 0 for one that is in no session."""
    return message.seq or 0


def seqs_of(messages: Iterable[Message]) -> list[int]:
    """The seqs of the messages that are in a session, in their order."""
    return [message.seq for message in messages if message.seq is not None]


def copied(messages: Iterable[Message]) -> list[Message]:
    """Copies that share nothing that can be changed."""
    return [
        msgspec.structs.replace(m, extra={}) if _is_plain(m) else copy.deepcopy(m) for m in messages
    ]


def recent(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Role, content and what belongs to tool calls of each message, as dicts."""
    names = ("role", "content", "tool_calls", "tool_call_id", "name")
    rows = [message.to_dict() for message in messages]
    return [{name: row[name] for name in names if name in row} for row in rows]


def flat(message: Message) -> Message | dict[str, Any]:
    """The message as `encode` must be given it: itself, or a dict when it has unknown fields."""
    return message.to_dict() if message.extra else message


def _is_plain(message: Message) -> bool:
    """Whether nothing inside the message could be changed in place."""
    return (
        isinstance(message.content, str)
        and message.metadata is None
        and message.tool_calls is None
        and not message.extra
    )


def _read_tool_call(call: Any) -> ToolUseBlock | None:
    """One entry of an OpenAI `tool_calls` field; None when it has no function name."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return None
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = decode(arguments) if arguments.strip() else {}
        except ValueError:
            arguments = {"raw": arguments}
    tool_id = call.get("id")
    return ToolUseBlock(
        tool_id if isinstance(tool_id, str) else "",
        function["name"],
        arguments if isinstance(arguments, dict) else {},
    )
