"""The slash commands of a chat: a line of the table each, and what the Tab key completes."""

import asyncio
import difflib
import glob
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from tiro.chat import memory_commands as memory
from tiro.chat import session_commands as sessions
from tiro.chat.preview import FORCES, preview
from tiro.chat.talk import QUIT, EndError, Talk
from tiro.edit_text import line_of_edit, named_edits, told_commands, told_paths, wish
from tiro.errors import InvalidInputError
from tiro.stores.formats.registry import WRITTEN

MAX_LISTED = 20
NEAR = 0.6
"""How like a command a slip of it is, from 0 to 1; /nonsense is not like /steer."""
HELP_CELLS = 27
"""Where in a line of the help it is told what a command does."""
COMPLETE_SECONDS = 2.0
"""A list that takes longer is not waited for at the Tab key."""


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
        near = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=NEAR)
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
    rows = [
        f"  {f'{name} {c.takes}'.strip():<{HELP_CELLS - 3}} {c.about}"
        for name, c in COMMANDS.items()
    ]
    talk.screen.say("\n".join(rows), indent=HELP_CELLS)
    talk.screen.say("\n".join(HELP_END), indent=0)


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
        talk.screen.say(f"{mark} {agent['name']:<12} {agent['description']}", indent=15)
    names = [agent["name"] for agent in listed["agents"]]
    everyone = (await talk.link.request("tiro/agents/list", {"all": True}))["agents"]
    others = [agent for agent in everyone if agent["name"] not in names]
    if others:
        talk.screen.tell("Nobody selects these; an agent gives them tasks, or Tiro asks them:")
    for agent in others:
        talk.screen.say(f"  {agent['name']:<12} {agent['description']}", indent=15)


async def _model(talk: Talk, rest: str) -> None:
    if rest:
        model = (await talk.link.request("tiro/models/set", {"name": rest}))["model"]
        talk.screen.tell(f"{model} answers from now on")
        return
    listed = await talk.link.request("tiro/models/list")
    for row in listed["models"]:
        mark = "*" if row["name"] == listed["current"] else " "
        talk.screen.say(f"{mark} {row['name']:<40} {row['reason'] or ''}".rstrip(), indent=43)


async def _file(talk: Talk, rest: str) -> None:
    if rest == "-":
        talk.files = []
    elif rest:
        talk.take_file(rest)
    listed = ", ".join(map(os.path.basename, talk.files)) or "no file"
    talk.screen.tell(f"With your next question: {listed}")


async def _edits(talk: Talk, rest: str) -> None:
    edits = (await talk.link.request("tiro/edits/list", {"limit": MAX_LISTED}))["edits"]
    for edit in edits:
        talk.screen.say(line_of_edit(edit))
    if not edits:
        talk.screen.tell("No tool has changed a file yet")


async def _undo_edits(talk: Talk, rest: str) -> None:
    if (which := await _which_edits(talk, rest, "undo", "Take back")) is not None:
        done = await talk.link.request("tiro/edits/undo", which)
        talk.screen.tell(f"Taken back in {told_paths(done['paths'])}")
        if told := told_commands(done["commands"]):
            talk.screen.tell(told)


async def _redo_edits(talk: Talk, rest: str) -> None:
    if (which := await _which_edits(talk, rest, "redo", "Make again")) is not None:
        done = await talk.link.request("tiro/edits/redo", which)
        talk.screen.tell(f"Made again in {told_paths(done['paths'])}")


async def _which_edits(talk: Talk, rest: str, what: str, do: str) -> dict[str, str] | None:
    """The edits that are meant; None when they are another session's and the person says no."""
    if rest:
        return named_edits((await talk.link.request("tiro/edits/list", {}))["edits"], rest)
    turn = (await talk.link.request("tiro/edits/next"))[what]
    if turn is None:  # the server has words for that
        return {}
    view = await talk.link.request("tiro/session/get", {"limit": 1})
    if turn["sessionId"] != view["id"] and not await _is_wanted(talk, wish(do, turn)):
        talk.screen.tell("Nothing was changed")
        return None
    return {"turnId": turn["turnId"]}


async def _is_wanted(talk: Talk, question: str) -> bool:
    if not talk.lines.is_person:
        raise InvalidInputError(
            "Nobody is here to be asked about another session's edits; name them, /edits lists them"
        )
    answer = await talk.choose_one(question)
    return (answer or "").strip().lower() in ("y", "yes")


async def _retry(talk: Talk, rest: str) -> None:
    await talk.ask_again()


async def _steer(talk: Talk, rest: str) -> None:
    raise InvalidInputError("/steer is for while an answer comes; without one just ask")


async def _quit(talk: Talk, rest: str) -> None:
    raise EndError


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


async def _kinds(talk: Talk) -> Sequence[str]:
    return [kind for kind in FORCES if kind]


async def _formats(talk: Talk) -> Sequence[str]:
    return WRITTEN


COMMANDS: dict[str, Command] = {
    "/help": Command(_help, "", "this list"),
    "/show": Command(
        sessions.show,
        "[N]",
        "the last 20 messages, or those around N, a line each, with their numbers",
    ),
    "/output": Command(
        sessions.output, "[N]", "all that the last command printed; else what message N holds"
    ),
    "/clear": Command(sessions.clear, "", "keep the session, start a new one on an empty screen"),
    "/new": Command(sessions.new, "", "keep the session, start a new one"),
    "/save": Command(sessions.save, "[PATH]", "write the session now, or a copy of it"),
    "/load": Command(
        sessions.load, "[ID or PATH]", "go on with a saved session; else the newest", _ids
    ),
    "/sessions": Command(sessions.sessions, "[WORDS]", "the saved sessions, newest first"),
    "/search": Command(sessions.search, "WORDS", "where it was said, in all sessions"),
    "/export": Command(sessions.export, "FORMAT [PATH]", "the session in another format", _formats),
    "/agent": Command(_agent, "[NAME]", "who answers; with a name: choose", _agents),
    "/model": Command(_model, "[NAME]", "which model answers; with a name: choose", _models),
    "/file": Command(_file, "[PATH]", "let a file go along with the next question; - none"),
    "/rename": Command(sessions.rename, "TITLE", "name the session"),
    "/import": Command(sessions.import_, "PATH", "go on with what was exported, as a new session"),
    "/size": Command(
        memory.size, "[DRAFT]", "how large the next request is, and what takes the room"
    ),
    "/explain": Command(
        memory.explain, "[json]", "what the next request holds, and what is left out of it"
    ),
    "/compact": Command(memory.compact, "", "fold all that was said into a summary"),
    "/preview": Command(
        preview, "[KIND]", "see what would be folded; then apply, edit or drop it", _kinds
    ),
    "/undo": Command(memory.undo, "", "take the last compaction or resize back"),
    "/memo": Command(memory.memo, "[edit]", "what is remembered of what has left the window"),
    "/pin": Command(
        memory.pin, "[N]", "hold message N in the window, -N let it go; else which are held"
    ),
    "/edits": Command(_edits, "", "what tools have changed in files, newest first"),
    "/undo-edits": Command(
        _undo_edits, "[ID]", "take back an edit or a turn's; else what the newest turn did to files"
    ),
    "/redo-edits": Command(
        _redo_edits, "[ID]", "make it again; else the newest of what was taken back here"
    ),
    "/retry": Command(_retry, "", "take your last question and its answer back, and ask it again"),
    "/rewind": Command(
        sessions.rewind,
        "[N]",
        "take message N (see /show), else your last question, and all after it back",
    ),
    "/steer": Command(_steer, "TEXT", "while an answer comes: tell this before its next step"),
    QUIT: Command(_quit, "", "leave; so does Ctrl-D"),
}
HELP_END = (
    "Anything else is a question; one that begins with a slash needs a space before it.",
    "What you type while an answer comes is not seen, and waits for the next prompt;",
    "/steer does not, and a lone key that answers a permission question is dropped.",
    "A backslash at the end of a line continues it. Tab completes commands and names.",
    "Ctrl-C stops an answer, twice within a second it leaves.",
)
