"""What a test looks at: the texts of a session, the files of a directory."""

import stat
from pathlib import Path
from typing import Any

from tiro.session.core import Core


def texts(session: Core) -> list[Any]:
    """The contents of the window, oldest first."""
    return [message.content for message in session.oldest_first()]


def names(directory: Path) -> list[str]:
    """The names of all files in the directory, sorted."""
    return sorted(path.name for path in directory.iterdir()) if directory.exists() else []


def mode(path: Path) -> int:
    """The permission bits of a file."""
    return stat.S_IMODE(path.stat().st_mode)
