"""The edits of files in words, and one of them found by the beginning of its id."""

from collections.abc import Mapping, Sequence
from typing import Any

from tiro.errors import InvalidInputError
from tiro.screen_text import flat

MAX_COMMANDS = 5
SHOWN_CHARS = 8
"""So much of an id is shown; any beginning that only one id has names it."""


def line_of_edit(edit: Mapping[str, Any]) -> str:
    """An edit of `tiro/edits/list` on one line: its ids, when, where, and how much."""
    ids = f"edit {edit['id'][:SHOWN_CHARS]} of turn {edit['turnId'][:SHOWN_CHARS]}"
    undone = "  (undone)" if edit["undone"] else ""
    path = flat(edit["path"])
    return f"{ids}  {_minute(edit['at'])}  +{edit['added']} -{edit['removed']}  {path}{undone}"


def named_edits(edits: Sequence[Mapping[str, Any]], word: str) -> dict[str, str]:
    """What `word` begins the id of, an edit or a turn, as `tiro/edits/undo` takes it.

    InvalidInputError where that could be several; what nothing is called is left to the server.
    """
    found = {
        (field, edit[key])
        for edit in edits
        for field, key in (("id", "id"), ("turnId", "turnId"))
        if edit[key].startswith(word)
    }
    if len(found) > 1:
        raise InvalidInputError(f"More than one edit or turn begins with {word!r}; type more of it")
    return dict(found) or {"turnId": word}


def told_paths(paths: Sequence[str]) -> str:
    """These files, as the end of a sentence."""
    return ", ".join(map(flat, paths)) or "no file; all of it was done before"


def told_commands(commands: Sequence[str]) -> str:
    """The sentence that these commands of a turn cannot be taken back; empty without any."""
    more = len(commands) - MAX_COMMANDS
    shown = [*map(flat, commands[:MAX_COMMANDS]), *([f"and {more} more"] if more > 0 else [])]
    return f"What its commands did stays done: {'; '.join(shown)}" if shown else ""


def wish(what: str, turn: Mapping[str, Any]) -> str:
    """The question whether to do this, "Take back" say, to a turn of `tiro/edits/next`."""
    files = ", ".join(map(flat, turn["paths"]))
    return f"{what} what another session did at {_minute(turn['at'])} (UTC) in {files}? [y/N] "


def _minute(at: str) -> str:
    return at[:16].replace("T", " ")
