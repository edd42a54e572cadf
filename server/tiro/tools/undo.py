"""The edits of the user's files: listed, undone and redone, one by one or a whole turn.

Law: an undo or redo puts exactly the recorded bytes in the place of exactly the other ones; where
the file has changed since, it merges, and where that is not clean it touches nothing at all. All
files are worked out first, and each one is written only in place of what was then seen. What fails
midway is finished by doing it again: what is done already is nothing to do.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from tiro.errors import EditConflictError, InvalidInputError, StorageError, ToolError
from tiro.session.edits import Became, Edit, Made
from tiro.session.finished import finished
from tiro.tools.edit_conflicts import busy, changing, conflict, unreachable, unreadable, unwritten
from tiro.tools.edit_recorder import EditStore, FileLocks, Recorder, bytes_hash, path_of
from tiro.tools.edit_steps import Lines, Step, TouchError, View, lines_in, view_of, walked
from tiro.tools.file_text import FileText
from tiro.tools.replacing import sweep
from tiro.tools.silent_disk import in_thread
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
        edits = await in_thread(self._store.edits)
        return [edit for edit in reversed(edits) if edit.state != "failed"]

    async def next_turn(self, target: Target, session_id: str | None) -> NextTurn | None:
        """The turn whose edits came last into the state from which they would be moved.

        Only what was made in this session or in an open folder: others have editors of their own.
        """
        roots = await in_thread(self._workspace.roots)
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
                edits = await in_thread(self._store.edits)
                wanted = _wanted(edits, target, edit_id, turn_id)
                async with self._changing(list(map(path_of, wanted)), done):
                    changes = await self._work_out(wanted, target, edits, done)
                    moved_on = await self._write_all(changes, target, done)
                if moved_on is None:
                    return done
        assert moved_on is not None, "every attempt ended at a file that had changed again"
        raise changing(moved_on, done)

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Nobody else moves edits meanwhile, in no process: two would work out the same steps."""
        async with self._moving:
            claiming = asyncio.ensure_future(in_thread(self._store.claim))
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
                raise busy(self._locks.changed_now(paths), done) from error
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
                raise unreadable(path, error, done) from error
            view = await in_thread(self._viewed, seen, steps, target, done)
            try:
                text = await in_thread(_stepped, seen, view)
            except TouchError as error:
                conflicts[path] = lines_in(view.text or "", error)
            else:
                changes.append(_Change(path, seen, view, text, steps))
        if conflicts:
            raise conflict(conflicts, wanted, edits, done)
        return changes

    def _viewed(
        self, seen: FileText | None, steps: Sequence[Made], target: Target, done: Sequence[Path]
    ) -> View:
        """A file and what is to become of it by these edits, one after the other."""
        pairs = [(self._text(made, made.before), self._text(made, made.after)) for made in steps]
        goals = [pair[::-1] for pair in pairs] if target == "undone" else pairs
        if seen and seen.live and (self._workspace.can_edit or seen.is_unsaved):
            return View(seen.text, goals, None)
        for made, texts in zip(steps, pairs, strict=True):
            _check_bytes(made, texts, done)
        return view_of(seen, goals, [made.encoding for made in steps])

    def _text(self, made: Made, name: str | None) -> str | None:
        return None if name is None else self._store.text(made, name)

    async def _write_all(
        self, changes: "Sequence[_Change]", target: Target, done: list[Path]
    ) -> Path | None:
        """Give each file its text and note that; the file that has changed again, if one has."""
        for change in changes:
            path, seen, view, text, _ = change
            try:
                if text != view.text:
                    place = await self._place(path)
                    await put_text(self._workspace, place, seen, text, encoding=view.encoding)
            except EditConflictError:
                return path
            except ToolError as error:
                raise unwritten(path, error, done) from error
            await in_thread(self._settle, change, target)
            done.append(path)
        await in_thread(_remove_folders, changes)
        return None

    def _settle(self, change: "_Change", target: Target) -> None:
        """What is left to do when a file has its text: its mode, empty folders, the note."""
        path, seen, view, text, steps = change
        encoding, mode = None, None
        if text is None:
            if seen is not None:
                encoding = None if view.is_bytewise else view.encoding or seen.encoding
                mode = seen.status and seen.status.st_mode & _MODE_BITS
        elif seen is None and (mode := steps[-1].mode) is not None:
            with contextlib.suppress(OSError):
                os.chmod(path, mode)
        now = self._now()
        self._store.mark(Became([made.id for made in steps], now, target, encoding, mode))

    async def _place(self, path: Path) -> Place:
        """The place of a recorded path, which may lie outside of what is open now."""
        return await in_thread(_place_of, path, self._workspace)


def _stepped(seen: FileText | None, view: View) -> str | None:
    """The text of a file after the steps, read as it was for them."""
    text = walked(view.text, view.pairs)
    if text is None and seen is not None and seen.is_unsaved:
        raise TouchError  # the buffer holds what is nowhere else
    return text


def _check_bytes(made: Made, texts: Step, done: Sequence[Path]) -> None:
    """Raise EditConflictError where a file would not get the bytes that it had."""
    for text, recorded in zip(texts, (made.before_bytes, made.after_bytes), strict=True):
        if recorded is not None and bytes_hash(text, made.encoding) != recorded:
            raise unreachable(made, done)


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


class _Change(NamedTuple):
    """What one file is to become."""

    path: Path
    seen: FileText | None
    view: View
    text: str | None
    """The new text, as the view reads it."""
    steps: Sequence[Made]
    """The edits that it undoes or redoes, in that order."""


def _remove_folders(changes: Sequence[_Change]) -> None:
    """Remove the folders that were made for files which are gone, where nothing else is in them."""
    steps = [step for change in changes if change.text is None for step in change.steps]
    folders = {folder for one in steps for folder in path_of(one).parents[: one.new_folders]}
    for folder in sorted(folders, reverse=True):
        with contextlib.suppress(OSError):  # it is not empty, or gone
            os.rmdir(folder)


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


_MODE_BITS = 0o7777
