"""Reading messages into the memo, in runs that a model can take (A4.8, A4.9, U8.3).

What a new memo has read is covered. An answer that is not taken ends the reading before its run:
the old memo stays, and the next reading begins there (U4.2).
"""

import logging
from collections.abc import Iterator
from typing import Any

import msgspec

from tiro.errors import ContextOverflowError
from tiro.session.changes import Cover, Set
from tiro.session.core import Core
from tiro.session.dialogue import dialogue, shortened
from tiro.session.memo import BOOKKEEPING, Update, facts, updated
from tiro.session.messages import Message, copied, seqs_of
from tiro.session.quality import pinned_texts
from tiro.session.settings import SessionSettings
from tiro.session.tokens import message_length

log = logging.getLogger(__name__)


class Runs(msgspec.Struct, frozen=True):
    """The pieces that messages are read in; None is no limit."""

    characters: int | None = None
    tokens: int | None = None
    requests: int | None = None
    """How often a model may be asked; what is not read by then waits."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """How far the memo has come."""

    memo: Any
    covered: list[int] = []
    """The seqs of the messages that the memo holds now."""
    count: int = 0
    """How many messages were read, from the first one on."""
    refused: str | None = None
    """Why a model's answer was not taken, as a sentence."""


async def read(
    core: Core, memo: Any, messages: list[Message], settings: SessionSettings, runs: Runs
) -> Reading:
    """The memo after these messages, run by run; each is read with the memo of the one before.

    A run that is too long for the model, or makes the memo too long, is cut in two. Changes
    nothing; raises what the handler or the model raises.
    """
    covered, count, asked, pinned = list[int](), 0, 0, pinned_texts(core)
    waiting = list(_cut(core, messages, runs))
    while waiting and asked != runs.requests:
        run, asked = waiting.pop(0), asked + 1
        shown = run if runs.tokens is None else [_readable(core, m, runs.tokens) for m in run]
        try:
            update = await updated(memo, copied(shown), settings, core.handlers, pinned)
        except ContextOverflowError:
            if len(run) == 1:
                raise
            update = Update(is_too_large=True)
        if update.is_too_large and len(run) > 1:
            waiting[:0] = [run[: len(run) // 2], run[len(run) // 2 :]]
            continue
        if update.refused is not None:
            log.warning("Session %s: %s", core.id, update.refused)
            return Reading(memo=memo, covered=covered, count=count, refused=update.refused)
        if update.memo is not None:
            memo, covered = update.memo, covered + seqs_of(run)
        count += len(run)
    return Reading(memo=memo, covered=covered, count=count)


def behind(core: Core) -> list[Message]:
    """What the last resize left unread by the memo, for there was not time for all; O(history)."""
    if core.memo_goal == 0:
        return []
    return [m for m in core.full()[core.memo_cursor :] if (m.seq or 0) < core.memo_goal]


def keep_up(core: Core, before: Any, cursor: int, reading: Reading) -> bool:
    """Commit what was read of what was `behind`; False where memo or cursor are others by now."""
    with core.lock:
        known, is_dict = core.memo, isinstance(core.memo, dict)
        is_same = facts(known) == facts(before) if is_dict else known == before
        if not is_same or core.memo_cursor != cursor or core.memo_goal == 0:
            return False
        told = {BOOKKEEPING: known[BOOKKEEPING]} if is_dict and BOOKKEEPING in known else {}
        memo = known if reading.memo is before else {**reading.memo, **told}
        at = core.stamp()
        core.memo_is_slow = False
        core.commit(
            Cover(reading.covered, at),
            Set({"memo": memo, "memo_cursor": cursor + reading.count}, at),
        )
        return True


def _cut(core: Core, messages: list[Message], runs: Runs) -> Iterator[list[Message]]:
    """Messages in order, in runs of at most the limit; a longer one stands alone (A4.9)."""
    limit = runs.characters if runs.tokens is None else runs.tokens
    size = message_length if runs.tokens is None else core.meter.message
    run: list[Message] = []
    room = 0
    for message in messages:
        length = size(message)
        if run and limit and length > room:
            yield run
            run = []
        room = (room if run else limit or 0) - length
        run.append(message)
    if run:
        yield run


def _readable(core: Core, message: Message, tokens: int) -> Message:
    """A message as a memo can be asked to read it: the middle of one that is too long is cut."""
    taken = core.meter.message(message)
    if taken <= tokens:
        return message
    text = dialogue([message])
    return msgspec.structs.replace(message, content=shortened(text, len(text) * tokens // taken))
