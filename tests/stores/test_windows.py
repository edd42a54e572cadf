"""Whatever moment a change comes in, it is in the files before it is answered (U9.2, U9.8)."""

import functools
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from tests.stores.conftest import Make
from tests.stores.look import texts
from tiro.errors import SessionInUseError
from tiro.session.core import Core
from tiro.session.session import Session
from tiro.stores.lock import wait_for
from tiro.stores.manager import SessionManager
from tiro.stores.reading import read_session


class Window:
    """A session's lock that lets something in each time it is free."""

    def __init__(self, lets_in: Callable[[], None]) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._lets_in = lets_in
        self._is_in = False

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        is_free = not self._depth
        self._lock.release()
        if is_free and not self._is_in:
            self._is_in = True
            try:
                self._lets_in()
            finally:
                self._is_in = False


def turn(manager: SessionManager, session: Session) -> None:
    with manager.writing(session):
        session.add_message("user", "within")


def change(manager: SessionManager, session: Session) -> None:
    with manager.changing(session):
        session.change(title="within")


def rest(manager: SessionManager, session: Session) -> None:
    upkeep = manager.live.upkeep_of(session)
    upkeep.run(session, 1e12)


@pytest.mark.parametrize("do", [turn, change, rest, SessionManager.save, SessionManager.end])
def test_a_change_is_stored_at_whatever_moment_it_comes(
    make_manager: Make, do: Callable[[SessionManager, Session], Any]
) -> None:
    """What is read from the files right after it is what a kill in that moment leaves."""
    manager = make_manager()
    session = manager.create(id="x")
    session.add_message("user", "first")
    path, said = manager.path_of_id("x"), ["first"]

    def come_in() -> None:
        said.append(f"change {len(said)}")
        session.add_message("user", said[-1])
        kept = Core()
        read_session(path).restore(kept)
        assert [text for text in texts(kept) if text != "within"] == said

    lock, session.lock = session.lock, Window(come_in)  # type: ignore[assignment]
    for _ in range(3):
        do(manager, session)
    session.lock = lock
    assert len(said) > 3
    assert len(manager.list_saved()) == 1


@pytest.mark.parametrize("do", [turn, change, rest, SessionManager.save, SessionManager.end])
def test_another_process_may_come_in_at_whatever_moment(
    make_manager: Make,
    do: Callable[[SessionManager, Session], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where it gets its turn, both go on from what the other one did, in one session."""
    at_once = functools.partial(wait_for, seconds=0)
    monkeypatch.setattr("tiro.stores.autosave.wait_for", at_once)
    manager, other = make_manager(), make_manager()
    session = manager.create(id="x")
    session.add_message("user", "first")
    said = ["first"]
    theirs = other.load_id("x")

    def come_in() -> None:
        with suppress(SessionInUseError), other.changing(theirs):
            said.append(f"change {len(said)}")
            theirs.add_message("user", said[-1])

    lock, session.lock = session.lock, Window(come_in)  # type: ignore[assignment]
    for _ in range(3):
        do(manager, session)
        with manager.changing(session):
            session.add_message("user", "mine")
    session.lock = lock
    assert len(said) > 3
    assert len(manager.list_saved()) == 1
    for one in (manager, other):
        one.close()
    kept = texts(make_manager().load_id("x"))
    assert [text for text in kept if text not in ("within", "mine")] == said
    assert kept.count("mine") == 3
