"""Calls that a model makes step after step although none of them works, and when to stop it."""

from collections.abc import Callable, Sequence

from tiro.agents.calls import MOST_IN_TURN, Call, round_at_end
from tiro.agents.tool_uses import ToolUses
from tiro.errors import ModelError

STUCK = (
    "The model made the same calls {times} times in a row and none of them worked; say what it"
    " should do instead, or choose another model"
)

COUNTING = (
    "The model made the same calls {times} times in a row with other numbers, and all of them"
    " failed alike; say what it should do instead, or choose another model"
)

MAX_COUNTED_FAILURES = 15
"""Calls that differ in a number may be tries of their own for longer."""
MAX_SAME_FAILURES = 5
"""Two more than the calls after which the user is asked about a `doom_loop`."""


class Repeats:
    """The steps of one turn in a row in which nothing worked."""

    def __init__(self) -> None:
        self._failed: list[Sequence[Call]] = []

    def count(self, uses: ToolUses) -> None:
        """Take the tool uses of a step that has ended."""
        self._failed.append(uses.calls)
        if any(status == "done" for status in uses.statuses):
            self._failed.clear()
        del self._failed[: -MAX_COUNTED_FAILURES * MOST_IN_TURN]

    def too_many(self) -> ModelError | None:
        """The error that ends the turn, once it has gone on for long enough."""
        if round_at_end(self._failed, MAX_SAME_FAILURES, _all(Call.is_same)):
            return ModelError(STUCK.format(times=MAX_SAME_FAILURES))
        if round_at_end(self._failed, MAX_COUNTED_FAILURES, _all(Call.counts_on)):
            return ModelError(COUNTING.format(times=MAX_COUNTED_FAILURES))
        return None


def _all(
    is_like: Callable[[Call, Call], bool],
) -> Callable[[Sequence[Call], Sequence[Call]], bool]:
    """Whether the calls of one step are like those of another, each by each."""
    return lambda calls, others: len(calls) == len(others) and all(map(is_like, calls, others))
