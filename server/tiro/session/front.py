"""What is put in front of a window that begins with an answer, in part where it is for form only.

Providers demand a user message at the beginning (U3.2). Where another prompt came since, nobody
waits for an answer to that one: it tells what the answer behind it is about, and a short part of it
does. What is stored stays whole.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, takewhile

from tiro.session.core import Core
from tiro.session.cut import opens_turn
from tiro.session.dialogue import cut_to
from tiro.session.messages import Message, seq_of, text_of
from tiro.session.meter import MESSAGE_TOKENS, Meter
from tiro.session.provider_view import PLACEHOLDER, put_in_front, with_front

MOST_TOKENS = 300
"""What it may take of a request."""


def front_of(core: Core, kept: Iterable[Message], others: Iterable[Message]) -> Message | None:
    """Which of the others, newest first, is sent in front of those that stay, as it is sent.

    Reads back to that one, not the whole history.
    """
    front = put_in_front(kept, others)
    if front is None or not _asked_since(core, seq_of(front)):
        return front
    return in_part(front, MOST_TOKENS, core.meter)


def held_with_front(core: Core, seqs: set[int]) -> list[Message]:
    """The messages of the window with these seqs, and what is put in front of them."""
    window = core.oldest_first()
    held = [message for message in window if message.seq in seqs]
    front = front_of(core, held, newest_first(core))
    return with_front(held, [] if front is None else [front])


def newest_first(core: Core) -> Iterator[Message]:
    """All messages: the window from its newest one on, then the archive; nothing is copied."""
    return chain(core.newest_first, reversed(core.archive_rows))


def in_part(front: Message, tokens: int, meter: Meter) -> Message:
    """A user message in at most so many tokens; of a longer one only text is left."""
    if meter.message(front) <= tokens:
        return front
    text = cut_to(text_of(front), tokens - MESSAGE_TOKENS, meter.text)
    return Message("user", text if text.strip() else PLACEHOLDER, seq=front.seq)


def _asked_since(core: Core, seq: int) -> bool:
    """Whether a later prompt than this one stands in window or archive."""
    return any(
        opens_turn(m) and not m.marks().get("taken_back")
        for rows in (core.newest_first, reversed(core.archive_rows))
        for m in takewhile(lambda m: seq_of(m) > seq, rows)
    )
