"""A request's body taken apart, whatever its style, and the form it has where no model is known."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec

from tiro.errors import ModelNotConfiguredError
from tiro.models.model import Delta, ModelFacts, ModelRequest


class WireParts(msgspec.Struct, frozen=True):
    """The parts of a body, each as it is sent."""

    system: Any
    """The system prompt: a text or a list of blocks; None where none is sent."""
    messages: list[Any]
    """All messages but those that are the system prompt."""
    tools: list[Any]
    parameters: dict[str, Any]
    """All other fields of the body."""


class UnknownModel:
    """Stands for a model that is not known before a provider is asked; it cannot be asked."""

    name = ""
    facts = ModelFacts()

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Raise ModelNotConfiguredError."""
        raise ModelNotConfiguredError("No model is known yet", tried=[])

    def wire_request(self, request: ModelRequest) -> dict[str, Any]:
        """The request in no provider's form, but in that of the session file."""
        return {
            "system": request.system,
            "messages": [{"role": m.role, "content": m.content} for m in request.messages],
            "tools": [msgspec.to_builtins(tool) for tool in request.tools],
        }

    async def close(self) -> None:
        """Nothing is open."""


def parts_of(body: dict[str, Any]) -> WireParts:
    """Take a body apart; put together again, it is the same."""
    rest = dict(body)
    messages, tools = rest.pop("messages", []), rest.pop("tools", [])
    system = rest.pop("system", None)
    if system is None and messages and messages[0].get("role") == "system":
        system, messages = messages[0]["content"], messages[1:]
    return WireParts(system, messages, tools, rest)


def thinking_of(messages: list[Any]) -> Iterator[Any]:
    """What sent messages, or those of a request, hold of a model's thinking, piece by piece."""
    for message in messages:
        if reasoning := message.get("reasoning_content"):
            yield reasoning
            yield from reasoning.split("\n\n")  # where several pieces were joined
        content = message["content"]
        for block in content if isinstance(content, list) else ():
            if block.get("type") in ("thinking", "redacted_thinking"):
                yield block.get("thinking", block.get("data"))
