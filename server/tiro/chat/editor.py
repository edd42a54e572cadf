"""A text in the person's own editor: `$VISUAL`, `$EDITOR`, or one that is usual."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path

from tiro.chat.lines import Lines
from tiro.errors import InvalidInputError

USUAL = ("nano", "vi", "notepad")


def edited(lines: Lines, text: str, ending: str) -> str:
    """The text as the person left it; it is in a file with this ending that nobody else reads.

    Everything else waits meanwhile, so that nothing is written over the editor. Raises
    InvalidInputError where nobody is there or no file can be made, and for an editor that cannot
    be started or fails.
    """
    if not lines.is_person:
        raise InvalidInputError("Nobody is there to edit; use it in a terminal")
    try:
        return _in_a_file(lines, text, ending)
    except OSError as error:
        raise InvalidInputError(
            f"The text could not be given to an editor ({error.strerror}); nothing has changed"
        ) from error


def _in_a_file(lines: Lines, text: str, ending: str) -> str:
    with tempfile.TemporaryDirectory(prefix="tiro-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / f"text{ending}"
        path.write_text(text, "utf-8")
        with lines.lent(), _no_interrupts():
            _edit([*_editor(), str(path)])
        return path.read_text("utf-8", "replace")


def _editor() -> list[str]:
    wanted = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    usual = wanted or next(filter(shutil.which, USUAL), None)
    if usual is None:
        raise InvalidInputError("No editor was found; name one in the variable EDITOR")
    try:
        return shlex.split(usual, posix=os.name != "nt")
    except ValueError as error:
        raise InvalidInputError(f"EDITOR is no command line: {usual!r} ({error})") from error


def _edit(command: list[str]) -> None:
    try:
        code = subprocess.run(command, check=False).returncode
    except OSError as error:
        raise InvalidInputError(
            f"The editor {command[0]!r} cannot be started ({error.strerror}); name another one in"
            " the variable EDITOR"
        ) from error
    if code:
        raise InvalidInputError(
            f"The editor {command[0]!r} failed with exit code {code}; nothing has changed"
        )


@contextlib.contextmanager
def _no_interrupts() -> Generator[None, None, None]:
    """Within it Ctrl-C is the editor's own; that of a program it starts is as usual again."""
    usual = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
