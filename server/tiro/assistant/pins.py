"""What pinned messages may take of a request, and what is said where they take too much (U2.8)."""

import msgspec

from tiro.errors import InvalidInputError
from tiro.session.messages import Content, Message, seqs_of
from tiro.session.policy import Budget
from tiro.session.session import Session

IN_THE_WAY = 0.25
"""From which share of the context window on they are named where a request is too long."""


def check_pins(session: Session, budget: Budget | None) -> None:
    """InvalidInputError where the pinned messages take more than half of the budget."""
    _check(sum(map(session.meter.message, _pinned(session))), budget)


def check_edit(session: Session, seq: int, content: Content, budget: Budget | None) -> None:
    """The same for a message that gets another content, where a pin holds it and it grows."""
    before = next((m for m in _pinned(session) if m.seq == seq), None)
    if before is None:
        return
    after = msgspec.structs.replace(before, content=content, seq=None)
    grown = session.meter.message(after) - session.meter.message(before)
    if grown > 0:
        _check(sum(map(session.meter.message, _pinned(session))) + grown, budget)


def in_the_way(session: Session, window: int | None) -> str | None:
    """What to do about the pins where a request is too long; None where they are not why."""
    pinned = _pinned(session)
    tokens = sum(map(session.meter.message, pinned))
    if window is None or tokens <= window * IN_THE_WAY:
        return None
    seqs = ", ".join(map(str, sorted(seqs_of(pinned))))
    return f"pinned messages take {tokens:,} tokens, let some of them go (messages {seqs})"


def _pinned(session: Session) -> list[Message]:
    held = session.held()
    return [message for message in session.newest_first if message.seq in held]


def _check(tokens: int, budget: Budget | None) -> None:
    if budget is not None and tokens > budget.tokens // 2:
        raise InvalidInputError(
            f"The pinned messages would take {tokens} tokens, more than half of the"
            f" {budget.tokens} that a request may have; let others go first"
        )
