"""What a delta costs in a real Emacs whose chat shows so many messages: processor time of Emacs.

It runs in a terminal of its own and draws after each piece of input, as it does before a user.
"""

import contextlib
import os
import pty
import statistics
import sys
import tempfile
import termios
import threading
from pathlib import Path
from subprocess import DEVNULL, Popen

from tests.bench.row import Row, in_words

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "editor-clients" / "emacs"
LINES, COLUMNS = 40, 100
FEW, MANY = 10, 10_000


def rows() -> list[Row]:
    """The row of this module."""
    seconds = delta_seconds([FEW, MANY])
    few, many = seconds[FEW], seconds[MANY]
    return [
        Row(
            f"Emacs: a delta in a chat of {MANY:,} messages, drawn",
            in_words(many),
            f"{in_words(few)} (in one of {FEW})",
            f"{many / few:.2f} x",
            "the same",
        )
    ]


def delta_seconds(sizes: list[int]) -> dict[int, float]:
    """The median seconds of processor time that a delta takes, by the messages above it."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        _run_emacs(sizes, out)
        lines = out.read_text().splitlines()
    taken: dict[int, list[float]] = {size: [] for size in sizes}
    for line in lines:
        size, seconds = line.split()
        taken[int(size)].append(float(seconds))
    return {size: statistics.median(seconds) for size, seconds in taken.items()}


def _run_emacs(sizes: list[int], out: Path) -> None:
    env = {
        **os.environ,
        "TERM": "xterm",
        "TIRO_PYTHON": sys.executable,
        "TIRO_BENCH_SIZES": " ".join(map(str, sizes)),
        "TIRO_BENCH_OUT": str(out),
    }
    load = ("-L", CLIENT, "-L", CLIENT / "test", "-l", Path(__file__).with_name("emacs-deltas.el"))
    screen, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (LINES, COLUMNS))
    try:
        command = list(map(str, ("setsid", "--ctty", "--wait", "emacs", "-Q", "-nw", *load)))
        child = Popen(command, stdin=terminal, stdout=terminal, stderr=DEVNULL, env=env)
    finally:
        os.close(terminal)
    watcher = threading.Thread(target=_drain, args=(screen,), daemon=True)
    watcher.start()
    child.wait()
    watcher.join()
    os.close(screen)


def _drain(screen: int) -> None:
    """Read what is drawn, as a terminal does, until nobody draws any more."""
    with contextlib.suppress(OSError):
        while os.read(screen, 1 << 16):
            pass
