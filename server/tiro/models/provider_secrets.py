"""Which values of a provider's settings are secret: they belong into no file, log or error."""

from collections.abc import Iterator
from urllib.parse import parse_qsl

from tiro.models.model import ProviderSettings
from tiro.session.secrets import SHORTEST_SECRET

_HARMLESS_HEADERS = (
    *("accept", "content-type", "http-referer", "referer", "user-agent", "x-title"),
    *("anthropic-beta", "anthropic-version", "openai-beta", "openai-organization"),
)
_SECRET_PARAMETERS = ("key", "token", "secret", "pass", "pwd", "sig", "auth", "code", "credential")


def secrets_of(provider: ProviderSettings) -> list[str]:
    """The key, values of headers, passwords and keys in addresses, as they are configured."""
    found = {provider.api_key or "", *_header_values(provider.headers)}
    for url in (provider.base_url, provider.proxy or ""):
        found.update(_url_values(url))
    return sorted(secret for secret in found if len(secret) >= SHORTEST_SECRET)


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
