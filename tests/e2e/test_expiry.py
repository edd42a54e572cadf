"""The real server with `session.ttl_seconds`: one that is over is told and not resumed."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.e2e.command import Tiro
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.e2e.talk import add, ask, view, words
from tests.stores.contract.redis_server import RedisServer
from tiro.session.times import from_rfc3339


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


@pytest.mark.parametrize("kind", ["files", "sqlite", "redis"])
def test_lists_say_when_a_session_ends(
    start: StartServer, tiro: Tiro, home: Home, kind: str, request: pytest.FixtureRequest
) -> None:
    """G4.4: its time begins when it does; of one without such a time nothing is said."""
    store = {"kind": kind}
    if kind == "redis":
        store["url"] = request.getfixturevalue("redis").url
    home.write_config(store=store, session={"ttl_seconds": 3600})
    with start() as server:
        add(server, "user", "what is soon forgotten")
        created = from_rfc3339(view(server)["createdAt"])
        assert created is not None
        server.request("tiro/session/clear")
        (row,) = server.request("tiro/session/list")["sessions"]
        until = from_rfc3339(row["expiresAt"])
        assert until is not None
        assert abs(until - created - timedelta(hours=1)) < timedelta(seconds=1)
        assert f"(until {row['expiresAt'][:10]} " in tiro("sessions", "list").stdout
        server.request("tiro/session/delete", {"id": row["id"]})
        assert server.request("tiro/trash/list")["sessions"][0]["expiresAt"] == row["expiresAt"]
    home.write_config(store=store)
    server = start()
    add(server, "user", "what stays")
    server.request("tiro/session/save")
    (row,) = server.request("tiro/session/list")["sessions"]
    assert "expiresAt" not in row


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
