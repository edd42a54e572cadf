"""What a server says about the limits of a model.

A server on this machine chooses the context window when it is started, whatever the model could
do, and some cut a longer request without a word; a hosted one knows models that are newer than
this file. So they are asked; what a server does not say stays unknown.
"""

from typing import Any

from tiro.errors import TiroError
from tiro.models.model import ModelFacts
from tiro.models.model_list import list_rows, read_json
from tiro.models.transport import Transport, is_loopback

ASK_SECONDS = 1.0

_WINDOW_KEYS = (
    "n_ctx", "max_model_len", "loaded_context_length", "context_length", "max_input_tokens",
)  # fmt: skip
"""llama.cpp (inside `meta`), vLLM, LM Studio, Ollama, Anthropic."""
_OUTPUT_KEYS = ("max_tokens",)
"""Anthropic."""


async def told_facts(transport: Transport, name: str) -> ModelFacts:
    """The limits that the server tells of this model, as far as it does."""
    for ask in (_from_list, _from_ollama):
        try:
            rows = await ask(transport)
        except TiroError:
            continue
        for fields in _about(rows, name):
            window = _first_count(fields, _WINDOW_KEYS)
            if window is not None:
                return ModelFacts(window, _first_count(fields, _OUTPUT_KEYS))
    return ModelFacts()


async def _from_list(transport: Transport) -> list[Any]:
    return list((await list_rows(transport, ASK_SECONDS)).rows)


async def _from_ollama(transport: Transport) -> list[Any]:
    """Ollama tells the windows of running models, beside the paths that others' clients use."""
    if not is_loopback(transport.provider):
        return []
    async with transport.get("/api/ps", ASK_SECONDS, base="/") as answer:
        value = await read_json(transport, answer)
    models = value.get("models") if isinstance(value, dict) else None
    return models if isinstance(models, list) else []


def _about(rows: list[Any], name: str) -> list[dict[str, Any]]:
    """The rows about this model; a server with one model takes any name for it."""
    rows = [row for row in rows if isinstance(row, dict)]
    named = [row for row in rows if name in (row.get("id"), row.get("name"), row.get("model"))]
    found = named or (rows if len(rows) == 1 else [])
    return [{**row, **m} if isinstance(m := row.get("meta"), dict) else row for row in found]


def _first_count(fields: dict[str, Any], keys: tuple[str, ...]) -> int | None:
    """The first of these fields that holds a number of tokens."""
    for key in keys:
        count = fields.get(key)
        if isinstance(count, int) and not isinstance(count, bool) and count > 0:
            return count
    return None
