"""Exports as files, and sessions that come from elsewhere (U7.6, M7.3, U9.11)."""

import errno
import re
from pathlib import Path

import pytest

from tests.stores.conftest import Make, Notices
from tests.stores.faults import FaultyDisk
from tests.stores.look import mode, names, texts
from tiro.errors import SessionFormatError, StorageError
from tiro.stores.exports import read_import, stored_form, write_export
from tiro.stores.formats import registry
from tiro.stores.manager import SessionManager


def exported(manager: SessionManager, path: Path, format: str = "yaml") -> Path:
    fields = stored_form(manager)
    return write_export(manager, path, fields["id"], registry.named(format).dumps(fields))


def talking(manager: SessionManager) -> SessionManager:
    session = manager.create(id="talk")
    manager.set_current(session)
    session.add_message("user", "hello")
    return manager


@pytest.mark.parametrize("operation", ["open", "write", "sync", "replace", "make_directory"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
def test_what_the_disk_refuses_is_told_and_leaves_nothing(
    make_manager: Make, tmp_path: Path, operation: str, code: int
) -> None:
    """U7.6: the old file stays, and no temporary one."""
    disk = FaultyDisk()
    manager = talking(make_manager(disk=disk))
    folder = tmp_path / "out"
    if operation != "make_directory":
        exported(manager, folder / "a.yaml")
    before = {path: path.read_bytes() for path in folder.glob("*")}
    disk.fail(code, only=operation)
    with pytest.raises(StorageError) as caught:
        exported(manager, folder / "a.yaml")
    assert caught.value.data == {
        "path": str(folder / "a.yaml"),
        "errno": errno.errorcode[code],
    }
    assert {path: path.read_bytes() for path in folder.glob("*")} == before
    disk.heal()
    exported(manager, folder / "a.yaml")
    assert names(folder) == ["a.yaml"]
    assert (mode(folder), mode(folder / "a.yaml")) == (0o700, 0o600)


def test_what_comes_from_elsewhere_is_kept_in_memory_where_the_disk_refuses(
    make_manager: Make, tmp_path: Path, notices: Notices
) -> None:
    """Protocol section 3: storing never fails an import; the user is told, and it goes on."""
    path = exported(talking(make_manager()), tmp_path / "a.yaml")
    disk = FaultyDisk()
    manager = make_manager(disk=disk, directory=tmp_path / "other")
    disk.fail(errno.ENOSPC)
    session = manager.adopt(read_import(path, None).stored)
    assert texts(session) == ["hello"]
    assert notices.reasons == ["save_failed"]
    disk.heal()
    session.add_message("user", "more")
    assert notices.reasons == ["save_failed", "save_resumed"]
    assert texts(make_manager(directory=tmp_path / "other").load_id("talk")) == ["hello", "more"]


def test_an_adopted_session_never_takes_an_id_that_is_taken(
    make_manager: Make, tmp_path: Path
) -> None:
    manager = talking(make_manager())
    path = exported(manager, tmp_path / "a.yaml")
    ids = [manager.adopt(read_import(path, None).stored).id for _ in range(3)]
    assert ids == ["talk-01", "talk-02", "talk-03"]
    assert texts(manager.load_id("talk")) == ["hello"]


def test_a_session_with_more_messages_than_its_limit_is_pruned_as_at_load(
    make_manager: Make,
) -> None:
    """U9.1."""
    rows = "".join(f"- {{role: user, content: '{n}'}}\n" for n in range(5))
    imported = registry.named("yaml").loads(f"id: big\nmax_history: 2\nmessages:\n{rows}")
    manager = make_manager()
    session = manager.adopt(imported.stored)
    assert texts(session) == ["3", "4"]
    assert [m.content for m in session.archive] == ["0", "1", "2"]
    again = make_manager().load_id("big")
    assert (texts(again), len(again.archive)) == (["3", "4"], 3)


def test_a_file_that_is_too_large_is_not_even_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "big.json"
    path.write_text('{"messages": []}')
    monkeypatch.setattr("tiro.stores.exports.MAX_IMPORT_BYTES", 10)
    with pytest.raises(SessionFormatError, match="larger"):
        read_import(path, None)


@pytest.mark.parametrize("format", ["json", "jsonl", "yaml", "markdown"])
@pytest.mark.parametrize(
    "key", ["my_key_is_*1*", 'quo"ted-key', "back\\slash\\key", "a<b>&c#d`e-key"]
)
def test_no_configured_key_is_in_an_export_however_it_is_escaped(
    make_manager: Make, tmp_path: Path, format: str, key: str
) -> None:
    """U9.11, B52: in titles, texts, names, inputs and results; whether it lives or is saved."""
    manager = talking(make_manager())
    session = manager.get()
    session.change(title=f"about {key}", memo={key: [key], f"{key}!": key}, agent=key)
    session.add_message("user", [{"type": "text", "text": f"{key}\n{key}"}])
    given = {key: {"deep": [key]}}
    session.add_message("assistant", [{"type": "tool_use", "id": "c", "name": key, "input": given}])
    session.add_message("tool", [{"type": "tool_result", "tool_use_id": "c", "content": key}])
    session.add_message("user", [{"type": "attachment", "kind": "file", "path": key, "text": key}])
    session.add_message("odd", [{"type": key}, {"type": "image", "source": {"media_type": key}}])
    manager.save(session)
    for current in (session, None):
        manager.set_current(current)
        manager.secrets = [key]
        text = registry.named(format).dumps(stored_form(manager, "talk"))
        pieces = [piece for piece in re.split(r"[^a-z0-9-]+", key) if piece]
        assert re.search(r"[^a-z0-9\n-]{1,5}".join(pieces), text) is None
        assert text.count("[secret]") + text.count(r"\[secret\]") > 8
