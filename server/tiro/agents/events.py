"""What a turn tells whoever watches it: one Struct an event, in the order of their happening.

The names on the wire follow from these: the type is the tag, in camelCase as the fields.
"""

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from tiro.errors import TiroError
from tiro.session.messages import StopReason, Usage

ToolUseStatus = Literal["proposed", "running", "done", "rejected", "failed", "cancelled"]

MAX_SHOWN_BYTES, MAX_END_BYTES = 4096, 2048
"""What an event shows of a tool result at most: of its beginning, and of its end."""


class ToolUseShown(Struct, frozen=True):
    """A tool use as events show it."""

    id: str
    name: str
    input: dict[str, Any]


class Started(Struct, frozen=True, tag="started"):
    """Always the first; `seq` is that of the user's message, which is stored by now."""

    agent: str
    model: str
    seq: int


class Text(Struct, frozen=True, tag="text"):
    """A piece of the answer."""

    delta: str


class Thinking(Struct, frozen=True, tag="thinking"):
    """A piece of the model's reasoning."""

    delta: str


class ToolUse(Struct, frozen=True, tag="tool_use", kw_only=True):
    """A tool use came into another state."""

    tool_use: ToolUseShown
    status: ToolUseStatus
    rule: str | None = None
    """The permission rule that decided."""
    preview: str | None = None
    parent_tool_use_id: str | None = None


class ToolOutput(Struct, frozen=True, tag="tool_output"):
    """A piece of a running tool's output."""

    tool_use_id: str
    delta: str


class ToolResult(Struct, frozen=True, tag="tool_result", kw_only=True):
    """The stored result of a tool use, cut for display; `seq` is that of its message."""

    tool_use_id: str
    is_error: bool
    content: str
    truncated: bool = False
    end: str = ""
    """Of a longer one than `content` holds, how it ends."""
    left_out: int = 0
    """How many characters lie between the two."""
    seq: int | None = None


class Stored(Struct, frozen=True, tag="stored"):
    """A finished message is in the session and in its journal."""

    seq: int
    role: str


class Retry(Struct, frozen=True, tag="retry"):
    """The provider could not answer; the request is repeated after this wait."""

    attempt: int
    wait_seconds: float
    reason: str


class Progress(Struct, frozen=True, tag="progress"):
    """What goes on before the first piece of an answer, such as the loading of a local model."""

    message: str
    fraction: float | None = None


class Resized(Struct, frozen=True, tag="resize", kw_only=True):
    """The window was resized before a request."""

    decision: dict[str, Any]
    evicted: int
    tokens_before: int
    tokens_after: int
    memo_refused: str | None = None
    """Why the memo was not brought up to date, as a sentence."""


class UsageSoFar(Struct, frozen=True, tag="usage"):
    """What the turn has used so far, and the size of its next request."""

    usage: Usage
    context_size: Any


class TurnOutcome(Struct, frozen=True, kw_only=True):
    """How a turn ended."""

    stop_reason: StopReason
    text: str
    """The text of the last step's answer, as far as it had arrived."""
    first_seq: int
    last_seq: int
    steps: int
    usage: Usage


class Finished(Struct, frozen=True, tag="finished"):
    """Always the last; `error` says why when the stop reason is `error`."""

    outcome: TurnOutcome
    error: TiroError | None = None


TurnEvent: TypeAlias = (
    Started
    | Text
    | Thinking
    | ToolUse
    | ToolOutput
    | ToolResult
    | Stored
    | Retry
    | Progress
    | Resized
    | UsageSoFar
    | Finished
)


def shown_result(
    tool_use_id: str, content: str, *, is_error: bool, seq: int | None = None
) -> ToolResult:
    """The event of a stored result; of a long one its beginning and, apart from it, its end."""
    data = content.encode("utf-8", "replace")
    if len(data) <= MAX_SHOWN_BYTES:
        return ToolResult(tool_use_id=tool_use_id, is_error=is_error, content=content, seq=seq)
    head = data[:MAX_SHOWN_BYTES].decode("utf-8", "ignore")
    rest = content[len(head) :]
    end = rest.encode("utf-8", "replace")[-MAX_END_BYTES:].decode("utf-8", "ignore")
    return ToolResult(
        tool_use_id=tool_use_id,
        is_error=is_error,
        content=head,
        truncated=True,
        end=end,
        left_out=len(rest) - len(end),
        seq=seq,
    )
