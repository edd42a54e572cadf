"""Look at everything that a prompt needs: files, directories, providers, embedded models."""

import asyncio
import os
import platform
import shutil
import sys
from pathlib import Path

import msgspec

from tiro import __version__, config
from tiro.assistant.model_choice import WITH_KEY, in_order
from tiro.assistant.setup import Setup
from tiro.config import Settings
from tiro.doctor.findings import (
    DamagedSession,
    Findings,
    LocalFound,
    ProviderFound,
    SessionsFound,
)
from tiro.doctor.next_step import next_step
from tiro.errors import ModelNotConfiguredError, TiroError
from tiro.models import providers
from tiro.models.key_command import run_key_command
from tiro.models.local import LocalModels
from tiro.models.model import ProviderSettings, bare_url
from tiro.models.transport import is_loopback
from tiro.stores.disk import Disk
from tiro.stores.index import Index

ANSWER_SECONDS = 2.5
"""How long a provider elsewhere, or a command that prints a key, is waited for; all together."""
BUILT_IN_SERVERS = ("ollama", "llamacpp")
"""Nobody said that these run here; a prompt does not wait longer for them, either."""


def examine() -> Findings:
    """Everything that can be found within about three seconds; nothing is started or changed."""
    roots = _workspace_roots()
    setup = Setup.load(config.config_directory(), roots, {})
    settings = setup.settings
    found = asyncio.run(_providers(settings))
    model, because, is_ready = _model_of(settings, found)
    findings = Findings(
        version=__version__,
        python=platform.python_version(),
        platform=platform.platform(),
        config_directory=str(config.config_directory()),
        config_files=[str(path) for path in setup.files],
        problems=setup.problems,
        sessions=_sessions(config.sessions_directory()),
        providers=found,
        local=_local(),
        model=model,
        model_because=because,
        agent=setup.agents.default,
        command=shutil.which("tiro"),
        python_command=sys.executable,
        is_ready=is_ready,
        next_step="",
    )
    return msgspec.structs.replace(findings, next_step=next_step(findings))


def _workspace_roots() -> list[Path]:
    try:
        return [Path.cwd()]
    except OSError:  # it was deleted
        return []


# --- providers -----------------------------------------------------------------------------


async def _providers(settings: Settings) -> list[ProviderFound]:
    """Each configured provider, all asked at the same time."""
    work = [_provider(one, settings) for one in in_order(settings.providers)]
    return list(await asyncio.gather(*work))


async def _provider(provider: ProviderSettings, settings: Settings) -> ProviderFound:
    configured = list(dict.fromkeys([*filter(None, [provider.default_model]), *provider.models]))
    address = bare_url(provider.base_url)
    found = ProviderFound(name=provider.name, address=address, models=configured)
    command = settings.key_commands.get(provider.name)
    if command is not None:
        try:
            key = await asyncio.to_thread(run_key_command, command, ANSWER_SECONDS)
        except ModelNotConfiguredError as error:
            return msgspec.structs.replace(found, reason=str(error))
        provider = msgspec.structs.replace(provider, api_key=key)
    elif provider.api_key_env and not (provider.api_key or provider.headers):
        return msgspec.structs.replace(
            found,
            missing_key=provider.api_key_env,
            reason=f"its API key {provider.api_key_env} is not set",
        )
    if (lacks := providers.lacking(provider)) is not None:
        return msgspec.structs.replace(found, reason=lacks)
    return await _asked(provider, found, (settings.model or "").partition("/")[0])


async def _asked(provider: ProviderSettings, found: ProviderFound, chosen: str) -> ProviderFound:
    """With what the provider itself answers."""
    is_here = provider.api == "local" or is_loopback(provider)
    is_a_guess = found.name in BUILT_IN_SERVERS and found.name != chosen
    seconds = providers.PROBE_SECONDS if is_a_guess else ANSWER_SECONDS
    cache = config.cache_directory()
    try:
        work = providers.list_models(provider, local_cache=cache)
        listed = await asyncio.wait_for(work, seconds)
    except TimeoutError:
        reason = f"nothing answers at {found.address} within {seconds:g} s"
    except TiroError as error:
        is_silent = error.data.get("status") is None
        reason = f"no server answers at {found.address}" if is_here and is_silent else str(error)
    except OSError as error:
        reason = f"its models cannot be read ({error.strerror})"
    else:
        models = found.models or listed
        reason = None if models else "it offers no model"  # type: ignore[assignment]
        return msgspec.structs.replace(found, models=models, reason=reason)
    has_key = found.name in WITH_KEY and bool(provider.api_key)
    is_chosen = has_key or (bool(found.models) and not is_here)
    return msgspec.structs.replace(found, reason=reason, is_chosen_unasked=is_chosen)


def _model_of(settings: Settings, found: list[ProviderFound]) -> tuple[str | None, str, bool]:
    """The model of the next prompt, why that one, and whether it would answer."""
    if settings.model is None:
        for one in found:
            if one.is_chosen_unasked or (one.models and one.reason is None):
                why = "the first that can be used, since no model is set"
                return "/".join([one.name, *one.models[:1]]), one.reason or why, one.reason is None
        return None, "no model is set, and no provider can be used", False
    name, _, model = settings.model.partition("/")
    mine = next((one for one in found if one.name == name), None)
    if mine is None:
        return settings.model, f"there is no provider {name!r}", False
    if not model:
        model = mine.models[0] if mine.models else ""
    full = f"{name}/{model}" if model else name
    return full, mine.reason or "it is set as `model`", mine.reason is None and bool(model)


# --- this machine --------------------------------------------------------------------------


def _sessions(directory: Path) -> SessionsFound:
    place = directory
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        free = shutil.disk_usage(place).free
    except OSError:
        free = None
    try:
        rows = Index(directory, None, Disk()).sessions()
    except (OSError, TiroError):
        rows = []
    return SessionsFound(
        directory=str(directory),
        is_writable=place.is_dir() and os.access(place, os.W_OK | os.X_OK),
        free_bytes=free,
        saved=sum(row.error is None for row in rows),
        damaged=[DamagedSession(row.path, row.error) for row in rows if row.error is not None],
    )


def _local() -> LocalFound:
    models = LocalModels(config.cache_directory())
    provider = ProviderSettings(name="local", api="local")
    try:
        ready = [row.name for row in models.list() if row.state == "ready"]
    except OSError:
        ready = []
    is_installed = providers.lacking(provider) is None
    return LocalFound(is_installed=is_installed, in_use=models.in_use(), ready=ready)
