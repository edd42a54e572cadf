"""The list of models that a provider offers; all formats have the same one."""

from typing import Any

from tiro.errors import ContextOverflowError, ModelError
from tiro.models import refusals
from tiro.models.transport import Answer, Transport
from tiro.session.messages import decode

LIST_QUERY = {"anthropic": {"limit": "1000"}}
"""By api: what makes the list whole; Anthropic gives pages of 20 otherwise."""


async def list_rows(transport: Transport, timeout_seconds: float) -> list[dict[str, Any]]:
    """What the provider offers, each with an `id` and whatever else it tells."""
    query = LIST_QUERY.get(transport.provider.api)
    async with transport.get("/models", timeout_seconds, query=query) as answer:
        value = await read_json(transport, answer)
    rows = value.get("data") if isinstance(value, dict) else value
    if not isinstance(rows, list):
        raise refusals.unreadable(transport.provider, b"")
    return [row for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]


async def read_json(transport: Transport, answer: Answer) -> Any:
    """An answer that is one JSON value; ModelError for everything else."""
    if not 200 <= answer.status < 300:
        raise await refused(transport, answer)
    if await answer.first_character() == "<":
        raise refusals.web_page(transport.provider, await answer.refusal_body())
    body = await answer.document()
    try:
        return decode(body)
    except ValueError as error:
        raise refusals.unreadable(transport.provider, body) from error


async def refused(transport: Transport, answer: Answer) -> ModelError | ContextOverflowError:
    """The error for an answer with another status than success."""
    return refusals.from_wire_refusal(
        transport.provider,
        answer.status,
        await answer.refusal_body(),
        transport.retry_after_seconds(answer),
    )
