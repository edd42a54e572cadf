"""A server's sessions in SQLite and on Redis: what U9 promises of files holds there too."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.sizes import SECONDS, sized
from tests.stores.conftest import Notices
from tests.stores.contract.redis_server import RedisServer
from tests.stores.contract.test_contract import until
from tests.stores.look import texts
from tiro import (
    Session,
    SessionExistsError,
    SessionInUseError,
    SessionNotFoundError,
    StorageError,
    __version__,
)
from tiro.errors import InvalidSessionIdError
from tiro.stores.exports import stored_form
from tiro.stores.manager import SessionManager
from tiro.stores.search import Search
from tiro.stores.shared import manager_of
from tiro.stores.shelf import is_long
from tiro.stores.shelf_manager import ShelfManager

ROOT = Path(__file__).parents[3]
Open = Callable[[], ShelfManager]


@pytest.fixture(params=["sqlite", "redis"])
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def place(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str | Path]:
    if kind == "sqlite":
        yield tmp_path / "a folder" / "sessions.db"
        return
    server: RedisServer = request.getfixturevalue("redis_server")
    with redis.Redis.from_url(server.url) as client:
        client.flushall()
        yield server.url
        client.flushall()


@pytest.fixture
def open_manager(place: str | Path, tmp_path: Path, notices: Notices) -> Iterator[Open]:
    """Opens managers on the same sessions; what all of them told is in `notices`."""
    opened: list[ShelfManager] = []

    def open_it() -> ShelfManager:
        opened.append(manager_of(place, notices.append, tmp_path / f"cache {len(opened)}"))
        return opened[-1]

    yield open_it
    for manager in opened:
        manager.close()


@pytest.fixture
def manager(open_manager: Open) -> ShelfManager:
    return open_manager()


@pytest.fixture
def other(open_manager: Open) -> ShelfManager:
    """Another server on the same sessions."""
    return open_manager()


def said(manager: SessionManager, *messages: str, id: str = "x") -> Session:
    """A new session in which this was said."""
    session = manager.create(id=id)
    for message in messages:
        session.add_message("user", message)
    return session


def everything(manager: SessionManager) -> dict[str, list[Any]]:
    """All saved sessions."""
    return {row.id: texts(manager.load_id(row.id)) for row in manager.list()[0]}


# --- storing and finding ------------------------------------------------------------------------


def test_every_change_is_stored_when_it_is_answered(
    manager: ShelfManager, other: ShelfManager, notices: Notices
) -> None:
    """U9.3: what another process finds a kill could not take away."""
    session = manager.create(id="x")
    assert manager.path_of(session) is None
    assert other.list() == ([], 0)
    for number in range(3):
        session.add_message("user", f"{number}")
        assert manager.is_stored(session)
        assert texts(other.load_id("x")) == [f"{n}" for n in range(number + 1)]
    session.change(title="A title", summary="short")
    session.rewind(1)
    found = other.load_id("x")
    assert (found.title, found.summary, texts(found)) == ("A title", "short", ["0"])
    assert len(found.archive) == 2
    assert other.saved_at(found) is not None
    assert notices == []


def test_an_empty_session_is_not_stored(manager: ShelfManager, other: ShelfManager) -> None:
    """U9.1: the first message claims the id."""
    session = manager.get()
    session.change(title="Nothing was said")
    assert manager.end(session) is None
    assert other.list_saved() == []


def test_without_autosave_only_a_save_stores(manager: ShelfManager, other: ShelfManager) -> None:
    manager.autosave = False
    session = said(manager, "hello")
    assert other.list_saved() == []
    path = manager.save(session)
    assert manager.stored_bytes(session, path) > 0
    session.add_message("user", "again")
    assert texts(other.load_id("x")) == ["hello"]
    manager.save(session)
    assert texts(other.load_id("x")) == ["hello", "again"]


def test_the_list_is_as_that_of_files(
    manager: ShelfManager, other: ShelfManager, tmp_path: Path
) -> None:
    """U9.9: the same rows, newest first."""
    with SessionManager(tmp_path / "files") as files:
        for each in (manager, files):
            for id in ("one", "two"):
                session = said(each, f"Find {id}\nand more", "next", id=id)
                session.add_message("assistant", "found")
                session.trim_if_needed(2, 1)
                session.set_agent("build")
        ours, total = other.list()
        theirs, _ = files.list()
    assert total == 2
    fields = ("id", "title", "agent", "messages", "archived", "error")
    assert [[getattr(row, name) for name in fields] for row in ours] == [
        [getattr(row, name) for name in fields] for row in theirs
    ]
    assert all(row.bytes > 100 for row in ours)
    assert [row.id for row in other.list("find TWO")[0]] == ["two"]
    assert other.latest() == ours[0]


def test_a_session_is_loaded_by_id_and_by_path(manager: ShelfManager, other: ShelfManager) -> None:
    odd = "Channel:chat/1"
    session = other.get_or_create(odd)
    session.add_message("user", "from a channel")
    said(manager, "hello")
    for row in other.list()[0]:
        assert texts(other.load(row.path)) == everything(other)[row.id]
    assert other.get_or_create(odd) is session
    assert texts(manager.get_or_create(odd)) == ["from a channel"]
    for unknown in (manager.directory / "y.json", manager.directory / "k-zz.json"):
        with pytest.raises(SessionNotFoundError):
            manager.load(unknown)
    with pytest.raises(SessionNotFoundError):
        manager.load_id("y")
    with pytest.raises(InvalidSessionIdError):
        manager.load_id("../y")


def test_what_was_said_is_found(manager: ShelfManager, other: ShelfManager) -> None:
    """P12: in sessions that others have changed, too."""
    session = said(manager, "Where is the Straßenbahn?", "somewhere else")
    search = Search(other)
    assert [hit.seq for hit in search.find("strassenbahn", 5)] == [1]
    session.add_message("user", "another STRASSENBAHN")
    hits = search.find("strassenbahn", 5)
    assert [(hit.id, hit.seq) for hit in hits] == [("x", 3), ("x", 1)]
    assert texts(other.load(hits[0].path or "")) == texts(session)
    assert [hit.seq for hit in Search(manager).find("else", 5, live=[session])] == [2]
    other.delete("x")
    assert search.find("strassenbahn", 5) == []
    search.close()


def test_a_taken_id_is_refused_or_gets_a_suffix(
    manager: ShelfManager, other: ShelfManager, notices: Notices
) -> None:
    """U9.1."""
    mine, theirs = manager.create(id="x"), other.create(id="x")
    mine.add_message("user", "mine")
    theirs.add_message("user", "theirs")
    assert (mine.id, theirs.id) == ("x", "x-01")
    assert notices.reasons == ["renamed"]
    with pytest.raises(SessionExistsError):
        manager.create(id="x-01")
    assert everything(manager) == {"x": ["mine"], "x-01": ["theirs"]}


def test_a_deleted_session_does_not_come_back(manager: ShelfManager, other: ShelfManager) -> None:
    session = said(manager, "hello")
    assert manager.delete("x")
    session.add_message("user", "too late")
    manager.close()
    assert other.list_saved() == []
    assert not manager.delete("x")
    with pytest.raises(InvalidSessionIdError):
        manager.delete("../x")


def test_a_session_that_somebody_else_deleted_goes_on(
    manager: ShelfManager, other: ShelfManager
) -> None:
    """As with files: who still has it loses nothing."""
    session = said(manager, "one")
    assert other.delete("x")
    with manager.changing(session):
        session.add_message("user", "two")
    assert everything(other) == {"x": ["one", "two"]}


@pytest.mark.parametrize("lost", ["sessions", "snapshots", "changes"])
def test_what_another_program_took_away_is_stored_whole_again(
    manager: ShelfManager, other: ShelfManager, place: str | Path, lost: str
) -> None:
    """Its hand leaves half a session, which no later change may be added to."""
    session = said(manager, "one", "two")
    if isinstance(place, Path):
        with closing(sqlite3.connect(place)) as sql, sql:  # which heeds no foreign keys
            sql.execute(f"DELETE FROM {lost}")
    else:
        with redis.Redis.from_url(place) as client:
            if lost == "snapshots":
                client.hdel("tiro:session:x", "snapshot")
            else:
                client.delete({"sessions": "tiro:session:x"}.get(lost, "tiro:changes:x"))
    with manager.changing(session):
        session.add_message("user", "three")
    session.add_message("user", "four")
    assert manager.is_stored(session)
    assert session.id is not None
    assert texts(other.load_id(session.id)) == ["one", "two", "three", "four"]
    [found] = [row for row in other.list()[0] if row.id == session.id]
    assert (found.messages, found.error) == (4, None)


def test_copies_and_imports_are_real_files(
    manager: ShelfManager, other: ShelfManager, tmp_path: Path
) -> None:
    session = said(manager, "hello")
    copy = manager.save(session, tmp_path / "copy.json")
    assert manager.stored_bytes(session, copy) == copy.stat().st_size
    from_file = other.load(copy)
    from_file.add_message("user", "in the file")
    assert other.path_of(from_file) == copy
    assert everything(manager) == {"x": ["hello"]}
    assert [m["content"] for m in stored_form(other, "x")["messages"]] == ["hello"]
    with SessionManager(tmp_path) as files:
        assert texts(files.load(copy)) == ["hello", "in the file"]


# --- several servers ----------------------------------------------------------------------------


def test_a_turn_keeps_others_out_and_shows_them_what_was_said(
    manager: ShelfManager, other: ShelfManager, notices: Notices
) -> None:
    """U9.8."""
    session = said(manager, "one")
    theirs = other.load_id("x")
    with manager.writing(session):
        session.add_message("user", "two")
        with pytest.raises(SessionInUseError) as told, other.writing(theirs):
            pass
        assert told.value.data["pid"] == os.getpid()
        with pytest.raises(SessionInUseError):
            other.delete("x")
    with other.writing(theirs):
        assert texts(theirs) == ["one", "two"]
        theirs.add_message("user", "three")
    with manager.changing(session):
        assert texts(session) == ["one", "two", "three"]
    assert notices.reasons == ["changed_on_disk", "changed_on_disk"]


def test_the_news_of_others_come_without_a_change_of_ours(
    manager: ShelfManager, other: ShelfManager, notices: Notices
) -> None:
    session = said(manager, "one")
    manager.set_current(session)
    assert manager.read_news() is None
    theirs = other.load_id("x")
    with other.writing(theirs):
        theirs.add_message("user", "two")
        assert manager.read_news() is None  # at the end of the turn there is more to see
    news = manager.read_news()
    assert news is not None
    manager.take_news(news)
    assert texts(session) == ["one", "two"]
    assert manager.read_news() is None
    assert notices.reasons == ["changed_on_disk"]
    theirs.add_message("user", "three")
    stale = manager.read_news()
    theirs.add_message("user", "four")
    manager.take_news(stale)
    assert texts(session) == ["one", "two"]


def test_where_both_sides_wrote_both_are_kept(
    manager: ShelfManager, other: ShelfManager, notices: Notices
) -> None:
    """U9.8: nothing is ever overwritten in silence."""
    mine = said(manager, "one")
    theirs = other.load_id("x")
    mine.add_message("user", "mine")
    theirs.add_message("user", "theirs")
    assert (mine.id, theirs.id) == ("x", "x-01")
    assert everything(manager) == {"x": ["one", "mine"], "x-01": ["one", "theirs"]}
    assert notices.reasons == ["renamed"]
    theirs.add_message("user", "and on")
    assert everything(manager)["x-01"] == ["one", "theirs", "and on"]


def test_two_servers_that_take_turns_lose_nothing(manager: ShelfManager, place: str | Path) -> None:
    """Product bar: 1,000 interleaved changes of two processes, none lost and none forked."""
    manager.end(said(manager, "begin", id="shared"))
    each = sized(fast=40, normal=500, long=2000)
    servers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.stores.contract.serving", str(place), who, str(each)],
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "server"), str(ROOT)))},
        )
        for who in ("a", "b")
    ]
    ends = [json.loads(server.communicate(timeout=SECONDS - 5)[0]) for server in servers]
    assert {end["id"] for end in ends} == {"shared"}
    assert all(set(end["told"]) <= {"changed_on_disk"} for end in ends)
    found = [message.content for message in manager.load_id("shared").full_chat_history]
    for who in ("a", "b"):
        assert [t for t in found if str(t).startswith(f"{who}:")] == [
            f"{who}:{n}" for n in range(each)
        ]
    assert len(found) == 2 * each + 1


# --- what goes wrong ----------------------------------------------------------------------------


def test_no_configured_key_reaches_the_store(manager: ShelfManager, place: str | Path) -> None:
    """U9.11: not the messages, and not the title either."""
    manager.secrets = ["sk-very-secret"]
    session = said(manager, "my key is sk-very-secret, is it?")
    session.set("k", "sk-very-secret")
    manager.save(session)
    if isinstance(place, Path):
        files = [file for file in place.parent.rglob("*") if file.is_file()]
        held = b"".join(file.read_bytes() for file in files)
    else:
        with redis.Redis.from_url(place) as client:
            held = b"".join(client.dump(key) for key in client.scan_iter())
    assert b"very-secret" not in held
    assert manager.list()[0][0].title == "my key is [secret], is it?"


def test_a_store_that_lost_what_it_had_answered_gets_it_again(
    manager: ShelfManager, other: ShelfManager, place: str | Path, tmp_path: Path, notices: Notices
) -> None:
    """An older backup was put back, or a Redis was restarted that keeps nothing."""
    session = said(manager, "one")
    session.add_message("user", "two")
    if isinstance(place, Path):
        manager.shelf.close()
        shutil.copy(place, tmp_path / "backup")
        session.add_message("user", "three")
        manager.shelf.close()
        (tmp_path / "backup").replace(place)
    else:
        backup = manager.shelf.find("x")
        session.add_message("user", "three")
        with redis.Redis.from_url(place) as client:
            assert backup is not None
            client.hset("tiro:session:x", "n", backup.n)
            client.rpop("tiro:changes:x")
    with manager.changing(session):
        session.add_message("user", "four")
    assert everything(other) == {"x": ["one", "two", "three", "four"]}
    assert "renamed" not in notices.reasons


@pytest.mark.usefixtures("idle")
def test_long_changes_become_a_snapshot_when_nothing_goes_on(
    manager: ShelfManager, other: ShelfManager
) -> None:
    session = said(manager, "one")
    for number in range(8):
        session.set("k", f"{number}" * 10_000)

    def is_folded() -> bool:
        kept = other.shelf.find("x")
        return kept is not None and not is_long(kept)

    until(is_folded)
    assert other.load_id("x").get("k") == "7" * 10_000
    session.add_message("user", "two")
    assert texts(other.load_id("x")) == ["one", "two"]


def test_a_place_that_cannot_be_written_fails_no_change(tmp_path: Path, notices: Notices) -> None:
    """U9.5: told once; the session goes on in memory, and is stored when the place is well."""
    in_the_way = tmp_path / "folder"
    in_the_way.write_text("a file")
    manager = manager_of(in_the_way / "sessions.db", notices.append, None)
    session = said(manager, "one", "two")
    assert not manager.is_stored(session)
    assert notices.reasons == ["save_failed"]
    with pytest.raises(StorageError):
        manager.save(session)
    in_the_way.unlink()
    until(lambda: manager.is_stored(session))
    assert notices.reasons == ["save_failed", "save_resumed"]
    session.add_message("user", "three")
    assert everything(manager) == {"x": ["one", "two", "three"]}
    manager.close()


@pytest.mark.parametrize("kind", ["sqlite"])
def test_what_a_newer_tiro_has_opened_is_named_and_left_alone(
    manager: ShelfManager, open_manager: Open, place: Path, notices: Notices
) -> None:
    """U7.3: the session goes on in memory, and the user hears what to do."""
    said(manager, "one")
    manager.close()
    with closing(sqlite3.connect(place)) as sql:
        sql.execute("PRAGMA user_version = 99")
    session = open_manager().create()
    session.add_message("user", "two")
    [notice] = [notice for notice in notices if notice.reason == "save_failed"]
    for part in ("version 99", f"Tiro {__version__}", "up to 2", "update Tiro"):
        assert part in notice.detail["reason"]
    assert texts(session) == ["two"]
    with closing(sqlite3.connect(place)) as sql:
        assert sql.execute("SELECT id FROM sessions").fetchall() == [("x",)]


def test_where_no_lock_can_be_had_the_numbers_of_changes_do(
    tmp_path: Path, notices: Notices
) -> None:
    """U9.8: both sides are kept, also when both have a turn at once."""
    (tmp_path / "sessions.db.locks").write_text("a file in the way")
    first, second = (manager_of(tmp_path / "sessions.db", notices.append, None) for _ in range(2))
    mine = said(first, "one")
    theirs = second.load_id("x")
    with first.writing(mine), second.writing(theirs):
        mine.add_message("user", "mine")
        theirs.add_message("user", "theirs")
    assert everything(first) == {"x": ["one", "mine"], "x-01": ["one", "theirs"]}
    first.close()
    second.close()


def test_a_redis_that_is_killed_and_comes_back(notices: Notices) -> None:
    """Turns begin and end meanwhile, and nothing that was said is lost."""
    with RedisServer() as server:
        manager = manager_of(server.url, notices.append, None)
        session = said(manager, "before")
        server.kill()
        with manager.writing(session):
            session.add_message("user", "in between")
        new = said(manager, "new in between", id="y")
        assert not manager.is_stored(session)
        assert notices.reasons == ["save_failed"]
        server.start()
        until(lambda: manager.is_stored(session) and manager.is_stored(new))
        until(lambda: notices.reasons == ["save_failed", "save_resumed"])
        with manager.writing(session):
            session.add_message("user", "after")
        other = manager_of(server.url, notices.append, None)
        assert everything(other) == {
            "x": ["before", "in between", "after"],
            "y": ["new in between"],
        }
        for each in (manager, other):
            each.close()


def test_without_the_extra_the_session_goes_on_and_it_is_named(
    monkeypatch: pytest.MonkeyPatch, notices: Notices
) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    manager = manager_of("redis://127.0.0.1:1/0", notices.append, None)
    session = said(manager, "hello")
    assert texts(session) == ["hello"]
    assert "tiro[redis]" in notices[0].detail["reason"]
    manager.close()
