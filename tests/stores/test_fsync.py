"""Power loss, by the rule of U9.3: what is synced when, and in which order (U9.6)."""

import time

import pytest

from tests.sizes import PATIENCE
from tests.stores.conftest import Make
from tests.stores.faults import FaultyDisk
from tiro.session.session import Session
from tiro.stores.manager import SessionManager
from tiro.stores.saving import Fsync


def started(make: Make, fsync: Fsync) -> tuple[SessionManager, Session, FaultyDisk]:
    """A session whose first message is stored, and the record of its disk from then on."""
    disk = FaultyDisk()
    manager = make(disk=disk, fsync=fsync)
    session = manager.create()
    session.add_message("user", "one")
    disk.calls.clear()
    return manager, session, disk


def test_a_snapshot_is_on_the_disk_before_the_journal_is_cut(make_manager: Make) -> None:
    """U9.6: data before the name, the name before the cut."""
    manager, session, disk = started(make_manager, "never")
    session.add_message("user", "two")
    disk.calls.clear()
    manager.save(session)
    assert disk.calls == ["open", "write", "sync", "replace", "sync_directory", "truncate"]


def test_a_claim_is_on_the_disk_before_it_counts(make_manager: Make) -> None:
    """U9.1"""
    disk = FaultyDisk()
    manager = make_manager(disk=disk, fsync="never")
    manager.create().add_message("user", "one")
    assert disk.calls[-5:] == ["open", "write", "sync", "link", "sync_directory"]


def test_an_add_is_one_write_call(make_manager: Make) -> None:
    """U9.3, product bar `add`: however long the history is, and with what it evicts."""
    manager, session, disk = started(make_manager, "never")
    session.add_message("user", "opens the journal")
    for _ in range(150):
        with manager.writing(session):
            disk.calls.clear()
            session.add_message("user", "next")
            assert disk.calls == ["write"]


def test_with_message_every_change_is_synced(make_manager: Make) -> None:
    """U9.3; a new journal's name is synced as well."""
    _, session, disk = started(make_manager, "message")
    session.add_message("user", "two")
    session.add_message("user", "three")
    assert disk.calls == ["open", "write", "sync", "sync_directory", "write", "sync"]


def test_with_turn_a_turn_is_synced_at_its_end(make_manager: Make) -> None:
    """U9.3"""
    manager, session, disk = started(make_manager, "turn")
    with manager.writing(session):
        session.add_message("user", "two")
        session.add_message("user", "three")
        assert disk.calls.count("sync") == 0
    assert disk.calls[-2:] == ["sync", "sync_directory"]


@pytest.mark.usefixtures("idle")
def test_with_turn_a_change_outside_is_synced_soon(make_manager: Make) -> None:
    """U9.3: the idle snapshot or the background thread's fsync, whichever comes first."""
    manager, session, disk = started(make_manager, "turn")
    with session.lock:  # the background thread waits
        with manager.changing(session):
            session.add_message("user", "two")
        assert "sync" not in disk.calls
    deadline = time.monotonic() + PATIENCE
    while "sync" not in disk.calls and time.monotonic() < deadline:
        time.sleep(0.02)
    assert "sync" in disk.calls


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("fsync", ["turn", "never"])
def test_a_large_session_is_not_rewritten_for_a_few_changes(
    make_manager: Make, fsync: Fsync
) -> None:
    """U9.6: from 1 MB on the journal must have reached a quarter; its fsync comes all the same."""
    manager, session, disk = started(make_manager, fsync)
    for _ in range(24):
        session.add_message("user", "x" * 50_000)
    manager.close()  # nothing is on its way any more
    disk.calls.clear()
    session.add_message("user", "small")
    expected, until = ["write", "sync"] if fsync == "turn" else ["write"], time.monotonic() + 1.5
    while expected[-1] not in disk.calls or time.monotonic() < until:  # nothing more may come
        time.sleep(0.02)
    assert [call for call in disk.calls if call in ("write", "sync", "replace")] == expected
    for _ in range(8):
        session.add_message("user", "y" * 50_000)
    deadline = time.monotonic() + PATIENCE
    while "replace" not in disk.calls and time.monotonic() < deadline:
        time.sleep(0.02)
    assert "replace" in disk.calls
