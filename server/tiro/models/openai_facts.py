"""What a server on this machine says about the context window it gives a model.

Such a server chooses the window when it is started, whatever the model could do, and some cut a
longer request without a word. So it is asked; a server that says nothing leaves it unknown.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from tiro.errors import TiroError
from tiro.models.model import ModelFacts
from tiro.models.openai_list import list_openai_models, read_json
from tiro.models.transport import Transport

ASK_SECONDS = 1.0

_KEYS = ("n_ctx", "max_model_len", "loaded_context_length", "context_length")
"""llama.cpp (inside `meta`), vLLM, LM Studio, Ollama."""


async def with_window(transport: Transport, name: str, facts: ModelFacts) -> ModelFacts:
    """The facts with the window that the server tells, if it tells one."""
    for ask in (_from_list, _from_ollama):
        try:
            rows = await ask(transport)
        except TiroError:
            continue
        window = next(_windows(rows, name), None)
        if window is not None:
            return msgspec.structs.replace(facts, context_window=window)
    return facts


async def _from_list(transport: Transport) -> list[Any]:
    return list(await list_openai_models(transport, ASK_SECONDS))


async def _from_ollama(transport: Transport) -> list[Any]:
    """Ollama tells the windows of running models, beside the paths that OpenAI's clients use."""
    async with transport.get("/api/ps", ASK_SECONDS, base="/") as answer:
        value = await read_json(transport, answer)
    models = value.get("models") if isinstance(value, dict) else None
    return models if isinstance(models, list) else []


def _windows(rows: list[Any], name: str) -> Iterator[int]:
    """What the rows say about this model; a server with one model takes any name for it."""
    rows = [row for row in rows if isinstance(row, dict)]
    named = [row for row in rows if name in (row.get("id"), row.get("name"), row.get("model"))]
    for row in named or (rows if len(rows) == 1 else []):
        meta = row.get("meta")
        fields = {**row, **(meta if isinstance(meta, dict) else {})}
        for key in _KEYS:
            window = fields.get(key)
            if isinstance(window, int) and not isinstance(window, bool) and window > 0:
                yield window
