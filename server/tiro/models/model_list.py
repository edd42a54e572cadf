"""The list of models that a provider offers; all formats have the same one, some servers none."""

from typing import Any

import msgspec

from tiro.errors import ContextOverflowError, ModelError
from tiro.models import failures, refusals
from tiro.models.http_answer import Answer
from tiro.models.transport import Transport
from tiro.session.json_text import decode

LIST_QUERY = {"anthropic": {"limit": "1000"}}
"""By api: what makes the list whole; Anthropic gives pages of 20 otherwise."""

NO_LIST = (404, 405, 501)
"""What a server says that knows no such address: it may answer prompts all the same."""


class Listing(msgspec.Struct, frozen=True):
    """What was answered: the models, each with an `id` and whatever else is told of it."""

    rows: list[dict[str, Any]]
    instead: str | None = None
    """What came where a list should have been."""


async def list_rows(
    transport: Transport, timeout_seconds: float, connect_seconds: float | None = None
) -> Listing:
    """What the provider offers; ModelError when it cannot be asked, or takes no question."""
    query = LIST_QUERY.get(transport.provider.api)
    asked = transport.get("/models", timeout_seconds, connect_seconds=connect_seconds, query=query)
    async with asked as answer:
        if answer.status in NO_LIST:
            return Listing([], f"HTTP {answer.status}")
        if answer.status == 403:  # a list is of no model: it is the key that is not allowed
            raise await refused(transport, answer, failures.key_refused(transport.provider))
        if not 200 <= answer.status < 300:
            raise await refused(transport, answer)
        if await answer.first_character() == "<":
            return Listing([], "a web page")
        try:
            value = decode(await answer.document())
        except ValueError:
            return Listing([], "no list")
    rows = value.get("data") if isinstance(value, dict) else value
    if not isinstance(rows, list):
        return Listing([], "no list")
    return Listing(
        [row for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]
    )


async def read_json(transport: Transport, answer: Answer) -> Any:
    """An answer that is one JSON value; ModelError for everything else."""
    if not 200 <= answer.status < 300:
        raise await refused(transport, answer)
    body = await answer.document()
    try:
        return decode(body)
    except ValueError as error:
        raise refusals.unreadable(transport.provider, body) from error


async def refused(
    transport: Transport, answer: Answer, meaning: failures.Meaning | None = None
) -> ModelError | ContextOverflowError:
    """The error for an answer with another status than success."""
    return refusals.from_wire_refusal(
        transport.provider,
        answer.status,
        await answer.refusal_body(),
        transport.retry_after_seconds(answer),
        meaning,
    )
