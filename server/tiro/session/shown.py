"""What a system prompt shows of a session: standing instructions, memo, summary, each bounded.

Whatever a file, a user or a model made of them, they leave a quarter of the room to the
conversation at least: what is longer than its share is shown without its middle. What is stored
stays whole.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from tiro.session.core import Core
from tiro.session.dialogue import shortened
from tiro.session.memo import BOOKKEEPING
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
"""Where fewer would be left of each standing instruction, the oldest are not shown."""

CUT = (
    "{} is too long for the context window of the model, which gets to see only its beginning and"
    " its end; shorten it or choose a model with a larger window"
)


class Shown(msgspec.Struct, frozen=True):
    """The texts, "" for what there is not."""

    instructions: str
    memo: str
    summary: str
    cut: list[str]
    """What is not shown whole, a sentence each."""


def shown(core: Core, room: int | None = None) -> Shown:
    """What is shown of a session where `room` tokens are free for all of it; None is no limit.

    Pure; O(bytes) of the texts.
    """
    said, memo, summary = _instructions(core), memo_text(core.memo), summary_text(core.summary)
    if room is None:
        return Shown("\n\n".join(text for _, text in said), memo, summary, [])
    size, share = core.meter.text, int(room * SHARE)
    short_memo, short_summary = cut_to(memo, share, size), cut_to(summary, share, size)
    left = max(share, int(room * ALL_SHARES) - size(short_memo) - size(short_summary))
    texts, missing = _cut_together(said, left, size)
    names = [f"System message {seq}" for seq in missing]
    names += ["The memo"] if short_memo != memo else []
    names += ["The summary"] if short_summary != summary else []
    return Shown("\n\n".join(texts), short_memo, short_summary, [CUT.format(n) for n in names])


def room_in(window: int, taken: int) -> int:
    """The tokens that are free beside prompt and tools, which have `taken` so many."""
    return max(window - taken, int(window * LEAST_ROOM))


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


def cut_to(text: str, tokens: int, size: Callable[[str], int]) -> str:
    """A text as it is or, where it takes more tokens, its beginning and end with a mark between."""
    kept, length = text, len(text)
    while length and (taken := size(kept)) > tokens:
        length = min(length - 1, length * max(0, tokens) // taken)
        kept = shortened(text, length)
    return kept


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
