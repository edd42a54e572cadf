"""Walking a workspace: all files and folders below a place, in a steady order.

Links are shown and not followed.
"""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from tiro.errors import ToolError
from tiro.tools.ignore import ALWAYS_LEFT_OUT, IGNORE_FILE, Ignore
from tiro.tools.replacing import is_temporary
from tiro.tools.text import split_lines
from tiro.tools.workspace import Place, Workspace

MAX_VISITED = 200_000
"""So many entries are looked at; then the walk ends, and says so."""

MAX_IGNORE_BYTES = 1_000_000
STOPPED = "The search was stopped"

EntryKind = Literal["file", "directory", "link", "other"]


class Entry(msgspec.Struct, frozen=True):
    """One thing that a walk has come upon."""

    path: Path
    """Where it stands; a link is not resolved."""
    parts: tuple[str, ...]
    """The parts of its path below the folder where the walk began."""
    root: Path | None
    """The workspace root it lies in; None outside the workspace."""
    kind: EntryKind
    is_left_out: bool = False
    """A .gitignore file says so; a folder that is left out is not entered."""

    def place(self, workspace: Workspace) -> Place | None:
        """Where it really is; None for a link that leads out of the workspace."""
        if self.kind != "link":
            return Place(str(self.path), self.path, self.root)
        found = workspace.locate(str(self.path))
        return found if found.root is not None else None


class Walk:
    """A walk below a folder, depth first, by name. Iterate over it once."""

    def __init__(
        self,
        workspace: Workspace,
        base: Place,
        cancelled: threading.Event,
        *,
        max_depth: int | None = None,
    ) -> None:
        self.is_complete = True
        """False when MAX_VISITED was reached."""
        self._workspace = workspace
        self._base = base
        self._cancelled = cancelled
        self._max_depth = max_depth
        self._visited = 0

    def __iter__(self) -> Iterator[Entry]:
        """Every entry below the base; left-out ones are marked, their content is not entered."""
        root = self._base.root or self._base.path
        parts = self._base.path.relative_to(root).parts
        ignore = Ignore()
        for depth in range(len(parts)):
            ignore = self._with_rules(ignore, root, parts[:depth])
        levels = [self._entries(root, parts, ignore)]
        while levels:
            step = next(levels[-1], None)
            if step is None:
                levels.pop()
                continue
            entry, ignore = step
            yield entry
            is_deeper = self._max_depth is None or len(levels) < self._max_depth
            if entry.kind == "directory" and not entry.is_left_out and is_deeper:
                levels.append(self._entries(root, (*parts, *entry.parts), ignore))

    def _entries(
        self, root: Path, parts: tuple[str, ...], above: Ignore
    ) -> Iterator[tuple[Entry, Ignore]]:
        """The entries of one folder, with the rules that hold in it."""
        ignore = self._with_rules(above, root, parts)
        folder = root.joinpath(*parts)
        below_base = parts[len(self._base.path.parts) - len(root.parts) :]
        try:
            found = self._workspace.names_in(Place(str(folder), folder, self._base.root))
        except ToolError:
            if not below_base:
                raise
            return
        for one in found:
            if self._cancelled.is_set():
                raise ToolError(STOPPED)
            if is_temporary(one.name):
                continue
            self._visited += 1
            if self._visited > MAX_VISITED:
                self.is_complete = False
                return
            kind = _kind_of(one)
            is_left_out = one.name in ALWAYS_LEFT_OUT or ignore.leaves_out(
                (*parts, one.name), is_directory=kind == "directory"
            )
            path, below = folder / one.name, (*below_base, one.name)
            yield Entry(path, below, self._base.root, kind, is_left_out), ignore

    def _with_rules(self, above: Ignore, root: Path, parts: tuple[str, ...]) -> Ignore:
        path = root.joinpath(*parts, IGNORE_FILE)
        try:
            with self._workspace.open_file(Place(IGNORE_FILE, path, self._base.root)) as file:
                data = file.read(MAX_IGNORE_BYTES)
        except (ToolError, OSError):
            return above
        lines = split_lines(data.decode("utf-8", "surrogateescape"))
        return above.below(len(parts), lines)


def _kind_of(entry: os.DirEntry[str]) -> EntryKind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "directory"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def new_buffers(workspace: Workspace, base: Place) -> list[Path]:
    """The open buffers below a place that have no file on the disk yet."""
    buffers = workspace.open_buffers()
    return sorted(
        path for path in buffers if path.is_relative_to(base.path) and not os.path.exists(path)
    )
