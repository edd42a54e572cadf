"""The two wire styles of the local provider side by side, for tests that hold for both."""

from collections.abc import Iterable
from typing import Any

import pytest

from tests.e2e import anthropic_replies, replies
from tests.e2e.provider import MODEL
from tests.e2e.replies import Reply, Step


class OpenAIStyle:
    """Chat completions."""

    model = f"fake/{MODEL}"
    text = staticmethod(replies.text)
    error = staticmethod(replies.error)

    def tools(self, *uses: tuple[str, str, Any], finish: str = "tool_calls") -> Reply:
        """An answer with tool uses."""
        entries = [replies.call(id_, n, given, i) for i, (id_, n, given) in enumerate(uses)]
        return replies.stream(replies.calls_chunk(*entries), finish=finish)

    def begun(self, *pieces: str) -> list[Step]:
        """The start of an answer, with text in these pieces."""
        return [replies.ROLE, *map(replies.text_chunk, pieces)]

    def begun_use(self, id_: str, name: str, raw: str) -> list[Step]:
        """The start of an answer, in the middle of a tool use."""
        return [replies.ROLE, replies.calls_chunk(replies.call(id_, name, raw))]

    def thought(self, text: str) -> list[Step]:
        """The start of an answer, with reasoning only."""
        return [replies.ROLE, replies.chunk({"reasoning_content": text})]

    def ended(self, finish: str = "stop") -> list[Step]:
        """The regular end of an answer."""
        return replies.ending(finish)

    def fault(self, message: str) -> bytes:
        """An error in the middle of a stream."""
        return replies.event({"error": {"message": message, "code": 529}})


class AnthropicStyle:
    """Messages."""

    model = f"claude/{MODEL}"
    text = staticmethod(anthropic_replies.text)

    def error(
        self, status: int, message: str = "no", headers: Iterable[tuple[str, str]] = ()
    ) -> Reply:
        """A refusal."""
        return anthropic_replies.error(status, message, headers)

    def tools(self, *uses: tuple[str, str, Any], finish: str = "tool_use") -> Reply:
        """An answer with tool uses."""
        return anthropic_replies.tools(*uses, finish=finish)

    def begun(self, *pieces: str) -> list[Step]:
        """The start of an answer, with text in these pieces."""
        return [anthropic_replies.start(), *anthropic_replies.text_block(0, *pieces)[:-1]]

    def begun_use(self, id_: str, name: str, raw: str) -> list[Step]:
        """The start of an answer, in the middle of a tool use."""
        return [anthropic_replies.start(), *anthropic_replies.use_block(0, id_, name, raw)[:-1]]

    def thought(self, text: str) -> list[Step]:
        """The start of an answer, with reasoning only."""
        block = anthropic_replies.thinking_block(0, text, signature=None)
        return [anthropic_replies.start(), *block]

    def ended(self, finish: str = "stop") -> list[Step]:
        """The regular end of an answer."""
        return anthropic_replies.ending(finish)

    def fault(self, message: str) -> bytes:
        """An error in the middle of a stream."""
        return anthropic_replies.fault(message)


Style = OpenAIStyle | AnthropicStyle
STYLES: list[Style] = [OpenAIStyle(), AnthropicStyle()]

both_styles = pytest.mark.parametrize("style", STYLES, ids=["openai", "anthropic"])
