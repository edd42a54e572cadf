"""What a provider gets to see: a pure repair of a copy (U3), never of the stored history.

Providers refuse a request whose tool uses and results do not pair up, and refuse it again each
time, since the same history is sent again. So every request is built here, whatever cut, cancel,
crash or import left behind. Applied to its own output it changes nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tiro.session.messages import (
    MAX_NESTING,
    AttachmentBlock,
    Block,
    ImageBlock,
    Message,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    blocks_of,
    clean,
    is_nested_deeper,
)

INTERRUPTED = "The call was interrupted and its outcome is unknown."
"""Stands for the result of a tool use that was never answered (U3.4)."""

PLACEHOLDER = "(The conversation goes on.)"
"""Stands for a user message where a provider demands one and none is left (U3.6)."""

TOO_DEEP = "(This was nested too deeply to be sent.)"
SENT_NESTING = MAX_NESTING + 5
"""What a client or a model may give at most, and the block around it."""

SYSTEM_ROLES = ("system", "developer")

_PLACEHOLDER_BLOCK = {"type": "text", "text": PLACEHOLDER}


def provider_view(
    window: Iterable[Message | Mapping[str, Any]],
    archive: Iterable[Message | Mapping[str, Any]] = (),
    *,
    merge: bool = False,
    thinking: bool = False,
) -> list[Message]:
    """The messages of a request: oldest first, every tool use answered exactly once.

    `window` and `archive` are oldest first. The result holds messages of the roles user, assistant
    and tool whose content is a list of block dicts; a tool message holds exactly one tool_result.
    `merge` joins neighbours of one role (user, assistant), `thinking` keeps thinking blocks and the
    mark that says whose they are. System messages are left out: they belong to the system prompt
    (`standing_instructions`). Pure; O(n).
    """
    rows = [_as_message(item) for item in window]
    parts = _Parts(thinking)
    for row in rows:
        if not row.marks().get("taken_back"):
            parts.read(row)
    parts.keep_a_user()
    view = _begin_with_user(parts.turned(), archive)
    return _merged(view) if merge else view


def standing_instructions(full: Iterable[Message]) -> list[str]:
    """The texts of all system and developer messages of the history, in order (U3.9)."""
    texts = []
    for message in full:
        if message.role in SYSTEM_ROLES and not message.marks().get("taken_back"):
            texts += [b.text for b in blocks_of(message) if isinstance(b, TextBlock)]
    return [text for text in texts if not _is_blank(text)]


class _Parts:
    """The messages of a window taken apart: what is said, and which result answers which use."""

    def __init__(self, thinking: bool) -> None:
        self.thinking = thinking
        self.said: list[tuple[Message, list[dict[str, Any]]]] = []
        self.open: dict[str, list[str]] = {}
        self.taken: set[str] = set()
        self.answers: dict[str, tuple[Message, dict[str, Any]]] = {}
        """The first result for each tool use, by the id that the use has in the view."""

    def read(self, message: Message) -> None:
        """Read one message, oldest first; results find the latest earlier use with their id."""
        if message.role in SYSTEM_ROLES:
            return
        blocks = blocks_of(message)
        kept: list[dict[str, Any]] = []
        for position, block in enumerate(blocks):
            if isinstance(block, ToolResultBlock):
                self._answer(message, block)
            elif isinstance(block, ToolUseBlock) and message.role == "assistant":
                kept.append(self._use(message, position, block))
            elif (sent := self._sent(message.role, block)) is not None:
                kept.append(sent)
        if message.role != "tool":
            self.said.append((message, kept))

    def keep_a_user(self) -> None:
        """Where no user message says anything, the newest one says the placeholder (U3.6)."""
        users = [i for i, (message, _) in enumerate(self.said) if message.role != "assistant"]
        if users and not any(self.said[i][1] for i in users):
            self.said[users[-1]] = (self.said[users[-1]][0], [dict(_PLACEHOLDER_BLOCK)])

    def turned(self) -> list[Message]:
        """The messages in request order, each tool use followed by its one answer."""
        view: list[Message] = []
        for message, blocks in self.said:
            if not blocks:
                continue
            role = "assistant" if message.role == "assistant" else "user"
            view.append(self._message(role, blocks, message))
            for block in blocks:
                if role == "assistant" and block.get("type") == "tool_use":
                    view.append(self._result(message, block["id"]))
        return view

    def _message(self, role: str, blocks: list[dict[str, Any]], source: Message) -> Message:
        model = source.marks().get("model") if self.thinking and role == "assistant" else None
        return Message(role, blocks, seq=source.seq).marked(model=model)

    def _use(self, message: Message, position: int, block: ToolUseBlock) -> dict[str, Any]:
        tool_id = block.id
        if not tool_id or tool_id in self.taken:
            tool_id = f"call_{message.seq or len(self.said)}_{position}"
            while tool_id in self.taken:
                tool_id += "_"
        self.taken.add(tool_id)
        self.open[block.id] = [*self.open.get(block.id, []), tool_id]
        return clean_block(
            {"type": "tool_use", "id": tool_id, "name": block.name, "input": block.input}
        )

    def _answer(self, message: Message, block: ToolResultBlock) -> None:
        uses = self.open.get(block.tool_use_id)
        if not uses or uses[-1] in self.answers:
            return  # an orphan, or a second answer (U3.5, U3.3)
        result: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": uses[-1],
            "content": _result_content(block.content),
        }
        if block.is_error:
            result["is_error"] = True
        self.answers[uses[-1]] = (message, clean_block(result))

    def _result(self, message: Message, tool_id: str) -> Message:
        if tool_id in self.answers:
            source, result = self.answers[tool_id]
            return Message("tool", result, seq=source.seq)
        missing = {
            "type": "tool_result",
            "tool_use_id": tool_id,
            "content": INTERRUPTED,
            "is_error": True,
        }
        return Message("tool", missing, seq=message.seq)

    def _sent(self, role: str, block: Block) -> dict[str, Any] | None:
        """The block as a request holds it; None for what is not sent."""
        if isinstance(block, TextBlock):
            if _is_blank(block.text):
                return None
            foreign = role not in ("user", "assistant", "tool")
            text = f"[{role}] {block.text}" if foreign else block.text
            return clean_block({"type": "text", "text": text})
        if isinstance(block, ThinkingBlock):
            if not self.thinking or role != "assistant":
                return None
            kept = {"type": "thinking", "thinking": block.thinking}
            return kept if block.signature is None else {**kept, "signature": block.signature}
        if isinstance(block, AttachmentBlock):
            return clean_block(_without_none(block))
        if isinstance(block, ImageBlock):
            return clean_block({"type": "image", "source": block.source})
        if isinstance(block, OpaqueBlock):
            return _opaque(block, role, self.thinking)
        return None


def clean_block(block: dict[str, Any]) -> dict[str, Any]:
    """The block without lone surrogates (U3.8), and without what is nested too deeply to send."""
    if is_nested_deeper(block, SENT_NESTING):
        block = {key: _shallow(value) for key, value in block.items()}
    cleaned: dict[str, Any] = clean(block)
    return cleaned


def _shallow(value: Any) -> Any:
    """The value, or words in its place; an object stays one, as a tool's input must."""
    if not is_nested_deeper(value, SENT_NESTING - 1):
        return value
    if isinstance(value, dict):
        return {key: item if isinstance(item, str) else TOO_DEEP for key, item in value.items()}
    return TOO_DEEP


def _opaque(block: OpaqueBlock, role: str, thinking: bool) -> dict[str, Any] | None:
    """A block of another type as it came, when a request may hold it.

    A known type in a broken form (text that is no string) is never sent: it could only be refused.
    A redacted thinking block is the provider's own and goes where thinking goes.
    """
    kind = block.data.get("type")
    if kind == "redacted_thinking":
        return block.data if thinking and role == "assistant" else None
    if kind == "text" and isinstance(block.data.get("text"), str):
        text = block.data["text"]
        return None if _is_blank(text) else clean_block({"type": "text", "text": text})
    return None


def _result_content(content: str | list[Any]) -> str | list[Any]:
    """A result's content without blank text blocks; one that says nothing is the empty string."""
    if isinstance(content, str):
        return content
    kept = [
        block
        for block in content
        if isinstance(block, dict)
        and not (block.get("type") == "text" and _is_blank(str(block.get("text", ""))))
    ]
    return kept or ""


def _begin_with_user(
    view: list[Message], archive: Iterable[Message | Mapping[str, Any]]
) -> list[Message]:
    """Make the view begin with a user message, an earlier one or the placeholder (U3.2)."""
    if not view or view[0].role == "user":
        return view
    first = _latest_user(archive) or Message("user", [dict(_PLACEHOLDER_BLOCK)])
    return [first, *view]


def _latest_user(archive: Iterable[Message | Mapping[str, Any]]) -> Message | None:
    """The newest user message of the archive that says something and was not taken back."""
    rows: Sequence[Message] = [_as_message(item) for item in archive]
    for row in reversed(rows):
        if row.role == "user" and not row.marks().get("taken_back"):
            parts = _Parts(thinking=False)
            parts.read(row)
            if view := parts.turned():
                return view[0]
    return None


def _merged(view: list[Message]) -> list[Message]:
    """Join neighbours of the roles user and assistant; tool messages stay one result each."""
    merged: list[Message] = []
    for message in view:
        last = merged[-1] if merged else None
        if last is not None and last.role == message.role and message.role != "tool":
            blocks = [*last.content, *message.content]
            merged[-1] = Message(message.role, blocks, seq=last.seq)
        else:
            merged.append(message)
    return merged


def _as_message(item: Message | Mapping[str, Any]) -> Message:
    return item if isinstance(item, Message) else Message.from_dict(dict(item))


def _without_none(block: AttachmentBlock) -> dict[str, Any]:
    fields = {"type": "attachment", "kind": block.kind, "path": block.path, "range": block.range}
    return {k: v for k, v in fields.items() if v is not None} | {"text": block.text}


def _is_blank(text: str) -> bool:
    return not text or text.isspace()
