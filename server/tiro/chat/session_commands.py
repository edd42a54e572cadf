"""Slash commands about the session: see it, keep it, find others, take things back."""

import os
from typing import Any

from tiro.chat.talk import Talk, messages
from tiro.chat.told_messages import numbered
from tiro.errors import InvalidInputError
from tiro.screen_text import flat
from tiro.session.transcript import SHOWN_MESSAGES
from tiro.stores.formats.registry import SHORT_NAMES, WRITTEN

MAX_LISTED = 20
PIECE_CHARS = 1_000_000
"""So much of an output is asked for at once."""


async def show(talk: Talk, rest: str) -> None:
    """The newest messages, or those around one, a line each, with their numbers."""
    if rest:
        await _show_around(talk, rest.removeprefix("#"))
        return
    view = await talk.link.request("tiro/session/get")
    lines = [line for message in view["messages"][-SHOWN_MESSAGES:] for line in numbered(message)]
    if lines or not view["archived"]:
        talk.screen.say("\n".join(lines) or "The session is empty")
    else:
        talk.screen.tell("All that was said has left the window; /memo shows what is kept of it")


async def output(talk: Talk, rest: str) -> None:
    """All of a message, piece by piece; without its number that of the last command's output."""
    number = rest.removeprefix("#")
    if rest and not number.isdecimal():
        raise InvalidInputError("/output takes the number of a message, as /show tells it")
    seq = int(number) if rest else talk.screen.output_seq
    if seq is None:
        raise InvalidInputError("No command has run in this chat; /output N shows message N")
    shown, piece = 0, dict[str, Any](text="", totalChars=1)
    while shown < piece["totalChars"]:
        params = {"seq": seq, "offset": shown, "limit": PIECE_CHARS}
        piece = await talk.link.request("tiro/session/content", params)
        shown += len(piece["text"]) or PIECE_CHARS
        talk.screen.say(piece["text"], end="" if shown < piece["totalChars"] else "\n")
        talk.screen.check()


async def _show_around(talk: Talk, number: str) -> None:
    """A message that may have left the window, and what was said around it."""
    if not number.isdecimal():
        raise InvalidInputError("/show takes the number of a message, as /search tells it")
    seq = int(number)
    page = {"limit": SHOWN_MESSAGES, "beforeSeq": seq + SHOWN_MESSAGES // 2}
    view = await talk.link.request("tiro/session/get", page)
    found = view["messages"]
    if seq not in (message["seq"] for message in found):
        raise InvalidInputError(f"There is no message #{seq} in this session, or it is taken back")
    talk.screen.say("\n".join(line for message in found for line in numbered(message)))


async def clear(talk: Talk, rest: str) -> None:
    """A new session, on an empty screen."""
    told = await talk.clear()
    talk.screen.clear()
    talk.screen.tell(told)


async def new(talk: Talk, rest: str) -> None:
    """A new session."""
    talk.screen.tell(await talk.clear())


async def save(talk: Talk, rest: str) -> None:
    """Write the session now, or a copy of it; one in which nothing was said is not."""
    view = await talk.link.request("tiro/session/get", {"limit": 1})
    if not view["total"] and not view["archived"]:
        raise InvalidInputError("Nothing was said yet, so there is nothing to save")
    params = {"path": _absolute(rest)} if rest else {}
    result = await talk.link.request("tiro/session/save", params)
    talk.screen.say(f"Saved in {result['path']}")


async def load(talk: Talk, rest: str) -> None:
    """Go on with a saved session."""
    if not rest or rest == "latest":
        await talk.load({"latest": True})
    elif _is_path(rest):
        await talk.load({"path": _absolute(rest), "limit": 0})
    else:
        await talk.load({"id": rest})


async def sessions(talk: Talk, rest: str) -> None:
    """The saved sessions, newest first."""
    params = {"query": rest or None, "limit": MAX_LISTED}
    result = await talk.link.request("tiro/session/list", params)
    for row in result["sessions"]:
        about = row["error"] or row["title"] or ""
        said = row["messages"] + row["archived"]
        talk.screen.say(f"{flat(row['id']):<26} {said:>5}  {flat(about)}")
    left = result["total"] - len(result["sessions"])
    if left or not result["total"]:
        talk.screen.tell(f"{left} more" if left else "No session is saved")


async def search(talk: Talk, rest: str) -> None:
    """Where something was said, in all sessions."""
    if not rest:
        raise InvalidInputError("/search needs a word to search for")
    params = {"query": rest, "limit": MAX_LISTED}
    hits = (await talk.link.request("tiro/session/search", params))["hits"]
    for hit in hits:
        talk.screen.say(f"{hit['id'] or 'here'} #{hit['seq']} {hit['role']}: {hit['snippet']}")
    if not hits:
        talk.screen.tell(f"Nothing was said about {rest!r}")


async def export(talk: Talk, rest: str) -> None:
    """The session in another format."""
    format, _, path = rest.partition(" ")
    if format not in (*WRITTEN, *SHORT_NAMES):
        raise InvalidInputError(f"/export needs a format: {', '.join(WRITTEN)}")
    params = {"format": format, "path": _absolute(path.strip()) if path.strip() else None}
    result = await talk.link.request("tiro/session/export", params)
    talk.screen.say(f"Exported to {result['path']}" if path else result["text"].rstrip("\n"))
    for note in result.get("notes", ()):
        talk.screen.tell(note)


async def rename(talk: Talk, rest: str) -> None:
    """Give the session a title."""
    if not rest:
        raise InvalidInputError("/rename needs a title")
    view = await talk.link.request("tiro/session/configure", {"title": rest})
    talk.screen.tell(f"The session's title is now: {flat(view['title'])}")


async def import_(talk: Talk, rest: str) -> None:
    """Take a file over as a session of its own, and go on with it."""
    if not rest:
        raise InvalidInputError("/import needs a file")
    view = await talk.link.request("tiro/session/import", {"path": _absolute(rest)})
    for note in view.get("notes", ()):
        talk.screen.tell(note)
    await talk.went_on(view)


async def rewind(talk: Talk, rest: str) -> None:
    """Take a message and all after it back."""
    view = await talk.link.request("tiro/session/get")
    seqs = [message["seq"] for message in view["messages"]]
    asked = [message["seq"] for message in view["messages"] if message["role"] == "user"]
    if rest and not (rest.isdecimal() and int(rest) in seqs):
        raise InvalidInputError(
            f"Message {rest!r} is not in the window; /show lists those that are"
        )
    if not rest and not asked:
        raise InvalidInputError("No question of yours is in the window")
    first = int(rest) if rest else asked[-1]
    left = await talk.take_back(view["messages"], first)
    gone = messages(view["total"] - left["total"])
    talk.screen.tell(f"{gone} taken back; no model sees them again")


def _is_path(word: str) -> bool:
    return os.sep in word or os.path.isfile(word)


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))
