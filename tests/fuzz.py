"""Random inputs by hand, for as long as somebody has patience. Run by `run.py`.

    python3 tests/run.py fuzz --minutes 60

Each file is run again and again, each time with other inputs; a case that fails is printed by
Hypothesis with all it takes to repeat it, and becomes an `@example` of its test.
"""

import os
import subprocess
import sys
import time
from itertools import cycle
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = (
    "tests/protocol/test_fuzz.py", "tests/protocol/test_frames.py", "tests/e2e/test_odd_frames.py",
    "tests/models/test_random_streams.py", "tests/models/test_server_sent_events.py",
    "tests/models/test_openai.py", "tests/models/test_anthropic.py",
    "tests/stores/test_random_damage.py", "tests/stores/test_random_files.py",
    "tests/stores/contract/test_random_rows.py", "tests/stores/test_transcripts.py",
    "tests/stores/test_formats.py", "tests/session/test_snapshot.py", "tests/test_config.py",
    "tests/agents/test_random_files.py", "tests/agents/test_random_lines.py",
    "tests/agents/test_random_turns.py", "tests/tools/test_random_paths.py",
    "tests/tools/test_random_edits.py", "tests/tools/test_command_line.py",
    "tests/recording/test_random_recordings.py",
)  # fmt: skip
"""Frames, streams, files of every kind, rows, settings, agents, commands, paths, recordings."""
ROUND_SECONDS = 120
"""So long a file may take before it is the next one's turn."""


def main() -> int:
    """Run the files in turn until the minutes are over; the exit code is 1 when a case failed."""
    end = time.monotonic() + 60 * float(sys.argv[1])
    failed = 0
    for number, file in enumerate(cycle(FILES)):
        left = end - time.monotonic()
        if left <= 0:
            break
        failed += _run(file, seed=number + int(time.time()), seconds=min(left, ROUND_SECONDS))
    sys.stdout.write(f"{failed} failed\n")
    return int(failed > 0)


def _run(file: str, seed: int, seconds: float) -> bool:
    options = ("-q", "-x", "--no-header", "-p", "no:cacheprovider", f"--hypothesis-seed={seed}")
    env = {**os.environ, "TIRO_FUZZ": "1"}
    argv = [sys.executable, "-m", "pytest", *options, file]
    sys.stdout.write(f"{file} with seed {seed}\n")
    sys.stdout.flush()
    try:
        return subprocess.run(argv, cwd=ROOT, env=env, timeout=seconds).returncode == 1
    except subprocess.TimeoutExpired:
        return False


if __name__ == "__main__":
    sys.exit(main())
