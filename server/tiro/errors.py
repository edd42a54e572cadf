"""Every error Tiro raises on purpose.

    TiroError
    ├── what the caller asked for cannot be done as asked
    │   ├── InvalidInputError (ValueError)         an empty prompt, a parameter out of range
    │   ├── InvalidMessageError (ValueError)       a message that breaks the conversation's rules
    │   ├── InvalidSessionIdError (ValueError)     an id that is no safe name
    │   ├── SessionNotFoundError (LookupError)
    │   ├── SessionExistsError (ValueError)
    │   ├── AgentNotFoundError (LookupError)
    │   ├── TurnNotFoundError (LookupError)
    │   ├── TurnInProgressError (RuntimeError)
    │   ├── ResizeError (RuntimeError)             the resize failed, nothing has changed
    │   ├── EditConflictError (RuntimeError)       it would overwrite somebody's change
    │   └── ToolError (RuntimeError)               a tool cannot do what it was asked
    ├── the disk
    │   ├── SessionFormatError (ValueError)        a file that cannot be read as a session
    │   ├── SessionInUseError (RuntimeError)       another process is answering in it right now
    │   ├── SessionChangedError (RuntimeError)     somebody else saved it since it was read
    │   └── StorageError (OSError)                 a file cannot be written or read
    └── the model
        ├── ModelNotConfiguredError (LookupError)
        ├── ModelError (RuntimeError)              the provider refused or failed
        ├── ContextOverflowError (ValueError)      the request does not fit
        └── BudgetExceededError (RuntimeError)

The text of an error is one sentence that says what to do. `data` holds the details a program may
want, in snake_case and without secrets; the protocol sends them as `error.data`.
"""

import errno
from typing import Any


class TiroError(Exception):
    """The root of all errors that Tiro raises on purpose."""

    def __init__(self, message: str = "", **data: Any) -> None:
        super().__init__(message)
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return self.message


class InvalidInputError(TiroError, ValueError):
    """A parameter is of the right type but cannot be used, such as an empty prompt."""


class InvalidMessageError(TiroError, ValueError):
    """A message has an unknown role or a broken block, or answers no open tool use."""


class InvalidSessionIdError(TiroError, ValueError):
    """An id given by a client is no safe name."""


class SessionNotFoundError(TiroError, LookupError):
    """No session has this id or path, or it has expired."""


class SessionExistsError(TiroError, ValueError):
    """The id given for a new session is taken."""


class AgentNotFoundError(TiroError, LookupError):
    """No selectable agent has this name."""


class TurnNotFoundError(TiroError, LookupError):
    """The turn that should be cancelled or steered is not running."""


class TurnInProgressError(TiroError, RuntimeError):
    """A turn is running, and this has to wait until it is over."""


class ResizeError(TiroError, RuntimeError):
    """A resize, compaction or its undoing failed; nothing has changed."""


class EditConflictError(TiroError, RuntimeError):
    """A write, undo or redo would overwrite somebody else's change; nothing was touched."""


class ToolError(TiroError, RuntimeError):
    """A tool cannot do what it was asked; the text goes to the model as an error result."""


class SessionFormatError(TiroError, ValueError):
    """A file or text cannot be read as a session; it is left as it is."""


class SessionInUseError(TiroError, RuntimeError):
    """Another process is answering in this session right now."""


class SessionChangedError(TiroError, RuntimeError):
    """Somebody else saved this session since it was read from its store; nothing was written."""


class StorageError(TiroError, OSError):
    """A file could not be written or read; the session lives on in memory."""


class ModelNotConfiguredError(TiroError, LookupError):
    """No model can be used as things are configured."""


class ModelError(TiroError, RuntimeError):
    """The provider refused the request or failed in the middle of its answer."""


class ContextOverflowError(TiroError, ValueError):
    """The request does not fit the model's context window."""


class BudgetExceededError(TiroError, RuntimeError):
    """The next request would pass the budget of this turn."""


def refused_by_system(error: OSError) -> StorageError:
    """What the system refuses where nobody has better words for it, as an error of ours."""
    what = "Something" if error.filename is None else repr(str(error.filename))
    return StorageError(
        f"{what} could not be used: {error.strerror or error}; put that right and try again",
        path=str(error.filename or ""),
        errno=errno.errorcode.get(error.errno or 0, "EIO"),
    )
