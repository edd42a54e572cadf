"""Which values of a provider's settings are secret: they belong into no file, log or error."""

from collections.abc import Iterator
from urllib.parse import parse_qsl, quote, unquote

from tiro.models.model import ProviderSettings

SHORTEST_SECRET = 6
"""Shorter values are no secrets, and removing them would make texts unreadable."""

_HARMLESS_HEADERS = (
    *("accept", "content-type", "http-referer", "referer", "user-agent", "x-title"),
    *("anthropic-beta", "anthropic-version", "openai-beta", "openai-organization"),
)
_SECRET_PARAMETERS = ("key", "token", "secret", "pass", "pwd", "sig", "auth", "code", "credential")


def secrets_of(provider: ProviderSettings) -> list[str]:
    """The key, values of headers, passwords and keys in addresses, the longest first.

    Each in the spellings in which it may come back.
    """
    found = {provider.api_key or "", *_header_values(provider.headers)}
    for url in (provider.base_url, provider.proxy or ""):
        found.update(_url_values(url))
    spellings = {
        spell(value)
        for secret in found
        for value in (secret, secret.strip())
        for spell in (str, quote, unquote)
    }
    return sorted((s for s in spellings if len(s) >= SHORTEST_SECRET), key=len, reverse=True)


def _header_values(headers: dict[str, str]) -> Iterator[str]:
    """The values, also what follows a scheme such as `Bearer`."""
    for name, value in headers.items():
        if name.lower() not in _HARMLESS_HEADERS:
            yield value
            yield value.rpartition(" ")[2]


def _url_values(url: str) -> Iterator[str]:
    """Password, else user, and what a query says under a name such as `key` or `token`."""
    address, _, query = url.partition("?")
    userinfo = address.rpartition("@")[0].rpartition("://")[2]
    user, separator, password = userinfo.partition(":")
    yield password if separator else user
    for name, value in parse_qsl(query.partition("#")[0]):
        if any(part in name.lower() for part in _SECRET_PARAMETERS):
            yield value
