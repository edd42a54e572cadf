"""What a command writes: its answer to stdout, all about it to stderr.

Stdout that takes nothing more is an error, told in a sentence; what stderr does not take is lost,
since there is nobody left to be told.
"""

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from tiro.errors import StorageError
from tiro.session.hidden import harmless


def write(text: str) -> None:
    """Write to stdout; a terminal gets nothing that acts on it.

    Raises BrokenPipeError when nobody reads on, and StorageError when it cannot be written.
    """
    shown = harmless(text) if sys.stdout.isatty() else text
    _tried(lambda: sys.stdout.write(shown))


def show(text: str) -> None:
    """Write to stdout at once and as it is; raises what `write` raises."""
    _tried(lambda: sys.stdout.write(text))
    flush()


def flush() -> None:
    """Write what is still held back; raises what `write` raises."""
    if sys.stdout:
        _tried(sys.stdout.flush)


def tell(text: str) -> None:
    """Write to stderr at once and as it is."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        _drop(sys.stderr)


def note(text: str) -> None:
    """Tell something about an answer, beside the answer."""
    tell(f"{harmless(text)}\n")


def write_json(value: object) -> None:
    """Write a value for a program to read."""
    write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def headings(row: str, *names: str) -> None:
    """Name the columns to a person; a program that reads the rows gets nothing but rows."""
    if sys.stdout.isatty():
        write(row.format(*names))


def drop() -> None:
    """Let all that is written to stdout from now on, and what is held back, go nowhere."""
    _drop(sys.stdout)


def _drop(stream: TextIO) -> None:
    """Else Python complains of it once more when it ends."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _tried(act: Callable[[], object]) -> None:
    try:
        act()
    except BrokenPipeError:
        raise
    except OSError as error:
        drop()
        raise StorageError(
            f"Stdout cannot be written ({error.strerror}); make room or send it elsewhere"
        ) from error
