"""A memory store in front of one that is out of reach now and then (G5.3)."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.fakes import FixedClock
from tests.stores.contract.redis_server import RedisServer
from tests.stores.contract.test_contract import until
from tests.stores.look import texts
from tiro import (
    Session,
    SessionChangedError,
    SessionExistsError,
    SessionInUseError,
    SessionNotFoundError,
    StorageError,
    TiroError,
)
from tiro.stores.hybrid import HybridStore
from tiro.stores.memory import MemoryStore
from tiro.stores.redis import RedisStore
from tiro.stores.sqlite import SQLiteStore
from tiro.stores.store import Ttl

NEVER = 1e6


class Plain:
    """A store of somebody else's making: six methods and no base class (G5.2)."""

    def __init__(self, inner: SQLiteStore) -> None:
        self._inner = inner
        self.is_out = False
        self.refuses: dict[str, TiroError] = {}
        self.on_save: Callable[[str], None] = lambda id: None
        self.saves = 0
        self.saved = threading.Event()

    def _reach(self) -> None:
        if self.is_out:
            raise StorageError("It is out of reach")

    def create(
        self, id: str | None = None, ttl: Ttl = None, metadata: Mapping[str, str] | None = None
    ) -> Session:
        self._reach()
        return self._inner.create(id, ttl, metadata)

    def get(self, id: str) -> Session:
        self._reach()
        return self._inner.get(id)

    def save(self, session: Session) -> None:
        self._reach()
        if refusal := self.refuses.get(session.get_id()):
            raise refusal
        self.on_save(session.get_id())
        self._inner.save(session)
        self.saves += 1
        self.saved.set()

    def delete(self, id: str) -> None:
        self._reach()
        self._inner.delete(id)

    def delete_expired(self) -> int:
        self._reach()
        return self._inner.delete_expired()

    def close(self) -> None:
        self._inner.close()


@pytest.fixture
def behind(tmp_path: Path, clock: FixedClock) -> Iterator[SQLiteStore]:
    """What is in the store behind, seen past the one in front."""
    with SQLiteStore(tmp_path / "store.db", NEVER, clock) as store:
        yield store


@pytest.fixture
def back(tmp_path: Path, clock: FixedClock) -> Plain:
    return Plain(SQLiteStore(tmp_path / "store.db", NEVER, clock))


def hybrid(back: Plain, clock: FixedClock, **options: float) -> HybridStore:
    front = MemoryStore(NEVER, clock)
    return HybridStore(front, back, cleanup_interval_seconds=NEVER, **options)  # type: ignore[arg-type]  # an int among them


def test_a_save_goes_through(back: Plain, behind: SQLiteStore, clock: FixedClock) -> None:
    with hybrid(back, clock) as store:
        session = store.create("x")
        session.add_message("user", "hello")
        store.save(session)
        assert texts(behind.get("x")) == ["hello"]
        assert store.waiting == 0


def test_an_outage_is_survived_and_made_up_for(
    back: Plain, behind: SQLiteStore, clock: FixedClock
) -> None:
    """Saves and new sessions wait in memory; the background writes them when the other is back."""
    with hybrid(back, clock, retry_seconds=0.01) as store:
        session = store.create("x", 60, {"a": "b"})
        back.is_out = True
        session.add_message("user", "hello")
        store.save(session)
        made = store.create("y", 60, {"c": "d"})
        made.set("k", 1)
        store.save(made)
        assert store.waiting == 2
        assert store.get("x") is session
        assert texts(behind.get("x")) == []
        with pytest.raises(StorageError):
            store.get("z")
        with pytest.raises(StorageError):
            store.delete("x")
        back.is_out = False
        until(lambda: store.waiting == 0)
        store.close()  # waits for what the background is writing
        assert texts(behind.get("x")) == ["hello"]
        assert (behind.get("y").get("k"), behind.get("y").metadata) == (1, {"c": "d"})
        assert behind.get("y").ttl_seconds == 60


def test_a_save_behind_is_written_soon_and_together(
    back: Plain, behind: SQLiteStore, clock: FixedClock
) -> None:
    with hybrid(back, clock, write_behind_seconds=0.02) as store:
        session = store.create("x")
        for number in range(50):
            session.add_message("user", f"{number}")
            store.save(session)
        until(lambda: len(behind.get("x").messages) == 50)
        assert back.saves <= 50


def test_what_waits_is_written_when_the_store_is_closed(
    back: Plain, behind: SQLiteStore, clock: FixedClock
) -> None:
    store = hybrid(back, clock, write_behind_seconds=NEVER)
    session = store.create("x")
    session.add_message("user", "hello")
    store.save(session)
    assert texts(behind.get("x")) == []
    back.is_out = True
    with pytest.raises(StorageError):
        store.close()
    back.is_out = False
    for _ in range(3):
        store.close()
    assert texts(behind.get("x")) == ["hello"]
    session.add_message("user", "again")
    store.save(session)
    store.flush()
    assert texts(behind.get("x")) == ["hello", "again"]
    store.close()


def test_only_so_many_saves_wait(back: Plain, behind: SQLiteStore, clock: FixedClock) -> None:
    """Then the next one waits itself, and is told of an outage."""
    store = hybrid(back, clock, write_behind_seconds=NEVER, most_waiting=2)
    sessions = [store.create(id) for id in ("a", "b", "c")]
    for session in sessions:
        session.set("k", 1)
        store.save(session)
    assert store.waiting == 2
    assert behind.get("c").get("k") == 1
    assert behind.get("a").get("k") is None
    back.is_out = True
    sessions[2].set("k", 2)
    with pytest.raises(StorageError):
        store.save(sessions[2])
    back.is_out = False
    store.save(sessions[2])
    store.close()
    assert [behind.get(id).get("k") for id in ("a", "b", "c")] == [1, 1, 2]


def test_what_others_did_behind_it_is_told_later(
    back: Plain, behind: SQLiteStore, clock: FixedClock
) -> None:
    """A stale writer is told, once, and then finds what the others wrote."""
    with hybrid(back, clock, write_behind_seconds=NEVER) as store:
        session, gone = store.create("x"), store.create("y")
        for mine in (session, gone):
            mine.set("whose", "mine")
            store.save(mine)
        other = behind.get("x")
        other.set("whose", "theirs")
        behind.save(other)
        behind.delete("y")
        store.flush()
        with pytest.raises(SessionChangedError):
            store.get("x")
        with pytest.raises(SessionNotFoundError):
            store.save(gone)
        assert store.get("x").get("whose") == "theirs"
        with pytest.raises(SessionNotFoundError):
            store.get("y")


def test_a_session_that_expired_while_it_waited_is_told_to_nobody(
    back: Plain, clock: FixedClock
) -> None:
    with hybrid(back, clock, write_behind_seconds=NEVER) as store:
        session = store.create("x", 60)
        session.set("k", 1)
        store.save(session)
        clock.advance(61)
        assert store.delete_expired() == 1
        store.flush()
        with pytest.raises(SessionNotFoundError):
            store.get("x")
        assert store.waiting == 0


def test_the_id_of_a_session_that_waits_is_taken(
    back: Plain, behind: SQLiteStore, clock: FixedClock
) -> None:
    """G4.3: also when the store behind is back and does not know it yet."""
    with hybrid(back, clock, retry_seconds=NEVER) as store:
        back.is_out = True
        made = store.create("x", 60)
        made.add_message("user", "hello")
        store.save(made)
        back.is_out = False
        with pytest.raises(SessionExistsError):
            store.create("x")
        store.flush()
        assert store.get("x") is made
        assert texts(behind.get("x")) == ["hello"]


def test_an_expired_session_that_waits_takes_no_other_away(back: Plain, clock: FixedClock) -> None:
    """G4.3: a new one may have its id, and stays the live object."""
    with hybrid(back, clock, retry_seconds=NEVER) as store:
        back.is_out = True
        store.create("x", 60)
        back.is_out = False
        clock.advance(61)
        made = store.create("x")
        store.flush()
        assert store.get("x") is made


@pytest.mark.parametrize("refusal", [SessionInUseError("It is in use"), StorageError("No")])
def test_a_session_that_cannot_be_written_now_keeps_no_other_waiting(
    back: Plain, behind: SQLiteStore, clock: FixedClock, refusal: TiroError
) -> None:
    """U9.8: the others are written, and it is tried again later, not at once."""
    store = hybrid(back, clock, write_behind_seconds=NEVER, retry_seconds=NEVER)
    for id in ("a", "b"):
        session = store.create(id)
        session.set("k", 1)
        store.save(session)
    back.refuses["a"] = refusal
    with pytest.raises(type(refusal)):
        store.flush()
    assert (store.waiting, behind.get("b").get("k")) == (1, 1)
    now = time.monotonic()
    store.run(now)
    assert store.due() == now + NEVER
    with pytest.raises(type(refusal)):
        store.close()
    del back.refuses["a"]
    store.close()
    assert (store.waiting, behind.get("a").get("k")) == (0, 1)


def test_an_outage_is_not_waited_out_once_for_each_session(back: Plain, clock: FixedClock) -> None:
    """Each try may take as long as a connection does; what was refused comes last the next time."""
    store = hybrid(back, clock, write_behind_seconds=NEVER)
    refused = [store.create(id) for id in "abcdefgh"]
    for session in refused:
        session.set("k", 1)
        store.save(session)
        back.refuses[session.get_id()] = StorageError("No")
    del back.refuses["h"]
    for _ in range(3):
        with pytest.raises(StorageError):
            store.flush()
    assert (store.waiting, back.saves) == (7, 1)
    back.refuses.clear()
    store.close()
    assert back.saves == 8


def test_what_is_deleted_while_others_are_written_stays_so(
    back: Plain, behind: SQLiteStore, clock: FixedClock
) -> None:
    """G4.8: a session that the store behind never had is not put there afterwards."""
    with hybrid(back, clock, retry_seconds=NEVER) as store:
        back.is_out = True
        for id in ("a", "b"):
            store.create(id)
        back.is_out = False
        back.on_save = lambda id: store.delete("b")
        store.flush()
        assert behind.get("a").id == "a"
        with pytest.raises(SessionNotFoundError):
            behind.get("b")


def test_a_redis_that_is_killed_and_comes_back() -> None:
    """The real thing: nothing that was said in between is lost."""
    with RedisServer() as server:
        back = RedisStore(server.url, NEVER)
        with HybridStore(MemoryStore(NEVER), back, retry_seconds=0.02) as store:
            session = store.create("x")
            server.kill()
            session.add_message("user", "said in between")
            store.save(session)
            made = store.create("y")
            assert store.waiting == 2
            server.start()
            until(lambda: store.waiting == 0)
            store.close()
            assert texts(back.get("x")) == ["said in between"]
            assert back.get("y").id == made.id
