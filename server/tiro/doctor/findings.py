"""What `tiro doctor` finds, as values; `is_ready`: the next prompt would be answered."""

from tiro.protocol.types import Wire


class ProviderFound(Wire, frozen=True, kw_only=True):
    """A configured provider; `reason` says in words why it cannot be asked."""

    name: str
    address: str
    missing_key: str | None = None
    """The environment variable that should hold its key and does not."""
    reason: str | None = None
    remark: str | None = None
    """What is odd about one that can be used."""
    is_key_refused: bool = False
    key_variable: str | None = None
    """The environment variable that holds its key."""
    models: list[str]
    """Those that somebody named, else those that it lists."""


class Unlisted(Wire, frozen=True):
    """The model that is set is not in its provider's list; it may be a short name of one there."""

    provider: str
    nearest: list[str]
    """The names in the list that look like it, else the first ones."""


class DamagedSession(Wire, frozen=True):
    """A file in the sessions directory that cannot be loaded."""

    path: str
    reason: str


class SessionsFound(Wire, frozen=True, kw_only=True):
    """The sessions directory; a missing one is writable when it can be made."""

    directory: str
    is_writable: bool
    free_bytes: int | None
    saved: int
    damaged: list[DamagedSession]


class LocalFound(Wire, frozen=True, kw_only=True):
    """The embedded models."""

    is_installed: bool
    in_use: str
    """The one that answers where none is named."""
    ready: list[str]
    """Those that are downloaded."""
    install_command: str
    """What installs the program that runs them, beside this Tiro."""
    known: list[str]
    """Those and all that can be."""


class Findings(Wire, frozen=True, kw_only=True):
    """All of it."""

    version: str
    python: str
    platform: str
    config_directory: str
    config_files: list[str]
    problems: list[str]
    """Every wrong key, with file, line and path; a file that cannot be read at all comes first.

    Then what is wrong with agents' files and `AGENTS.md`.
    """
    is_config_broken: bool = False
    """Whether there is such a file."""
    doubt: str | None = None
    """The problem that keeps every prompt from being sent, since it may be about who hears it."""
    unlisted: Unlisted | None = None
    sessions: SessionsFound
    providers: list[ProviderFound]
    """In the order in which they are tried when no model is set."""
    local: LocalFound
    model: str | None
    """The one that the next prompt is sent to."""
    model_because: str
    agent: str
    command: str | None
    """Where editors find `tiro`; None: it is not on the PATH."""
    python_command: str
    is_ready: bool
    next_step: str
