"""What the assistant's use cases answer."""

import json
from pathlib import Path
from typing import Any

import msgspec

from tiro.session.policy import ResizeDecision


class Added(msgspec.Struct, frozen=True):
    """What became of an added message; `stored`: it survives a kill -9 from now on."""

    seq: int
    total: int
    pruned: int
    stored: bool


class Cleared(msgspec.Struct, frozen=True):
    """How many messages the old session had in its window, and where it was saved."""

    cleared: int
    saved_as: Path | None


class Saved(msgspec.Struct, frozen=True):
    """The file that was written."""

    path: Path
    id: str
    bytes: int


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """The file that an export was written to, or its text."""

    path: Path | None = None
    text: str | None = None
    was_redacted: bool
    """Whether something that has the shape of a key was left out."""
    losses: list[str]
    """What of the session the format has no place for, in sentences."""


class Resized(msgspec.Struct, frozen=True, kw_only=True):
    """What a resize has done; no decision means that nothing was to be done."""

    decision: ResizeDecision | None
    evicted: int
    total: int
    tokens_before: int
    tokens_after: int
    memo: Any
    summary: str
    memo_refused: str | None = None
    """Why the memo was not brought up to date, as a sentence."""


class _HoldsMemo(msgspec.Struct, frozen=True, kw_only=True):
    memo: Any

    @property
    def memo_text(self) -> str:
        """The memo as JSON to read and edit, for clients that cannot tell `{}` from null."""
        return json.dumps(self.memo, ensure_ascii=False, indent=2)


class Preview(_HoldsMemo, frozen=True, kw_only=True):
    """What a resize would do; `draft_id` is None where it would do nothing."""

    decision: ResizeDecision | None
    evict: list[int]
    keep: list[int]
    summary: str
    tokens_before: int
    tokens_after: int
    draft_id: str | None
    memo_refused: str | None = None


class MemoryView(_HoldsMemo, frozen=True, kw_only=True):
    """Memo and summary, and how far they have come."""

    summary: str
    memo_cursor: int
    last_resize: Any
    summary_in_progress: bool


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """How this server is set up, and what is wrong with it."""

    version: str
    python: str
    config_files: list[Path]
    sessions_directory: Path
    model: str | None
    provider: str | None
    problems: list[str]
