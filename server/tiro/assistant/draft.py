"""A resize or compaction that was shown and not applied yet, and what of it is shown."""

from typing import Any

import msgspec

from tiro.assistant.results import Preview
from tiro.errors import ResizeError
from tiro.session import resize
from tiro.session.changes import Add, Change, Evict, Set
from tiro.session.messages import seqs_of
from tiro.session.policy import ResizeDecision
from tiro.session.resize import Plan, ResizeOutcome
from tiro.session.session import Session
from tiro.session.summary import Fold, store_fold

COMPACTION = ResizeDecision("compact", "requested")

OF_A_TURN = {"id", "title", "usage", "agent", "model", "metadata"}
"""What a turn sets besides its messages; no window, memo or summary is made of it."""


class Watch:
    """Sees whether anything but added messages has changed a session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.is_stale = False
        self.close = session.observe(self._see)

    def _see(self, _: int, changes: tuple[Change, ...]) -> None:
        self.is_stale = self.is_stale or not all(map(_is_of_an_add, changes))


class Draft(msgspec.Struct, frozen=True):
    """What was planned, and the session's memo and summary when it was shown."""

    id: str
    plan: Plan | Fold
    watch: Watch
    memo: Any
    summary: str

    def is_stale(self) -> bool:
        """Whether anything but added messages has changed, here or by another process."""
        session, plan = self.watch.session, self.plan
        clears = plan.seen.clears if isinstance(plan, Plan) else plan.clears
        known = (clears, self.memo, self.summary)
        return self.watch.is_stale or (session.clears, session.memo, session.summary) != known

    def commit(self, memo: Any, summary: str | None) -> ResizeOutcome:
        """Make it true, with this memo and summary in place of its own where they are given."""
        return self._committed(self.watch.session, memo, summary)

    def tried(self) -> Session:
        """A copy of the session in which it is true."""
        copy = self.watch.session.fork()
        self._committed(copy)
        return copy

    def _committed(
        self, session: Session, memo: Any = None, summary: str | None = None
    ) -> ResizeOutcome:
        plan = self.plan
        if isinstance(plan, Fold):
            return _compacted(session, plan, memo, plan.text if summary is None else summary)
        if memo is not None:
            plan = msgspec.structs.replace(plan, memo=memo, memo_refused=None)
        if summary is not None:
            plan = msgspec.structs.replace(plan, summary=summary)
        return resize.commit(session, plan)


def preview_of(draft: Draft, before: int, after: int) -> Preview:
    """What a draft would do to a request of `before` tokens, which would have `after` so many."""
    session, plan = draft.watch.session, draft.plan
    if isinstance(plan, Fold):
        decision, memo, summary = COMPACTION, session.memo, plan.text
        gone, refused = set(seqs_of(plan.evict)), None
    else:
        decision, memo, summary = plan.decision, plan.memo, session.summary
        gone, refused = set(plan.gone()), plan.memo_refused
    window = seqs_of(session.oldest_first())
    return Preview(
        decision=decision,
        evict=[seq for seq in window if seq in gone],
        keep=[seq for seq in window if seq not in gone],
        memo=memo,
        summary=summary,
        tokens_before=before,
        tokens_after=after,
        draft_id=draft.id,
        memo_refused=refused,
    )


def preview_of_nothing(session: Session, before: int) -> Preview:
    """What is shown where nothing would be done."""
    return Preview(
        decision=None,
        evict=[],
        keep=seqs_of(session.oldest_first()),
        memo=session.memo,
        summary=session.summary,
        tokens_before=before,
        tokens_after=before,
        draft_id=None,
    )


def stale() -> ResizeError:
    """The error for a draft that is not there any more, or holds no more."""
    return ResizeError(
        "This preview is out of date, the session has changed since; preview it again",
        reason="stale",
    )


def _compacted(session: Session, fold: Fold, memo: Any, text: str) -> ResizeOutcome:
    before = set(seqs_of(session.newest_first))
    store_fold(session, msgspec.structs.replace(fold, text=text))
    if memo is not None:
        session.change(memo=memo)
    return ResizeOutcome(COMPACTION, len(before.difference(seqs_of(session.newest_first))))


def _is_of_an_add(change: Change) -> bool:
    """Whether a change belongs to added messages: what they push out, name, cost and settle."""
    return isinstance(change, Add | Evict) or (
        isinstance(change, Set) and change.fields.keys() <= OF_A_TURN
    )
