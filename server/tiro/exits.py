"""How a command ends: the one table of exit codes, for the commands, their help and the README."""

import contextlib
from collections.abc import Generator
from enum import IntEnum

from tiro.errors import InvalidInputError, ModelError, ModelNotConfiguredError, TiroError


class Exit(IntEnum):
    """An exit code; `ABOUT` says what each one means."""

    DONE = 0
    FAILED = 1
    WRONG_USE = 2
    NO_MODEL = 3
    CANCELLED = 130
    """As a shell tells of a program that SIGINT has ended."""
    UNREAD = 141
    """As a shell tells of a program that SIGPIPE has ended."""


ABOUT: dict[Exit, str] = {
    Exit.DONE: "done",
    Exit.FAILED: "it failed, or nothing of that name is there",
    Exit.WRONG_USE: "the command line is wrong",
    Exit.NO_MODEL: "no model answers (see tiro doctor)",
    Exit.CANCELLED: "cancelled with Ctrl-C",
    Exit.UNREAD: "nobody reads the output any more",
}


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
