"""The library's face of the stores: M1, M2, M4, M7, N6."""

import datetime
import errno
import gc
import json
import math
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.sizes import PATIENCE
from tests.stores.conftest import Make, Notices
from tests.stores.faults import FaultyDisk
from tests.stores.look import mode, names, texts
from tiro.errors import (
    InvalidSessionIdError,
    SessionExistsError,
    SessionNotFoundError,
    StorageError,
)
from tiro.session.changes import Set
from tiro.session.json_text import decode, encode
from tiro.session.secrets import REDACTED
from tiro.session.session import Session
from tiro.stores.disk import Disk
from tiro.stores.manager import SessionManager

NOON = datetime.datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=datetime.UTC)


def frozen() -> datetime.datetime:
    return NOON


def test_a_new_session_is_empty(manager: SessionManager, directory: Path) -> None:
    """M1.2, M2.2"""
    session = manager.get()
    assert (session.id, session.agent, session.max_history) == (None, None, 100)
    assert session.messages == []
    assert manager.get() is session
    assert manager.path_of(session) is None
    assert not directory.exists()


def test_the_default_limit_acts_on_later_sessions_only(manager: SessionManager) -> None:
    """M1.2, M2.1, and off is `math.inf` (answer 19)."""
    first = manager.create()
    manager.default_max_history = 7
    assert (first.max_history, manager.create().max_history) == (100, 7)
    assert manager.create(max_history=3).max_history == 3
    assert manager.create(max_history=math.inf).max_history is None


def test_each_directory_is_a_scope_of_its_own(tmp_path: Path) -> None:
    """M7.2: a reset touches only its own, and so does a save."""
    with SessionManager(tmp_path / "a") as one, SessionManager(tmp_path / "b") as other:
        for manager in (one, other):
            manager.get().add_message("user", "hello")
            manager.save(manager.get())
        kept = other.get()
        one.reset()
        assert one.get() is not kept
        assert other.get() is kept
        assert [Path(path).parent.name for path in one.list_saved()] == ["a"]


def test_reset_forgets_the_current_session(manager: SessionManager) -> None:
    """M2.3"""
    first = manager.get()
    manager.reset()
    assert manager.get() is not first


def test_nothing_is_written_before_the_first_message(
    manager: SessionManager, directory: Path
) -> None:
    """U9.1"""
    session = manager.create(agent="plan")
    session.change(title="x")
    session.set("a", 1)
    assert manager.claim_id(session)
    assert names(directory) == []
    session.add_message("user", "hello")
    assert names(directory) == [f"{session.id}.json"]
    assert manager.is_stored(session)


def test_an_id_is_the_local_time_with_a_suffix_where_taken(
    make_manager: Make, directory: Path
) -> None:
    """M2.8, B13: three sessions in one second, one of them known to the files only."""
    stamp = f"session-{NOON.astimezone():%Y%m%d-%H%M%S}"
    directory.mkdir(parents=True)
    (directory / f"{stamp}.json").write_text("{}")
    manager = make_manager(clock=frozen)
    sessions = [manager.create() for _ in range(2)]
    assert [manager.claim_id(s) for s in sessions] == [f"{stamp}-01", f"{stamp}-02"]
    for session in sessions:
        session.add_message("user", session.id or "")
    other = make_manager(clock=frozen).create()
    other.add_message("user", "third")
    assert other.id == f"{stamp}-03"
    assert (directory / f"{stamp}.json").read_text() == "{}"


def test_a_claimed_id_that_another_process_took_gets_a_suffix(
    make_manager: Make, notices: Notices, directory: Path
) -> None:
    """U9.1, protocol section 3: `getId` claims no file; `renamed` says so."""
    mine, theirs = make_manager(clock=frozen), make_manager(clock=frozen)
    session, other = mine.create(), theirs.create()
    assert mine.claim_id(session) == theirs.claim_id(other)
    other.add_message("user", "theirs")
    session.add_message("user", "mine")
    assert session.id == f"{other.id}-01"
    assert notices.reasons == ["renamed"]
    assert notices[0].detail["old_id"] == other.id
    assert texts(mine.load_id(session.id)) == ["mine"]
    assert texts(mine.load_id(other.id or "")) == ["theirs"]


def test_create_refuses_unsafe_and_taken_ids(manager: SessionManager, directory: Path) -> None:
    """M7.3, G4.3"""
    with pytest.raises(InvalidSessionIdError):
        manager.create(id="../evil")
    session = manager.create(id="project-NAME")
    session.add_message("user", "hello")
    with pytest.raises(SessionExistsError):
        manager.create(id="project-NAME")
    assert manager.load_id("project-NAME").id == "project-NAME"
    assert all(name == name.lower() for name in names(directory)), "N6.4"


def test_files_are_private_from_the_first_instant(
    make_manager: Make, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B53: no chmod afterwards, whatever the umask; directories made by us are 0700."""
    for name in ("chmod", "fchmod"):
        monkeypatch.setattr(os, name, lambda *_: pytest.fail("a file was wide for a moment"))
    before = os.umask(0)
    try:
        manager = make_manager(cache_directory=tmp_path / "cache" / "tiro")
        session = manager.create()
        session.add_message("user", "one")
        session.add_message("user", "two " * 20_000)
        manager.list()
        manager.load(manager.save(session)).add_message("user", "three")
        copy = manager.save(session, tmp_path / "deep" / "er" / "copy.json")
        manager.close()
    finally:
        os.umask(before)
    for made in (directory, directory.parent, copy.parent, copy.parent.parent, tmp_path / "cache"):
        assert mode(made) == 0o700, made
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 3
    assert {mode(path) for path in files} == {0o600}


def test_a_wide_file_is_narrowed(make_manager: Make, directory: Path) -> None:
    """B53"""
    manager = make_manager()
    session = manager.create()
    session.add_message("user", "one")
    manager.close()
    path = directory / f"{session.id}.json"
    path.chmod(0o644)
    again = make_manager().load(path)
    assert mode(path) == 0o600
    again.add_message("user", "two")
    make_manager().end(again)
    assert mode(directory / f"{session.id}.journal") == 0o600


def test_save_and_load_keep_everything(make_manager: Make) -> None:
    """M2.12, U7.1, U7.2: order, roles, blocks, unknown fields, memo, state, counters."""
    manager = make_manager()
    session = manager.create(max_history=3)
    use = {"type": "tool_use", "id": "c1", "name": "grep", "input": {"x-y": 2**70, "class": None}}
    odd = {"type": "hologram", "data": [1, 2.5, {"jsonrpc": "2.0"}]}
    session.add_message("user", "Fünf \ud83d halbe 🙂\u2028\x00", colour="red")
    session.add_message("assistant", [{"type": "text", "text": "look"}, use, odd])
    session.add_tool_result("c1", "found")
    session.add_message("assistant", "done", metadata={"a": {"b": 1}})
    session.set("k", {"v": None})
    session.change(memo={"fact": 1}, summary="so far", title="T", agent="plan", model="m/x")
    path = manager.save(session)
    text = path.read_text(encoding="utf-8")  # strict: B12
    again = make_manager().load(path)
    assert decode(encode(again.snapshot())) == decode(encode(session.snapshot()))
    fields = json.loads(text)
    assert fields["schema_version"] == 1
    assert [m["role"] for m in fields["messages"]] == ["assistant", "tool", "assistant"]
    assert fields["archive"][0]["content"] == "Fünf \ufffd halbe 🙂\u2028\x00"
    assert fields["archive"][0]["colour"] == "red"
    again.add_message("user", "more")
    assert again.newest_message is not None
    assert again.newest_message.seq == 5


def test_the_timestamp_has_the_local_form(make_manager: Make, monkeypatch: object) -> None:
    """M4.2"""
    manager = make_manager(clock=frozen)
    session = manager.create()
    session.add_message("user", "x")
    stamp = json.loads(manager.save(session).read_text())["timestamp"]
    assert datetime.datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%S%z") == NOON.replace(microsecond=0)


def test_a_file_with_three_fields_loads_and_unknown_fields_survive(
    make_manager: Make, directory: Path
) -> None:
    """U7.2, B14"""
    directory.mkdir(parents=True)
    path = directory / "old.json"
    path.write_text(
        json.dumps(
            {
                "id": "old",
                "timestamp": "2025-02-21T14:30:15-0800",
                "messages": [
                    {"role": "user", "content": "hi", "x-new": [1]},
                    {"role": "assistant", "content": [{"type": "text", "text": "ho"}]},
                ],
                "from_the_future": {"a": [1, {"b": None}]},
            }
        )
    )
    manager = make_manager()
    session = manager.load(path)
    assert [(m.seq, m.role) for m in session.messages] == [(1, "user"), (2, "assistant")]
    session.add_message("user", "new")
    manager.save(session)
    fields = json.loads(path.read_text())
    assert fields["from_the_future"] == {"a": [1, {"b": None}]}
    assert fields["messages"][0]["x-new"] == [1]


def test_more_messages_than_max_history_are_pruned_at_load(
    make_manager: Make, directory: Path
) -> None:
    """U9.1, U1.4; a second load and the list say the same."""
    directory.mkdir(parents=True)
    path = directory / "long.json"
    rows = [{"role": "user", "content": str(i)} for i in range(10)]
    path.write_text(json.dumps({"id": "long", "max_history": 4, "messages": rows}))
    manager = make_manager()
    session = manager.load(path)
    assert texts(session) == ["6", "7", "8", "9"]
    assert len(session.archive) == 6
    session.add_message("user", "10")
    again = make_manager().load(path)
    assert again.snapshot() == session.snapshot()
    assert manager.list()[0][0].messages == 4


def test_save_with_a_path_writes_a_copy(make_manager: Make, tmp_path: Path) -> None:
    """M2.11, protocol `save`: the session stays where it was; parents are made."""
    manager = make_manager()
    session = manager.create()
    session.add_message("user", "one")
    home = manager.path_of(session)
    target = tmp_path / "a b" / "ç" / "copy.json"
    assert manager.save(session, target) == target
    session.add_message("user", "two")
    assert manager.path_of(session) == home
    assert texts(manager.load(target)) == ["one"]
    manager.save(session, target)
    assert texts(manager.load(target)) == ["one", "two"]


def test_a_copy_never_overwrites_another_session(make_manager: Make, tmp_path: Path) -> None:
    """M7.3"""
    manager = make_manager()
    one, two = manager.create(id="one"), manager.create(id="two")
    one.add_message("user", "1")
    two.add_message("user", "2")
    path = manager.path_of(two)
    assert path is not None
    before = path.read_bytes()
    with pytest.raises(StorageError) as caught:
        manager.save(one, path)
    assert caught.value.data == {"path": str(path), "errno": "EEXIST"}
    assert path.read_bytes() == before


OTHERS = ("[]", "null", "{", '{"name": "x"}', "import os\n", "\x00" * 100)


@pytest.mark.parametrize("other", OTHERS)
def test_a_copy_never_takes_the_place_of_anything_else(
    make_manager: Make, tmp_path: Path, other: str
) -> None:
    """M7.3: a slip in a name costs nobody a file, whatever is in it."""
    manager = make_manager()
    session = manager.create()
    session.add_message("user", "one")
    target = tmp_path / "t" / "b.py"
    target.parent.mkdir()
    target.write_text(other)
    with pytest.raises(StorageError, match="holds something else; choose another name") as caught:
        manager.save(session, target)
    assert caught.value.data == {"path": str(target), "errno": "EEXIST"}
    assert (target.read_text(), names(target.parent)) == (other, ["b.py"])


def test_a_copy_takes_the_place_of_an_empty_file(make_manager: Make, tmp_path: Path) -> None:
    """U9.1: it is a claim that was never finished."""
    manager = make_manager()
    session = manager.create()
    session.add_message("user", "one")
    target = tmp_path / "x.json"
    target.touch()
    manager.save(session, target)
    assert texts(manager.load(target)) == ["one"]


@pytest.mark.parametrize("kind", ["directory", "fifo", "below a file"])
def test_a_path_that_is_no_file_is_an_error(make_manager: Make, tmp_path: Path, kind: str) -> None:
    """B15: path and reason are named, and nothing hangs."""
    manager = make_manager()
    session = manager.create()
    session.add_message("user", "one")
    target = tmp_path / "x.json"
    if kind == "directory":
        target.mkdir()
    elif kind == "fifo":
        os.mkfifo(target)
    else:
        (tmp_path / "file").write_text("")
        target = tmp_path / "file" / "x.json"
    with pytest.raises(StorageError) as caught:
        manager.save(session, target)
    assert caught.value.data["errno"] in ("EISDIR", "EINVAL", "ENOTDIR", "EEXIST")
    with pytest.raises((StorageError, SessionNotFoundError)):
        manager.load(target)


def test_loading_changes_nothing_and_lives_where_it_was(make_manager: Make, tmp_path: Path) -> None:
    """M2.14, protocol `load`: saves and journal beside the file it came from."""
    manager = make_manager()
    current = manager.get()
    path = tmp_path / "elsewhere" / "talk.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"id": "talk-1", "messages": [{"role": "user", "content": "a"}]}))
    before = path.read_bytes()
    session = manager.load(path)
    assert manager.get() is current
    assert path.read_bytes() == before
    session.add_message("user", "b")
    assert names(path.parent) == ["talk.journal", "talk.json"]
    assert manager.save(session) == path
    assert texts(make_manager().load(path)) == ["a", "b"]


def test_a_link_to_a_session_stays_a_link(make_manager: Make, tmp_path: Path) -> None:
    manager = make_manager()
    real = tmp_path / "real" / "talk.json"
    real.parent.mkdir()
    real.write_text(json.dumps({"id": "talk", "messages": []}))
    link = tmp_path / "link.json"
    link.symlink_to(real)
    session = manager.load(link)
    session.add_message("user", "a")
    manager.save(session)
    assert link.is_symlink()
    assert texts(manager.load(real)) == ["a"]


def test_what_is_not_there_is_not_found(make_manager: Make, tmp_path: Path) -> None:
    """M2.13, M7.3"""
    manager = make_manager()
    with pytest.raises(SessionNotFoundError) as caught:
        manager.load(tmp_path / "no.json")
    assert caught.value.data == {"path": str(tmp_path / "no.json")}
    with pytest.raises(SessionNotFoundError) as unknown:
        manager.load_id("nobody")
    assert unknown.value.data == {"id": "nobody"}
    with pytest.raises(InvalidSessionIdError):
        manager.load_id("../../etc/passwd")
    assert manager.latest() is None
    assert manager.list_saved() == []


def test_without_autosave_only_an_explicit_save_writes(
    make_manager: Make, directory: Path, notices: Notices
) -> None:
    """M4.4"""
    manager = make_manager(autosave=False)
    session = manager.create()
    with manager.writing(session):
        session.add_message("user", "one")
    with manager.changing(session):
        session.add_message("user", "two")
    assert not manager.is_stored(session)
    manager.end(session)
    assert names(directory) == []
    path = manager.save(session)
    assert manager.is_stored(session)
    session.add_message("user", "three")
    assert not manager.is_stored(session)
    with manager.writing(session):
        session.add_message("user", "four")
    manager.close()
    assert names(directory) == [path.name]
    assert texts(make_manager().load(path)) == ["one", "two"]
    manager.save(session)
    assert texts(make_manager().load(path)) == ["one", "two", "three", "four"]
    assert notices == []


def test_autosave_switched_on_later_misses_nothing(make_manager: Make) -> None:
    """U9.4: changes that no journal holds must not leave a gap in it."""
    manager = make_manager(autosave=False)
    session = manager.create()
    session.add_message("user", "one")
    path = manager.save(session)
    session.add_message("user", "two")
    manager.autosave = True
    session.add_message("user", "three")
    assert texts(make_manager().load(path)) == ["one", "two", "three"]


def test_a_lost_agent_gives_none_and_its_name_stays(make_manager: Make) -> None:
    """M4.3"""
    first = make_manager()
    session = first.create(agent="gone")
    session.add_message("user", "one")
    path = first.save(session)
    manager = make_manager(agents={"build": object()})
    again = manager.load(path)
    assert again.agent is None
    assert manager.lost_agent(again) == "gone"
    again.add_message("user", "two")
    manager.save(again)
    assert json.loads(path.read_text())["agent"] == "gone"
    again.set_agent("build")
    assert manager.lost_agent(again) is None
    manager.save(again)
    assert json.loads(path.read_text())["agent"] == "build"
    assert make_manager(agents={"build": object()}).load(path).agent == "build"


@pytest.mark.parametrize("only", ["open", "unlink"])
def test_a_delete_that_the_disk_refuses_says_so(make_manager: Make, only: str) -> None:
    """U7.6: a StorageError wherever it fails, and the session is still there."""
    disk = FaultyDisk()
    manager = make_manager(disk=disk)
    session = manager.create()
    with manager.writing(session):
        session.add_message("user", "one")
    path = manager.save(session)
    session.add_message("user", "two")
    other = make_manager(disk=disk)
    disk.fail(errno.EROFS, only=only)
    with pytest.raises(StorageError):
        other.delete(session.id or "")
    disk.heal()
    assert texts(other.load(path)) == ["one", "two"]


def test_a_delete_that_leaves_what_was_said_says_so(make_manager: Make) -> None:
    """Who deletes a session wants its words gone, not its name."""
    disk = FaultyDisk()
    manager = make_manager(disk=disk)
    session = manager.create()
    path = manager.save(session)
    session.add_message("user", "a word")
    manager.close()
    journal = path.with_suffix(".journal")
    journal.write_bytes(b"a word")
    disk.fail(errno.EACCES, only="unlink", first=2, count=1)
    with pytest.raises(StorageError) as caught:
        make_manager(disk=disk).delete(session.id or "")
    assert caught.value.data == {"path": str(journal), "errno": "EACCES"}
    assert names(path.parent) == [journal.name]


def test_a_huge_max_history_is_a_number_like_any_other(manager: SessionManager) -> None:
    """U1.8: an int of any size."""
    assert manager.create(max_history=10**400).max_history == 10**400


@pytest.mark.usefixtures("idle")
def test_delete_removes_all_files_and_pending_saves(make_manager: Make, directory: Path) -> None:
    """Protocol `delete`; "deleting a session must cancel its pending saves, or it comes back"."""
    manager = make_manager()
    session = manager.create()
    with manager.writing(session):
        session.add_message("user", "one")
        session.add_message("user", "two")
    id = session.id or ""
    assert manager.delete(id) is True
    assert names(directory) == []
    session.add_message("user", "late")
    time.sleep(0.4)
    manager.close()
    assert names(directory) == []
    assert manager.delete(id) is False
    with pytest.raises(InvalidSessionIdError):
        manager.delete("../x")


def test_a_session_deleted_by_another_process_does_not_come_back_by_itself(
    make_manager: Make, directory: Path
) -> None:
    mine, theirs = make_manager(), make_manager()
    session = mine.create()
    session.add_message("user", "one")
    session.add_message("user", "two")
    assert theirs.delete(session.id or "")
    mine.close()
    assert names(directory) == []
    session.add_message("user", "three")
    assert texts(make_manager().load_id(session.id or "")) == ["one", "two", "three"]


def test_channel_sessions_are_one_object_a_key(make_manager: Make, directory: Path) -> None:
    """N6.6, U1.8: the same object as long as anyone holds it; no limit that nobody asked for."""
    manager = make_manager()
    session = manager.get_or_create("telegram:123")
    assert manager.get_or_create("telegram:123") is session
    assert (session.id, session.max_history) == ("telegram:123", None)
    other = manager.get_or_create("telegram_123")
    session.add_message("user", "colon")
    other.add_message("user", "underscore")
    assert len(names(directory)) == 2
    manager.invalidate("telegram:123")
    again = manager.get_or_create("telegram:123")
    assert again is not session
    assert texts(again) == ["colon"]
    assert {row.id for row in manager.list()[0]} == {"telegram:123", "telegram_123"}


def test_the_cache_of_channel_sessions_is_bounded(make_manager: Make) -> None:
    """N6.6: recent ones are kept, others only while somebody holds them."""
    manager = make_manager(autosave=False)
    held = manager.get_or_create("held")
    for number in range(200):
        manager.get_or_create(f"k:{number}")
    gc.collect()
    alive = sum(isinstance(thing, Session) for thing in gc.get_objects())
    assert alive < 120
    assert manager.get_or_create("held") is held


def test_keys_never_reach_a_file(make_manager: Make, directory: Path) -> None:
    """U9.11, B52: the exact values of configured keys, also where JSON escapes them."""
    secrets = ["sk-SECRET-123456", 'quo"ted\\secret']
    manager = make_manager(secrets=secrets)
    session = manager.create()
    session.add_message("user", f"first {secrets[0]} and {secrets[1]}")
    session.add_message("tool", {"type": "tool_result", "tool_use_id": "a", "content": secrets[0]})
    manager.save(session)
    everything = {f"key {secrets[0]}": [secrets[1], secrets[0]]}
    session.change(memo=everything, summary=secrets[0], title=secrets[0], metadata=everything)
    session.set(secrets[0], everything)
    session.add_message(
        "assistant", [{"type": "tool_use", "id": "b", "name": "n", "input": everything}]
    )
    session.edit_message(1, f"again {secrets[0]}")
    session.add_message("user", secrets[1])
    for path in directory.iterdir():
        data = path.read_bytes()
        assert b"SECRET" not in data
        assert b"ted\\\\secret" not in data
    assert texts(make_manager().load_id(session.id or ""))[-1] == REDACTED


def test_close_leaves_one_file_and_may_be_called_again(make_manager: Make, directory: Path) -> None:
    """U9.6: at shutdown everything is in the snapshot."""
    with make_manager() as manager:
        session = manager.create()
        session.add_message("user", "one")
        session.add_message("user", "two")
    assert names(directory) == [f"{session.id}.json"]
    assert [
        m["content"] for m in json.loads((directory / names(directory)[0]).read_text())["messages"]
    ] == ["one", "two"]
    manager.close()
    session.add_message("user", "three")
    manager.close()
    assert texts(make_manager().load_id(session.id or "")) == ["one", "two", "three"]


@pytest.mark.usefixtures("idle")
def test_an_idle_session_gets_a_snapshot_and_the_thread_sleeps(
    make_manager: Make, directory: Path
) -> None:
    """U9.6; at rest no thread does anything."""
    manager = make_manager()
    session = manager.create()
    session.add_message("user", "one")
    session.add_message("user", "two")
    path = directory / f"{session.id}.json"
    journal = directory / f"{session.id}.journal"
    deadline = time.monotonic() + PATIENCE
    while journal.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(json.loads(path.read_text())["messages"]) == 2
    while True:
        stamp, used = path.stat(), time.process_time()  # of all threads; this one sleeps
        time.sleep(0.6)
        if time.process_time() - used < 0.05 and path.stat() == stamp:
            break
        assert time.monotonic() < deadline, "a thread does something all the time"


class Meanwhile(Disk):
    """Lets a test do something while the background thread waits for its snapshot's fsync."""

    def __init__(self) -> None:
        self.then: list[Any] = []

    def sync(self, descriptor: int) -> None:
        super().sync(descriptor)
        if threading.current_thread().name == "tiro-store" and self.then:
            self.then.pop()()


@pytest.mark.usefixtures("idle")
def test_what_is_added_while_an_idle_snapshot_is_written_stays(make_manager: Make) -> None:
    """U9.6: a journal that goes further than the snapshot is not cut."""
    disk = Meanwhile()
    manager = make_manager(disk=disk)
    session = manager.create(id="x")
    session.add_message("user", "one")
    added = threading.Event()
    disk.then = [added.set, lambda: session.add_message("user", "meanwhile")]
    session.add_message("user", "two")
    assert added.wait(PATIENCE)
    assert texts(make_manager().load_id("x")) == ["one", "two", "meanwhile"]


@pytest.mark.usefixtures("idle")
def test_an_idle_snapshot_never_replaces_a_newer_one(make_manager: Make) -> None:
    """U9.3, U9.6: what was saved while it was written has taken its changes out of the journal."""
    disk = Meanwhile()
    manager, other = make_manager(disk=disk), make_manager()
    session = manager.create(id="x")
    session.add_message("user", "one")
    after_a_kill: list[list[str]] = []
    looked = threading.Event()

    def go_on() -> None:
        session.add_message("user", "saved meanwhile")
        manager.save(session)
        session.add_message("user", "in the journal")

    def save() -> None:
        thread = threading.Thread(target=go_on)
        thread.start()
        thread.join()

    def look() -> None:
        after_a_kill.append(texts(other.load_id("x")))
        looked.set()

    disk.then = [look, save]
    session.add_message("user", "two")
    assert looked.wait(PATIENCE)
    assert after_a_kill == [["one", "two", "saved meanwhile", "in the journal"]]


def test_latest_is_one_in_which_something_was_said(manager: SessionManager) -> None:
    """A session that was saved empty hides none; one that was compacted holds what was said."""
    said = manager.create()
    said.add_message("user", "x")
    manager.save(said)
    manager.save(manager.create())
    latest = manager.latest()
    assert latest is not None
    assert latest.id == said.id
    assert len(manager.list_saved()) == 2


def test_rules_of_a_file_elsewhere_are_never_taken_over(make_manager: Make, tmp_path: Path) -> None:
    """Not at a load, from snapshot or journal, nor when it changes; here they last (U7.1)."""
    rule = {"key": "bash", "exactly": ["/ws", "make"], "decision": "allow"}
    first = make_manager()
    session = first.create()
    session.add_message("user", "one")
    session.rules = [rule]
    home = first.save(session)
    first.close()
    assert make_manager().load(home).rules == [rule]

    away = tmp_path / "elsewhere" / "s.json"
    away.parent.mkdir()
    away.write_bytes(home.read_bytes())
    linked = home.parent / "linked.json"
    linked.symlink_to(away)
    assert make_manager().load(linked).rules == []
    manager, writer = make_manager(), SessionManager(away.parent)
    mine, theirs = manager.load(away), writer.load(away)
    assert (mine.rules, theirs.rules) == ([], [rule])
    with writer.writing(theirs):
        theirs.add_message("user", "two")
        theirs.commit(Set({"rules": [rule, rule]}, theirs.stamp()))
    with manager.writing(mine):
        assert (texts(mine), mine.rules) == (["one", "two"], [])
    assert make_manager().load(away).rules == []
    writer.close()
