"""The trust table: how often each kind of disaster was tried, and what was lost. Run by `run.py`.

    python3 tests/run.py trust --long

Each test tells by pytest's `record_property` how much it tried, under the name of its row; the sum
of a row counts only tests that passed. Each file is a run of its own, so that what ends one costs
no other's figures, and says how far it is.
"""

import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree
from collections import Counter
from pathlib import Path

from tests.sizes import SIZE

ROOT = Path(__file__).resolve().parents[1]
TESTS = (
    "tests/stores/test_kill.py", "tests/stores/test_faults.py", "tests/stores/test_fault_places.py",
    "tests/stores/test_turns.py", "tests/stores/test_random_damage.py",
    "tests/stores/contract/test_processes.py", "tests/stores/contract/test_vacuum.py",
    "tests/e2e/test_restart.py", "tests/e2e/test_disk.py", "tests/e2e/test_processes.py",
    "tests/e2e/test_odd_frames.py", "tests/e2e/test_random_histories.py",
    "tests/e2e/test_working_day.py", "tests/faults/test_document.py",
)  # fmt: skip
ROWS = {
    "kills": (500, "kill -9 inside or between operations; all that was acknowledged is there"),
    "served_kills": (50, "  of them on the running server"),
    "faults": (200, "disk full, EIO, EACCES at every write, fsync, rename; told once, resumed"),
    "histories": (20_000, "random histories; each next request passes the strict checks"),
    "frames": (100_000, "malformed or odd frames; each id is answered once"),
    "damaged": (30_000, "damaged session files; each is refused whole or usable, none is changed"),
    "day_turns": (5000, "turns of a working day; memory at most 1.2x, no handle or child is left"),
    "saves": (1000, "interleaved saves of two processes; nothing is lost"),
    "saves_files": (1000, "the same by programs on one store of files"),
    "saves_sqlite": (1000, "  in SQLite"),
    "saves_redis": (1000, "  on one Redis server"),
    "vacuumed": (200, "large values stored while another process removes what nobody needs"),
    "writer_kills": (75, "kill -9 of a program that writes to a store; what was answered is there"),
    "redis_kills": (50, "kill -9 of the Redis server under it; likewise"),
}


def main() -> int:
    """Run the tests of all rows and print what they add up to; with --long each must be reached."""
    reached: Counter[str] = Counter()
    worst = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, file in enumerate(TESTS, 1):
            _say(f"\n{number} of {len(TESTS)}: {file}")
            began, junit = time.monotonic(), Path(folder) / f"{number}.xml"
            code = _run(file, junit)
            worst = max(worst, abs(code))
            found = figures(xml.etree.ElementTree.parse(junit).getroot()) if junit.exists() else {}
            reached.update(found)
            told = ", ".join(f"{count} {name}" for name, count in found.items()) or "no figure"
            how = "passed" if code == 0 else f"FAILED with {code}"
            _say(f"{how} in {time.monotonic() - began:.0f} s: {told}")
    _say(f"\n{'wanted':>8} {'reached':>8}  what")
    for name, (wanted, what) in ROWS.items():
        _say(f"{wanted:>8} {reached[name]:>8}  {what}")
    is_short = any(reached[name] < wanted for name, (wanted, _) in ROWS.items())
    return worst or int(SIZE == "long" and is_short)


def _run(file: str, junit: Path) -> int:
    options = ("-v", "--no-header", "-p", "no:cacheprovider", f"--junitxml={junit}")
    return subprocess.run([sys.executable, "-m", "pytest", *options, file], cwd=ROOT).returncode


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


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
