"""What can be set: a configuration file as a type, and the settings that all sources come to."""

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from tiro.agents.permissions import PermissionDecision
from tiro.agents.registry import DEFAULT_AGENT
from tiro.agents.settings import MOST, Seconds, SessionDefaults, TurnSettings
from tiro.models.model import ModelFacts, ProviderApi, ProviderSettings
from tiro.models.provider_secrets import secrets_of

MAX_DAYS = 36_500


class StoreSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`store`: where sessions live."""

    kind: Literal["files", "sqlite", "redis"] = "files"
    path: str | None = None
    url: str | None = None

    def __repr__(self) -> str:
        return f"StoreSettings(kind={self.kind!r})"


class RetentionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`retention`: which sessions go to the trash by themselves, and when that is emptied."""

    max_age_days: Annotated[float, msgspec.Meta(gt=0, le=MAX_DAYS)] | None = None
    """Saved before that; None: as old as they are."""
    max_total_mb: Annotated[float, msgspec.Meta(gt=0, le=MOST)] | None = None
    """In megabytes, the newest first; None: as large as they are."""
    trash_days: Annotated[float, msgspec.Meta(ge=0, le=MAX_DAYS)] | None = 30
    """How long a deleted session waits in the trash; None: until somebody empties it."""


class LogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`log`: what is told of the server's work; never what is said in it."""

    level: Literal["debug", "info", "warning", "error"] = "warning"
    file: str | None = None
    """A path, or a name in the directory for state; None: stderr."""


class ProviderConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `providers`, as it is written."""

    api: ProviderApi | None = None
    base_url: str | None = None
    api_key: str | None = None
    api_key_env: str | None = None
    api_key_command: str | list[str] | None = None
    headers: dict[str, str] = {}
    proxy: str | None = None
    timeout_seconds: Seconds | None = None
    default_model: str | None = None
    models: dict[str, ModelFacts] = {}

    def __repr__(self) -> str:
        return f"ProviderConfig(api={self.api!r})"


class Doubts(msgspec.Struct, frozen=True, kw_only=True):
    """Faults in what decides who hears a prompt, each with its place: nobody else hears it."""

    everyone: str | None = None
    """It may be about any provider but the `certain` ones, so no other is asked."""
    certain: frozenset[str] = frozenset()
    model: str | None = None
    """It is about `model`, so none is taken in its place."""
    providers: dict[str, str] = {}
    """By provider: what is wrong with where it is."""

    def about(self, provider: str) -> str | None:
        """What speaks against asking this provider."""
        doubt = None if provider in self.certain else self.everyone
        return self.providers.get(provider, doubt)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a configuration decides, with every default."""

    model: str | None = None
    """`provider/name`; None: the first usable provider."""
    providers: dict[str, ProviderSettings] = {}
    key_commands: dict[str, str | list[str]] = {}
    """The providers whose key a command prints; it is a `KeyCommand`, run when needed."""
    agent: str = DEFAULT_AGENT
    session: SessionDefaults = SessionDefaults()
    turn: TurnSettings = TurnSettings()
    permission_set: Literal["strict", "open"] = "strict"
    permission: dict[str, Any] = {}
    workspace_permission: dict[str, Any] = {}
    """Rules of the workspace's own file; they only narrow."""
    unread: PermissionDecision | None = None
    """What holds at least while there may be rules that cannot be read."""
    doubts: Doubts = Doubts()
    store: StoreSettings = StoreSettings()
    retention: RetentionSettings = RetentionSettings()
    log: LogSettings = LogSettings()

    def secrets(self) -> list[str]:
        """The exact values of configured keys and headers; they belong into no file or log."""
        values = [value for provider in self.providers.values() for value in secrets_of(provider)]
        password = _password_in(self.store.url or "")
        return [*values, password] if password else values

    def key_variables(self) -> set[str]:
        """The environment variables that hold providers' keys, also of those not in use."""
        named = {provider.api_key_env for provider in self.providers.values()}
        named |= {entry["api_key_env"] for entry in BUILT_IN_PROVIDERS.values()}
        return {name for name in named if name}


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """What a configuration file may hold."""

    model: str | None = None
    providers: dict[str, ProviderConfig] = {}
    agent: str = DEFAULT_AGENT
    session: SessionDefaults = SessionDefaults()
    turn: TurnSettings = TurnSettings()
    permission_set: Literal["strict", "open"] = "strict"
    permission: dict[str, Any] = {}
    store: StoreSettings = StoreSettings()
    retention: RetentionSettings = RetentionSettings()
    log: LogSettings = LogSettings()


def _password_in(url: str) -> str | None:
    """The password in an address, also in one that is none."""
    try:
        return urlsplit(url).password
    except ValueError:
        return url.partition("://")[2].rpartition("@")[0].partition(":")[2] or None


BUILT_IN_PROVIDERS = {
    name: {"api": api, "base_url": url, "api_key_env": key_env}
    for name, api, url, key_env in (
        ("anthropic", "anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
        ("openai", "openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("openrouter", "openai", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        ("ollama", "openai", "http://127.0.0.1:11434/v1", None),
        ("llamacpp", "openai", "http://127.0.0.1:8080/v1", None),
        ("local", "local", None, None),
    )
}

ADDRESSES = {"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_BASE_URL"}
"""The variable that may hold a built-in provider's `base_url`, as its own library takes it."""
