"""Paths that a client names: their disk is asked for a sign before a request waits for it.

What is on them may take as long as it takes to read; a disk without a sign is given up and told.
"""

import asyncio
from functools import partial
from pathlib import Path

from tiro.errors import SessionFormatError, StorageError
from tiro.tools.silent_disk import WHY, Patience, SilentDiskError, touch


async def to_be_read(path: Path | None, patience: Patience) -> None:
    """Raise SessionFormatError where the disk of a session's file does not answer."""
    try:
        await _look(path, patience)
    except SilentDiskError as error:
        sentence = f"{str(path)!r} cannot be read as a session: {WHY}"
        raise SessionFormatError(sentence, path=str(path), reason=WHY, recovered=0) from error


async def to_be_written(path: Path | None, patience: Patience) -> None:
    """Raise StorageError where the disk of a file that is to be written does not answer."""
    try:
        await _look(path, patience)
    except SilentDiskError as error:
        sentence = f"{str(path)!r} could not be written: {WHY}"
        raise StorageError(sentence, path=str(path), errno="ETIMEDOUT") from error


async def _look(path: Path | None, patience: Patience) -> None:
    if path is not None:
        await asyncio.to_thread(patience.ask, path, partial(touch, path))
