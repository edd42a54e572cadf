"""How a command ends: the one table of exit codes, for the commands, their help and the README."""

import contextlib
import signal
from collections.abc import Generator
from enum import IntEnum
from typing import Any, Self

from tiro.errors import InvalidInputError, ModelError, ModelNotConfiguredError, TiroError


class Exit(IntEnum):
    """An exit code; `ABOUT` says what each one means."""

    DONE = 0
    FAILED = 1
    WRONG_USE = 2
    NO_MODEL = 3
    CANCELLED = 130
    """As a shell tells of a program that SIGINT has ended; so do SIGTERM and SIGHUP end it."""
    UNREAD = 141
    """As a shell tells of a program that SIGPIPE has ended."""


ABOUT: dict[Exit, str] = {
    Exit.DONE: "done",
    Exit.FAILED: "it failed, or nothing of that name is there",
    Exit.WRONG_USE: "the command line is wrong",
    Exit.NO_MODEL: "no model answers (see tiro doctor)",
    Exit.CANCELLED: "cancelled with Ctrl-C, SIGTERM or SIGHUP",
    Exit.UNREAD: "nobody reads the output any more",
}

ENDING = ("SIGTERM", "SIGHUP")
"""The signals besides Ctrl-C by which somebody ends a program."""


class Ending:
    """Within it these signals come as Ctrl-C does; `has_begun` says that one did.

    One that is ignored, as SIGHUP is after `nohup`, stays so.
    """

    def __init__(self) -> None:
        self.has_begun = False
        self._usual: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for name in ENDING:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                self._usual[number] = signal.signal(number, self._begin)
        return self

    def __exit__(self, *_: object) -> None:
        for number, usual in self._usual.items():
            signal.signal(number, usual)

    def _begin(self, number: int, frame: object) -> None:
        self.has_begun = True
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # begun in the background
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)


def exit_of(error: TiroError) -> Exit:
    """How a command ends that met this error."""
    if isinstance(error, InvalidInputError):
        return Exit.WRONG_USE
    is_of_model = isinstance(error, ModelNotConfiguredError | ModelError)
    return Exit.NO_MODEL if is_of_model else Exit.FAILED


@contextlib.contextmanager
def as_failure(*kinds: type[TiroError]) -> Generator[None, None, None]:
    """Within it these errors are plain failures, whatever their kind means elsewhere."""
    try:
        yield
    except kinds as error:
        raise TiroError(str(error)) from error
