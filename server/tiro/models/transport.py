"""The one way to a provider: its HTTP client, opened with the first request, and what it raises.

Every exception of httpx leaves this file as a ModelError. What an answer's body says is read in
`http_answer.py`; when it is asked for again, `retries.py` decides.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime

import httpx

from tiro.models import failures
from tiro.models.address import of_a_request
from tiro.models.answer_limits import EMPTY, EMPTY_SECONDS
from tiro.models.http_answer import Answer, ending_of
from tiro.models.model import ProviderSettings, bare_url
from tiro.models.observer import Exchange

CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 300.0
"""The longest silence of a hosted provider; reasoning models are silent for minutes."""
LOOPBACK_SILENCE_SECONDS = 1800.0
"""A model on this machine reads a long prompt for many minutes before its first token."""

SHORT_ANSWER_SECONDS = 10.0
"""How long an answer to a `get` may take, however steadily it drips."""


SOCKS = failures.Meaning(
    "cannot be asked through a SOCKS proxy, give an http:// one as its proxy setting or in"
    " HTTPS_PROXY, or name its host in NO_PROXY"
)


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
        connect_seconds: float | None = None,
        base: str | None = None,
        query: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Answer]:
        """Ask for a short answer; silence is waited for no longer than given, the end not for ever.

        A connection has to be accepted within `connect_seconds`, else within the same time.
        `base` stands for the path of the base_url, `query` is added to its own.
        """
        url = self._url(path, base).copy_merge_params(query or {})
        limit = max(timeout_seconds, SHORT_ANSWER_SECONDS)
        silence = httpx.Timeout(timeout_seconds, connect=connect_seconds or timeout_seconds)
        try:
            async with (
                asyncio.timeout(limit),
                self._send("GET", url, None, silence) as answer,
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
            except ImportError:
                raise failures.refusal(self.provider, SOCKS) from None
            except (OSError, ValueError) as error:
                # Its text may quote the proxy's password or the path of a certificate file.
                kind = type(error).__name__
                meaning = failures.Meaning(f"cannot be asked, check its proxy setting ({kind})")
                raise failures.refusal(self.provider, meaning) from None
        return self._client

    def _open(self) -> httpx.AsyncClient:
        keep_secrets_out_of_the_log()
        loopback = is_loopback(self.provider)
        silence = LOOPBACK_SILENCE_SECONDS if loopback else SILENCE_SECONDS
        is_http = loopback and self.provider.base_url.startswith("http:")
        is_plain = not self.provider.proxy and (is_http or self._http is not None)
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
            # The variables that name other ones count for a server on this machine too.
            verify=False if is_plain else httpx.create_ssl_context(),
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


def address(text: str) -> httpx.URL:
    """The address in a setting; ValueError where no connection could be tried."""
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL as error:
        raise ValueError("This is no address") from error
    if of_a_request(text):
        raise ValueError("This is the address of a request")
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


def keep_secrets_out_of_the_log() -> None:
    """Shorten the addresses that httpx logs; for whoever opens a client, before it is used."""
    logging.getLogger("httpx").addFilter(_WITHOUT_SECRETS)  # once, however often it is called


class _WithoutSecretsInAddresses(logging.Filter):
    """httpx logs the whole address of each request, password and query included."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(
                bare_url(str(arg)) if isinstance(arg, httpx.URL) else arg for arg in record.args
            )
        return True


_WITHOUT_SECRETS = _WithoutSecretsInAddresses()
