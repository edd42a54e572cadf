"""What the terminal chat tells besides the talk itself."""

from typing import Any

import pytest

from tiro.chat.screen import Screen, tokens_of


@pytest.mark.parametrize(
    ("usage", "ratio", "told"),
    [
        ({}, None, ""),
        ({}, 0.5, "50% of the window"),
        ({"inputTokens": 5, "cacheReadTokens": 1000, "outputTokens": 2, "costUsd": 0.5}, None,
         "1,005 tokens in (1,000 cached), 2 out, $0.5000"),
    ],
)  # fmt: skip
def test_what_a_turn_took(usage: dict[str, Any], ratio: float | None, told: str) -> None:
    """A turn that was stopped before its provider reported anything took nothing that is known."""
    nothing = {"inputTokens": 0, "outputTokens": 0, "cacheReadTokens": 0, "costUsd": None}
    result = {"usage": {**nothing, **usage}, "contextSize": {"ratio": ratio}}
    assert tokens_of(result) == told


@pytest.mark.parametrize(
    ("evicted", "refused", "told"),
    [
        (3, None, "· 3 older messages left the window: 1,900 → 400 tokens\n"),
        (0, "The memo cannot be used: it is empty", "· The memo cannot be used: it is empty\n"),
    ],
)
def test_what_a_resize_tells(
    capsys: pytest.CaptureFixture[str], evicted: int, refused: str | None, told: str
) -> None:
    """Why the memo was not brought up to date is said, and nothing about no messages."""
    sizes = {"tokensBefore": 1900, "tokensAfter": 400}
    event = {"type": "resize", "evicted": evicted, "memoRefused": refused, **sizes}
    Screen().hear("tiro/turn/event", {"sessionId": "s", **event})
    assert capsys.readouterr().err == told
