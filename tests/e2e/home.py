"""A home of its own for a server under test: config directory, workspace, environment, logs."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from tests.e2e.provider import API_KEY, MODEL, Provider

SERVER = Path(__file__).resolve().parents[2] / "server"
KEY_VARIABLE = "TIRO_E2E_KEY"
ASKING = "ask-first.txt"
DENIED = "denied.txt"
"""Names of files whose reading the default config asks about, and denies."""

KEPT = (
    *("PATH", "LANG", "TZ", "TMPDIR", "SYSTEMROOT", "LD_LIBRARY_PATH", "COVERAGE_PROCESS_START"),
    *("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"),  # compiling is a third of a start
)


class Home:
    """Everything that one user has on disk, below one temporary directory."""

    def __init__(self, root: Path, provider: Provider | None = None) -> None:
        self.root = root
        self.config_dir = root / "config"
        self.workspace = root / "workspace"
        self.workspace.mkdir(parents=True)
        self.provider = provider
        self._logs = 0
        if provider is not None:
            self.write_config()

    @property
    def sessions(self) -> Path:
        """The sessions directory."""
        return self.config_dir / "sessions"

    def session_files(self) -> list[Path]:
        """The snapshots in the sessions directory, by name."""
        return sorted(p for p in self.sessions.glob("*.json") if not p.name.startswith("."))

    def contents(self, below: Path | None = None) -> dict[Path, bytes]:
        """What the files below a directory, or all of this home, hold at the moment.

        A server may rename or remove some meanwhile. The journals come first: what is no longer
        in one is in the snapshot by then.
        """
        paths = [Path(at) / name for at, _, names in os.walk(below or self.root) for name in names]
        found = {}
        for path in sorted(paths, key=lambda path: path.suffix != ".journal"):
            with contextlib.suppress(FileNotFoundError):
                if path.is_file():
                    found[path] = path.read_bytes()
        return found

    def fake(self, **changed: Any) -> dict[str, Any]:
        """The settings of the local provider; None takes a key out."""
        assert self.provider is not None
        given = {
            "api": "openai",
            "base_url": self.provider.base_url,
            "api_key_env": KEY_VARIABLE,
            "models": {MODEL: {"context_window": 100_000}},
            **changed,
        }
        return {key: value for key, value in given.items() if value is not None}

    def claude(self, **changed: Any) -> dict[str, Any]:
        """The settings of the same provider in its other style."""
        assert self.provider is not None
        return self.fake(**{"api": "anthropic", "base_url": self.provider.root_url, **changed})

    def write_config(self, **more: Any) -> Path:
        """Write config.yaml for the local provider, with more top-level keys on top."""
        config: dict[str, Any] = {
            "model": f"fake/{MODEL}",
            "providers": {"fake": self.fake(), "claude": self.claude()},
            "permission": {"read": {"ask-first*.txt": "ask", DENIED: "deny"}},
            "session": {"summary": {"enabled": False}},  # its requests would take scripted replies
        }
        for key, value in more.items():
            old = config.get(key)
            config[key] = {**old, **value} if isinstance(old, dict) else value
        self.config_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.config_dir / "config.yaml"
        path.write_text(json.dumps(config, indent=2), "utf-8")  # JSON is YAML too
        return path

    def environment(self) -> dict[str, str]:
        """The environment of a server: nothing of the person who runs the tests."""
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        return {
            **kept,
            "HOME": str(self.root),
            "TIRO_CONFIG_DIR": str(self.config_dir),
            "XDG_CACHE_HOME": str(self.root / "cache"),
            "XDG_STATE_HOME": str(self.root / "state"),
            "XDG_DATA_HOME": str(self.root / "data"),
            "PYTHONPATH": str(SERVER),
            KEY_VARIABLE: API_KEY,
        }

    def write(self, name: str, text: str | bytes) -> Path:
        """Write a file in the workspace."""
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def new_log(self) -> Path:
        """A fresh path for the stderr of one more server."""
        self._logs += 1
        return self.root / f"stderr-{self._logs}.log"
