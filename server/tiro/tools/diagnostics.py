"""The tool `diagnostics`: what the editor finds wrong in the files of the workspace right now."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tiro.errors import ToolError
from tiro.tools.editor import Diagnostic
from tiro.tools.tool import ROOM_FOR_MARKS, Tool, ToolOutput, ToolRun, object_schema, run_in_thread
from tiro.tools.workspace import Workspace

DIAGNOSTICS = (
    "Get the problems (errors, warnings, hints) that the editor shows now, in the workspace or in"
    " one file. They may lag a few seconds behind an edit, and an editor knows only of files that"
    " it has looked at."
)
NO_ANSWER = "The editor did not tell its diagnostics; look for problems by running the checks"
NONE = "(no problems are shown{where})"
MORE = "[More: only the first {shown:,} of {total:,} are shown. Ask for one file.]"

SEVERITIES = ("error", "warning", "information", "hint")


def diagnostics_tools() -> list[Tool]:
    """The tool of this file; for editors that can be asked."""
    return [
        Tool(
            name="diagnostics",
            description=DIAGNOSTICS,
            input_schema=object_schema(
                {
                    "path": {
                        "type": "string",
                        "minLength": 1,
                        "description": "Default: all files",
                    }
                },
            ),
            effect="read",
            permission_key="read",
            subject_field="path",
            run=_diagnostics,
        )
    ]


async def _diagnostics(given: dict[str, Any], run: ToolRun) -> ToolOutput:
    only, named = None, None
    if "path" in given:
        only, named = await run_in_thread(run, _named, given["path"], run.workspace)
    found = await run.workspace.diagnostics(named)
    if found is None:
        raise ToolError(NO_ANSWER)
    return ToolOutput(await run_in_thread(run, _told, found, only, run))


def _named(given: str, workspace: Workspace) -> tuple[Path, Path]:
    """The real path of a file, and the editor's name for it."""
    path = workspace.inside(given).path
    return path, workspace.open_buffers().get(path, path)


def _told(found: Sequence[Diagnostic], only: Path | None, run: ToolRun) -> str:
    """The diagnostics of files that may be shown, worst first, as far as there is room."""
    shown = []
    for one in found:
        path = Path(os.path.realpath(one.path))
        if _may_show(path, only, run):
            rank = SEVERITIES.index(one.severity)
            shown.append((rank, run.workspace.shown(path), one.line, one.column, _text(one)))
    if not shown:
        where = "" if only is None else f" in {run.workspace.shown(only)}"
        return NONE.format(where=where)
    lines: list[str] = []
    room = run.max_output_chars - ROOM_FOR_MARKS
    for _, name, line, column, text in sorted(shown):
        told = f"{name}:{line + 1}:{column + 1}: {text}"
        room -= len(told) + 1
        if lines and room < 0:
            lines.append(MORE.format(shown=len(lines), total=len(shown)))
            break
        lines.append(told)
    return "\n".join(lines)


def _may_show(path: Path, only: Path | None, run: ToolRun) -> bool:
    """Whether it is the file asked for, or one of the workspace that the rules let be read."""
    if only is not None and path != only:
        return False
    inside = any(path.is_relative_to(root) for root in run.workspace.roots())
    return (inside or path == only) and run.may_read(path)


def _text(one: Diagnostic) -> str:
    origin = " ".join(filter(None, (one.source, one.code)))
    message = " ".join(one.message.split())
    return f"{one.severity}: {message}" + (f" [{origin}]" if origin else "")
