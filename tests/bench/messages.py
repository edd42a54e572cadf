"""The conversation that both sides of a row hold."""

from typing import Any

COUNT = 1_000
WORDS = "The quick brown fox jumps over the lazy dog; “naïve” readers see café and 漢字 too. "


def message(n: int, characters: int = 1_000) -> dict[str, Any]:
    """The n-th message, about 1 kB of prose, user and assistant in turn."""
    text = f"{n}: " + WORDS * (characters // len(WORDS) + 1)
    return {"role": "assistant" if n % 2 else "user", "content": text[:characters]}


MESSAGES = [
    {**message(n), "seq": n + 1, "timestamp": "2025-01-01T12:00:00.000Z"} for n in range(COUNT)
]
