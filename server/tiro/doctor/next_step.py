"""The one thing to do next: what stands in the way of a prompt comes first."""

from tiro.doctor.findings import Findings, ProviderFound

ALL_IS_WELL = "All is well: tiro chat"


def next_step(found: Findings) -> str:
    """The last line of the report; a command wherever there is one.

    1. A configuration file cannot be read: nothing in it holds.
    2. The model that is set, or the first that would be asked, cannot answer.
    3. No provider can be used.
    4. A local model would be brought in the middle of the first prompt.
    5. Sessions cannot be saved.
    6. Something in a configuration file is wrong.
    7. A session cannot be loaded.
    """
    if found.is_config_broken:
        return f"Next: correct {found.problems[0]}"
    if not found.is_ready:
        return f"Next: {_to_a_model(found)}"
    if _is_unpulled(found):
        return "Next: tiro local pull"
    if not found.sessions.is_writable:
        return f"Next: make {found.sessions.directory} writable, or set TIRO_CONFIG_DIR"
    if found.problems:
        return f"Next: correct {found.problems[0]}"
    for damaged in found.sessions.damaged:
        return f"Next: correct {damaged.path}, or move it away: {damaged.reason}"
    return ALL_IS_WELL


def _to_a_model(found: Findings) -> str:
    if found.model is None:
        if found.local.is_installed:
            return "tiro local pull"
        return "export ANTHROPIC_API_KEY=… or OPENAI_API_KEY=…, or: pip install 'tiro[local]'"
    name = found.model.partition("/")[0]
    mine = next((one for one in found.providers if one.name == name), None)
    if mine is None:
        return f"set `model` to one of the configured providers; {found.model_because}"
    if mine.missing_key is not None:
        return f"export {mine.missing_key}=…"
    if mine.is_key_refused:
        return _to_a_key(mine)
    if mine.remark is not None:
        return f"set `model` to {name}/… with a name that it knows: {found.model_because}"
    if name == "local" and not found.local.is_installed:
        return "pip install 'tiro[local]'"
    return f"make {name} answer, or set another `model`: {found.model_because}"


def _to_a_key(mine: ProviderFound) -> str:
    if mine.key_variable is None:
        return f"correct the API key of {mine.name}: {mine.reason}"
    return f"set {mine.key_variable} to a key that {mine.name} takes: {mine.reason}"


def _is_unpulled(found: Findings) -> bool:
    provider, _, model = (found.model or "").partition("/")
    return provider == "local" and model not in found.local.ready
