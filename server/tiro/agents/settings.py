"""What a new session starts with, as a configuration says it; the library's own defaults differ."""

from typing import Annotated, Literal

import msgspec

MOST = 1_000_000_000
Positive = Annotated[int, msgspec.Meta(ge=1, le=MOST)]
NotNegative = Annotated[int, msgspec.Meta(ge=0, le=MOST)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=MOST)]
"""As long as thirty years: what is longer has no date."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """`session.limit`: null is unset, 0 is off."""

    chars: NotNegative | None = None
    messages: NotNegative | None = None


class ResizeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`session.resize`: when a session is brought under its limits, besides the token budget."""

    every_n_turns: NotNegative | None = 8
    max_messages_text_length: NotNegative | None = None
    max_keep_messages_count: NotNegative | None = None


class MemoSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`session.memo`."""

    enabled: bool | None = None
    """None: by the mode."""
    instruct: str | list[str] | None = None


class SummarySettings(msgspec.Struct, frozen=True, kw_only=True):
    """`session.summary`."""

    enabled: bool = True
    message_buffer_limit: Positive | None = None
    """None: no trim before turns."""
    message_buffer_min: NotNegative = 10
    model: str | None = None


class SessionDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """`session`: what holds for every session that does not say otherwise."""

    max_history: Positive | None = 100
    mode: Literal["lite", "memo"] = "lite"
    limit: Limits = Limits()
    budget_ratio: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = 0.75
    """Of the model's context window; None switches the token budget off."""
    resize: ResizeSettings = ResizeSettings()
    memo: MemoSettings = MemoSettings()
    summary: SummarySettings = SummarySettings()
    autosave: bool = True
    titles: Literal["first_line", "model"] = "first_line"
    fsync: Literal["message", "turn", "never"] = "turn"
    resume: Literal["latest", "new", "ask"] = "ask"
    ttl_seconds: Seconds | None = None
    redact: bool = True


class TurnBudget(msgspec.Struct, frozen=True, kw_only=True):
    """What one turn may cost; None is no limit."""

    tokens: Positive | None = None
    usd: Annotated[float, msgspec.Meta(gt=0, le=MOST)] | None = None


class TurnSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a turn."""

    max_steps: Positive = 50
    max_output_tokens: Positive | None = None
    command_keys: list[str] = []
    """Environment variables that commands get though they hold a provider's key."""
    budget: TurnBudget = TurnBudget()
