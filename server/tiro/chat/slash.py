"""The slash commands of a chat: a line of the table each, and what the Tab key completes."""

import asyncio
import difflib
import glob
import json
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from tiro.chat.talk import Talk, messages
from tiro.errors import InvalidInputError
from tiro.screen_text import flat, one_line
from tiro.session.messages import Message, text_of
from tiro.stores.formats.registry import FORMATS, SHORT_NAMES
from tiro.terminal import line_of_edit, told_paths

MAX_LISTED = 20
PIN_CELLS = 60
NO_PIN = "No message is pinned"
PARTS = {
    "system": "system prompt",
    "tools": "tools on offer",
    "memo": "memo",
    "summary": "summary",
    "user": "your messages",
    "assistant": "answers",
    "toolUse": "uses of tools",
    "toolResult": "results of tools",
    "attachments": "attached files",
}
"""What takes the room in a request, in plain words."""
COMPLETE_SECONDS = 2.0
"""A list that takes longer is not waited for at the Tab key."""


class EndError(Exception):
    """The person wants to leave."""


Act = Callable[[Talk, str], Awaitable[None]]
Choices = Callable[[Talk], Awaitable[Sequence[str]]]


class Command(NamedTuple):
    """What it does with the words behind it, and which words those may be."""

    act: Act
    takes: str
    about: str
    choices: Choices | None = None


async def run(talk: Talk, line: str) -> None:
    """Run the command that a line names; InvalidInputError, with the nearest one, if none is."""
    name, _, rest = line.partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        near = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}? " if near else ""
        raise InvalidInputError(f"There is no command {name}; {hint}/help lists them all")
    await command.act(talk, rest.strip())


async def words_for(talk: Talk, line: str) -> list[str]:
    """What the last word of a line may become; nothing where a question is being typed."""
    name, space, rest = line.partition(" ")
    if not line.startswith("/"):
        return []
    if not space:
        return [f"{command} " for command in COMMANDS if command.startswith(name)]
    last = rest.rpartition(" ")[2]
    command = COMMANDS.get(name)
    if command is None or command.choices is None:
        return _paths(last) if command and "PATH" in command.takes else []
    if " " in rest.strip() and "PATH" in command.takes:
        return _paths(last)
    try:
        choices = await asyncio.wait_for(command.choices(talk), COMPLETE_SECONDS)
    except TimeoutError:
        return []
    return [word for word in choices if word.startswith(last)]


def _paths(start: str) -> list[str]:
    found = glob.glob(glob.escape(os.path.expanduser(start)) + "*")
    return sorted(f"{path}/" if os.path.isdir(path) else path for path in found)


# --- the commands --------------------------------------------------------------------------


async def _help(talk: Talk, rest: str) -> None:
    rows = [f"  {f'{name} {c.takes}'.strip():<24} {c.about}" for name, c in COMMANDS.items()]
    talk.screen.say("\n".join([*rows, *HELP_END]))


async def _show(talk: Talk, rest: str) -> None:
    text = (await talk.link.request("tiro/session/show"))["text"]
    talk.screen.say(text or "The session is empty")


async def _clear(talk: Talk, rest: str) -> None:
    told = await talk.clear()
    talk.screen.clear()
    talk.screen.tell(told)


async def _new(talk: Talk, rest: str) -> None:
    talk.screen.tell(await talk.clear())


async def _save(talk: Talk, rest: str) -> None:
    params = {"path": _absolute(rest)} if rest else {}
    result = await talk.link.request("tiro/session/save", params)
    talk.screen.say(f"Saved in {result['path']}")


async def _load(talk: Talk, rest: str) -> None:
    if not rest or rest == "latest":
        await talk.load({"latest": True})
    elif _is_path(rest):
        await talk.load({"path": _absolute(rest)})
    else:
        await talk.load({"id": rest})


async def _sessions(talk: Talk, rest: str) -> None:
    params = {"query": rest or None, "limit": MAX_LISTED}
    result = await talk.link.request("tiro/session/list", params)
    for row in result["sessions"]:
        about = row["error"] or row["title"] or ""
        talk.screen.say(f"{flat(row['id']):<26} {row['messages']:>5}  {flat(about)}")
    left = result["total"] - len(result["sessions"])
    if left or not result["total"]:
        talk.screen.tell(f"{left} more" if left else "No session is saved")


async def _agent(talk: Talk, rest: str) -> None:
    if rest:
        agent = (await talk.link.request("tiro/session/setAgent", {"name": rest}))["agent"]
        talk.screen.tell(f"{agent['name']} answers from now on")
        return
    current = (await talk.link.request("tiro/session/getAgent"))["agent"]
    listed = await talk.link.request("tiro/agents/list", {})
    answers = current["name"] if current else listed["default"]
    for agent in listed["agents"]:
        mark = "*" if agent["name"] == answers else " "
        talk.screen.say(f"{mark} {agent['name']:<12} {agent['description']}")


async def _model(talk: Talk, rest: str) -> None:
    if rest:
        model = (await talk.link.request("tiro/models/set", {"name": rest}))["model"]
        talk.screen.tell(f"{model} answers from now on")
        return
    listed = await talk.link.request("tiro/models/list")
    for row in listed["models"]:
        mark = "*" if row["name"] == listed["current"] else " "
        talk.screen.say(f"{mark} {row['name']:<40} {row['reason'] or ''}".rstrip())


async def _compact(talk: Talk, rest: str) -> None:
    done = await talk.link.request("tiro/session/compact")
    if not done["evicted"]:
        talk.screen.tell("Nothing is there to fold into the summary")
        return
    sizes = f"{done['tokensBefore']:,} → {done['tokensAfter']:,} tokens"
    talk.screen.tell(f"{messages(done['evicted'])} folded into the summary: {sizes}")


async def _undo(talk: Talk, rest: str) -> None:
    view = await talk.link.request("tiro/session/undoResize")
    talk.screen.tell(f"{messages(view['total'])} in the window again")


async def _memo(talk: Talk, rest: str) -> None:
    kept = await talk.link.request("tiro/memo/get")
    if kept["memo"]:
        talk.screen.say(json.dumps(kept["memo"], indent=2, ensure_ascii=False))
    if kept["summary"]:
        talk.screen.say(kept["summary"])
    if not kept["memo"] and not kept["summary"]:
        talk.screen.tell("Nothing is remembered yet of messages that have left the window")


async def _pin(talk: Talk, rest: str) -> None:
    if rest:
        if not (number := rest.removeprefix("-")).isdecimal():
            raise InvalidInputError("/pin needs the number of a message, as /search shows it")
        params = {"seq": int(number), "pinned": rest == number}
        await talk.link.request("tiro/session/pin", params)
    view = await talk.link.request("tiro/session/get")
    talk.screen.tell(f"Pinned: {', '.join(map(str, view['pins']))}" if view["pins"] else NO_PIN)
    for message in view["messages"]:
        if message["seq"] in view["pins"]:
            words = one_line(text_of(Message.from_dict(message)), PIN_CELLS)
            talk.screen.say(f"#{message['seq']} {message['role']}: {words}")


async def _size(talk: Talk, rest: str) -> None:
    size = await talk.link.request("tiro/session/contextSize", {"draft": rest or None})
    of = f" of {size['contextWindow']:,} ({size['ratio']:.1%})" if size["contextWindow"] else ""
    error = f", give or take {size['errorPercent']:.0f} %" if size["errorPercent"] else ""
    talk.screen.say(f"The next request has about {size['tokens']:,} tokens{of}{error}:")
    for name, tokens in size["breakdown"].items():
        if tokens:
            talk.screen.say(f"  {PARTS[name]:<18} {tokens:>9,}")


async def _file(talk: Talk, rest: str) -> None:
    if rest == "-":
        talk.files = []
    elif rest:
        talk.take_file(rest)
    listed = ", ".join(map(os.path.basename, talk.files)) or "no file"
    talk.screen.tell(f"With your next question: {listed}")


async def _search(talk: Talk, rest: str) -> None:
    if not rest:
        raise InvalidInputError("/search needs a word to search for")
    params = {"query": rest, "limit": MAX_LISTED}
    hits = (await talk.link.request("tiro/session/search", params))["hits"]
    for hit in hits:
        talk.screen.say(f"{hit['id'] or 'here'} #{hit['seq']} {hit['role']}: {hit['snippet']}")
    if not hits:
        talk.screen.tell(f"Nothing was said about {rest!r}")


async def _export(talk: Talk, rest: str) -> None:
    format, _, path = rest.partition(" ")
    if format not in (*(names := await _formats(talk)), *SHORT_NAMES):
        raise InvalidInputError(f"/export needs a format: {', '.join(names)}")
    params = {"format": format, "path": _absolute(path.strip()) if path.strip() else None}
    result = await talk.link.request("tiro/session/export", params)
    talk.screen.say(f"Exported to {result['path']}" if path else result["text"])


async def _edits(talk: Talk, rest: str) -> None:
    edits = (await talk.link.request("tiro/edits/list", {"limit": MAX_LISTED}))["edits"]
    for edit in edits:
        talk.screen.say(line_of_edit(edit))
    if not edits:
        talk.screen.tell("No tool has changed a file yet")


async def _undo_edits(talk: Talk, rest: str) -> None:
    done = await talk.link.request("tiro/edits/undo", {"turnId": rest or None})
    talk.screen.tell(f"Taken back in {told_paths(done['paths'])}")


async def _redo_edits(talk: Talk, rest: str) -> None:
    done = await talk.link.request("tiro/edits/redo", {"turnId": rest or None})
    talk.screen.tell(f"Made again in {told_paths(done['paths'])}")


async def _retry(talk: Talk, rest: str) -> None:
    await talk.ask_again()


async def _quit(talk: Talk, rest: str) -> None:
    raise EndError


def _is_path(word: str) -> bool:
    return os.sep in word or os.path.isfile(word)


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))


# --- what may be typed ---------------------------------------------------------------------


async def _ids(talk: Talk) -> list[str]:
    rows = (await talk.link.request("tiro/session/list", {"limit": 1000}))["sessions"]
    return [row["id"] for row in rows]


async def _agents(talk: Talk) -> list[str]:
    rows = (await talk.link.request("tiro/agents/list", {}))["agents"]
    return [row["name"] for row in rows]


async def _models(talk: Talk) -> list[str]:
    rows: list[dict[str, Any]] = (await talk.link.request("tiro/models/list"))["models"]
    return [row["name"] for row in rows if row["available"]]


async def _formats(talk: Talk) -> Sequence[str]:
    return [format.name for format in FORMATS]


COMMANDS: dict[str, Command] = {
    "/help": Command(_help, "", "this list"),
    "/show": Command(_show, "", "the last 20 messages, a line each"),
    "/clear": Command(_clear, "", "keep the session, start a new one on an empty screen"),
    "/new": Command(_new, "", "keep the session, start a new one"),
    "/save": Command(_save, "[PATH]", "write the session now, or a copy of it"),
    "/load": Command(_load, "[ID or PATH]", "go on with a saved session; else the newest", _ids),
    "/sessions": Command(_sessions, "[WORDS]", "the saved sessions, newest first"),
    "/search": Command(_search, "WORDS", "where it was said, in all sessions"),
    "/export": Command(_export, "FORMAT [PATH]", "the session in another format", _formats),
    "/agent": Command(_agent, "[NAME]", "who answers; with a name: choose", _agents),
    "/model": Command(_model, "[NAME]", "which model answers; with a name: choose", _models),
    "/file": Command(_file, "[PATH]", "let a file go along with the next question; - none"),
    "/size": Command(_size, "[DRAFT]", "how large the next request is, and what takes the room"),
    "/compact": Command(_compact, "", "fold all that was said into a summary"),
    "/undo": Command(_undo, "", "take the last compaction or resize back"),
    "/memo": Command(_memo, "", "what is remembered of what has left the window"),
    "/pin": Command(_pin, "[N]", "hold message N in the window, -N let it go; else which are held"),
    "/edits": Command(_edits, "", "what tools have changed in files, newest first"),
    "/undo-edits": Command(_undo_edits, "[TURN]", "take back what the newest turn did to files"),
    "/redo-edits": Command(
        _redo_edits, "[TURN]", "make again the newest of what was taken back here"
    ),
    "/retry": Command(_retry, "", "take the last answer back and ask again"),
    "/quit": Command(_quit, "", "leave; so does Ctrl-D"),
}
HELP_END = (
    "Anything else is a question; one that begins with a slash needs a space before it.",
    "A backslash at the end of a line continues it. Tab completes commands and names.",
    "Ctrl-C stops an answer, twice within a second it leaves.",
)
