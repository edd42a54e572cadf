"""The command line: arguments in, exit codes out; each command's part is imported inside it.

Answers go to stdout, everything about them to stderr. A wrong command line is one sentence and
exit code 2, an error that Tiro raises on purpose one sentence and exit code 1; so is what the
system refuses.
"""

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tiro import __version__, output
from tiro.arguments import (
    DESCRIPTION,
    DOCTOR_EXAMPLES,
    EXAMPLES,
    REPLAY_EXAMPLES,
    SCHEMA_EXAMPLES,
    SERVE_EXAMPLES,
    CommandParser,
    Commands,
    add_command,
    count,
    described,
    existing_file,
    parsed,
    show_help_alone,
)
from tiro.commands.edits import add_edits
from tiro.commands.local import add_local
from tiro.commands.questions import add_ask, add_chat
from tiro.commands.sessions import add_sessions
from tiro.errors import InvalidInputError, StorageError, TiroError, refused_by_system
from tiro.exits import Ending, Exit, as_failure, exit_of

if TYPE_CHECKING:
    from tiro.protocol.recorded import RecordedConnection

YOUNG_ONLY = 20_000, 1_000, 1_000
"""While a server loads: what it loads stays, and going over it again costs a third of the start."""


def main(words: Sequence[str] | None = None) -> int:
    """Run the command that these words (or the process's own) name; returns the exit code."""
    try:
        with Ending():
            return _run(words)
    except KeyboardInterrupt:
        return Exit.CANCELLED
    except BrokenPipeError:  # `tiro sessions list | head`: nobody reads on
        output.drop()
        return Exit.UNREAD
    except (TiroError, OSError) as error:
        ours = error if isinstance(error, TiroError) else refused_by_system(error)
        output.note(f"tiro: {ours}")
        return exit_of(ours)


def _run(words: Sequence[str] | None) -> int:
    if not sys.stderr:  # `tiro … 2>&-`
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (it is open to the end)
    if not sys.stdout:  # `tiro … >&-`
        raise StorageError("Stdout is closed; send it to a file or to /dev/null")
    try:
        given = parsed(parser(), words)
        code: int = given.act(given)
    except SystemExit as end:  # argparse has said what there is to say
        code = int(end.code or 0)
    output.flush()
    return code


# --- the commands --------------------------------------------------------------------------


def serve(given: argparse.Namespace) -> int:
    """Speak the protocol over stdio until the editor says exit or goes away."""
    from tiro.protocol import frames

    stdio = frames.keep_stdio()  # before anything heavy is imported, and can print
    usual = gc.get_threshold()
    gc.set_threshold(*YOUNG_ONLY)

    from tiro.protocol import server

    recorded = _recorded(given.record) if given.record else None
    gc.freeze()
    gc.set_threshold(*usual)
    return server.main(stdio, recorded)


def replay(given: argparse.Namespace) -> int:
    """Play the provider's side of a recording until Ctrl-C."""
    from tiro.recording import play

    file = existing_file(given.file)
    with as_failure(InvalidInputError):  # it is no recording
        play.play(file, given.port, given.fast, given.provider, output.show, output.tell)
    return Exit.DONE


def doctor(given: argparse.Namespace) -> int:
    """What is configured and answers, and what to do next.

    3: no prompt works, 1: the configuration cannot be read, or nobody lists the model that it sets.
    """
    from tiro.doctor.examine import examine
    from tiro.doctor.report import report

    found = examine(_editor_settings(given.settings))
    if given.json:
        import msgspec

        output.write_json(msgspec.to_builtins(found))
    else:
        output.write(report(found))
    if not found.is_ready:
        return Exit.NO_MODEL
    return Exit.FAILED if found.is_config_broken or found.unlisted else Exit.DONE


def _editor_settings(text: str) -> dict[str, Any]:
    """The settings of an editor, which it gives as JSON."""
    import json

    try:
        given = json.loads(text)
    except ValueError as error:
        raise InvalidInputError(f"--settings is no JSON: {error}") from error
    if not isinstance(given, dict):
        raise InvalidInputError("--settings is no JSON object")
    return given


def schema(given: argparse.Namespace) -> int:
    """The JSON Schema of everything that goes over the wire."""
    import json

    from tiro.protocol import types

    output.write(json.dumps(types.schema(), indent=2) + "\n")
    return Exit.DONE


# --- the command line ----------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    root = CommandParser(prog="tiro", **described(DESCRIPTION, EXAMPLES))
    show_help_alone(root)
    root.add_argument("--version", action="version", version=f"tiro {__version__}")
    commands = root.add_subparsers(title="commands", metavar="COMMAND")
    _add_serve_and_replay(commands)
    add_ask(commands)
    add_chat(commands)
    add_sessions(commands)
    add_edits(commands)
    add_local(commands)
    about = "what is set up, and what to do next"
    one = add_command(commands, "doctor", doctor, about, DOCTOR_EXAMPLES)
    one.add_argument("--json", action="store_true", help="print all that was found as JSON")
    about = "what an editor sets, which beats the files"
    one.add_argument("--settings", metavar="JSON", help=about, default="{}")
    add_command(commands, "schema", schema, "print the protocol as JSON Schema", SCHEMA_EXAMPLES)
    return root


def _add_serve_and_replay(commands: Commands) -> None:
    about = "start the server; editors do this"
    one = add_command(commands, "serve", serve, about, SERVE_EXAMPLES)
    about = "a new file, or a directory for one, for all that goes over both wires"
    one.add_argument("--record", metavar="FILE", help=about)
    about = "play the provider's side of a recording"
    one = add_command(commands, "replay", replay, about, REPLAY_EXAMPLES)
    one.add_argument("file", help="what `tiro serve --record` made")
    one.add_argument("--port", type=count, default=0, help="where to listen (any free port)")
    one.add_argument("--fast", action="store_true", help="without the recorded pauses")
    one.add_argument("--provider", help="whose side, where several were asked")


# --- helpers -------------------------------------------------------------------------------


def _recorded(file: str) -> "RecordedConnection":
    from pathlib import Path

    from tiro.protocol.recorded import RecordedConnection

    return RecordedConnection(Path(file))
