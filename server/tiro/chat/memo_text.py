"""A memo or summary as a text, and as the person has rewritten it in their editor."""

import json
from typing import Any, Literal, TypeAlias

from tiro.chat.editor import edited
from tiro.chat.talk import Talk
from tiro.errors import InvalidInputError
from tiro.session.memo import BOOKKEEPING, facts

Kept: TypeAlias = Literal["memo", "summary"]
"""Which of the two, as the wire names them."""

AGAIN = "Edit it again? [Y/n] "


def text_of(kept: Kept, value: Any) -> str:
    """A memo as JSON, without what it tells of resizes; a summary as it is."""
    if kept == "summary":
        return str(value)
    told = facts(value) if isinstance(value, dict) else value
    return json.dumps(told, indent=2, ensure_ascii=False)


async def rewritten(talk: Talk, kept: Kept, text: str, before: Any) -> Any:
    """What the person made of a text, as the value in place of `before`; None: they gave up.

    What cannot be used is told and may be edited further, so that nothing typed is lost. Raises
    InvalidInputError where there is no editor, or it fails.
    """
    while True:
        text = edited(talk.lines, text, ".json" if kept == "memo" else ".md")
        try:
            value = _value_of(kept, text)
        except InvalidInputError as error:
            talk.screen.complain(str(error))
        else:
            is_told = isinstance(before, dict) and BOOKKEEPING in before
            told = {BOOKKEEPING: before[BOOKKEEPING]} if is_told else {}
            return {**told, **value} if isinstance(value, dict) else value
        again = await talk.choose_one(AGAIN)
        if again is None or again.strip().lower() in ("n", "no"):
            return None


def _value_of(kept: Kept, text: str) -> Any:
    if not text.strip():
        raise InvalidInputError("The text is empty")
    if kept == "summary":
        return text.strip()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"The memo is not JSON: {error}") from error
    if value is None:
        raise InvalidInputError("A memo cannot be null; {} is an empty one")
    return value
