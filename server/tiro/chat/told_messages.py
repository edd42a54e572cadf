"""Messages of a session as a chat tells of them, with their numbers."""

from collections.abc import Sequence
from typing import Any

from tiro.chat.talk import Talk
from tiro.screen_text import one_line
from tiro.session.messages import Message
from tiro.session.transcript import plain_text, summarize

MESSAGE_CELLS = 60
MAX_LISTED = 40


def numbered(message: dict[str, Any]) -> list[str]:
    """The lines of `show` for one message, with its number, which /pin and /rewind take."""
    text = summarize([Message.from_dict(message)]) or ""
    return [f"#{message['seq']} {line}" for line in text.split("\n")[2:]]


def say_messages(talk: Talk, listed: Sequence[dict[str, Any]]) -> None:
    """The number of each, who said it, and its first words; of a long list the first."""
    for message in listed[:MAX_LISTED]:
        said = plain_text([Message.from_dict(message)]).partition("] ")[2]
        words = one_line(said, MESSAGE_CELLS)
        talk.screen.say(f"#{message['seq']} {message['role']}: {words}")
    if (left := len(listed) - MAX_LISTED) > 0:
        talk.screen.tell(f"{left} more")
