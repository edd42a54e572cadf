"""How long a memo or a summary may be that a model writes or rewrites: shares of its window."""

from collections.abc import Callable

import msgspec

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

    @property
    def words(self) -> int:
        """How many words a model is told that it may write."""
        return max(1, int(self.tokens * WORDS_A_TOKEN))

    def told(self) -> str:
        """The sentence for the model that writes it."""
        return AT_MOST.format(self.words)

    def readable(self) -> int:
        """How long the one before may be, which is sent whole or not replaced at all."""
        return 2 * self.tokens


def cap_in(size: Callable[[str], int], *windows: int | None) -> Cap:
    """The cap for models that write and read it, with these context windows; None: not known."""
    shares = (max(1, int(window * WINDOW_SHARE)) for window in windows if window is not None)
    return Cap(min([MOST_TOKENS, *shares]), size)
