"""The list of models that a provider of OpenAI's format offers."""

from typing import Any

from tiro.errors import ContextOverflowError, ModelError
from tiro.models import openai_failure
from tiro.models.transport import Answer, Transport
from tiro.session.messages import decode


async def list_openai_models(transport: Transport, timeout_seconds: float) -> list[dict[str, Any]]:
    """What the provider offers, each with an `id` and whatever else it tells."""
    async with transport.get("/models", timeout_seconds) as answer:
        value = await read_json(transport, answer)
    rows = value.get("data") if isinstance(value, dict) else value
    if not isinstance(rows, list):
        raise openai_failure.unreadable(transport.provider, b"")
    return [row for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]


async def read_json(transport: Transport, answer: Answer) -> Any:
    """An answer that is one JSON value; ModelError for everything else."""
    if not 200 <= answer.status < 300:
        raise await refused(transport, answer)
    if await answer.first_character() == "<":
        raise openai_failure.web_page(transport.provider, await answer.refusal_body())
    body = await answer.document()
    try:
        return decode(body)
    except ValueError as error:
        raise openai_failure.unreadable(transport.provider, body) from error


async def refused(transport: Transport, answer: Answer) -> ModelError | ContextOverflowError:
    """The error for an answer with another status than success."""
    return openai_failure.from_wire_refusal(
        transport.provider,
        answer.status,
        await answer.refusal_body(),
        transport.retry_after_seconds(answer),
    )
