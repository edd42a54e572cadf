"""What a command writes to stdout: harmless in a terminal, and a sentence when it cannot be."""

import os
import sys
from collections.abc import Callable

from tiro.errors import StorageError
from tiro.screen_text import harmless


def write(text: str) -> None:
    """Write to stdout; a terminal gets nothing that acts on it.

    Raises BrokenPipeError when nobody reads on, and StorageError when it cannot be written.
    """
    shown = harmless(text) if sys.stdout.isatty() else text
    _tried(lambda: sys.stdout.write(shown))


def flush() -> None:
    """Write what is still held back; raises what `write` raises."""
    if sys.stdout:
        _tried(sys.stdout.flush)


def drop() -> None:
    """Let all that is written from now on, and what is held back, go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _tried(act: Callable[[], object]) -> None:
    try:
        act()
    except BrokenPipeError:
        raise
    except OSError as error:
        drop()  # else Python complains of it once more when it ends
        raise StorageError(
            f"Stdout cannot be written ({error.strerror}); make room or send it elsewhere"
        ) from error
