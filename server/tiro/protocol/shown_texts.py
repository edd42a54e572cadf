"""Long texts as private files that an editor opens: `window/showDocument` takes nothing else.

They lie in a folder of their own until the server ends. Its name says whose it is, so that the next
one that is made removes what killed servers have left.
"""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from tiro.stores.processes import is_alive, mark

PREFIX = "tiro-shown-"


class ShownTexts:
    """The texts of one server."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    def write(self, name: str, text: str) -> Path:
        """Write a text; the first one makes the folder."""
        if self._folder is None:
            _remove_left(Path(tempfile.gettempdir()))
            prefix = f"{PREFIX}{os.getpid()}-{mark()}-"
            self._folder = Path(tempfile.mkdtemp(prefix=prefix))
        path = self._folder / name
        path.write_text(text, encoding="utf-8", errors="replace")
        path.chmod(0o600)
        return path

    def close(self) -> None:
        """Remove them."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _remove_left(temporary: Path) -> None:
    for path in temporary.glob(f"{PREFIX}*-*-*"):
        pid, where, _ = path.name.removeprefix(PREFIX).split("-", 2)
        is_of_here = where and where == mark() and pid.isdecimal()
        with suppress(OSError):
            if is_of_here and not is_alive(int(pid)) and path.lstat().st_uid == os.getuid():
                shutil.rmtree(path, ignore_errors=True)
