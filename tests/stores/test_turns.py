"""Several processes use one session in turn (U9.8, B11, B05)."""

import fcntl
import functools
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.sizes import PATIENCE, SECONDS, sized
from tests.stores.conftest import Make, Notices, Tell
from tests.stores.look import names, texts
from tiro.errors import SessionInUseError, StorageError
from tiro.session.core import Core
from tiro.stores import reading as reading_module
from tiro.stores.disk import Disk, read_file
from tiro.stores.lock import wait_for
from tiro.stores.reading import read_session

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def test_two_go_on_in_turn(make_manager: Make, notices: Notices) -> None:
    """Ask in one editor, go on in the other: one conversation, in order."""
    one, other = make_manager(), make_manager()
    mine = one.create()
    with one.writing(mine):
        mine.add_message("user", "one")
    path = one.path_of(mine)
    assert path is not None
    theirs = other.load(path)
    for manager, session, text in [
        (other, theirs, "two"),
        (one, mine, "three"),
        (one, mine, "four"),
        (other, theirs, "five"),
        (one, mine, "six"),
    ]:
        with manager.writing(session):
            session.add_message("user", text)
    expected = ["one", "two", "three", "four", "five", "six"]
    assert texts(mine) == expected
    assert texts(make_manager().load(path)) == expected
    assert [message.seq for message in mine.messages] == [1, 2, 3, 4, 5, 6]
    assert set(notices.reasons) == {"changed_on_disk"}


def test_saves_of_two_stale_copies_lose_nothing(make_manager: Make) -> None:
    """B11: both load S; one, SAVE, two, SAVE, three, SAVE; all three exist afterwards."""
    for autosave in (True, False):
        one, other = make_manager(autosave=autosave), make_manager(autosave=autosave)
        first = one.create()
        first.add_message("user", "zero")
        path = one.save(first)
        mine, theirs = one.load(path), other.load(path)
        mine.add_message("user", "one")
        one.save(mine)
        theirs.add_message("user", "two")
        other.save(theirs)
        mine.add_message("user", "three")
        one.save(mine)
        everything = [texts(one.load(file)) for file in one.list_saved()]
        assert {text for found in everything for text in found} >= {"one", "two", "three"}
        for manager in (one, other):
            manager.close()


def test_unsaved_changes_overtaken_are_kept_under_a_new_id(
    make_manager: Make, notices: Notices
) -> None:
    """U9.8: both sides stay, and the user is told."""
    one, other = make_manager(), make_manager()
    mine = one.create(id="x")
    mine.add_message("user", "shared")
    path = one.path_of(mine)
    assert path is not None
    theirs = other.load(path)
    theirs.add_message("user", "theirs")
    mine.add_message("user", "mine")
    assert mine.id == "x-01"
    assert notices.reasons == ["renamed"]
    assert notices[0].session is mine
    assert notices[0].detail == {"old_id": "x", "path": str(path.with_name("x-01.json"))}
    mine.add_message("user", "mine again")
    assert texts(make_manager().load_id("x")) == ["shared", "theirs"]
    assert texts(make_manager().load_id("x-01")) == ["shared", "mine", "mine again"]


def test_a_held_session_is_in_use(make_manager: Make) -> None:
    """The holder's process and host are named; a free one is to be had at once again."""
    one, other = make_manager(), make_manager()
    mine = one.create()
    mine.add_message("user", "one")
    path = one.path_of(mine)
    assert path is not None
    theirs = other.load(path)
    with one.writing(mine), one.changing(mine):
        for hold in (other.writing, other.changing):
            with pytest.raises(SessionInUseError) as caught, hold(theirs):
                pass
            assert caught.value.data == {"pid": os.getpid(), "host": socket.gethostname()}
        with pytest.raises(SessionInUseError):
            other.delete(mine.id or "")
    with other.writing(theirs):
        theirs.add_message("user", "two")
    assert not [name for name in names(path.parent) if name.endswith(".lock")]


def test_who_waits_gets_its_turn(make_manager: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting is no error, and it waits as long as it is told to."""
    patient = functools.partial(wait_for, seconds=PATIENCE)
    monkeypatch.setattr("tiro.stores.autosave.wait_for", patient)
    one, other = make_manager(), make_manager()
    mine = one.create()
    mine.add_message("user", "one")
    theirs = other.load(one.save(mine))
    entered, done = threading.Event(), threading.Event()

    def hold() -> None:
        with one.writing(mine):
            entered.set()
            time.sleep(0.2)
            mine.add_message("user", "two")
            done.set()

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()
    with other.writing(theirs):
        assert done.is_set()
        theirs.add_message("user", "three")
    thread.join()
    assert texts(theirs) == ["one", "two", "three"]


def test_the_lock_is_on_the_journal(make_manager: Make) -> None:
    """U9.8: an advisory lock that any program can take."""
    manager = make_manager()
    session = manager.create()
    session.add_message("user", "one")
    session.add_message("user", "two")
    path = manager.path_of(session)
    assert path is not None
    with open(path.with_suffix(".journal")) as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)
        with pytest.raises(SessionInUseError), manager.writing(session):
            pass
        fcntl.flock(journal, fcntl.LOCK_UN)
        with manager.writing(session), pytest.raises(BlockingIOError):
            fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_change_while_another_process_answers_is_kept(
    make_manager: Make, notices: Notices
) -> None:
    """Outside of any hold: never an exception into a commit, nothing lost on either side."""
    one, other = make_manager(), make_manager()
    mine = one.create(id="x")
    mine.add_message("user", "one")
    theirs = other.load_id("x")
    with one.writing(mine):
        mine.add_message("user", "two")
        theirs.add_message("user", "meanwhile")
        theirs.add_message("user", "and again")
        assert not other.is_stored(theirs)
        mine.add_message("user", "three")
    theirs.add_message("user", "later")
    assert other.is_stored(theirs)
    assert theirs.id == "x-01"
    assert texts(make_manager().load_id("x")) == ["one", "two", "three"]
    found = texts(make_manager().load_id("x-01"))
    assert found == ["one", "meanwhile", "and again", "later"]
    assert notices.reasons == ["save_failed", "renamed", "save_resumed"]


def test_an_idle_session_is_not_locked(make_manager: Make) -> None:
    """Sitting in a session keeps nobody out, nor does the background thread."""
    one, other = make_manager(), make_manager()
    mine = one.create()
    for number in range(3):
        mine.add_message("user", str(number))
    theirs = other.load(one.save(mine))
    for number in range(100):
        with other.changing(theirs):
            theirs.add_message("user", str(number))
        with one.changing(mine):
            mine.add_message("user", str(number))
    assert texts(make_manager().load_id(mine.id or "")) == texts(mine)


HOLDER = """
import sys, time
from tiro.stores.manager import SessionManager
from tiro.stores.reading import read_session
manager = SessionManager(sys.argv[1])
session = manager.load_id("x")
with manager.writing(session):
    session.add_message("user", "from the other process")
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_lock_of_a_killed_process_is_free(make_manager: Make, directory: Path) -> None:
    """A lock is never stale, and what the dead process stored is there."""
    manager = make_manager()
    session = manager.create(id="x")
    session.add_message("user", "one")
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory)],
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"held\n"
    with pytest.raises(SessionInUseError) as caught, manager.writing(session):
        pass
    assert caught.value.data["pid"] == child.pid
    child.kill()
    child.wait()
    child.stdout.close()
    with manager.writing(session):
        assert texts(session) == ["one", "from the other process"]
    assert not [name for name in names(directory) if name.endswith(".lock")]


def share(*commands: tuple[str, ...]) -> list[dict[str, Any]]:
    """Run these works at once, each in a process of its own; what they say at their end."""
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.stores.sharing", *command],
            stdout=subprocess.PIPE,
            env=ENVIRONMENT,
            cwd=Path(__file__).parents[2],
        )
        for command in commands
    ]
    outputs = [child.communicate(timeout=SECONDS - 10)[0] for child in children]
    assert [child.returncode for child in children] == [0] * len(children)
    return [json.loads(output) for output in outputs]


def test_interleaved_saves_of_two_processes_lose_nothing(
    make_manager: Make, directory: Path, record_property: Tell
) -> None:
    """Product bar: two processes, one directory, interleaved saves, nothing lost, order kept."""
    count = sized(fast=20, normal=100, long=500)  # a save after each
    record_property("saves", 2 * count)
    manager = make_manager()
    session = manager.create(id="shared", max_history=100_000)
    session.add_message("user", "start")
    manager.close()
    answers = share(*(("add_in_turn", str(directory), who, str(count)) for who in ("one", "two")))
    for answer in answers:
        assert answer["id"] == "shared"
        assert set(answer["told"]) <= {"changed_on_disk"}
    found = texts(make_manager().load_id("shared"))
    assert len(found) == 2 * count + 1
    for who in ("one", "two"):
        mine = [text for text in found if text.startswith(f"{who}:")]
        assert mine == [f"{who}:{number}" for number in range(count)]
    assert names(directory) == ["shared.json"]


def test_two_processes_never_claim_one_name(directory: Path, make_manager: Make) -> None:
    """B13: exclusive, also within one second."""
    answers = share(*[("claim_many", str(directory), "25")] * 2)
    manager = make_manager()
    assert len({id for answer in answers for id in answer["ids"]}) == 50
    for answer in answers:
        for number, id in enumerate(answer["ids"]):
            assert texts(manager.load_id(id)) == [f"{answer['pid']} {number}"]


def test_fifty_saves_at_once_in_one_process(make_manager: Make, directory: Path) -> None:
    """B11: concurrent saves and adds of one session from many threads."""
    manager = make_manager()
    session = manager.create(id="x", max_history=1000)
    session.add_message("user", "start")
    failures: list[BaseException] = []

    def work(who: int) -> None:
        try:
            for number in range(5):
                session.add_message("user", f"{who}:{number}")
                manager.save(session)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(who,)) for who in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    manager.close()
    stored = json.loads((directory / "x.json").read_text())["messages"]
    assert len(stored) == 51
    assert [message["seq"] for message in stored] == list(range(1, 52))
    assert names(directory) == ["x.json"]


def test_a_reader_never_sees_less_than_what_was_answered(make_manager: Make) -> None:
    """U9: reading needs no lock, though snapshot and journal change under it."""
    manager = make_manager(fsync="never")
    session = manager.create(id="x", max_history=100_000)
    session.add_message("user", "start")
    path = manager.path_of(session)
    assert path is not None
    answered, done = [1], threading.Event()

    def write() -> None:
        for number in range(sized(fast=100, normal=300, long=3000)):
            session.add_message("user", "x" * (number % 50) * 100)
            answered[0] += 1
            if number % 2:
                manager.save(session)
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    while not done.is_set():
        before = answered[0]
        reading = read_session(path)
        assert reading.bad == 0
        assert reading.last_n >= before
    thread.join()


@pytest.mark.parametrize("writes", [1, 2, 3, 4, 30])
def test_a_reader_without_the_lock_takes_no_two_files_that_do_not_belong_together(
    make_manager: Make, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    """Around whatever it reads, the one that holds the lock writes snapshot and journal anew."""
    manager = make_manager(fsync="never")
    session = manager.create(id="x")
    session.add_message("user", "1")
    path = manager.path_of_id("x")
    left = [writes]

    def write() -> None:
        if left[0]:
            left[0] -= 1
            manager.save(session)
            session.add_message("user", str(session.next_seq))

    def read(file: Path) -> Any:
        write()
        data = read_file(file)
        write()
        return data

    monkeypatch.setattr(reading_module, "read_file", read)
    with manager.writing(session):
        session.add_message("user", "2")
        answered = session.n
        reading = read_session(path)
    assert reading.bad == 0
    assert reading.last_n >= answered
    kept = Core()
    reading.restore(kept)
    assert texts(kept) == [str(number + 1) for number in range(len(texts(kept)))]
    assert kept.n == reading.last_n


def test_a_reader_that_never_finds_two_files_that_belong_together_says_so(
    make_manager: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading_module, "READ_SECONDS", 0.0)
    manager = make_manager(fsync="never")
    session = manager.create(id="x")
    session.add_message("user", "1")

    def read(file: Path) -> Any:
        """The journal is cut and written to while it is read."""
        data, signature = read_file(file)
        if file.suffix == ".journal":
            session.add_message("user", "more")
            return b"cut\n" + data, signature
        return data, signature

    monkeypatch.setattr(reading_module, "read_file", read)
    with manager.writing(session), pytest.raises(StorageError) as caught:
        read_session(manager.path_of_id("x"))
    assert caught.value.data["errno"] == "EBUSY"


def test_without_autosave_others_are_seen_until_something_is_unsaved(
    make_manager: Make, notices: Notices
) -> None:
    """M4.4 with U9.8: a look never writes; what is unsaved waits for the explicit save."""
    one, other = make_manager(autosave=False), make_manager()
    theirs = other.create(id="x")
    theirs.add_message("user", "one")
    path = other.path_of(theirs)
    assert path is not None
    mine = one.load(path)
    theirs.add_message("user", "two")
    with one.changing(mine):
        assert texts(mine) == ["one", "two"]
        mine.add_message("user", "mine")
    theirs.add_message("user", "three")
    with one.writing(mine):
        assert texts(mine) == ["one", "two", "mine"]
    assert names(path.parent) == ["x.journal", "x.json"]
    saved = one.save(mine)
    assert saved.name == "x-01.json"
    assert texts(make_manager().load(saved)) == ["one", "two", "mine"]
    assert texts(make_manager().load(path)) == ["one", "two", "three"]
    damaged = one.load(path)
    path.write_text("{")
    with one.changing(damaged):
        assert texts(damaged) == ["one", "two", "three"]
    assert path.read_text() == "{"
    assert notices.reasons == ["changed_on_disk", "renamed"]


def test_a_lock_is_never_on_a_deleted_journal(make_manager: Make) -> None:
    """A session that comes to rest elsewhere takes its journal away; we may have it open."""
    one, other, third = make_manager(), make_manager(), make_manager()
    mine = one.create(id="x")
    mine.add_message("user", "one")
    mine.add_message("user", "two")
    theirs = other.load_id("x")
    other.save(theirs)
    other.end(theirs)
    path = one.path_of(mine)
    assert path is not None
    assert names(path.parent) == ["x.json"]
    late = third.load_id("x")
    with one.writing(mine):
        mine.add_message("user", "three")
        with pytest.raises(SessionInUseError), third.writing(late):
            pass
    with third.writing(late):
        assert texts(late) == ["one", "two", "three"]


def test_damage_does_not_hide_what_another_process_stored(
    make_manager: Make, notices: Notices
) -> None:
    """U9.7 with U9.8: we know less than the journal, so ours goes beside the damaged file."""
    one, other = make_manager(), make_manager()
    mine = one.create(id="x")
    mine.add_message("user", "one")
    theirs = other.load_id("x")
    theirs.add_message("user", "two")
    path = one.path_of(mine)
    assert path is not None
    path.write_text("{ oops")
    with one.writing(mine):
        mine.add_message("user", "mine")
    assert path.read_text() == "{ oops"
    assert b'"two"' in path.with_suffix(".journal").read_bytes()
    assert mine.id == "x-01"
    assert notices.reasons == ["renamed"]


class Claimed(Disk):
    """Lets a test do something in the moment in which a new session's name is taken."""

    def __init__(self) -> None:
        self.then: Any = None

    def link(self, source: Path, target: Path) -> None:
        super().link(source, target)
        then, self.then = self.then, None
        if then is not None:
            then()


def test_who_loads_a_session_in_the_moment_it_is_made_loses_nothing(
    make_manager: Make, directory: Path
) -> None:
    """U9.8, B13: the journal of a new session is that of whoever writes to it first."""
    disk = Claimed()
    manager, other = make_manager(disk=disk), make_manager()
    session = manager.create(id="x")

    def load() -> None:
        other.load_id("x").add_message("user", "from the other")

    disk.then = load
    session.add_message("user", "one")
    assert texts(make_manager().load_id("x")) == ["one", "from the other"]
    session.add_message("user", "two")
    said = [text for id in ("x", "x-01") for text in texts(make_manager().load_id(id))]
    assert said == ["one", "from the other", "one", "two"]
    assert not [name for name in names(directory) if ".bad-" in name]


def test_who_loads_a_session_that_a_turn_has_just_made_waits_for_its_end(
    make_manager: Make, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """U9.8: the turn holds the session from the moment in which others can see it."""
    at_once = functools.partial(wait_for, seconds=0)
    monkeypatch.setattr("tiro.stores.autosave.wait_for", at_once)
    disk, tried = Claimed(), threading.Event()
    manager, other = make_manager(disk=disk), make_manager()
    session = manager.create(id="x")

    def load() -> None:
        theirs = other.load_id("x")
        with pytest.raises(SessionInUseError), other.writing(theirs):
            pass
        tried.set()

    disk.then = load
    with manager.writing(session):
        session.add_message("user", "one")
        assert tried.is_set()
        session.add_message("user", "two")
    with other.writing(other.load_id("x")):
        pass
    for one in (manager, other):
        one.close()
    assert names(directory) == ["x.json"]
    assert texts(make_manager().load_id("x")) == ["one", "two"]


def test_a_turn_whose_session_finds_its_name_taken_leaves_nothing_there(
    make_manager: Make, directory: Path
) -> None:
    """The other one made it between the look at the name and the claim."""

    class Taken(Disk):
        def link(self, source: Path, target: Path) -> None:
            if target.name == "x.json" and not target.exists():
                target.write_text('{"id": "x", "messages": []}')
            super().link(source, target)

    manager = make_manager(disk=Taken())
    session = manager.create(id="x")
    with manager.writing(session):
        session.add_message("user", "one")
        assert names(directory) == ["x-01.journal", "x-01.json", "x-01.lock", "x.json"]
    assert names(directory) == ["x-01.json", "x.json"]


def test_a_journal_in_which_somebody_writes_is_not_set_aside(
    make_manager: Make, directory: Path
) -> None:
    """U9.8: it holds the name until its owner is done, whether there is a snapshot or none."""
    directory.mkdir(parents=True)
    with (directory / "x.journal").open("wb") as journal:
        journal.write(b"of another\n")
        journal.flush()
        fcntl.flock(journal, fcntl.LOCK_EX)
        session = make_manager().create(id="x")
        session.add_message("user", "one")
    assert session.id == "x-01"
    assert (directory / "x.journal").read_bytes() == b"of another\n"


def test_nobody_writes_to_a_journal_that_was_moved_away(
    make_manager: Make, directory: Path
) -> None:
    """U9.8: a lock on a file that has no name any more, or another one, is a lock on nothing."""
    manager = make_manager()
    session = manager.create(id="x")
    session.add_message("user", "one")
    with manager.writing(session):
        session.add_message("user", "two")
        (directory / "x.journal").rename(directory / "moved")
    session.add_message("user", "three")
    assert texts(make_manager().load_id(session.id or "")) == ["one", "two", "three"]
    assert b"three" not in (directory / "moved").read_bytes()
