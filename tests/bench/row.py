"""A row of the table: ours, the baseline beside it in the same run, their ratio, the bar."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One measured thing; `ours` and `baseline` are texts, `figure` is what the bar speaks of."""

    what: str
    ours: str
    baseline: str
    figure: str
    bar: str


def ratio_row(what: str, ours: float, baseline: float, bar: float, against: str) -> Row:
    """A row whose bar is a ratio of two times in seconds."""
    return Row(
        what,
        in_words(ours),
        f"{in_words(baseline)} ({against})",
        f"{ours / baseline:.2f} x",
        f"at most {bar} x",
    )


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table."""
    lines = ["| what | Tiro | baseline | figure | bar |", "|---|--:|--:|--:|--:|"]
    lines += [f"| {r.what} | {r.ours} | {r.baseline} | {r.figure} | {r.bar} |" for r in rows]
    return "\n".join(lines)


def timed(act: Callable[[], object]) -> float:
    """The seconds that one call takes."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def medians(
    ours: Callable[[], object], baseline: Callable[[], object], times: int
) -> tuple[float, float]:
    """The median seconds of each, measured in turn, so that a busy moment hits both."""
    pairs = [(timed(ours), timed(baseline)) for _ in range(times)]
    first, second = zip(*pairs, strict=True)
    return statistics.median(first), statistics.median(second)


def in_words(seconds: float) -> str:
    """A time with a unit that keeps three digits readable."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1 or unit == "µs":
            return f"{seconds * factor:.3g} {unit}"
    raise AssertionError("the loop ends with µs")
