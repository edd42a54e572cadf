"""The one way to a provider: its HTTP client, its answers as events, the rule for asking again.

Every exception of httpx leaves this file as a ModelError. A request is repeated only while nothing
of the answer has been yielded.
"""

import asyncio
import logging
import random
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
)
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    aclosing,
    asynccontextmanager,
)
from datetime import UTC, datetime

import httpx

from tiro.errors import ModelError
from tiro.models import failures
from tiro.models.answer_limits import EMPTY, EMPTY_SECONDS, AnswerLimits
from tiro.models.model import Delta, Progress, ProviderSettings, RetryWait, bare_url
from tiro.models.observer import Ending, Exchange
from tiro.models.server_sent_events import EventReader, EventTooLargeError

MAX_REPEATS = 3
FIRST_BACKOFF_SECONDS = 0.5
CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 300.0
"""The longest silence of a hosted provider; reasoning models are silent for minutes."""
LOOPBACK_SILENCE_SECONDS = 1800.0
"""A model on this machine reads a long prompt for many minutes before its first token."""
MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
MAX_REFUSAL_BYTES = 64 * 1024
SHORT_ANSWER_SECONDS = 10.0
"""How long an answer to a `get` may take, however steadily it drips."""
REFUSAL_SECONDS = 10.0
"""How long the body of a refused answer is waited for."""
DRAIN_SECONDS = 0.05
"""How long the end of a finished answer is waited for, so that its connection can be used again."""

Sleep = Callable[[float], Awaitable[object]]


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


class Transport:
    """The HTTP client of one provider, opened with its first request."""

    def __init__(
        self,
        provider: ProviderSettings,
        *,
        authorization: Mapping[str, str],
        http: httpx.AsyncBaseTransport | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.provider = provider
        self._headers = {
            "accept": "text/event-stream, application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "user-agent": "tiro",
            **authorization,
            **provider.headers,
        }
        self._http = http
        self._now = now
        self._client: httpx.AsyncClient | None = None

    @asynccontextmanager
    async def post(self, path: str, body: bytes) -> AsyncIterator[Answer]:
        """Send and give the answer as soon as its head is there; leaving closes it."""
        async with self._send("POST", self._url(path), body) as answer:
            yield answer

    @asynccontextmanager
    async def get(
        self,
        path: str,
        timeout_seconds: float,
        *,
        base: str | None = None,
        query: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Answer]:
        """Ask for a short answer; silence is waited for no longer than given, the end not for ever.

        `base` stands for the path of the base_url, `query` is added to its own.
        """
        url = self._url(path, base).copy_merge_params(query or {})
        limit = max(timeout_seconds, SHORT_ANSWER_SECONDS)
        try:
            async with (
                asyncio.timeout(limit),
                self._send("GET", url, None, httpx.Timeout(timeout_seconds)) as answer,
            ):
                yield answer
        except TimeoutError:
            meaning = failures.Meaning("did not come to the end of a short answer", True)
            raise failures.refusal(self.provider, meaning) from None

    async def close(self) -> None:
        """Close all connections; a later request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def retry_after_seconds(self, answer: Answer) -> float | None:
        """How long the provider asks to wait, if it says so readably."""
        return failures.retry_after_seconds(answer.headers.get("retry-after"), self._now)

    @asynccontextmanager
    async def _send(
        self, method: str, url: httpx.URL, body: bytes | None, timeout: httpx.Timeout | None = None
    ) -> AsyncIterator[Answer]:
        try:
            client = self._opened()
            limits = client.timeout if timeout is None else timeout
            async with (
                self._observed(method, url, body) as exchange,
                self._begun(client.stream(method, url, content=body, timeout=limits)) as response,
            ):
                answer = Answer(response, self.provider, exchange)
                try:
                    yield answer
                    await answer.drain()
                finally:
                    await answer.close()
        except tuple(failures.HTTPX_MEANINGS) as error:
            raise failures.from_httpx(error, self.provider) from error

    @asynccontextmanager
    async def _begun(
        self, stream: AbstractAsyncContextManager[httpx.Response]
    ) -> AsyncIterator[httpx.Response]:
        """The answer when its head is there; a head that goes on and on is not waited for."""
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(EMPTY_SECONDS):
                    response = await stack.enter_async_context(stream)
            except TimeoutError:
                raise failures.refusal(self.provider, failures.Meaning(EMPTY)) from None
            yield response

    @asynccontextmanager
    async def _observed(
        self, method: str, url: httpx.URL, body: bytes | None
    ) -> AsyncIterator[Exchange | None]:
        """What this request is told to, if to anybody."""
        observer = self.provider.observer
        if observer is None:
            yield None
            return
        exchange = observer.asked(
            provider=self.provider.name,
            api=self.provider.api,
            base_url=bare_url(self.provider.base_url),
            method=method,
            url=bare_url(str(url)),
            headers=list(self._headers.items()),
            body=body or b"",
        )
        try:
            yield exchange
        except httpx.HTTPError as error:
            exchange.ended(ending_of(error), type(error).__name__)
            raise
        finally:
            exchange.ended("closed")

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            self._check_headers()
            try:
                address(self.provider.proxy or "")
                self._client = self._open()
            except (OSError, ValueError, ImportError) as error:
                # Its text may quote the proxy's password or the path of a certificate file.
                kind = type(error).__name__
                meaning = failures.Meaning(f"cannot be asked, check its proxy setting ({kind})")
                raise failures.refusal(self.provider, meaning) from None
        return self._client

    def _open(self) -> httpx.AsyncClient:
        keep_secrets_out_of_the_log()
        loopback = is_loopback(self.provider)
        silence = LOOPBACK_SILENCE_SECONDS if loopback else SILENCE_SECONDS
        is_plain = (
            loopback and self.provider.base_url.startswith("http:") and not self.provider.proxy
        )
        return httpx.AsyncClient(
            headers=self._headers,
            timeout=httpx.Timeout(
                self.provider.timeout_seconds or silence, connect=CONNECT_SECONDS
            ),
            # llama.cpp's server closes its end after a stream while it promises to keep it open.
            limits=httpx.Limits(max_keepalive_connections=0 if loopback else 5),
            # A proxy of the environment is never meant for a server on this machine.
            trust_env=not loopback,
            proxy=self.provider.proxy,
            # Reading the certificates of this machine costs 20 to 45 ms, and here is no TLS.
            verify=not is_plain,
            transport=self._http,
        )

    def _url(self, path: str, base: str | None = None) -> httpx.URL:
        try:
            url = address(self.provider.base_url)
        except ValueError:  # its text may quote a password
            raise failures.refusal(self.provider, failures.NO_ADDRESS) from None
        return url.copy_with(path=(base or url.path).rstrip("/") + path)

    def _check_headers(self) -> None:
        for name, value in self._headers.items():
            if not (value.isascii() and value.isprintable()):
                meaning = failures.Meaning(
                    f"cannot be asked: the header {name!r}, which may be made of the API key, holds"
                    " a character that HTTP does not allow"
                )
                raise failures.refusal(self.provider, meaning)


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


def ending_of(error: httpx.HTTPError) -> Ending:
    """How a request ends with this error."""
    return next((how for kinds, how in _ENDINGS if isinstance(error, kinds)), "reset")


_ENDINGS: tuple[tuple[tuple[type[Exception], ...], Ending], ...] = (
    ((httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError), "unreachable"),
    ((httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.PoolTimeout), "unreachable"),
    ((httpx.TimeoutException,), "silent"),
    ((httpx.RemoteProtocolError, httpx.DecodingError), "cut"),
)


async def with_retries(
    attempt: Callable[[], AsyncGenerator[Delta, None]],
    *,
    sleep: Sleep = asyncio.sleep,
    jitter: Callable[[], float] = random.random,
) -> AsyncGenerator[Delta, None]:
    """The deltas of the first attempt that begins to answer; a wait is told before it is waited."""
    repeats = 0
    while True:
        has_begun = False
        try:
            async with aclosing(attempt()) as deltas:
                async for delta in deltas:
                    has_begun = has_begun or not isinstance(delta, Progress)
                    yield delta
            return
        except ModelError as error:
            repeats += 1
            if has_begun or repeats > MAX_REPEATS or not _may_repeat(error):
                raise
            wait, reason = _wait_seconds(error, repeats, jitter), str(error)
        yield RetryWait(repeats, wait, reason)
        await sleep(wait)


def address(text: str) -> httpx.URL:
    """The address in a setting; ValueError where no connection could be tried."""
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL as error:
        raise ValueError("This is no address") from error
    if url.port is not None and not 0 < url.port < 1 << 16:
        raise ValueError("There is no such port")
    if "%" in url.host.partition(":")[0]:  # in what is no IPv6 address it stands for garbage
        raise ValueError("There is no such host")
    return url


def is_loopback(provider: ProviderSettings) -> bool:
    """Whether the provider runs on this machine."""
    try:
        host = address(provider.base_url).host
    except ValueError:
        return False
    return host in ("localhost", "::1") or host.startswith("127.")


def _may_repeat(error: ModelError) -> bool:
    """Long waits are the user's to decide: those a provider asks for, and another long silence."""
    asked_for = error.data.get("retry_after_seconds") or 0.0
    is_silence = isinstance(error.__cause__, httpx.ReadTimeout)
    retryable = bool(error.data.get("retryable"))
    return retryable and not is_silence and asked_for <= failures.LONGEST_WAIT_SECONDS


def keep_secrets_out_of_the_log() -> None:
    """Shorten the addresses that httpx logs; for whoever opens a client, before it is used."""
    logging.getLogger("httpx").addFilter(_WITHOUT_SECRETS)  # once, however often it is called


def _wait_seconds(error: ModelError, repeats: int, jitter: Callable[[], float]) -> float:
    asked_for = error.data.get("retry_after_seconds")
    if isinstance(asked_for, float):
        return asked_for
    return float(FIRST_BACKOFF_SECONDS * 2 ** (repeats - 1) * (1 + jitter()))


class _WithoutSecretsInAddresses(logging.Filter):
    """httpx logs the whole address of each request, password and query included."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(
                bare_url(str(arg)) if isinstance(arg, httpx.URL) else arg for arg in record.args
            )
        return True


_WITHOUT_SECRETS = _WithoutSecretsInAddresses()
