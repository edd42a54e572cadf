"""One suite over all stores: what each promises, whatever it is made of (G4, G5)."""

import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest

from tests.fakes import FixedClock
from tests.sizes import PATIENCE, sized
from tests.stores.contract.conftest import Open
from tests.stores.contract.stores import LASTING, SHARED, Stored
from tests.stores.look import texts
from tiro import Session, SessionChangedError, SessionExistsError, SessionNotFoundError
from tiro.session.entries import (
    Entry,
    new_message_entry,
    new_tool_call_entry,
    new_tool_result_entry,
)
from tiro.session.times import from_rfc3339, rfc3339
from tiro.stores.memory import MemoryStore

lasting = pytest.mark.parametrize("kind", LASTING)
shared = pytest.mark.parametrize("kind", SHARED)


def until(holds: Callable[[], bool]) -> None:
    """Wait until it holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.002)


def is_there(store: Stored, id: str) -> bool:
    try:
        store.get(id)
    except SessionNotFoundError:
        return False
    return True


# --- create and get -----------------------------------------------------------------------------


def test_a_new_session_has_a_uuid_and_its_metadata(store: Stored) -> None:
    """G4.2, G1.1."""
    made = store.create(metadata={"user": "ada", "Ort": "Straße"})
    found = store.get(made.get_id())
    assert str(uuid.UUID(made.get_id())) == made.id == found.id
    assert found.metadata == {"user": "ada", "Ort": "Straße"}
    assert found.created_at == found.updated_at
    assert from_rfc3339(rfc3339(made.created_at)) == from_rfc3339(rfc3339(found.created_at))


@pytest.mark.parametrize("id", ["x", "channel:chat 1", "../x", "Ünï/💡", "CON", "a" * 300])
def test_any_text_is_an_id(store: Stored, id: str) -> None:
    """G4.2, N6.4: an id is no path."""
    store.create(id).set("k", 1)
    assert store.get(id).id == id
    with pytest.raises(SessionNotFoundError):
        store.get(id.swapcase() if id.swapcase() != id else "other")


def test_a_taken_id_is_refused_and_the_session_stays(store: Stored) -> None:
    """G4.3."""
    session = store.create("x", metadata={"a": "b"})
    session.add_message("user", "hello")
    store.save(session)
    with pytest.raises(SessionExistsError):
        store.create("x", metadata={"c": "d"})
    assert (texts(store.get("x")), store.get("x").metadata) == (["hello"], {"a": "b"})


def test_an_expired_session_does_not_count_as_existing(store: Stored, clock: FixedClock) -> None:
    """G4.3."""
    old = store.create("x", ttl=60)
    old.add_message("user", "old")
    store.save(old)
    clock.advance(61)
    assert store.create("x", metadata={"is": "new"}).messages == []
    assert (texts(store.get("x")), store.get("x").metadata) == ([], {"is": "new"})
    clock.advance(1e6)
    assert is_there(store, "x")


def test_what_is_not_there_can_be_caught_and_made(store: Stored) -> None:
    """G4.5, G5.1."""
    try:
        store.get("x")
    except SessionNotFoundError:
        session = store.create("x")
    assert store.get("x").id == session.id == "x"


# --- expiry -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ttl", [3600, 3600.0, timedelta(hours=1)])
def test_a_session_lives_as_long_as_it_was_given_from_its_creation_on(
    store: Stored, clock: FixedClock, ttl: float | timedelta
) -> None:
    """G4.4: use renews nothing; expired is later than created + ttl, not at it."""
    session = store.create("x", ttl)
    clock.advance(1800)
    session.add_message("user", "still here")
    store.save(session)
    assert is_there(store, "x")
    clock.advance(1800)
    assert is_there(store, "x")
    clock.advance(0.01)
    assert not is_there(store, "x")


@pytest.mark.parametrize("ttl", [None, 0, -5, timedelta(0), float("inf"), float("nan")])
def test_a_session_without_a_time_to_live_never_expires(
    store: Stored, clock: FixedClock, ttl: float | timedelta | None
) -> None:
    """G4.4."""
    store.create("x", ttl)
    clock.advance(1e9)
    assert store.delete_expired() == 0
    assert is_there(store, "x")


def test_an_expired_session_is_removed_when_it_is_asked_for(
    store: Stored, clock: FixedClock
) -> None:
    """G4.5: a clock that was set back does not bring it to life again."""
    store.create("x", 60)
    clock.advance(61)
    assert not is_there(store, "x")
    clock.advance(-61)
    assert not is_there(store, "x")


def test_the_expired_are_removed_and_no_others(store: Stored, clock: FixedClock) -> None:
    """G4.9, G5.4: a count of live sessions."""
    for id, ttl in (("short", 60), ("long", 6000), ("for ever", None)):
        store.create(id, ttl)
    clock.advance(61)
    assert store.delete_expired() == 1
    clock.advance(-61)
    assert [id for id in ("short", "long", "for ever") if is_there(store, id)] == [
        "long",
        "for ever",
    ]
    assert store.delete_expired() == 0


def test_the_living_are_counted(store: Stored, clock: FixedClock) -> None:
    """G5.4: what has expired is not among them, also before it is removed."""
    for id, ttl in (("short", 600), ("long", 6000), ("for ever", None)):
        store.create(id, ttl)
    assert store.count() == 3
    clock.advance(601)
    assert store.count() == 2
    store.delete("for ever")
    assert store.count() == 1


@lasting
def test_those_of_before_are_counted(store: Stored, open_another: Open) -> None:
    """G5.4, G5.3."""
    store.create("x")
    store.create("y")
    store.close()
    assert open_another().count() == 2


def test_the_background_removes_what_has_expired(open_another: Open, clock: FixedClock) -> None:
    """G4.10: the interval can be injected."""
    store = open_another(0.005)
    store.create("x", 60)
    clock.advance(61)

    def is_removed() -> bool:
        clock.advance(-61)
        is_gone = not is_there(store, "x")
        clock.advance(61)
        return is_gone

    until(is_removed)


# --- save and delete ----------------------------------------------------------------------------


def test_a_deleted_session_is_gone_and_stays_so(store: Stored) -> None:
    """G4.8: an unknown id is no error; a save does not bring it back."""
    store.delete("x")
    session = store.create("x")
    store.delete("x")
    session.add_message("user", "too late")
    with suppress(SessionNotFoundError):
        store.save(session)
    assert not is_there(store, "x")


@lasting
def test_saving_what_was_deleted_is_told(store: Stored) -> None:
    session = store.create("x")
    store.delete("x")
    session.add_message("user", "too late")
    with pytest.raises(SessionNotFoundError):
        store.save(session)


@lasting
def test_a_session_of_another_deletion_is_not_written_over(store: Stored) -> None:
    """The one that was deleted and a later one of its id are two sessions."""
    old = store.create("x")
    store.delete("x")
    store.create("x")
    old.set("whose", "the old one's")
    with pytest.raises((SessionChangedError, SessionNotFoundError)):
        store.save(old)
    assert store.get("x").state == {}


def test_saving_a_session_of_no_store_never_fails(store: Stored) -> None:
    """G4.7: in memory nothing is done; what lasts takes it in."""
    session = Session(id="x")
    session.add_message("user", "hello")
    store.save(session)
    session.add_message("user", "again")
    store.save(session)


@lasting
def test_a_session_of_no_store_is_taken_in_unless_its_id_is_taken(
    store: Stored, open_another: Open
) -> None:
    session = Session(id="x")
    session.add_message("user", "hello")
    store.save(session)
    assert texts(open_another().get("x")) == ["hello"]
    with pytest.raises(SessionExistsError):
        store.save(Session(id="x"))


@pytest.mark.parametrize("kind", ["memory", "hybrid"])
def test_memory_gives_the_live_object(store: Stored) -> None:
    """G4.6, G4.7."""
    session = store.create("x")
    session.set("k", object)
    assert store.get("x") is session
    assert store.get("x").get("k") is object


def every_kind_of_change(session: Session) -> None:
    """A life in which all of what a session can go through happens."""
    for number in range(6):
        session.add_message("user", f"question {number}")
        session.add_message("assistant", [{"type": "text", "text": f"answer {number} 💡\u2028"}])
    session.add_message("user", "with \ud83d alone", whatever={"an": "extra", "n": [1, None]})
    session.trim_if_needed(6, 2)
    session.edit_message(session.messages[-1]["seq"], "edited")
    session.rewind(session.messages[-2]["seq"])
    session.pin(session.messages[-1]["seq"])
    session.set("task.current", {"deep": [1, 2.5, None, "x"]})
    session.set("nothing", None)
    session.set("gone", 1)
    session.delete("gone")
    session.update_summary("what was said")
    session.use_memo(chars=5000)
    session.set_agent("build")
    session.change(title="A title", memo={"fact": "one"}, max_history=50)


@lasting
def test_everything_outlives_the_store(store: Stored, open_another: Open) -> None:
    """G5.3: state, history and expiry over a restart, saved in one go and one by one."""
    at_once, in_steps = store.create("once", 60, {"a": "b"}), store.create("steps", 60)
    every_kind_of_change(at_once)
    store.save(at_once)
    in_steps.observe(lambda *_: store.save(in_steps))
    every_kind_of_change(in_steps)
    store.close()
    other = open_another()
    for session in (at_once, in_steps):
        found = other.get(session.get_id())
        assert clean(found) == clean(session)
        assert found.lookup("nothing") == (None, True)
    in_steps.clear()
    assert texts(open_another().get("steps")) == []


def clean(session: Session) -> dict[str, object]:
    """All that is stored; a lone surrogate is not (U3.8)."""
    fields = session.snapshot()
    for name in ("messages", "archive"):
        rows = fields[name]
        fields[name] = [str(dict(row)).replace(r"\ud83d", "\ufffd") for row in rows]
    return fields


@lasting
def test_what_is_not_saved_is_not_there(store: Stored, open_another: Open) -> None:
    session = store.create("x")
    session.set("k", 1)
    assert open_another().get("x").lookup("k") == (None, False)
    store.save(session)
    store.save(session)
    assert open_another().get("x").lookup("k") == (1, True)


@lasting
def test_expiry_outlives_the_store(store: Stored, open_another: Open, clock: FixedClock) -> None:
    """G5.3, G4.4."""
    store.create("x", 60)
    clock.advance(59)
    assert is_there(open_another(), "x")
    clock.advance(2)
    assert not is_there(open_another(), "x")


@lasting
def test_a_stale_writer_is_told_and_nothing_is_lost(store: Stored, open_another: Open) -> None:
    """It gets the session again and repeats what it wanted."""
    other = open_another()
    store.create("x")
    first, second = store.get("x"), other.get("x")
    first.add_message("user", "first")
    store.save(first)
    second.add_message("user", "second")
    for _ in range(2):  # and not only once
        with pytest.raises(SessionChangedError):
            other.save(second)
    assert texts(open_another().get("x")) == ["first"]
    again = other.get("x")
    again.add_message("user", "second")
    other.save(again)
    assert texts(open_another().get("x")) == ["first", "second"]
    first.add_message("user", "third")
    with pytest.raises(SessionChangedError):
        store.save(first)


@shared
def test_two_objects_of_one_store_are_two_writers(store: Stored) -> None:
    store.create("x")
    first, second = store.get("x"), store.get("x")
    first.set("k", 1)
    store.save(first)
    second.set("k", 2)
    with pytest.raises(SessionChangedError):
        store.save(second)
    assert store.get("x").get("k") == 1


def test_many_threads_lose_nothing(store: Stored, open_another: Open) -> None:
    """G4.12: 10 threads of 100 adds are 1,000 messages, and no write to the state is lost."""
    session, together = store.create("x"), threading.Barrier(10)
    failed: list[BaseException] = []
    every = sized(fast=20, normal=5, long=1)

    def work(thread: int) -> None:
        try:
            together.wait(PATIENCE)
            for number in range(100):
                session.add_message("user", f"{thread}:{number}")
                session.set(f"{thread}:{number}", number)
                if number % every == 0:
                    store.save(session)
            store.save(session)
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    wanted = {f"{thread}:{number}" for thread in range(10) for number in range(100)}
    found = store.get("x")
    assert len(found.full_chat_history) == 1000
    assert set(texts(found)) == found.state.keys() == wanted
    assert [m["seq"] for m in found.messages] == list(range(1, 1001))


@lasting
def test_a_new_session_is_taken_in_once_by_many_threads(store: Stored) -> None:
    """G4.12: whoever saves it first, it is the same session for the others."""
    for number in range(5):
        session, together = Session(id=f"s{number}"), threading.Barrier(2)
        session.set("k", 1)
        failed: list[BaseException] = []

        def save(session: Session = session, together: threading.Barrier = together) -> None:
            together.wait(PATIENCE)
            try:
                store.save(session)
            except BaseException as error:
                failed.append(error)  # noqa: B023  # joined below
                raise

        threads = [threading.Thread(target=save) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed


def test_sessions_made_by_many_threads_are_all_there(store: Stored) -> None:
    """G4.12, G4.3: and only one of them gets an id that all want."""
    won: list[str] = []

    def work(thread: int) -> None:
        for number in range(10):
            store.create(f"{thread}:{number}")
        try:
            store.create("wanted by all", metadata={"thread": str(thread)})
            won.append(str(thread))
        except SessionExistsError:
            pass

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.count() == 81
    assert [store.get("wanted by all").metadata["thread"]] == won


def test_a_thousand_entries_of_ten_threads_are_all_there(store: Stored, open_another: Open) -> None:
    """G4.12, U6: entries of each type, also after they were read again."""
    session = store.create("x")
    made: list[Entry] = []

    def work(thread: int) -> None:
        for number in range(25):
            call = new_tool_call_entry("find", {"n": number})
            entries = [
                new_message_entry("user", f"{thread}:{number}"),
                call,
                new_tool_result_entry("find", {"of": call.id}, None),
                new_message_entry("assistant", "found"),
            ]
            for entry in entries:
                session.add_entry(entry)
            made.extend(entries)
        store.save(session)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(10)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    reader = store if isinstance(store, MemoryStore) else open_another()
    found = reader.get("x").get_history(0)
    assert len(found) == 1000
    assert sorted(entry.id for entry in found) == sorted(entry.id for entry in made)


# --- close --------------------------------------------------------------------------------------


def test_a_closed_store_stays_usable(open_another: Open) -> None:
    """G4.11: close ends the clean-up, may be called again, and `with` calls it."""
    before = set(threading.enumerate())
    with open_another() as store:
        cleanups = set(threading.enumerate()) - before
        session = store.create("x")
    assert cleanups
    assert not any(thread.is_alive() for thread in cleanups)
    for _ in range(3):
        store.close()
    session.set("k", 1)
    store.save(session)
    assert store.get("x").get("k") == 1
    store.close()


def test_the_clean_up_keeps_no_process_alive(open_another: Open) -> None:
    """G4.11."""
    before = set(threading.enumerate())
    open_another()
    cleanups = set(threading.enumerate()) - before
    assert cleanups
    assert all(thread.daemon for thread in cleanups)


async def test_every_verb_has_an_async_twin(store: Stored) -> None:
    """G4.1, G4.13."""
    session = await store.async_create("x", 60, {"a": "b"})
    session.add_message("user", "hello")
    await store.async_save(session)
    assert texts(await store.async_get("x")) == ["hello"]
    assert await store.async_delete_expired() == 0
    await store.async_delete("x")
    assert not is_there(store, "x")
    await store.async_close()
