"""From a provider's settings to a model that can be asked, and what a provider offers."""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any, assert_never

from tiro.errors import ModelError, ModelNotConfiguredError
from tiro.models.anthropic import AnthropicModel, anthropic_transport
from tiro.models.local import LocalModel, LocalModels
from tiro.models.model import Model, ProviderSettings
from tiro.models.model_list import list_rows
from tiro.models.openai import OpenAIModel, openai_transport
from tiro.models.transport import is_loopback

PROBE_SECONDS = 0.3
"""A server on this machine answers within this, or is not running."""
LIST_SECONDS = 10.0
TO_BEGIN_WITH = {
    "://api.anthropic.com": r"claude-sonnet-.+",
    "://api.openai.com": r"gpt-\d+(\.\d+)?",
    "://openrouter.ai": r"openrouter/auto",
}
"""What of a long list comes first: the newest all-round model. Anthropic lists the newest first."""


def open_model(provider: ProviderSettings, name: str, *, local_cache: Path | None = None) -> Model:
    """The model of that name; nothing is sent or started before it is asked."""
    match provider.api:
        case "openai":
            return OpenAIModel(provider, name)
        case "anthropic":
            return AnthropicModel(provider, name)
        case "local":
            if local_cache is None:
                raise ModelNotConfiguredError(
                    "A local model needs a cache directory",
                    tried=[{"provider": provider.name, "reason": "no cache directory"}],
                )
            return LocalModel(provider, name, LocalModels(local_cache))
        case _:
            assert_never(provider.api)


def lacking(provider: ProviderSettings) -> str | None:
    """What a provider lacks to be asked at all, found without asking it; None for nothing."""
    if provider.api == "local" and find_spec("xllamacpp") is None:
        return "the extra tiro[local] is not installed"
    return None


async def probe(provider: ProviderSettings, *, local_cache: Path | None = None) -> str | None:
    """None when the provider can be used, else the reason why not in one sentence.

    A hosted provider is not asked: a key that is set is taken for a good one.
    """
    reason = lacking(provider)
    if reason is not None or provider.api == "local":
        return reason
    if not is_loopback(provider) and provider.base_url.startswith("https:"):
        return None if provider.api_key or provider.headers else "its API key is not set"
    try:
        await _list(provider, PROBE_SECONDS)
    except ModelError as error:
        if error.data["status"] is None:
            return "no server answers at its address"
        return str(error)
    return None


async def list_models(provider: ProviderSettings, *, local_cache: Path | None = None) -> list[str]:
    """The provider's own names of its models, the one to begin with first.

    Raises ModelError when it cannot be asked.
    """
    if provider.api == "local":
        return _local_names(local_cache)
    return await _list(provider, LIST_SECONDS)


def names_in_order(provider: ProviderSettings, rows: list[dict[str, Any]]) -> list[str]:
    """The names in a provider's list; of a long one whose models are known, the best start first.

    It is for whoever sets a key and nothing else.
    """
    wanted = next((p for host, p in TO_BEGIN_WITH.items() if host in provider.base_url), None)
    if wanted is not None:
        rows = sorted(rows, key=lambda row: str(row.get("created") or ""), reverse=True)
        rows.sort(key=lambda row: re.fullmatch(wanted, row["id"]) is None)
    return [row["id"] for row in rows]


def _local_names(local_cache: Path | None) -> list[str]:
    """The models that can be asked, the one in use first; the default one comes by itself."""
    if local_cache is None:
        return []
    models = LocalModels(local_cache)
    rows = sorted(models.list(), key=lambda row: not row.is_in_use)
    return [row.name for row in rows if row.state == "ready" or row.is_in_use]


async def _list(provider: ProviderSettings, timeout_seconds: float) -> list[str]:
    open_transport = anthropic_transport if provider.api == "anthropic" else openai_transport
    transport = open_transport(provider)
    try:
        rows = await list_rows(transport, timeout_seconds)
    finally:
        await transport.close()
    return names_in_order(provider, rows)
