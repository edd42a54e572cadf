"""The tools that search: `glob` for names, `grep` for text.

What .gitignore leaves out is not searched, links are not followed out of the workspace, and the
text of open buffers comes before that on the disk.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tiro.errors import ToolError
from tiro.tools.file_text import disk_text
from tiro.tools.matcher import Matcher
from tiro.tools.patterns import alternatives, path_pattern
from tiro.tools.tool import ROOM_FOR_MARKS, Tool, ToolOutput, ToolRun, object_schema, run_in_thread
from tiro.tools.walk import Entry, Walk, new_buffers
from tiro.tools.workspace import Place, Workspace

MAX_PATHS = 500
MAX_MATCHES = 1000
DEFAULT_MATCHES = 100
BATCH_CHARS = 1_000_000
BATCH_FILES = 200

GLOB = (
    "Find files by a pattern of their path: `*` within a name, `**` across folders, `{a,b}` for"
    " alternatives. A pattern without a slash finds the name in every folder."
)
GREP = (
    "Search the lines of text files for a Python regular expression. Unsaved changes in the editor"
    " are included."
)
BAD_PATTERN = "{pattern!r} is no usable pattern ({why}); nothing was searched"
DENIED = "{count} not searched: the rules do not allow to read them ({names})"
MAX_DENIED_SHOWN = 3
NO_FILES = "No file matches {pattern!r} in {base}"
MORE_PATHS = "[More: only the first {shown} files are shown. Use a narrower pattern.]"
MORE_MATCHES = (
    "[More: the search was stopped after {shown} matches. Use a narrower pattern or path.]"
)
INCOMPLETE = (
    "[The folder has too many entries; not all of them were searched. Search further down.]"
)

_PATH = {
    "type": "string",
    "minLength": 1,
    "default": ".",
    "description": "Folder; default: the workspace",
}


def search_tools() -> list[Tool]:
    """The tools that search: paths, and text in files."""
    return [glob_tool(), grep_tool()]


def glob_tool() -> Tool:
    """Files by the pattern of their path."""
    return Tool(
        name="glob",
        description=GLOB,
        input_schema=object_schema(
            {
                "pattern": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1000,
                    "description": "Such as `src/**/*.{ts,tsx}`",
                },
                "path": _PATH,
            },
            "pattern",
        ),
        effect="read",
        permission_key="glob",
        subject_field="path",
        run=_glob,
    )


def grep_tool() -> Tool:
    """Lines of files by a regular expression."""
    return Tool(
        name="grep",
        description=GREP,
        input_schema=object_schema(
            {
                "pattern": {"type": "string", "minLength": 1, "maxLength": 2000},
                "path": {**_PATH, "description": "Folder or file; default: the workspace"},
                "glob": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1000,
                    "description": "Only files that match, such as `*.py`",
                },
                "ignore_case": {"type": "boolean", "default": False},
                "context": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": 10,
                    "default": 0,
                    "description": "Lines around each match, default 0",
                },
                "max_matches": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_MATCHES,
                    "default": DEFAULT_MATCHES,
                    "description": f"Default {DEFAULT_MATCHES}",
                },
            },
            "pattern",
        ),
        effect="read",
        permission_key="grep",
        subject_field="path",
        run=_grep,
    )


async def _glob(given: dict[str, Any], run: ToolRun) -> ToolOutput:
    return ToolOutput(await run_in_thread(run, _find, given, run))


def _find(given: dict[str, Any], run: ToolRun) -> str:
    workspace = run.workspace
    base = workspace.inside(given.get("path", "."))
    walk = Walk(workspace, base, run.cancelled)
    wanted = _PathFilter(given["pattern"])
    found = [
        entry.path
        for entry in walk
        if not entry.is_left_out and wanted.takes(entry.parts) and _is_file(workspace, entry)
    ]
    buffers = [
        path
        for path in new_buffers(workspace, base)
        if wanted.takes(path.relative_to(base.path).parts)
    ]
    paths = sorted(filter(run.may_read, {*found, *buffers}), key=str)
    if not paths:
        return NO_FILES.format(pattern=given["pattern"], base=workspace.shown(base.path))
    lines = [workspace.shown(path) for path in paths[:MAX_PATHS]]
    if len(paths) > MAX_PATHS:
        lines.append(MORE_PATHS.format(shown=MAX_PATHS))
    if not walk.is_complete:
        lines.append(INCOMPLETE)
    return "\n".join(lines)


async def _grep(given: dict[str, Any], run: ToolRun) -> ToolOutput:
    search = await run_in_thread(run, _Search, given, run)
    matcher = Matcher(
        given["pattern"],
        ignore_case=given.get("ignore_case", False),
        context=given.get("context", 0),
    )
    async with matcher:
        while not search.is_full and (batch := await run_in_thread(run, search.next_batch)):
            found = await matcher.search([text for _, text in batch])
            for (path, _), lines in zip(batch, found, strict=True):
                search.add(path, lines)
    return ToolOutput(search.report())


def _is_file(workspace: Workspace, entry: Entry) -> bool:
    """Whether it is a file, or a link to a file of the workspace."""
    if entry.kind != "link":
        return entry.kind == "file"
    place = entry.place(workspace)
    return place is not None and os.path.isfile(place.path)


class _PathFilter:
    """Whether a path below a base matches a pattern with alternatives."""

    def __init__(self, pattern: str | None) -> None:
        try:
            choices = alternatives(pattern) if pattern else []
            self._patterns = [path_pattern(choice) for choice in choices]
        except (ValueError, re.error) as error:
            raise ToolError(BAD_PATTERN.format(pattern=pattern, why=error)) from error

    def takes(self, parts: Sequence[str]) -> bool:
        """Whether a path, by its parts below the base, fits; without a pattern every path does."""
        return not self._patterns or any(pattern.matches(parts) for pattern in self._patterns)


class _Search:
    """One grep: the files it goes through, and what it has found so far."""

    def __init__(self, given: dict[str, Any], run: ToolRun) -> None:
        self._given = given
        self._run = run
        self._base = run.workspace.inside(given.get("path", "."))
        self._wanted = _PathFilter(given.get("glob"))
        self._max_matches: int = given.get("max_matches", DEFAULT_MATCHES)
        self._walk = Walk(run.workspace, self._base, run.cancelled)
        self._texts = self._all_texts()
        self._room = run.max_output_chars - ROOM_FOR_MARKS
        self._lines: list[str] = []
        self._length = self._matches = self._files = 0
        self._searched = self._unreadable = 0
        self._denied: list[Path] = []
        self.is_full = False
        """No more matches can be shown."""

    def next_batch(self) -> list[tuple[Path, str]]:
        """The next files and their texts, about BATCH_CHARS of them; empty at the end."""
        batch: list[tuple[Path, str]] = []
        size = 0
        while size < BATCH_CHARS and len(batch) < BATCH_FILES:
            found = next(self._texts, None)
            if found is None:
                break
            batch.append(found)
            size += len(found[1])
        self._searched += len(batch)
        return batch

    def add(self, path: Path, lines: list[list[Any]]) -> None:
        """Take over the matching lines of one file, as far as they may be shown."""
        if not lines or self.is_full:
            return
        self._files += 1
        self._line(self._run.workspace.shown(path))
        before = 0
        for number, is_match, text in lines:
            self._matches += is_match
            if self._matches > self._max_matches or self._length > self._room:
                self._matches -= is_match
                self.is_full = True
                return
            if self._given.get("context") and before and number > before + 1:
                self._line("  --")
            self._line(f"  {number}{':' if is_match else '-'} {text}")
            before = number

    def report(self) -> str:
        """What was found, and what was not searched."""
        matches = f"{self._matches} {'match' if self._matches == 1 else 'matches'}"
        files = f"{self._files} {'file' if self._files == 1 else 'files'}"
        notes = [f"{matches} in {files} ({self._searched} searched)"]
        if self._unreadable:
            notes.append(f"{self._unreadable} not searched: binary, too large or not readable")
        if self._denied:
            notes.append(DENIED.format(count=len(self._denied), names=self._denied_names()))
        parts = ["; ".join(notes), *self._lines]
        if self.is_full:
            parts.append(MORE_MATCHES.format(shown=self._matches))
        if not self._walk.is_complete:
            parts.append(INCOMPLETE)
        return "\n".join(parts)

    def _denied_names(self) -> str:
        names = [self._run.workspace.shown(path) for path in self._denied[:MAX_DENIED_SHOWN]]
        return ", ".join([*names, *(["…"] if len(self._denied) > len(names) else [])])

    def _line(self, text: str) -> None:
        self._lines.append(text)
        self._length += len(text) + 1

    def _all_texts(self) -> Iterator[tuple[Path, str]]:
        """Every file that is to be searched, with the text that the user sees in it."""
        workspace = self._run.workspace
        live = workspace.open_buffers()
        for path in self._paths():
            if not self._run.may_read(path):
                self._denied.append(path)
                continue
            text = workspace.buffer_text(live[path]) if path in live else None
            if text is None:
                try:
                    text = disk_text(workspace, Place(str(path), path, self._base.root)).text
                except ToolError:
                    self._unreadable += 1
                    continue
            yield path, text

    def _paths(self) -> Iterator[Path]:
        base = self._base.path
        if not os.path.isdir(base):
            yield base
            return
        for entry in self._walk:
            if entry.kind == "file" and not entry.is_left_out and self._wanted.takes(entry.parts):
                yield entry.path
        for path in new_buffers(self._run.workspace, self._base):
            if self._wanted.takes(path.relative_to(base).parts):
                yield path
