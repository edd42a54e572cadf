"""The trust table: how often each kind of disaster was tried, and what was lost. Run by `run.py`.

    python3 tests/run.py trust --long

Each test tells by pytest's `record_property` how much it tried, under the name of its row; the sum
of a row counts only tests that passed.
"""

import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = (
    "tests/stores/test_kill.py", "tests/stores/test_faults.py", "tests/stores/test_fault_places.py",
    "tests/stores/test_turns.py", "tests/e2e/test_restart.py", "tests/e2e/test_disk.py",
    "tests/e2e/test_processes.py", "tests/e2e/test_odd_frames.py",
    "tests/e2e/test_random_histories.py",
)  # fmt: skip
ROWS = {
    "kills": (500, "kill -9 inside or between operations; all that was acknowledged is there"),
    "served_kills": (50, "  of them on the running server"),
    "faults": (200, "disk full, EIO, EACCES at every write, fsync, rename; told once, resumed"),
    "histories": (20_000, "random histories; each next request passes the strict checks"),
    "frames": (100_000, "malformed or odd frames; each id is answered once"),
    "saves": (1000, "interleaved saves of two processes; nothing is lost"),
}


def main() -> int:
    """Run the tests of all rows and print what they add up to."""
    with tempfile.TemporaryDirectory() as folder:
        junit = Path(folder) / "trust.xml"
        options = ("-q", "-p", "no:cacheprovider", f"--junitxml={junit}")
        code = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *TESTS], cwd=ROOT
        ).returncode
        reached = figures(xml.etree.ElementTree.parse(junit).getroot())
    sys.stdout.write(f"\n{'wanted':>8} {'reached':>8}  what\n")
    for name, (wanted, what) in ROWS.items():
        sys.stdout.write(f"{wanted:>8} {reached[name]:>8}  {what}\n")
    return code


def figures(suites: xml.etree.ElementTree.Element) -> Counter[str]:
    """The sums of what the tests that passed have recorded."""
    found: Counter[str] = Counter()
    for case in suites.iter("testcase"):
        if case.find("failure") is None and case.find("error") is None:
            for entry in case.iter("property"):
                found[entry.get("name", "")] += int(entry.get("value", "0"))
    return found


if __name__ == "__main__":
    sys.exit(main())
