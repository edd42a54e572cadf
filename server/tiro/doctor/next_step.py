"""The one thing to do next: what stands in the way of a prompt comes first."""

from tiro.doctor.findings import Findings

ALL_IS_WELL = "All is well: tiro chat"


def next_step(found: Findings) -> str:
    """The last line of the report; a command wherever there is one.

    1. The model that is set, or the first that would be asked, cannot answer.
    2. No provider can be used.
    3. A local model would be brought in the middle of the first prompt.
    4. Sessions cannot be saved.
    5. Something in a configuration file is wrong.
    """
    if not found.is_ready:
        return f"Next: {_to_a_model(found)}"
    if _is_unpulled(found):
        return "Next: tiro local pull"
    if not found.sessions.is_writable:
        return f"Next: make {found.sessions.directory} writable, or set TIRO_CONFIG_DIR"
    if found.problems:
        return f"Next: correct {found.problems[0]}"
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
    if name == "local" and not found.local.is_installed:
        return "pip install 'tiro[local]'"
    return f"make {name} answer, or set another `model`: {found.model_because}"


def _is_unpulled(found: Findings) -> bool:
    provider, _, model = (found.model or "").partition("/")
    return provider == "local" and model not in found.local.ready
