"""The directories of one user: configuration, sessions, logs, and what may be deleted."""

import os
from pathlib import Path

import platformdirs


def config_directory() -> Path:
    """`$TIRO_CONFIG_DIR`, else the platform's directory for a user's configuration of tiro."""
    given = os.environ.get("TIRO_CONFIG_DIR")
    if given:
        return Path(os.path.abspath(os.path.expanduser(given)))
    return platformdirs.user_config_path("tiro", appauthor=False)


def sessions_directory(directory: Path | None = None) -> Path:
    """Where sessions are saved."""
    return (directory or config_directory()) / "sessions"


def state_directory() -> Path:
    """Where logs lie."""
    return platformdirs.user_state_path("tiro", appauthor=False)


def cache_directory() -> Path:
    """Where indexes and local models lie; deleting it costs time only."""
    return platformdirs.user_cache_path("tiro", appauthor=False)
