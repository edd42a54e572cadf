"""The real server with `session.ttl_seconds`: one that is over is told and not resumed."""

from collections.abc import Iterator

import pytest

from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.e2e.talk import add, ask, words
from tests.stores.contract.redis_server import RedisServer


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.mark.parametrize("kind", ["files", "sqlite", "redis"])
def test_a_session_ends_with_its_time(
    start: StartServer, home: Home, kind: str, request: pytest.FixtureRequest
) -> None:
    """G4.4, G4.5: its client hears so and has a new one, and no other server has the old."""
    store = {"kind": kind}
    if kind == "redis":
        store["url"] = request.getfixturevalue("redis").url
    home.write_config(store=store, session={"ttl_seconds": 1})
    server = start()
    add(server, "user", "what is soon forgotten")
    told = server.wait_notification("tiro/session/changed", lambda p: p["reason"] == "expired")
    assert (told["id"], told["total"]) == (None, 0)
    for one in (server, start()):
        assert words(one) == []
        assert one.request("tiro/session/list")["total"] == 0
        assert one.error("tiro/session/load", {"latest": True}).kind == "sessionNotFound"
    assert home.session_files() == []


def test_what_is_asked_too_late_begins_a_session(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """G4.4: the model is sent nothing of the old one."""
    home.write_config(session={"ttl_seconds": 0.001})
    server = start()
    add(server, "user", "old")
    server.request("tiro/session/save")
    ask(server, "new")
    assert [m["content"] for m in provider.last.messages if m["role"] == "user"] == ["new"]
