"""Models behind OpenAI's chat completions: OpenAI, OpenRouter, Ollama, llama.cpp, vLLM, others."""

from collections.abc import Mapping
from typing import Any

import httpx

from tiro.models import refusals
from tiro.models.http_model import HttpModel
from tiro.models.model import ModelRequest, ProviderSettings
from tiro.models.openai_answer import AnswerReader
from tiro.models.openai_request import OPTIONAL_PARTS, to_wire_request
from tiro.models.transport import Transport


class OpenAIModel(HttpModel):
    """One model of one provider."""

    path = "/chat/completions"
    optional = OPTIONAL_PARTS

    def __init__(
        self,
        provider: ProviderSettings,
        name: str,
        *,
        extra: Mapping[str, Any] | None = None,
        http: httpx.AsyncBaseTransport | None = None,
        **given: Any,
    ) -> None:
        super().__init__(openai_transport(provider, http), name, **given)
        self._extra = dict(extra or {})
        self._demands_reasoning = False
        """Some servers refuse a step of a turn without what the model thought in those before."""

    def wire_request(self, request: ModelRequest) -> dict[str, Any]:
        """The body that would be sent; see `Model.wire_request`."""
        wire = to_wire_request(
            request,
            refused=self.refused,
            prefer=self._limit_name(),
            own=self.name if self._demands_reasoning else "",
        )
        return {**wire, **self._extra}

    def _learn(self, error: Exception, wire: dict[str, Any]) -> str | None:
        if not self._demands_reasoning and refusals.demands_reasoning(error):
            self._demands_reasoning = True
            return "reasoning_content"
        return super()._learn(error, wire)

    def _reader(self) -> AnswerReader:
        return AnswerReader(self.provider, self.facts.price_per_million, new_id=self._new_id)

    def _limit_name(self) -> str:
        """OpenAI itself wants the new name of the output limit, all others know the old one."""
        is_openai = "api.openai.com" in self.provider.base_url
        return "max_completion_tokens" if is_openai else "max_tokens"


def openai_transport(
    provider: ProviderSettings, http: httpx.AsyncBaseTransport | None = None
) -> Transport:
    """The way to a provider of this format."""
    key = (provider.api_key or "").strip()
    authorization = {"authorization": f"Bearer {key}"} if key else {}
    return Transport(provider, authorization=authorization, http=http)
