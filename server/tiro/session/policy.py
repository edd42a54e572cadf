"""Whether a session is to be resized: the policy that decides, and its decision (A3)."""

from typing import Any

import msgspec

from tiro.session.core import Core
from tiro.session.front import front_of
from tiro.session.handlers import awaited
from tiro.session.messages import copied
from tiro.session.settings import SessionSettings
from tiro.session.tokens import text_length

TOKEN_BUDGET = "token_budget"
"""The reason of a resize for a request that has reached its budget (U8.2)."""


class ResizeDecision(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why and how to resize; `type` names the handler."""

    type: str
    reason: str | None = None
    severity: int | None = None
    meta: Any = None
    given: dict[str, Any] | None = None
    """What a policy of the caller's answered, as it was."""

    def to_dict(self) -> dict[str, Any]:
        """The decision as callers see it: what their policy said, unchanged (A3.2, A3.5)."""
        if self.given is not None:
            return self.given
        fields = {name: getattr(self, name) for name in ("type", "reason", "severity", "meta")}
        return {name: value for name, value in fields.items() if value is not None}


class Budget(msgspec.Struct, frozen=True):
    """The tokens that a request may take (U8.2), and what of it is taken before any message."""

    tokens: int
    fixed: int
    window: int = 0
    """The model's context window; 0 where only the budget counts."""
    hold_from: int | None = None
    """The seq of a running turn's prompt: it stays, and what its user has added since (B22)."""

    def chunk(self) -> int:
        """What a memo may be asked to read at once: its request has more to carry (U8.3)."""
        return max(1, self.tokens // 2)

    def kept(self, held: int = 0) -> int:
        """What the window may take after a resize, beside what is held in it.

        Half of the budget (U8.3), or what leaves room for the next messages; where so much is fixed
        that the budget cannot be kept, a share of what the model still takes (B20).
        """
        room = self.tokens - self.fixed - held
        left = self.window - self.fixed - held
        return max(0, min(self.tokens // 2, max(room * 3 // 4, left // 4)))


async def told(
    core: Core, settings: SessionSettings, force: bool | str | None
) -> dict[str, Any] | None:
    """What `judge` says, as the dict of A3.2."""
    decision = await judge(core, settings, force)
    return None if decision is None else decision.to_dict()


async def judge(
    core: Core,
    settings: SessionSettings,
    force: bool | str | None = False,
    budget: Budget | None = None,
) -> ResizeDecision | None:
    """Ask the policy whether to resize; changes nothing (A3).

    `force` as a text names the type, True means `deep`. A token budget that is reached decides
    before all else. Raises TypeError for a policy that answers with something else than None, a
    text, or a dict with a `type` (A3.5).
    """
    if force:
        kind = force if isinstance(force, str) else "deep"
        return ResizeDecision(kind, "force", 1000)
    if budget is not None and core.quiet_length is None and _spent(core, budget):
        return ResizeDecision("deep", TOKEN_BUDGET, 200)
    policy = core.handlers.policy
    if policy is None:
        return default_policy(core, settings)
    window = copied(core.oldest_first())
    return _as_decision(await awaited(policy, copied(core.full()), window, settings))


def default_policy(core: Core, settings: SessionSettings) -> ResizeDecision | None:
    """The first limit that is passed: characters, count, turns (A3.6)."""
    chars, count = settings.limit("chars"), settings.limit("messages")
    quiet = core.quiet_length is not None
    if chars and not quiet and text_length(core.newest_first) >= chars:
        return ResizeDecision("deep", "max_messages_text_length", 100)
    if count and not quiet and len(core.newest_first) > count:
        return ResizeDecision("lite", "max_keep_messages_count", 50)
    every = settings.integer("session.resize.every_n_turns")
    if every and every > 0 and core.turns - core.last_resize_turn >= every:
        return ResizeDecision("lite", "every_n_turns", 10)
    return None


def _spent(core: Core, budget: Budget) -> bool:
    """Whether the next request would reach the budget; reads only until it does."""
    front = front_of(core, reversed(core.newest_first), reversed(core.archive_rows))
    total = budget.fixed + (0 if front is None else core.meter.message(front))
    for message in core.newest_first:
        total += core.meter.message(message)
        if total >= budget.tokens:
            return True
    return False


def _as_decision(value: Any) -> ResizeDecision | None:
    if value is None or isinstance(value, ResizeDecision):
        return value
    if isinstance(value, str):
        return ResizeDecision(value)
    if isinstance(value, dict) and isinstance(value.get("type"), str):
        known: dict[str, Any] = {k: value.get(k) for k in ("type", "reason", "severity", "meta")}
        return ResizeDecision(**known, given=value)
    raise TypeError(
        f"A resize policy must answer None, a text or a dict with a type, not {value!r}"
    )
