"""Which model answers: the one asked for, or the first provider that can be used."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import msgspec

from tiro.errors import ModelNotConfiguredError
from tiro.models.key_command import run_key_command
from tiro.models.model import Model, ModelFacts, ProviderSettings, known_facts
from tiro.models.wire_parts import UnknownModel

PROVIDER_ORDER = ("anthropic", "openai", "openrouter", "ollama", "llamacpp", "local")
"""Who is tried when no model is set: providers with a key, then servers that run, then local."""

WITH_KEY = PROVIDER_ORDER[:3]


ADVICE = (
    "No model can be used yet: set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY, start"
    " Ollama, or get the small local model with: pip install 'tiro[local]' && tiro local pull"
)
"""The quickest ways to a model."""


class ModelRow(msgspec.Struct, frozen=True, kw_only=True):
    """A model as a list shows it; `reason` says why it cannot be used."""

    name: str
    provider: str
    context_window: int | None
    available: bool
    reason: str | None


def in_order(providers: Mapping[str, ProviderSettings]) -> list[ProviderSettings]:
    """Those with a key, then the user's own, then servers on this machine, then local models."""
    names = [name for name in PROVIDER_ORDER if name in providers]
    others = [name for name in providers if name not in PROVIDER_ORDER]
    with_key = [name for name in names if name in WITH_KEY]
    return [providers[n] for n in [*with_key, *others, *names[len(with_key) :]]]


def load_adapters() -> ModuleType:
    """The module that opens models; loaded late, since it brings the HTTP library along."""
    from tiro.models import providers

    return providers


class Models:
    """The models that the configured providers offer, opened once each."""

    def __init__(
        self,
        providers: Mapping[str, ProviderSettings],
        key_commands: Mapping[str, str | list[str]],
        cache: Path | None,
    ) -> None:
        self._providers = dict(providers)
        self._key_commands = dict(key_commands)
        self._cache = cache
        self._open: dict[str, Model] = {}
        self.on_key: Callable[[str], None] = lambda key: None
        """Hears every key that a command printed, so that it is kept out of files."""
        self.first_usable: str | None = None
        """The model that was found when none is set, for the meter and the status."""

    async def choose(self, wanted: str | None) -> Model:
        """The model of this name, or the first usable one.

        Raises ModelNotConfiguredError, with every provider that was tried and the reason. A key
        that is set says who shall answer: nobody else does where that provider cannot.
        """
        if wanted is not None:
            return await self._named(wanted)
        tried = []
        for provider in in_order(self._providers):
            reason = await self._reason_against(provider)
            if reason is None:
                names = await self._names(provider)
                if names:
                    self.first_usable = f"{provider.name}/{names[0]}"
                    return await self._opened(self.first_usable)
                reason = "it cannot be reached, or it lists no models"
            tried.append({"provider": provider.name, "reason": reason})
            if provider.name in WITH_KEY and self._providers[provider.name].api_key:
                raise ModelNotConfiguredError(
                    f"{provider.name}, whose key is set, cannot be used: {reason}; make it answer"
                    " or choose another model",
                    tried=tried,
                )
        raise ModelNotConfiguredError(ADVICE, tried=tried)

    async def without_asking(self, wanted: str | None) -> Model:
        """The model of this name as far as it is known without asking or starting anything.

        Where that takes an answer of a provider it is an UnknownModel. Raises
        ModelNotConfiguredError for an unknown provider.
        """
        full = self.first_usable if wanted is None else self.check(wanted)
        if full is None or "/" not in full:
            return UnknownModel()
        if full in self._open:
            return self._open[full]
        provider, _, model = full.partition("/")
        adapters = await asyncio.to_thread(load_adapters)
        opened: Model = adapters.open_model(
            self._providers[provider], model, local_cache=self._cache
        )
        return opened

    async def rows(self) -> list[ModelRow]:
        """Every model that is configured or offered, with a reason where it cannot be used."""
        groups = await asyncio.gather(*map(self._rows_of, in_order(self._providers)))
        return [row for group in groups for row in group]

    def facts(self, name: str | None) -> ModelFacts:
        """What is known about a model without asking anybody."""
        full = name or self.first_usable
        if full is None:
            return ModelFacts()
        if full in self._open:
            return self._open[full].facts
        provider, _, model = full.partition("/")
        if provider not in self._providers:
            return ModelFacts()
        return known_facts(self._providers[provider], model)

    def check(self, name: str) -> str:
        """The full name `provider/model`; ModelNotConfiguredError for an unknown provider."""
        provider, separator, model = name.partition("/")
        if provider not in self._providers or (separator and not model):
            known = ", ".join(self._providers)
            reason = f"there is no provider {provider!r}"
            if provider in self._providers:
                reason = "a model name follows the slash"
            raise ModelNotConfiguredError(
                f"The model {name!r} cannot be used: {reason}; there are {known}",
                tried=[{"provider": provider, "reason": reason}],
            )
        default = self._providers[provider].default_model
        return name if model else f"{provider}/{default}" if default else provider

    async def close(self) -> None:
        """Close every model, ending what they started."""
        models, self._open = list(self._open.values()), {}
        await asyncio.gather(*(model.close() for model in models), return_exceptions=True)

    async def _named(self, wanted: str) -> Model:
        """The model of this name. Its server is not asked first: the prompt itself will tell."""
        full = self.check(wanted)
        if full in self._open:
            return self._open[full]
        provider = await self._with_key(self._providers[full.partition("/")[0]])
        adapters = await asyncio.to_thread(load_adapters)
        reason = _lacks_key(provider) or adapters.lacking(provider)
        if reason is None and "/" not in full:
            names = await self._names(provider)
            full = f"{full}/{names[0]}" if names else full
            reason = None if names else f"it offers no model; name one as {full}/MODEL"
        if reason is not None:
            raise ModelNotConfiguredError(
                f"The model {full!r} cannot be used: {reason}",
                tried=[{"provider": provider.name, "reason": reason}],
            )
        return await self._opened(full)

    async def _opened(self, full: str) -> Model:
        if full not in self._open:
            provider, _, model = full.partition("/")
            adapters = await asyncio.to_thread(load_adapters)
            settings = self._providers[provider]
            self._open[full] = adapters.open_model(settings, model, local_cache=self._cache)
        return self._open[full]

    async def _reason_against(self, provider: ProviderSettings) -> str | None:
        """Why this provider cannot be used; None when it can. Asks a server on this machine."""
        try:
            provider = await self._with_key(provider)
        except ModelNotConfiguredError as error:
            return str(error)
        if (lacks := _lacks_key(provider)) is not None:
            return lacks
        adapters = await asyncio.to_thread(load_adapters)
        reason: str | None = await adapters.probe(provider, local_cache=self._cache)
        return reason

    async def _with_key(self, provider: ProviderSettings) -> ProviderSettings:
        """The provider with its key, for which a command may have to run once."""
        command = self._key_commands.get(provider.name)
        if command is None:
            return provider
        try:
            key = await asyncio.to_thread(run_key_command, command)
        except ModelNotConfiguredError as error:
            tried = [{"provider": provider.name, "reason": str(error)}]
            raise ModelNotConfiguredError(str(error), tried=tried) from error
        del self._key_commands[provider.name]
        self._providers[provider.name] = msgspec.structs.replace(provider, api_key=key)
        self.on_key(key)
        return self._providers[provider.name]

    async def _names(self, provider: ProviderSettings) -> list[str]:
        configured = [provider.default_model] if provider.default_model else []
        configured += [name for name in provider.models if name not in configured]
        if configured:
            return configured
        adapters = await asyncio.to_thread(load_adapters)
        try:
            names: list[str] = await adapters.list_models(provider, local_cache=self._cache)
        except Exception:  # a list that cannot be had is no reason to fail here
            return []
        return names

    async def _rows_of(self, provider: ProviderSettings) -> list[ModelRow]:
        reason = await self._reason_against(provider)
        names = await self._names(provider) if reason is None else list(provider.models)
        if not names and reason is not None:
            names = [provider.default_model] if provider.default_model else []
        rows = []
        for name in names or [""]:
            full = f"{provider.name}/{name}" if name else provider.name
            rows.append(
                ModelRow(
                    name=full,
                    provider=provider.name,
                    context_window=self.facts(full).context_window,
                    available=reason is None and bool(name),
                    reason=reason if reason is not None or name else "it offers no model",
                )
            )
        return rows


def _lacks_key(provider: ProviderSettings) -> str | None:
    """A key that is named in the configuration but not set: no need to ask anybody."""
    if provider.api_key or provider.headers or provider.api_key_env is None:
        return None
    return f"its API key {provider.api_key_env} is not set"
