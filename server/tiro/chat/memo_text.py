"""A memo or summary as a text, and as the person has rewritten it in their editor."""

import json
from typing import Any, Literal, TypeAlias

from tiro.chat.editor import edited
from tiro.chat.talk import Talk
from tiro.errors import InvalidInputError

Kept: TypeAlias = Literal["memo", "summary"]
"""Which of the two, as the wire names them."""

AGAIN = "Edit it again? [Y/n] "


def text_of(kept: Kept, value: Any) -> str:
    """A memo as JSON, a summary as it is."""
    return json.dumps(value, indent=2, ensure_ascii=False) if kept == "memo" else str(value)


async def rewritten(talk: Talk, kept: Kept, text: str) -> Any:
    """What the person made of a text, as the value to be stored; None where they gave up.

    What cannot be used is told and may be edited further, so that nothing typed is lost. Raises
    InvalidInputError where there is no editor, or it fails.
    """
    while True:
        text = edited(talk.lines, text, ".json" if kept == "memo" else ".md")
        try:
            return _value_of(kept, text)
        except InvalidInputError as error:
            talk.screen.complain(str(error))
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
