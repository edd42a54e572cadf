"""Lists of sessions on the command line: a row for each, and how many are left out."""

from collections.abc import Callable, Iterable
from typing import Any

from tiro import output
from tiro.screen_text import flat, size_text

ROW = "{:<26} {:<16} {:>8}  {}\n"
WHEN = {"savedAt": "SAVED (UTC)", "deletedAt": "DELETED (UTC)"}
"""Which time a list shows → its heading."""


def write_rows(
    rows: Iterable[dict[str, Any]], when: str, what: str, count: Callable[[dict[str, Any]], object]
) -> None:
    """Write the rows of a list, with this time and what is counted of each session."""
    output.headings(ROW, "ID", WHEN[when], what, "TITLE")
    for row in rows:
        about = row["error"] or row["title"] or ""
        if until := row.get("expiresAt"):
            about += f" (until {_moment(until)})"
        output.write(ROW.format(flat(row["id"]), _moment(row[when]), count(row), flat(about)))


def size_of(row: dict[str, Any]) -> str:
    """The size of what is stored of a session."""
    return size_text(row["bytes"])


def messages_of(row: dict[str, Any]) -> int:
    """How many messages a session has, those that have left its window too."""
    total: int = row["messages"] + row["archived"]
    return total


def note_more(result: dict[str, Any]) -> None:
    """Say beside a page how many of the list are not on it."""
    if left := result["total"] - len(result["sessions"]):
        output.note(f"… and {left} more, see --limit")


def _moment(text: str | None) -> str:
    return (text or "")[:16].replace("T", " ")
