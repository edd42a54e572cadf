"""How long a memo or a summary may be that a model writes: a share of the context window."""

from collections.abc import Callable

import msgspec

from tiro.session.dialogue import shortened
from tiro.session.prompts import AT_MOST

WINDOW_SHARE = 0.15
"""What a memo and a summary may each take of the context window: 1,200 tokens of 8,000."""
MOST_TOKENS = 8_000
"""What each may take of any window: an estimate of twice what a model is asked for at most."""
WORDS_A_TOKEN = 0.6
"""For telling a model how much it may write."""


class Cap(msgspec.Struct, frozen=True):
    """What a new memo or summary may take, in tokens as `size` counts them."""

    tokens: int
    size: Callable[[str], int]

    def told(self) -> str:
        """The sentence for the model that writes it."""
        return AT_MOST.format(max(1, int(self.tokens * WORDS_A_TOKEN)))

    def readable(self, old: str) -> str:
        """The one before as a model may be sent it: without its middle where it is far too long."""
        taken, most = self.size(old), 2 * self.tokens
        return old if taken <= most else shortened(old, len(old) * most // taken)


def cap_in(window: int | None, size: Callable[[str], int]) -> Cap:
    """The cap for the context window of the model that will read it; None is one not known."""
    share = MOST_TOKENS if window is None else max(1, int(window * WINDOW_SHARE))
    return Cap(min(MOST_TOKENS, share), size)
