"""A rename that is refused does not happen later on either, and leaves nothing behind."""

import errno
from pathlib import Path
from typing import Any, cast

import pytest

from tests.stores.faults import FaultyDisk
from tests.stores.look import names
from tiro.assistant.saved_sessions import SavedSessions
from tiro.errors import StorageError
from tiro.stores.manager import SessionManager
from tiro.tools.silent_disk import Patience


@pytest.mark.parametrize(("is_current", "autosave"), [(False, True), (False, False), (True, True)])
@pytest.mark.parametrize("operation", ["open", "write", "sync", "replace"])
async def test_a_rename_is_done_or_refused_for_good(
    tmp_path: Path, operation: str, is_current: bool, autosave: bool
) -> None:
    """U7.6."""
    with SessionManager(tmp_path) as manager:
        session = manager.create(id="x")
        session.add_message("user", "words")
        manager.save(session)
        manager.end(session)
    disk, unused = FaultyDisk(), cast("Any", None)
    manager = SessionManager(tmp_path, disk=disk, autosave=autosave)
    saved = SavedSessions(manager, unused, unused, Patience())
    if is_current:
        manager.set_current(manager.load_id("x"))
    disk.fail(errno.ENOSPC, only=operation)
    wanted = "Another title"
    try:
        await saved.rename("x", wanted)
    except StorageError:
        wanted = "words"
    disk.heal()
    saved.close()
    manager.close()
    with SessionManager(tmp_path) as again:
        assert [row.title for row in again.list()[0]] == [wanted]
    assert set(names(tmp_path)) <= {"x.json", "x.journal"}  # what could not be folded is there
