"""What the next request would be, exactly, without sending it: made on a copy of the session.

Nothing is stored, no id is made, no provider is asked, and no model is started.
"""

import contextlib
from collections.abc import Sequence

import msgspec

from tiro.agents.turn_input import Turn, request_of, rows_of
from tiro.assistant.setup import Setup
from tiro.errors import ContextOverflowError
from tiro.models.wire_parts import WireParts, parts_of, thinking_of
from tiro.session.core import Core
from tiro.session.handlers import Handlers
from tiro.session.json_text import decode, encode
from tiro.session.left_out import LeftOut, left_out, moved_to_system
from tiro.session.messages import Content, Message
from tiro.session.meter import ContextSize
from tiro.session.provider_view import Repair, View, viewed
from tiro.session.queued import add_queued
from tiro.session.results import Rows
from tiro.stores.manager import SessionManager


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """The next request, its size, and how it differs from the session."""

    model: str | None
    """`provider/name`; None where it is not known before a provider is asked."""
    parts: WireParts
    tokens: ContextSize
    left: Sequence[LeftOut]
    repairs: Sequence[Repair]


async def explain(
    turn: Turn, draft: Content | None, setup: Setup, manager: SessionManager
) -> Explained:
    """Explain the next request of a turn whose session is a copy (`Core.fork`).

    The draft is added to it, and the limits do to it what they would do before the request, but for
    what a model would have to be asked for.
    """
    session = turn.session
    before = {m.seq or 0 for m in session.newest_first}
    session.handlers = Handlers(memo_update=_unchanged)
    add_queued(session)
    if draft is not None:
        session.append(Message("user", draft))
    with contextlib.suppress(ContextOverflowError):  # what is too large to send is explained too
        await turn.before_step(None, _nobody)
    request = request_of(turn)
    parts = parts_of(turn.model.wire_request(request))
    seen = _seen(session, rows_of(turn), parts)
    return Explained(
        model=turn.model.name or None,
        parts=decode(manager.redact(encode(parts)), WireParts),
        tokens=setup.measure(session, turn.model.facts, agent=turn.agent),
        left=left_out(session, seen, before),
        repairs=sorted([*seen.repairs, *moved_to_system(session)]),
    )


def _nobody(_: str) -> None:
    """Nothing is waited for here."""


async def _unchanged(*_: object) -> None:
    """In the place of whoever would bring the memo up to date: it stays as it is."""


def _seen(session: Core, rows: Rows, parts: WireParts) -> View:
    """The view that the request was made of, less the thinking that was not sent.

    Only the model that wrote it is sent it back, and not in every provider's form.
    """
    seen = viewed(*rows, thinking=True)
    there = {encode(thought) for thought in thinking_of(parts.messages)}
    left, repairs = dict(seen.left), list(seen.repairs)
    whole = session.oldest_first()
    cut = [row.seq or 0 for row, sent in zip(whole, rows.window, strict=True) if sent is not row]
    repairs += [Repair(seq, "result_in_part") for seq in cut]
    for message in seen.messages:
        thoughts = list(thinking_of([message]))
        if all(encode(thought) in there for thought in thoughts):
            continue
        if len(thoughts) == len(message.content):
            left[message.seq or 0] = "thinking"
        else:
            repairs.append(Repair(message.seq or 0, "thinking"))
    return View(seen.messages, repairs, left, seen.sent - left.keys())
