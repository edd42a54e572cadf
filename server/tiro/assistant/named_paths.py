"""Paths that a client names: their disk is asked for a sign before a request waits for it.

What is on them may take as long as it takes to read; a disk without a sign is given up and told.
"""

import asyncio
import contextlib
import os
import stat
from functools import partial
from pathlib import Path

from tiro.agents.settings_file import UnusableFileError
from tiro.agents.silent_disk import WHY, Patience
from tiro.errors import SessionFormatError, StorageError


async def to_be_read(path: Path | None, patience: Patience) -> None:
    """Raise SessionFormatError where the disk of a session's file does not answer."""
    try:
        await _look(path, patience)
    except UnusableFileError as error:
        sentence = f"{str(path)!r} cannot be read as a session: {WHY}"
        raise SessionFormatError(sentence, path=str(path), reason=WHY, recovered=0) from error


async def to_be_written(path: Path | None, patience: Patience) -> None:
    """Raise StorageError where the disk of a file that is to be written does not answer."""
    try:
        await _look(path, patience)
    except UnusableFileError as error:
        sentence = f"{str(path)!r} could not be written: {WHY}"
        raise StorageError(sentence, path=str(path), errno="ETIMEDOUT") from error


async def _look(path: Path | None, patience: Patience) -> None:
    if path is not None:
        await asyncio.to_thread(patience.ask, path, partial(_touch, path))


def _touch(path: Path) -> None:
    """Read a byte of a file, if there is one; whatever else is wrong with it is said by others."""
    with contextlib.suppress(OSError):
        if stat.S_ISREG(os.stat(path).st_mode):
            with open(path, "rb", buffering=0) as file:
                file.read(1)
