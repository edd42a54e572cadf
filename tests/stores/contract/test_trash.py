"""Deleted sessions wait in the trash and come back whole: in files, SQLite and Redis alike."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.fakes import FixedClock
from tests.sizes import PATIENCE
from tests.stores import script
from tests.stores.look import texts
from tiro.errors import (
    InvalidSessionIdError,
    SessionInUseError,
    SessionNotFoundError,
    StorageError,
)
from tiro.session.session import Session
from tiro.stores.manager import SessionManager
from tiro.stores.search import Search
from tiro.stores.shared import manager_of
from tiro.stores.trash import Restored

Open = Callable[[], SessionManager]


@pytest.fixture(params=["files", "sqlite", "redis"])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str | Path]:
    """Where the sessions are; a folder is made of files."""
    if request.param == "redis":
        url = request.getfixturevalue("redis_server").url
        with redis.Redis.from_url(url) as client:
            client.flushall()
            yield url
            client.flushall()
    else:
        yield tmp_path / ("sessions" if request.param == "files" else "sessions.db")


@pytest.fixture
def open_manager(place: str | Path, tmp_path: Path, clock: FixedClock) -> Iterator[Open]:
    """Opens managers on the same sessions, with one clock."""
    opened: list[SessionManager] = []

    def open_it() -> SessionManager:
        cache = tmp_path / "cache"
        if isinstance(place, Path) and not place.suffix:
            opened.append(SessionManager(place, clock=clock, cache_directory=cache))
        else:
            opened.append(manager_of(place, lambda notice: None, cache))
            opened[-1].clock = clock
        return opened[-1]

    yield open_it
    for manager in opened:
        manager.close()


def lived(manager: SessionManager, id: str) -> Session:
    """A session with everything that a session can hold, large values too."""
    session = manager.create(id=id, max_history=script.MAX_HISTORY)
    for step in script.LIFE:
        with suppress(StorageError):  # beside a database there is no place for its copy
            step(manager, session)
    return session


def said(manager: SessionManager, id: str, text: str) -> Session:
    """A saved session of one message."""
    session = manager.create(id=id)
    session.add_message("user", text)
    manager.save(session)
    return session


def ids(manager: SessionManager) -> list[str]:
    return [row.id for row in manager.list()[0]]


def in_trash(manager: SessionManager) -> list[str]:
    return [row.saved.id for row in manager.trash.page()[0]]


def test_a_deleted_session_is_nowhere_but_in_the_trash(open_manager: Open) -> None:
    manager = open_manager()
    said(manager, "stays", "one secret word")
    said(manager, "goes", "another secret word")
    search = Search(manager)
    assert len(search.find("secret", 9)) == 2
    assert manager.discard("goes")
    other = open_manager()
    for one in (manager, other):
        assert ids(one) == ["stays"]
        assert in_trash(one) == ["goes"]
        with pytest.raises(SessionNotFoundError):
            one.load_id("goes")
    assert [hit.id for hit in search.find("secret", 9)] == ["stays"]
    search.close()
    [row], total = other.trash.page()
    assert (row.saved.title, row.saved.messages, row.deleted_at, total) == (
        "another secret word", 1, manager.now(), 1,
    )  # fmt: skip
    assert row.saved.bytes > 0
    assert not manager.discard("goes")
    with pytest.raises(InvalidSessionIdError):
        manager.discard("../x")


def test_a_restored_session_is_as_it_was(open_manager: Open) -> None:
    """Window, archive, memo, state, marks, large values, journal: all of it, also its times."""
    manager = open_manager()
    before = lived(manager, "x").snapshot()
    listed = manager.list()[0]
    manager.discard("x")
    manager.trash.tidy()
    other = open_manager()
    assert other.trash.restore("x") == Restored("x", str(other.path_of_id("x")), "x")
    assert other.trash.page() == ([], 0)
    assert other.list()[0] == listed
    again = other.load_id("x")
    assert again.snapshot() == before
    again.add_message("user", "it goes on")
    assert other.is_stored(again)
    assert texts(open_manager().load_id("x"))[-1] == "it goes on"


def test_a_restored_session_gets_the_next_id_where_its_own_is_taken(
    open_manager: Open, clock: FixedClock
) -> None:
    """Nobody's session is replaced, saved or not; the one deleted last comes first."""
    manager = open_manager()
    for text in ("first", "second"):
        said(manager, "x", text)
        manager.discard("x")
        clock.advance(1)
    third = said(manager, "x", "third")
    unsaved = manager.create(id="x-01")
    assert manager.trash.restore("x").id == "x-02"
    assert manager.trash.restore("x") == Restored("x-03", str(manager.path_of_id("x-03")), "x")
    other = open_manager()
    found = {id: texts(other.load_id(id)) for id in sorted(ids(other))}
    assert found == {"x": ["third"], "x-02": ["second"], "x-03": ["first"]}
    assert other.load_id("x-02").id == "x-02"
    with pytest.raises(SessionNotFoundError):
        manager.trash.restore("x")
    unsaved.add_message("user", "mine")
    third.add_message("user", "more")
    assert manager.is_stored(unsaved)
    assert manager.is_stored(third)


def test_the_trash_is_emptied_by_id_by_age_and_whole(open_manager: Open, clock: FixedClock) -> None:
    manager = open_manager()
    start = clock()
    for id in ("a", "b", "c", "d"):
        said(manager, id, id)
        manager.discard(id)
        clock.advance(86_400)
    assert in_trash(manager) == ["d", "c", "b", "a"]
    assert [row.saved.id for row in manager.trash.page(2, 1)[0]] == ["c", "b"]
    assert manager.trash.empty("c") == 1
    assert manager.trash.drop_older(start + timedelta(days=1)) == 1
    assert in_trash(open_manager()) == ["d", "b"]
    assert manager.trash.empty() == 2
    assert manager.trash.empty() == 0
    assert manager.trash.page() == ([], 0)


def test_what_has_expired_is_in_no_trash(open_manager: Open, clock: FixedClock) -> None:
    """G4.4: it cannot come back, and is removed with what is too old."""
    manager, start = open_manager(), clock()
    manager.ttl_seconds = ttl = 4e8  # also by the clock of Redis it lives yet
    said(manager, "short", "one")
    manager.ttl_seconds = None
    said(manager, "long", "null")
    assert manager.discard("short")
    assert manager.discard("long")
    assert sorted(in_trash(manager)) == ["long", "short"]
    clock.advance(ttl + 1)
    assert manager.trash.page()[1] == 1
    assert in_trash(manager) == ["long"]
    with pytest.raises(SessionNotFoundError):
        manager.trash.restore("short")
    removed = manager.trash.drop_older(start)
    assert (removed, manager.trash.empty()) == (1, 1)


def test_several_may_empty_the_trash_at_once(open_manager: Open) -> None:
    """Each session is counted by one of them, and whoever looks meanwhile sees what is there."""
    managers = [open_manager() for _ in range(3)]
    for id in range(12):
        said(managers[0], f"s{id}", "one")
        managers[0].discard(f"s{id}")
    start, counts = threading.Barrier(3, timeout=PATIENCE), list[int]()

    def empty(manager: SessionManager) -> None:
        start.wait()
        counts.append(manager.trash.empty())

    def look(manager: SessionManager) -> None:
        start.wait()
        for _ in range(20):
            assert not [row for row in manager.trash.page()[0] if row.saved.error is not None]
        counts.append(0)

    acts = [(empty, managers[0]), (empty, managers[1]), (look, managers[2])]
    threads = [threading.Thread(target=act, args=(manager,)) for act, manager in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert (len(counts), sum(counts)) == (3, 12)


def test_what_another_process_answers_in_is_not_deleted(open_manager: Open) -> None:
    manager, other = open_manager(), open_manager()
    session = said(manager, "x", "one")
    with manager.writing(session):
        with pytest.raises(SessionInUseError):
            other.discard("x")
        session.add_message("user", "two")
    assert other.discard("x")
    assert in_trash(other) == ["x"]


def test_a_live_session_that_was_deleted_is_stored_no_more(open_manager: Open) -> None:
    manager = open_manager()
    session = said(manager, "x", "one")
    manager.discard("x")
    session.add_message("user", "late")
    manager.close()
    assert (ids(manager), in_trash(manager)) == ([], ["x"])
    manager.trash.restore("x")
    assert texts(manager.load_id("x")) == ["one"]


@pytest.mark.parametrize("place", ["redis"], indirect=True)
@pytest.mark.parametrize("row", [None, b"no row"])
def test_a_session_that_no_list_shows_is_in_the_trash_then(
    open_manager: Open, place: str, row: bytes | None
) -> None:
    manager = open_manager()
    said(manager, "x", "one")
    [listed], _ = manager.list()
    with redis.Redis.from_url(place) as client:
        if row is None:
            client.hdel("tiro:sessions", "x")
        else:
            client.hset("tiro:sessions", "x", row)
    assert manager.discard("x")
    [deleted], _ = manager.trash.page()
    assert (deleted.saved.title, deleted.saved.messages) == (listed.title, 1)
    manager.trash.restore("x")
    assert ids(manager) == ["x"]
    assert texts(open_manager().load_id("x")) == ["one"]


@pytest.mark.parametrize("place", ["redis"], indirect=True)
def test_a_line_of_the_trash_that_cannot_be_read_costs_the_others_nothing(
    open_manager: Open, place: str
) -> None:
    manager = open_manager()
    said(manager, "x", "one")
    manager.discard("x")
    for number, line in enumerate(('[1e300,"y",[["b",1,null],{}]]', "x", "[", "[-1e300]")):
        with redis.Redis.from_url(place) as client:
            client.hset("tiro:trash", f"other-{number}", line)
    assert in_trash(manager) == ["x"]
    assert manager.trash.empty("x") == 1


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_what_is_left_of_a_damaged_session_goes_and_comes_back(
    open_manager: Open, place: Path
) -> None:
    """Not a row of it is lost, with or without a snapshot, whatever type the lines have."""
    manager = open_manager()
    said(manager, "x", "one").add_message("user", "two")
    manager.close()

    def sql(*statement: str) -> list[Any]:
        with closing(sqlite3.connect(place, isolation_level=None)) as database:
            return database.execute(*statement).fetchall()

    sql("UPDATE changes SET lines = CAST(lines AS TEXT)")
    sql("DELETE FROM snapshots")
    left = "SELECT id, n, title, CAST(lines AS BLOB) FROM sessions JOIN changes ON session = number"
    before = sql(left)
    assert len(before) == 1
    assert manager.discard("x")
    assert in_trash(manager) == ["x"]
    manager.trash.restore("x")
    assert sql(left) == before
    assert sql("SELECT * FROM snapshots") == []


def test_several_may_delete_and_restore_at_once(open_manager: Open) -> None:
    """At least one of them does it, nobody else does anything, and there is one in the end."""
    managers = [open_manager() for _ in range(4)]
    said(managers[0], "x", "one")

    def at_once(act: Callable[[SessionManager], object]) -> list[object]:
        done: list[object] = []
        ready = threading.Barrier(len(managers))

        def run(manager: SessionManager) -> None:
            ready.wait(PATIENCE)
            try:
                done.append(act(manager))
            except (SessionNotFoundError, SessionInUseError):  # too late, or too slow a machine
                done.append(None)

        threads = [threading.Thread(target=run, args=(manager,)) for manager in managers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        return done

    for _ in range(5):
        assert any(at_once(lambda m: m.discard("x")))
        assert in_trash(managers[0]) == ["x"]
        back = Restored("x", str(managers[0].path_of_id("x")), "x")
        assert {one for one in at_once(lambda m: m.trash.restore("x")) if one} == {back}
        assert (ids(managers[0]), in_trash(managers[0])) == (["x"], [])
        assert texts(managers[-1].load_id("x")) == ["one"]


def test_what_has_changed_since_it_was_seen_stays(open_manager: Open) -> None:
    manager, other = open_manager(), open_manager()
    manager.create(id="x").add_message("user", "one")
    manager.create(id="y").add_message("user", "one")
    manager.close()
    seen = {row.id: row for row in manager.listing.sessions()}
    other.load_id("x").add_message("user", "two")
    other.close()
    assert not manager.discard("x", seen["x"])
    assert manager.discard("y", seen["y"])
    assert texts(manager.load_id("x")) == ["one", "two"]
    assert [row.saved.id for row in manager.trash.page()[0]] == ["y"]
