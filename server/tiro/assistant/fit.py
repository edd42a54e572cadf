"""Making the next request fit the model's context window, within a turn (U8.2, U8.3)."""

import asyncio
import logging
from collections.abc import Callable

import msgspec

from tiro.agents.events import Resized
from tiro.assistant.pins import in_the_way
from tiro.errors import ContextOverflowError, TiroError
from tiro.session.meter import ContextSize
from tiro.session.policy import Budget
from tiro.session.resize import Plan, ResizeOutcome, commit, planned
from tiro.session.session import Session
from tiro.session.shown import staying

OVERFLOW = 1.2
"""How far the estimate may be above the window before a request is not even tried."""
SMALLER = 0.75
"""What a request keeps of its size after its provider refused it as too long."""
LEAST_WINDOW = 1_000
"""A refusal that names a smaller context window is not believed."""
MOST_ERROR = 4
"""How many times more or less than is known here a refusal may name."""
WAIT_SECONDS = 30.0
"""How long a reply waits for the memo; one that takes longer is written after the turn."""
TELL_SECONDS = 2.0
"""After how long the user is told what a reply waits for."""
WAITING = "The memo of this conversation is being brought up to date"

log = logging.getLogger(__name__)


def budget_of(
    size: ContextSize, ratio: float | None, hold_from: int | None = None
) -> Budget | None:
    """What a request may take of the model's context window; None where that is not known.

    `hold_from` is the seq of the prompt that a turn answers, which stays.
    """
    if ratio is None or size.context_window is None:
        return None
    window = size.context_window
    return Budget(int(window * ratio), _fixed(size), window, hold_from)


def crowded(budget: Budget | None) -> str | None:
    """What to tell a user whose conversation has no room, since so much else is sent (B20)."""
    if budget is None or budget.fixed < budget.tokens:
        return None
    return (
        f"Instructions, tools, memo and summary alone are about {budget.fixed} tokens, and a"
        f" request should take {budget.tokens}: little of the conversation can be sent beside them;"
        " shorten them or choose a model with a larger context window"
    )


class Fitting:
    """Makes each request of one turn fit.

    What the user said in this turn, from `prompt_seq` on, stays. The memo is asked for once at most
    before the reply, and for `wait_seconds` at most, whatever there is to read: what it has not
    read then, it reads after the turn. Where it was too slow once, or a turn was cancelled that was
    told to wait for it, no reply waits for it until it has been read in the background.
    """

    wait_seconds, tell_seconds = WAIT_SECONDS, TELL_SECONDS

    def __init__(
        self,
        session: Session,
        measured: Callable[[], ContextSize],
        ratio: float | None,
        prompt_seq: int,
        on_fitted: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_fitted` is called when the session is ready for a request."""
        self._session, self._measured, self._on_fitted = session, measured, on_fitted
        self._ratio, self._prompt_seq = ratio, prompt_seq
        self._requests = 1
        self._has_failed = False

    async def fitted(
        self,
        overflow: ContextOverflowError | None = None,
        tell: Callable[[str], None] = lambda text: None,
    ) -> Resized | None:
        """Bring the session under its limits before a request; None when it was.

        `tell` hears what it waits for, where that takes long.
        Raises ContextOverflowError when the request is far too large all the same. After one that
        the provider refused as too long it must get shorter, also by what is shown of the memory,
        or that error is raised again.
        """
        size = before = self._measured()
        budget = budget_of(size, self._ratio, self._prompt_seq)
        if overflow is not None:
            most = _smaller(size, overflow)
            self._session.most_tokens = most
            size = self._measured()
            budget = Budget(most, _fixed(size), hold_from=self._prompt_seq)
        elif size.context_window is not None and _fixed(size) > size.context_window * OVERFLOW:
            raise _overfull(size)  # no message that left would help
        outcome = await self._resized(budget, "deep" if overflow else None, tell)
        if overflow is not None and not outcome.evicted and size.tokens >= before.tokens:
            raise _refused(overflow, in_the_way(self._session, size.context_window))
        made = size if outcome.decision is None else self._measured()
        after, window = made.tokens, made.context_window
        if window is not None and after > window * OVERFLOW:
            raise _still_too_long(self._session, made, window)
        self._on_fitted()
        if outcome.decision is None or not (outcome.evicted or outcome.memo_refused):
            return None
        return Resized(
            decision=msgspec.to_builtins(outcome.decision),
            evicted=outcome.evicted,
            tokens_before=before.tokens,
            tokens_after=after,
            memo_refused=outcome.memo_refused,
        )

    async def _resized(
        self, budget: Budget | None, force: str | None, tell: Callable[[str], None]
    ) -> ResizeOutcome:
        """Resize; a memo that cannot be written must not end the turn, and is told once.

        What the memo has not read stays pending for the summary, and unread for the next memo
        (U4.2).
        """
        session, failure = self._session, None
        try:
            plan = await self._planned_in_time(budget, force, tell)
        except TiroError as error:
            failure = f"The memo was not brought up to date: {error}"
            log.warning("%s", failure)
            plan = await planned(session, session.settings, force, budget, 0)
        if plan is None:
            return ResizeOutcome(None, 0)
        self._requests = 0
        if refused := failure or plan.memo_refused:
            self._has_failed = True
            plan = msgspec.structs.replace(plan, memo_refused=refused)
        if self._has_failed:  # it is tried again with the next resize
            plan = msgspec.structs.replace(plan, is_behind=False)
        outcome = commit(session, plan)
        if refused is not None and refused == session.memo_refused:
            outcome = msgspec.structs.replace(outcome, memo_refused=None)
        if refused is not None or plan.covered:
            session.memo_refused = refused
        return outcome

    async def _planned_in_time(
        self, budget: Budget | None, force: str | None, tell: Callable[[str], None]
    ) -> Plan | None:
        """The plan, without what a memo that takes too long has read."""
        session = self._session
        if self._requests and not session.memo_is_slow:
            loop = asyncio.get_running_loop()
            telling_at = loop.time() + self.tell_seconds
            telling = loop.call_at(telling_at, tell, WAITING)
            try:
                async with asyncio.timeout(self.wait_seconds):
                    return await planned(session, session.settings, force, budget, self._requests)
            except TimeoutError:
                session.memo_is_slow = True
                log.warning("The memo of session %s takes too long for a reply", session.id)
            except asyncio.CancelledError:
                session.memo_is_slow = loop.time() >= telling_at  # it took too long for the user
                raise
            finally:
                telling.cancel()
        return await planned(session, session.settings, force, budget, 0)


def _refused(overflow: ContextOverflowError, pins: str | None) -> ContextOverflowError:
    """What a provider refused and no resize makes shorter; with the pins, where they are why."""
    if pins is None:
        return overflow
    return ContextOverflowError(f"{overflow}; {pins}", **overflow.data)


def _still_too_long(session: Session, size: ContextSize, window: int) -> ContextOverflowError:
    """The error for a request that no resize made short enough, naming what takes its room."""
    pins = in_the_way(session, window)
    advice = f"{pins}, send less" if pins else "send less"
    last = staying(session) - session.held()
    said = [message for message in session.newest_first if message.seq in last]
    parts = {
        "what was said last": sum(map(session.meter.message, said)),
        "the system prompt": size.breakdown.system,
        "the tools": size.breakdown.tools,
    }
    taken = ", ".join(f"{name} {tokens:,}" for name, tokens in parts.items())
    return ContextOverflowError(
        f"The request is about {size.tokens} tokens and the model takes {window}, even after a"
        f" resize ({taken}); {advice} or choose a model with a larger context window",
        tokens=size.tokens,
        context_window=window,
    )


def _overfull(size: ContextSize) -> ContextOverflowError:
    """The error for a request that would not fit without any message, naming what is too long."""
    parts = size.breakdown
    sizes = {
        "the system prompt": parts.system,
        "the tools": parts.tools,
        "the memo": parts.memo,
        "the summary": parts.summary,
    }
    longest = max(sizes, key=lambda name: sizes[name])
    return ContextOverflowError(
        f"The request takes about {_fixed(size)} tokens without any message, and the model takes"
        f" {size.context_window}: shorten {longest} ({sizes[longest]} tokens) or choose a model"
        " with a larger context window",
        tokens=size.tokens,
        context_window=size.context_window,
    )


def _smaller(size: ContextSize, overflow: ContextOverflowError) -> int:
    """A size below what was refused, in tokens.

    Where the provider tells its count and its window, our estimate is read as a share of them; a
    window that no model has, or that is far from the known one, is not believed.
    """
    counted, window = overflow.data.get("tokens"), overflow.data.get("context_window")
    tokens = size.tokens
    least = max(LEAST_WINDOW, (size.context_window or 0) // MOST_ERROR)
    if counted and window and window >= least:
        tokens = min(tokens, size.tokens * window // min(counted, tokens * MOST_ERROR))
    return int(tokens * SMALLER)


def _fixed(size: ContextSize) -> int:
    parts = size.breakdown
    return parts.system + parts.tools + parts.memo + parts.summary
