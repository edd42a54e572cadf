"""Making the next request fit the model's context window, within a turn (U8.2, U8.3)."""

import logging
from collections.abc import Callable

import msgspec

from tiro.agents.events import Resized
from tiro.errors import ContextOverflowError, TiroError
from tiro.session.meter import ContextSize
from tiro.session.resize import Budget, ResizeOutcome, commit, planned
from tiro.session.session import Session

OVERFLOW = 1.2
"""How far the estimate may be above the window before a request is not even tried."""
SMALLER = 0.75
"""What a request keeps of its size after its provider refused it as too long."""

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
    before the reply, whatever there is to read: what it has not read then, it reads after the turn.
    """

    def __init__(
        self,
        session: Session,
        measured: Callable[[], ContextSize],
        ratio: float | None,
        prompt_seq: int,
    ) -> None:
        self._session, self._measured = session, measured
        self._ratio, self._prompt_seq = ratio, prompt_seq
        self._requests = 1
        self._has_failed = False

    async def fitted(self, overflow: ContextOverflowError | None = None) -> Resized | None:
        """Bring the session under its limits before a request; None when it was.

        Raises ContextOverflowError when the request is far too large all the same. After one that
        the provider refused as too long it must get shorter, or that error is raised again.
        """
        size = self._measured()
        budget = budget_of(size, self._ratio, self._prompt_seq)
        if overflow is not None:
            budget = _smaller(size, overflow, self._prompt_seq)
        elif size.context_window is not None and _fixed(size) > size.context_window * OVERFLOW:
            raise _overfull(size)  # no message that left would help
        outcome = await self._resized(budget, "deep" if overflow else None)
        if overflow is not None and not outcome.evicted:
            raise overflow
        after = size.tokens if outcome.decision is None else self._measured().tokens
        window = size.context_window
        if window is not None and after > window * OVERFLOW:
            raise ContextOverflowError(
                f"The request is about {after} tokens and the model takes {window}, even after a"
                " resize; send less or choose a model with a larger context window",
                tokens=after,
                context_window=window,
            )
        if outcome.decision is None or not (outcome.evicted or outcome.memo_refused):
            return None
        return Resized(
            decision=msgspec.to_builtins(outcome.decision),
            evicted=outcome.evicted,
            tokens_before=size.tokens,
            tokens_after=after,
            memo_refused=outcome.memo_refused,
        )

    async def _resized(self, budget: Budget | None, force: str | None) -> ResizeOutcome:
        """Resize; a memo that cannot be written must not end the turn.

        What the memo has not read stays pending for the summary, and unread for the next memo
        (U4.2).
        """
        session, failure = self._session, None
        try:
            plan = await planned(session, session.settings, force, budget, self._requests)
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
        return commit(session, plan)


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


def _smaller(size: ContextSize, overflow: ContextOverflowError, prompt_seq: int) -> Budget:
    """A budget below what was refused.

    Where the provider tells its count and its window, our estimate is read as a share of them.
    """
    counted, window = overflow.data.get("tokens"), overflow.data.get("context_window")
    tokens = size.tokens
    if counted and window:
        tokens = min(tokens, size.tokens * window // counted)
    return Budget(int(tokens * SMALLER), _fixed(size), hold_from=prompt_seq)


def _fixed(size: ContextSize) -> int:
    parts = size.breakdown
    return parts.system + parts.tools + parts.memo + parts.summary
