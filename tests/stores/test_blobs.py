"""Large values lie once beside the sessions (U9.10), whatever is killed, deleted or damaged."""

import hashlib
import json
import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.stores.conftest import Make, Notices
from tests.stores.faults import FaultyDisk
from tests.stores.look import mode, names, texts
from tiro.errors import StorageError
from tiro.session.messages import Message
from tiro.session.session import Session
from tiro.stores.blobs import remove_unreferenced
from tiro.stores.disk import Disk
from tiro.stores.manager import SessionManager

BIG = "line of output\n" * 10_000
IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0K" * 20_000},
}
NAME = hashlib.sha256(BIG.encode()).hexdigest()


def with_big(manager: SessionManager, *more: Any, id: str | None = None) -> tuple[Session, Path]:
    """A saved session that holds BIG and more contents."""
    session = manager.create(id=id)
    for content in (BIG, *more):
        session.add_message("user", content)
    return session, manager.save(session)


def blobs(path: Path) -> list[str]:
    """The large values beside this session file."""
    return names(path.parent / "blobs")


def test_files_hold_references_and_memory_holds_values(manager: SessionManager) -> None:
    """U9.10: once beside the sessions, under its hash; the session's own file is small."""
    session, path = with_big(manager, [{"type": "text", "text": "see"}, IMAGE], BIG, "small")
    data = IMAGE["source"]["data"].encode()  # type: ignore[index]
    assert blobs(path) == sorted([NAME, hashlib.sha256(data).hexdigest()])
    assert (path.parent / "blobs" / NAME).read_text() == BIG
    assert path.stat().st_size < 5_000
    assert names(path.parent)[0] == "blobs"
    expected = [BIG, [{"type": "text", "text": "see"}, IMAGE], BIG, "small"]
    assert texts(session) == expected
    loaded = manager.load(path)
    assert texts(loaded) == expected
    assert all(message.metadata is None for message in loaded.messages)


def test_the_whole_of_a_cut_output_is_a_value_of_its_own(manager: SessionManager) -> None:
    """U9.10, also when the message itself is short."""
    session = manager.create()
    session.add_message("user", "run it")
    use = {"type": "tool_use", "id": "c1", "name": "run_command", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "cut"}
    session.append(Message("assistant", [use]))
    session.append(Message("tool", result, metadata={"tiro": {"output": BIG}}))
    for _ in range(2):
        path = manager.save(session)
        assert blobs(path) == [NAME]
        assert path.stat().st_size < 5_000
        session.add_message("user", "more")
    loaded = manager.load(path)
    assert loaded.oldest_first()[2].marks() == {"output": BIG}
    assert manager.delete(session.get_id())
    assert blobs(path) == []


def test_a_change_is_one_write_that_holds_all(make_manager: Make) -> None:
    """U9.3: the journal line holds the value itself; it goes with the next snapshot."""
    disk = FaultyDisk()
    manager = make_manager(disk=disk)
    session = manager.create()
    for text in ("one", "two"):
        session.add_message("user", text)
    disk.calls.clear()
    with session.lock:
        session.add_message("user", BIG)
        assert disk.calls == ["write"]
    path = manager.path_of(session)
    assert path is not None
    assert texts(make_manager().load(path)) == ["one", "two", BIG], "as after kill -9"
    manager.save(session)
    assert blobs(path) == [NAME]
    assert not path.with_suffix(".journal").exists()


def test_a_snapshot_does_not_write_values_again(make_manager: Make) -> None:
    """U9.10: not of this session, not of another one, not after a load."""
    disk = FaultyDisk()
    manager = make_manager(disk=disk)
    session, path = with_big(manager)
    before = (path.parent / "blobs" / NAME).stat()
    session.add_message("user", "more")
    disk.calls.clear()
    manager.save(session)
    assert disk.calls.count("write") == 1
    with_big(make_manager())
    loaded = make_manager().load(path)
    make_manager().save(loaded)
    after = (path.parent / "blobs" / NAME).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_evicted_and_edited_messages_keep_their_values(manager: SessionManager) -> None:
    """U1.4: the archive too."""
    session = manager.create(max_history=2)
    session.add_message("user", BIG)
    manager.save(session)
    session.add_message("assistant", "a")
    session.edit_message(1, IMAGE["source"]["data"])  # type: ignore[index]
    manager.save(session)
    session.add_message("user", "b")
    session.add_message("assistant", "c")
    path = manager.save(session)
    assert path.stat().st_size < 5_000
    loaded = manager.load(path)
    assert loaded.archive == session.archive
    assert [m.content for m in loaded.archive][:1] == [BIG]


@pytest.mark.parametrize("damage", ["missing", "changed", "cut"])
def test_a_missing_value_costs_only_itself(
    make_manager: Make, notices: Notices, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    """The session loads, says so, keeps the reference, and has the value when it is back."""
    manager = make_manager()
    session, path = with_big(manager, "small", id="x")
    manager.end(session)
    row = manager.list()[0][0]
    blob = path.parent / "blobs" / NAME
    if damage == "missing":
        blob.unlink()
    else:
        blob.write_text(BIG[:-1] + ("" if damage == "cut" else "X"))
    other = make_manager()
    assert other.list()[0] == [row]
    assert caplog.text == "", "a list reads no large values"
    assert row.title == "line of output"
    loaded = other.load(path)
    assert [notice.detail["missing"] for notice in notices] == [1]
    left, small = texts(loaded)
    assert small == "small"
    assert left.startswith("line of output\nline")
    loaded.add_message("user", "more")
    other.save(loaded)
    other.end(loaded)
    blob.write_text(BIG)
    assert texts(make_manager().load(path)) == [BIG, "small", "more"]


def test_a_value_damaged_behind_our_back_is_written_again(make_manager: Make) -> None:
    """Whoever holds the whole value in memory puts it right, at the latest with a cut file."""
    manager = make_manager()
    session, path = with_big(manager)
    blob = path.parent / "blobs" / NAME
    blob.write_text("cut")
    manager.save(session)
    assert blob.read_text() == BIG
    blob.write_text(BIG[:-1] + "X")
    with_big(make_manager())
    assert blob.read_text() == BIG


@pytest.mark.parametrize("damage", ["missing", "same size", "folder"])
@pytest.mark.parametrize("secrets", [(), ("of output",)])
def test_whoever_holds_whole_values_does_not_take_over_what_is_left_of_them(
    make_manager: Make, damage: str, secrets: tuple[str, ...]
) -> None:
    """U9.8, U9.10: the last whole copy survives another editor that has only the beginnings."""
    holder = make_manager(secrets=secrets)
    session, path = with_big(holder, [{"type": "text", "text": "see"}, IMAGE], id="x")
    whole = texts(make_manager().load(path))
    folder = path.parent / "blobs"
    if damage == "folder":
        shutil.rmtree(folder)
    for blob in folder.iterdir() if damage != "folder" else ():
        blob.unlink() if damage == "missing" else blob.write_text("X" * blob.stat().st_size)
    other = make_manager(secrets=secrets)
    loaded = other.load(path)
    assert texts(loaded) != whole
    loaded.add_message("user", "theirs")
    other.save(loaded)
    with holder.changing(session):
        session.add_message("user", "mine")
    assert [*texts(session)[2:]] == ["theirs", "mine"]
    assert texts(session)[:2] == whole
    assert all(message.metadata is None for message in session.messages)
    holder.end(session)
    assert texts(make_manager().load(path)) == [*whole, "theirs", "mine"]


def test_copies_are_whole_and_loading_from_elsewhere_finds_its_own(
    make_manager: Make, tmp_path: Path
) -> None:
    """U9.10: `save {path}` gives a file of its own; a session lives with what lies beside it."""
    manager = make_manager()
    session, path = with_big(manager)
    copy = manager.copy_to(session, tmp_path / "else" / "copy.json")
    assert names(copy.parent) == ["copy.json"]
    assert json.loads(copy.read_text())["messages"][0]["content"] == BIG
    moved = tmp_path / "moved"
    path.parent.rename(moved)
    other = make_manager()
    loaded = other.load(moved / path.name)
    assert texts(loaded) == [BIG]
    loaded.add_message("user", BIG + "more")
    other.end(loaded)
    assert len(names(moved / "blobs")) == 2
    assert not path.parent.exists() or blobs(path) == []


def test_a_file_of_an_older_version_is_read_as_before(make_manager: Make, directory: Path) -> None:
    """B14: values inside the file; the next save takes them out."""
    directory.mkdir(parents=True)
    path = directory / "old.json"
    message = {"role": "user", "content": BIG, "seq": 1}
    path.write_text(json.dumps({"schema_version": 1, "id": "old", "messages": [message]}))
    manager = make_manager()
    session = manager.load(path)
    assert texts(session) == [BIG]
    assert not (directory / "blobs").exists()
    manager.save(session)
    assert blobs(path) == [NAME]
    assert json.loads(path.read_text())["schema_version"] == 1


def test_deleting_removes_what_nothing_else_refers_to(make_manager: Make) -> None:
    """U9.10: shared ones stay until the last session goes."""
    manager = make_manager()
    _, one = with_big(manager, IMAGE, id="one")
    with_big(manager, id="two")
    assert len(blobs(one)) == 2
    assert manager.delete("one")
    assert blobs(one) == [NAME]
    manager.create(id="three").add_message("user", "small")
    assert manager.delete("three")
    assert blobs(one) == [NAME]
    assert manager.delete("two")
    assert blobs(one) == []


@pytest.mark.parametrize("name", ["two.json.bad-20260101-000000", "renamed by hand.txt", ".two"])
def test_any_file_beside_them_can_refer_to_values(manager: SessionManager, name: str) -> None:
    """Damaged copies and whatever a user made of a session file count as well."""
    _, path = with_big(manager, id="one")
    _, two = with_big(manager, id="two")
    manager.end(manager.load(two))
    two.rename(two.with_name(name))
    assert manager.delete("one")
    assert blobs(path) == [NAME]
    two.with_name(name).unlink()
    remove_unreferenced(path.parent, Disk())
    assert blobs(path) == []


def test_what_a_session_no_longer_holds_goes_when_it_ends(manager: SessionManager) -> None:
    """U9.10: a cleared session leaves nothing behind."""
    session, path = with_big(manager, IMAGE)
    session.clear()
    session.add_message("user", BIG)
    manager.save(session)
    assert len(blobs(path)) == 2
    manager.end(session)
    assert blobs(path) == [NAME]


def test_nothing_is_removed_while_somebody_is_about_to_refer_to_it(
    make_manager: Make, directory: Path
) -> None:
    """The value is stored, but nothing that refers to it has been written yet."""
    results: list[list[str]] = []

    class Slow(Disk):
        def open(self, path: Path | str, flags: int) -> int:
            if Path(path).name.startswith(".x.json."):
                remover = threading.Thread(target=remove_unreferenced, args=(directory, Disk()))
                remover.start()
                remover.join()
                results.append(names(directory / "blobs"))
            return Disk.open(self, path, flags)

    manager = make_manager(disk=Slow())
    session = manager.create(id="x")
    session.add_message("user", BIG)
    assert results == [[NAME]]
    assert texts(make_manager().load(directory / "x.json")) == [BIG]


def test_deleting_and_writing_at_once_loses_nothing(make_manager: Make, directory: Path) -> None:
    """Two managers share a value: one deletes sessions with it while the other makes them."""
    kept: list[Path] = []

    def make() -> None:
        manager = make_manager()
        for number in range(40):
            kept.append(with_big(manager, id=f"kept-{number}")[1])

    maker = threading.Thread(target=make)
    maker.start()
    manager = make_manager()
    number = 0
    while maker.is_alive():
        number += 1
        with_big(manager, id=f"deleted-{number}")
        assert manager.delete(f"deleted-{number}")
    maker.join()
    assert len(kept) == 40
    other = make_manager()
    assert all(texts(other.load(path)) == [BIG] for path in kept)


@pytest.mark.parametrize("number", range(4))
def test_a_fault_while_values_are_removed_costs_nothing(make_manager: Make, number: int) -> None:
    """What another session refers to is there; what was not removed goes the next time."""
    disk = FaultyDisk()
    manager = make_manager(disk=disk)
    _, path = with_big(manager, id="kept")
    with_big(manager, IMAGE, "a" * 70_000, id="gone")
    disk.fail(first=number, count=1, only="unlink")
    with suppress(StorageError):
        manager.delete("gone")
    disk.heal()
    assert texts(make_manager().load(path)) == [BIG]
    manager.delete("gone")
    remove_unreferenced(path.parent, disk)
    assert blobs(path) == [NAME]


@pytest.mark.parametrize("obstacle", ["a file", "full"])
def test_where_no_value_can_be_stored_the_session_holds_it(
    make_manager: Make, directory: Path, notices: Notices, obstacle: str
) -> None:
    """B15: a session is never less safe for having large values."""
    disk = FaultyDisk()
    manager = make_manager(disk=disk)
    directory.mkdir(parents=True)
    if obstacle == "a file":
        (directory / "blobs").write_text("mine")
    else:
        disk.fail(only="make_directory")
    session, path = with_big(manager)
    assert json.loads(path.read_text())["messages"][0]["content"] == BIG
    assert notices.reasons == []
    assert manager.is_stored(session)
    if obstacle == "a file":
        assert (directory / "blobs").read_text() == "mine"
        (directory / "blobs").unlink()
    disk.heal()
    manager.save(session)
    assert blobs(path) == [NAME]
    assert path.stat().st_size < 5_000


def test_configured_keys_are_in_no_value(make_manager: Make) -> None:
    """U9.11, B52: neither then nor when the key is configured later."""
    manager = make_manager(secrets=["SECRET-1-abcdef"])
    later = 'SECRET-2-"quoted"'
    session, path = with_big(manager, f"{'x' * 190}SECRET-1-abcdef {later} {BIG}")
    stored = [(path.parent / "blobs" / name).read_text() for name in blobs(path)]
    assert not any("SECRET-1" in text for text in stored)
    assert any(later in text for text in stored)
    manager.secrets = [*manager.secrets, later]
    manager.save(session)
    manager.end(session)
    files = [path, *(path.parent / "blobs").iterdir()]
    assert len(files) == 3
    assert not any("SECRET" in file.read_text() for file in files)
    assert "[secret] [secret] line" in str(texts(make_manager().load(path))[1])


@pytest.mark.parametrize("umask", [0o022, 0o000])
def test_values_are_for_their_owner_only(manager: SessionManager, umask: int) -> None:
    """B53."""
    old = os.umask(umask)
    try:
        _, path = with_big(manager)
    finally:
        os.umask(old)
    assert mode(path.parent / "blobs") == 0o700
    assert mode(path.parent / "blobs" / NAME) == 0o600


def test_what_a_killed_process_left_is_removed(manager: SessionManager) -> None:
    """B10: no stray files pile up."""
    path = with_big(manager, id="x")[1]
    stale = path.parent / "blobs" / f".{NAME}.{2**22 + 1}.tmp"
    stale.write_text("half")
    (path.parent / "blobs" / f".{NAME}.{os.getpid()}.tmp").write_text("of a living one")
    with_big(manager, IMAGE)
    assert f".{NAME}.{os.getpid()}.tmp" in blobs(path)
    assert stale.name not in blobs(path)
    stale.write_text("half")
    assert manager.delete("x")
    assert stale.name not in blobs(path)
