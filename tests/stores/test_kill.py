"""kill -9 at any moment loses nothing that was acknowledged (U9.3, B10, product bar).

The children die inside the very operation: before it, after it, or with half of it written.
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.sizes import SECONDS, sized
from tests.stores.conftest import Make, Tell
from tests.stores.look import names, texts
from tests.stores.script import LIFE, MAX_HISTORY, state_of
from tiro.errors import SessionNotFoundError
from tiro.session.session import Session
from tiro.stores.blobs import remove_unreferenced
from tiro.stores.disk import Disk
from tiro.stores.manager import SessionManager

pytestmark = pytest.mark.timeout(600)  # with --long


def run(jobs: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], str]:
    """Have the jobs done by children of a warm process; their results, and what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.stores.dying"],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        cwd=Path(__file__).parents[2],
        timeout=SECONDS - 5,
    )
    results: list[dict[str, Any]] = json.loads(done.stdout)
    return results, done.stderr


def job(directory: Path, script: str = "live", **fields: Any) -> dict[str, Any]:
    return {
        "directory": str(directory),
        "script": script,
        "at": -1,
        "when": "",
        "fsync": "turn",
        **fields,
    }


def expected_states(directory: Path) -> list[dict[str, Any]]:
    """The state after each number of steps, of a life in which nothing is stored."""
    with SessionManager(directory, autosave=False) as manager:
        session = manager.create(max_history=MAX_HISTORY, id="x")
        states = [state_of(session)]
        for step in LIFE:
            step(manager, session)
            states.append(state_of(session))
        return states


def check_usable(manager: SessionManager, session: Session) -> None:
    """It goes on where it stopped: one more message is stored, and no rubbish is left."""
    session.add_message("user", "afterwards")
    assert manager.is_stored(session)
    with SessionManager(manager.directory) as other:
        assert state_of(other.load_id("x")) == state_of(session)
    manager.close()
    left = [name for name in names(manager.directory) if name not in ("copy", "blobs")]
    assert left == ["x.json"]
    remove_unreferenced(manager.directory, Disk())
    stored = (manager.directory / "x.json").read_text()
    assert all(f"blobs/{name}" in stored for name in names(manager.directory / "blobs"))


@pytest.mark.parametrize("fsync", ["turn", "message"])
def test_a_kill_inside_any_operation_loses_nothing(
    tmp_path: Path, make_manager: Make, fsync: str, record_property: Tell
) -> None:
    """Exactly what was acknowledged is there, or the step that was under way as well."""
    states = expected_states(tmp_path / "expected")
    [result], printed = run([job(tmp_path / "whole", fsync=fsync)])
    assert result == {"acknowledged": len(LIFE), "killed": False}
    total = int(printed)
    moments = [(at, when) for at in range(total) for when in ("before", "half", "after")]
    moments = moments[:: sized(fast=7, normal=1, long=1)]
    directories = [tmp_path / f"{at}-{when}" for at, when in moments]
    results, _ = run(
        [
            job(directory, at=at, when=when, fsync=fsync)
            for directory, (at, when) in zip(directories, moments, strict=True)
        ]
    )
    assert len(moments) >= sized(fast=20, normal=140, long=140)
    record_property("kills", len(moments))
    for directory, result, moment in zip(directories, results, moments, strict=True):
        assert result["killed"], moment
        done = result["acknowledged"]
        manager = make_manager(directory=directory)
        if not (directory / "x.json").exists():
            assert done <= 1, "only the agent was set: there is nothing to store yet"
            with pytest.raises(SessionNotFoundError):
                manager.load_id("x")
            continue
        session = manager.load_id("x")
        assert state_of(session) in (states[done], states[done + 1]), (moment, LIFE[done])
        check_usable(manager, session)


def test_a_kill_beside_snapshots_that_never_end_loses_nothing(
    tmp_path: Path, make_manager: Make, record_property: Tell
) -> None:
    """U9.3, U9.6: as above at random moments, while snapshots are written beside the steps."""
    states = expected_states(tmp_path / "expected")
    chance = random.Random(1)
    directories = [tmp_path / str(n) for n in range(sized(fast=8, normal=16, long=4_000))]
    jobs = [
        job(
            directory,
            "live_beside_snapshots",
            at=chance.randrange(190),
            when=chance.choice(("before", "half", "after")),
            seed=seed,
        )
        for seed, directory in enumerate(directories)
    ]
    results, _ = run(jobs)
    killed = sum(result["killed"] for result in results)
    assert killed >= len(jobs) // 3
    record_property("kills", killed)
    for one, directory, result in zip(jobs, directories, results, strict=True):
        done = result["acknowledged"]
        if not (directory / "x.json").exists():
            assert done <= 1, one
            continue
        session = make_manager(directory=directory).load_id("x")
        assert state_of(session) in states[done : done + 2], one


def test_a_kill_while_the_background_thread_writes_loses_nothing(
    tmp_path: Path, make_manager: Make, record_property: Tell
) -> None:
    """U9.6: the idle snapshot, its replace and the cut of the journal."""
    moments = [(at, when) for at in range(6, 16) for when in ("before", "half", "after")]
    directories = [tmp_path / f"{at}-{when}" for at, when in moments]
    results, _ = run(
        [
            job(directory, "idle", at=at, when=when)
            for directory, (at, when) in zip(directories, moments, strict=True)
        ]
    )
    killed = sum(result["killed"] for result in results)
    assert killed >= 12
    record_property("kills", killed)
    for directory, result in zip(directories, results, strict=True):
        manager = make_manager(directory=directory)
        session = manager.load_id("x")
        assert texts(session) in (["one", "two"], ["one", "two"][: result["acknowledged"]])
        check_usable(manager, session)


def test_a_kill_during_a_save_of_5_mb_leaves_the_old_or_the_new_version(
    tmp_path: Path, make_manager: Make, record_property: Tell
) -> None:
    """B10 (i): at random points; no stray temporary files pile up."""
    big = make_manager(directory=tmp_path / "big")
    session = big.create(id="x", max_history=2000)
    for number in range(1000):
        session.add_message("user", f"{number} " + "x" * 5000)
    saved = big.save(session)
    assert saved.stat().st_size > 5_000_000
    directories = [tmp_path / str(n) for n in range(sized(fast=4, normal=8, long=30))]
    record_property("kills", len(directories))
    for directory in directories:
        directory.mkdir()
        (directory / "x.json").hardlink_to(saved)
    results, _ = run([job(directory, "save") for directory in directories])
    for directory, result in zip(directories, results, strict=True):
        assert result["killed"]
        assert result["acknowledged"] >= 1, "it was killed before it began to save"
        manager = make_manager(directory=directory)
        again = manager.load_id("x")
        assert len(again.messages) - 1000 in (result["acknowledged"], result["acknowledged"] + 1)
        check_usable(manager, again)
