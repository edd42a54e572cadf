"""The command line: arguments in, exit codes out; each command's part is imported inside it.

Answers go to stdout, everything about them to stderr. A wrong command line is one sentence and
exit code 2, an error that Tiro raises on purpose one sentence and exit code 1.
"""

import argparse
import contextlib
import gc
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tiro import __version__, output
from tiro.arguments import (
    ASK_EXAMPLES,
    CHAT_EXAMPLES,
    DESCRIPTION,
    DOCTOR_EXAMPLES,
    EDITS_EXAMPLES,
    EXAMPLES,
    LOCAL_EXAMPLES,
    REPLAY_EXAMPLES,
    SCHEMA_EXAMPLES,
    SERVE_EXAMPLES,
    SESSIONS_EXAMPLES,
    CommandParser,
    Commands,
    add_command,
    add_group,
    count,
    described,
    existing_file,
    from_stdin,
    show_help_alone,
    waiting_on_stdin,
)
from tiro.errors import InvalidInputError, ModelNotConfiguredError, StorageError, TiroError
from tiro.screen_text import flat, harmless

if TYPE_CHECKING:
    from tiro.models.local import LocalModels
    from tiro.models.model import Progress
    from tiro.protocol.recorded import RecordedConnection

YOUNG_ONLY = 20_000, 1_000, 1_000
"""While a server loads: what it loads stays, and going over it again costs a third of the start."""

DONE, FAILED, WRONG_USE, NO_MODEL, CANCELLED = 0, 1, 2, 3, 130

SESSION_ROW = "{:<26} {:<16} {:>8}  {}\n"
MODEL_ROW = "{} {:<22} {:>9}  {:<10}  {}\n"
NO_SESSION = "No session is saved yet; `tiro ask` or an editor begins one"


def main(words: Sequence[str] | None = None) -> int:
    """Run the command that these words (or the process's own) name; returns the exit code."""
    try:
        return _run(words)
    except KeyboardInterrupt:
        return CANCELLED
    except BrokenPipeError:  # `tiro sessions list | head`: nobody reads on
        output.drop()
        return DONE
    except TiroError as error:
        _say(f"tiro: {error}")
        return _code_of(error)


def _run(words: Sequence[str] | None) -> int:
    if not sys.stderr:  # `tiro … 2>&-`
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (it is open to the end)
    if not sys.stdout:  # `tiro … >&-`
        raise StorageError("Stdout is closed; send it to a file or to /dev/null")
    try:
        given = parser().parse_args(words)
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

    return play.play(given.file, given.port, given.fast, given.provider, output.show, output.tell)


def ask(given: argparse.Namespace) -> int:
    """Ask one question of a server started for it; the answer streams to stdout."""
    from tiro import terminal

    words = " ".join(given.question)
    text = from_stdin() if words == "-" else words
    if not text.strip():
        raise InvalidInputError("The question is empty")
    files = [existing_file(name) for name in given.file if name != "-"]
    piped = from_stdin() if words == "-" or "-" in given.file else waiting_on_stdin()
    question = terminal.Question(
        text=text,
        files=files,
        piped=piped,
        agent=given.agent,
        model=given.model,
        is_continued=given.go_on,
        as_json=given.json,
    )
    return DONE if terminal.ask(question) else CANCELLED


def chat(given: argparse.Namespace) -> int:
    """Talk in the terminal, or answer the lines of a pipe; the first failure is the exit code."""
    from tiro.chat.chat import Wishes, chat

    wishes = Wishes(
        files=[existing_file(name) for name in given.file],
        agent=given.agent,
        model=given.model,
        session=given.session,
    )
    error = chat(wishes)
    return DONE if error is None else _code_of(error)


def sessions_list(given: argparse.Namespace) -> int:
    """The saved sessions, newest first."""
    from tiro import terminal

    result = terminal.sessions(given.query, given.limit)
    if given.json:
        _print_json(result)
        return DONE
    _print_headings(SESSION_ROW, "ID", "SAVED (UTC)", "MESSAGES", "TITLE")
    for row in result["sessions"]:
        about = row["error"] or row["title"] or ""
        when = (row["savedAt"] or "")[:16].replace("T", " ")
        output.write(SESSION_ROW.format(flat(row["id"]), when, row["messages"], flat(about)))
    if not result["total"]:
        _say(f"No session has {given.query!r} in its id or title" if given.query else NO_SESSION)
    if left := result["total"] - len(result["sessions"]):
        _say(f"… and {left} more, see --limit")
    return DONE


def sessions_show(given: argparse.Namespace) -> int:
    """One saved session: all that was said, a line for each message, or all it holds."""
    from tiro import terminal

    if given.json:
        _print_json(terminal.session_view(given.id))
        return DONE
    shown = terminal.session_summary if given.summary else terminal.session_text
    output.write(f"{shown(given.id)}\n")
    return DONE


def sessions_delete(given: argparse.Namespace) -> int:
    """Delete saved sessions; 1 when one of them was not there."""
    from tiro import terminal

    if "latest" in given.id:
        raise InvalidInputError("delete wants an id, not `latest`; `tiro sessions list` shows them")
    missing = terminal.delete_sessions(given.id)
    for id in given.id:
        if id in missing:
            _say(f"tiro: There is no session {id!r}")
        else:
            output.write(f"{id} is deleted\n")
    return FAILED if missing else DONE


def sessions_search(given: argparse.Namespace) -> int:
    """Where something was said, the newest first; 1 when nowhere."""
    from tiro import terminal

    hits = terminal.search(given.query, given.limit)
    if given.json:
        _print_json(hits)
    else:
        output.write("".join(map(terminal.line_of, hits)))
    if not hits:
        _say(f"tiro: Nothing was said about {given.query!r}")
    return DONE if hits else FAILED


def edits_list(given: argparse.Namespace) -> int:
    """What tools have changed in files, the newest first."""
    from tiro import terminal

    found = terminal.edits(given.limit)
    if given.json:
        _print_json(found)
    else:
        output.write("".join(f"{terminal.line_of_edit(edit)}\n" for edit in found))
    if not found:
        _say("No tool has changed a file yet")
    return DONE


def edits_move(given: argparse.Namespace) -> int:
    """Take edits back, or make them again."""
    from tiro import terminal

    paths = terminal.move_edits(given.what, given.id)
    output.write(f"{given.done} in {terminal.told_paths(paths)}\n")
    return DONE


def sessions_export(given: argparse.Namespace) -> int:
    """A saved session in another format, on stdout or in a file."""
    from tiro import terminal
    from tiro.stores.formats import registry

    path = os.path.abspath(given.out) if given.out else None
    result = terminal.export(given.id, given.format or registry.name_for(path), path)
    if path:
        output.write(f"Exported to {result['path']}\n")
    else:
        output.write(result["text"].rstrip("\n") + "\n")
    return DONE


def sessions_import(given: argparse.Namespace) -> int:
    """A file as a session of its own; what was not taken over as it stood is told."""
    from tiro import terminal

    result = terminal.import_file(existing_file(given.file))
    if given.json:
        _print_json(result)
    else:
        output.write(f"{result['id']}: {result['total']} messages\n")
    for note in result.get("notes", ()):
        _say(note)
    return DONE


def local_list(given: argparse.Namespace) -> int:
    """The local models that are known or brought."""
    _print_headings(MODEL_ROW, " ", "NAME", "SIZE", "STATE", "ABOUT")
    with _local_models() as models:
        for row in models.list():
            mark = "*" if row.is_in_use else " "
            size = f"{row.bytes / 1e6:,.0f} MB"
            name, about = flat(row.name), flat(row.about)
            output.write(MODEL_ROW.format(mark, name, size, row.state, about))
    return DONE


def local_pull(given: argparse.Namespace) -> int:
    """Bring a local model, with its progress on stderr."""
    import asyncio

    from tiro.terminal import StatusLine

    line = StatusLine()
    with _local_models() as models:
        try:
            name = asyncio.run(models.pull(given.name, lambda step: line.show(_words_of(step))))
        finally:
            line.clear()
    output.write(f"{name} is ready\n")
    return DONE


def local_use(given: argparse.Namespace) -> int:
    """Choose the local model that answers when none is named."""
    with _local_models() as models:
        models.use(given.name)
    output.write(f"{given.name} answers from now on when a local model is asked\n")
    return DONE


def local_remove(given: argparse.Namespace) -> int:
    """Take a local model's file away."""
    with _local_models() as models:
        if not models.remove(given.name):
            if models.known(given.name):
                raise TiroError(f"{given.name} is not here, nothing to remove")
            raise TiroError(f"There is no local model {given.name!r}; `tiro local list` shows all")
    output.write(f"{given.name} is removed\n")
    return DONE


def doctor(given: argparse.Namespace) -> int:
    """What is configured and answers, and what to do next; 3: no prompt works, 1: no config."""
    from tiro.doctor.examine import examine
    from tiro.doctor.report import report

    found = examine()
    if given.json:
        import msgspec

        _print_json(msgspec.to_builtins(found))
    else:
        output.write(report(found))
    if not found.is_ready:
        return NO_MODEL
    return FAILED if found.is_config_broken else DONE


def schema(given: argparse.Namespace) -> int:
    """The JSON Schema of everything that goes over the wire."""
    import json

    from tiro.protocol import types

    output.write(json.dumps(types.schema(), indent=2) + "\n")
    return DONE


# --- the command line ----------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    root = CommandParser(prog="tiro", **described(DESCRIPTION, EXAMPLES))
    show_help_alone(root)
    root.add_argument("--version", action="version", version=f"tiro {__version__}")
    commands = root.add_subparsers(title="commands", metavar="COMMAND")
    _add_serve_and_replay(commands)
    _add_ask(commands)
    _add_chat(commands)
    _add_sessions(commands)
    _add_edits(commands)
    _add_local(commands)
    about = "what is set up, and what to do next"
    one = add_command(commands, "doctor", doctor, about, DOCTOR_EXAMPLES)
    one.add_argument("--json", action="store_true", help="print all that was found as JSON")
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


def _add_ask(commands: Commands) -> None:
    one = add_command(commands, "ask", ask, "ask one question, see the answer", ASK_EXAMPLES)
    one.add_argument("question", nargs="+", help="what to ask; - reads it from stdin")
    about = "a file that goes along; - waits for stdin, which else goes along if something is in it"
    one.add_argument("--file", action="append", default=[], help=about)
    one.add_argument("--agent", help="who answers, e.g. plan")
    one.add_argument("--model", help="provider/name, for this question")
    one.add_argument(
        "--continue", dest="go_on", action="store_true", help="go on with the newest session"
    )
    one.add_argument("--json", action="store_true", help="print events and result as JSON lines")


def _add_chat(commands: Commands) -> None:
    one = add_command(commands, "chat", chat, "talk in the terminal", CHAT_EXAMPLES)
    one.add_argument(
        "--file", action="append", default=[], help="a file that goes along with the first question"
    )
    one.add_argument("--agent", help="who answers, e.g. plan")
    one.add_argument("--model", help="provider/name, for this chat")
    start = one.add_mutually_exclusive_group()
    for flag, value, about in (
        ("--continue", "latest", "go on with the newest session"),
        ("--new", "", "start a new session, whatever is configured"),
    ):
        start.add_argument(flag, dest="session", action="store_const", const=value, help=about)
    start.add_argument("--load", dest="session", metavar="ID", help="go on with this session")


def _add_sessions(commands: Commands) -> None:
    group = add_group(commands, "sessions", "the saved sessions", SESSIONS_EXAMPLES)
    some = add_command(group, "list", sessions_list, "newest first", SESSIONS_EXAMPLES)
    some.add_argument("query", nargs="?", help="only those whose id or title holds this")
    some.add_argument("--limit", type=count, default=100, help="how many at most (100)")
    some.add_argument("--json", action="store_true", help="print JSON")
    one = add_command(group, "show", sessions_show, "one session as text", SESSIONS_EXAMPLES)
    one.add_argument("id", help="its id, or `latest`")
    form = one.add_mutually_exclusive_group()
    form.add_argument("--summary", action="store_true", help="the last 20 messages, a line each")
    form.add_argument("--json", action="store_true", help="print all of it as JSON")
    found = add_command(group, "search", sessions_search, "where it was said", SESSIONS_EXAMPLES)
    found.add_argument("query", help='words and "quoted phrases" that are all in one message')
    found.add_argument("--limit", type=count, default=20, help="how many at most (20)")
    found.add_argument("--json", action="store_true", help="print JSON")
    out = add_command(group, "export", sessions_export, "in another format", SESSIONS_EXAMPLES)
    out.add_argument("id", help="its id, or `latest`")
    about = "markdown, json, yaml, jsonl, …; else what PATH ends in, else markdown"
    out.add_argument("--format", help=about)
    out.add_argument("--out", metavar="PATH", help="the file to write; else stdout")
    taken = add_command(group, "import", sessions_import, "a file as a session", SESSIONS_EXAMPLES)
    taken.add_argument("file", help="what was exported; its format is found by looking")
    taken.add_argument("--json", action="store_true", help="print all of it as JSON")
    gone = add_command(group, "delete", sessions_delete, "delete for good", SESSIONS_EXAMPLES)
    gone.add_argument("id", nargs="+", help="their ids")


def _add_edits(commands: Commands) -> None:
    group = add_group(commands, "edits", "what tools have changed in files", EDITS_EXAMPLES)
    some = add_command(group, "list", edits_list, "the newest first", EDITS_EXAMPLES)
    some.add_argument("--limit", type=count, default=100, help="how many at most (100)")
    some.add_argument("--json", action="store_true", help="print JSON")
    for what, done, about in (
        ("undo", "Taken back", "take back a turn's edits"),
        ("redo", "Made again", "make them again"),
    ):
        one = add_command(group, what, edits_move, about, EDITS_EXAMPLES)
        one.add_argument("id", nargs="?", help="of a turn or an edit; else the newest turn")
        one.set_defaults(what=what, done=done)


def _add_local(commands: Commands) -> None:
    group = add_group(commands, "local", "embedded models", LOCAL_EXAMPLES)
    add_command(group, "list", local_list, "which there are, * answers", LOCAL_EXAMPLES)
    pull = add_command(group, "pull", local_pull, "bring one", LOCAL_EXAMPLES)
    pull.add_argument("name", nargs="?", help="a known name, a GGUF file, or an address of one")
    use = add_command(group, "use", local_use, "choose the one that answers", LOCAL_EXAMPLES)
    use.add_argument("name")
    remove = add_command(group, "remove", local_remove, "delete one's file", LOCAL_EXAMPLES)
    remove.add_argument("name")


# --- helpers -------------------------------------------------------------------------------


def _recorded(file: str) -> "RecordedConnection":
    from pathlib import Path

    from tiro.protocol.recorded import RecordedConnection

    return RecordedConnection(Path(file))


@contextlib.contextmanager
def _local_models() -> "Iterator[LocalModels]":
    """The local models; a name that none of them has is a failure here, not the want of a model."""
    from tiro.config.directories import cache_directory
    from tiro.models.local import LocalModels

    try:
        yield LocalModels(cache_directory())
    except ModelNotConfiguredError as error:
        raise TiroError(str(error)) from error


def _words_of(step: "Progress") -> str:
    share = "" if step.fraction is None else f", {round(step.fraction * 100)} %"
    return f"{step.message}{share}"


def _print_headings(row: str, *headings: str) -> None:
    """Name the columns to a person; a program that reads the rows gets nothing but rows."""
    if sys.stdout.isatty():
        output.write(row.format(*headings))


def _say(text: str) -> None:
    """Tell something about an answer, beside the answer."""
    output.tell(f"{harmless(text)}\n")


def _print_json(value: object) -> None:
    import json

    output.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def _code_of(error: TiroError) -> int:
    if isinstance(error, InvalidInputError):
        return WRONG_USE
    return NO_MODEL if isinstance(error, ModelNotConfiguredError) else FAILED
