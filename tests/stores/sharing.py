"""Processes that share one sessions directory; each is run by a test as `sharing.py WORK …`."""

import hashlib
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tiro.errors import SessionInUseError, StorageError
from tiro.session.core import Core
from tiro.stores.manager import SessionManager
from tiro.stores.reading import read_session


def add_in_turn(directory: str, who: str, count: str) -> dict[str, Any]:
    """Add messages to the shared session, some in a turn, each followed by a save."""
    told: set[str] = set()
    manager = SessionManager(directory, on_notice=lambda notice: told.add(notice.reason))
    session = manager.load_id("shared")
    number = 0
    while number < int(count):
        with suppress(SessionInUseError):  # the machine was busy for a second: try again
            with manager.changing(session) if number % 3 else manager.writing(session):
                session.add_message("user", f"{who}:{number}")
                number += 1
            manager.save(session)
    manager.close()
    return {"id": session.id, "told": sorted(told)}


def claim_many(directory: str, count: str) -> dict[str, Any]:
    """Make sessions, each claiming a name with its first message."""
    with SessionManager(directory) as manager:
        ids = []
        for number in range(int(count)):
            session = manager.create()
            session.add_message("user", f"{os.getpid()} {number}")
            ids.append(session.id)
    return {"pid": os.getpid(), "ids": ids}


def add_large(directory: str, count: str) -> dict[str, Any]:
    """Store one large value after the other, letting go of the older ones now and then.

    Each time the session is read anew; how many of its values were missing then.
    """
    missing = 0
    manager = SessionManager(directory)
    session = manager.create(id="large")
    for number in range(int(count)):
        if number % 4 == 0:
            session.clear()
        session.add_message("user", f"{number} " * 40_000)
        path = None
        while path is None:
            with suppress(StorageError):  # the other one was held up for a second: try again
                path = manager.save(session)
        missing += read_session(path).restore(Core()).missing
    manager.close()
    held = [str(message.content).encode() for message in session.newest_first]
    values = [hashlib.sha256(data).hexdigest() for data in held]
    return {"missing": missing, "values": values}


WORK: dict[str, Callable[..., dict[str, Any]]] = {
    "add_in_turn": add_in_turn,
    "claim_many": claim_many,
    "add_large": add_large,
}

if __name__ == "__main__":
    json.dump(WORK[sys.argv[1]](*sys.argv[2:]), sys.stdout)
