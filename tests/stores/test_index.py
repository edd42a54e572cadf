"""The list of saved sessions (U9.9, M4.5, N6.6, B13, B14)."""

import datetime
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.stores.conftest import Make
from tests.stores.look import names
from tiro.stores import index
from tiro.stores.index import SavedSession
from tiro.stores.manager import SessionManager
from tiro.stores.reading import Reading, read_session


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = datetime.datetime(2026, 10, 25, 0, 30, tzinfo=datetime.UTC)

    def __call__(self) -> datetime.datetime:
        return self.now


def rows(manager: SessionManager, query: str | None = None) -> list[SavedSession]:
    return manager.list(query)[0]


def ids(manager: SessionManager, query: str | None = None) -> list[str]:
    return [row.id for row in rows(manager, query)]


def write(directory: Path, id: str, **fields: Any) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{id}.json"
    whole = {"id": id, "messages": [], "updated_at": "2026-01-01T00:00:00.000Z", **fields}
    path.write_text(json.dumps(whole))
    return path


def test_a_journal_that_goes_while_it_is_looked_at_hides_no_session(
    manager: SessionManager, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when another thread or process brings its session to rest, which is one file then."""
    write(directory, "a")
    journal, looking_at = directory / "a.journal", index._looking_at
    journal.touch()

    @contextmanager
    def looking_as_it_goes(directory: Path) -> Iterator[Any]:
        with looking_at(directory) as found:
            journal.unlink()
            yield found

    monkeypatch.setattr(index, "_looking_at", looking_as_it_goes)
    assert ids(manager) == ["a"]


def test_a_row_says_what_the_files_say(manager: SessionManager) -> None:
    """Protocol `list`: the window's count with the journal's part, both sizes, the agent."""
    session = manager.create(max_history=3, agent="plan")
    for number in range(5):
        session.add_message("user", f"\n  prompt {number} {'x' * 80}\nmore")
    path = manager.path_of(session)
    assert path is not None
    [row] = rows(manager)
    assert row.id == session.id
    assert row.path == str(path)
    assert row.title == ("prompt 0 " + "x" * 80)[:50]
    assert (row.agent, row.messages, row.error) == ("plan", 3, None)
    assert row.bytes == path.stat().st_size + path.with_suffix(".journal").stat().st_size
    assert row.saved_at is not None
    assert row.saved_at.endswith("Z")
    time.sleep(0.05)  # the row is settled now
    rows(manager)
    with manager.changing(session):
        session.change(title="My title")
    assert rows(manager)[0].title == "My title"


def test_what_others_do_is_seen(make_manager: Make, directory: Path, tmp_path: Path) -> None:
    """U9.9: files added, changed, removed, in this process or by a cache of an earlier one."""
    cache = tmp_path / "cache"
    for start in range(2):
        manager = make_manager(cache_directory=cache)
        write(directory, f"a{start}", title="A", updated_at=f"2026-01-0{start + 1}T00:00:00.000Z")
        write(directory, f"b{start}", title="B")
        assert {f"a{start}", f"b{start}"} <= set(ids(manager))
        write(directory, f"b{start}", title="B changed, longer")
        assert "B changed, longer" in [row.title for row in rows(manager)]
        (directory / f"b{start}.json").unlink()
        assert f"b{start}" not in ids(manager)
        write(directory, "c")
        ids(manager)
        (directory / "c.json").rename(directory / "d.json")
        assert {Path(row.path).stem for row in rows(manager)} >= {"d", f"a{start}"}
        assert "c" not in {Path(row.path).stem for row in rows(manager)}
        (directory / "d.json").unlink()
        manager.close()
    assert ids(make_manager(cache_directory=cache)) == ["a1", "a0"]


def test_a_change_of_the_same_length_in_the_same_instant_is_seen(
    manager: SessionManager, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file changed shortly before it was read may change again under the same time."""
    monkeypatch.setattr(index, "_SETTLE_NS", 10**12)  # shortly, however slow this machine is
    path = write(directory, "a", title="one")
    assert rows(manager)[0].title == "one"
    stamp = path.stat()
    with path.open("r+") as file:
        text = file.read().replace('"one"', '"two"')
        file.seek(0)
        file.write(text)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert rows(manager)[0].title == "two"


@pytest.mark.parametrize("damage", ["none", "garbage", "older", "missing", "read-only"])
def test_the_cache_is_only_a_cache(
    make_manager: Make, directory: Path, tmp_path: Path, damage: str
) -> None:
    """U9.9: deleting or damaging it changes nothing but the time."""
    cache = tmp_path / "cache"
    for number in range(60):
        write(directory, f"s{number:02d}", title=str(number))
    with make_manager(cache_directory=cache) as manager:
        expected = rows(manager)
    [file] = cache.iterdir()
    if damage == "garbage":
        file.write_bytes(b"\x00" * 100)
    elif damage == "older":
        file.write_bytes(file.read_bytes().replace(b'"version":', b'"version":9'))
    elif damage == "missing":
        file.unlink()
    elif damage == "read-only":
        file.unlink()
        cache.rmdir()
        cache.write_text("a file")
    with make_manager(cache_directory=cache) as manager:
        assert rows(manager) == expected
    assert len(names(directory)) == 60


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere all names are text")
def test_names_that_are_no_text_cost_only_themselves(
    make_manager: Make, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an old archive or another system leaves them."""
    cache, odd = tmp_path / "cache", os.fsdecode(b"caf\xe9")
    for number in range(60):
        write(directory, f"s{number:02d}")
    write(directory, "s00").rename(directory / f"{odd}.json")
    for path in directory.iterdir():
        os.utime(path, (1, 1))
    with make_manager(cache_directory=cache) as manager:
        expected = rows(manager)
        assert len(expected) == 60
    reads: list[str] = []

    def counted(path: Path) -> Reading:
        reads.append(path.stem)
        return read_session(path)

    monkeypatch.setattr("tiro.stores.index.read_session", counted)
    with make_manager(cache_directory=cache) as manager:
        assert rows(manager) == expected
    assert reads == [odd]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere all names are text")
def test_a_directory_whose_name_is_no_text_is_listed(make_manager: Make, tmp_path: Path) -> None:
    directory = tmp_path / os.fsdecode(b"caf\xe9")
    for number in range(60):
        write(directory, f"s{number:02d}")
    for _ in range(2):
        with SessionManager(directory, cache_directory=tmp_path / "cache") as manager:
            assert len(rows(manager)) == 60


def test_an_unchanged_file_is_not_read_again(
    make_manager: Make, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Product bar `list`: the second call reads no file, in this process and in the next."""
    cache = tmp_path / "cache"
    for number in range(5):
        write(directory, f"s{number}")
    time.sleep(0.05)
    reads: list[Path] = []

    def counted(path: Path) -> Reading:
        reads.append(path)
        return read_session(path)

    monkeypatch.setattr("tiro.stores.index.read_session", counted)
    with make_manager(cache_directory=cache) as manager:
        rows(manager)
        assert len(reads) == 5
        rows(manager)
        assert len(reads) == 5
    with make_manager(cache_directory=cache) as manager:
        write(directory, "s2", title="changed")
        assert len(rows(manager)) == 5
        assert [path.stem for path in reads[5:]] == ["s2"]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu", "America/New_York", "Europe/Berlin"])
def test_the_order_is_that_of_utc_in_every_zone(
    make_manager: Make, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    """B13: also where the clock is set back at the end of summer time, and ids look unordered."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        clock = Clock()
        manager = make_manager(clock=clock)
        made = []
        for minutes in (0, 50, 20, 40):  # 25 October 2026: 3:00 becomes 2:00 in Berlin at 1:00 UTC
            clock.now += datetime.timedelta(minutes=minutes)
            session = manager.create()
            session.add_message("user", "x")
            manager.end(session)
            made.append(session.id)
        assert ids(manager) == made[::-1]
        latest = manager.latest()
        assert latest is not None
        assert latest.id == made[-1]
        assert all(":" not in name for name in names(manager.directory))
    finally:
        monkeypatch.undo()
        time.tzset()


def test_pages_and_queries(manager: SessionManager, directory: Path) -> None:
    """Protocol `list`: 100 by default; the query looks at title, id and agent."""
    for number in range(120):
        write(
            directory,
            f"s{number:03d}",
            title=f"Größe {number}",
            agent="plan" if number % 2 else None,
            updated_at=f"2026-01-01T00:{number // 60:02d}:{number % 60:02d}.000Z",
        )
    found, total = manager.list()
    assert (len(found), total) == (100, 120)
    assert found[0].id == "s119"
    found, total = manager.list(limit=7, offset=115)
    assert ([row.id for row in found], total) == ([f"s{n:03d}" for n in (4, 3, 2, 1, 0)], 120)
    assert manager.list("GRÖSSE 11", limit=3)[1] == 11
    assert manager.list("plan")[1] == 60
    assert ids(manager, "s007") == ["s007"]
    assert manager.list("nothing") == ([], 0)
    assert manager.list(limit=None)[0][-1].id == "s000"


def test_what_a_killed_process_left_behind_is_removed(
    manager: SessionManager, directory: Path
) -> None:
    """U9.6: also a temporary file whose session never came to be; nobody else's."""
    write(directory, "good")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    (directory / f".never-made.json.{dead.pid}-1.tmp").write_text("the user's words")
    (directory / f".being-made.json.{os.getpid()}-1.tmp").write_text("")
    (directory / ".mine.tmp").write_text("")
    assert ids(manager, "good") == ["good"]
    left = {entry.name for entry in directory.iterdir() if entry.name.startswith(".")}
    assert left == {f".being-made.json.{os.getpid()}-1.tmp", ".mine.tmp"}


def test_only_session_files_are_listed(manager: SessionManager, directory: Path) -> None:
    """Temporary, set aside and foreign files are none; a directory or a FIFO stops nobody."""
    write(directory, "good")
    for name in (".x.json.1.tmp", "x.json.bad-1", "x.journal", "notes.txt", ".hidden.json"):
        (directory / name).write_text("{}")
    (directory / "folder.json").mkdir()
    os.mkfifo(directory / "fifo.json")
    (directory / "broken.json").symlink_to(directory / "nowhere")
    found = {row.id: row.error for row in rows(manager)}
    assert found["good"] is None
    assert set(found) == {"good", "folder", "fifo"}
    assert found["folder"]
    assert found["fifo"]


def test_old_forms_are_listed_by_their_timestamp(manager: SessionManager, directory: Path) -> None:
    """B14: without times of ours; M4.2's local form decides."""
    directory.mkdir(parents=True)
    for id, stamp in (("a", "2025-02-21T14:30:15-0800"), ("b", "2025-02-21T20:30:15+0100")):
        fields = {"id": id, "messages": [{"role": "user", "content": "x"}], "timestamp": stamp}
        (directory / f"{id}.json").write_text(json.dumps(fields))
    assert ids(manager) == ["a", "b"]
    assert rows(manager)[0].saved_at == "2025-02-21T22:30:15.000Z"
