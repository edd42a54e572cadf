"""Models behind Anthropic's messages: Anthropic itself, and other servers that speak the format."""

import re
from typing import Any

import httpx
import msgspec

from tiro.models.address import of_a_request
from tiro.models.anthropic_answer import AnswerReader
from tiro.models.anthropic_request import OPTIONAL_PARTS, output_limit, to_wire_request
from tiro.models.http_model import HttpModel
from tiro.models.model import ModelRequest, ProviderSettings
from tiro.models.transport import Transport, is_loopback

VERSION = "2023-06-01"
"""The version of the API that all of this is written for."""

_LOWER_LIMIT = re.compile(r"max_tokens: \d+ > (\d+)")


class AnthropicModel(HttpModel):
    """One model of one provider."""

    path = "/messages"
    optional = OPTIONAL_PARTS

    def __init__(
        self,
        provider: ProviderSettings,
        name: str,
        *,
        http: httpx.AsyncBaseTransport | None = None,
        **given: Any,
    ) -> None:
        super().__init__(anthropic_transport(provider, http), name, **given)
        self._lower_limit: int | None = None
        """What the provider said that the model can write at most."""

    def wire_request(self, request: ModelRequest) -> dict[str, Any]:
        """The body that would be sent; see `Model.wire_request`."""
        limit = output_limit(request, self.facts)
        limit = min(limit, self._lower_limit or limit)
        return to_wire_request(request, self.name, limit, refused=self.refused)

    def _reader(self) -> AnswerReader:
        return AnswerReader(self.provider, self.facts.price_per_million, new_id=self._new_id)

    def _lacks_facts(self) -> bool:
        """A model that is not known yet can write more than is asked for by default."""
        is_hosted = not is_loopback(self.provider)
        return super()._lacks_facts() or (is_hosted and self.facts.max_output_tokens is None)

    def _learn(self, error: Exception, wire: dict[str, Any]) -> str | None:
        told = _LOWER_LIMIT.search(str(error))
        if told is None:
            return super()._learn(error, wire)
        if not 0 < int(told[1]) < wire["max_tokens"]:
            return None
        self._lower_limit = int(told[1])
        return "max_tokens"


def anthropic_transport(
    provider: ProviderSettings, http: httpx.AsyncBaseTransport | None = None
) -> Transport:
    """The way to a provider of this format."""
    key = (provider.api_key or "").strip()
    authorization = {"anthropic-version": VERSION} | ({"x-api-key": key} if key else {})
    return Transport(with_version_path(provider), authorization=authorization, http=http)


def with_version_path(provider: ProviderSettings) -> ProviderSettings:
    """The provider with a base_url that ends in /v1; people write it with and without."""
    address, separator, query = provider.base_url.partition("?")
    if address.rstrip("/").endswith("/v1") or of_a_request(address):
        return provider
    url = f"{address.rstrip('/')}/v1{separator}{query}"
    return msgspec.structs.replace(provider, base_url=url)
