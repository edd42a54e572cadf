"""Print the table of ratios and the growth curves: `python3 tests/run.py bench`.

It never passes or fails by time. With --growth only the curves are measured, with --write the
figures and the picture of server/PERFORMANCE.md are put in anew.
"""

import argparse
import os

from tests.bench import (
    accuracy,
    deltas,
    emacs,
    growth,
    library,
    plot,
    report,
    searching,
    stores,
    streams,
    wire,
)
from tests.bench.row import table

GROUPS = (wire, deltas, library, stores, accuracy, searching, streams, emacs)


def main() -> None:
    """Measure what is wanted, then print it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--write", action="store_true")
    given, load = parser.parse_args(), os.getloadavg()[0]

    def tell(name: str, figures: str) -> None:
        told = f"{report.machine(load)}\n\n{figures}"
        print(f"{told}\n", flush=True)
        if given.write:
            report.write(name, told)

    if not given.growth:
        tell("rows", table([row for group in GROUPS for row in group.rows()]))
    curves = growth.curves()
    tell("growth", growth.table(curves))
    if given.write:
        plot.draw(curves, report.PICTURE)


if __name__ == "__main__":
    main()
