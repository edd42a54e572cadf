"""Which model answers: the one asked for, or the first provider that can be used."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import msgspec

from tiro.assistant.keys import Keys
from tiro.assistant.standing import (
    SERVERS,
    WITH_KEY,
    Standing,
    in_order,
    lacks_key,
    named_at,
)
from tiro.config.settings import Doubts
from tiro.errors import ModelNotConfiguredError
from tiro.models.key_command import KEY_COMMAND_SECONDS
from tiro.models.local_extra import install_command, is_installed
from tiro.models.model import Model, ModelFacts, ProviderSettings, known_facts
from tiro.models.wire_parts import UnknownModel

T = TypeVar("T")

PROBE_SECONDS = 1.0
"""A server on this machine that nobody has set up takes a connection within this, or is not there.

Where nobody listens, most systems refuse at once, and Windows only after two seconds.
"""
LOOK_SECONDS = 0.3
"""How long a list is waited for that only tells whether the one chosen before is still there."""

ANSWER_SECONDS = 2.5
"""How long whoever runs elsewhere is waited for before the next one is tried."""
LIST_SECONDS = 10.0
"""How long a list is waited for that nothing goes on without."""
KEPT_SECONDS = 60.0
"""How long nobody asks again whether the model that was chosen is still there."""

ADVICE = (
    "No model can be used yet: set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY, start"
    " Ollama, or get the small local model with: {}tiro local pull"
)
"""The quickest ways to a model."""
CLOSED = "The configuration has changed meanwhile; ask again"


class ModelRow(msgspec.Struct, frozen=True, kw_only=True):
    """A model as a list shows it; `reason` says why it cannot be used."""

    name: str
    provider: str
    context_window: int | None
    available: bool
    reason: str | None


def load_adapters() -> ModuleType:
    """The module that opens models; loaded late, since it brings the HTTP library along."""
    from tiro.models import providers

    return providers


async def chosen_of(
    models: Callable[[], "Models"], choose: Callable[["Models"], Awaitable[T]]
) -> T:
    """What is chosen of the models that there are; where others hold by then, of those.

    None is a choice that was given up.
    """
    while True:
        before = models()
        try:
            found = await choose(before)
        except ModelNotConfiguredError:
            if models() is before:
                raise
        else:
            if found is None or models() is before:
                return found


class Models:
    """The models that the configured providers offer, opened once each."""

    def __init__(
        self,
        providers: Mapping[str, ProviderSettings],
        key_commands: Mapping[str, str | list[str]],
        cache: Path | None,
        doubts: Doubts | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.keys = Keys(providers, key_commands)
        self._cache, self._doubts = cache, doubts or Doubts()
        self._open: dict[str, Model] = {}
        self._meant: dict[str, str] = {}
        self._is_closed = False
        self.first_usable: str | None = None
        """The model that was found when none is set, for the meter and the status."""
        self._clock, self._found_at = clock, 0.0
        """When that was, in seconds of this clock."""

    async def choose(self, wanted: str | None) -> Model:
        """The model of this name, or the first usable one, which stays the same while it is there.

        Raises ModelNotConfiguredError, with every provider that was tried and the reason. A key
        that is set says who shall answer: nobody else does where that provider cannot.
        """
        if wanted is not None:
            return await self._named(wanted)
        _refuse(self._doubts.everyone or self._doubts.model)
        if self.first_usable is None or not await self._is_kept(self.first_usable):
            self.first_usable = await self._first()
            self._found_at = self._clock()
        return await self._opened(self.first_usable)

    def is_at_hand(self, wanted: str | None) -> bool:
        """Whether `choose` waits for nobody: no command has to print a key, no server to answer."""
        provider, separator, _ = (wanted or "").partition("/")
        settings = self.keys.settings.get(provider)
        is_named = bool(separator or (settings and settings.default_model))
        return is_named and not self.keys.is_awaited(provider)

    async def without_asking(self, wanted: str | None) -> Model:
        """The model of this name as far as it is known without asking or starting anything.

        Where that takes an answer of a provider it is an UnknownModel. Raises
        ModelNotConfiguredError for an unknown provider.
        """
        _refuse(self._doubts.everyone or (None if wanted else self._doubts.model))
        full = self.first_usable if wanted is None else self.check(wanted)
        if full is None or "/" not in full:
            return UnknownModel()
        if full in self._open:
            return self._open[full]
        provider, _, model = full.partition("/")
        adapters = await asyncio.to_thread(load_adapters)
        opened: Model = adapters.open_model(
            self.keys.settings[provider], model, local_cache=self._cache
        )
        return opened

    async def standings(
        self, wanted: Iterable[str | None] = (), seconds: float = LIST_SECONDS
    ) -> list[Standing]:
        """How things are with every provider, all asked at once, as whoever chooses asks them.

        A command prints its key within `seconds`, or has none.
        `wanted` are full names of models that are there for whoever chose them, listed or not.
        """
        chosen = [name for name in wanted if name]
        work = [self._examined(one, chosen, seconds) for one in in_order(self.keys.settings)]
        return list(await asyncio.gather(*work))

    async def rows(self, wanted: Iterable[str | None] = ()) -> list[ModelRow]:
        """Every model that is named or offered, with a reason where it cannot be used."""
        chosen = [name for name in wanted if name]
        rows = [row for one in await self.standings(chosen) for row in self._rows_of(one)]
        for name in dict.fromkeys(chosen):
            if (provider := name.partition("/")[0]) not in self.keys.settings:
                rows.append(_row(name, provider, None, f"there is no provider {provider!r}"))
        return rows

    def full_name(self, name: str | None) -> str | None:
        """The `provider/model` that a name means, as far as it is known without asking anybody."""
        if name is None:
            return self.first_usable
        return self._meant.get(name, name)

    def facts(self, name: str | None) -> ModelFacts:
        """What is known about a model without asking anybody."""
        full = self.full_name(name)
        if full is None:
            return ModelFacts()
        if full in self._open:
            return self._open[full].facts
        provider, _, model = full.partition("/")
        if provider not in self.keys.settings:
            return ModelFacts()
        return known_facts(self.keys.settings[provider], model)

    def check(self, name: str) -> str:
        """The full name `provider/model`.

        Raises ModelNotConfiguredError for an unknown provider, or where there is doubt about it.
        """
        provider, separator, model = name.partition("/")
        about = self._doubts.about(provider)
        _refuse(about, None if about == self._doubts.everyone else provider)
        if provider not in self.keys.settings:
            way = f"choose another model, of {', '.join(self.keys.settings)}"
            raise _unusable(name, f"there is no provider {provider!r}", way)
        if separator and not model:
            raise _unusable(name, "a model name follows the slash", "complete it")
        default = self.keys.settings[provider].default_model
        return name if model else f"{provider}/{default}" if default else provider

    async def usable(self, name: str) -> str:
        """The full name of a model that nothing is missing for, as far as that needs no asking.

        Raises ModelNotConfiguredError with the one thing that is missing.
        """
        full = self.check(name)
        provider = self.keys.settings[full.partition("/")[0]]
        if not self.keys.is_awaited(provider.name) and (lacks := lacks_key(provider)) is not None:
            raise _unusable(full, lacks, "set it, or choose another model")
        adapters = await asyncio.to_thread(load_adapters)
        if (lacks := adapters.lacking(provider)) is not None:
            raise _unusable(full, lacks, "install it, or choose another model")
        return full

    def retire(self) -> None:
        """Open none any more, and let nobody wait for a key; those that are open stay so."""
        self._is_closed = True
        self.keys.end()

    async def close(self) -> None:
        """Close every model, ending what they started; none is opened any more."""
        self.retire()
        models, self._open = list(self._open.values()), {}
        await asyncio.gather(*(model.close() for model in models), return_exceptions=True)

    async def _named(self, wanted: str) -> Model:
        """The model of this name. Its server is not asked first: the prompt itself will tell."""
        full = await self.usable(wanted)
        if full in self._open:
            return self._open[full]
        provider = await self.keys.with_key(full.partition("/")[0])
        if "/" not in full:
            standing = await self._asked(
                await self._unasked(provider), ANSWER_SECONDS, LIST_SECONDS
            )
            if standing.reason is not None:
                raise _unusable(full, standing.reason, "choose another model")
            self._meant[wanted] = full = f"{full}/{standing.names[0]}"
        return await self._opened(full)

    async def _first(self) -> str:
        """The full name of the first usable one."""
        tried = []
        for provider in in_order(self.keys.settings):
            standing = await self._for_choice(provider)
            if standing.reason is None:
                return f"{provider.name}/{standing.names[0]}"
            tried.append({"provider": provider.name, "reason": standing.reason})
            if standing.is_meant:
                raise ModelNotConfiguredError(
                    f"{provider.name}, whose key is set, cannot be used: {standing.reason}; make it"
                    " answer or choose another model",
                    tried=tried,
                )
        install = "" if is_installed() else f"{install_command()} && "
        raise ModelNotConfiguredError(ADVICE.format(install), tried=tried)

    async def _is_kept(self, full: str) -> bool:
        """Whether the model that was found before is still there; its list may be slow."""
        if self._clock() - self._found_at < KEPT_SECONDS:
            return True
        provider, _, model = full.partition("/")
        standing = await self._unasked(self.keys.settings[provider])
        adapters = await asyncio.to_thread(load_adapters)
        if standing.reason is not None or not adapters.asks_first(standing.provider):
            return standing.reason is None
        standing = await self._asked(standing, PROBE_SECONDS, LOOK_SECONDS)
        is_there = standing.is_slow or (standing.reason is None and model in standing.names)
        if is_there:
            self._found_at = self._clock()
        return is_there

    async def _opened(self, full: str) -> Model:
        adapters = await asyncio.to_thread(load_adapters)
        if self._is_closed:
            raise ModelNotConfiguredError(CLOSED)
        if full not in self._open:
            provider, _, model = full.partition("/")
            settings = self.keys.settings[provider]
            self._open[full] = adapters.open_model(settings, model, local_cache=self._cache)
        return self._open[full]

    async def _for_choice(self, provider: ProviderSettings) -> Standing:
        """What tells whether this provider answers where no model is set."""
        standing = await self._unasked(provider)
        adapters = await asyncio.to_thread(load_adapters)
        if standing.reason is not None:
            return standing
        if standing.names and not adapters.asks_first(standing.provider):
            return standing
        return await self._asked(standing, *_patience(standing))

    async def _examined(
        self, provider: ProviderSettings, wanted: Sequence[str], seconds: float
    ) -> Standing:
        standing = await self._unasked(provider, wanted, seconds)
        if standing.reason is not None:
            return standing
        return await self._asked(standing, *_patience(standing))

    async def _unasked(
        self,
        provider: ProviderSettings,
        wanted: Sequence[str] = (),
        seconds: float = KEY_COMMAND_SECONDS,
    ) -> Standing:
        """What is known of a provider before it is asked; a command may have to print its key."""
        names = named_at(provider, wanted)
        if (doubt := self._doubts.about(provider.name)) is not None:
            reason = f"not asked until this is corrected: {doubt}"
            return Standing(provider=provider, names=names, reason=reason, is_meant=True)
        try:
            provider = await self.keys.with_key(provider.name, seconds)
        except ModelNotConfiguredError as error:
            return Standing(provider=provider, names=names, reason=str(error), is_meant=True)
        adapters = await asyncio.to_thread(load_adapters)
        reason = lacks_key(provider) or adapters.lacking(provider)
        goes_unasked = bool(named_at(provider)) and not adapters.asks_first(provider)
        has_key = provider.name in WITH_KEY and bool(provider.api_key)
        is_meant = reason is None and (has_key or goes_unasked)
        return Standing(provider=provider, names=names, reason=reason, is_meant=is_meant)

    async def _asked(self, standing: Standing, connect: float, answer: float) -> Standing:
        """With what the provider itself answers: it connects, and lists, within so many seconds."""
        provider, names = standing.provider, list(standing.names)
        adapters = await asyncio.to_thread(load_adapters)
        timeouts = adapters.Timeouts(connect, answer)
        offer = await adapters.offer(provider, timeouts, local_cache=self._cache)
        if not named_at(provider):
            names += [name for name in offer.names if name not in names]
        reason = offer.fault
        if offer.is_slow or (reason is None and not names):
            said = offer.fault or offer.remark or "it offers no model"
            reason = f"{said}; name one as {provider.name}/MODEL"
        return msgspec.structs.replace(
            standing,
            names=names,
            listed=offer.names,
            reason=reason,
            remark=offer.remark,
            is_key_refused=offer.is_key_refused,
            is_slow=offer.is_slow,
        )

    def _rows_of(self, standing: Standing) -> list[ModelRow]:
        provider = standing.provider.name
        names = [f"{provider}/{name}" for name in standing.names] or [provider]
        return [
            _row(full, provider, self.facts(full).context_window, standing.reason) for full in names
        ]


def _patience(standing: Standing) -> tuple[float, float]:
    """Within how many seconds a provider takes a connection, and then lists its models."""
    if standing.is_meant:
        return ANSWER_SECONDS, LIST_SECONDS
    return PROBE_SECONDS if standing.provider.name in SERVERS else ANSWER_SECONDS, ANSWER_SECONDS


def _row(name: str, provider: str, context_window: int | None, reason: str | None) -> ModelRow:
    return ModelRow(
        name=name,
        provider=provider,
        context_window=context_window,
        available=reason is None,
        reason=reason,
    )


def _refuse(doubt: str | None, provider: str | None = None) -> None:
    """Ask nobody, or not this provider, while it is not clear who may be asked."""
    if doubt is None:
        return
    if provider is None:
        raise ModelNotConfiguredError(f"No model is asked until this is corrected: {doubt}")
    raise ModelNotConfiguredError(
        f"Nothing is sent to {provider} until this is corrected: {doubt}; or choose another model",
        tried=[{"provider": provider, "reason": doubt}],
    )


def _unusable(name: str, reason: str, way_out: str) -> ModelNotConfiguredError:
    return ModelNotConfiguredError(
        f"The model {name!r} cannot be used: {reason}; {way_out}",
        tried=[{"provider": name.partition("/")[0], "reason": reason}],
    )
