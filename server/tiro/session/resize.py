"""Bringing the window under its limits: plan, commit, undo (A4); `policy.py` says when.

A plan is made from copies, with models and handlers asked outside the session's lock, and committed
in one step: what fails or comes too late leaves everything as it was (A4.6, U4.4). Nothing is
deleted: evicted messages go to the archive. Messages added meanwhile follow the result (U4.5).
"""

import copy
from collections.abc import Callable
from itertools import chain, takewhile
from typing import Any

import msgspec

from tiro.errors import ResizeError
from tiro.session import history
from tiro.session import memo as memos
from tiro.session.changes import Change, Cover, Evict, Readmit, Set
from tiro.session.core import Core
from tiro.session.cut import legal_cut, opens_turn, unread_group
from tiro.session.front import front_of, held_with_front
from tiro.session.handlers import ResizeHandler, awaited
from tiro.session.memo_reading import Reading, Runs, read
from tiro.session.messages import Message, as_message, copied, seqs_of
from tiro.session.policy import TOKEN_BUDGET, Budget, ResizeDecision, judge
from tiro.session.replacement import replacement
from tiro.session.settings import SessionSettings
from tiro.session.snapshot import FIELDS
from tiro.session.tokens import message_length, text_length


class ResizeOutcome(msgspec.Struct, frozen=True):
    """What a resize did; no decision means that nothing was to be done."""

    decision: ResizeDecision | None
    evicted: int
    memo_refused: str | None = None
    """Why the memo was not brought up to date, as a sentence."""


class Seen(msgspec.Struct, frozen=True):
    """A session as a plan was made from it."""

    full: list[Message]
    window: list[Message]
    memo: Any
    cursor: int
    next_seq: int
    clears: int


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a resize would do; nothing has been changed yet."""

    decision: ResizeDecision
    seen: Seen
    memo: Any
    evict: list[int] = []
    """The seqs that leave the window, oldest first."""
    covered: list[int] = []
    """The seqs that an updated memo has read."""
    replacement: tuple[list[Message], list[Message]] | None = None
    """The full history and the window that a handler of the caller's returned."""
    summary: str | None = None
    """A summary of the user's, in place of the session's."""
    cursor: int
    """How far in the full history the memo has read."""
    is_behind: bool = False
    """Whether the memo has not read all that it was to, since it may not be asked more often."""
    memo_refused: str | None = None
    """Why a model's memo was not taken, as a sentence."""

    def gone(self) -> list[int]:
        """The seqs that leave the window, oldest first."""
        if self.replacement is None:
            return self.evict
        kept = {message.seq for message in self.replacement[1]}
        return seqs_of(m for m in self.seen.window if m.seq not in kept)


async def resize(
    core: Core,
    settings: SessionSettings,
    force: bool | str | None = False,
    budget: Budget | None = None,
) -> ResizeOutcome:
    """Resize the window if the policy says so, or because it is forced (A4).

    Raises KeyError for a type that no handler has (A4.2), and what a handler or the memo's model
    raises; nothing has changed then. Without a memo it costs about one pass over the history.
    """
    plan = await planned(core, settings, force, budget)
    return ResizeOutcome(None, 0) if plan is None else commit(core, plan)


async def add(core: Core, settings: SessionSettings, messages: history.Messages) -> None:
    """Append one message or many, then resize if the policy says so (A9.5)."""
    history.add_all(core, messages)
    await resize(core, settings)


async def planned(
    core: Core,
    settings: SessionSettings,
    force: bool | str | None = False,
    budget: Budget | None = None,
    requests: int | None = None,
) -> Plan | None:
    """What `resize` would do now, None for nothing; changes nothing and raises as `resize` does.

    `requests` is how often the memo may be asked for at most.
    """
    decision = await judge(core, settings, force, budget)
    if decision is None:
        return None
    if decision.type not in core.handlers.resize:
        raise KeyError(f"No resize handler has the type {decision.type!r}")
    handler = core.handlers.resize[decision.type]
    with core.lock:
        seen = Seen(
            core.full(),
            core.oldest_first(),
            copy.deepcopy(core.memo),
            core.memo_cursor,
            core.next_seq,
            core.clears,
        )
        evict = to_evict(core, settings, budget)
    if handler is not None:
        return await _planned_by(handler, decision, seen, settings)
    if decision.reason == TOKEN_BUDGET and not evict:
        return None  # it would only be tried again and again (B20)
    plan = Plan(decision=decision, seen=seen, memo=seen.memo, cursor=len(seen.full), evict=evict)
    if settings.memo_is_enabled():
        plan = await _with_memo(core, plan, settings, budget, requests)
    if isinstance(plan.memo, dict):
        own = {"type": decision.type, "turn": core.turns, "reason": f"{decision.type}_resize"}
        plan = msgspec.structs.replace(plan, memo={**plan.memo, memos.BOOKKEEPING: own})
    return plan


def commit(core: Core, plan: Plan) -> ResizeOutcome:
    """Make a plan true in one step; one of a session that was cleared meanwhile does nothing."""
    with core.lock:
        if core.clears != plan.seen.clears:
            return ResizeOutcome(None, 0)
        if core.memo != plan.seen.memo:
            plan = _without_memo(core, plan)
        before = {message.seq for message in core.newest_first}
        core.commit(*_changes(core, plan))
        core.prune()  # a handler may have made the window longer than max_history
        if core.next_seq == plan.seen.next_seq:
            core.quiet_length = text_length(core.newest_first)
        if plan.covered and plan.cursor == len(plan.seen.full):
            core.memo_seq = plan.seen.next_seq
        core.memo_goal = plan.seen.next_seq if plan.is_behind else 0
        gone = before - {message.seq for message in core.newest_first}
        return ResizeOutcome(plan.decision, len(gone), plan.memo_refused)


def undo(core: Core) -> None:
    """Bring back window, memo and summary of before the last resize; what was added since stays.

    Messages that were taken back since stay so, and max_history holds. Raises ResizeError where
    there is nothing to undo.
    """
    with core.lock:
        if core.undo is None:
            raise ResizeError("There is no resize to undo", reason="nothing_to_undo")
        at, before = core.stamp(), core.undo
        fields = {name: before[name] for name in _UNDONE_FIELDS if _is_usable(name, before)}
        cursor = min(fields.get("memo_cursor", core.memo_cursor), len(core.full()))
        core.commit(
            Readmit(_stored_seqs(before.get("seqs")), _stored_seqs(before.get("pending")), at),
            Set({**fields, "memo_cursor": cursor, "undo": None}, at),
        )
        core.memo_seq = core.memo_goal = 0
        core.prune()


def undoable(core: Core) -> dict[str, Any]:
    """What `undo` will need to come back to now: the field `undo` of the session file."""
    return {
        "seqs": [message.seq for message in core.oldest_first()],
        "pending": [message.seq for message in core.pending()],
        **{name: getattr(core, name) for name in _UNDONE_FIELDS},
    }


def to_evict(core: Core, settings: SessionSettings, budget: Budget | None = None) -> list[int]:
    """The seqs that the limits put out of the window: count, characters, tokens (A4.10, A4.11).

    The newest message stays, whatever its size, and so do results that no model has read.
    """
    pinned, window = core.held(), core.oldest_first()
    answered = _answered(core, budget) | {window[index].seq or 0 for index in unread_group(window)}
    held = pinned | answered
    free = [m for m in window if m.seq not in held]
    said = [m for m in window if m.seq in answered - pinned]  # what is held but pinned counts
    count, chars = settings.limit("messages"), settings.limit("chars")
    start = max(0, len(free) - max(0, count - len(said))) if count else 0
    if chars:
        start = max(start, _within(free, chars - text_length(said), message_length))
    if budget is not None:
        fixed = sum(map(core.meter.message, held_with_front(core, held)))
        start = max(start, _within(free, budget.kept(fixed), core.meter.message))
    kept = [] if free[-1:] == window[-1:] else window[-1:]  # then all that is free may go
    cut = legal_cut([*free, *kept], start)
    if budget is not None and (later := _before_a_prompt(core, free, cut, budget.kept(fixed))):
        cut = legal_cut([*free, *kept], later)
    return seqs_of(free[:cut])


def _answered(core: Core, budget: Budget | None) -> set[int]:
    """The seqs of what a running turn's user has said: no resize may take it away (B22)."""
    if budget is None or budget.hold_from is None:
        return set()
    recent = takewhile(lambda m: (m.seq or 0) >= (budget.hold_from or 0), core.newest_first)
    return {m.seq or 0 for m in recent if opens_turn(m)}


def _before_a_prompt(core: Core, free: list[Message], cut: int, tokens: int) -> int:
    """The next cut before a prompt, where the one that the view puts in front takes too much.

    0 where this cut will do, or there is none.
    """
    gone = set(seqs_of(free[:cut]))
    left = [m for m in core.oldest_first() if m.seq not in gone]
    front = front_of(core, left, chain(reversed(free[:cut]), reversed(core.archive_rows)))
    if front is None or sum(map(core.meter.message, [front, *free[cut:]])) <= tokens:
        return 0
    before = set(seqs_of(takewhile(lambda m: not opens_turn(m), left)))
    return cut + sum(m.seq in before for m in free[cut:]) if len(before) < len(left) else 0


def _within(messages: list[Message], limit: int, size: Callable[[Message], int]) -> int:
    """Where the longest suffix of at most this size begins."""
    total = 0
    for index in range(len(messages) - 1, -1, -1):
        total += size(messages[index])
        if total > limit:
            return index + 1
    return 0


async def _planned_by(
    handler: ResizeHandler, decision: ResizeDecision, seen: Seen, settings: SessionSettings
) -> Plan:
    """What a handler of the caller's makes of copies; None from it leaves all as it is."""
    given = (copied(seen.full), copied(seen.window), copy.deepcopy(seen.memo))
    answer = await awaited(handler, *given, settings)
    full, window, memo = (seen.full, seen.window, seen.memo) if answer is None else answer
    kept = {message.seq for message in window} if _only_evicts(seen, full, window) else None
    cursor = min(seen.cursor, len(full))
    plan = Plan(decision=decision, seen=seen, memo=memo, cursor=cursor)
    if kept is None:
        replacement = (list(map(as_message, full)), list(map(as_message, window)))
        return msgspec.structs.replace(plan, replacement=replacement)
    gone = seqs_of(m for m in seen.window if m.seq not in kept)
    return msgspec.structs.replace(plan, evict=gone)


def _only_evicts(seen: Seen, full: list[Any], window: list[Any]) -> bool:
    """Whether a handler's result is the session as it was, without some of the window."""
    if full != seen.full or not all(isinstance(item, Message) for item in window):
        return False
    kept = {message.seq for message in window}
    return window == [message for message in seen.window if message.seq in kept]


async def _with_memo(
    core: Core,
    plan: Plan,
    settings: SessionSettings,
    budget: Budget | None,
    requests: int | None,
) -> Plan:
    """The plan with a memo that has read what this resize reads.

    Lite reads what came since the memo's cursor (A4.7), deep reads everything in runs (A4.8). With
    a token budget both read in runs and only what is new, since histories have no end there.
    """
    seen, is_lite = plan.seen, plan.decision.type == "lite"
    is_known = bool(core.memo_seq or memos.facts(seen.memo))
    start = seen.cursor if is_lite or (budget and is_known) else 0
    unread = [] if core.memo_seq == seen.next_seq else seen.full[start:]  # A4.13
    if not unread:
        return plan
    chars = None if is_lite else settings.limit("chars")
    runs = Runs(chars, budget.chunk() if budget else None, requests)
    found = await read(core, seen.memo, unread, settings, runs)
    return msgspec.structs.replace(
        plan,
        memo=found.memo,
        covered=found.covered,
        cursor=_cursor(seen, start, found, is_known),
        is_behind=found.count < len(unread) and found.refused is None,
        memo_refused=found.refused,
    )


def _cursor(seen: Seen, start: int, found: Reading, is_known: bool) -> int:
    """Where the next reading begins: behind what a memo has read, and nowhere else (U4.2)."""
    if found.count == 0:
        return seen.cursor
    return max(start + found.count, seen.cursor if is_known else 0)


def _without_memo(core: Core, plan: Plan) -> Plan:
    """The plan without its own memo: one that somebody set while it was made wins."""
    cursor = core.memo_cursor if plan.covered else plan.cursor
    return msgspec.structs.replace(plan, memo=core.memo, covered=[], cursor=cursor, is_behind=False)


def _changes(core: Core, plan: Plan) -> list[Change]:
    """A plan as changes."""
    at = core.stamp()
    fields = {
        "memo": _told(plan.memo, plan.decision, core.turns),
        "memo_cursor": plan.cursor,
        "last_resize_turn": core.turns,
        **({} if plan.summary is None else {"summary": plan.summary}),
    }
    changes: list[Change] = []
    if plan.replacement is not None:
        changes.append(replacement(core, plan.seen.next_seq, *plan.replacement, at))
    elif evict := sorted(set(plan.evict) - core.held()):
        changes.append(Evict(evict, at))
    if plan.covered:
        changes.append(Cover(plan.covered, at))
    if changes or "summary" in fields or _said(plan.memo) != _said(core.memo):
        fields["undo"] = undoable(core)  # else the resize before it stays the one to undo
    return [*changes, Set(fields, at)]


def _said(memo: Any) -> Any:
    """The memo without the bookkeeping of resizes."""
    if not isinstance(memo, dict):
        return memo
    return {key: value for key, value in memo.items() if key != memos.BOOKKEEPING}


def _told(memo: Any, decision: ResizeDecision, turn: int) -> Any:
    """The memo with the decision's reason in its bookkeeping (A4.4)."""
    if not isinstance(memo, dict) or decision.reason is None:
        return memo
    known = memo.get(memos.BOOKKEEPING)
    last = {"type": decision.type, "turn": turn, **(known if isinstance(known, dict) else {})}
    return {**memo, memos.BOOKKEEPING: {**last, "reason": decision.reason}}


def _is_usable(name: str, before: dict[str, Any]) -> bool:
    """Whether a file's `undo` has this field in the form that the session needs."""
    try:
        value = msgspec.convert(before[name], FIELDS[name][0])
    except (KeyError, msgspec.ValidationError):
        return False
    return not isinstance(value, int) or value >= 0


def _stored_seqs(stored: Any) -> list[int]:
    """A list of seqs out of a file, whatever is in it."""
    return [seq for seq in stored if type(seq) is int] if isinstance(stored, list) else []


_UNDONE_FIELDS = ("memo", "summary", "memo_cursor", "last_resize_turn")
"""What `undo` brings back besides the window."""
