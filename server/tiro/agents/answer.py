"""One answer of a model, put together from its deltas in the order in which they came."""

from typing import Any

from tiro.models.model import BlockDone, TextDelta, ThinkingDelta, ToolUseDone
from tiro.session.messages import REDACTED_THINKING, Content, Message

THINKING = ("thinking", REDACTED_THINKING)


class Answer:
    """Grows with each delta; `take_message()` is what has arrived when it ends."""

    def __init__(self) -> None:
        self.tool_uses: list[ToolUseDone] = []
        self.has_thinking = False
        """Whether the message that was taken holds what only its own model may be sent back."""
        self._blocks: list[dict[str, Any]] = []
        self._open: dict[str, Any] = {}
        self._pieces: list[str] = []

    def add_text(self, delta: TextDelta) -> None:
        """Append to the open text block, or begin one."""
        self._begin("text")
        self._pieces.append(delta.text)

    def add_thinking(self, delta: ThinkingDelta) -> None:
        """Append to the open thinking block; a signature ends it, an empty one without keeping."""
        self._begin("thinking")
        self._pieces.append(delta.text)
        if delta.signature is not None:
            if delta.signature:
                self._open["signature"] = delta.signature
            self._close()

    def add_block(self, done: BlockDone) -> None:
        """Append a block as it came."""
        self._close()
        self._blocks.append(done.block)

    def add_tool_use(self, done: ToolUseDone) -> None:
        """Append a tool use; arguments that cannot be read are stored as an empty input."""
        self._close()
        self.tool_uses.append(done)
        block = {"type": "tool_use", "id": done.id, "name": done.name, "input": done.input or {}}
        self._blocks.append(block)

    def is_empty(self) -> bool:
        """Whether nothing has arrived yet."""
        return not (self._blocks or self._open or self.tool_uses)

    def is_cut_off(self) -> bool:
        """Whether the last tool use ends in the middle; not every server says that it was cut."""
        if not self.tool_uses or self.tool_uses[-1].input is not None:
            return False
        raw = self.tool_uses[-1].raw.strip()
        return raw.startswith("{") and not raw.endswith("}")

    def take_message(self) -> Message | None:
        """The assistant message, once; None when there is nothing worth storing in it.

        Blank text is left out: no provider takes it back.
        """
        self._close()
        blocks = [block for block in self._blocks if not _is_blank(block)]
        self.has_thinking = any(block.get("type") in THINKING for block in blocks)
        self._blocks = []
        if not blocks:
            return None
        content: Content = blocks
        if len(blocks) == 1 and blocks[0].get("type") == "text":
            content = blocks[0]["text"]
        return Message("assistant", content)

    def _begin(self, kind: str) -> None:
        if self._open.get("type") != kind:
            self._close()
            self._open = {"type": kind, kind: ""}

    def _close(self) -> None:
        if self._open:
            kind = self._open["type"]
            self._open[kind] = "".join(self._pieces)
            self._blocks.append(self._open)
            self._open, self._pieces = {}, []


def _is_blank(block: dict[str, Any]) -> bool:
    kind = block.get("type")
    return kind in ("text", "thinking") and not block[kind].strip() and "signature" not in block
