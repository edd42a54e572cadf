"""How things are with one provider: what it lacks, which models it has, what it answered."""

import difflib
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tiro.models.model import ProviderSettings

PROVIDER_ORDER = ("anthropic", "openai", "openrouter", "ollama", "llamacpp", "local")
"""Who is tried when no model is set: providers with a key, then servers that run, then local."""

WITH_KEY = PROVIDER_ORDER[:3]
SERVERS = PROVIDER_ORDER[3:5]
"""Nobody said that these run here, so nobody waits long for a connection to them."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One provider, with its key where a command prints it."""

    provider: ProviderSettings
    names: Sequence[str] = ()
    """Its models, the one to begin with first: those that somebody named, else those it lists."""
    listed: Sequence[str] = ()
    """Those that it lists itself; none where it was not asked, or has no list."""
    reason: str | None = None
    """Why it cannot be used, in one sentence; None only where there is a model."""
    remark: str | None = None
    """What is odd about one that can be used."""
    is_key_refused: bool = False
    is_slow: bool = False
    """Whether it only did not list its models in time: it takes connections."""
    is_meant: bool = False
    """Nobody else answers in its place: its key is set."""


def first(standings: Iterable[Standing]) -> Standing | None:
    """Who answers where no model is set, or would have to; None: nobody."""
    return next((one for one in standings if one.reason is None or one.is_meant), None)


def nearest(listed: Sequence[str], model: str) -> list[str]:
    """The names in a provider's own list that come closest to one that is not there, at most three.

    Empty where it is there, or nobody knows: an alias such as `sonnet-4` stands for `sonnet-4-0101`
    or `sonnet-4:latest`.
    """
    if any(name == model or name.startswith((f"{model}:", f"{model}-")) for name in listed):
        return []
    return difflib.get_close_matches(model, listed, n=3, cutoff=0.4) or [*listed[:3]]


def in_order(providers: Mapping[str, ProviderSettings]) -> list[ProviderSettings]:
    """Those with a key, then the user's own, then servers on this machine, then local models."""
    names = [name for name in PROVIDER_ORDER if name in providers]
    others = [name for name in providers if name not in PROVIDER_ORDER]
    with_key = [name for name in names if name in WITH_KEY]
    return [providers[n] for n in [*with_key, *others, *names[len(with_key) :]]]


def named_at(provider: ProviderSettings, wanted: Iterable[str | None] = ()) -> list[str]:
    """The models of a provider that somebody named; `wanted` are full names."""
    names = [provider.default_model, *(_name_at(provider, full) for full in wanted)]
    return list(dict.fromkeys([*filter(None, names), *provider.models]))


def missing_key(provider: ProviderSettings) -> str | None:
    """The environment variable that should hold its key and does not: no need to ask anybody."""
    return None if provider.api_key or provider.headers else provider.api_key_env


def lacks_key(provider: ProviderSettings) -> str | None:
    """The same as a reason, in words."""
    variable = missing_key(provider)
    return variable and f"its API key {variable} is not set"


def _name_at(provider: ProviderSettings, full: str | None) -> str:
    name, _, model = (full or "").partition("/")
    return model if name == provider.name else ""
