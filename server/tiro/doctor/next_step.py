"""The one thing to do next: what stands in the way of a prompt comes first."""

from tiro.doctor.findings import Findings
from tiro.screen_text import size_text

ALL_IS_WELL = "All is well: tiro chat"
LEAST_FREE_BYTES = 1_000_000
"""With less, some session soon cannot be saved."""
SILENT = "no server answers"
"""How the reason begins where nobody is there."""


def next_step(found: Findings) -> str:
    """The last line of the report; a command wherever there is one.

    1. A configuration file cannot be read, or it is not clear from it who is to be asked.
    2. The model that is set, or the first that would be asked, cannot answer.
    3. No provider can be used.
    4. The provider does not list the model that is set.
    5. A local model would be downloaded in the middle of the first prompt.
    6. Sessions cannot be saved, or hardly any more.
    7. Something in a configuration file is wrong.
    8. A session cannot be loaded.
    """
    return f"Next: {todo}" if (todo := _todo(found)) else ALL_IS_WELL


def _todo(found: Findings) -> str | None:
    if found.doubt is not None or found.is_config_broken:
        return _correct(found.doubt or found.problems[0])
    if not found.is_ready:
        return _to_a_model(found)
    if found.unlisted is not None:
        near = ", ".join(f"{found.unlisted.provider}/{name}" for name in found.unlisted.nearest)
        return f"check the name in `model`: {found.unlisted.provider} does not list it, but {near}"
    if (name := _undownloaded(found)) is not None:
        return _pull(found, name)
    if not found.sessions.is_writable:
        return f"make {found.sessions.directory} writable, or set TIRO_CONFIG_DIR to another folder"
    free = found.sessions.free_bytes
    if free is not None and free < LEAST_FREE_BYTES:
        return f"make room on the disk of {found.sessions.directory}: {size_text(free)} are free"
    if found.problems:
        return _correct(found.problems[0])
    for damaged in found.sessions.damaged:
        return f"move {damaged.path} to another folder, or repair it: it cannot be loaded"
    return None


def _correct(problem: str) -> str:
    """What to correct, without what follows from the fault: that stands above."""
    return f"correct {problem.partition('; ')[0]}"


def _to_a_model(found: Findings) -> str:
    if found.model is None:
        if found.local.is_installed:
            return "tiro local pull"
        install = found.local.install_command
        return f"export ANTHROPIC_API_KEY=… or OPENAI_API_KEY=…, or: {install}"
    name = found.model.partition("/")[0]
    mine = next((one for one in found.providers if one.name == name), None)
    if mine is None:
        known = ", ".join(one.name for one in found.providers)
        return f"set `model` to provider/name with one of {known}; {found.model_because}"
    if mine.missing_key is not None:
        return f"export {mine.missing_key}=…"
    if mine.is_key_refused:
        key = f"set {mine.key_variable} to" if mine.key_variable else f"give {name}"
        return f"{key} a key that {name} accepts; it refused the one that is there"
    if mine.remark is not None:
        return f"set `model` to {name}/… with a name that it knows: {found.model_because}"
    if name == "local" and not found.local.is_installed:
        return found.local.install_command
    if found.model_because.startswith(SILENT):
        return f"start {name}, or correct its `base_url`: {found.model_because}"
    return f"make {name} answer (see above), or {_another(found)}"


def _another(found: Findings) -> str:
    """How to set a model of a provider that can be used now, with the file and the line."""
    ours = (path for path in found.config_files if path.startswith(found.config_directory))
    file = next(ours, f"{found.config_directory}/config.yaml")
    usable = (
        one for one in found.providers if one.models and (one.reason or one.missing_key) is None
    )
    if (other := next(usable, None)) is None:
        return f"set another `model` in {file}"
    return f"put in {file} the line: model: {other.name}/{other.models[0]}"


def _undownloaded(found: Findings) -> str | None:
    """The local model that the next prompt would have to wait for."""
    provider, _, model = (found.model or "").partition("/")
    return model if provider == "local" and model not in found.local.ready else None


def _pull(found: Findings, name: str) -> str:
    return "tiro local pull" if name == found.local.in_use else f"tiro local pull {name}"
