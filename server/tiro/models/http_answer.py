"""An HTTP answer whose head has come: its body as events, as one document, as a refusal's text."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

import httpx

from tiro.models import failures
from tiro.models.answer_limits import AnswerLimits
from tiro.models.model import ProviderSettings
from tiro.models.observer import Ending, Exchange
from tiro.models.server_sent_events import EventReader, EventTooLargeError

MAX_DOCUMENT_BYTES = 64 * 1024 * 1024

MAX_REFUSAL_BYTES = 64 * 1024

REFUSAL_SECONDS = 10.0
"""How long the body of a refused answer is waited for."""

DRAIN_SECONDS = 0.05
"""How long the end of a finished answer is waited for, so that its connection can be used again."""


class Answer:
    """An HTTP answer whose head has come; its body is read once."""

    def __init__(
        self, response: httpx.Response, provider: ProviderSettings, exchange: Exchange | None = None
    ) -> None:
        self.status = response.status_code
        self.headers = response.headers
        self._provider = provider
        self.limits = AnswerLimits(provider)
        self._chunks = response.aiter_bytes()
        if exchange is not None:
            exchange.answered(self.status, self.headers.multi_items())
            self._chunks = _told(self._chunks, exchange)
        self._peeked: list[bytes] = []

    async def first_character(self) -> str:
        """The first one that is no white space, which tells JSON, a web page and events apart."""
        async for chunk in self._chunks:
            self.limits.came()
            self._peeked.append(chunk)
            start = b"".join(self._peeked).removeprefix(b"\xef\xbb\xbf").lstrip()
            if start:
                return chr(start[0])
            self._peeked = []  # some servers send blank lines for as long as a model thinks
        return ""

    async def events(self) -> AsyncGenerator[list[bytes], None]:
        """The events of each piece that the network delivers, together."""
        reader = EventReader()
        try:
            for chunk in self._peeked:
                yield reader.feed(chunk)
            async for chunk in self._chunks:
                self.limits.came()
                events = reader.feed(chunk)
                self.limits.read(events)
                yield events
            yield reader.close()
        except EventTooLargeError as error:
            meaning = failures.Meaning("sent an answer that cannot be read")
            raise failures.refusal(self._provider, meaning, words=str(error)) from error

    async def document(self) -> bytes:
        """The whole body, for an answer that is one JSON value."""
        body = await self._read(MAX_DOCUMENT_BYTES)
        if len(body) > MAX_DOCUMENT_BYTES:
            meaning = failures.Meaning("sent an answer that is too large")
            raise failures.refusal(self._provider, meaning)
        return body

    async def refusal_body(self) -> bytes:
        """The beginning of a refused answer's body, as far as it comes in time."""
        try:
            async with asyncio.timeout(REFUSAL_SECONDS):
                return await self._read(MAX_REFUSAL_BYTES)
        except (TimeoutError, httpx.HTTPError):
            return b"".join(self._peeked)

    async def drain(self) -> None:
        """Wait a moment for the end of the body."""
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                async for _ in self._chunks:
                    pass
        except (TimeoutError, httpx.HTTPError, httpx.StreamError):
            return

    async def close(self) -> None:
        """Let go of the body, read or not."""
        if isinstance(self._chunks, AsyncGenerator):
            await self._chunks.aclose()

    async def _read(self, limit: int) -> bytes:
        size = sum(map(len, self._peeked))
        async for chunk in self._chunks:
            self.limits.came()
            self._peeked.append(chunk)
            size += len(chunk)
            if size > limit:
                break
        return b"".join(self._peeked)


def ending_of(error: httpx.HTTPError) -> Ending:
    """How a request ends with this error."""
    return next((how for kinds, how in _ENDINGS if isinstance(error, kinds)), "reset")


async def _told(chunks: AsyncIterator[bytes], exchange: Exchange) -> AsyncGenerator[bytes, None]:
    """The chunks, each told before it is given."""
    try:
        async for chunk in chunks:
            exchange.received(chunk)
            yield chunk
    except httpx.HTTPError as error:
        exchange.ended(ending_of(error), type(error).__name__)
        raise
    finally:
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()
    exchange.ended("complete")


_ENDINGS: tuple[tuple[tuple[type[Exception], ...], Ending], ...] = (
    ((httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError), "unreachable"),
    ((httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.PoolTimeout), "unreachable"),
    ((httpx.TimeoutException,), "silent"),
    ((httpx.RemoteProtocolError, httpx.DecodingError), "cut"),
)
