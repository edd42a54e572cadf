"""Print the table of ratios: `python3 tests/run.py bench`. It never passes or fails by time."""

import os
import platform

from tests.bench import accuracy, library, searching, stores, streams, wire
from tests.bench.row import table


def main() -> None:
    """Measure everything, then print."""
    system = f"Python {platform.python_version()}, {platform.system()}, {os.cpu_count()} cores"
    print(f"Ratios of one run ({system}); every baseline was measured beside it.\n", flush=True)
    groups = (wire, library, stores, accuracy, searching, streams)
    print(table([row for group in groups for row in group.rows()]))


if __name__ == "__main__":
    main()
