"""Bringing the window under its limits: judge, then resize (A3, A4).

What a resize will do is computed as changes from a copy and committed in one step, so a policy or
handler that fails leaves everything as it was (A4.6). Nothing is deleted: evicted messages go to
the archive.
"""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from tiro.session.changes import Change, Evict, Set
from tiro.session.core import Core
from tiro.session.cut import legal_cut
from tiro.session.messages import Message
from tiro.session.settings import SessionSettings
from tiro.session.tokens import message_length, message_tokens, text_length

T = TypeVar("T")
Policy = Callable[[list[Message], list[Message], SessionSettings], Any]


class ResizeDecision(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why and how to resize; `type` names the handler."""

    type: str
    reason: str | None = None
    severity: int | None = None
    meta: Any = None


class Budget(msgspec.Struct, frozen=True):
    """The tokens that a request may take (U8.2), and what of it is taken before any message."""

    tokens: int
    fixed: int

    def kept(self) -> int:
        """What the window may take after a resize: half of the budget, if there is room (U8.3)."""
        return max(0, min(self.tokens // 2, self.tokens - self.fixed))


class ResizeOutcome(msgspec.Struct, frozen=True):
    """What a resize did; no decision means that nothing was to be done."""

    decision: ResizeDecision | None
    evicted: int


async def judge(
    core: Core,
    settings: SessionSettings,
    force: bool | str | None = False,
    policy: Policy | None = None,
    budget: Budget | None = None,
) -> ResizeDecision | None:
    """Ask the policy whether to resize; changes nothing (A3).

    `force` as a text names the type, True means `deep`. A token budget that is reached decides
    before all else. Raises TypeError for a policy that answers
    with something else than None, a text, or a dict with a `type` (A3.5).
    """
    if force:
        kind = force if isinstance(force, str) else "deep"
        return ResizeDecision(kind, "force", 1000)
    if budget is not None and core.quiet_length is None and _spent(core, budget):
        return ResizeDecision("deep", "token_budget", 200)
    if policy is None:
        return default_policy(core, settings)
    return _as_decision(await awaited(policy, core.full(), core.oldest_first(), settings))


async def resize(
    core: Core,
    settings: SessionSettings,
    force: bool | str | None = False,
    policy: Policy | None = None,
    budget: Budget | None = None,
) -> ResizeOutcome:
    """Resize the window if the policy says so, or because it is forced (A4).

    Raises KeyError for a type that no handler has (A4.2). Costs about one pass over the window.
    """
    decision = await judge(core, settings, force, policy, budget)
    if decision is None:
        return ResizeOutcome(None, 0)
    if decision.type not in HANDLERS:
        raise KeyError(f"No resize handler has the type {decision.type!r}")
    with core.lock:
        evict = to_evict(core, settings, budget)
        core.commit(*_changes(core, decision, evict))
        core.quiet_length = text_length(core.newest_first)
        return ResizeOutcome(decision, len(evict))


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


def to_evict(core: Core, settings: SessionSettings, budget: Budget | None = None) -> list[int]:
    """The seqs that the limits put out of the window: count, characters, tokens (A4.10, A4.11)."""
    held = core.held() if core.pins else set()
    free = [m for m in core.oldest_first() if m.seq not in held]
    count, chars = settings.limit("messages"), settings.limit("chars")
    start = max(0, len(free) - count) if count else 0
    if chars:
        start = max(start, _within(free, chars, message_length))
    if budget is not None:
        start = max(start, _within(free, budget.kept(), _tokens_of(core)))
    start = legal_cut(free, start)
    return [m.seq for m in free[:start] if m.seq is not None]


def without_loop(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end, with or without a running event loop in this thread (A7.2)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    results: list[T] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            results.append(asyncio.run(make()))
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work, name="tiro-sync")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]


async def awaited(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function that may be sync (run in a thread) or async (A7.1)."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    result = await asyncio.to_thread(function, *arguments)
    return await result if isinstance(result, Awaitable) else result


def _within(messages: list[Message], limit: int, size: Callable[[Message], int]) -> int:
    """Where the longest suffix of at most this size begins; the newest message always stays."""
    total = 0
    for index in range(len(messages) - 1, -1, -1):
        total += size(messages[index])
        if total > limit:
            return min(index + 1, len(messages) - 1)
    return 0


def _tokens_of(core: Core) -> Callable[[Message], int]:
    return lambda message: message_tokens(message, core.token_counts)


def _spent(core: Core, budget: Budget) -> bool:
    """Whether the next request would reach the budget; reads only until it does."""
    total, size = budget.fixed, _tokens_of(core)
    for message in core.newest_first:
        total += size(message)
        if total >= budget.tokens:
            return True
    return False


def _changes(core: Core, decision: ResizeDecision, evict: list[int]) -> list[Change]:
    at = core.stamp()
    fields: dict[str, Any] = {
        "undo": {
            "seqs": [m.seq for m in core.oldest_first()],
            "memo": core.memo,
            "summary": core.summary,
        },
        "last_resize_turn": core.turns,
        "memo_cursor": len(core.full()),
    }
    if isinstance(core.memo, dict):
        last = {"type": decision.type, "turn": core.turns, "reason": f"{decision.type}_resize"}
        if decision.reason is not None:
            last["reason"] = decision.reason
        fields["memo"] = {**core.memo, "last_resize": last}
    evicting: list[Change] = [Evict(evict, at)] if evict else []
    return [*evicting, Set(fields, at)]


def _as_decision(value: Any) -> ResizeDecision | None:
    if value is None or isinstance(value, ResizeDecision):
        return value
    if isinstance(value, str):
        return ResizeDecision(value)
    if isinstance(value, dict) and isinstance(value.get("type"), str):
        known = {k: v for k, v in value.items() if k in ResizeDecision.__struct_fields__}
        return msgspec.convert(known, ResizeDecision)
    raise TypeError(
        f"A resize policy must answer None, a text or a dict with a type, not {value!r}"
    )


HANDLERS = ("lite", "deep")
"""The types of resize there are; without a memo handler both prune and keep the memo."""
