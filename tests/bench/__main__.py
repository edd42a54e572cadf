"""Print the table of ratios: `python3 tests/run.py bench`. It never passes or fails by time."""

import os
import platform

from tests.bench import library, searching, streams, wire
from tests.bench.row import table


def main() -> None:
    """Measure everything, then print."""
    system = f"Python {platform.python_version()}, {platform.system()}, {os.cpu_count()} cores"
    print(f"Ratios of one run ({system}); every baseline was measured beside it.\n", flush=True)
    print(table([*wire.rows(), *library.rows(), *searching.rows(), *streams.rows()]))


if __name__ == "__main__":
    main()
