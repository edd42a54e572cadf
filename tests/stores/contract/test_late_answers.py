"""Writes that land on Redis though nobody hears the answer: they are ours, and not another's."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.stores.conftest import Notices
from tests.stores.contract.redis_server import RedisServer
from tests.stores.look import texts
from tiro import Session, SessionChangedError, StorageError
from tiro.stores.kept import KeptStore
from tiro.stores.redis import Server
from tiro.stores.shelf_manager import ShelfManager

NEVER = 1e6


class BadLine(Server):
    """A server that loses answers, gets scripts `late`, or is told nothing about some ids."""

    loses_answers = False
    delays = False
    asks_twice = False

    def __init__(self, url: str, prefix: str) -> None:
        super().__init__(url, prefix=prefix)
        self.late: list[Callable[[], bool]] = []
        self.unreachable: set[object] = set()

    def run_on(self, script: str, keys: list[bytes], *values: object) -> bool:
        run = super().run_on
        if values[0] in self.unreachable:
            raise StorageError("no connection")
        if self.delays:
            self.late.append(lambda: run(script, keys, *values))
            raise StorageError("no answer yet")
        if self.asks_twice:
            run(script, keys, *values)
        answer = run(script, keys, *values)
        if self.loses_answers:
            raise StorageError("no answer")
        return answer


@pytest.fixture
def server(redis_server: RedisServer, tmp_path: Path) -> Iterator[BadLine]:
    server = BadLine(redis_server.url, f"{tmp_path}:")
    yield server
    server.close()


@pytest.fixture
def store(server: BadLine) -> Iterator[KeptStore]:
    with KeptStore(server, NEVER) as store:
        yield store


@pytest.fixture
def manager(server: BadLine, tmp_path: Path, notices: Notices) -> Iterator[ShelfManager]:
    manager = ShelfManager(server, tmp_path, on_notice=notices.append)
    yield manager
    manager.close()


def found(store: KeptStore, id: str = "x") -> list[object]:
    return texts(store.get(id))


def kept(manager: ShelfManager) -> dict[str, list[object]]:
    return {row.id: texts(manager.load_id(row.id)) for row in manager.list()[0]}


def added(session: Session, *messages: str) -> None:
    for message in messages:
        session.add_message("user", message)


def test_a_save_without_an_answer_is_saved_again(server: BadLine, store: KeptStore) -> None:
    """It was for ever refused as another's, and so was all that was said since."""
    session = store.create("x")
    for number in ("1", "2"):
        added(session, f"lost {number}")
        server.loses_answers = True
        with pytest.raises(StorageError):
            store.save(session)
        server.loses_answers = False
        added(session, f"more {number}")
        store.save(session)
        added(session, f"after {number}")
        store.save(session)
    assert found(store) == [f"{what} {n}" for n in "12" for what in ("lost", "more", "after")]


def test_what_arrives_late_changes_nothing(server: BadLine, store: KeptStore) -> None:
    """The write that was given up comes after the one in its place."""
    session = store.create("x")
    added(session, "one")
    server.delays = True
    with pytest.raises(StorageError):
        store.save(session)
    server.delays = False
    added(session, "two")
    store.save(session)
    assert not server.late.pop()()
    assert found(store) == ["one", "two"]
    added(session, "three")
    store.save(session)
    assert found(store) == ["one", "two", "three"]


def test_who_wrote_after_a_lost_answer_is_not_overwritten(
    server: BadLine, store: KeptStore
) -> None:
    session = store.create("x")
    added(session, "one")
    server.loses_answers = True
    with pytest.raises(StorageError):
        store.save(session)
    server.loses_answers = False
    other = store.get("x")
    added(other, "theirs")
    store.save(other)
    added(session, "two")
    with pytest.raises(SessionChangedError):
        store.save(session)
    assert found(store) == ["one", "theirs"]


def test_a_session_stays_one_where_answers_are_lost(
    server: BadLine, manager: ShelfManager, notices: Notices
) -> None:
    """U9.5, U9.8: neither the first message nor a later one makes a second session."""
    session = manager.create(id="x")
    for message in ("one", "two"):
        server.loses_answers = True
        added(session, message)
        assert not manager.is_stored(session)
        server.loses_answers = False
        added(session, f"after {message}")
        manager.save(session)
    assert kept(manager) == {"x": ["one", "after one", "two", "after two"]}
    assert "renamed" not in notices.reasons


def test_a_late_insert_takes_nothing_back(server: BadLine, manager: ShelfManager) -> None:
    session = manager.create(id="x")
    server.delays = True
    added(session, "one")
    server.delays = False
    added(session, "two")
    manager.save(session)
    added(session, "three")
    for run in server.late:
        run()
    assert kept(manager) == {"x": ["one", "two", "three"]}


def test_a_turn_whose_lock_was_not_answered_locks_nobody_out(
    server: BadLine, manager: ShelfManager
) -> None:
    """U9.8: it was held for half a minute, also against ourselves."""
    session = manager.create(id="x")
    added(session, "one")
    server.loses_answers = True
    with manager.changing(session):
        server.loses_answers = False
    with manager.changing(session):
        added(session, "two")
    assert kept(manager) == {"x": ["one", "two"]}


def test_a_new_id_is_told_though_it_was_not_stored_at_once(
    server: BadLine, manager: ShelfManager, tmp_path: Path, notices: Notices
) -> None:
    """U9.1: for a new session, and for one that both sides changed."""
    with ShelfManager(server, tmp_path, on_notice=notices.append) as other:
        new = other.create(id="x")
        for id in ("x", "y"):
            added(manager.create(id=id), "theirs")
        loaded = other.load_id("y")
        added(manager.load_id("y"), "meanwhile")
        server.unreachable = {b"x-01", b"y-01"}
        for session in (new, loaded):
            added(session, "mine")
        server.unreachable = set()
        for session in (new, loaded):
            other.save(session)
        renamed = [notice.detail["old_id"] for notice in notices if notice.reason == "renamed"]
    assert sorted(renamed) == ["x", "y"]
    assert kept(manager) == {
        "x": ["theirs"],
        "x-01": ["mine"],
        "y": ["theirs", "meanwhile"],
        "y-01": ["theirs", "mine"],
    }


def test_each_verb_of_the_trash_says_the_same_when_it_is_asked_again(
    server: BadLine, manager: ShelfManager
) -> None:
    """As the library asks when an answer does not come; another's answer is another one."""
    added(manager.create(id="x"), "one")
    server.asks_twice = True
    assert manager.discard("x")
    assert manager.trash.restore("x").id == "x"
    assert manager.discard("x")
    [key] = [row.key for row in server.trash.rows()]
    assert manager.trash.empty() == 1
    assert not server.trash.remove(key)
    assert not server.trash.restore(key)
