"""From a provider's settings to a model that can be asked, and what a provider offers."""

from importlib.util import find_spec
from pathlib import Path

from tiro.errors import ModelError, ModelNotConfiguredError
from tiro.models.model import Model, ProviderSettings
from tiro.models.openai import OpenAIModel, list_openai_models, openai_transport
from tiro.models.transport import is_loopback

PROBE_SECONDS = 0.3
"""A server on this machine answers within this, or is not running."""
LIST_SECONDS = 10.0


def open_model(provider: ProviderSettings, name: str, *, local_cache: Path | None = None) -> Model:
    """The model of that name; nothing is sent or started before it is asked."""
    match provider.api:
        case "openai":
            return OpenAIModel(provider, name)
        case _:
            raise ModelNotConfiguredError(
                f"The provider {provider.name!r} has the api {provider.api!r}, which is not known",
                tried=[{"provider": provider.name, "reason": "unknown api"}],
            )


async def probe(provider: ProviderSettings, *, local_cache: Path | None = None) -> str | None:
    """None when the provider can be used, else the reason why not in one sentence.

    A hosted provider is not asked: a key that is set is taken for a good one.
    """
    if provider.api == "local":
        return None if find_spec("xllamacpp") else "the extra tiro[local] is not installed"
    if provider.api != "openai":
        return f"its api {provider.api!r} is not known"
    if not is_loopback(provider):
        return None if provider.api_key else "its API key is not set"
    try:
        await _list(provider, PROBE_SECONDS)
    except ModelError as error:
        if error.data["status"] is None:
            return "no server answers at its address"
        return str(error)
    return None


async def list_models(provider: ProviderSettings, *, local_cache: Path | None = None) -> list[str]:
    """The provider's own names of its models; ModelError when it cannot be asked."""
    return await _list(provider, LIST_SECONDS)


async def _list(provider: ProviderSettings, timeout_seconds: float) -> list[str]:
    transport = openai_transport(provider)
    try:
        return [row["id"] for row in await list_openai_models(transport, timeout_seconds)]
    finally:
        await transport.close()
