"""From a provider's settings to a model that can be asked, and what a provider offers."""

from importlib.util import find_spec
from pathlib import Path

from tiro.errors import ModelError, ModelNotConfiguredError
from tiro.models.local import LocalModel, LocalModels
from tiro.models.model import Model, ProviderSettings
from tiro.models.openai import OpenAIModel, openai_transport
from tiro.models.openai_list import list_openai_models
from tiro.models.transport import is_loopback

PROBE_SECONDS = 0.3
"""A server on this machine answers within this, or is not running."""
LIST_SECONDS = 10.0


def open_model(provider: ProviderSettings, name: str, *, local_cache: Path | None = None) -> Model:
    """The model of that name; nothing is sent or started before it is asked."""
    match provider.api:
        case "openai":
            return OpenAIModel(provider, name)
        case "local":
            if local_cache is None:
                raise ModelNotConfiguredError(
                    "A local model needs a cache directory",
                    tried=[{"provider": provider.name, "reason": "no cache directory"}],
                )
            return LocalModel(provider, name, LocalModels(local_cache))
        case _:
            raise ModelNotConfiguredError(
                f"The provider {provider.name!r} has the api {provider.api!r}, which is not known",
                tried=[{"provider": provider.name, "reason": "unknown api"}],
            )


def lacking(provider: ProviderSettings) -> str | None:
    """What a provider lacks to be asked at all, found without asking it; None for nothing."""
    match provider.api:
        case "openai":
            return None
        case "local":
            return None if find_spec("xllamacpp") else "the extra tiro[local] is not installed"
        case _:
            return f"this version of Tiro does not speak the api {provider.api!r} yet"


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
    """The provider's own names of its models; ModelError when it cannot be asked."""
    if provider.api == "local":
        return _local_names(local_cache)
    return await _list(provider, LIST_SECONDS)


def _local_names(local_cache: Path | None) -> list[str]:
    """The models that can be asked, the one in use first; the default one comes by itself."""
    if local_cache is None:
        return []
    models = LocalModels(local_cache)
    rows = sorted(models.list(), key=lambda row: not row.is_in_use)
    return [row.name for row in rows if row.state == "ready" or row.is_in_use]


async def _list(provider: ProviderSettings, timeout_seconds: float) -> list[str]:
    transport = openai_transport(provider)
    try:
        return [row["id"] for row in await list_openai_models(transport, timeout_seconds)]
    finally:
        await transport.close()
