"""Where the lines of a conversation come from, and the pipe as the simplest such place."""

import contextlib
import sys
from collections.abc import Callable
from typing import Protocol

PROMPT, MORE = "> ", ". "
OnSteer = Callable[[str], None]


def unheard(text: str) -> None:
    """Nobody is there who could be steered."""


class Lines(Protocol):
    """Where the lines of a conversation come from."""

    is_person: bool
    """Whether somebody is there who can be asked."""
    number: int
    """Where in a file the text that was read last begins, from 1."""

    def read(self) -> str | None:
        """The next text; None at the end. KeyboardInterrupt: the person dropped the line."""
        ...

    def show_above(self, text: str) -> bool:
        """Put lines above the one that is typed; False where that cannot be done now."""
        ...

    def remember(self, text: str) -> None:
        """Let this be found again with the arrow keys."""
        ...

    def listening(self, on_steer: OnSteer = unheard) -> contextlib.AbstractContextManager[None]:
        """While an answer comes: keep what is typed for later, but a line that steers it."""
        ...

    async def ask(self, question: str) -> str | None:
        """One line that answers this question; None when there is nobody or they ended it."""
        ...

    def stop_asking(self) -> None:
        """A question that waits is answered with None."""
        ...

    def lent(self) -> contextlib.AbstractContextManager[None]:
        """While another program has the terminal: it is as it was before us."""
        ...


class PipedLines:
    """Lines from a pipe or a file: nobody is there to be asked."""

    is_person = False

    def __init__(self) -> None:
        self.number = self._lines_read = 0

    def read(self) -> str | None:
        """The next text, its continued lines joined."""
        self.number = self._lines_read + 1
        return joined(self._read_line)

    def _read_line(self, prompt: str) -> str:
        self._lines_read += 1
        return sys.stdin.readline()

    def show_above(self, text: str) -> bool:
        """Nothing is typed here."""
        return False

    def remember(self, text: str) -> None:
        """Nothing is typed here."""

    def listening(self, on_steer: OnSteer = unheard) -> contextlib.AbstractContextManager[None]:
        """The pipe waits by itself."""
        return contextlib.nullcontext()

    async def ask(self, question: str) -> str | None:
        """Nobody answers."""
        return None

    def stop_asking(self) -> None:
        """Nobody was asked."""

    def lent(self) -> contextlib.AbstractContextManager[None]:
        """A pipe is no terminal."""
        return contextlib.nullcontext()


def joined(read_line: Callable[[str], str]) -> str | None:
    """A text of one or more lines; a backslash at the end of a line continues it."""
    line = read_line(PROMPT)
    if not line:
        return None
    text = line.removesuffix("\n")
    while text.endswith("\\"):
        line = read_line(MORE)
        text = text[:-1] + "\n" + line.removesuffix("\n")
        if not line:
            break
    return text
