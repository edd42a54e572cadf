"""A session that cannot be stored where it belongs is kept elsewhere when the server ends."""

import asyncio
import errno
import os
import sqlite3
import stat
import tempfile
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import RecordingEditor
from tests.sizes import PATIENCE
from tests.stores.look import texts
from tiro.assistant import rescue
from tiro.assistant.assistant import Assistant
from tiro.session.core import Core
from tiro.stores.disk import Disk
from tiro.stores.manager import SessionManager
from tiro.stores.session_files import encode_snapshot
from tiro.tools.silent_disk import in_thread


class AwayDisk(Disk):
    """Whatever lies below one of its folders cannot be opened."""

    def __init__(self) -> None:
        self.away: list[Path] = []

    def open(self, path: Path | str, flags: int) -> int:
        if any(folder in Path(path).parents for folder in self.away):
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return super().open(path, flags)


@pytest.fixture
def disk() -> AwayDisk:
    return AwayDisk()


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def open_assistant(tmp_path: Path, disk: AwayDisk, told: list[str]) -> Callable[..., Assistant]:
    """Opens assistants on one config directory."""

    def open_it(store: str = "files") -> Assistant:
        (tmp_path / "config.yaml").write_text(f"store: {{kind: {store}}}\n")
        assistant = Assistant(editor=RecordingEditor(), config_dir=tmp_path)
        assistant.manager.disk = disk
        assistant.say = assistant.tell = lambda text: told.append(text)
        return assistant

    return open_it


def rescued(told: list[str]) -> Path:
    """The one file that was told of."""
    (sentence,) = told
    return Path(sentence.split("'")[3])


async def test_what_the_disk_refuses_is_kept_in_the_config_directory(
    open_assistant: Callable[..., Assistant], disk: AwayDisk, told: list[str], tmp_path: Path
) -> None:
    assistant = open_assistant()
    assistant.session.add_message("user", "stored")
    disk.away.append(tmp_path / "sessions")
    assistant.session.add_message("user", "not stored")
    await assistant.shutdown()
    path = rescued(told)
    assert path == tmp_path / "rescued" / f"{assistant.session.id}.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert texts(SessionManager(tmp_path / "other").load(path)) == ["stored", "not stored"]
    told.clear()
    again = open_assistant()
    await again.warm_up()
    assert len(told) == 1
    assert str(path.parent) in told[0]
    await again.saved.import_from(path, None, None)
    assert texts(again.session) == ["stored", "not stored"]
    disk.away.clear()
    await again.shutdown()


async def test_all_sessions_are_kept_each_in_a_file_of_its_own(
    open_assistant: Callable[..., Assistant], disk: AwayDisk, told: list[str], tmp_path: Path
) -> None:
    for _ in range(2):
        assistant = open_assistant()
        disk.away.append(tmp_path / "sessions")
        for id in ("a", "b"):
            await assistant.new(id=id)
            assistant.session.add_message("user", f"in {id}")
        await assistant.shutdown()
    names = sorted(path.name for path in (tmp_path / "rescued").iterdir())
    assert names == ["a-01.json", "a.json", "b-01.json", "b.json"]
    assert len(told) == 4


async def test_where_the_config_directory_is_away_too_it_is_kept_beside_the_temporary_files(
    open_assistant: Callable[..., Assistant],
    disk: AwayDisk,
    told: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    assistant = open_assistant()
    disk.away += [tmp_path / "sessions", tmp_path / "rescued"]
    assistant.session.add_message("user", "not stored")
    await assistant.shutdown()
    path = rescued(told)
    assert path.parent.parent == tmp_path / "tmp"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert texts(SessionManager(tmp_path / "other").load(path)) == ["not stored"]


async def test_what_cannot_be_encoded_keeps_no_other_from_the_disk(
    open_assistant: Callable[..., Assistant],
    disk: AwayDisk,
    told: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server ends as ever: what is to be closed is closed."""
    assistant = open_assistant()
    disk.away.append(tmp_path / "sessions")
    for id in ("a", "b"):
        await assistant.new(id=id)
        assistant.session.add_message("user", f"in {id}")

    def encoded(session: Core, now: datetime) -> bytes:
        if session.id == "a":
            raise RecursionError("too deep")
        return encode_snapshot(session, now)

    monkeypatch.setattr(rescue, "encode_snapshot", encoded)
    closed: list[bool] = []
    monkeypatch.setattr(assistant.manager, "close", lambda: closed.append(True))
    await assistant.shutdown()
    assert closed == [True]
    assert sorted(told)[0] == "The session 'a' cannot be saved anywhere: too deep"
    assert [path.name for path in (tmp_path / "rescued").iterdir()] == ["b.json"]


@pytest.mark.parametrize("busy", ["a session", "the list of sessions"])
async def test_a_writer_that_waits_for_a_silent_disk_holds_up_no_other(
    open_assistant: Callable[..., Assistant],
    disk: AwayDisk,
    tmp_path: Path,
    busy: str,
) -> None:
    assistant = open_assistant()
    disk.away.append(tmp_path / "sessions")
    for id in ("a", "b"):
        await assistant.new(id=id)
        assistant.session.add_message("user", f"in {id}")
    lock = assistant.session.lock if busy == "a session" else assistant.manager.live.lock
    held, done = threading.Event(), threading.Event()

    def wait_for_the_disk() -> None:
        with lock:
            held.set()
            done.wait()

    writer = threading.Thread(target=wait_for_the_disk)
    writer.start()
    held.wait()
    kept = rescue.Rescue(assistant.manager, tmp_path)
    try:
        await asyncio.wait_for(in_thread(kept.write), PATIENCE)
    finally:
        done.set()
        writer.join()
    silent = "The session 'b' cannot be saved anywhere: its disk does not answer"
    assert (silent in kept.told()) == (busy == "a session")
    names = sorted(path.name for path in (tmp_path / "rescued").iterdir())
    assert names == (["a.json"] if busy == "a session" else ["a.json", "b.json"])
    disk.away.clear()
    await assistant.shutdown()


async def test_what_can_be_kept_nowhere_is_told(
    open_assistant: Callable[..., Assistant], disk: AwayDisk, told: list[str], tmp_path: Path
) -> None:
    assistant = open_assistant()
    disk.away.append(Path("/"))
    assistant.session.add_message("user", "not stored")
    await assistant.shutdown()
    (sentence,) = told
    assert "cannot be saved anywhere: " in sentence
    assert os.strerror(errno.EIO) in sentence


async def test_what_the_store_takes_in_the_end_is_kept_nowhere_else(
    open_assistant: Callable[..., Assistant], disk: AwayDisk, told: list[str], tmp_path: Path
) -> None:
    assistant = open_assistant()
    disk.away.append(tmp_path / "sessions")
    assistant.session.add_message("user", "stored late")
    disk.away.clear()
    await assistant.shutdown()
    assert told == []
    assert not (tmp_path / "rescued").exists()
    assert texts(open_assistant().manager.load_id(assistant.session.id or "")) == ["stored late"]


@pytest.mark.parametrize("setting", ["deleted", "not saved by itself", "empty"])
async def test_what_nobody_wants_to_be_stored_is_not_kept(
    open_assistant: Callable[..., Assistant],
    disk: AwayDisk,
    told: list[str],
    tmp_path: Path,
    setting: str,
) -> None:
    assistant = open_assistant()
    assistant.manager.autosave = setting != "not saved by itself"
    session: Any = assistant.session
    if setting != "empty":
        session.add_message("user", "one")
    if setting == "deleted":
        await assistant.deletion.delete(session.id or "")
        session.add_message("user", "two")
    disk.away.append(tmp_path / "sessions")
    await assistant.shutdown()
    assert told == []
    assert not (tmp_path / "rescued").exists()


async def test_what_is_said_while_an_sqlite_file_is_locked_is_kept(
    open_assistant: Callable[..., Assistant], told: list[str], tmp_path: Path
) -> None:
    assistant = open_assistant("sqlite")
    assistant.session.add_message("user", "stored")
    with closing(sqlite3.connect(tmp_path / "sessions.db", isolation_level=None)) as sql:
        sql.execute("BEGIN IMMEDIATE")
        assistant.session.add_message("user", "not stored")
        await assistant.shutdown()
    kept = SessionManager(tmp_path / "other").load(rescued(told))
    assert texts(kept) == ["stored", "not stored"]
