"""The tools that look at files, `read_file` and `list_files`; FILE_TOOLS has the searches too.

What is open in the editor is read as the editor holds it, saved or not.
"""

from typing import Any

from tiro.errors import ToolError
from tiro.tools.file_text import FileText, file_text, image_on_disk
from tiro.tools.search import search_tools
from tiro.tools.text import cut_line, split_lines
from tiro.tools.tool import ROOM_FOR_MARKS, Tool, ToolOutput, ToolRun, object_schema, run_in_thread
from tiro.tools.walk import Entry, Walk, new_buffers
from tiro.tools.workspace import Place, Workspace, shown_name

MAX_LINES = 2000
MAX_LINE_CHARS = 2000
MAX_ENTRIES = 500

READ_FILE = (
    "Read a file of the workspace: text with line numbers, or an image (PNG, JPEG, GIF, WebP)."
    " Unsaved changes in the editor are included. Use start_line and end_line for large files."
)
LIST_FILES = (
    "List a folder of the workspace. Folders end in /; what .gitignore leaves out is marked and"
    " not entered."
)
READ_DENIED = "The rules do not allow to read {given!r}; nothing was read"
BEYOND_THE_END = "{given!r} has only {total:,} lines; nothing was read. Ask for lines 1 to {total}"
IMAGE = "{name} ({image.kind} image, {image.width} x {image.height} pixels, {size:,} bytes)"
WRONG_RANGE = "`end_line` ({end}) is before `start_line` ({start}); nothing was read"
MORE_LINES = "[More: this was up to line {last:,} of {total:,}. Go on with start_line {next}.]"
MORE_ENTRIES = "[More: only the first {shown:,} entries are shown. List a folder further down.]"

_PATH = {
    "type": "string",
    "minLength": 1,
    "description": "Relative to the workspace, or absolute",
}
_READ_FILE_INPUT = {
    "path": _PATH,
    "start_line": {"type": "integer", "minimum": 1, "default": 1, "description": "Default 1"},
    "end_line": {
        "type": "integer",
        "minimum": 1,
        "description": f"Default: {MAX_LINES} lines further",
    },
}
_LIST_FILES_INPUT = {
    "path": {**_PATH, "default": ".", "description": "Default: the workspace"},
    "depth": {
        "type": "integer",
        "minimum": 1,
        "maximum": 10,
        "default": 1,
        "description": "Levels of folders, default 1",
    },
}


def file_tools() -> list[Tool]:
    """The tools of this file."""
    return [
        Tool(
            name="read_file",
            description=READ_FILE,
            input_schema=object_schema(_READ_FILE_INPUT, "path"),
            effect="read",
            permission_key="read",
            subject_field="path",
            run=_read_file,
        ),
        Tool(
            name="list_files",
            description=LIST_FILES,
            input_schema=object_schema(_LIST_FILES_INPUT),
            effect="read",
            permission_key="read",
            subject_field="path",
            run=_list_files,
        ),
    ]


async def _read_file(given: dict[str, Any], run: ToolRun) -> ToolOutput:
    return await run_in_thread(run, _read, given, run)


async def _list_files(given: dict[str, Any], run: ToolRun) -> ToolOutput:
    return ToolOutput(await run_in_thread(run, _list, given, run))


def _read(given: dict[str, Any], run: ToolRun) -> ToolOutput:
    place = run.workspace.inside(given["path"])
    if not run.may_read(place.path):
        raise ToolError(READ_DENIED.format(given=place.given))
    image = image_on_disk(run.workspace, place)
    if image is not None:
        told = IMAGE.format(name=run.workspace.shown(place.path), size=len(image.data), image=image)
        return ToolOutput(told, images=(image.block(),))
    return ToolOutput(_read_lines(place, given, run))


def _read_lines(place: Place, given: dict[str, Any], run: ToolRun) -> str:
    found = file_text(run.workspace, place)
    lines = split_lines(found.text)
    first = given.get("start_line", 1)
    last = given.get("end_line", first + MAX_LINES - 1)
    if last < first:
        raise ToolError(WRONG_RANGE.format(start=first, end=last))
    if first > max(1, len(lines)):
        raise ToolError(BEYOND_THE_END.format(given=place.given, total=len(lines)))
    room = run.max_output_chars - ROOM_FOR_MARKS
    shown, last_shown = _numbered(lines, first, min(last, first + MAX_LINES - 1), room)
    run.seen.note(place.path, found.text, first, last_shown)
    parts = [_heading(run.workspace, place, found, first, last_shown, len(lines)), *shown]
    if last_shown < min(last, len(lines)) or ("end_line" not in given and last_shown < len(lines)):
        parts.append(MORE_LINES.format(last=last_shown, total=len(lines), next=last_shown + 1))
    return "\n".join(parts)


def _numbered(lines: list[str], first: int, last: int, room: int) -> tuple[list[str], int]:
    """The lines with their numbers, as far as they may be shown, and the number of the last one."""
    shown: list[str] = []
    length, number = 0, first - 1
    for number, line in enumerate(lines[first - 1 : last], first):
        text = f"{number:>6}\t{cut_line(line, MAX_LINE_CHARS)}"
        length += len(text) + 1
        if shown and length > room:
            return shown, number - 1
        shown.append(text)
    return shown, number


def _heading(
    workspace: Workspace, place: Place, found: FileText, first: int, last: int, total: int
) -> str:
    facts = [f"lines {first}-{last} of {total}" if total else "empty"]
    facts.append(f"{found.encoding}, a guess" if found.is_guess else found.encoding)
    if "\r" in found.text:
        facts.append("with CR line ends" if "\r\n" not in found.text else "with CRLF line ends")
    if found.is_unsaved:
        facts.append("unsaved text of the open editor buffer, not what is on the disk")
    return f"{workspace.shown(place.path)} ({', '.join(facts)})"


def _list(given: dict[str, Any], run: ToolRun) -> str:
    workspace = run.workspace
    base = workspace.inside(given.get("path", "."))
    depth = given.get("depth", 1)
    walk = Walk(workspace, base, run.cancelled, max_depth=depth)
    shown: list[str] = []
    is_cut = False
    for entry in walk:
        is_cut = len(shown) >= MAX_ENTRIES
        if is_cut:
            break
        shown.append(_listed(workspace, entry, base))
    for path in new_buffers(workspace, base):
        if len(path.relative_to(base.path).parts) <= depth:
            name = shown_name(path.relative_to(base.path).as_posix())
            shown.append(f"{name} (open in the editor, not saved yet)")
    if is_cut or not walk.is_complete:
        shown.append(MORE_ENTRIES.format(shown=len(shown)))
    heading = f"{workspace.shown(base.path)}/" + ("" if shown else " (empty)")
    return "\n".join([heading, *shown])


def _listed(workspace: Workspace, entry: Entry, base: Place) -> str:
    """One line of a list."""
    name = shown_name(entry.path.relative_to(base.path).as_posix())
    if entry.kind == "directory":
        name += "/"
    elif entry.kind == "link":
        place = entry.place(workspace)
        target = workspace.shown(place.path) if place else "outside the workspace"
        name += f" -> {target}"
    elif entry.kind == "other":
        name += " (no regular file)"
    return f"{name} (left out by .gitignore)" if entry.is_left_out else name


FILE_TOOLS: tuple[Tool, ...] = (*file_tools(), *search_tools())
"""Every tool that reads the workspace."""
