"""What was found, as a person reads it; the last line says what to do next."""

import os
from collections.abc import Iterator

from tiro.doctor.findings import Findings, ProviderFound
from tiro.screen_text import size_text
from tiro.session.hidden import harmless

MAX_NAMES = 3
RELATIVE = "TIRO_CONFIG_DIR is relative: started in another folder it is another directory"


def report(found: Findings) -> str:
    """The whole report: a heading and its words on each line."""
    lines = [
        f"Tiro        {found.version}, Python {found.python}, {found.platform}",
        f"Config      {_config(found)}",
        *(f"Problem     {problem}" for problem in found.problems),
        *_sessions(found),
        *map(_provider, found.providers),
        f"Local       {_local(found)}",
        f"Model       {found.model or 'none can be used'} ({_because(found)})",
        f"Agent       {found.agent}",
        f"Editors     {_editors(found)}",
        found.next_step,
    ]
    return "".join(harmless(line.replace("\n", " ")) + "\n" for line in lines)


def _config(found: Findings) -> str:
    """The files; where the directory depends on this folder, that too."""
    files = ", ".join(found.config_files) or f"no file in {found.config_directory}"
    given = os.path.expanduser(os.environ.get("TIRO_CONFIG_DIR") or "/")
    return files if os.path.isabs(given) else f"{files} ({RELATIVE})"


def _sessions(found: Findings) -> Iterator[str]:
    sessions = found.sessions
    free = "" if sessions.free_bytes is None else f", {size_text(sessions.free_bytes)} free"
    state = free if sessions.is_writable else ", where nothing can be saved"
    yield f"Sessions    {sessions.saved} in {sessions.directory}{state}"
    for damaged in sessions.damaged:
        yield f"Damaged     {damaged.path}: {damaged.reason}"


def _provider(one: ProviderFound) -> str:
    if one.reason is not None:
        return f"  --  {one.name:<12} {one.reason}"
    names = ", ".join(one.models[:MAX_NAMES])
    left = len(one.models) - MAX_NAMES
    more = f" and {left} more" if left > 0 else ""
    remark = f" ({one.remark})" if one.remark else ""
    return f"  ok  {one.name:<12} {names}{more}{remark}"


def _because(found: Findings) -> str:
    """Why this model, without a reason that stands above already."""
    is_above = any(one.reason == found.model_because for one in found.providers)
    return "it cannot answer, see above" if is_above else found.model_because


def _local(found: Findings) -> str:
    ready = ", ".join(found.local.ready)
    if not found.local.is_installed:
        return f"what runs embedded models is not installed: {found.local.install_command}"
    if not ready:
        return f"no model is downloaded; {found.local.in_use} comes with: tiro local pull"
    return f"{ready} downloaded"


def _editors(found: Findings) -> str:
    if found.command is None:
        return f"tiro is not on the PATH; let them start: {found.python_command} -m tiro serve"
    return f"they start {found.command}; M-x tiro in Emacs, the Tiro view in VS Code"
