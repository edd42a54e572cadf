"""A server's manager in a process of its own, beside others; run as `serving.py KIND PLACE …`."""

import json
import sys
from contextlib import suppress
from pathlib import Path

from tiro.errors import SessionInUseError
from tiro.stores.shared import manager_of


def add_in_turn(place: str, who: str, count: str) -> None:
    """Add messages to the session `shared`, some in a turn, the others in a change each."""
    told: set[str] = set()
    where = place if "://" in place else Path(place)
    manager = manager_of(where, lambda notice: told.add(notice.reason), None)
    session = manager.load_id("shared")
    number = 0
    while number < int(count):
        holding = manager.changing(session) if number % 3 else manager.writing(session)
        with suppress(SessionInUseError), holding:  # the machine was busy for a second: try again
            session.add_message("user", f"{who}:{number}")
            number += 1
    manager.close()
    json.dump({"id": session.id, "told": sorted(told)}, sys.stdout)


if __name__ == "__main__":
    add_in_turn(*sys.argv[1:])
