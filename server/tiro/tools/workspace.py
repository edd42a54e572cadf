"""The workspace: which files tools may touch, and their text as the user sees it right now.

Law: a path counts by where it really leads (`..`, links and percent escapes resolved), never by how
it is written, and what an editor holds unsaved comes before what lies on the disk.
"""

import os
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol

import msgspec

NO_WORKSPACE = "No workspace folder is open, so no file can be read; ask the user to open a folder"
OUTSIDE = (
    "{given!r} is outside the workspace (it leads to {real!r}); nothing was read."
    " Use a path inside {roots}"
)
UNUSABLE_PATH = "{given!r} is not a usable path ({why}); give a path relative to the workspace"
NOT_THERE = "There is no {given!r}; use list_files or glob to find the right path"
NOT_A_FILE = "{given!r} is {kind}, not a file; nothing was read"
UNREADABLE = "{given!r} cannot be read ({why})"
MOVED = "{given!r} changed while it was opened; nothing was read. Try again"


class PermissionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The question whether a tool use may run."""

    tool_use_id: str
    name: str
    input: dict[str, Any]
    agent: str
    rule: str
    effect: Literal["read", "write", "execute", "network"]
    preview: str | None = None


class PermissionAnswer(msgspec.Struct, frozen=True):
    """The user's answer; a client that is gone or answers with an error means `reject`."""

    decision: Literal["once", "always", "reject"]
    message: str | None = None


class Editor(Protocol):
    """What tools and turns may ask of an editor.

    The first three are called from any thread and answer from memory.
    """

    def workspace_roots(self) -> list[Path]:
        """The folders that are open, as the editor names them."""
        ...

    def open_paths(self) -> list[Path]:
        """The files that are open in the editor, as it names them; they need not exist."""
        ...

    def open_text(self, path: Path) -> str | None:
        """The live text of an open buffer (a path of `open_paths`), or None when it is not open."""
        ...

    async def ask_permission(self, request: PermissionRequest) -> PermissionAnswer:
        """Ask the user; never raises, except when it is cancelled."""
        ...


class Place(msgspec.Struct, frozen=True):
    """Where a path really leads."""

    given: str
    """The path as it was asked for."""
    path: Path
    """The real path: absolute, without links and `..`."""
    root: Path | None
    """The real path of the workspace root it lies in; None outside the workspace."""


class Workspace:
    """The roots of one editor and its open buffers."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor

    def roots(self) -> list[Path]:
        """The real paths of the roots, in the editor's order; the first is the main one."""
        real = (Path(os.path.realpath(root)) for root in self._editor.workspace_roots())
        return list(dict.fromkeys(real))

    def locate(self, given: str) -> Place:
        """Where a path, a relative path or a `file://` URI really leads.

        A relative path is looked for in each root. Raises ToolError for what is no path at all.
        """
        raise NotImplementedError

    def inside(self, given: str) -> Place:
        """The place of a path in the workspace; raises ToolError outside."""
        raise NotImplementedError

    def open_buffers(self) -> dict[Path, Path]:
        """The real path of every open buffer that lies in the workspace → the editor's name."""
        raise NotImplementedError

    def live_text(self, path: Path) -> str | None:
        """The text of the buffer that shows the file with this real path, or None."""
        raise NotImplementedError

    def open_file(self, place: Place) -> BinaryIO:
        """Open a regular file inside the workspace for reading, and nothing else.

        No link is followed on the way, so that a link put there after `locate` leads nowhere.
        """
        raise NotImplementedError

    def shown(self, path: Path) -> str:
        """The path as a model gets to see it: relative to the main root where it is in it."""
        raise NotImplementedError
