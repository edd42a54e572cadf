"""From a provider's settings to a model that can be asked, and what a provider offers."""

from pathlib import Path

from tiro.models.model import Model, ProviderSettings


def open_model(
    provider: ProviderSettings, name: str, *, local_cache: Path | None = None
) -> Model:
    """The model of that name; nothing is sent or started before it is asked."""
    raise NotImplementedError


async def probe(
    provider: ProviderSettings, *, local_cache: Path | None = None
) -> str | None:
    """None when the provider can be used, else the reason why not in one sentence."""
    raise NotImplementedError


async def list_models(
    provider: ProviderSettings, *, local_cache: Path | None = None
) -> list[str]:
    """The provider's own names of its models; ModelError when it cannot be asked."""
    raise NotImplementedError
