"""Look at everything that a prompt needs: files, directories, providers, embedded models."""

import asyncio
import os
import platform
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tiro import __version__
from tiro.assistant.instructions import instructions_on_disk
from tiro.assistant.model_choice import ANSWER_SECONDS, Models
from tiro.assistant.setup import Setup
from tiro.assistant.standing import Standing, first, missing_key, nearest
from tiro.config.directories import cache_directory, config_directory, sessions_directory
from tiro.config.settings import Settings
from tiro.doctor.findings import (
    DamagedSession,
    Findings,
    LocalFound,
    ProviderFound,
    SessionsFound,
    Unlisted,
)
from tiro.doctor.next_step import next_step
from tiro.errors import TiroError
from tiro.models.local import LocalModels
from tiro.models.local_extra import install_command, is_installed
from tiro.models.model import bare_url
from tiro.stores.disk import Disk
from tiro.stores.index import Index


def examine(editor_settings: Mapping[str, Any]) -> Findings:
    """Everything that can be found within about three seconds; nothing is started or changed.

    A provider that a prompt would wait for longer, since its key is set, is waited for as long.
    """
    roots = _workspace_roots()
    setup = Setup.load(config_directory(), roots, editor_settings)
    settings = setup.settings
    standings = asyncio.run(_standings(settings))
    model, because, is_ready = _model_of(settings, standings)
    local = _local()
    unlisted = _unlisted(settings.model, standings, local)
    sessions, out_of_reach = _sessions_of(setup)
    findings = Findings(
        version=__version__,
        python=platform.python_version(),
        platform=platform.platform(),
        config_directory=str(config_directory()),
        config_files=[str(path) for path in setup.files],
        problems=[
            *setup.problems,
            *instructions_on_disk(roots, setup.patience).problems,
            *out_of_reach,
        ],
        is_config_broken=setup.is_broken,
        sessions=sessions,
        doubt=_doubt(settings),
        unlisted=unlisted,
        providers=[_found(one, _remark(one, unlisted, local), settings) for one in standings],
        local=local,
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


async def _standings(settings: Settings) -> list[Standing]:
    """How things are with each configured provider, all asked at the same time."""
    models = Models(settings.providers, settings.key_commands, cache_directory(), settings.doubts)
    return await models.standings([settings.model], ANSWER_SECONDS)


def _doubt(settings: Settings) -> str | None:
    """What in the configuration keeps the next prompt from being sent."""
    if settings.model is None:
        return settings.doubts.everyone or settings.doubts.model
    return settings.doubts.about(settings.model.partition("/")[0])


def _unlisted(model: str | None, standings: list[Standing], local: LocalFound) -> Unlisted | None:
    """Whether a model is set that its provider does not list."""
    name, _, given = (model or "").partition("/")
    mine = next((one for one in standings if one.provider.name == name), None)
    if mine is None or mine.reason is not None or not given:
        return None
    close = nearest(local.known if mine.provider.api == "local" else mine.listed, given)
    return Unlisted(name, close) if close else None


def _remark(standing: Standing, unlisted: Unlisted | None, local: LocalFound) -> str | None:
    """What is odd about a provider that can be used."""
    if unlisted is not None and unlisted.provider == standing.provider.name:
        return "the first of these is not in its list"
    if standing.provider.api == "local" and not local.ready:
        return "not downloaded yet"
    return standing.remark


def _found(standing: Standing, remark: str | None, settings: Settings) -> ProviderFound:
    provider, reason = standing.provider, standing.reason
    variable = missing_key(provider)
    if settings.doubts.about(provider.name) is not None:
        reason = "not asked before the problem above is corrected"
    return ProviderFound(
        name=provider.name,
        address=bare_url(provider.base_url),
        missing_key=variable,
        reason=reason,
        remark=remark,
        is_key_refused=standing.is_key_refused,
        key_variable=provider.api_key_env if variable is None else None,
        models=list(standing.names),
    )


def _model_of(settings: Settings, standings: list[Standing]) -> tuple[str | None, str, bool]:
    """The model of the next prompt, why that one, and whether it would answer."""
    if _doubt(settings) is not None:
        return settings.model, "not asked before the problem above is corrected", False
    if settings.model is None:
        answers, why = first(standings), "the first that can be used, since no model is set"
        if answers is None:
            return None, "no model is set, and no provider can be used", False
    else:
        name, why = settings.model.partition("/")[0], "it is set as `model`"
        answers = next((one for one in standings if one.provider.name == name), None)
        if answers is None:
            return settings.model, f"there is no provider {name!r}", False
    model = (settings.model or "").partition("/")[2] or next(iter(answers.names), "")
    full = f"{answers.provider.name}/{model}" if model else answers.provider.name
    return full, answers.reason or why, answers.reason is None


# --- this machine --------------------------------------------------------------------------


def _sessions_of(setup: Setup) -> tuple[SessionsFound, list[str]]:
    """The sessions, wherever `store` keeps them, and why they are out of reach."""
    if setup.settings.store.kind == "files":
        return _sessions(sessions_directory()), []
    saved, problems = 0, []
    with setup.manager(sessions_directory(), lambda notice: None) as manager:
        try:
            saved = len(manager.list_saved())
        except TiroError as error:
            problems.append(str(error))
    place, is_sqlite = manager.directory, setup.settings.store.kind == "sqlite"
    is_writable, free = _room(place.parent) if is_sqlite else (True, None)
    found = SessionsFound(
        directory=str(place), is_writable=is_writable, free_bytes=free, saved=saved, damaged=[]
    )
    return found, problems


def _sessions(directory: Path) -> SessionsFound:
    is_writable, free = _room(directory)
    try:
        rows = Index(directory, None, Disk()).sessions()
    except (OSError, TiroError):
        rows = []
    return SessionsFound(
        directory=str(directory),
        is_writable=is_writable,
        free_bytes=free,
        saved=sum(row.error is None for row in rows),
        damaged=[DamagedSession(row.path, row.error) for row in rows if row.error is not None],
    )


def _room(directory: Path) -> tuple[bool, int | None]:
    """Whether files can be made in a directory that may be missing, and how many bytes are free."""
    place = directory
    while not os.path.exists(place) and place != place.parent:
        place = place.parent
    try:
        free = shutil.disk_usage(place).free
    except OSError:
        free = None
    return os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK), free


def _local() -> LocalFound:
    models = LocalModels(cache_directory())
    try:
        rows = models.list()
    except OSError:
        rows = []
    ready = [row.name for row in rows if row.state == "ready"]
    return LocalFound(
        is_installed=is_installed(),
        install_command=install_command(),
        in_use=models.in_use(),
        ready=ready,
        known=[row.name for row in rows],
    )
