"""What the settings say of old sessions and of the trash is done, and told once."""

import asyncio
import json
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import FixedClock, RecordingEditor
from tiro.assistant.assistant import Assistant
from tiro.assistant.deletion import PRUNED
from tiro.errors import StorageError
from tiro.session.times import utc_now
from tiro.stores.disk import Disk
from tiro.stores.index import Index, SavedSession
from tiro.stores.journal import Journal
from tiro.stores.manager import SessionManager
from tiro.stores.retention import Rule


def put(directory: Path, id: str, days: float) -> None:
    """A session that was saved so many days ago."""
    saved = (utc_now() - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%S+0000")
    directory.mkdir(parents=True, exist_ok=True)
    fields = {"id": id, "messages": [{"role": "user", "content": id}], "timestamp": saved}
    (directory / f"{id}.json").write_text(json.dumps(fields))


def open_assistant(folder: Path, retention: dict[str, Any], told: list[str]) -> Assistant:
    """One whose sessions are in this folder, with these settings."""
    folder.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text(json.dumps({"retention": retention}))
    for id, days in (("new", 1), ("old", 91), ("older", 400)):
        put(folder / "sessions", id, days)
    assistant = Assistant(editor=RecordingEditor(), config_dir=folder)

    def say(text: str) -> None:
        told.append(text)

    assistant.say = say
    return assistant


def where(assistant: Assistant) -> tuple[list[str], list[str]]:
    """The ids of what is saved, and of what is in the trash."""
    manager = assistant.manager
    saved = sorted(row.id for row in manager.listing.sessions())
    return saved, sorted(row.saved.id for row in manager.trash.page()[0])


async def test_old_sessions_go_to_the_trash_and_later_for_good(tmp_path: Path) -> None:
    told: list[str] = []
    assistant = open_assistant(tmp_path, {"max_age_days": 90, "trash_days": 7}, told)
    order = asyncio.Lock()
    for _ in range(2):
        await assistant.deletion.keep_order(order)
        assert where(assistant) == (["new"], ["old", "older"])
        assert told == [PRUNED.format(count=2, s="s")]
    assistant.manager.clock = FixedClock(utc_now() + timedelta(days=6.9))
    await assistant.deletion.keep_order(order)
    assert where(assistant) == (["new"], ["old", "older"])
    assistant.manager.clock = FixedClock(utc_now() + timedelta(days=7.1))
    await assistant.deletion.keep_order(order)
    assert where(assistant) == (["new"], [])
    await assistant.shutdown()


async def test_nothing_goes_by_itself_but_out_of_the_trash(tmp_path: Path) -> None:
    """By default no session goes; what was deleted 30 days ago does, unless that is off."""
    for trash_days, left in (({}, []), ({"trash_days": None}, ["old"])):
        told: list[str] = []
        assistant = open_assistant(tmp_path / str(len(left)), trash_days, told)
        assert await assistant.deletion.discard("old")
        assistant.manager.clock = FixedClock(utc_now() + timedelta(days=31))
        await assistant.deletion.keep_order(asyncio.Lock())
        assert (where(assistant), told) == ((["new", "older"], left), [])
        await assistant.shutdown()


async def test_a_session_that_becomes_the_current_one_meanwhile_stays(tmp_path: Path) -> None:
    """What the user opens between the plan and its end is not taken away."""
    told: list[str] = []
    assistant = open_assistant(tmp_path, {"max_total_mb": 0.0001}, told)
    order = asyncio.Lock()
    async with order:
        keeping = asyncio.create_task(assistant.deletion.keep_order(order))
        await assistant.load(id="older")
    await keeping
    saved, _ = where(assistant)
    assert "older" in saved
    assert assistant.session.id == "older"
    await assistant.shutdown()


async def test_a_session_that_another_process_changes_after_the_plan_stays(tmp_path: Path) -> None:
    """Nobody is at it any more, yet it is not old any more either."""
    assistant = open_assistant(tmp_path, {}, [])
    planned = await assistant.deletion.plan(Rule(max_age_days=90))
    with SessionManager(tmp_path / "sessions") as other:
        session = other.load_id("old")
        with other.changing(session):
            session.add_message("user", "again")
    gone = await assistant.deletion.prune(planned.going, asyncio.Lock())
    assert [one.saved.id for one in gone] == ["older"]
    assert where(assistant) == (["new", "old"], ["older"])
    await assistant.shutdown()


@pytest.mark.parametrize("is_answering", [True, False])
async def test_what_a_killed_process_left_is_open_for_a_day_or_as_long_as_it_is_locked(
    tmp_path: Path, is_answering: bool
) -> None:
    """A kill -9 leaves the journal: that must not keep a session for ever."""
    assistant = open_assistant(tmp_path, {}, [])
    put(tmp_path / "sessions", "recent", 0.9)
    for id in ("old", "recent"):
        (tmp_path / "sessions" / f"{id}.journal").write_bytes(b"")
    holder = Journal(tmp_path / "sessions" / "old.journal", Disk())
    if is_answering:
        assert holder.try_lock()
    plan = await assistant.deletion.plan(Rule(max_total_bytes=0))
    holder.close()
    going = {one.saved.id for one in plan.going}
    assert going == {"new", "older", *(["old"] if not is_answering else [])}
    await assistant.shutdown()


async def test_what_fails_for_one_session_keeps_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever asks the disk or the store does so beside the loop, and fails for itself."""
    told: list[str] = []
    assistant = open_assistant(tmp_path, {"max_age_days": 30}, told)
    put(tmp_path / "sessions", "oldest", 500)
    asked: list[int] = []
    is_open = Index.is_open

    def failing(index: Index, saved: SavedSession) -> bool:
        asked.append(threading.get_ident())
        if saved.id == "older" and len(asked) > 4:
            raise StorageError("out of reach")
        return is_open(index, saved)

    monkeypatch.setattr(Index, "is_open", failing)
    await assistant.deletion.keep_order(asyncio.Lock())
    assert where(assistant) == (["new", "older"], ["old", "oldest"])
    assert told == [PRUNED.format(count=2, s="s")]
    assert threading.get_ident() not in asked
    await assistant.shutdown()
