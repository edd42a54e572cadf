"""`tiro sessions delete` and what follows on it: the trash, and the way back."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from tiro import output
from tiro.arguments import SESSIONS_EXAMPLES, Commands, add_command, count, days, size
from tiro.commands.session_rows import messages_of, note_more, size_of, write_rows
from tiro.errors import InvalidInputError, TiroError
from tiro.exits import Exit
from tiro.screen_text import counted, flat, size_text

EVERYTHING = 1_000_000
"""More sessions than anybody has."""
FOR_GOOD = "Delete for good? Nothing brings it back. [y/N] "
EMPTY = "The trash is empty"


def add_trash(group: Commands) -> None:
    """The commands about sessions that nobody wants any more, put into `tiro sessions`."""
    gone = add_command(group, "delete", sessions_delete, "move to the trash", SESSIONS_EXAMPLES)
    gone.add_argument("id", nargs="+", help="their ids")
    gone.add_argument(
        "--for-good", action="store_true", help="remove it, from the trash too; asks first"
    )
    gone.add_argument("--yes", action="store_true", help="do not ask first; for scripts")
    about = "take out of the trash"
    back = add_command(group, "restore", sessions_restore, about, SESSIONS_EXAMPLES)
    back.add_argument("id", nargs="+", help="their ids")
    about = "move old or large ones to the trash"
    old = add_command(group, "prune", sessions_prune, about, SESSIONS_EXAMPLES)
    old.add_argument("--older-than", type=days, metavar="90d", help="those saved before that")
    old.add_argument(
        "--keep-under", type=size, metavar="500MB", help="all but the newest that take so much"
    )
    old.add_argument("--dry-run", action="store_true", help="only say what would go")
    old.add_argument("--json", action="store_true", help="print JSON")
    about = "list the trash, or empty it"
    some = add_command(group, "trash", sessions_trash, about, SESSIONS_EXAMPLES)
    some.add_argument("--limit", type=count, default=100, help="how many at most (100)")
    some.add_argument("--empty", action="store_true", help="remove all of it for good; asks first")
    some.add_argument("--yes", action="store_true", help="do not ask first; for scripts")
    some.add_argument("--json", action="store_true", help="print JSON")


def sessions_delete(given: argparse.Namespace) -> int:
    """Delete saved sessions, for good when a person says yes to it; 1 when one was not there."""
    from tiro import terminal

    if "latest" in given.id:
        raise InvalidInputError("delete wants an id, not `latest`; `tiro sessions list` shows them")
    if given.for_good and not given.yes and not _are_unwanted(given.id):
        output.note("Nothing was deleted")
        return Exit.FAILED
    how = {"forGood": True} if given.for_good else {}
    answers = terminal.requests([("tiro/session/delete", {"id": id, **how}) for id in given.id])
    code = Exit.DONE
    for id, answer in zip(given.id, answers, strict=True):
        if isinstance(answer, TiroError) or not answer["deleted"]:
            code = _failed(given.id, answer, f"There is no session {id!r}")
        elif given.for_good:
            output.write(f"{id} is deleted for good\n")
        else:
            output.write(f"{id} is in the trash; `tiro sessions restore {id}` takes it back\n")
    return code


def sessions_restore(given: argparse.Namespace) -> int:
    """Bring sessions back from the trash, and tell of another id; 1 when one was not there."""
    from tiro import terminal

    answers = terminal.requests([("tiro/trash/restore", {"id": id}) for id in given.id])
    code = Exit.DONE
    for id, answer in zip(given.id, answers, strict=True):
        if isinstance(answer, TiroError):
            code = _failed(given.id, answer)
            continue
        told = f" as {answer['id']}, since its own id is taken" if answer["renamed"] else ""
        output.write(f"{id} is back{told}\n")
    return code


def sessions_prune(given: argparse.Namespace) -> int:
    """Move old sessions to the trash, or only say which; without a limit the settings have it."""
    from tiro import terminal

    limits = {"olderThanDays": given.older_than, "keepUnderBytes": given.keep_under}
    result = terminal.request("tiro/session/prune", {**limits, "dryRun": given.dry_run})
    code = Exit.FAILED if result["left"] else Exit.DONE
    if given.json:
        output.write_json(result)
        return code
    rows, verb = result["sessions"], "would go" if given.dry_run else "went"
    write_rows(rows, "savedAt", "SIZE", size_of)
    if result["left"]:
        output.note(f"tiro: {counted(result['left'], 'session')} could not go; try again")
    if rows:
        output.note(
            f"{counted(len(rows), 'session')} {verb} to the trash, {size_text(result['bytes'])} in"
            f" all, free once that is emptied; {result['kept']} stay"
        )
    else:
        output.note(f"Nothing {verb} to the trash; {result['kept']} stay")
    return code


def sessions_trash(given: argparse.Namespace) -> int:
    """What is in the trash, deleted last first; or none of it any more."""
    from tiro import terminal

    if given.empty:
        return _empty(is_asked=not given.yes)
    result = terminal.request("tiro/trash/list", {"limit": given.limit})
    if given.json:
        output.write_json(result)
        return Exit.DONE
    write_rows(result["sessions"], "deletedAt", "SIZE", size_of)
    if not result["total"]:
        output.note(EMPTY)
    note_more(result)
    return Exit.DONE


def _empty(*, is_asked: bool) -> int:
    from tiro import terminal

    if is_asked:
        total = terminal.request("tiro/trash/list", {"limit": 0})["total"]
        if not total:
            output.note(EMPTY)
            return Exit.DONE
        if not _says_yes(f"Delete {counted(total, 'session')} for good? [y/N] "):
            output.note("Nothing was deleted")
            return Exit.FAILED
    removed = terminal.request("tiro/trash/empty", {})["removed"]
    output.write(f"{counted(removed, 'session')} deleted for good\n")
    return Exit.DONE


def _failed(ids: Sequence[str], answer: object, sentence: str = "") -> Exit:
    """Tell of one that failed; alone it ends the command, and among several no other one."""
    if isinstance(answer, TiroError) and len(ids) == 1:
        raise answer
    output.note(f"tiro: {flat(str(answer)) if isinstance(answer, TiroError) else sentence}")
    return Exit.FAILED


def _are_unwanted(ids: Sequence[str]) -> bool:
    """Whether the person at the terminal wants these gone; InvalidInputError where nobody is."""
    from tiro import terminal

    lists = terminal.requests(
        [("tiro/session/list", {"limit": EVERYTHING}), ("tiro/trash/list", {"limit": EVERYTHING})]
    )
    rows = []
    for answer in lists:
        if isinstance(answer, TiroError):
            raise answer
        rows += answer["sessions"]
    found = [row for row in rows if row["id"] in ids]
    return not found or _says_yes(FOR_GOOD, found)  # else there is nothing to ask about


def _says_yes(question: str, about: Sequence[dict[str, Any]] = ()) -> bool:
    """What the person at the terminal says to it; InvalidInputError where nobody is."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidInputError("Nobody is here to be asked, so nothing is deleted; say --yes")
    for row in about:
        said = counted(messages_of(row), "message")
        output.note(f"  {row['id']}  {said}  {flat(row['error'] or row['title'] or '')}")
    output.tell(question)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
