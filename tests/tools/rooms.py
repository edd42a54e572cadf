"""Workspaces for tests: a folder, buffers on top of it, and tools run in it."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fakes import RecordingEditor
from tiro.errors import ToolError
from tiro.tools.files import FILE_TOOLS
from tiro.tools.tool import ToolRun, check_input
from tiro.tools.workspace import Workspace

TOOLS = {tool.name: tool for tool in FILE_TOOLS}


def a_workspace(*roots: Path, buffers: dict[Path, str] | None = None) -> Workspace:
    """A workspace of these folders, with these texts open in the editor."""
    return Workspace(RecordingEditor(*roots, buffers=buffers))


def a_run(workspace: Workspace, may_read: Callable[[Path], bool] = lambda _: True) -> ToolRun:
    """What a tool is run with."""
    return ToolRun(
        tool_use_id="c1",
        workspace=workspace,
        may_read=may_read,
        on_output=lambda _: None,
        cancelled=threading.Event(),
    )


def answer(
    workspace: Workspace,
    name: str,
    *,
    may_read: Callable[[Path], bool] = lambda _: True,
    **given: Any,
) -> str:
    """What a tool answers; a ToolError as its text."""
    tool = TOOLS[name]
    try:
        checked = check_input(tool.input_schema, given)
        return asyncio.run(_run(tool.run, checked, a_run(workspace, may_read)))
    except ToolError as error:
        return f"ToolError: {error}"


async def _run(run: Any, given: dict[str, Any], tool_run: ToolRun) -> str:
    output = await run(given, tool_run)
    return str(output.content)


def write(root: Path, **files: str | bytes) -> None:
    """Make files; `__` in a name stands for a slash, and one more suffix is no problem."""
    for name, content in files.items():
        put(root, name.replace("__", "/"), content)


def put(root: Path, name: str, content: str | bytes = "") -> Path:
    """Make one file with the folders above it."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
