"""What looking at folders may cost before a tool use is decided about: one budget for all of it."""

import time
from collections.abc import Callable

MAX_ENTRIES = 50_000
"""So many files and folders are looked at for one tool use."""
MAX_SECONDS = 0.8
"""And for so long; a disk that does not answer at all is another matter."""
ALWAYS = 1_000
"""So many are looked at however long it takes: a busy machine asks about no small folder."""


def cost_of(path: str) -> int:
    """How many looks one at a path counts for: long paths and very long names take longer."""
    return 1 + len(path) // 32 + sum((len(name) // 64) ** 4 for name in path.split("/"))


class Budget:
    """What is left of it. Once it is spent, nothing more is looked at."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left = MAX_ENTRIES
        self._end = clock() + MAX_SECONDS

    @property
    def is_spent(self) -> bool:
        """Whether something could not be looked at."""
        return self._left < 0

    def spend(self, count: int = 1) -> bool:
        """Take so much of it; False when there is no more."""
        self._left -= count
        if 0 <= self._left < MAX_ENTRIES - ALWAYS and self._clock() > self._end:
            self._left = -1
        return self._left >= 0
