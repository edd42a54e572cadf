"""`tiro edits`: what tools have changed in files."""

import argparse
import sys

from tiro import output
from tiro.arguments import EDITS_EXAMPLES, Commands, add_command, add_group, count
from tiro.edit_text import line_of_edit, told_commands, told_paths, wish
from tiro.errors import InvalidInputError
from tiro.exits import Exit, as_failure


def add_edits(commands: Commands) -> None:
    """The command `edits` and those in it."""
    group = add_group(commands, "edits", "what tools have changed in files", EDITS_EXAMPLES)
    some = add_command(group, "list", edits_list, "the newest first", EDITS_EXAMPLES)
    some.add_argument("--limit", type=count, default=100, help="how many at most (100)")
    some.add_argument("--json", action="store_true", help="print JSON")
    for what, do, done, about in (
        ("undo", "Take back", "Taken back", "take back a turn's edits"),
        ("redo", "Make again", "Made again", "make them again"),
    ):
        one = add_command(group, what, edits_move, about, EDITS_EXAMPLES)
        about = "of a turn or an edit, or how it begins; else the newest turn"
        one.add_argument("id", nargs="?", help=about)
        one.add_argument("--yes", action="store_true", help="without an id: do not ask")
        one.set_defaults(what=what, do=do, done=done)


def edits_list(given: argparse.Namespace) -> int:
    """What tools have changed in files, the newest first."""
    from tiro import terminal

    found = terminal.edits(given.limit)
    if given.json:
        output.write_json(found)
    else:
        output.write("".join(f"{line_of_edit(edit)}\n" for edit in found))
    if not found:
        output.note("No tool has changed a file yet")
    return Exit.DONE


def edits_move(given: argparse.Namespace) -> int:
    """Take edits back, or make them again; what nobody named only when a person says yes."""
    from tiro import terminal

    id = given.id
    if id is None and not given.yes and (turn := terminal.next_edits(given.what)) is not None:
        if not _is_wanted(wish(given.do, turn)):
            output.note("Nothing was changed")
            return Exit.FAILED
        id = turn["turnId"]
    with as_failure(InvalidInputError):  # nothing of that name is there
        moved = terminal.move_edits(given.what, id)
    output.write(f"{given.done} in {told_paths(moved['paths'])}\n")
    if told := told_commands(moved["commands"]):
        output.note(told)
    return Exit.DONE


def _is_wanted(question: str) -> bool:
    """What the person at the terminal says to it; InvalidInputError where nobody is."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidInputError(
            "Nobody is here to be asked, so nothing is done; name an edit or a turn, or say --yes"
        )
    output.tell(question)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
