"""`tiro sessions`: the saved sessions."""

import argparse
import os

from tiro import output
from tiro.arguments import (
    SESSIONS_EXAMPLES,
    Commands,
    add_command,
    add_group,
    count,
)
from tiro.commands.deleted_sessions import add_trash
from tiro.commands.imports import add_import
from tiro.commands.session_rows import messages_of, note_more, write_rows
from tiro.commands.stored_sessions import add_stored
from tiro.exits import Exit
from tiro.screen_text import flat

NO_SESSION = "No session is saved yet; `tiro ask` or an editor begins one"


def add_sessions(commands: Commands) -> None:
    """The command `sessions` and those in it."""
    group = add_group(commands, "sessions", "the saved sessions", SESSIONS_EXAMPLES)
    some = add_command(group, "list", sessions_list, "list them, newest first", SESSIONS_EXAMPLES)
    some.add_argument("query", nargs="?", help="only those whose id or title holds this")
    some.add_argument("--limit", type=count, default=100, help="how many at most (100)")
    some.add_argument("--json", action="store_true", help="print JSON")
    one = add_command(group, "show", sessions_show, "show one as text", SESSIONS_EXAMPLES)
    one.add_argument("id", help="its id, or `latest`")
    form = one.add_mutually_exclusive_group()
    form.add_argument("--summary", action="store_true", help="the last 20 messages, a line each")
    form.add_argument("--json", action="store_true", help="print all of it as JSON")
    found = add_command(group, "search", sessions_search, "find what was said", SESSIONS_EXAMPLES)
    found.add_argument("query", help='words and "quoted phrases" that are all in one message')
    found.add_argument("--limit", type=count, default=20, help="how many at most (20)")
    found.add_argument("--json", action="store_true", help="print JSON")
    out = add_command(group, "export", sessions_export, "write one in a format", SESSIONS_EXAMPLES)
    out.add_argument("id", help="its id, or `latest`")
    about = (
        "markdown, json, yaml, jsonl, agently, agently-yaml, go-agent, magent, nanobot; else what"
        " PATH ends in, else markdown"
    )
    out.add_argument("--format", help=about)
    out.add_argument("--out", metavar="PATH", help="the file to write; else, or for -, stdout")
    add_import(group)
    add_stored(group)
    named = add_command(group, "rename", sessions_rename, "give a title", SESSIONS_EXAMPLES)
    named.add_argument("id", help="its id, or `latest`")
    named.add_argument("title", help="its title; an empty one: the first line of its first prompt")
    add_trash(group)


def sessions_list(given: argparse.Namespace) -> int:
    """The saved sessions, newest first."""
    from tiro import terminal

    result = terminal.sessions(given.query, given.limit)
    if given.json:
        output.write_json(result)
        return Exit.DONE
    write_rows(result["sessions"], "savedAt", "MESSAGES", messages_of)
    if not result["total"]:
        output.note(
            f"No session has {given.query!r} in its id or title" if given.query else NO_SESSION
        )
    note_more(result)
    return Exit.DONE


def sessions_show(given: argparse.Namespace) -> int:
    """One saved session: all that was said, a line for each message, or all it holds."""
    from tiro import terminal

    if given.json:
        output.write_json(terminal.session_view(given.id))
        return Exit.DONE
    shown = terminal.session_summary if given.summary else terminal.session_text
    output.write(f"{shown(given.id)}\n")
    return Exit.DONE


def sessions_rename(given: argparse.Namespace) -> int:
    """Give a saved session another title."""
    from tiro import terminal

    title = given.title.strip() or None
    id = terminal.rename(given.id, title)
    output.write(f"{id} is called {flat(title)}\n" if title else f"{id} has no title now\n")
    return Exit.DONE


def sessions_search(given: argparse.Namespace) -> int:
    """Where something was said, the newest first; 1 when nowhere."""
    from tiro import terminal

    hits = terminal.search(given.query, given.limit)
    if given.json:
        output.write_json(hits)
    else:
        output.write("".join(map(terminal.line_of, hits)))
    if not hits:
        output.note(_why_nothing(given.query))
    return Exit.DONE if hits else Exit.FAILED


def _why_nothing(query: str) -> str:
    from tiro.session.words import phrases

    if not phrases(query):
        return f"tiro: There is no word in {query!r} to search for"
    return f"tiro: Nothing was said about {query!r}"


def sessions_export(given: argparse.Namespace) -> int:
    """A saved session in another format, on stdout or in a file."""
    from tiro import terminal
    from tiro.stores.formats import registry

    path = os.path.abspath(given.out) if given.out and given.out != "-" else None
    result = terminal.export(given.id, given.format or registry.name_for(path), path)
    if path:
        output.write(f"Exported to {result['path']}\n")
    else:
        output.write(result["text"].rstrip("\n") + "\n")
    for note in result.get("notes", ()):
        output.note(note)
    return Exit.DONE
