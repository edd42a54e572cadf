"""The tools that write files: `write_file`, `edit_file`, `multi_edit`.

Law: what is written replaces exactly the text from which the preview was made; a text that moved on
in between, or since the model read it, is not overwritten. All of an edit is made, or nothing.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from tiro.errors import EditConflictError, ToolError
from tiro.session.finished import finished
from tiro.session.hidden import visible
from tiro.session.secrets import REDACTED
from tiro.tools.diff import keep_line_ends, unified_diff
from tiro.tools.file_text import FileText
from tiro.tools.matching import Replacement, replaced
from tiro.tools.silent_disk import in_thread
from tiro.tools.text import plain_lines, split_lines
from tiro.tools.tool import Tool, ToolOutput, ToolRun, object_schema, run_in_thread
from tiro.tools.workspace import Place
from tiro.tools.writing import check_writable, current, put_text

WRITE_FILE = (
    "Write a whole text file: a new one with the folders above it, or one whose lines you have all"
    " read in this turn. To change a part use edit_file."
)
EDIT_FILE = (
    "Replace a text in a file. old_text must be exactly what the file holds, indentation included,"
    " and occur once; with count it must occur so many times, and all are replaced. Line ends and"
    " encoding are kept."
)
MULTI_EDIT = (
    "Make several replacements in one file, in order: each sees the text as the one before has left"
    " it. All are made, or none."
)
NO_FILE = "There is no {given!r}; nothing was changed. To make it use write_file"
NOT_READ = "{given!r} exists, and you have not read all of it in this turn; nothing was written"
STALE = (
    "{given!r} was changed since you read it; nothing was written. Read it again, then decide"
    " whether the edit still fits"
)
HAS_SECRET = (
    "{given!r} holds a secret, which you were shown as "
    f"{REDACTED}; nothing was written. Leave the secret where it is: change the text around it"
    " with edit_file"
)
SAME_TEXT = "{name} holds this text already; nothing was written"
WRITTEN = "{name} is {what} ({added:+} {removed:+} lines, {total:,} now)"
IN_EDIT = "In edit {number} of {total}: {why}"

_PATH = {
    "type": "string",
    "minLength": 1,
    "description": "Relative to the workspace, or absolute",
}
_REPLACEMENT = {
    "old_text": {"type": "string", "minLength": 1},
    "new_text": {"type": "string"},
    "count": {"type": "integer", "minimum": 1, "default": 1, "description": "Default 1"},
}


class Plan(msgspec.Struct, frozen=True):
    """What is to be written in the place of what was seen."""

    place: Place
    name: str
    seen: FileText | None
    text: str


def edit_tools() -> list[Tool]:
    """The tools of this file."""
    edits = {
        "type": "array",
        "maxItems": 100,
        "items": object_schema(_REPLACEMENT, "old_text", "new_text"),
    }
    return [
        _tool("write_file", WRITE_FILE, "write", {"content": {"type": "string"}}, _whole),
        _tool("edit_file", EDIT_FILE, "edit", _REPLACEMENT, _edited),
        _tool("multi_edit", MULTI_EDIT, "edit", {"edits": edits}, _edited),
    ]


Making = Callable[[dict[str, Any], ToolRun, Place, FileText | None], str]
"""Makes the new text of a file from the input and what is there; ToolError says why it cannot."""


def _tool(name: str, description: str, key: str, fields: dict[str, Any], make: Making) -> Tool:
    required = [field for field in fields if field != "count"]

    async def preview(given: dict[str, Any], run: ToolRun) -> str | None:
        plan = run.notes["plan"] = await _planned(given, run, make)
        old = None if plan.seen is None else plan.seen.text
        if old == plan.text:
            return None
        return await run_in_thread(run, unified_diff, plan.name, old, plan.text)

    async def write(given: dict[str, Any], run: ToolRun) -> ToolOutput:
        plan = run.notes.get("plan") or await _planned(given, run, make)
        return ToolOutput(await _written(plan, run))

    return Tool(
        name=name,
        description=description,
        input_schema=object_schema({"path": _PATH, **fields}, "path", *required),
        effect="write",
        permission_key=key,
        subject_field="path",
        run=write,
        preview=preview,
    )


async def _planned(given: dict[str, Any], run: ToolRun, make: Making) -> Plan:
    """What the input would make of the file as it is right now; changes nothing."""
    place = await in_thread(run.workspace.inside, given["path"])
    seen = await current(run.workspace, place)
    if seen is not None and run.seen.has_changed(place.path, seen.text):
        raise ToolError(STALE.format(given=place.given))
    if seen is not None and seen.live is None:
        await in_thread(check_writable, place, seen)
    text = await run_in_thread(run, make, given, run, place, seen)
    if seen is not None and text.count(REDACTED) > seen.text.count(REDACTED):
        _check_secret(run, place, seen)
    name = await in_thread(run.workspace.shown, place.path)
    return Plan(place, visible(name).replace("\n", "\\n"), seen, text)


async def _written(plan: Plan, run: ToolRun) -> str:
    """Write it, recorded so that it can be undone; what was done, for the model."""
    path, before = plan.place.path, None if plan.seen is None else plan.seen.text
    if before == plan.text:
        return SAME_TEXT.format(name=plan.name)
    async with run.edits.changing(path):
        edit = await run.edits.record(path, plan.seen, plan.text)
        try:
            note = await put_text(run.workspace, plan.place, plan.seen, plan.text)
        except (ToolError, EditConflictError) as error:
            if error.data.get("outcome") != "unknown":
                await run.edits.failed(edit.id)
            raise ToolError(str(error)) from error
        except asyncio.CancelledError:
            await finished(_take_back(edit.id, plan, run))
            raise
    if before is None:
        run.seen.note(path, plan.text)
    else:
        run.seen.replace(path, before, plan.text)
    told = WRITTEN.format(
        name=plan.name,
        what="changed" if before is not None else "made",
        added=edit.added,
        removed=-edit.removed,
        total=len(split_lines(plan.text)),
    )
    return told if note is None else f"{told}; {note}"


async def _take_back(edit_id: str, plan: Plan, run: ToolRun) -> None:
    """Note that a write which was cancelled did not happen, where that is so."""
    if await _is_untouched(plan, run):
        await run.edits.failed(edit_id)


async def _is_untouched(plan: Plan, run: ToolRun) -> bool:
    """Whether a write that was cancelled did not happen; an editor may still make its change."""
    try:
        now = await current(run.workspace, plan.place)
    except ToolError:
        return False
    if now is not None and now.live is not None:
        return False
    return (now and now.text) == (plan.seen and plan.seen.text)


def _whole(given: dict[str, Any], run: ToolRun, place: Place, seen: FileText | None) -> str:
    """The content; in the place of another text only when all of that was read."""
    content: str = given["content"]
    if seen is None:
        return content
    if not run.seen.has_all(place.path, seen.text):
        raise ToolError(NOT_READ.format(given=place.given))
    return keep_line_ends(content, seen.text)


def _check_secret(run: ToolRun, place: Place, seen: FileText) -> None:
    """Raise ToolError where a mark may stand for a secret that is really in the file."""
    if run.secrets.text(seen.text) != seen.text:
        raise ToolError(HAS_SECRET.format(given=place.given))


def _edited(given: dict[str, Any], run: ToolRun, place: Place, seen: FileText | None) -> str:
    """The text after one or several replacements."""
    if seen is None:
        raise ToolError(NO_FILE.format(given=place.given))
    edits = given.get("edits", [given])
    text, may_show = plain_lines(seen.text), run.may_read(place.path)
    for number, edit in enumerate(edits, 1):
        wanted = Replacement(
            plain_lines(edit["old_text"]), plain_lines(edit["new_text"]), edit.get("count") or 1
        )
        try:
            text = replaced(text, wanted, repr(place.given), may_show=may_show)
        except ToolError as error:
            if REDACTED in wanted.old_text:
                _check_secret(run, place, seen)
            if len(edits) == 1:
                raise
            told = IN_EDIT.format(number=number, total=len(edits), why=error)
            raise ToolError(told) from error
    return keep_line_ends(text, seen.text)
