"""The tool `run_command`: a command line for the shell, run where nobody can answer it.

It gets no stdin, an environment in which nothing asks, and a limit of time; at the limit and when
the turn is cancelled everything that it has started is ended. A process that it leaves in the
background runs on until the server ends, and the model is told so.
"""

import asyncio
import os
import shutil
import signal
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tiro.errors import ToolError
from tiro.session.hidden import visible
from tiro.tools.command import Command, Ended
from tiro.tools.command_core import within_git
from tiro.tools.command_line import parse_with_globs
from tiro.tools.environment import (
    absolute_path,
    command_environment,
    reading_environment,
)
from tiro.tools.file_text import unsaved_files
from tiro.tools.long_output import LongOutput
from tiro.tools.printed import Printed
from tiro.tools.readers import only_reads
from tiro.tools.tool import (
    Tool,
    ToolOutput,
    ToolRun,
    object_schema,
    run_in_thread,
    while_disks_answer,
)
from tiro.tools.workspace import Workspace

DEFAULT_SECONDS = 120
MAX_SECONDS = 600
MAX_COMMAND_CHARS = 30_000

RUN_COMMAND = (
    "Run a command line in a shell (bash where there is one) in the workspace folder, and get what"
    " it prints, stdout and stderr together, and its exit code. It has no stdin: nobody can answer"
    f" it. After {DEFAULT_SECONDS} seconds, or timeout_seconds, it is ended with all that it"
    " started; start what takes longer in the background with its output in a file. Each command"
    " has a shell of its own: directory and variables are not kept."
)
NOT_HERE = "Commands cannot be run on this system yet; nothing was run. Ask the user to run it"
NUL = "`command` holds a NUL character, which no command can; nothing was run"
EXIT_CODE = "[exit code {code}]"
ENDED_BY = "[ended by the signal {name}]"
TIMED_OUT = (
    "[timed out after {seconds} seconds: the command was ended with all that it had started. Give"
    f" it more `timeout_seconds` (at most {MAX_SECONDS}), or start it in the background]"
)
IN_BACKGROUND = (
    "[still running in the background: process {pids}; its further output is not kept, and it ends"
    " with the assistant's server]"
)
UNSAVED = (
    "[the command did not see what the editor shows: {files} {verb} unsaved changes; where that"
    " matters ask the user to save, then run it again]"
)
MOST_NAMED = 10
"""So many unsaved files are named; of the others it is told how many there are."""
OUT_OF_SIGHT = "[something still runs in the background; its further output is not kept]"

_INPUT = {
    "command": {
        "type": "string",
        "minLength": 1,
        "maxLength": MAX_COMMAND_CHARS,
    },
    "cwd": {
        "type": "string",
        "minLength": 1,
        "default": ".",
        "description": "Default: the workspace folder",
    },
    "timeout_seconds": {
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_SECONDS,
        "default": DEFAULT_SECONDS,
        "description": f"Default {DEFAULT_SECONDS}",
    },
}


def shell_tools(keys: Collection[str] = (), allowed: Collection[str] = ()) -> list[Tool]:
    """The tool of this file; no command gets to see an environment variable with a secret.

    Those named in `keys` hold one by their purpose; `allowed` are passed on all the same.
    """

    async def run_command(given: dict[str, Any], run: ToolRun) -> ToolOutput:
        environment = command_environment(os.environ, run.secrets, keys, allowed)
        if is_reading(given["command"]):
            environment = reading_environment(environment)
        return await _run_command(given, run, environment)

    return [
        Tool(
            name="run_command",
            description=RUN_COMMAND,
            input_schema=object_schema(_INPUT, "command"),
            effect="execute",
            permission_key="bash",
            subject_field="command",
            preview=_preview,
            run=run_command,
        )
    ]


def is_reading(command: str) -> bool:
    """Whether all of a command line is known to only read, so that it needs nothing more."""
    line = parse_with_globs(command)
    return line.unplain is None and all(map(_is_reading, line.commands))


def _is_reading(words: Sequence[str]) -> bool:
    """Of git only what needs no text of files from elsewhere."""
    core, _ = within_git(words)
    deep = core[0] != "git" or core[1:2] in (["diff"], ("diff",))
    return only_reads(words, deep=deep) is not None


async def _preview(given: dict[str, Any], run: ToolRun) -> str:
    """Exactly what will run, and where when that is not the workspace folder."""
    shown = visible(given["command"])
    return f"{shown}\n[in {visible(given['cwd'])}]" if "cwd" in given else shown


async def _run_command(
    given: dict[str, Any], run: ToolRun, environment: Mapping[str, str]
) -> ToolOutput:
    if os.name != "posix":
        raise ToolError(NOT_HERE)
    if "\0" in given["command"]:
        raise ToolError(NUL)
    seconds = given.get("timeout_seconds", DEFAULT_SECONDS)
    printed = Printed(run.on_output, whole=LongOutput(run.keep_output))
    run.tell_so_far(printed.text)
    looking = run_in_thread(run, _looked, run.workspace, given.get("cwd", "."))
    unsaved, directory = await while_disks_answer(looking, run.workspace, run.patience)
    try:
        shell = shutil.which("bash", path=absolute_path(environment)) or "/bin/sh"
        argv = [shell, "-c", given["command"]]
        command = Command(argv, directory, environment, printed.add)
    finally:
        os.close(directory)
    ended, timed_out = await _end_of(command, seconds)
    notes = [TIMED_OUT.format(seconds=seconds) if timed_out else _how(ended.status)]
    notes += [] if timed_out else _left_running(ended)
    notes += [_unsaved(unsaved)] if unsaved else []
    text, whole = await printed.end(notes)
    return ToolOutput(text, timed_out, whole=whole)


def _looked(workspace: Workspace, cwd: str) -> tuple[Sequence[str], int]:
    """The unsaved files, and a descriptor of the directory to run in."""
    return unsaved_files(workspace), workspace.open_directory(workspace.inside(cwd))


async def _end_of(command: Command, seconds: float) -> tuple[Ended, bool]:
    """How the command ended, and whether it had to be ended because of the time."""
    try:
        async with asyncio.timeout(seconds):
            return await command.ended(), False
    except TimeoutError:
        command.end()
        return await command.ended(), True
    except asyncio.CancelledError:
        command.end()
        await command.ended()
        raise


def _how(status: int) -> str:
    if status >= 0:
        return EXIT_CODE.format(code=status)
    name = next((one.name for one in signal.Signals if one == -status), str(-status))
    return ENDED_BY.format(name=name)


def _left_running(ended: Ended) -> list[str]:
    if ended.background:
        return [IN_BACKGROUND.format(pids=", ".join(map(str, ended.background)))]
    return [OUT_OF_SIGHT] if ended.is_open else []


def _unsaved(files: Sequence[str]) -> str:
    named = [visible(name).replace("\n", "\u240a") for name in files[:MOST_NAMED]]
    more = len(files) - len(named)
    listed = ", ".join([*named, *([f"{more} more"] if more else [])])
    return UNSAVED.format(files=listed, verb="has" if len(files) == 1 else "have")
