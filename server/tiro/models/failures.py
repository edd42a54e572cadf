"""What went wrong with a provider, as one sentence that says what to do and holds no secret.

Two tables: the exceptions of httpx, and the HTTP statuses. A provider's own words are quoted with
every configured secret taken out.
"""

import math
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import httpx

from tiro.errors import ModelError
from tiro.models.model import ProviderSettings
from tiro.models.provider_secrets import secrets_of
from tiro.session.secrets import redact

MAX_BODY_BYTES = 2048
"""How much of a refused answer's body is told."""
MAX_QUOTE_CHARS = 300
"""How much of a provider's own words goes into the sentence."""
LONGEST_WAIT_SECONDS = 60.0
"""A wait that a provider asks for is waited up to this; beyond it the user is told instead."""


class Meaning(NamedTuple):
    """The end of a sentence that begins with the provider, and whether asking again may help."""

    sentence: str
    is_retryable: bool = False


_BROKEN_OFF = Meaning("broke the connection off", is_retryable=True)
_NO_NETWORK = Meaning("cannot be reached: there seems to be no network", is_retryable=True)
NO_ADDRESS = Meaning("has a base_url that is no address, correct it")
_OWN_FAULT = Meaning("could not be asked because of a fault in Tiro, please report it")

HTTPX_MEANINGS: dict[type[Exception], Meaning] = {
    httpx.ConnectError: Meaning(
        "cannot be reached, check the network, its base_url and whether it is running",
        is_retryable=True,
    ),
    httpx.ConnectTimeout: Meaning(
        "did not accept a connection in time, check its base_url and the network", is_retryable=True
    ),
    httpx.ReadTimeout: Meaning(
        "stayed silent for too long, ask again or raise its timeout_seconds", is_retryable=True
    ),
    httpx.WriteTimeout: Meaning("did not take the request in time", is_retryable=True),
    httpx.PoolTimeout: Meaning("has no free connection", is_retryable=True),
    httpx.TimeoutException: Meaning("did not answer in time", is_retryable=True),
    httpx.ReadError: _BROKEN_OFF,
    httpx.WriteError: _BROKEN_OFF,
    httpx.CloseError: _BROKEN_OFF,
    httpx.NetworkError: _BROKEN_OFF,
    httpx.RemoteProtocolError: _BROKEN_OFF,
    httpx.LocalProtocolError: Meaning(
        "cannot be asked: its key or headers hold a character that HTTP does not allow"
    ),
    httpx.ProtocolError: _BROKEN_OFF,
    httpx.ProxyError: Meaning(
        "cannot be reached through its proxy, check the proxy setting or HTTPS_PROXY"
    ),
    httpx.UnsupportedProtocol: Meaning("needs a base_url that begins with http:// or https://"),
    httpx.TransportError: Meaning("cannot be reached", is_retryable=True),
    httpx.DecodingError: Meaning("sent an answer whose compression is broken", is_retryable=True),
    httpx.TooManyRedirects: Meaning("only redirects, check its base_url"),
    httpx.RequestError: Meaning("cannot be asked"),
    httpx.HTTPStatusError: Meaning("refused the request"),
    httpx.HTTPError: Meaning("cannot be asked"),
    httpx.InvalidURL: NO_ADDRESS,
    httpx.CookieConflict: _OWN_FAULT,
    httpx.StreamConsumed: _OWN_FAULT,
    httpx.StreamClosed: _OWN_FAULT,
    httpx.ResponseNotRead: _OWN_FAULT,
    httpx.RequestNotRead: _OWN_FAULT,
    httpx.StreamError: _OWN_FAULT,
}
"""Every exception of httpx; a class that is not listed takes the meaning of the class above it."""

_CONNECT_MEANINGS = {
    "CERTIFICATE_VERIFY_FAILED": Meaning(
        "has a certificate that is not trusted here; where it is your own, name the file of its"
        " authority in SSL_CERT_FILE"
    ),
    "WRONG_VERSION_NUMBER": Meaning("does not speak TLS, begin its base_url with http://"),
    "RECORD_LAYER_FAILURE": Meaning("does not speak TLS, begin its base_url with http://"),
    **dict.fromkeys(("failure in name resolution", "Network is unreachable"), _NO_NETWORK),
}
"""What OpenSSL or the system calls it, in the text of a `ConnectError`."""

_USERINFO_REFUSED = Meaning(
    "refused the user and password in its base_url, which go before any API key; correct them, or"
    " take them out"
)
NO_CREDIT = Meaning("has no credit left on this account")

_STATUS_MEANINGS: dict[int, Meaning] = {
    400: Meaning("refused the request"),
    402: NO_CREDIT,
    403: Meaning("does not allow this key to ask this model"),
    404: Meaning("does not know this model or address, check the model's name and the base_url"),
    405: Meaning("does not take requests at this address, check the base_url"),
    408: Meaning("did not get the request in time", is_retryable=True),
    409: Meaning("was busy with the same request", is_retryable=True),
    413: Meaning("finds the request too large"),
    422: Meaning("refused the request"),
    429: Meaning("is limiting the number of requests", is_retryable=True),
    529: Meaning("is overloaded", is_retryable=True),
}


def from_httpx(error: Exception, provider: ProviderSettings) -> ModelError:
    """The error to raise, `from` the exception of httpx that it explains."""
    meaning = meaning_of(error)
    reason = ""
    if isinstance(error, httpx.ConnectError | httpx.ProxyError) and str(error):
        reason = f" ({without_secrets(str(error), provider)[:MAX_QUOTE_CHARS]})"
    return ModelError(
        f"The provider {provider.name!r} {meaning.sentence}{reason}",
        provider=provider.name,
        status=None,
        retryable=meaning.is_retryable,
        retry_after_seconds=None,
        body=None,
    )


def meaning_of(error: Exception) -> Meaning:
    """What the table says of this exception or of the nearest class above it."""
    if isinstance(error, httpx.ConnectError):
        for name, meaning in _CONNECT_MEANINGS.items():
            if name in str(error):
                return meaning
    return next(HTTPX_MEANINGS[kind] for kind in type(error).__mro__ if kind in HTTPX_MEANINGS)


def meaning_of_status(status: int, provider: ProviderSettings) -> Meaning:
    """What an HTTP status, also one sent inside a stream, says."""
    if status == 401 or (status == 403 and has_userinfo(provider)):
        return key_refused(provider)
    if status in _STATUS_MEANINGS:
        return _STATUS_MEANINGS[status]
    if 300 <= status < 400:
        return Meaning("has moved, correct its base_url")
    if status >= 500:
        return Meaning("has a fault of its own", is_retryable=True)
    return Meaning("refused the request")


def key_refused(provider: ProviderSettings) -> Meaning:
    """That the key is not taken, with the variable that holds it, or what is sent in its place."""
    if has_userinfo(provider):
        return _USERINFO_REFUSED
    if not (provider.api_key or provider.headers):
        return Meaning("wants an API key, name the variable that holds it as its api_key_env")
    place = f" in {provider.api_key_env}" if provider.api_key and provider.api_key_env else ""
    return Meaning(f"refused the API key{place}, check it")


def has_userinfo(provider: ProviderSettings) -> bool:
    """Whether the address holds a user or a password: httpx sends them where a key would be."""
    return bool(httpx.URL(provider.base_url).userinfo)


def refusal(
    provider: ProviderSettings,
    meaning: Meaning,
    *,
    words: str = "",
    status: int | None = None,
    body: str | None = None,
    retry_after_seconds: float | None = None,
) -> ModelError:
    """The provider answered, but not with what was asked for; `words` are its own."""
    sentence = f"The provider {provider.name!r} {meaning.sentence}"
    if status is not None:
        sentence += f" (HTTP {status})"
    if retry_after_seconds is not None and retry_after_seconds > LONGEST_WAIT_SECONDS:
        sentence += f", ask again in {math.ceil(retry_after_seconds)} seconds"
    quoted = " ".join(without_secrets(words, provider).split())[:MAX_QUOTE_CHARS].rstrip(". ")
    return ModelError(
        f"{sentence}: {quoted}" if quoted else sentence,
        provider=provider.name,
        status=status,
        retryable=meaning.is_retryable,
        retry_after_seconds=retry_after_seconds,
        body=None if body is None else first_bytes(without_secrets(body, provider)),
    )


def retry_after_seconds(value: str | None, now: Callable[[], datetime]) -> float | None:
    """What a `retry-after` header asks for: seconds or an HTTP date; None when it is unreadable."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            at = parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = (at.replace(tzinfo=at.tzinfo or UTC) - now()).total_seconds()
        return max(0.0, seconds)
    return seconds if 0 <= seconds < math.inf else None


def without_secrets(text: str, provider: ProviderSettings) -> str:
    """The text with every configured secret of this provider replaced, in each usual spelling."""
    return redact(text, secrets_of(provider))


def first_bytes(text: str, limit: int = MAX_BODY_BYTES) -> str:
    """The beginning of the text in at most `limit` bytes of UTF-8, cut at a character."""
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")
