"""Processes that share one sessions directory; each is run by a test as `sharing.py WORK …`."""

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tiro.errors import SessionInUseError
from tiro.stores.manager import SessionManager


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


WORK: dict[str, Callable[..., dict[str, Any]]] = {
    "add_in_turn": add_in_turn,
    "claim_many": claim_many,
}

if __name__ == "__main__":
    json.dump(WORK[sys.argv[1]](*sys.argv[2:]), sys.stdout)
