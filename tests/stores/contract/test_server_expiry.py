"""A server's sessions with a time to live (`session.ttl_seconds`): G4 holds for them as well."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes import FixedClock
from tests.stores.look import texts
from tiro import Session, SessionNotFoundError
from tiro.assistant.saved_sessions import SavedSessions
from tiro.assistant.turns import Turns
from tiro.session.snapshot import StoredSession, read_snapshot
from tiro.stores.manager import SessionManager
from tiro.stores.redis import Server
from tiro.stores.search import Search
from tiro.stores.shelf_manager import ShelfManager
from tiro.stores.sqlite import Database
from tiro.tools.silent_disk import Patience

Open = Callable[[], SessionManager]
TTL = 6000.0


@pytest.fixture(params=["files", "sqlite", "redis"])
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def open_manager(kind: str, tmp_path: Path, redis_url: str, clock: FixedClock) -> Iterator[Open]:
    """Opens managers of the same sessions; their new ones live for TTL seconds."""
    opened: list[SessionManager] = []

    def open_it() -> SessionManager:
        if kind == "files":
            manager = SessionManager(tmp_path / "sessions", clock=clock)
        elif kind == "sqlite":
            path = tmp_path / "sessions.db"
            manager = ShelfManager(Database(path, clock), path, clock=clock)
        else:
            shelf = Server(redis_url, clock, prefix=f"{tmp_path}:")
            manager = ShelfManager(shelf, Path("/redis"), clock=clock)
        manager.ttl_seconds = TTL
        opened.append(manager)
        return manager

    yield open_it
    for manager in opened:
        manager.close()


@pytest.fixture
def manager(open_manager: Open) -> SessionManager:
    return open_manager()


def said(manager: SessionManager, text: str, id: str) -> Session:
    session = manager.create(id=id)
    session.add_message("user", text)
    return session


async def nothing(session: Session) -> None:
    """Weighs nothing."""


def saved_of(manager: SessionManager) -> SavedSessions:
    return SavedSessions(manager, Turns(lambda *_: None), nothing, Patience())


def test_what_has_expired_is_not_listed_found_or_resumed(
    open_manager: Open, clock: FixedClock
) -> None:
    """G4.4, G4.5: also by a server whose configuration gives none any more, and after a restart."""
    said(open_manager(), "needle", "old").add_message("user", "later")
    clock.advance(TTL - 1)
    said(open_manager(), "needle", "young")
    clock.advance(1)
    other = open_manager()
    other.ttl_seconds = None
    assert other.load_id("old").ttl_seconds == TTL
    path = other.list_saved()[1]
    assert [row.id for row in other.list()[0]] == ["young", "old"]
    clock.advance(0.01)
    assert [row.id for row in other.list()[0]] == ["young"]
    assert [hit.id for hit in Search(other).find("needle", 10)] == ["young"]
    clock.advance(TTL)
    assert other.latest() is None
    assert other.list() == ([], 0)
    assert list(other.versions()) == []
    for use in (
        other.load_id,
        other.read,
        lambda _: other.load(path),
        lambda _: other.look_at(path),
    ):
        with pytest.raises(SessionNotFoundError):
            use("old")


def test_what_has_expired_makes_room_for_its_id(open_manager: Open, clock: FixedClock) -> None:
    """G4.3."""
    said(open_manager(), "old", "x")
    open_manager().get_or_create("chat:1").add_message("user", "of a channel")
    clock.advance(TTL + 1)
    manager = open_manager()
    said(manager, "new", "x")
    manager.get_or_create("chat:1").add_message("user", "again")
    other = open_manager()
    assert sorted(row.id for row in other.list()[0]) == ["chat:1", "x"]
    assert texts(other.load_id("x")) == ["new"]
    assert texts(other.get_or_create("chat:1")) == ["again"]


def test_the_expired_are_removed_and_no_others(
    open_manager: Open, clock: FixedClock, kind: str, tmp_path: Path
) -> None:
    """G4.9: nothing of them is left."""
    first = open_manager()
    said(first, "old" + "x" * 100_000, "old")
    first.ttl_seconds = None
    said(first, "for ever", "kept")
    first.close()
    clock.advance(TTL / 2)
    said(open_manager(), "young", "young")
    clock.advance(TTL / 2 + 1)
    manager = open_manager()
    assert (manager.delete_expired(), manager.delete_expired()) == (1, 0)
    clock.advance(-TTL)
    assert sorted(row.id for row in manager.list()[0]) == ["kept", "young"]
    if kind == "files":
        folder = tmp_path / "sessions"
        left = sorted(path.name for path in folder.iterdir() if not path.name.endswith(".journal"))
        assert left == ["blobs", "kept.json", "young.json"]
        assert list((folder / "blobs").iterdir()) == []


def test_the_current_session_ends_with_its_time(manager: SessionManager, clock: FixedClock) -> None:
    """G4.4: use does not renew it; not within a turn; its object is stored no more."""
    session = said(manager, "old", "x")
    manager.set_current(session)
    saved = saved_of(manager)
    clock.advance(TTL)
    assert not asyncio.run(saved.end_expired())
    session.add_message("user", "still there")
    clock.advance(1)
    assert saved.has_expired()
    assert asyncio.run(saved.end_expired())
    assert manager.current is None
    session.add_message("user", "too late")
    clock.advance(-TTL)
    assert manager.list() == ([], 0)
    assert not asyncio.run(saved.end_expired())


def test_the_time_of_a_session_begins_with_what_is_stored_first(
    manager: SessionManager, clock: FixedClock
) -> None:
    """An editor that was left open over night loses nothing of what is then said."""
    session = manager.get()
    session.set_agent("build")
    manager.reset()
    session = manager.get()
    clock.advance(1000 * TTL)
    saved = saved_of(manager)
    assert not asyncio.run(saved.end_expired())
    assert manager.get() is session
    session.add_message("user", "good morning")
    clock.advance(TTL)
    assert not saved.has_expired()
    clock.advance(1)
    assert asyncio.run(saved.end_expired())


def test_what_is_imported_is_there_to_stay(
    manager: SessionManager, open_manager: Open, clock: FixedClock
) -> None:
    """Its time may have been over for years."""
    clock.advance(1000 * TTL)
    manager.adopt(old())
    assert [texts(open_manager().load_id("old"))] == [["said"]]


def old() -> StoredSession:
    return read_snapshot(
        b'{"schema_version":1,"id":"old","created_at":"2001-01-01T00:00:00Z","ttl_seconds":6000,'
        b'"messages":[{"role":"user","content":"said"}]}'
    )
