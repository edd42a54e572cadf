"""Quality: which answers of a model may become a memo or a summary.

What is empty, says nothing, is refused, cut off, only tool uses or thinking, longer than what it
replaces or than its cap, or lacks pinned words that the old one held, is not taken: the old one
stays, and the error says why. None replaces an old one that its model could not be sent whole.
Pinned messages never leave the window; what is guarded are their words in what was written before.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tiro.errors import ResizeError
from tiro.session.cap import Cap
from tiro.session.core import Core
from tiro.session.messages import text_of
from tiro.session.prompts import KEEP_WORDS

FREE_GROWTH_CHARACTERS = 2_000
"""Up to this length a memo or summary may be longer than what it replaces."""
LEAST_QUOTE_CHARACTERS = 12
"""Shorter texts stand in other texts by chance."""
LEAST_LETTERS = 8
"""A summary of more than FREE_GROWTH_CHARACTERS that has fewer letters and digits says nothing."""
LETTERS_IN_WIDE = 2.5
"""What a character of Chinese, Japanese or Korean counts among them."""
MOST_REFUSAL_CHARACTERS = 200
"""A longer text that begins as a refusal is one that goes on."""


def answer_in(reply: Any, what: str) -> Any:
    """What a model said, a text or a value; ResizeError naming why it cannot become `what`.

    `reply` is that, or an object with `text`, `stop_reason` and `tool_uses`.
    """
    answer = getattr(reply, "text", reply)
    is_blank = answer is None or (isinstance(answer, str) and not answer.strip())
    stop = getattr(reply, "stop_reason", None)
    if stop == "refusal" or (isinstance(answer, str) and _refuses(answer)):
        raise refused(what, "the model refused to write it", "refusal")
    if stop in ("max_tokens", "length"):
        raise refused(what, "it was cut off", "cut_off")
    if is_blank and getattr(reply, "tool_uses", None):
        raise refused(what, "the model used tools instead of writing", "tool_uses")
    if is_blank:
        raise refused(what, "it is empty", "empty")
    return answer


def check_old(old: str, what: str, cap: Cap | None) -> None:
    """ResizeError where a model cannot be sent the one before whole: then it must stay."""
    if cap is None or (taken := cap.size(old)) <= (most := cap.readable()):
        return
    raise ResizeError(
        f"The {what} takes {taken:,} tokens and this model can be given {most:,} of it, so it stays"
        " as it is; shorten it or choose a model with a larger context window",
        reason="unreadable",
    )


def check_says(text: str, replaced: int, what: str) -> None:
    """ResizeError where a text says nothing, or too little for the length of what it replaces."""
    letters = sum(_letters(character) for character in text)
    is_little = replaced > FREE_GROWTH_CHARACTERS and letters < LEAST_LETTERS
    if is_little or not letters or text.strip() == "null":
        raise refused(what, "it says nothing", "empty")


def check_new(
    new: Any,
    old: Any,
    replaced: int,
    pinned: Iterable[str],
    what: str,
    cap: Cap | None = None,
) -> None:
    """ResizeError where `new` is longer than its cap or what it replaces, or lost pinned words."""
    if cap is not None and (taken := cap.size(_as_sent(new))) > cap.tokens:
        why = f"it takes {taken:,} tokens, and it may take {cap.tokens:,} in this model's window"
        raise refused(what, why, "too_large")
    length = len(new if isinstance(new, str) else json.dumps(new, ensure_ascii=False, default=str))
    if length > replaced > FREE_GROWTH_CHARACTERS:
        raise refused(what, "it is longer than what it replaces", "too_long")
    kept = quoted(pinned, old)
    lost = [text for text in kept if text not in quoted(kept, new)]
    if lost:
        raise refused(what, f"it lost the pinned words {lost[0][:80]!r}", "pinned_lost")


def pinned_texts(core: Core) -> Sequence[str]:
    """The texts of the messages that are pinned now."""
    return [text_of(message) for message in core.newest_first if message.seq in core.pins]


def quoted(texts: Iterable[str], where: Any) -> list[str]:
    """The texts that stand word for word in a memo or a summary; very short ones are left out.

    Spaces and line breaks count as one space, also in what is returned.
    """
    words = _words(where)
    found = [text for text in map(_words, texts) if text in words]
    return [text for text in found if len(text) >= LEAST_QUOTE_CHARACTERS]


def keep_words(pinned: Iterable[str], old: Any) -> list[str]:
    """What to tell a model that writes the next one: lines with the pinned words to be kept."""
    kept = quoted(pinned, old)
    return [KEEP_WORDS, *(f"- {text}" for text in kept)] if kept else []


def refused(what: str, why: str, reason: str) -> ResizeError:
    """The error for an answer that is not taken."""
    return ResizeError(f"The {what} cannot be used: {why}; the old one stays", reason=reason)


def _letters(character: str) -> float:
    if not character.isalnum():
        return 0
    return LETTERS_IN_WIDE if unicodedata.east_asian_width(character) in "WF" else 1


def _refuses(answer: str) -> bool:
    text = answer.strip()
    return len(text) < MOST_REFUSAL_CHARACTERS and _REFUSAL.match(text) is not None


def _as_sent(new: Any) -> str:
    """A memo or summary as it stands in a system prompt."""
    if isinstance(new, str):
        return new
    return json.dumps(new, ensure_ascii=False, indent=2, default=str)


def _words(value: Any) -> str:
    return " ".join(" ".join(_texts(value)).split())


def _texts(value: Any) -> Iterator[str]:
    """All texts in a value as JSON knows it, names of fields among them."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
    elif value is not None:
        yield str(value)


_REFUSAL = re.compile(
    r"(?:(?:I['’]m |I am )?sorry,? (?:but )?I (?:can['’]t|cannot|can not)"
    r"|I (?:can['’]t|cannot|can not) (?:help with|assist))\b",
    re.IGNORECASE,
)
"""How models refuse in words."""
