"""An SQLite file that another program has locked stops nobody but who asked for a write."""

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.sizes import PATIENCE
from tests.stores.conftest import Notices
from tests.stores.contract.test_contract import until
from tests.stores.look import texts
from tiro.stores.shared import manager_of
from tiro.stores.shelf_manager import ShelfManager

Run = Callable[..., "Future[Any]"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
def manager(path: Path, notices: Notices) -> Iterator[ShelfManager]:
    manager = manager_of(path, notices.append, None)
    yield manager
    manager.close()


@pytest.fixture
def run() -> Iterator[Run]:
    """Runs something in a thread of its own, in which it may wait for ever."""
    with ThreadPoolExecutor(8) as pool:
        yield pool.submit


@pytest.fixture
def locked(path: Path, manager: ShelfManager) -> Iterator[sqlite3.Connection]:
    """Another program that writes to the file, until it rolls that back."""
    manager.create(id="first").add_message("user", "first")
    sql = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    sql.execute("BEGIN IMMEDIATE")
    yield sql
    sql.close()


@pytest.fixture
def endless(manager: ShelfManager) -> None:
    """Who waits for another program does so for ever."""
    manager.shelf.busy_seconds = 1e6


@pytest.mark.usefixtures("endless")
def test_a_change_waits_for_no_other_program(
    manager: ShelfManager, locked: sqlite3.Connection, run: Run, notices: Notices
) -> None:
    """It is stored as soon as the file is free; meanwhile nothing else waits either."""
    session = manager.create(id="x")
    waiting = run(manager.delete_expired)
    try:
        for text in ("one", "two"):
            run(session.add_message, "user", text).result(PATIENCE)
        assert [row.id for row in run(manager.list).result(PATIENCE)[0]] == ["first"]
        assert run(manager.claim_id, manager.create()).result(PATIENCE)
        assert not manager.is_stored(session)
        assert not waiting.done()
    finally:
        locked.execute("ROLLBACK")
    until(lambda: manager.is_stored(session))
    assert waiting.result(PATIENCE) == 0
    assert notices == []
    assert texts(manager.load_id("x")) == ["one", "two"]


@pytest.mark.usefixtures("endless")
def test_an_explicit_save_waits_until_the_file_is_free(
    manager: ShelfManager, locked: sqlite3.Connection, run: Run
) -> None:
    session = manager.create(id="x")
    run(session.add_message, "user", "one").result(PATIENCE)
    saving = run(manager.save, session)
    run(session.add_message, "user", "two").result(PATIENCE)
    locked.execute("ROLLBACK")
    assert saving.result(PATIENCE) == manager.path_of_id("x")
    until(lambda: manager.is_stored(session))


def test_a_file_that_stays_locked_is_told_once(
    manager: ShelfManager,
    locked: sqlite3.Connection,
    notices: Notices,
) -> None:
    manager.shelf.busy_seconds = 0.01
    session = manager.create(id="x")
    session.add_message("user", "one")
    until(lambda: notices.reasons == ["save_failed"])
    session.add_message("user", "two")
    locked.execute("ROLLBACK")
    until(lambda: notices.reasons == ["save_failed", "save_resumed"])
    assert texts(manager.load_id("x")) == ["one", "two"]


@pytest.mark.usefixtures("endless")
def test_a_locked_file_keeps_no_server_from_its_end(
    manager: ShelfManager, locked: sqlite3.Connection, run: Run
) -> None:
    session = manager.create(id="x")
    run(session.add_message, "user", "one").result(PATIENCE)
    closing = run(manager.close)
    try:
        closing.result(PATIENCE)
    finally:
        locked.execute("ROLLBACK")
