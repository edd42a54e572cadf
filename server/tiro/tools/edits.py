"""The edits of the user's files: listed, undone and redone, one by one or a whole turn.

Law: an undo or redo puts exactly the recorded text in the place of exactly the other one; where
the file has changed since, it merges, and where that is not clean it touches nothing at all. All
files are worked out first, and each one is written only in place of what was then seen. What fails
midway is finished by doing it again: what is done already is nothing to do.
"""

import asyncio
import contextlib
import functools
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from tiro.errors import EditConflictError, InvalidInputError, StorageError, ToolError
from tiro.session.edits import Became, Edit, Made
from tiro.session.finished import finished
from tiro.tools.edit_recorder import EditStore, FileLocks, Recorder, path_of
from tiro.tools.file_text import FileText
from tiro.tools.merge import conflicting_lines, lines_now, merge_texts
from tiro.tools.replacing import sweep
from tiro.tools.workspace import Place, Workspace
from tiro.tools.writing import current, put_text

PATIENCE_SECONDS = 3.0
"""How long an undo waits for a tool that changes the same file: longer than any disk's write."""

ATTEMPTS = 3
"""How often it is worked out anew when a file changes between reading and writing it."""

SWEPT_EDITS = 200
"""Beside the files of so many edits, the newest, is looked for what a killed process left."""

NO_EDIT = "There is no edit {id!r}; list the edits to see which can be undone"
NO_TURN = "No edits are known of the turn {id!r}; list the edits to see which can be undone"
NOT_ONE = "Give either the id of an edit or the id of a turn"
CONFLICT = "What was changed since then overlaps with it in {places}, so {left}; {ways}"
BY_HAND = "change it by hand"
LATER = "undo the later edits of it first"
OTHERS = "undo the turn's other edits one by one"
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

Target = Literal["made", "undone"]
"""The state an edit is to come into: `undone` by an undo, `made` by a redo."""


class NextTurn(NamedTuple):
    """The turn whose edits an undo or a redo moves next."""

    turn_id: str
    session_id: str | None
    at: str
    """When the newest of them was made, RFC 3339."""
    paths: Sequence[Path]
    """The files that it changes."""


class Edits:
    """The edits of all turns, and their files as this workspace sees them."""

    def __init__(self, store: EditStore, workspace: Workspace, now: Callable[[], str]) -> None:
        """`now` gives the time, RFC 3339."""
        self._store, self._workspace, self._now = store, workspace, now
        self._locks = FileLocks()
        self._moving = asyncio.Lock()

    def recorder(self, turn_id: str, session_id: str | None, tool_use_id: str) -> Recorder:
        """Where one tool use records its edits."""
        return Recorder(self._store, self._locks, self._now, (turn_id, session_id, tool_use_id))

    async def newest_first(self) -> list[Edit]:
        """The edits that happened, newest first; raises StorageError."""
        edits = await asyncio.to_thread(self._store.edits)
        return [edit for edit in reversed(edits) if edit.state != "failed"]

    async def next_turn(self, target: Target, session_id: str | None) -> NextTurn | None:
        """The turn whose edits came last into the state from which they would be moved.

        Only what was made in this session or in an open folder: others have editors of their own.
        """
        roots = await asyncio.to_thread(self._workspace.roots)
        movable = [edit for edit in await self.newest_first() if edit.state != target]
        ours = [edit for edit in movable if _is_of(edit.made, session_id, roots)]
        if not ours:
            return None
        made = max(ours, key=lambda edit: edit.moved).made
        steps = [edit.made for edit in movable if edit.made.turn_id == made.turn_id]
        return NextTurn(made.turn_id, made.session_id, steps[0].at, list(_by_path(steps)))

    async def undo(self, edit_id: str | None = None, turn_id: str | None = None) -> list[Path]:
        """Take back one edit, or all of a turn; the files of those that were not undone before.

        Raises InvalidInputError for what is not known, EditConflictError where somebody's change
        would be lost, StorageError where a file cannot be written.
        """
        return await self._move("undone", edit_id, turn_id)

    async def redo(self, edit_id: str | None = None, turn_id: str | None = None) -> list[Path]:
        """Make again what was undone; answers and raises as `undo`."""
        return await self._move("made", edit_id, turn_id)

    async def _move(self, target: Target, edit_id: str | None, turn_id: str | None) -> list[Path]:
        if (edit_id is None) == (turn_id is None):
            raise InvalidInputError(NOT_ONE)
        done: list[Path] = []
        async with self._alone():
            for _ in range(ATTEMPTS):
                edits = await asyncio.to_thread(self._store.edits)
                wanted = _wanted(edits, target, edit_id, turn_id)
                async with self._changing(list(map(path_of, wanted)), done):
                    changes = await self._work_out(wanted, target, edits, done)
                    moved_on = await self._write_all(changes, target, done)
                if moved_on is None:
                    return done
        raise EditConflictError(
            CHANGING.format(path=str(moved_on), done=_told(done)),
            paths=[str(moved_on)],
            done=_texts(done),
        )

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Nobody else moves edits meanwhile, in no process: two would work out the same steps."""
        async with self._moving:
            claiming = asyncio.ensure_future(asyncio.to_thread(self._store.claim))
            try:
                release = await asyncio.shield(claiming)
            except asyncio.CancelledError:
                with contextlib.suppress(StorageError):
                    (await finished(claiming))()
                raise
            try:
                yield
            finally:
                release()

    @contextlib.asynccontextmanager
    async def _changing(self, paths: Sequence[Path], done: Sequence[Path]) -> AsyncIterator[None]:
        """No tool changes these files meanwhile; EditConflictError where one takes its time.

        Its editor may be silent, or may be asking somebody.
        """
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await stack.enter_async_context(self._locks.changing(*paths))
            except TimeoutError as error:
                busy = _texts(self._locks.changed_now(paths))
                told = IN_TURN.format(paths=", ".join(busy), done=_told(done))
                raise EditConflictError(told, paths=busy, done=_texts(done)) from error
            yield

    async def _work_out(
        self, wanted: Sequence[Made], target: Target, edits: Sequence[Edit], done: Sequence[Path]
    ) -> "list[_Change]":
        """What each file is to become; EditConflictError when that is not clear for all."""
        changes, conflicts = [], dict[Path, list[Lines]]()
        for path, steps in _by_path(wanted).items():
            try:
                seen = await current(self._workspace, await self._place(path))
            except ToolError as error:  # something else is there by now
                told = UNREADABLE.format(path=str(path), left=_left(done), why=error)
                raise EditConflictError(told, paths=[str(path)], done=_texts(done)) from error
            try:
                text = await asyncio.to_thread(self._stepped, seen, steps, target)
            except _TouchError as error:
                conflicts[path] = [] if seen is None else _lines_in(seen.text, error)
            else:
                changes.append(_Change(path, seen, text, steps))
        if conflicts:
            raise _conflict(conflicts, wanted, edits, done)
        return changes

    def _stepped(self, seen: FileText | None, steps: Sequence[Made], target: Target) -> str | None:
        """The text of a file after these edits were undone or redone, one after the other."""
        pairs = [(self._text(made, made.before), self._text(made, made.after)) for made in steps]
        if target == "undone":
            pairs = [(after, before) for before, after in pairs]
        text = _walked(None if seen is None else seen.text, pairs)
        if text is None and seen is not None and seen.is_unsaved:
            raise _TouchError  # the buffer holds what is nowhere else
        return text

    def _text(self, made: Made, name: str | None) -> str | None:
        return None if name is None else self._store.text(made, name)

    async def _write_all(
        self, changes: "Sequence[_Change]", target: Target, done: list[Path]
    ) -> Path | None:
        """Give each file its text and note that; the file that has changed again, if one has."""
        for change in changes:
            path, seen, text, steps = change
            try:
                if text != (None if seen is None else seen.text):
                    place, encoding = await self._place(path), steps[-1].encoding
                    await put_text(self._workspace, place, seen, text, encoding=encoding)
            except EditConflictError:
                return path
            except ToolError as error:
                raise _unwritten(path, error, done) from error
            await asyncio.to_thread(self._settle, change, target)
            done.append(path)
        await asyncio.to_thread(_remove_folders, changes)
        return None

    def _settle(self, change: "_Change", target: Target) -> None:
        """What is left to do when a file has its text: its mode, empty folders, the note."""
        path, seen, text, steps = change
        encoding, mode = None, None
        if text is None:
            if seen is not None:
                encoding, mode = seen.encoding, seen.status and seen.status.st_mode & _MODE_BITS
        elif seen is None and (mode := steps[-1].mode) is not None:
            with contextlib.suppress(OSError):
                os.chmod(path, mode)
        now = self._now()
        self._store.mark(Became([made.id for made in steps], now, target, encoding, mode))

    async def _place(self, path: Path) -> Place:
        """The place of a recorded path, which may lie outside of what is open now."""
        return await asyncio.to_thread(_place_of, path, self._workspace)


def _place_of(path: Path, workspace: Workspace) -> Place:
    for root in workspace.roots():
        if path.is_relative_to(root):
            return Place(str(path), path, root)
    above = next(folder for folder in path.parents if folder.exists())
    is_real = Path(os.path.realpath(above)) == above
    return Place(str(path), path, above if is_real else Path(path.anchor))


def sweep_beside(store: EditStore) -> None:
    """Remove what killed processes left beside the files that were edited last; never raises."""
    try:
        edits = store.edits()[-SWEPT_EDITS:]
    except StorageError:
        return
    for folder in {path_of(edit.made).parent for edit in edits}:
        sweep(folder)


_Pair: TypeAlias = tuple[str | None, str | None]
"""The text of a file before and after a step; None stands for no file."""


class _Change(NamedTuple):
    """What one file is to become."""

    path: Path
    seen: FileText | None
    text: str | None
    steps: Sequence[Made]
    """The edits that it undoes or redoes, in that order."""


def _remove_folders(changes: Sequence[_Change]) -> None:
    """Remove the folders that were made for files which are gone, where nothing else is in them."""
    steps = [step for change in changes if change.text is None for step in change.steps]
    folders = {folder for one in steps for folder in path_of(one).parents[: one.new_folders]}
    for folder in sorted(folders, reverse=True):
        with contextlib.suppress(OSError):  # it is not empty, or gone
            os.rmdir(folder)


Lines: TypeAlias = tuple[int, int]
"""The first and the last of some lines of a file, counted from 1."""


class _TouchError(Exception):
    """What somebody wrote since and what is to be written overlap in these lines of a text."""

    def __init__(self, text: str = "", lines: Sequence[range] = ()) -> None:
        super().__init__()
        self.text, self.lines = text, lines


def _wanted(
    edits: Sequence[Edit], target: Target, edit_id: str | None, turn_id: str | None
) -> list[Made]:
    """The edits to move, in the order in which to do it; those that are there already are not."""
    found = [edit for edit in edits if edit.made.id == edit_id or edit.made.turn_id == turn_id]
    if not found:
        told = NO_TURN.format(id=turn_id) if edit_id is None else NO_EDIT.format(id=edit_id)
        raise InvalidInputError(told)
    if target == "undone":
        return [edit.made for edit in reversed(found) if edit.state == "made"]
    return [edit.made for edit in found if edit.state == "undone"]


def _is_of(made: Made, session_id: str | None, roots: Sequence[Path]) -> bool:
    """Whether it was made in this session, or in one of these folders."""
    is_here = any(path_of(made).is_relative_to(root) for root in roots)
    return is_here or (session_id is not None and made.session_id == session_id)


def _by_path(wanted: Iterable[Made]) -> dict[Path, list[Made]]:
    found: dict[Path, list[Made]] = {}
    for made in wanted:
        found.setdefault(path_of(made), []).append(made)
    return found


def _walked(text: str | None, pairs: Sequence[_Pair]) -> str | None:
    """The text after all these steps from one text to another; None stands for no file.

    At their end already, where a process died before it could note that, there is nothing to do.
    Where a single step touches what was written since, all of them together may not.
    """
    if text == pairs[-1][1]:
        return text
    try:
        return functools.reduce(lambda now, pair: _step(now, *pair), pairs, text)
    except _TouchError:
        return functools.reduce(lambda now, pair: _step(now, *pair), _joined(pairs), text)


def _joined(
    pairs: Sequence[_Pair],
) -> list[_Pair]:
    """The steps with those made one that begin where the one before ends."""
    joined = [pairs[0]]
    for source, goal in pairs[1:]:
        if joined[-1][1] == source:
            joined[-1] = joined[-1][0], goal
        else:
            joined.append((source, goal))
    return joined


def _step(text: str | None, source: str | None, goal: str | None) -> str | None:
    """The text with what leads from `source` to `goal`; None stands for no file."""
    if goal in (text, source):
        return text
    if text == source:
        return goal
    if text == "" and None in (source, goal):
        return goal  # a file whose making was broken off; there is nothing in it to lose
    if text is None or source is None or goal is None:
        raise _TouchError
    merged = merge_texts(source, text, goal)
    if merged is None:
        raise _TouchError(text, conflicting_lines(source, text, goal))
    return merged


def _lines_in(now: str, error: _TouchError) -> list[Lines]:
    """The lines of a file's text now in which what somebody wrote is in the way."""
    found = error.lines
    if error.text != now:  # some of the edits were stepped over before
        found = [left for lines in found if (left := lines_now(lines, error.text, now))]
    return [(lines.start + 1, max(lines.stop, lines.start + 1)) for lines in found]


def _conflict(
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
    ways = [BY_HAND, *([LATER] if later else []), *([OTHERS] if len(wanted) > 1 else [])]
    told = CONFLICT.format(
        places=", ".join(_place(path, lines) for path, lines in paths.items()),
        left=_left(done),
        ways=", or ".join(ways),
    )
    lines = {str(path): [list(one) for one in found] for path, found in paths.items()}
    return EditConflictError(told, paths=_texts(paths), lines=lines, done=_texts(done), later=later)


def _place(path: Path, lines: Sequence[Lines]) -> str:
    """Some lines of a file in words."""
    if not lines:
        return str(path)
    parts = [str(first) if first == last else f"{first}–{last}" for first, last in lines]
    is_one = len(lines) == 1 and lines[0][0] == lines[0][1]
    return f"line{'' if is_one else 's'} {', '.join(parts)} of {path}"


def _unwritten(
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


_MODE_BITS = 0o7777
