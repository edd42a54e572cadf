"""Calls that a model makes step after step although none of them works, and when to stop it."""

from typing import Any

from tiro.agents.tool_uses import ToolUses
from tiro.errors import ModelError

STUCK = (
    "The model made the same calls {times} times in a row and none of them worked; say what it"
    " should do instead, or choose another model"
)

MAX_SAME_FAILURES = 5
"""Two more than the calls after which the user is asked about a `doom_loop`."""


class Repeats:
    """How often in a row one turn's model has made the same calls in vain."""

    def __init__(self) -> None:
        self._calls: list[Any] = []
        self._times = 0

    def count(self, uses: ToolUses) -> None:
        """Take the tool uses of a step that has ended."""
        calls = [(done.name, done.raw if done.input is None else done.input) for done in uses.given]
        if any(status == "done" for status in uses.statuses):
            self._times = 0
        elif calls == self._calls:
            self._times += 1
        else:
            self._times = 1
        self._calls = calls

    def too_many(self) -> ModelError | None:
        """The error that ends the turn, once it has gone on for long enough."""
        if self._times < MAX_SAME_FAILURES:
            return None
        return ModelError(STUCK.format(times=self._times))
