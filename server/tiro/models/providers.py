"""From a provider's settings to a model that can be asked, and what a provider offers."""

import asyncio
import re
from pathlib import Path
from typing import Any, NamedTuple, assert_never

from msgspec import Struct

from tiro.errors import ModelNotConfiguredError, TiroError
from tiro.models.anthropic import AnthropicModel, anthropic_transport
from tiro.models.failures import has_userinfo
from tiro.models.local import LocalModel, LocalModels
from tiro.models.local_extra import is_installed
from tiro.models.model import Model, ProviderSettings, bare_url
from tiro.models.model_list import Listing, list_rows
from tiro.models.openai import OpenAIModel, openai_transport
from tiro.models.transport import is_loopback

TO_BEGIN_WITH = {
    "://api.anthropic.com": r"claude-sonnet-.+",
    "://api.openai.com": r"gpt-\d+(\.\d+)?",
    "://openrouter.ai": r"openrouter/auto",
}
"""What of a long list comes first: the newest all-round model. Anthropic lists the newest first."""


class Offer(Struct, frozen=True, kw_only=True):
    """What a provider has to offer, as far as asking it told."""

    names: list[str] = []
    """Its own names of its models, the one to begin with first."""
    fault: str | None = None
    """Why it cannot be used, in one sentence."""
    is_key_refused: bool = False
    is_slow: bool = False
    """Whether the fault is only that the list did not come in time: somebody is there."""
    remark: str | None = None
    """What is odd about one that can be used."""


class Timeouts(NamedTuple):
    """How many seconds a provider may take to accept a connection, and then to list its models."""

    connect: float
    answer: float


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
    if provider.api == "local" and not is_installed():
        return "what runs embedded models is not installed"
    return None


async def offer(
    provider: ProviderSettings, timeouts: Timeouts, *, local_cache: Path | None = None
) -> Offer:
    """Ask a provider for its models, for no longer than this; raises for nothing it does."""
    if (lacks := lacking(provider)) is not None:
        return Offer(fault=lacks)
    if provider.api == "local":
        try:
            return Offer(names=_local_names(local_cache))
        except OSError as error:
            return Offer(fault=f"its models cannot be read ({error.strerror})")
    at = bare_url(provider.base_url)
    try:
        listing = await asyncio.wait_for(_list(provider, timeouts), sum(timeouts))
    except TimeoutError:  # it was connected by then
        late = f"its models were not listed within {timeouts.answer:g} s"
        return Offer(fault=f"it takes connections at {at}, but {late}", is_slow=True)
    except TiroError as error:
        status = error.data.get("status")
        is_silent = status is None and error.data.get("retryable") and is_loopback(provider)
        fault = f"no server answers at {at}" if is_silent else str(error)
        is_key_refused = status in (401, 403) and not has_userinfo(provider)
        return Offer(fault=fault, is_key_refused=is_key_refused)
    instead = listing.instead
    remark = f"it answers, but lists no models: {instead}{_v1(provider)}" if instead else None
    return Offer(names=names_in_order(provider, listing.rows), remark=remark)


def asks_first(provider: ProviderSettings) -> bool:
    """Whether only an answer tells that a provider can be used.

    A hosted one with a key is not asked: a key that is set is taken for a good one.
    """
    is_hosted = not is_loopback(provider) and provider.base_url.startswith("https:")
    return not (is_hosted and (provider.api_key or provider.headers))


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


async def _list(provider: ProviderSettings, timeouts: Timeouts) -> Listing:
    """The list; whoever accepted the connection is waited for longer than `offer` waits."""
    open_transport = anthropic_transport if provider.api == "anthropic" else openai_transport
    transport = open_transport(provider)
    try:
        return await list_rows(transport, 2 * sum(timeouts), timeouts.connect)
    finally:
        await transport.close()


def _v1(provider: ProviderSettings) -> str:
    """What is often the cause where an address is not known."""
    is_usual = provider.api == "anthropic" or provider.base_url.rstrip("/").endswith("/v1")
    return "" if is_usual else ", and most base_urls end in /v1"
