"""kill -9 between record, write and note: what is there can be undone, to the byte (Deliver 5)."""

from pathlib import Path
from typing import Any

import pytest

from tests.sizes import sized
from tests.stores.conftest import Tell
from tests.stores.test_kill import run
from tests.tools.editing import BEFORE_EDITS, EDITS, Editing
from tests.tools.rooms import put

pytestmark = pytest.mark.timeout(600)  # with --long

Files = dict[str, bytes]


def prepared(folder: Path, script: str = "edit", at: int = -1, when: str = "") -> dict[str, Any]:
    put(folder, "work/a", BEFORE_EDITS)
    return {"directory": str(folder), "script": script, "at": at, "when": when}


def files(folder: Path) -> Files:
    root = folder / "work"
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def check_undone(folder: Path) -> None:
    """The next process takes the turn back, makes it again, and takes it back again."""
    editing = Editing(folder / "work", folder / "edits")
    if not editing.listed():
        assert files(folder) == {"a": BEFORE_EDITS}
        return
    for move in (editing.undo, editing.redo, editing.undo):
        move(turn="t")
    assert files(folder) == {"a": BEFORE_EDITS}
    assert [path.name for path in (folder / "work").iterdir()] == ["a"], "the folder went too"


def test_a_kill_at_any_operation_of_the_ledger_leaves_what_can_be_undone(
    tmp_path: Path, record_property: Tell
) -> None:
    """Each file is as it was before the step that was under way, or as it is after it."""
    states: list[Files] = []
    put(tmp_path, "expected/work/a", BEFORE_EDITS)
    expected = Editing(tmp_path / "expected/work", tmp_path / "expected/edits")
    for step in (lambda _: None, *EDITS):
        step(expected)
        states.append(files(tmp_path / "expected"))
    [whole], printed = run([prepared(tmp_path / "whole")])
    assert whole == {"acknowledged": len(EDITS), "killed": False}
    moments = [(at, when) for at in range(int(printed)) for when in ("before", "half", "after")]
    moments = moments[:: sized(fast=7, normal=2, long=1)]
    assert len(moments) >= sized(fast=15, normal=50, long=100)
    record_property("kills", len(moments))
    folders = [tmp_path / f"{at}-{when}" for at, when in moments]
    results, _ = run(
        [prepared(f, at=m[0], when=m[1]) for f, m in zip(folders, moments, strict=True)]
    )
    for folder, result, moment in zip(folders, results, moments, strict=True):
        assert result["killed"], moment
        now, near = files(folder), states[result["acknowledged"] :][:2]
        for name in ("a", "made/new"):
            assert now.get(name) in [state.get(name) for state in near], (moment, name)
        check_undone(folder)


def test_a_kill_at_any_time_leaves_what_can_be_undone(
    tmp_path: Path, record_property: Tell
) -> None:
    """In the middle of writing a file as well."""
    folders = [tmp_path / str(number) for number in range(sized(fast=8, normal=24, long=200))]
    results, _ = run([prepared(folder, "edit_on") for folder in folders])
    record_property("kills", len(folders))
    for folder, result in zip(folders, results, strict=True):
        assert result["killed"]
        for left in (folder / "work").rglob(".tiro-*.tmp"):
            left.unlink()  # of the write that was under way
        check_undone(folder)
