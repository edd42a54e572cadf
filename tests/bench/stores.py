"""Rows about the stores: a message added and saved in a long session and in a short one."""

import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.bench.messages import message
from tests.bench.row import Row, ratio_row, timed
from tests.stores.contract.redis_server import RedisServer
from tests.stores.contract.stores import SHARED, open_store
from tests.stores.contract.stores import Stored as Store

FEW, MANY = 100, 100_000
SAMPLE = 400


def rows() -> list[Row]:
    """All rows of this module."""
    with tempfile.TemporaryDirectory() as folder, RedisServer() as server:
        return [flat(kind, open_store(kind, Path(folder), server.url)) for kind in SHARED]


def flat(kind: str, store: Store) -> Row:
    """Whether a save costs the same late as early, that on the disk included; medians."""
    add = {number: _adder(store, number) for number in (FEW, MANY)}
    pairs = [(timed(add[MANY]), timed(add[FEW])) for _ in range(SAMPLE)]
    late, early = (statistics.median(times) for times in zip(*pairs, strict=True))
    store.close()
    return ratio_row(f"{kind}: add at {MANY:,} messages", late, early, 1.2, f"at {FEW}")


def _adder(store: Store, number: int) -> Callable[[], None]:
    """Adds a message to a session with so many, and saves it."""
    session = store.create(f"with {number}")
    for n in range(number):
        session.append_message(message(n))
    store.save(session)

    def add() -> None:
        session.append_message(message(number))
        store.save(session)

    return add
