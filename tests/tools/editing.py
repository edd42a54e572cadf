"""A workspace whose files are edited as tools do it, with the real ledger beside it."""

import asyncio
import atexit
import functools
import os
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tests.fakes import RecordingEditor
from tiro.errors import TiroError
from tiro.session.edits import Edit
from tiro.stores.disk import Disk
from tiro.stores.ledger import Ledger
from tiro.tools.edit_recorder import LastEdits
from tiro.tools.undo import Edits
from tiro.tools.workspace import Workspace
from tiro.tools.writing import current, put_text

T = TypeVar("T")
AT = "2026-11-28T09:30:00.000Z"


class Editing:
    """One process's view: an editor, a workspace folder, and the ledger of the user."""

    def __init__(self, root: Path, ledger: Path, disk: Disk | None = None) -> None:
        self.root = root
        self.editor = RecordingEditor(root)
        self.workspace = Workspace(self.editor)
        self.ledger = Ledger(ledger, disk)
        self.workspace.edit_of = LastEdits(self.ledger)
        self.edits = Edits(self.ledger, self.workspace, lambda: AT)

    def edit(
        self, name: str, text: str | None, turn: str = "t", encoding: str | None = None
    ) -> str:
        """Give a file this text as a tool does; the id of the edit."""
        return run(self._edit(name, text, turn, encoding))

    def replace(self, name: str, old: str, new: str, turn: str = "t") -> str:
        """Replace a part of a file's text as a tool does; the id of the edit."""
        before = self.text(name)
        assert before is not None
        assert before.count(old) == 1, f"{old!r} is not once in {before!r}"
        return self.edit(name, before.replace(old, new), turn)

    def undo(self, id: str | None = None, *, turn: str | None = None) -> list[str]:
        """Undo an edit or a turn; the names of the files."""
        return self._names(run(self.edits.undo(id, turn)))

    def redo(self, id: str | None = None, *, turn: str | None = None) -> list[str]:
        """Redo an edit or a turn; the names of the files."""
        return self._names(run(self.edits.redo(id, turn)))

    def states(self) -> list[str]:
        """The states of the edits, newest first."""
        return [edit.state for edit in self.listed()]

    def listed(self) -> list[Edit]:
        """The edits, newest first."""
        return run(self.edits.newest_first())

    def text(self, name: str) -> str | None:
        """The text of a file as the user sees it, None when there is none."""
        seen = run(current(self.workspace, self.workspace.locate(name)))
        return None if seen is None else seen.text

    def open(self, name: str, text: str | None = None) -> None:
        """Open a file in the editor, with the text on the disk or an unsaved one."""
        path = self.root / name
        self.editor.buffers[path] = path.read_text("utf-8") if text is None else text

    def bytes(self, name: str) -> bytes:
        """What is in a file on the disk."""
        return (self.root / name).read_bytes()

    async def _edit(self, name: str, text: str | None, turn: str, encoding: str | None) -> str:
        place = self.workspace.locate(name)
        recorder = self.edits.recorder(turn, "s", "c")
        async with recorder.changing(place.path):
            seen = await current(self.workspace, place)
            edit = await recorder.record(place.path, seen, text)
            try:
                await put_text(self.workspace, place, seen, text, encoding=encoding)
            except TiroError:
                await recorder.failed(edit.id)
                raise
        return edit.id

    def _names(self, paths: list[Path]) -> list[str]:
        return [os.path.relpath(path, self.root) for path in paths]


EDITS: Sequence[Callable[[Editing], object]] = [
    lambda editing: editing.replace("a", "two", "2"),
    lambda editing: editing.edit("made/new", "new\n"),
    lambda editing: editing.replace("a", "three", "3"),
    lambda editing: editing.undo(turn="t"),
    lambda editing: editing.redo(turn="t"),
    lambda editing: editing.undo(turn="t"),
]
"""A turn with an edited file and one that is made, undone and redone."""

BEFORE_EDITS = "one\r\ntwo caf\u00e9\r\nthree\r\n".encode("latin-1")
"""The file `a` before these."""


def run(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine; thousands share one event loop, for each would start threads."""
    return _runner_of(os.getpid()).run(work)


@functools.cache
def _runner_of(_: int) -> asyncio.Runner:
    """The event loop of this process; a fork makes its own."""
    runner = asyncio.Runner()
    atexit.register(runner.close)
    return runner
