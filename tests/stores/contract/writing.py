"""A process that writes to a store beside others; run by a test as `writing.py WORK KIND …`."""

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.stores.contract.stores import Stored, open_store
from tiro import Session, SessionChangedError, SessionInUseError


def add_for_ever(kind: str, folder: str, url: str) -> None:
    """Add messages to the session `x`, tell the number of each that is saved, until killed."""
    store = open_store(kind, Path(folder), url)
    session, number = store.get("x"), 0
    while True:
        session.add_message("user", f"message {number}")
        session.set("padding", f"{number}" * 10_000)  # so that a snapshot is due after a few saves
        session.set("last", number)
        store.save(session)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        number += 1


def save(store: Stored, session: Session) -> None:
    """Save it, however busy the machine is: the other one may have it for longer than a second."""
    while True:
        with suppress(SessionInUseError):
            store.save(session)
            return


def interleave(kind: str, folder: str, url: str, who: str, count: str) -> None:
    """Add messages to the session `x`, a save each; when told that others wrote, begin anew."""
    store = open_store(kind, Path(folder), url)
    session, told = store.get("x"), 0
    for number in range(int(count)):
        while True:
            session.add_message("user", f"{who}:{number}")
            try:
                save(store, session)
                break
            except SessionChangedError:
                told += 1
                session = store.get("x")
    store.close()
    json.dump(told, sys.stdout)


WORK: dict[str, Callable[..., None]] = {"add_for_ever": add_for_ever, "interleave": interleave}

if __name__ == "__main__":
    WORK[sys.argv[1]](*sys.argv[2:])
