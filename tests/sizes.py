"""How much a run tries: `tests/run.py --fast`, the default and `--long` set TIRO_TEST_SIZE."""

import os
from typing import Literal, cast

Size = Literal["fast", "normal", "long"]

SIZE = cast("Size", os.environ.get("TIRO_TEST_SIZE", "normal"))

PATIENCE = 60.0
"""Seconds to wait for what must come: a busy machine fails no test, what hangs is still seen."""

LIMITS = (1, 10, 60)
"""Seconds for what is ended at its limit, each tried: what begins slowly gets further with more."""

SECONDS = {"fast": 300, "normal": 300, "long": 3600}[SIZE]
"""How long a test may take before it counts as hanging, also on a machine that does much else."""


def sized(*, fast: int, normal: int, long: int) -> int:
    """The number of repetitions for this run, e.g. `max_examples=sized(fast=50, …)`."""
    return {"fast": fast, "normal": normal, "long": long}[SIZE]
