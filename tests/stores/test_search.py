"""The search and its index (U9.9): the same with and without it, private, shared, rebuilt."""

import datetime
import itertools
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import stat
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sizes import sized
from tests.stores.conftest import Make
from tiro.session.times import Clock
from tiro.stores import search_index
from tiro.stores.manager import SessionManager
from tiro.stores.search import Search

WORDS = [
    "alpha",
    "Beta",
    "BÊTA",
    "gamma-ray",
    "read_file",
    "漢字",
    "字検索",
    "über",
    "x.y",
    "1e3",
    "🙂",
]
QUERIES = ["alpha", "beta", '"alpha beta"', "ga*", "ray", "file alpha", "漢", "字", "漢字検",
           "uber x", '"x y" 1e3', "r*", '"字 alpha"', "read_file"]  # fmt: skip


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache directory that does not exist yet."""
    return tmp_path / "cache" / "tiro"


def ticking() -> Clock:
    """A clock that never shows a time twice: the newest comes first."""
    seconds = itertools.count()
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    return lambda: start + datetime.timedelta(seconds=next(seconds))


def save(manager: SessionManager, id: str, *texts: str) -> Path:
    session = manager.create(id=id)
    for text in texts:
        session.add_message("user", text)
    return manager.save(session)


def found(manager: SessionManager, query: str, limit: int = 100) -> list[tuple[str | None, int]]:
    search = Search(manager)
    try:
        return [(hit.id, hit.seq) for hit in search.find(query, limit)]
    finally:
        search.close()


def index_file(cache: Path) -> Path:
    (path,) = cache.glob("search-*.db")
    return path


def rows_in(cache: Path) -> int:
    """How many messages the index holds; it is sound."""
    tables = sqlite3.connect(index_file(cache))
    assert tables.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    tables.execute("INSERT INTO words (words) VALUES ('integrity-check')")
    (count,) = tables.execute("SELECT count(*) FROM rows").fetchone()
    tables.close()
    return int(count)


def times_read(manager: SessionManager, query: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many session files a search has to read."""
    monkeypatch.setattr("tiro.stores.search.LONG_SECONDS", 0.0)
    monkeypatch.setattr("tiro.stores.search.REPORT_SECONDS", 0.0)
    told = [(0, 0)]
    search = Search(manager)
    search.find(query, 100, on_progress=lambda *now: told.append(now))
    search.close()
    return told[-1][1]


@given(
    texts=st.lists(
        st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), max_size=4),
        min_size=1,
        max_size=5,
    ),
    limit=st.integers(1, 6),
)
@settings(max_examples=sized(fast=15, normal=25, long=600), deadline=None)
def test_the_index_finds_what_reading_every_file_finds(
    tmp_path_factory: pytest.TempPathFactory, texts: list[list[str]], limit: int
) -> None:
    """With and without FTS5: the same hits in the same order."""
    root = tmp_path_factory.mktemp("same")
    with SessionManager(root / "s", fsync="never") as plain:
        for number, rows in enumerate(texts):
            save(plain, f"s{number}", *rows)
        with SessionManager(root / "s", cache_directory=root / "cache") as indexed:
            fast, slow = Search(indexed), Search(plain)
            for query in QUERIES:
                assert fast.find(query, limit) == slow.find(query, limit), query
            fast.close()
        assert rows_in(root / "cache") == sum(map(len, texts))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere all names are text")
def test_a_name_that_is_no_text_costs_the_others_nothing(
    make_manager: Make, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = os.fsdecode(b"caf\xe9")
    with make_manager(cache_directory=cache) as manager:
        save(manager, "a", "alpha")
        save(manager, "b", "alpha").rename(manager.directory / f"{odd}.json")
    for path in manager.directory.iterdir():
        os.utime(path, (1, 1))
    with make_manager(cache_directory=cache) as manager:
        assert {id for id, _ in found(manager, "alpha")} == {"a", "b"}
        assert times_read(manager, "alpha", monkeypatch) == 0
    assert rows_in(cache) == 2


def test_what_others_add_change_and_remove_is_seen(make_manager: Make, cache: Path) -> None:
    manager = make_manager(cache_directory=cache)
    other = make_manager()
    search = Search(manager)
    save(other, "a", "heron one", "stork")
    save(other, "b", "heron two")
    assert {hit.id for hit in search.find("heron", 10)} == {"a", "b"}
    session = other.load_id("a")
    session.edit_message(1, "crane")
    session.add_message("user", "heron three")
    other.delete("b")
    assert [(hit.id, hit.seq, hit.taken_back) for hit in search.find("heron", 10)] == [
        ("a", 3, False),
        ("a", 1, True),
    ]
    assert [hit.seq for hit in search.find("crane", 10)] == [1]
    assert [hit.seq for hit in search.find("stork", 10)] == [2]
    session.clear()
    other.save(session)
    assert search.find("heron", 10) == []
    search.close()


def test_only_what_changed_is_read_again(
    make_manager: Make, directory: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = make_manager(cache_directory=cache)
    paths = [save(manager, f"s{n}", f"word {n}") for n in range(5)]
    for path in [*paths, *directory.glob("*.journal")]:
        os.utime(path, (1, 1))  # so old that a later version has another time
    assert times_read(manager, "word", monkeypatch) == 5
    assert times_read(make_manager(cache_directory=cache), "word", monkeypatch) == 0
    paths[3].write_bytes(paths[3].read_bytes().replace(b"word 3", b"word 33"))
    assert times_read(make_manager(cache_directory=cache), "word", monkeypatch) == 1
    assert found(manager, "33") == [("s3", 1)]


def test_the_index_is_private_and_holds_no_more_than_the_files(
    make_manager: Make, cache: Path
) -> None:
    """0600, redacted as the files are, and what is deleted leaves no trace."""
    manager = make_manager(cache_directory=cache, secrets=["hunter2hunter2"])
    save(manager, "a", "the password is hunter2hunter2", "aardvarkish")
    save(manager, "b", "zyzzyvas")
    search = Search(manager)
    assert search.find("hunter2hunter2", 5) == []
    assert len(search.find("aardvarkish zyzzyvas", 5)) == 0
    assert len(search.find("aardvarkish", 5)) == 1
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    for path in cache.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    kept = b"".join(path.read_bytes() for path in cache.glob("search-*"))
    assert b"zyzzyvas" in kept
    assert b"hunter2hunter2" not in kept
    manager.delete("a")
    manager.delete("b")
    assert search.find("zyzzyvas", 5) == []
    kept = b"".join(path.read_bytes() for path in cache.glob("search-*"))
    assert b"zyzzyva" not in kept
    assert b"aardvarkis" not in kept
    search.close()


@pytest.mark.parametrize("size", [0, 100, 5_000, 20_000])
@pytest.mark.parametrize("damage", [b"\0", b"no database at all ", b"\xff"])
def test_a_damaged_index_is_made_anew(
    make_manager: Make, cache: Path, damage: bytes, size: int
) -> None:
    manager = make_manager(cache_directory=cache)
    for n in range(30):
        save(manager, f"s{n}", f"needle {n} " + "hay " * 100)
    assert len(found(manager, "needle")) == 30
    path = index_file(cache)
    data = path.read_bytes()
    path.write_bytes(data[:size] + damage * ((len(data) - size) // len(damage)))
    assert len(found(manager, "needle")) == 30
    assert len(found(manager, "hay needle")) == 30
    assert len(found(manager, '"needle 7 hay"')) == 1


@pytest.mark.parametrize(
    "statement",
    ["DROP TABLE words", "DROP TABLE rows", "DELETE FROM words_data", "PRAGMA user_version = 7",
     "DROP TABLE files"],
)  # fmt: skip
def test_an_index_of_another_form_is_made_anew(
    make_manager: Make, cache: Path, statement: str
) -> None:
    manager = make_manager(cache_directory=cache)
    save(manager, "a", "needle")
    assert found(manager, "needle") == [("a", 1)]
    with sqlite3.connect(index_file(cache)) as tables:
        tables.execute(statement)
    tables.close()
    assert found(manager, "needle") == [("a", 1)]
    assert rows_in(cache) == 1


def test_deleting_the_index_changes_nothing(make_manager: Make, cache: Path) -> None:
    manager = make_manager(cache_directory=cache)
    save(manager, "a", "needle")
    search = Search(manager)
    assert len(search.find("needle", 5)) == 1
    for path in cache.glob("search-*"):
        path.unlink()
    assert len(search.find("needle", 5)) == 1
    search.close()
    assert found(manager, "needle") == [("a", 1)]


@pytest.mark.parametrize("is_open", [True, False])
def test_any_damage_is_mended_by_the_next_search(
    make_manager: Make, cache: Path, is_open: bool
) -> None:
    """U9.9: noise, then cut, then gone, under a search that runs and for one that starts."""
    manager, noise = make_manager(cache_directory=cache), random.Random(1)
    for n in range(60):
        save(manager, f"s{n}", f"needle {n} " + " ".join(f"hay{n * k}" for k in range(300)))
    search = Search(manager)
    assert len(search.find("needle", 100)) == 60
    path = index_file(cache)
    for damage in ("noise", "cut", "noise", "gone", "cut"):
        if not is_open:
            search.close()
            search = Search(manager)
        for ending in ("", "-journal", "-wal", "-shm"):
            spoilt = path.with_name(path.name + ending)
            if damage == "noise":
                spoilt.write_bytes(noise.randbytes(30_000))
            elif damage == "cut" and spoilt.exists():
                os.truncate(spoilt, 5_000)
        if damage == "gone":
            shutil.rmtree(cache)
        assert len(search.find("needle", 100)) == 60, damage
        save(manager, f"after-{damage}", "pin")
        assert len(search.find("pin", 100)) >= 1
        manager.delete(f"after-{damage}")
    search.close()
    assert len(found(manager, "needle")) == 60
    assert rows_in(cache) == 60


def test_rows_that_say_nonsense_are_damage(make_manager: Make, cache: Path) -> None:
    """U9.9: a sound file with the wrong things in it."""
    manager = make_manager(cache_directory=cache)
    save(manager, "a", "needle")
    for statement in (
        "UPDATE files SET version = NULL",
        "UPDATE files SET version = 'x'",
        "UPDATE rows SET text = NULL",
        "UPDATE rows SET text = x'00', moment = 'x'",
    ):
        assert found(manager, "needle") == [("a", 1)]
        with sqlite3.connect(index_file(cache)) as tables:
            tables.execute(statement)
        tables.close()
        assert found(manager, "needle") == [("a", 1)], statement
    assert rows_in(cache) == 1


def test_no_file_of_the_index_is_shared_memory(make_manager: Make, cache: Path) -> None:
    """U9.9: cutting a mapped file would end the process; an index of an older Tiro is changed."""
    manager = make_manager(cache_directory=cache)
    save(manager, "a", "needle")
    assert found(manager, "needle") == [("a", 1)]
    tables = sqlite3.connect(index_file(cache))
    assert tables.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    tables.close()
    search = Search(manager)
    save(manager, "b", "needle")
    assert len(search.find("needle", 5)) == 2
    assert {path.suffix for path in cache.iterdir()} <= {".db", ".db-journal"}
    assert len(found(manager, "needle")) == 2  # another one beside it
    search.close()


def without_fts5(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real SQLite that makes no virtual tables, as one that was built without FTS5."""
    connect = sqlite3.connect

    def connect_without(*args: Any, **given: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **given)
        connection.set_authorizer(
            lambda action, *_: (
                sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_CREATE_VTABLE else sqlite3.SQLITE_OK
            )
        )
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_without)


def test_without_fts5_every_file_is_read(
    make_manager: Make, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_fts5(monkeypatch)
    manager = make_manager(cache_directory=cache)
    save(manager, "a", "needle 漢字")
    assert found(manager, "needle 漢") == [("a", 1)]


def test_where_no_index_can_be_every_file_is_read(make_manager: Make, cache: Path) -> None:
    cache.parent.mkdir()
    cache.write_text("in the way")
    manager = make_manager(cache_directory=cache)
    save(manager, "a", "needle")
    assert found(manager, "needle") == [("a", 1)]


def test_an_index_that_another_process_locks_does_not_stop_the_search(
    make_manager: Make, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_index, "BUSY_SECONDS", 0.05)
    manager = make_manager(cache_directory=cache)
    save(manager, "a", "needle")
    assert found(manager, "needle") == [("a", 1)]
    other = sqlite3.connect(index_file(cache), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    save(manager, "b", "needle too")
    assert set(found(manager, "needle")) == {("a", 1), ("b", 1)}
    other.execute("ROLLBACK")
    other.close()


def _search_there(directory: Path, cache: Path, answers: Any) -> None:
    with SessionManager(directory, cache_directory=cache) as manager:
        answers.put(sorted({hit.id or "" for hit in Search(manager).find("needle", 100)}))


def test_two_processes_share_one_index(make_manager: Make, directory: Path, cache: Path) -> None:
    manager = make_manager(cache_directory=cache)
    for n in range(20):
        save(manager, f"s{n:02}", f"needle {n}")
    context = multiprocessing.get_context("spawn")
    answers = context.SimpleQueue()
    others = [
        context.Process(target=_search_there, args=(directory, cache, answers)) for _ in range(2)
    ]
    for other in others:
        other.start()
    search = Search(manager)
    assert len(search.find("needle", 100)) == 20
    assert [answers.get() for _ in others] == [[f"s{n:02}" for n in range(20)]] * 2
    for other in others:
        other.join()
    save(manager, "new", "needle new")
    assert len(found(make_manager(cache_directory=cache), "needle")) == 21
    manager.delete("s00")
    assert len(search.find("needle", 100)) == 20
    search.close()


def _die_while_reading(directory: Path, cache: Path) -> None:
    search_index.BATCH_CHARACTERS = 1
    patched = pytest.MonkeyPatch()
    patched.setattr("tiro.stores.search.LONG_SECONDS", 0.0)
    patched.setattr("tiro.stores.search.REPORT_SECONDS", 0.0)

    def die(done: int, total: int) -> None:
        if done == total // 2:
            os.kill(os.getpid(), signal.SIGKILL)

    with SessionManager(directory, cache_directory=cache) as manager:
        Search(manager).find("needle", 100, on_progress=die)


@pytest.mark.skipif(sys.platform == "win32", reason="nothing dies like that there")
def test_a_process_that_is_killed_while_it_reads_leaves_a_sound_index(
    make_manager: Make, directory: Path, cache: Path
) -> None:
    manager = make_manager(cache_directory=cache)
    for n in range(10):
        save(manager, f"s{n}", f"needle {n}")
    context = multiprocessing.get_context("spawn")
    child = context.Process(target=_die_while_reading, args=(directory, cache))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert 0 < rows_in(cache) < 10
    assert len(found(manager, "needle")) == 10
    assert rows_in(cache) == 10


def test_a_full_disk_does_not_stop_the_search(
    make_manager: Make, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = (*search_index.SETTINGS, "max_page_count = 16")
    monkeypatch.setattr(search_index, "SETTINGS", settings)
    manager = make_manager(cache_directory=cache, clock=ticking())
    for n in range(20):
        save(manager, f"s{n}", " ".join(f"needle{n * k}" for k in range(2000)))
    assert [id for id, _ in found(manager, "needle399")] == ["s19", "s7", "s3", "s1"]
    assert index_file(cache).stat().st_size <= 16 * 4096


def test_a_session_that_lives_here_is_read_from_memory_and_later_from_its_file(
    make_manager: Make, cache: Path
) -> None:
    manager = make_manager(cache_directory=cache, clock=ticking())
    save(manager, "other", "needle")
    session = manager.create(id="live")
    session.add_message("user", "needle")
    search = Search(manager)
    assert [hit.id for hit in search.find("needle", 9, live=[session])] == ["live", "other"]
    assert rows_in(cache) == 1
    session.edit_message(1, "pin")
    assert [hit.taken_back for hit in search.find("needle", 9, live=[session])] == [True, False]
    assert [hit.taken_back for hit in search.find("needle", 9)] == [True, False]
    assert rows_in(cache) == 3
    search.close()


def test_threads_may_search_at_once(make_manager: Make, cache: Path) -> None:
    manager = make_manager(cache_directory=cache)
    for n in range(10):
        save(manager, f"s{n}", f"needle {n}")
    search = Search(manager)
    counts: list[int] = []
    threads = [
        threading.Thread(target=lambda: counts.append(len(search.find("needle", 100))))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [10] * 6
    search.close()


def test_a_long_search_tells_how_far_it_is_and_can_be_ended(
    make_manager: Make, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tiro.stores.search.LONG_SECONDS", 0.0)
    monkeypatch.setattr("tiro.stores.search.REPORT_SECONDS", 0.0)
    monkeypatch.setattr(search_index, "BATCH_CHARACTERS", 1)
    manager = make_manager(cache_directory=cache)
    for n in range(4):
        save(manager, f"s{n}", "needle")
    told: list[tuple[int, int]] = []
    search = Search(manager)
    assert len(search.find("needle", 9, on_progress=lambda *now: told.append(now))) == 4
    assert list(dict.fromkeys(told)) == [(n, 4) for n in range(5)]
    search.close()
    search = Search(manager)
    save(manager, "s9", "needle")
    closing = threading.Thread(target=search.close)

    def close(done: int, total: int) -> None:
        if not closing.ident:
            closing.start()

    assert len(search.find("needle", 9, on_progress=close)) in (0, 5)
    closing.join()
    assert search.find("needle", 9) == []
    search.close()


def test_many_messages_of_one_moment_come_in_one_order(make_manager: Make, cache: Path) -> None:
    """Imported histories often have one time for all; the newest seq comes first."""
    manager = make_manager(cache_directory=cache)
    session = manager.create(id="a")
    for n in range(50):
        session.append_message(
            {"role": "user", "content": f"needle {n}", "timestamp": "2025-01-01"}
        )
    manager.save(session)
    assert [seq for _, seq in found(manager, "needle", 5)] == [50, 49, 48, 47, 46]


def test_times_of_any_year_are_put_in_order(make_manager: Make, cache: Path) -> None:
    """Whatever an imported file says; what is no time counts as the session's own."""
    years = ["0001-01-01T00:00:00+14:00", "1900-01-01", "1969-12-31T23:59:59Z", "9999-12-31"]
    for options in ({"cache_directory": cache}, {}):
        manager = make_manager(**options)
        if options:
            session = manager.create(id="a")
            for year in years:
                row = {"role": "user", "content": "needle", "timestamp": year}
                session.append_message(row)
            manager.save(session)
        assert [seq for _, seq in found(manager, "needle")] == [4, 1, 3, 2]
