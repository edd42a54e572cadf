"""How much a run tries: `tests/run.py --fast`, the default and `--long` set TIRO_TEST_SIZE."""

import os
from typing import Literal, cast

Size = Literal["fast", "normal", "long"]

SIZE = cast("Size", os.environ.get("TIRO_TEST_SIZE", "normal"))


def sized(*, fast: int, normal: int, long: int) -> int:
    """The number of repetitions for this run, e.g. `max_examples=sized(fast=50, …)`."""
    return {"fast": fast, "normal": normal, "long": long}[SIZE]
