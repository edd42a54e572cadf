"""Edits as use cases: list, undo, redo; the ledger is opened when it is first needed."""

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tiro.assistant.named_paths import to_be_written
from tiro.errors import InvalidInputError, StorageError
from tiro.session.times import rfc3339, utc_now
from tiro.tools.silent_disk import Patience, SilentDiskError
from tiro.tools.tool import EditRecorder
from tiro.tools.workspace import Workspace

if TYPE_CHECKING:
    from tiro.session.edits import Edit, Made
    from tiro.tools.edit_recorder import LastEdits
    from tiro.tools.undo import Edits, NextTurn, Target

FOLDERS = "workspace"

NOTHING_LEFT = {
    "undone": "There are no edits of Tiro's to undo in this workspace",
    "made": "Nothing was taken back here that could be made again",
}


CommandsBeside: TypeAlias = Callable[[str | None, Sequence[str]], list[str]]
"""The commands in a session beside edits of these times, as `turn_commands.commands_beside`."""


class Moved(NamedTuple):
    """What an undo or redo has done, and what it could not."""

    paths: Sequence[Path]
    commands: Sequence[str] = ()
    """What else the turn that was undone has run, in short: that stays done."""


class FileEdits:
    """The edits of the user's files, by all sessions and all processes of this user."""

    def __init__(
        self,
        workspace: Workspace,
        directory: Path,
        is_kept: Callable[[], bool],
        patience: Patience,
        commands_beside: CommandsBeside = lambda session_id, times: [],
    ) -> None:
        """While `is_kept` says no, what is recorded ends with this process.

        `patience` is for the disks of the folders that are open.
        """
        self._patience = patience
        self._workspace, self._directory, self._is_kept = workspace, directory, is_kept
        self._commands_beside = commands_beside
        self._opened: Edits | None = None
        self._last_edits: LastEdits | None = None
        workspace.edit_of = self._edit_of
        self.tell: Callable[[str], None] = lambda text: None
        """Hears what the user should know, in the loop's thread."""

    def recorder_of(self, turn_id: str, session_id: str | None) -> Callable[[str], EditRecorder]:
        """Where the tool uses of a turn record their edits."""
        return lambda tool_use_id: self._edits.recorder(turn_id, session_id, tool_use_id)

    async def list(self, limit: int | None = None, turn_id: str | None = None) -> Sequence["Edit"]:
        """The newest edits, newest first, all of them or those of one turn."""
        edits = await self._edits.newest_first()
        return [edit for edit in edits if turn_id in (None, edit.made.turn_id)][:limit]

    async def undo(self, edit_id: str | None, turn_id: str | None, session_id: str | None) -> Moved:
        """Take back an edit or a turn's, by default the next one's; raises as `Edits.undo`."""
        turn_id = await self._turn_for("undone", edit_id, turn_id, session_id)
        await self._reach(edit_id, turn_id)
        paths = await self._edits.undo(edit_id, turn_id)
        return Moved(paths, await self._commands_of(turn_id))

    async def redo(self, edit_id: str | None, turn_id: str | None, session_id: str | None) -> Moved:
        """Make again what was undone, by default the next turn's; raises as `Edits.undo`."""
        turn_id = await self._turn_for("made", edit_id, turn_id, session_id)
        await self._reach(edit_id, turn_id)
        return Moved(await self._edits.redo(edit_id, turn_id))

    async def next(self, target: "Target", session_id: str | None) -> "NextTurn | None":
        """The turn that such a move without an id is about; see `Edits.next_turn`.

        StorageError where the disk of an open folder does not answer.
        """
        await self._reach_folders()
        return await self._edits.next_turn(target, session_id)

    async def _reach(self, edit_id: str | None, turn_id: str | None) -> None:
        """StorageError where a disk that is needed for such a move does not answer.

        Nobody else moves edits while one does, in any process.
        """
        await self._reach_folders()
        from tiro.tools.edit_recorder import path_of

        made = [edit.made for edit in await self.list(turn_id=turn_id)]
        for path in {path_of(one) for one in made if edit_id in (None, one.id)}:
            await to_be_written(path, self._patience)

    async def _reach_folders(self) -> None:
        try:
            await asyncio.to_thread(self._patience.ask, FOLDERS, self._workspace.roots)
        except SilentDiskError as error:
            sentence = f"A folder of the workspace{error}"
            raise StorageError(sentence, path=FOLDERS, errno="ETIMEDOUT") from error

    async def _turn_for(
        self, target: "Target", edit_id: str | None, turn_id: str | None, session_id: str | None
    ) -> str | None:
        """The turn to move: the one that is named, by default the next; None for a single edit."""
        if edit_id is not None or turn_id is not None:
            return turn_id
        found = await self.next(target, session_id)
        if found is None:
            raise InvalidInputError(NOTHING_LEFT[target])
        return found.turn_id

    async def _commands_of(self, turn_id: str | None) -> Sequence[str]:
        made = [] if turn_id is None else [e.made for e in await self.list(turn_id=turn_id)]
        if not made:
            return []
        times = [one.at for one in reversed(made)]
        return await asyncio.to_thread(self._commands_beside, made[0].session_id, times)

    def prune(self) -> None:
        """Drop what is too old or too much, and what killed processes left beside edited files.

        In a thread of its own; never raises.
        """
        if os.path.isdir(self._directory):
            from tiro.stores.ledger import Ledger
            from tiro.tools.undo import sweep_beside

            ledger = Ledger(self._directory)
            ledger.prune()
            sweep_beside(ledger)

    @property
    def _edits(self) -> "Edits":
        if self._opened is None:
            from tiro.stores.ledger import Ledger
            from tiro.tools.edit_recorder import LastEdits
            from tiro.tools.undo import Edits

            loop = asyncio.get_running_loop()

            def tell(text: str) -> None:
                loop.call_soon_threadsafe(self.tell, text)

            ledger = Ledger(self._directory, is_kept=self._is_kept, tell=tell)
            self._opened = Edits(ledger, self._workspace, lambda: rfc3339(utc_now()))
            self._last_edits = LastEdits(ledger)
        return self._opened

    def _edit_of(self, path: Path) -> "Made | None":
        """The newest edit of a file, as a workspace asks for it, in a thread."""
        if self._last_edits is None:
            if not os.path.isdir(self._directory):
                return None
            from tiro.stores.ledger import Ledger
            from tiro.tools.edit_recorder import LastEdits

            self._last_edits = LastEdits(Ledger(self._directory))
        return self._last_edits(path)
