"""Somebody edits the session's file by hand while it is live (U9.7): these files are the user's."""

import errno
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.sizes import PATIENCE
from tests.stores.conftest import Make, Notices
from tests.stores.faults import FaultyDisk
from tests.stores.look import names, texts
from tiro.session.session import Session
from tiro.session.times import Clock, utc_now
from tiro.stores.manager import SessionManager


def edit(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change a session file the way an editor does: read, change, write a new file."""
    fields = json.loads(path.read_text())
    change(fields)
    other = path.with_suffix(".edited")
    other.write_text(json.dumps(fields, indent=2))
    other.replace(path)


def started(manager: SessionManager, count: int = 3) -> tuple[Session, Path]:
    session = manager.create(id="x", max_history=100)
    for number in range(count):
        session.add_message("user", str(number))
    return session, manager.save(session)


def look(manager: SessionManager) -> None:
    if (news := manager.read_news()) is not None:
        manager.take_news(news)


def wait_for_snapshot(path: Path, text: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while text not in path.read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert text in path.read_text()


def test_an_edit_is_seen_with_the_next_turn(manager: SessionManager, notices: Notices) -> None:
    session, path = started(manager)
    edit(path, lambda fields: fields["messages"][1].update(content="edited"))
    with manager.writing(session):
        assert texts(session) == ["0", "edited", "2"]
        session.add_message("user", "3")
    assert notices.reasons == ["changed_on_disk"]
    assert texts(manager.load(path)) == ["0", "edited", "2", "3"]


def test_an_edit_is_seen_by_a_look_and_what_is_half_written_is_left_alone(
    manager: SessionManager, notices: Notices
) -> None:
    """An editor that saves in pieces is not mistaken for damage, whenever we look."""
    session, path = started(manager)
    manager.set_current(session)
    whole = path.read_text().replace('"1"', '"edited"')
    for end in (len(whole) // 2, len(whole) - 2, None):
        path.write_text(whole[:end])
        look(manager)
        assert path.read_text() == whole[:end]
        assert texts(session) == ["0", "1" if end else "edited", "2"]
    assert notices.reasons == ["changed_on_disk"]
    assert names(path.parent) == ["x.json"]
    look(manager)
    assert notices.reasons == ["changed_on_disk"]


def test_a_look_takes_nothing_in_over_what_is_not_stored(manager: SessionManager) -> None:
    """Without autosave ours wait for an explicit save, which keeps both sides."""
    session, path = started(manager)
    manager.set_current(session)
    manager.autosave = False
    session.add_message("user", "3")
    edit(path, lambda fields: fields["messages"][1].update(content="edited"))
    look(manager)
    assert texts(session) == ["0", "1", "2", "3"]


def test_what_was_read_before_others_went_on_is_not_taken_in(manager: SessionManager) -> None:
    """Between the reading and the taking in, both they and we may write, or turn elsewhere."""
    session, path = started(manager)
    manager.set_current(session)
    edit(path, lambda fields: fields["messages"][1].update(content="first"))
    news = manager.read_news()
    assert news is not None
    edit(path, lambda fields: fields["messages"][1].update(content="then"))
    manager.take_news(news)
    assert texts(session) == ["0", "1", "2"]
    other = manager.create(id="y")
    other.add_message("user", "other")
    manager.set_current(other)
    manager.take_news(news)
    assert texts(other) == ["other"]
    manager.set_current(session)
    look(manager)
    assert texts(session) == ["0", "then", "2"]


def test_a_turn_of_another_process_is_not_looked_into(
    make_manager: Make, manager: SessionManager
) -> None:
    """A large session is not read again after each message of it, but once at its end."""
    session, path = started(manager)
    manager.set_current(session)
    other = make_manager()
    theirs = other.load(path)
    with other.writing(theirs):
        theirs.add_message("user", "3")
        assert manager.read_news() is None
    look(manager)
    assert texts(session) == ["0", "1", "2", "3"]


@pytest.mark.usefixtures("idle")
def test_an_edit_and_our_changes_are_both_kept(
    make_manager: Make, manager: SessionManager, notices: Notices
) -> None:
    """The edited file becomes the base, our journal is replayed on it."""
    session, path = started(manager)
    session.add_message("user", "3")
    edit(path, lambda fields: fields["messages"][1].update(content="edited"))
    session.add_message("user", "4")
    assert manager.is_stored(session)
    assert texts(make_manager().load(path)) == ["0", "edited", "2", "3", "4"]
    wait_for_snapshot(path, '"4"')
    with session.lock:
        assert texts(session) == ["0", "edited", "2", "3", "4"]
        assert notices.reasons == ["changed_on_disk"]
    assert notices[0].detail["dropped"] == 0


def test_changes_to_messages_that_are_gone_are_counted(
    manager: SessionManager, notices: Notices
) -> None:
    """U9.7: dropped and counted."""
    session, path = started(manager)
    session.edit_message(2, "mine")
    session.add_message("user", "3")
    edit(path, lambda fields: fields["messages"].pop(1))
    with manager.changing(session):
        pass
    assert texts(session) == ["0", "2", "3"]
    assert notices[0].detail["dropped"] == 1


def test_an_edit_without_our_fields_is_a_base_all_the_same(
    make_manager: Make, manager: SessionManager
) -> None:
    """U7.2: `journal_n`, seqs and times may be missing after an edit."""
    session, path = started(manager)
    session.add_message("user", "3")

    def strip(fields: dict[str, Any]) -> None:
        for name in [*fields]:
            if name not in ("id", "messages", "timestamp"):
                del fields[name]
        for message in fields["messages"]:
            del message["seq"], message["timestamp"]

    edit(path, strip)
    assert texts(make_manager().load(path)) == ["0", "1", "2", "3"]
    with manager.writing(session):
        session.add_message("user", "4")
    assert texts(make_manager().load(path)) == ["0", "1", "2", "3", "4"]
    seqs = [message.seq for message in session.messages]
    assert len(set(seqs)) == 5


def test_a_message_added_by_hand_is_kept(make_manager: Make, manager: SessionManager) -> None:
    session, path = started(manager)
    session.add_message("user", "3")
    edit(path, lambda fields: fields["messages"].append({"role": "user", "content": "by hand"}))
    with manager.writing(session):
        session.add_message("user", "4")
    found = texts(make_manager().load(path))
    assert sorted(found) == ["0", "1", "2", "3", "4", "by hand"]
    seqs = [message.seq for message in session.messages]
    assert len(set(seqs)) == 6


@pytest.mark.parametrize("in_journal", [True, False])
def test_an_older_file_put_back_does_not_lose_what_came_after_it(
    make_manager: Make, manager: SessionManager, in_journal: bool
) -> None:
    """An editor that had the file open since long ago saves it: we know more than it did."""
    session, path = started(manager)
    old = path.read_bytes()
    session.add_message("user", "3")
    if not in_journal:
        session.add_message("user", "4")
    manager.save(session)
    if in_journal:
        session.add_message("user", "4")
    last = session.n
    other = path.with_suffix(".edited")
    other.write_bytes(old.replace(b'"content":"1"', b'"content":"edited"'))
    other.replace(path)
    with manager.writing(session):
        assert session.n >= last, "a number is never given twice (U9.2)"
        session.add_message("user", "5")
    expected = ["0", "edited", "2", "3", "4", "5"]
    assert texts(session) == expected
    assert texts(make_manager().load(path)) == expected


@pytest.mark.usefixtures("idle")
def test_an_edit_that_made_the_file_unreadable_is_set_aside(
    make_manager: Make, manager: SessionManager, notices: Notices
) -> None:
    """U9.7: it is renamed, ours is written, with a notice."""
    session, path = started(manager)
    path.write_text("{ oops")
    session.add_message("user", "3")
    assert manager.is_stored(session)
    wait_for_snapshot(path, '"3"')
    assert texts(make_manager().load(path)) == ["0", "1", "2", "3"]
    [aside] = [name for name in names(path.parent) if ".bad-" in name]
    assert aside.startswith("x.json.bad-")
    assert (path.parent / aside).read_text() == "{ oops"
    with session.lock:
        assert notices.reasons == ["changed_on_disk"]


@pytest.mark.parametrize("left", [None, b"", b"garbage\n{{{", 0.5])
def test_a_damaged_journal_takes_nothing_from_a_live_session(
    make_manager: Make, manager: SessionManager, notices: Notices, left: bytes | float | None
) -> None:
    """U9.3, U9.7: what was acknowledged is in memory still; what is left of the file is kept."""
    session, path = started(manager)
    journal = path.with_suffix(".journal")
    for number in range(3, 7):
        session.add_message("user", str(number))
    data = journal.read_bytes()
    if isinstance(left, float):
        left = data[: int(len(data) * left)]
    journal.unlink() if left is None else journal.write_bytes(left)
    with manager.writing(session):
        session.add_message("user", "7")
    everything = [str(number) for number in range(8)]
    assert texts(session) == everything
    assert texts(make_manager().load(path)) == everything
    assert notices.reasons == ["changed_on_disk"]
    kept = list(path.parent.glob("*.bad-*"))
    assert [file.read_bytes() for file in kept] == ([left] if left else [])


@pytest.mark.parametrize("clock", [utc_now, lambda: datetime(2026, 1, 1, tzinfo=UTC)])
def test_two_that_went_on_from_a_damaged_journal_both_keep_theirs(
    make_manager: Make, clock: Clock
) -> None:
    """U9.8: nothing is overwritten in silence, also where numbers and times of changes agree."""
    session, path = started(manager := make_manager(clock=clock))
    session.add_message("user", "3")
    other = make_manager(clock=clock)
    theirs = other.load(path)
    with other.writing(theirs):
        theirs.add_message("user", "theirs")
    path.with_suffix(".journal").write_bytes(b"")
    with manager.writing(session):
        session.add_message("user", "ours")
    with other.writing(theirs):
        theirs.add_message("user", "5")
    assert texts(session) == ["0", "1", "2", "3", "ours"]
    assert texts(theirs) == ["0", "1", "2", "3", "theirs", "5"]
    stored = [texts(make_manager().load(file)) for file in path.parent.glob("*.json")]
    assert sorted(stored) == [texts(session), texts(theirs)]


@pytest.mark.parametrize("how", ["save", "writing", "message"])
def test_a_file_removed_by_hand_comes_back_with_the_next_change(
    make_manager: Make, manager: SessionManager, how: str
) -> None:
    session, path = started(manager)
    path.unlink()
    if how == "save":
        manager.save(session)
    elif how == "writing":
        with manager.writing(session):
            session.add_message("user", "3")
    else:
        session.add_message("user", "3")
    assert texts(make_manager().load(path)) == texts(session)
    assert manager.path_of(session) == path


def test_another_session_put_in_our_place_is_not_overwritten(
    make_manager: Make, manager: SessionManager, notices: Notices
) -> None:
    """M7.3: both are kept, ours under a new id."""
    session, path = started(manager)
    path.write_text(json.dumps({"id": "stranger", "messages": []}))
    before = path.read_bytes()
    with manager.writing(session):
        session.add_message("user", "3")
    assert path.read_bytes() == before
    assert session.id == "x-01"
    assert notices.reasons == ["renamed"]
    assert texts(make_manager().load_id("x-01")) == ["0", "1", "2", "3"]


def test_an_edit_while_saving_fails_is_not_overwritten(
    make_manager: Make, notices: Notices
) -> None:
    """U9.7 with U9.5: our changes that no journal took go under a new id, the edit stays."""
    disk = FaultyDisk()
    manager = make_manager(disk=disk)
    session, path = started(manager)
    disk.fail(errno.ENOSPC, only="write")
    session.add_message("user", "3")
    edit(path, lambda fields: fields["messages"][1].update(content="edited"))
    disk.heal()
    session.add_message("user", "4")
    assert manager.is_stored(session)
    assert texts(make_manager().load(path)) == ["0", "edited", "2"]
    assert texts(make_manager().load_id("x-01")) == ["0", "1", "2", "3", "4"]
    assert notices.reasons == ["save_failed", "renamed", "save_resumed"]
