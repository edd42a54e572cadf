"""What a system prompt shows of a session: standing instructions, memo, summary, each bounded.

Whatever a file, a user or a model made of them, they leave a quarter of the room to the
conversation at least: what is longer than its share is shown without its middle. Where what was
said last takes more, they give way to it, memo and summary first. What is stored stays whole.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from tiro.session.core import Core
from tiro.session.cut import group_of, is_steered, opens_turn, unread_group
from tiro.session.dialogue import cut_to
from tiro.session.front import held_with_front
from tiro.session.memo import BOOKKEEPING
from tiro.session.messages import seq_of
from tiro.session.provider_view import SYSTEM_ROLES, standing_instructions

MEMO_HEADING = "## Session Memo"
SUMMARY_HEADING = "## Conversation Summary"
SUMMARY_SENTENCE = (
    "This sums up earlier conversation that is no longer part of the message history."
)

SHARE = 0.25
"""What memo and summary may each take of the room."""
ALL_SHARES = 0.5
"""What they leave of this is for the standing instructions, which have one share at least."""
LEAST_ROOM = 0.25
"""The room is at least this share of the window, however much prompt and tools take."""
LEAST_TOKENS = 60
"""Where fewer would be left of each standing instruction, the oldest are not shown; the
newest keeps so many in any case."""
LEAST_ANSWER = 0.1
"""What of the window they leave to the answer."""

CUT = (
    "{} too long for the context window of the model, which gets to see only the beginning and the"
    " end; shorten it or choose a model with a larger window"
)
GIVES_WAY = (
    "{} no room beside what was said last and what is pinned: the model gets to see only some"
    " of it, or nothing; send less at once or choose a model with a larger context window"
)


class Shown(msgspec.Struct, frozen=True):
    """The texts, "" for what there is not."""

    instructions: str
    memo: str
    summary: str
    cut: list[str]
    """What is not shown whole, a sentence each."""


def shown(core: Core, room: int | None = None, free: int | None = None) -> Shown:
    """What is shown of a session where a request has `room` for all of it and the conversation.

    `free` is what of it nothing else needs that must be sent; None is no limit, for both.
    Pure; O(bytes) of the texts.
    """
    memory = {"The memo": memo_text(core.memo), "The summary": summary_text(core.summary)}
    said, size, missing = _instructions(core), core.meter.text, list[int]()
    texts, kept = [text for _, text in said], memory
    if room is not None:
        share = int(room * SHARE)
        kept = {name: cut_to(text, share, size) for name, text in memory.items()}
        left = max(share, int(room * ALL_SHARES) - _sum(kept.values(), size))
        texts, missing = _cut_together(said, left, size)
    whole = texts
    if free is not None and _sum(texts, size) > max(free, LEAST_TOKENS):
        texts, _ = _cut_together(said, max(free, LEAST_TOKENS), size)
    fitting = kept
    if free is not None and _sum(kept.values(), size) > (left := free - _sum(texts, size)):
        fitting = _giving_way(memory, left, size)
    cut = [CUT.format(_named(missing))] if missing else []
    cut += [GIVES_WAY.format("System messages have")] if texts != whole else []
    for name in (name for name in memory if fitting[name] != memory[name]):
        is_cut = fitting[name] == kept[name]
        cut.append(CUT.format(f"{name} is") if is_cut else GIVES_WAY.format(f"{name} has"))
    return Shown("\n\n".join(texts), fitting["The memo"], fitting["The summary"], cut)


def room_in(window: int, taken: int) -> int:
    """The tokens that are free beside prompt and tools, which have `taken` so many."""
    return max(window - taken, int(window * LEAST_ROOM))


def free_in(core: Core, window: int | None, taken: int, draft: str = "") -> int | None:
    """The tokens of a request that neither prompt and tools need, nor what no resize takes out.

    That is the pins and what was said last: the draft, or the newest prompt and group. None is no
    limit; fewer than 0 are missing.
    """
    most = [] if window is None else [int(window * (1 - LEAST_ANSWER))]
    most += [] if core.most_tokens is None else [core.most_tokens]
    if not most:
        return None
    last = core.meter.text(draft) if draft else 0
    sent = held_with_front(core, staying(core, draft))
    return min(most) - taken - last - sum(map(core.meter.message, sent))


def staying(core: Core, draft: str = "") -> set[int]:
    """The seqs of what no resize takes out: the pins and, without a draft, what was said last."""
    return core.held() | (set() if draft else _said_last(core))


def memo_text(memo: Any) -> str:
    """The memo as its part of the system prompt; empty when there is nothing to show."""
    shown = memo
    if isinstance(memo, Mapping):
        shown = {key: value for key, value in memo.items() if key != BOOKKEEPING}
    if not shown:
        return ""
    return f"{MEMO_HEADING}\n\n{_as_json(shown)}"


def summary_text(summary: str | None) -> str:
    """The summary as its part of the system prompt; empty when there is none."""
    return f"{SUMMARY_HEADING}\n\n{SUMMARY_SENTENCE}\n\n{summary}" if summary else ""


def _named(seqs: list[int]) -> str:
    """System messages that are not shown whole."""
    if len(seqs) == 1:
        return f"System message {seqs[0]} is"
    return f"{len(seqs)} system messages, the first of them message {seqs[0]}, are"


def _giving_way(texts: dict[str, str], tokens: int, size: Callable[[str], int]) -> dict[str, str]:
    """Memo and summary in so many tokens, the shorter one first; "" where too few would be left."""
    kept, left = dict.fromkeys(texts, ""), tokens
    for done, name in enumerate(sorted(texts, key=lambda name: size(texts[name]))):
        most = left // (len(texts) - done)
        if most >= min(LEAST_TOKENS, size(texts[name])):
            kept[name] = cut_to(texts[name], most, size)
            left -= size(kept[name])
    return kept


def _sum(texts: Iterable[str], size: Callable[[str], int]) -> int:
    return sum(map(size, texts))


def _said_last(core: Core) -> set[int]:
    """The seqs of the newest prompt, of what its turn was told since, and of the newest group."""
    rows = core.oldest_first()
    last = unread_group(rows) | (group_of(rows, len(rows) - 1) if rows else set())
    for index in range(len(rows) - 1, -1, -1):
        if opens_turn(rows[index]):
            last.add(index)
            if not is_steered(rows[index]):
                break
    return {seq_of(rows[index]) for index in last}


def _instructions(core: Core) -> list[tuple[int, str]]:
    """The system messages of the full history, in order, with their seqs (U3.9)."""
    if not core.has_instructions:
        return []
    return list(_said(core))


def _said(core: Core) -> Iterator[tuple[int, str]]:
    for message in (*core.archive_rows, *reversed(core.newest_first)):
        if message.role in SYSTEM_ROLES and (texts := standing_instructions([message])):
            yield message.seq or 0, "\n\n".join(texts)


def _cut_together(
    said: list[tuple[int, str]], tokens: int, size: Callable[[str], int]
) -> tuple[list[str], list[int]]:
    """The texts in at most so many tokens, short ones before long ones; the seqs that were cut."""
    sizes = [size(text) for _, text in said]
    if sum(sizes) <= tokens:
        return [text for _, text in said], []
    first = max(0, len(said) - max(1, tokens // LEAST_TOKENS))
    kept, left = dict[int, str](), tokens
    order = sorted(range(first, len(said)), key=lambda index: sizes[index])
    for done, index in enumerate(order):
        kept[index] = cut_to(said[index][1], left // (len(order) - done), size)
        left -= min(sizes[index], size(kept[index]))
    missing = [seq for index, (seq, text) in enumerate(said) if kept.get(index) != text]
    return [kept[index] for index in sorted(kept)], missing


def _as_json(memo: Any) -> str:
    """The memo as JSON, the same for equal memos; keys that cannot be sorted keep their order."""
    try:
        return json.dumps(memo, ensure_ascii=False, indent=2, default=str, sort_keys=True)
    except TypeError:
        return json.dumps(memo, ensure_ascii=False, indent=2, default=str, skipkeys=True)
