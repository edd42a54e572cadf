"""A warm process that forks children which are killed in the middle of storing; run by a test.

Reads one JSON list of jobs from stdin and prints one JSON list of results: how many steps of its
script each child had finished, and acknowledged, when it died.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.stores.script import LIFE, MAX_HISTORY
from tests.tools.editing import EDITS, Editing
from tiro.stores import autosave
from tiro.stores.disk import Disk
from tiro.stores.manager import SessionManager

AT_ONCE = 8


class DyingDisk(Disk):
    """Kills its process at one operation: before it, after it, or when half of it is written."""

    def __init__(self, at: int, when: str) -> None:
        self.number = -1
        self._at = at
        self._when = when

    def _guarded(self, do: Callable[[], Any], half: Callable[[], Any] | None = None) -> Any:
        self.number += 1
        if self.number != self._at:
            return do()
        if self._when == "half" and half is not None:
            half()
        if self._when == "after":
            do()
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)

    def open(self, path: Path | str, flags: int) -> int:
        descriptor: int = self._guarded(lambda: Disk.open(self, path, flags))
        return descriptor

    def write(self, descriptor: int, data: bytes | memoryview) -> int:
        half = data[: len(data) // 2]
        taken: int = self._guarded(
            lambda: Disk.write(self, descriptor, data),
            lambda: Disk.write(self, descriptor, half),
        )
        return taken

    def sync(self, descriptor: int) -> None:
        self._guarded(lambda: Disk.sync(self, descriptor))

    def truncate(self, descriptor: int, size: int) -> None:
        self._guarded(lambda: Disk.truncate(self, descriptor, size))

    def replace(self, source: Path, target: Path) -> None:
        self._guarded(lambda: Disk.replace(self, source, target))

    def link(self, source: Path, target: Path) -> None:
        self._guarded(lambda: Disk.link(self, source, target))

    def unlink(self, path: Path) -> None:
        self._guarded(lambda: Disk.unlink(self, path))

    def make_directory(self, path: Path) -> None:
        self._guarded(lambda: Disk.make_directory(self, path))

    def sync_directory(self, path: Path) -> None:
        self._guarded(lambda: Disk.sync_directory(self, path))


def live(job: dict[str, Any], acknowledge: Callable[[], object]) -> None:
    """The whole script, each step acknowledged; at its end the number of operations is told.

    None of them is the background thread's, so that they have the same numbers in every life.
    """
    autosave.IDLE_SECONDS = autosave.SYNC_SECONDS = 1e6
    disk = DyingDisk(job["at"], job["when"])
    manager = SessionManager(job["directory"], disk=disk, fsync=job["fsync"])
    session = manager.create(max_history=MAX_HISTORY, id="x")
    for step in LIFE:
        step(manager, session)
        acknowledge()
    sys.stderr.write(f"{disk.number + 1}\n")
    sys.stderr.flush()


def idle(job: dict[str, Any], acknowledge: Callable[[], object]) -> None:
    """Two messages, then time for the background thread to bring the session to rest."""
    manager = SessionManager(job["directory"], disk=DyingDisk(job["at"], job["when"]))
    session = manager.create(id="x")
    for text in ("one", "two"):
        session.add_message("user", text)
        acknowledge()
    while (Path(job["directory"]) / "x.journal").exists():
        time.sleep(0.01)


def live_beside_snapshots(job: dict[str, Any], acknowledge: Callable[[], object]) -> None:
    """The whole script in jerks, while the background thread writes snapshots all the time."""
    chance = random.Random(job["seed"])
    autosave.IDLE_SECONDS = autosave.SYNC_SECONDS = chance.uniform(0.001, 0.01)
    manager = SessionManager(job["directory"], disk=DyingDisk(job["at"], job["when"]))
    session = manager.create(max_history=MAX_HISTORY, id="x")
    for step in LIFE:
        step(manager, session)
        acknowledge()
        time.sleep(chance.choice((0, 0, 0.002, 0.004, 0.01)))


def save(job: dict[str, Any], acknowledge: Callable[[], object]) -> None:
    """Save a session of 5 MB again and again, until killed from outside: always during a save."""
    manager = SessionManager(job["directory"])
    session = manager.load_id("x")
    while True:
        manager.save(session)
        session.add_message("user", "next")
        acknowledge()


def edit(job: dict[str, Any], acknowledge: Callable[[], object]) -> None:
    """Edits of files, undone and redone; at the end the number of operations is told."""
    disk, folder = DyingDisk(job["at"], job["when"]), Path(job["directory"])
    editing = Editing(folder / "work", folder / "edits", disk)
    for step in EDITS:
        step(editing)
        acknowledge()
    sys.stderr.write(f"{disk.number + 1}\n")
    sys.stderr.flush()


def edit_on(job: dict[str, Any], acknowledge: Callable[[], object]) -> None:
    """The same again and again, until killed from outside: in the middle of a file, too."""
    folder = Path(job["directory"])
    editing = Editing(folder / "work", folder / "edits")
    while True:
        editing.replace("a", "two", "2", turn="t")
        editing.edit("made/new", "new\n", turn="t")
        acknowledge()
        editing.undo(turn="t")


def discard(job: dict[str, Any], acknowledge: Callable[[], object]) -> None:
    """The session "x" goes to the trash and comes back; in the end the number of operations."""
    disk = DyingDisk(job["at"], job["when"])
    manager = SessionManager(job["directory"], disk=disk)
    for act in (manager.discard, manager.trash.restore) * 2:
        act("x")
        manager.trash.tidy()
        acknowledge()
    sys.stderr.write(f"{disk.number + 1}\n")
    sys.stderr.flush()


SCRIPTS: dict[str, Callable[[dict[str, Any], Callable[[], object]], None]] = {
    "live": live,
    "idle": idle,
    "live_beside_snapshots": live_beside_snapshots,
    "save": save,
    "discard": discard,
    "edit": edit,
    "edit_on": edit_on,
}


def start(job: dict[str, Any]) -> tuple[int, int]:
    """Fork a child for the job; its process id and where its acknowledgements arrive."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        try:
            SCRIPTS[job["script"]](job, lambda: os.write(writer, b"."))
        finally:
            os._exit(0)
    os.close(writer)
    return pid, reader


def kill_later(pid: int, reader: int, seconds: float) -> bytes:
    """Kill a child so long after its first acknowledgement, which is returned."""
    data = os.read(reader, 1)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    return data


def finish(pid: int, reader: int, data: bytes = b"") -> dict[str, Any]:
    """Wait for the child's death; what it had acknowledged, with what was read of that before."""
    while piece := os.read(reader, 4096):
        data += piece
    os.close(reader)
    _, status = os.waitpid(pid, 0)
    return {"acknowledged": len(data), "killed": os.WIFSIGNALED(status)}


def main() -> None:
    """Run all jobs, some at a time."""
    jobs = json.load(sys.stdin)
    chance = random.Random(1)
    results = []
    while jobs:
        batch, jobs = jobs[:AT_ONCE], jobs[AT_ONCE:]
        running = [(job, *start(job)) for job in batch]
        for job, pid, reader in running:
            is_endless = job["script"] in ("save", "edit_on")
            data = kill_later(pid, reader, chance.uniform(0.0, 0.04)) if is_endless else b""
            results.append(finish(pid, reader, data))
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
