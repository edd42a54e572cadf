"""Calls that a model makes step after step although none of them works, and when to stop it."""

from collections.abc import Sequence

from tiro.agents.calls import MOST_IN_TURN, Call, round_at_end
from tiro.agents.tool_uses import ToolUses
from tiro.errors import ModelError

STUCK = (
    "The model made the same calls {times} times in a row and none of them worked; say what it"
    " should do instead, or choose another model"
)

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
        del self._failed[: -MAX_SAME_FAILURES * MOST_IN_TURN]

    def too_many(self) -> ModelError | None:
        """The error that ends the turn, once it has gone on for long enough."""
        if not round_at_end(self._failed, MAX_SAME_FAILURES, _are_same):
            return None
        return ModelError(STUCK.format(times=MAX_SAME_FAILURES))


def _are_same(calls: Sequence[Call], others: Sequence[Call]) -> bool:
    return len(calls) == len(others) and all(map(Call.is_same, calls, others))
