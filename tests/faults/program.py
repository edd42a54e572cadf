"""A program that keeps sessions in stores of ours: `python -m tests.faults.program DIRECTORY`."""

import sys
from collections.abc import Callable
from pathlib import Path

from tiro.errors import TiroError
from tiro.session.session import Session
from tiro.stores.files import FileStore
from tiro.stores.sqlite import SQLiteStore
from tiro.stores.store import Store

TOLD: list[str] = []


def main() -> int:
    """Use each store; print what was refused, and what was there at the end."""
    directory = Path(sys.argv[1])
    for name, opened in (
        ("files", lambda: FileStore(directory / "files")),
        ("sqlite", lambda: SQLiteStore(directory / "sessions.db")),
    ):
        for number in range(2):
            attempt(f"{name} open", lambda opened=opened, n=number: use(opened(), n))  # type: ignore[misc]
    sys.stdout.write("\n".join(TOLD) + "\n")
    return 0


def use(store: Store, number: int) -> None:
    """Every verb."""
    session = attempt("create", lambda: store.create(f"s{number}", ttl=3600))
    for n in range(3):
        if session is not None:
            session.add_message("user", f"message {n}")
            attempt("save", lambda: store.save(session))
    attempt("get", lambda: count(store.get(f"s{number}")))
    attempt("create", lambda: store.create("gone", ttl=0.000001))
    attempt("expire", store.delete_expired)
    attempt("delete", lambda: store.delete("s0"))
    attempt("close", store.close)


def count(session: Session) -> None:
    """How many messages are there."""
    TOLD.append(f"{len(session.messages)} messages")


def attempt(what: str, do: Callable[[], Session | int | None]) -> Session | None:
    """What it gives; what is refused in an error of ours is told."""
    try:
        given = do()
    except TiroError as error:
        TOLD.append(f"{what}: {error}")
        return None
    return given if isinstance(given, Session) else None


if __name__ == "__main__":
    sys.exit(main())
