"""Tiro as a library: one conversation that forgets nothing.

    from tiro import Session

    session = Session()
    session.add_message("user", "Find all .el files")

Only names of `tiro.session` and `tiro.errors` are here; importing this loads no server, no HTTP
and no YAML. Everything else is imported from its module.
"""

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
    SessionExistsError,
    SessionFormatError,
    SessionInUseError,
    SessionNotFoundError,
    StorageError,
    TiroError,
    TurnInProgressError,
    TurnNotFoundError,
)
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
    "InvalidInputError",
    "InvalidMessageError",
    "InvalidSessionIdError",
    "Message",
    "ModelError",
    "ModelNotConfiguredError",
    "ResizeError",
    "Session",
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
