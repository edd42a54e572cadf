"""Which messages of a session are not in its next request, and why."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Literal, TypeAlias

import msgspec

from tiro.session.core import Core
from tiro.session.messages import Message
from tiro.session.provider_view import SYSTEM_ROLES, Repair, View, standing_instructions
from tiro.session.sendable import Part

Reason: TypeAlias = Part | Literal["evicted", "summarized", "over_limit", "taken_back", "edited"]
"""Why a message is not in a request: what it held (a `Part`), or that it is not in the window."""


class LeftOut(msgspec.Struct, frozen=True):
    """A message that is not in a request; an edited one has the seq of its newer wording."""

    seq: int
    reason: Reason


def left_out(core: Core, view: View, window: AbstractSet[int]) -> list[LeftOut]:
    """Every message of window and archive that the view of this session leaves out, by seq.

    `window` are the seqs that were in the window before it was brought under its limits.
    """
    archived = _archived(core, view, window)
    kept = [LeftOut(seq, part) for seq, part in view.left.items()]
    blank = [LeftOut(m.seq or 0, "empty") for m in _system(core) if not standing_instructions([m])]
    return sorted([*archived, *kept, *blank], key=lambda left: left.seq)


def moved_to_system(core: Core) -> list[Repair]:
    """The system messages of the history, which are part of the system prompt (U3.9)."""
    said = [message for message in _system(core) if standing_instructions([message])]
    return [Repair(message.seq or 0, "system_prompt") for message in said]


def _archived(core: Core, view: View, window: AbstractSet[int]) -> Iterator[LeftOut]:
    rows = [*core.archive_rows, *core.newest_first]
    standing = {row.seq for row in rows if not row.marks().get("taken_back")}
    for row in core.archive_rows:
        seq, marks = row.seq or 0, row.marks()
        if marks.get("taken_back"):
            yield LeftOut(seq, "edited" if seq in standing else "taken_back")
        elif seq in view.sent or row.role in SYSTEM_ROLES:
            continue
        elif seq in window:
            yield LeftOut(seq, "over_limit")
        else:
            is_covered = bool(core.summary) and not marks.get("pending")
            yield LeftOut(seq, "summarized" if is_covered else "evicted")


def _system(core: Core) -> Iterator[Message]:
    """The system messages of the full history that count."""
    for row in (*core.archive_rows, *core.newest_first):
        if row.role in SYSTEM_ROLES and not row.marks().get("taken_back"):
            yield row
