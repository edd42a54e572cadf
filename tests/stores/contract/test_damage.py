"""What is damaged in SQLite or on Redis costs nothing but itself, and what failed is told."""

import errno
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from tests.stores.conftest import Notices
from tests.stores.contract.test_contract import until
from tests.stores.look import texts
from tiro import Session, SessionFormatError, StorageError
from tiro.agents.registry import AgentRegistry
from tiro.stores import shelf_upkeep
from tiro.stores.disk import Disk
from tiro.stores.manager import SessionManager
from tiro.stores.search import Search
from tiro.stores.shared import manager_of
from tiro.stores.shelf import SharedKept, is_long
from tiro.stores.shelf_manager import ShelfManager

Open = Callable[[], ShelfManager]


@pytest.fixture(params=["sqlite", "redis"])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str | Path]:
    if request.param == "sqlite":
        yield tmp_path / "sessions.db"
        return
    url: str = request.getfixturevalue("redis_server").url
    with redis.Redis.from_url(url) as client:
        client.flushall()
        yield url
        client.flushall()


@pytest.fixture
def open_manager(place: str | Path, tmp_path: Path, notices: Notices) -> Iterator[Open]:
    opened: list[ShelfManager] = []

    def open_it() -> ShelfManager:
        opened.append(manager_of(place, notices.append, tmp_path / f"cache {len(opened)}"))
        return opened[-1]

    yield open_it
    for manager in opened:
        manager.close()


def said(manager: SessionManager, id: str, *messages: str) -> Session:
    session = manager.create(id=id)
    for message in messages:
        session.add_message("user", message)
    return session


def found(manager: ShelfManager) -> SharedKept:
    kept = manager.shelf.find("x")
    assert kept is not None
    return kept


def damage(place: str | Path, line: bytes) -> None:
    """Put this in the place of the last change of the session `x`."""
    if isinstance(place, Path):
        with sqlite3.connect(place) as sql:
            one = "SELECT number FROM sessions WHERE id = 'x'"
            last = f"SELECT max(first_n) FROM changes WHERE session = ({one})"
            query = f"UPDATE changes SET lines = ? WHERE session = ({one}) AND first_n = ({last})"
            assert sql.execute(query, (line,)).rowcount == 1
        sql.close()
    else:
        with redis.Redis.from_url(place) as client:
            assert client.lset("tiro:changes:x", -1, line)


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b'{"n": 2, "op": "what"}',
        b'{"n": 2, "op": "set", "fields": {"usage": {"tokens": "x"}}}',
        b'{"n": 9, "op": "add", "message": 1}',
        b"[" * 5000,
    ],
)
def test_a_damaged_change_costs_the_others_nothing(
    open_manager: Open, place: str | Path, line: bytes
) -> None:
    manager, other = open_manager(), open_manager()
    said(manager, "x", "a tram", "a second tram")
    said(manager, "y", "another tram")
    live = other.load_id("x")
    damage(place, line + b"\n")
    for read in (other.load_id, other.read):
        with pytest.raises(SessionFormatError, match="'x'"):
            read("x")
    search = Search(other)
    assert [hit.id for hit in search.find("tram", 5)] == ["y"]
    search.close()
    assert texts(live) == ["a tram", "a second tram"]


def test_what_others_wrote_and_cannot_be_read_leaves_the_session_as_it_was(
    open_manager: Open, place: str | Path
) -> None:
    """Both are kept: what cannot be read where it is, ours under a new id."""
    manager, other = open_manager(), open_manager()
    session = said(manager, "x", "one")
    theirs = other.load_id("x")
    theirs.add_message("user", "two")
    damage(place, b'{"n": 3, "op": "what"}\n')
    with manager.changing(session):
        assert texts(session) == ["one"]
        session.add_message("user", "mine")
    assert session.id == "x-01"
    assert texts(open_manager().load_id("x-01")) == ["one", "mine"]


def test_the_name_of_a_lost_agent_goes_when_another_is_selected(
    open_manager: Open, tmp_path: Path
) -> None:
    """M4.3"""
    manager = open_manager()
    said(manager, "x", "hello").set_agent("gone")
    other = open_manager()
    other.agents = AgentRegistry()
    again = other.load_id("x")
    assert (again.agent, other.lost_agent(again)) == (None, "gone")
    again.set_agent("build")
    assert other.lost_agent(again) is None
    assert open_manager().load_id("x").agent == "build"


def test_where_others_wrote_before_a_fold_it_waits_for_the_next_change(
    open_manager: Open, place: str | Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The background thread tried it again without a pause."""
    manager, other = open_manager(), open_manager()
    session = said(manager, "x", "one")
    for number in range(8):
        session.set("k", f"{number}" * 10_000)
    upkeep = manager.live.upkeep_of(session)
    assert upkeep.due() is not None
    theirs = other.load_id("x")
    with other.changing(theirs):
        theirs.add_message("user", "theirs")
    monkeypatch.setattr(shelf_upkeep, "IDLE_SECONDS", 0.0)
    upkeep.run(session, 1e12)
    assert upkeep.due() is None
    with manager.changing(session):
        session.add_message("user", "mine")
    until(lambda: not is_long(found(other)))
    assert texts(open_manager().load_id("x")) == ["one", "theirs", "mine"]
    assert session.id == "x"


def test_a_fault_of_ours_is_told_and_undoes_nothing(
    tmp_path: Path, notices: Notices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """U9.5"""
    manager = manager_of(tmp_path / "sessions.db", notices.append, None)
    with monkeypatch.context() as patch:
        patch.setattr(manager.shelf, "insert", lambda session: 1 // 0)
        session = said(manager, "x", "one")
        assert notices.reasons == ["save_failed"]
        assert "ZeroDivisionError" in notices[0].detail["reason"]
    manager.save(session)
    assert texts(manager.load_id("x")) == ["one"]
    manager.close()


@pytest.mark.parametrize(
    "url", ["localhost:6379", "redis://ada:secret@host:abc/0", "redis://ada:secret@[x", "x"]
)
def test_an_address_that_is_none_is_told(url: str, notices: Notices) -> None:
    """U9.5: the session goes on in memory, and no password is told."""
    manager = manager_of(url, notices.append, None)
    session = said(manager, "x", "one")
    assert texts(session) == ["one"]
    assert notices.reasons == ["save_failed"]
    assert "redis://host:6379/0" in notices[0].detail["reason"]
    with pytest.raises(StorageError) as told:
        manager.save(session)
    assert "secret" not in f"{told.value} {told.value.data} {notices[0].detail} {manager.directory}"
    manager.close()


def test_what_cannot_be_deleted_is_still_stored(
    open_manager: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was deleted, so whoever goes on in it loses nothing."""
    shelf, files = open_manager(), SessionManager(tmp_path / "files", disk=StuckDisk())

    def refuse(id: str) -> bool:
        raise StorageError("out of reach")

    monkeypatch.setattr(shelf.shelf, "delete", refuse)
    for manager in (shelf, files):
        session = said(manager, "x", "one")
        with pytest.raises(StorageError):
            manager.delete("x")
        session.add_message("user", "two")
        assert manager.is_stored(session)
        assert [message.content for message in manager.read("x").oldest_first()] == ["one", "two"]
    files.close()


class StuckDisk(Disk):
    """A disk that removes no session."""

    def unlink(self, path: Path) -> None:
        """Refuse it."""
        if path.suffix == ".json":
            raise OSError(errno.EIO, "out of reach")
        super().unlink(path)
