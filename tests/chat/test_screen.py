"""What the terminal chat tells besides the talk itself."""

from typing import Any

import pytest

from tiro.chat.screen import Screen, tokens_of
from tiro.screen_text import width, wrapped


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


@pytest.mark.parametrize("cells", [1, 5, 12, 40])
def test_lines_break_between_words_and_lose_none(cells: int) -> None:
    """A wide word counts twice; one that is too wide by itself stays whole."""
    text = "· the 日本語 help lists\n  two   columns and/a/path/that/is/long\n\nend "
    shown = wrapped(text, cells, 2)
    assert shown.split() == text.split()
    for line in shown.split("\n"):
        assert width(line) <= cells or len(line.split()) == 1
    assert wrapped("one two", 5, 4) == "one\n  two", "the indent leaves room for words"
    assert wrapped(text, 200, 2) == text
