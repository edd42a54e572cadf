"""The workspace: which files tools may touch, and their text as the user sees it right now.

Law: a path counts by where it really leads (`..`, links and percent escapes resolved), never by how
it is written, and what an editor holds unsaved comes before what lies on the disk.
"""

import errno
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote_to_bytes, urlsplit

import msgspec

from tiro.errors import ToolError
from tiro.session.edits import Made
from tiro.tools.editor import Diagnostic, Editor
from tiro.tools.opening import UnfitError, opened_file, opened_folder

NO_WORKSPACE = "No workspace folder is open, so no file can be read; ask the user to open a folder"
OUTSIDE = (
    "{given!r} is outside the workspace (it leads to {real!r}); nothing was read."
    " Use a path inside {roots}"
)
NOT_THERE = "There is no {given!r}; use list_files or glob to find the right path"
NOT_OF_KIND = "{given!r} is {kind}; nothing was read"
UNREADABLE = "{given!r} cannot be read ({why})"
MOVED = "{given!r} changed while it was opened; nothing was read. Try again"
UNUSABLE_PATH = "{given!r} is not a usable path ({why}); give a path relative to the workspace"


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

    def __init__(
        self,
        editor: Editor,
        held: Sequence[Place] = (),
        edit_of: Callable[[Path], Made | None] = lambda path: None,
    ) -> None:
        self._editor = editor
        self.edit_of = edit_of
        """The newest edit of the file with this real path, where its encoding is not UTF-8."""
        self._held = {place.given: place for place in held}

    def held_to(self, places: Sequence[Place]) -> "Workspace":
        """The same workspace for a tool that may use these places, and as they are now.

        Their names lead there whatever becomes of them, also where that is outside the workspace.
        """
        return Workspace(self._editor, places, self.edit_of)

    def roots(self) -> list[Path]:
        """The real paths of the roots, in the editor's order; the first is the main one."""
        real = (Path(os.path.realpath(root)) for root in self._editor.workspace_roots())
        return list(dict.fromkeys(real))

    def locate(self, given: str) -> Place:
        """Where a path, a relative path or a `file://` URI really leads.

        A relative path is looked for in each root. Raises ToolError for what is no path at all.
        """
        if given in self._held:
            return self._held[given]
        roots = self.roots()
        written = _written_path(given)
        if os.path.isabs(written):
            candidates = [written]
        elif roots:
            candidates = [os.path.join(root, written) for root in roots]
        else:
            raise ToolError(NO_WORKSPACE)
        try:
            real = next(filter(os.path.lexists, candidates), None) or self._find(candidates)
            path = _as_listed(Path(os.path.realpath(real)))
        except OSError as error:  # a link that was one no more when it was followed
            raise ToolError(_told(given, error)) from error
        return Place(given, path, next((root for root in roots if path.is_relative_to(root)), None))

    def inside(self, given: str) -> Place:
        """The place of a path that may be used; raises ToolError outside the workspace."""
        place = self.locate(given)
        if place.root is None and given not in self._held:
            roots = ", ".join(map(str, self.roots())) or "(none is open)"
            raise ToolError(OUTSIDE.format(given=given, real=str(place.path), roots=roots))
        return place

    def named(self, path: Path) -> str:
        """A real path as patterns see it: relative to the root it lies in, else absolute."""
        return _below(path, self.roots()).as_posix()

    def full(self, given: str) -> Path:
        """A path as it is written, absolute, below the real roots; no link in it is followed."""
        roots, real = self._editor.workspace_roots(), self.roots()
        path = Path(os.path.normpath(os.path.join(real[0] if real else "/", _written_path(given))))
        root = next((root for root in roots if path.is_relative_to(root)), None)
        return path if root is None else Path(os.path.realpath(root), path.relative_to(root))

    def spelled(self, given: str) -> str:
        """A path in one spelling, by its words alone: no disk is asked."""
        roots = self._editor.workspace_roots()
        try:
            path = os.path.join(roots[0] if roots else "/", _written_path(given))
        except ToolError:
            return given
        return _below(Path("/" + os.path.normpath(path).lstrip("/")), roots).as_posix()

    def open_buffers(self) -> dict[Path, Path]:
        """The real path of every open buffer that lies in the workspace → the editor's name."""
        roots, buffers = self.roots(), {}
        for named in self._editor.open_paths():
            path = Path(os.path.realpath(named))
            if any(path.is_relative_to(root) for root in roots):
                buffers[path] = named
        return buffers

    def disks(self, *given: str) -> list[str]:
        """Paths on all disks that are asked for what lies at these: none of them is looked at here.

        Those of the roots, of what is open in the editor, and of the places that it is held to.
        """
        roots = list(map(str, self._editor.workspace_roots()))
        written = map(_written_path, given)
        named = [os.path.join(root, path) for path in written for root in roots or ["/"]]
        held = [str(place.path) for place in self._held.values()]
        opened = [os.path.dirname(path) for path in self._editor.open_paths()]
        return list(dict.fromkeys([*named, *held, *roots, *opened]))

    def live_text(self, path: Path) -> str | None:
        """The text of the buffer that shows the file with this real path, or None.

        Also outside the workspace: whether the file may be read is asked before.
        """
        named = self.buffer_of(path)
        return None if named is None else self._editor.open_text(named)

    def buffer_of(self, path: Path) -> Path | None:
        """The editor's name of the open buffer that shows the file with this real path."""
        shown = (p for p in self._editor.open_paths() if Path(os.path.realpath(p)) == path)
        return next(shown, None)

    def buffer_text(self, named: Path) -> str | None:
        """The text of an open buffer, by the editor's name for it."""
        return self._editor.open_text(named)

    @property
    def can_edit(self) -> bool:
        """Whether open buffers can be changed."""
        return self._editor.can_edit()

    async def apply_edit(self, named: Path, old: str, new: str) -> None:
        """Change the text of an open buffer, by the editor's name for it; raises as an Editor."""
        await self._editor.apply_edit(named, old, new)

    async def diagnostics(self, named: Path | None) -> list[Diagnostic] | None:
        """The problems that the editor shows, by its name for a file; None when it is silent."""
        return await self._editor.diagnostics(named)

    def open_file(self, place: Place) -> BinaryIO:
        """Open a regular file inside the workspace for reading, and nothing else.

        No link is followed on the way, so that a link put there after `locate` leads nowhere.
        """
        return os.fdopen(self._open(place, opened_file), "rb")

    def open_directory(self, place: Place) -> int:
        """A descriptor of a directory inside the workspace; no link is followed on the way."""
        return self._open(place, opened_folder)

    def names_in(self, place: Place) -> list[os.DirEntry[str]]:
        """The entries of a directory inside the workspace, sorted by name; no link is followed."""
        if os.scandir not in os.supports_fd:
            with os.scandir(place.path) as entries:
                return sorted(entries, key=lambda entry: entry.name)
        descriptor = self.open_directory(place)
        try:
            with os.scandir(descriptor) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
                for entry in found:
                    entry.is_dir(follow_symlinks=False)  # asks the disk while the folder is open
                return found
        finally:
            os.close(descriptor)

    def shown(self, path: Path) -> str:
        """The path as a model gets to see it: relative to the main root where it is in it."""
        roots = self.roots()
        main = roots[0] if roots and path.is_relative_to(roots[0]) else None
        return shown_name((path.relative_to(main) if main else path).as_posix())

    def _find(self, candidates: list[str]) -> str:
        """The candidate that is a new buffer, or whose undecodable name was shown like this."""
        for candidate in candidates:
            if Path(os.path.realpath(candidate)) in self.open_buffers():
                return candidate
        if "\ufffd" in candidates[0]:
            return next(filter(None, map(_undecodable, candidates)), candidates[0])
        return candidates[0]

    def _open(self, place: Place, opened: Callable[[Path, Path], int]) -> int:
        assert self._may_open(place), "only places that were looked at are opened"
        try:
            root = place.root or Path(place.path.anchor)
            return opened(root, place.path)
        except UnfitError as unfit:
            raise ToolError(NOT_OF_KIND.format(given=place.given, kind=unfit)) from unfit
        except OSError as error:
            raise ToolError(_told(place.given, error)) from error

    def _may_open(self, place: Place) -> bool:
        held = (one.path for one in self._held.values())
        return place.root is not None or any(place.path.is_relative_to(path) for path in held)


def shown_name(name: str) -> str:
    """A file name as text: each byte that is not UTF-8 is shown as U+FFFD."""
    return _ESCAPED_BYTE.sub("\ufffd", name)


_ESCAPED_BYTE = re.compile("[\ud800-\udfff]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_LONGEST_PATH = 4096


def _written_path(given: str) -> str:
    """The plain path that was written, as it is or as a `file://` URI; not yet resolved."""
    written = given
    if given.lower().startswith("file:"):
        written = _from_uri(given)
    elif _SCHEME.match(given) and "://" in given:
        raise _unusable(given, "only files can be read")
    if "\0" in written:
        raise _unusable(given, "it holds a NUL character")
    if not written.strip():
        raise _unusable(given, "it is empty")
    try:
        size = len(os.fsencode(written))
    except UnicodeEncodeError as error:
        raise _unusable(given, "it holds half a character") from error
    if size > _LONGEST_PATH:
        raise _unusable(given, "it is too long")
    return os.path.expanduser(written) if written.startswith("~") else written


def _from_uri(given: str) -> str:
    try:
        uri = urlsplit(given)
        path = os.fsdecode(unquote_to_bytes(os.fsencode(uri.path)))
    except ValueError as error:
        raise _unusable(given, "it is no valid URI") from error
    if uri.netloc.lower() not in ("", "localhost"):
        raise _unusable(given, "it names another machine")
    return path[1:] if re.match(r"/[A-Za-z]:", path) and os.name == "nt" else path


def _unusable(given: str, why: str) -> ToolError:
    short = given if len(given) <= 200 else given[:200] + "…"
    return ToolError(UNUSABLE_PATH.format(given=short, why=why))


def _below(path: Path, roots: Sequence[Path]) -> Path:
    """The path relative to the root it lies in, else as it is."""
    root = next((root for root in roots if path.is_relative_to(root)), None)
    return path if root is None else path.relative_to(root)


def _as_listed(path: Path) -> Path:
    """An existing real path, spelled as its folders list it: a disk may not mind case."""
    found = Path(path.anchor)
    for part in path.parts[1:]:
        found = found / (_listed_name(found, part) if part != part.swapcase() else part)
    return found


def _listed_name(folder: Path, name: str) -> str:
    """The name as the folder lists it, where another spelling leads to the same file."""
    try:
        if not os.path.samestat(os.lstat(folder / name), os.lstat(folder / name.swapcase())):
            return name
        names = os.listdir(folder)
    except OSError:
        return name
    alike = [one for one in names if one.casefold() == name.casefold()]
    return name if name in names or len(alike) != 1 else alike[0]


def _undecodable(written: str) -> str | None:
    """The one existing path that is shown as this text, or None."""
    found = Path(written).anchor
    for part in Path(written).parts[1:]:
        exact = os.path.join(found, part)
        if not os.path.lexists(exact) and "\ufffd" in part:
            try:
                names = [name for name in os.listdir(found) if shown_name(name) == part]
            except OSError:
                return None
            if len(names) != 1:
                return None
            exact = os.path.join(found, names[0])
        found = exact
    return found if os.path.lexists(found) else None


def _told(given: str, error: OSError) -> str:
    """The text of an error of the operating system, for the model."""
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return NOT_THERE.format(given=given)
    if error.errno in (errno.ELOOP, errno.EINVAL):
        return MOVED.format(given=given)
    if error.errno == errno.ENAMETOOLONG:
        return UNUSABLE_PATH.format(given=given[:200] + "…", why="a name in it is too long")
    return UNREADABLE.format(given=given, why=error.strerror or "unknown reason")
