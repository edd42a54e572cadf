"""Deleted means deleted: what comes in from the background meanwhile brings no session back."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import RecordingEditor, ScriptedModel, says
from tests.sizes import PATIENCE
from tests.stores.faults import FaultyDisk
from tiro.assistant.assistant import Assistant
from tiro.errors import ResizeError, SessionNotFoundError
from tiro.session.messages import Usage
from tiro.session.session import Session


def open_assistant(folder: Path, store: str = "files") -> Assistant:
    """One whose sessions are in this folder."""
    folder.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text(f"store: {{kind: {store}}}\n")
    return Assistant(editor=RecordingEditor(), config_dir=folder)


def begun(assistant: Assistant) -> Session:
    session = assistant.session
    session.add_message("user", "first")
    session.add_message("assistant", "second")
    return session


def where(assistant: Assistant) -> tuple[list[str], list[str]]:
    """The ids of what is saved, and of what is in the trash."""
    manager = assistant.manager
    saved = sorted(row.id for row in manager.listing.sessions())
    return saved, sorted(row.saved.id for row in manager.trash.page()[0])


async def summarized(assistant: Assistant, session: Session) -> None:
    async with assistant.memory.current(session):
        session.change(summary="late")


async def changed(assistant: Assistant, session: Session) -> None:
    async with assistant.memory.writing(session):
        session.change(summary="late")


async def paid(assistant: Assistant, session: Session) -> None:
    """What a question besides the turn has cost is stored with the next change."""
    memory = assistant.memory
    memory.use(session, ScriptedModel(says("late", usage=Usage(1, 1))))
    assert session.handlers.memo_model is not None
    await session.handlers.memo_model.chat(messages=[{"role": "user", "content": "?"}])
    await memory.after_turn(session)


@pytest.mark.parametrize("store", ["files", "sqlite"])
@pytest.mark.parametrize("late", [summarized, changed, paid])
@pytest.mark.parametrize("way", ["discard", "delete"])
async def test_a_summary_that_comes_in_when_its_session_was_just_deleted(
    tmp_path: Path,
    store: str,
    late: Callable[[Assistant, Session], Coroutine[Any, Any, None]],
    way: str,
) -> None:
    """It is the current one still, for the request to delete it is not answered yet."""
    assistant, loop = open_assistant(tmp_path, store), asyncio.get_running_loop()
    session = begun(assistant)
    id = session.id or ""
    take_away = getattr(assistant.manager, way)

    def taken_away(id: str) -> bool:
        is_done: bool = take_away(id)
        coming_in = asyncio.run_coroutine_threadsafe(late(assistant, session), loop)
        with contextlib.suppress(ResizeError):
            coming_in.result(PATIENCE)
        return is_done

    setattr(assistant.manager, way, taken_away)
    assert await getattr(assistant.deletion, way)(id)
    thrown = [id] if way == "discard" else []
    assert where(assistant) == ([], thrown)
    with assistant.manager.writing(session):
        session.add_message("user", "later still")
    assistant.manager.close()
    assert where(assistant) == ([], thrown)
    if thrown:
        assert (await assistant.deletion.restore(id)).id == id
    else:
        assistant.manager.create(id=id)
    await assistant.shutdown()


@pytest.mark.parametrize("store", ["files", "sqlite"])
async def test_a_summary_of_what_another_server_deleted_is_dropped(
    tmp_path: Path, store: str
) -> None:
    """What its user says in it after that brings it back, for nothing said is ever lost."""
    assistant, other = open_assistant(tmp_path, store), open_assistant(tmp_path, store)
    session = begun(assistant)
    assert await other.deletion.discard(session.id or "")
    with pytest.raises(ResizeError):
        await summarized(assistant, session)
    await paid(assistant, session)
    assert where(other) == ([], [session.id])
    async with assistant.changing():
        session.add_message("user", "third")
    assert where(other) == ([session.id], [session.id])
    for one in (assistant, other):
        await one.shutdown()


async def test_a_delete_ends_what_a_model_is_asked_for_the_session(tmp_path: Path) -> None:
    assistant = open_assistant(tmp_path)
    session = begun(assistant)
    asked = asyncio.create_task(asyncio.Event().wait())
    assistant.turns.beside(asked)
    assert await assistant.deletion.discard(session.id or "")
    async with asyncio.timeout(PATIENCE):
        await asyncio.wait({asked})
    assert asked.cancelled()
    await assistant.shutdown()


async def test_a_deleted_session_that_the_disk_had_refused_is_gone_too(tmp_path: Path) -> None:
    """It is held in memory until it is stored, and found there, unless it was deleted."""
    assistant = open_assistant(tmp_path)
    assistant.manager.disk = disk = FaultyDisk()
    session = begun(assistant)
    id = session.id or ""
    disk.fail()
    async with assistant.changing():
        session.add_message("user", "not stored")
    assert (await assistant.saved.clear()).saved_as is None
    disk.heal()
    assert await assistant.deletion.delete(id)
    with pytest.raises(SessionNotFoundError):
        await assistant.load(id=id)
    await assistant.shutdown()
