"""Why an edit is not undone or redone, and what to do then, as errors that name their files."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tiro.errors import EditConflictError, StorageError, ToolError
from tiro.session.edits import Edit, Made
from tiro.tools.edit_recorder import path_of
from tiro.tools.edit_steps import Lines

CONFLICT = "What was changed since then overlaps with it in {places}, so {left}; {ways}"
BY_HAND = "change it by hand"
LATER = "undo the later edits of it first (tiro edits undo ID, with {ids})"
OTHERS = "{what} the turn's other edits one by one (tiro edits {what} ID, with {ids})"
MAX_IDS = 10
ID_CHARS = 8
"""So much of an id names an edit on the command line."""
UNREACHABLE = (
    "{path!r} cannot be given back byte for byte, as its encoding {encoding} is read otherwise by"
    " now; {left}"
)
UNREADABLE = "{path!r} can no longer be compared with the edit, so {left}: {why}"
CHANGING = "{path!r} keeps changing, so it was left as it is{done}; try again"
UNWRITTEN = "{path!r} was left as it is: {why}{done}"
UNKNOWN = (
    "The editor did not say whether it changed {path!r}; look at it, then ask again: what is done"
    " already is nothing to do{done}"
)
IN_TURN = "A running turn is changing {paths} right now; wait for its end or cancel it{done}"
UNTOUCHED = "no file was touched"
LEFT = "it was left as it is{done}"
DONE = " ({paths} is done already; doing it again does the rest)"


def conflict(
    paths: Mapping[Path, list[Lines]],
    wanted: Sequence[Made],
    edits: Sequence[Edit],
    done: Sequence[Path],
) -> EditConflictError:
    """The error for these files; it names our own edits that came after those to be moved."""
    ids = {made.id for made in wanted}
    first = min(index for index, edit in enumerate(edits) if edit.made.id in ids)
    later = [
        edit.made.id
        for edit in edits[first:]
        if edit.state == "made" and edit.made.id not in ids and path_of(edit.made) in paths
    ]
    ways = [BY_HAND]
    if later:
        ways.append(LATER.format(ids=_ids(reversed(later))))
    if len(wanted) > 1:
        what = "undo" if edits[first].state == "made" else "redo"
        ways.append(OTHERS.format(what=what, ids=_ids(made.id for made in wanted)))
    told = CONFLICT.format(
        places=", ".join(_place(path, lines) for path, lines in paths.items()),
        left=_left(done),
        ways=", or ".join(ways),
    )
    lines = {str(path): [list(one) for one in found] for path, found in paths.items()}
    return EditConflictError(told, paths=_texts(paths), lines=lines, done=_texts(done), later=later)


def _ids(ids: Iterable[str]) -> str:
    """The ids of edits, in the order in which they are to be moved."""
    shown = [id[:ID_CHARS] for id in ids]
    more = [f"{len(shown) - MAX_IDS} more"] if len(shown) > MAX_IDS else []
    return ", ".join([*shown[:MAX_IDS], *more])


def _place(path: Path, lines: Sequence[Lines]) -> str:
    """Some lines of a file in words."""
    if not lines:
        return str(path)
    parts = [str(first) if first == last else f"{first}–{last}" for first, last in lines]
    is_one = len(lines) == 1 and lines[0][0] == lines[0][1]
    return f"line{'' if is_one else 's'} {', '.join(parts)} of {path}"


def changing(path: Path, done: Sequence[Path]) -> EditConflictError:
    """The error for a file that does not stay as it was read."""
    told = CHANGING.format(path=str(path), done=_told(done))
    return EditConflictError(told, paths=[str(path)], done=_texts(done))


def busy(paths: Iterable[Path], done: Sequence[Path]) -> EditConflictError:
    """The error for files that a tool changes just now, and for longer than is waited."""
    names = _texts(paths)
    told = IN_TURN.format(paths=", ".join(names), done=_told(done))
    return EditConflictError(told, paths=names, done=_texts(done))


def unreadable(path: Path, error: ToolError, done: Sequence[Path]) -> EditConflictError:
    """The error for a place where something else is by now."""
    told = UNREADABLE.format(path=str(path), left=_left(done), why=error)
    return EditConflictError(told, paths=[str(path)], done=_texts(done))


def unreachable(made: Made, done: Sequence[Path]) -> EditConflictError:
    """The error for an edit whose texts no longer have the bytes that they had."""
    path = str(path_of(made))
    told = UNREACHABLE.format(path=path, encoding=made.encoding, left=_left(done))
    return EditConflictError(told, paths=[path], done=_texts(done))


def unwritten(
    path: Path, error: ToolError, done: Sequence[Path]
) -> EditConflictError | StorageError:
    """The error for a file that did not get its text: the disk refused, else the editor or we."""
    told = UNWRITTEN.format(path=str(path), why=error, done=_told(done))
    if error.data.get("outcome") == "unknown":
        told = UNKNOWN.format(path=str(path), done=_told(done))
    if "errno" in error.data:
        return StorageError(told, path=str(path), errno=error.data["errno"], done=_texts(done))
    return EditConflictError(told, paths=[str(path)], done=_texts(done))


def _left(done: Sequence[Path]) -> str:
    return LEFT.format(done=_told(done)) if done else UNTOUCHED


def _told(done: Sequence[Path]) -> str:
    return DONE.format(paths=", ".join(_texts(done))) if done else ""


def _texts(paths: Iterable[Path]) -> list[str]:
    return list(map(str, paths))
