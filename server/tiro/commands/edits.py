"""`tiro edits`: what tools have changed in files."""

import argparse

from tiro import output
from tiro.arguments import EDITS_EXAMPLES, Commands, add_command, add_group, count
from tiro.errors import InvalidInputError
from tiro.exits import Exit, as_failure


def add_edits(commands: Commands) -> None:
    """The command `edits` and those in it."""
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


def edits_list(given: argparse.Namespace) -> int:
    """What tools have changed in files, the newest first."""
    from tiro import terminal

    found = terminal.edits(given.limit)
    if given.json:
        output.write_json(found)
    else:
        output.write("".join(f"{terminal.line_of_edit(edit)}\n" for edit in found))
    if not found:
        output.note("No tool has changed a file yet")
    return Exit.DONE


def edits_move(given: argparse.Namespace) -> int:
    """Take edits back, or make them again."""
    from tiro import terminal

    with as_failure(InvalidInputError):  # nothing of that name is there
        paths = terminal.move_edits(given.what, given.id)
    output.write(f"{given.done} in {terminal.told_paths(paths)}\n")
    return Exit.DONE
