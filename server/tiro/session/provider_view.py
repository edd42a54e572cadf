"""What a provider gets to see: a pure repair of a copy (U3), never of the stored history.

Providers refuse a request whose tool uses and results do not pair up, and refuse it again each
time, since the same history is sent again. So every request is built here, whatever cut, cancel,
crash or import left behind. Applied to its own output it changes nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from tiro.session.messages import (
    Block,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    as_message,
    blocks_of,
    seq_of,
)
from tiro.session.sendable import Part, as_sent, clean_block, is_blank, result_content

INTERRUPTED = "The call was interrupted and its outcome is unknown."
"""Stands for the result of a tool use that was never answered (U3.4)."""

PLACEHOLDER = "(The conversation goes on.)"
"""Stands for a user message where a provider demands one and none is left (U3.6)."""

SYSTEM_ROLES = ("system", "developer")

Rule: TypeAlias = (
    Part
    | Literal[
        "missing_result", "moved_result", "new_id", "placeholder", "user_in_front", "merged",
        "role_as_text", "unsendable", "system_prompt", "result_in_part",
    ]
)  # fmt: skip
"""A repair by its name, see PROTOCOL.md; a `Part` is one that was left out of a message."""


class Repair(msgspec.Struct, frozen=True, order=True):
    """Where a request differs from the message with this seq."""

    seq: int
    rule: Rule


class View(msgspec.Struct, frozen=True):
    """The messages of a request, and how they came about."""

    messages: list[Message]
    repairs: list[Repair]
    left: dict[int, Part]
    """The messages of the window of which nothing is sent, by seq, and what they held."""
    sent: set[int]
    """The seqs of the messages of which something is sent."""


_PLACEHOLDER_BLOCK = {"type": "text", "text": PLACEHOLDER}


def provider_view(
    window: Iterable[Message | Mapping[str, Any]],
    archive: Sequence[Message | Mapping[str, Any]] = (),
    *,
    merge: bool = False,
    thinking: bool = False,
) -> list[Message]:
    """The messages of a request, as `viewed` makes them."""
    return viewed(window, archive, merge=merge, thinking=thinking).messages


def viewed(
    window: Iterable[Message | Mapping[str, Any]],
    archive: Sequence[Message | Mapping[str, Any]] = (),
    *,
    merge: bool = False,
    thinking: bool = False,
) -> View:
    """The messages of a request: oldest first, every tool use answered exactly once.

    `window` and `archive` are oldest first. The result holds messages of the roles user, assistant
    and tool whose content is a list of block dicts; a tool message holds exactly one tool_result.
    `merge` joins neighbours of one role (user, assistant), `thinking` keeps thinking blocks and the
    mark that says whose they are. System messages are left out: they belong to the system prompt
    (`standing_instructions`). Pure; O(window): of the archive it reads back to the prompt that is
    put in front.
    """
    rows = [as_message(item) for item in window]
    parts = _Parts(thinking)
    for row in rows:
        if not row.marks().get("taken_back"):
            parts.read(row)
    parts.keep_a_user()
    messages = _begin_with_user(parts.turned(), archive, parts.repairs)
    sent = {seq_of(message) for message in messages}
    left: dict[int, Part] = {}
    for seq, part in parts.dropped:
        if seq in sent:
            parts.repairs.append(Repair(seq, part))
        else:
            left.setdefault(seq, part)
    if merge:
        messages = _merged(messages, parts.repairs)
    repairs = sorted(set(parts.repairs))
    return View(messages, repairs, left, sent)


def standing_instructions(full: Iterable[Message]) -> list[str]:
    """The texts of all system and developer messages of the history, in order (U3.9)."""
    texts = []
    for message in full:
        if message.role in SYSTEM_ROLES and not message.marks().get("taken_back"):
            texts += [b.text for b in blocks_of(message) if isinstance(b, TextBlock)]
    return [text for text in texts if not is_blank(text)]


def put_in_front(window: Iterable[Message], earlier: Iterable[Message]) -> Message | None:
    """Which of the earlier messages, newest first, the view of this window begins with (U3.2)."""
    for message in window:
        if (said := _said(message)) and message.role not in SYSTEM_ROLES:
            return _earlier_user(said[0], earlier) if said[0].role == "assistant" else None
    return None


def with_front(kept: Sequence[Message], others: Iterable[Message]) -> list[Message]:
    """What is sent where these messages stay: they, and which of the others is put in front.

    The others are newest first.
    """
    front = put_in_front(kept, others)
    said = [message for message in kept if message.role not in SYSTEM_ROLES]
    return said if front is None else [front, *said]


class _Said(NamedTuple):
    """What is sent of a message, and where in the window the message stands."""

    position: int
    message: Message
    blocks: list[dict[str, Any]]


class _Parts:
    """The messages of a window taken apart: what is said, and which result answers which use."""

    def __init__(self, thinking: bool) -> None:
        self.thinking = thinking
        self.said: list[_Said] = []
        self.open: dict[str, list[str]] = {}
        self.taken: set[str] = set()
        self.answers: dict[str, _Said] = {}
        """The first result for each tool use, by the id that the use has in the view."""
        self.repairs: list[Repair] = []
        self.dropped: list[tuple[int, Part]] = []
        self._position = 0

    def read(self, message: Message) -> None:
        """Read one message, oldest first; results find the latest earlier use with their id."""
        if message.role in SYSTEM_ROLES:
            return
        self._position += 1
        blocks = blocks_of(message)
        if not blocks:
            self._drop(message, "empty")
        kept: list[dict[str, Any]] = []
        for position, block in enumerate(blocks):
            if isinstance(block, ToolResultBlock):
                self._answer(message, block)
            elif isinstance(block, ToolUseBlock) and message.role == "assistant":
                kept.append(self._use(message, position, block))
            elif (sent := self._sent(message, block)) is not None:
                kept.append(sent)
        if message.role != "tool":
            self.said.append(_Said(self._position, message, kept))

    def keep_a_user(self) -> None:
        """Where no user message says anything, the newest one says the placeholder (U3.6)."""
        users = [i for i, said in enumerate(self.said) if said.message.role != "assistant"]
        if users and not any(self.said[i].blocks for i in users):
            newest = self.said[users[-1]]
            self.said[users[-1]] = newest._replace(blocks=[dict(_PLACEHOLDER_BLOCK)])
            self._note(newest.message, "placeholder")

    def turned(self) -> list[Message]:
        """The messages in request order, each tool use followed by its one answer."""
        turned: list[Message] = []
        told = [said for said in self.said if said.blocks]
        for said, following in zip_longest(told, told[1:]):
            message, blocks = said.message, said.blocks
            role = "assistant" if message.role == "assistant" else "user"
            turned.append(self._message(role, blocks, message))
            uses = [block["id"] for block in blocks if block.get("type") == "tool_use"]
            if role == "assistant" and uses:
                turned += self._results(said, uses, following)
        return turned

    def _message(self, role: str, blocks: list[dict[str, Any]], source: Message) -> Message:
        model = source.marks().get("model") if self.thinking and role == "assistant" else None
        return Message(role, blocks, seq=source.seq).marked(model=model)

    def _use(self, message: Message, position: int, block: ToolUseBlock) -> dict[str, Any]:
        tool_id = block.id
        if not tool_id or tool_id in self.taken:
            tool_id = f"call_{message.seq or len(self.said)}_{position}"
            while tool_id in self.taken:
                tool_id += "_"
            self._note(message, "new_id")
        self.taken.add(tool_id)
        self.open[block.id] = [*self.open.get(block.id, []), tool_id]
        use = {"type": "tool_use", "id": tool_id, "name": block.name, "input": block.input}
        return self._clean(message, use)

    def _answer(self, message: Message, block: ToolResultBlock) -> None:
        uses = self.open.get(block.tool_use_id)
        if not uses or uses[-1] in self.answers:
            self._drop(message, "orphan_result")  # or a second answer (U3.5, U3.3)
            return
        result: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": uses[-1],
            "content": result_content(block.content),
        }
        if block.is_error:
            result["is_error"] = True
        answer = _Said(self._position, message, [self._clean(message, result)])
        self.answers[uses[-1]] = answer

    def _results(self, said: _Said, uses: list[str], following: _Said | None) -> list[Message]:
        """The results of a message's tool uses, in call order, a missing one made up."""
        results, last = [], said.position
        for tool_id in uses:
            answer = self.answers.get(tool_id)
            if answer is None:
                self._note(said.message, "missing_result")
                results.append(_missing_result(said.message, tool_id))
                continue
            if answer.position < last or (following and following.position < answer.position):
                self._note(answer.message, "moved_result")
            last = max(last, answer.position)
            results.append(Message("tool", answer.blocks[0], seq=answer.message.seq))
        return results

    def _sent(self, message: Message, block: Block) -> dict[str, Any] | None:
        """The block as a request holds it; None for what is not sent."""
        sent, part = as_sent(message.role, block, self.thinking)
        if sent is None:
            self._drop(message, part)
            return None
        if sent.get("type") == "text" and message.role not in ("user", "assistant", "tool"):
            self._note(message, "role_as_text")
        return sent if part == "thinking" else self._clean(message, sent)

    def _clean(self, message: Message, block: dict[str, Any]) -> dict[str, Any]:
        cleaned = clean_block(block)
        if cleaned != block:
            self._note(message, "unsendable")
        return cleaned

    def _note(self, message: Message, rule: Rule) -> None:
        self.repairs.append(Repair(seq_of(message), rule))

    def _drop(self, message: Message, part: Part) -> None:
        self.dropped.append((seq_of(message), part))


def _missing_result(message: Message, tool_id: str) -> Message:
    """Stands where a tool use was never answered."""
    missing = {
        "type": "tool_result",
        "tool_use_id": tool_id,
        "content": INTERRUPTED,
        "is_error": True,
    }
    return Message("tool", missing, seq=message.seq)


def _begin_with_user(
    turned: list[Message],
    archive: Sequence[Message | Mapping[str, Any]],
    repairs: list[Repair],
) -> list[Message]:
    """Make the view begin with a user message, an earlier one or the placeholder (U3.2)."""
    if not turned or turned[0].role == "user":
        return turned
    first = _earlier_user(turned[0], map(as_message, reversed(archive)))
    if first is not None:
        repairs.append(Repair(seq_of(first), "user_in_front"))
        return [*_said(first), *turned]
    repairs.append(Repair(seq_of(turned[0]), "placeholder"))
    return [Message("user", [dict(_PLACEHOLDER_BLOCK)]), *turned]


def _earlier_user(first: Message, newest_first: Iterable[Message]) -> Message | None:
    """The nearest user message before this one that says something and was not taken back."""
    for row in newest_first:
        is_earlier = first.seq is None or seq_of(row) < first.seq
        if row.role == "user" and is_earlier and not row.marks().get("taken_back") and _said(row):
            return row
    return None


def _said(message: Message) -> list[Message]:
    """What is sent of a message that stands alone."""
    parts = _Parts(thinking=True)
    parts.read(message)
    return parts.turned()


def _merged(turned: list[Message], repairs: list[Repair]) -> list[Message]:
    """Join neighbours of the roles user and assistant; tool messages stay one result each."""
    merged: list[Message] = []
    for message in turned:
        last = merged[-1] if merged else None
        if last is not None and last.role == message.role and message.role != "tool":
            blocks = [*last.content, *message.content]
            merged[-1] = Message(message.role, blocks, seq=last.seq)
            repairs.append(Repair(seq_of(message), "merged"))
        else:
            merged.append(message)
    return merged
