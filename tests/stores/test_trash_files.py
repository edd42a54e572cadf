"""The trash in files loses nothing, whatever ends a delete or a restore, or fails in it."""

import errno
import os
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.sizes import sized
from tests.stores.conftest import Make, Tell
from tests.stores.faults import FaultyDisk
from tests.stores.look import names, texts
from tests.stores.script import IMAGE
from tests.stores.test_kill import job, run
from tests.stores.test_output_files import kept
from tiro.assistant.window import piece
from tiro.errors import SessionNotFoundError, StorageError
from tiro.stores.disk import Disk
from tiro.stores.manager import SessionManager

LONG = "x" * 70_000


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sessions that share a large value; "x" has one more, and a journal, as after a kill."""
    directory = tmp_path_factory.mktemp("before") / "sessions"
    with SessionManager(directory, autosave=False) as manager:
        sessions: dict[str, list[Any]] = {"x": [[IMAGE], LONG, "one"], "y": [[IMAGE], "two"]}
        for id, contents in sessions.items():
            session = manager.create(id=id)
            for content in contents:
                session.add_message("user", content)
            manager.save(session)
            manager.end(session)
        manager.autosave = True
        session = manager.load_id("x")
        session.add_message("user", "in the journal")
        shutil.copytree(directory, directory.with_name("killed"))
    killed = directory.with_name("killed")
    assert (killed / "x.journal").stat().st_size
    return killed


def files(directory: Path) -> dict[str, bytes]:
    """Everything that says something: no empty journal, and none of the trash's own folder."""
    return {
        str(path.relative_to(directory)): data
        for path in directory.rglob("*")
        if path.is_file() and (data := path.read_bytes())
    }


def whole(directory: Path) -> str:
    """Where "x" is, all of it, after what it takes to bring it back; "y" is always there."""
    expected = [[IMAGE], LONG, "one", "in the journal"]
    with SessionManager(directory, autosave=False) as manager:
        assert texts(manager.load_id("y")) == [[IMAGE], "two"]
        try:
            where, session = "saved", manager.load_id("x")
        except (SessionNotFoundError, ValueError):  # none, or a name that waits for it
            restored = manager.trash.restore("x")
            assert restored.id == "x"
            where, session = "trash", manager.load_id("x")
        assert [decoded(m) for m in texts(session)] == [decoded(m) for m in expected]
    return where


def decoded(content: Any) -> Any:
    return content if isinstance(content, str) else [*map(dict, content)]


def test_a_kill_inside_any_operation_loses_nothing(
    before: Path, tmp_path: Path, record_property: Tell
) -> None:
    """Before, in the half of and after each operation of delete, restore, delete, restore."""
    shutil.copytree(before, tmp_path / "whole")
    [result], printed = run([job(tmp_path / "whole", "discard")])
    assert result == {"acknowledged": 4, "killed": False}
    assert files(tmp_path / "whole") == files(before)
    moments = [(at, when) for at in range(int(printed)) for when in ("before", "half", "after")]
    moments = moments[:: sized(fast=9, normal=1, long=1)]
    directories = [tmp_path / f"{at}-{when}" for at, when in moments]
    for directory in directories:
        shutil.copytree(before, directory)
    results, _ = run(
        [
            job(directory, "discard", at=at, when=when)
            for directory, (at, when) in zip(directories, moments, strict=True)
        ]
    )
    record_property("kills", len(moments))
    places = []
    for directory, result, moment in zip(directories, results, moments, strict=True):
        assert result["killed"] or moment[1] == "after", moment  # one that fails has no after
        places.append(whole(directory))
        with SessionManager(directory) as manager:
            assert sorted(row.id for row in manager.list()[0]) == ["x", "y"], moment
            manager.trash.empty()
        assert names(directory / "trash") == [], moment
    assert set(places) == {"saved", "trash"}
    assert sum(result["killed"] for result in results) >= len(moments) * 0.9


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_every_operation_may_fail_once(
    before: Path, tmp_path: Path, code: int, record_property: Tell
) -> None:
    """Refused with everything as it was, or done; the next try does it."""
    counting = FaultyDisk()

    def discard(manager: SessionManager) -> None:
        manager.discard("x")

    def restore(manager: SessionManager) -> None:
        manager.trash.restore("x")

    acts = (discard, restore)
    shutil.copytree(before, tmp_path / "count")
    manager = SessionManager(tmp_path / "count", disk=counting)
    numbers = []
    for act in acts:
        act(manager)
        numbers.append(len(counting.calls))
    record_property("faults", numbers[-1])
    for number in range(numbers[-1]):
        directory, disk = tmp_path / str(number), FaultyDisk()
        shutil.copytree(before, directory)
        manager = SessionManager(directory, disk=disk)
        disk.fail(code, first=number, count=1)
        for act in acts:
            kept = files(directory)
            try:
                act(manager)
            except StorageError:
                assert files(directory) == kept, number
                act(manager)
        assert manager.trash.page() == ([], 0)
        manager.trash.empty()  # what could not be removed
        assert files(directory) == files(before), number


def test_links_are_not_needed(before: Path, tmp_path: Path) -> None:
    """A file system without them, or another one for a session that was loaded from there."""
    for code in (errno.EPERM, errno.EXDEV):
        directory, disk = tmp_path / str(code), FaultyDisk()
        shutil.copytree(before, directory)
        disk.fail(code, only="link")
        manager = SessionManager(directory, disk=disk)
        manager.discard("x")
        manager.trash.tidy()
        assert whole(directory) == "trash"


def test_large_values_go_with_the_last_that_needs_them(
    make_manager: Make, before: Path, tmp_path: Path
) -> None:
    """U9.10: beside the sessions stays what those that stay refer to, and nothing else."""
    shutil.copytree(before, tmp_path / "a")
    blobs = tmp_path / "a" / "blobs"
    manager = make_manager(directory=tmp_path / "a")
    assert len(names(blobs)) == 2
    manager.discard("x")
    manager.trash.tidy()
    assert len(names(blobs)) == 1
    manager.discard("y")
    manager.trash.tidy()
    assert names(blobs) == []
    manager.trash.empty("x")
    manager.trash.restore("y")
    assert len(names(blobs)) == 1
    assert texts(manager.load_id("y")) == [[IMAGE], "two"]


def test_an_output_that_only_the_journal_names_goes_along(
    make_manager: Make, directory: Path
) -> None:
    """Its files lie in the trash while the session does, and are there when it is back."""
    manager = make_manager()
    session = manager.create(id="x")
    session.add_message("user", "go")
    manager.save(session)
    with manager.writing(session):
        seq = kept(manager, session, "a long output")
    assert (directory / "x.journal").stat().st_size
    manager.discard("x")
    manager.trash.tidy()
    assert names(directory / "blobs") == []
    manager.trash.restore("x")
    again = manager.load_id("x")
    assert piece(again, seq, None, 0, None, manager.outputs(again)).text == "a long output"


def test_a_session_from_elsewhere_comes_back_into_our_directory(
    make_manager: Make, before: Path, tmp_path: Path, directory: Path
) -> None:
    class TwoDisks(Disk):
        def replace(self, source: Path, target: Path) -> None:
            if source.parent.name == "killed":
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            super().replace(source, target)

        def link(self, source: Path, target: Path) -> None:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    shutil.copytree(before, tmp_path / "killed")
    manager = make_manager(disk=TwoDisks(), autosave=False)
    session = manager.load(tmp_path / "killed" / "x.json")
    expected = texts(session)
    manager.discard("x")
    manager.trash.tidy()
    assert len(names(tmp_path / "killed" / "blobs")) == 1
    assert Path(manager.trash.restore("x").path).parent == directory
    assert texts(manager.load_id("x")) == expected


def test_a_damaged_session_goes_and_comes_back_as_it_is(
    make_manager: Make, directory: Path
) -> None:
    directory.mkdir(parents=True)
    (directory / "bad.json").write_bytes(b'{"messages": [')
    manager = make_manager()
    manager.discard("bad")
    [row], _ = manager.trash.page()
    assert (row.saved.id, bool(row.saved.error)) == ("bad", True)
    manager.trash.restore("bad")
    assert files(directory) == {"bad.json": b'{"messages": ['}


def test_what_others_take_from_the_trash_meanwhile_is_theirs(
    make_manager: Make, directory: Path
) -> None:
    """U7.6: no error of ours, and nothing counted that another process removed or brought back."""

    class Slow(Disk):
        """Between any look and the first removal others are at it."""

        def unlink(self, path: Path) -> None:
            while acts:
                acts.pop()()
            super().unlink(path)

    acts: list[partial[None]] = []
    manager, ours = make_manager(), make_manager(disk=Slow())
    for taken in ("x", "y", "z"):
        for id in ("x", "y", "z"):
            manager.save(manager.create(id=id))
            manager.discard(id)
        acts[:] = [partial(shutil.rmtree, next((directory / "trash").glob(f"*-{taken}")))]
        assert (ours.trash.empty(), ours.trash.page()) == (2, ([], 0))


def test_folders_of_others_stay(make_manager: Make, directory: Path) -> None:
    """What somebody keeps in that folder is none of ours, whatever it is called."""
    (directory / "trash" / "mine").mkdir(parents=True)
    (directory / "trash" / "mine" / "a.json").write_text("{}")
    manager = make_manager()
    assert manager.trash.page() == ([], 0)
    assert manager.trash.empty() == 0
    assert (directory / "trash" / "mine" / "a.json").exists()
