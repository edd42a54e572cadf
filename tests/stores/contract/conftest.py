"""Stores of each kind, closed after their test; one Redis server for all tests but those of it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes import FixedClock
from tests.stores.contract.redis_server import RedisServer
from tests.stores.contract.stores import KINDS, NEVER, Stored, open_store

Open = Callable[..., Stored]


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A server that lives as long as the tests."""
    with RedisServer() as server:
        yield server


@pytest.fixture
def clock() -> FixedClock:
    """The time, as all stores of the test see it."""
    return FixedClock()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """What the test's stores are made of: each in turn, unless the test says which."""
    name: str = request.param
    return name


@pytest.fixture
def redis_url(kind: str, request: pytest.FixtureRequest) -> str:
    """Where Redis is, for the kinds that need it."""
    if kind != "redis":
        return ""
    server: RedisServer = request.getfixturevalue("redis_server")
    return server.url


@pytest.fixture
def open_another(kind: str, tmp_path: Path, redis_url: str, clock: FixedClock) -> Iterator[Open]:
    """Opens stores of the test's kind; all of them hold the same sessions, but in memory."""
    opened: list[Stored] = []

    def open_it(cleanup: float = NEVER) -> Stored:
        opened.append(open_store(kind, tmp_path, redis_url, clock, cleanup))
        return opened[-1]

    yield open_it
    for store in opened:
        store.close()


@pytest.fixture
def store(open_another: Open) -> Stored:
    """A store of the test's kind."""
    return open_another()
