"""Tiro as a library: one conversation that forgets nothing.

    from tiro import Session

    session = Session()
    session.add_message("user", "Find all .el files")

Only names of `tiro.session` and `tiro.errors` are here; importing this loads no server, no HTTP
and no YAML. Everything else is imported from its module. What belongs to the session is loaded on
first use, since every command of Tiro comes through here and `tiro --version` needs none of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tiro.errors import (
    AgentNotFoundError,
    BudgetExceededError,
    ContextOverflowError,
    EditConflictError,
    InvalidInputError,
    InvalidMessageError,
    InvalidSessionIdError,
    ModelError,
    ModelNotConfiguredError,
    ResizeError,
    SessionChangedError,
    SessionExistsError,
    SessionFormatError,
    SessionInUseError,
    SessionNotFoundError,
    StorageError,
    TiroError,
    TurnInProgressError,
    TurnNotFoundError,
)

if TYPE_CHECKING:
    from tiro.session.entries import Entry
    from tiro.session.messages import Message
    from tiro.session.provider_view import provider_view
    from tiro.session.session import Session
    from tiro.session.tokens import estimate_tokens

__version__ = "0.1.0"

__all__ = [
    "AgentNotFoundError",
    "BudgetExceededError",
    "ContextOverflowError",
    "EditConflictError",
    "Entry",
    "InvalidInputError",
    "InvalidMessageError",
    "InvalidSessionIdError",
    "Message",
    "ModelError",
    "ModelNotConfiguredError",
    "ResizeError",
    "Session",
    "SessionChangedError",
    "SessionExistsError",
    "SessionFormatError",
    "SessionInUseError",
    "SessionNotFoundError",
    "StorageError",
    "TiroError",
    "TurnInProgressError",
    "TurnNotFoundError",
    "__version__",
    "estimate_tokens",
    "provider_view",
]

_LOADED_ON_USE = {
    "Entry": "tiro.session.entries",
    "Message": "tiro.session.messages",
    "Session": "tiro.session.session",
    "estimate_tokens": "tiro.session.tokens",
    "provider_view": "tiro.session.provider_view",
}


def __getattr__(name: str) -> Any:
    if name not in _LOADED_ON_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_LOADED_ON_USE[name]), name)
    globals()[name] = value
    return value
