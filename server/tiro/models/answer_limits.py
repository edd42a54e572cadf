"""What keeps an answer that never ends from filling the memory, or from holding a turn for ever.

No provider reaches these limits with an answer that is one: the longest that models write is a
million characters. Silence is no matter of this file but of the connection's timeouts; here it is
about providers that go on sending.
"""

import time
from collections.abc import Callable

from tiro.models import failures
from tiro.models.model import (
    BlockDone,
    Delta,
    ProviderSettings,
    TextDelta,
    ThinkingDelta,
    ToolUseDelta,
)

MAX_CHARACTERS = 8_000_000
"""Of text, thinking and tool inputs together."""
PIECE_CHARACTERS = 16
"""What a piece counts beside its text: a million of empty ones take memory too."""
MAX_TOOL_USES = 1_000
MAX_EVENT_BYTES = 128 * 1024 * 1024
"""Of all events: what a format holds back or passes over counts here."""
EMPTY_SECONDS = 1800.0
"""How long a connection may be kept alive with nothing of the answer on it."""

ENDLESS = "sent an answer that does not end, ask again or choose another model"
TOO_MANY = "sent an answer with too many tool uses, ask again or choose another model"
EMPTY = "kept the connection alive for too long without an answer, ask again"


class AnswerLimits:
    """The limits of one answer; each method raises ModelError when they are passed."""

    def __init__(
        self, provider: ProviderSettings, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._provider = provider
        self._now = now
        self._characters = 0
        self._event_bytes = 0
        self._last_piece = now()

    def came(self) -> None:
        """Something came over the network."""
        if self._now() - self._last_piece > EMPTY_SECONDS:
            self._end(EMPTY)

    def read(self, events: list[bytes]) -> None:
        """These events were in it."""
        self._event_bytes += sum(map(len, events))
        if self._event_bytes > MAX_EVENT_BYTES:
            self._end(ENDLESS)

    def said(self, delta: Delta) -> None:
        """The reader made this of them."""
        self._last_piece = self._now()
        self._characters += PIECE_CHARACTERS
        match delta:
            case TextDelta(text) | ThinkingDelta(text):
                self._characters += len(text)
            case ToolUseDelta(index=index, input_json=text):
                self._characters += len(text)
                if index >= MAX_TOOL_USES:
                    self._end(TOO_MANY)
            case BlockDone(block):
                self._characters += sum(len(v) for v in block.values() if isinstance(v, str))
        if self._characters > MAX_CHARACTERS:
            self._end(ENDLESS)

    def _end(self, sentence: str) -> None:
        raise failures.refusal(self._provider, failures.Meaning(sentence))
