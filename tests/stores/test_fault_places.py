"""Every write, fsync, rename and the like in the stores fails once, by number (U9.5, product bar).

The places are found in the source: a new one that no life here reaches fails the first test, so
none can be added without being made to fail.
"""

import ast
import errno
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import tiro.stores
from tests.stores.conftest import Make, Notices, Tell
from tests.stores.faults import FaultyDisk
from tests.stores.look import texts
from tests.stores.test_ledger import add, life_of_a_ledger
from tiro.errors import StorageError
from tiro.session.session import Session
from tiro.stores.ledger import Ledger
from tiro.stores.manager import SessionManager

STORES = Path(tiro.stores.__path__[0])
OPERATIONS = {
    "open", "write", "sync", "truncate", "replace", "link", "unlink", "make_directory",
    "sync_directory",
}  # fmt: skip
BIG = "big " * 50_000

Place = tuple[str, str, str]
"""File, function, operation."""

BESIDE = {
    ("search_index.py", "_throw_away", "unlink"): "a cache: its loss costs time only (U9.9)",
    ("blobs.py", "remove_unreferenced", "unlink"): "what nothing refers to stays, with a warning",
    ("lock_file.py", "try_take", "open"): "no lock: the numbers of changes do (test_shelf_manager)",
    ("lock_file.py", "holder", "open"): "only the name of who holds a lock",
    ("lock_file.py", "release", "unlink"): "only a lock's file stays",
    ("sqlite_raw.py", "put", "unlink"): "a copy stays that nobody needed",
    ("file_trash.py", "_move", "unlink"): "from another disk: what stays is only there twice",
    ("file_trash.py", "_restore", "unlink"): "an empty file of a restore that failed, if that",
    ("idle_files.py", "remove_session", "unlink"): "a delete: test_edits and test_manager",
    ("idle_files.py", "_remove_journal", "unlink"): "a delete: test_manager",
}
"""Places that no fault of can cost a message, and why."""

PAST_THE_DISK = {
    ("blobs.py", "os.unlink"), ("disk.py", "os.unlink"), ("session_files.py", "os.unlink"),
    ("index.py", "os.unlink"), ("lock.py", "os.unlink"), ("lock.py", "os.write"),
    ("leftovers.py", "os.unlink"),
}  # fmt: skip
"""Calls to the system that go past `Disk`: tidying up whose failure costs nothing."""


class Located(FaultyDisk):
    """A disk that writes down who asked it."""

    def __init__(self) -> None:
        super().__init__()
        self.places: list[Place] = []

    def _guarded(self, kind: str, do: Callable[[], Any], path: Any = None) -> Any:
        code = sys._getframe(2).f_code
        self.places.append((Path(code.co_filename).name, code.co_name, kind))
        return super()._guarded(kind, do, path)


def life(manager: SessionManager) -> Session:
    """Every way of writing, once; what a user asked for may be refused, nothing else."""
    directory = manager.directory
    session = manager.create(id="x", max_history=100)
    session.add_message("user", "one")
    with manager.writing(session):
        session.add_message("user", BIG)
    journal = directory / "x.journal"
    if journal.exists():
        with journal.open("ab") as torn:
            torn.write(b'{"n": 99, "op"')
    session.add_message("user", "two")
    with suppress(StorageError):
        manager.save(session)
    copy = directory / "copies" / "copy.json"
    for _ in range(2):
        with suppress(StorageError):
            manager.copy_to(session, copy)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(b"damaged")
    (directory / "y.journal").write_bytes(b"left by a deleted session\n")
    other = manager.create(id="y")
    other.add_message("user", "other")
    with suppress(StorageError):
        manager.delete("y")
    session.add_message("user", "three")
    manager.end(session)
    return session


def life_of_the_trash(manager: SessionManager) -> None:
    """A session with a large value and a journal goes, and comes back."""
    session = manager.create(id="x")
    session.add_message("user", BIG)
    manager.save(session)
    session.add_message("user", "two")
    manager.discard("x")
    manager.trash.restore("x")


def places_in_the_source() -> set[Place]:
    """Every call of an operation of a disk in `stores/`."""
    found = set()
    for path in STORES.glob("*.py"):
        for function in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                found |= {(path.name, function.name, name) for name in _operations(function)}
    return found


def _operations(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The operations asked for in a function, without the functions inside it."""
    found, waiting = set(), list[ast.AST](function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = ast.unparse(node.func.value)
            if node.func.attr in OPERATIONS and owner.rpartition(".")[2].strip("_") == "disk":
                found.add(node.func.attr)
        waiting += ast.iter_child_nodes(node)
    return found


def test_every_place_that_can_fail_is_reached(make_manager: Make, tmp_path: Path) -> None:
    """By a life whose operations all fail here, in test_ledger or in test_trash_files.

    Or a list says why not.
    """
    disk = Located()
    life(make_manager(directory=tmp_path / "a", disk=disk, fsync="message"))
    without_links = Located()
    without_links.fail(errno.EPERM, only="link")
    life(make_manager(directory=tmp_path / "b", disk=without_links))
    short = Located()
    manager = make_manager(directory=tmp_path / "c", disk=short)
    session = manager.create()
    session.add_message("user", "one")
    short.fail(errno.ENOSPC, only="write", count=1, short=10)
    session.add_message("user", "two")
    edits = Located()
    ledger = Ledger(tmp_path / "d", edits)
    add(ledger, "e0")
    life_of_a_ledger(ledger)
    trash = Located()
    life_of_the_trash(make_manager(directory=tmp_path / "e", disk=trash))
    reached = {*disk.places, *without_links.places, *short.places, *edits.places, *trash.places}
    assert places_in_the_source() - reached - set(BESIDE) == set()


def test_nothing_goes_past_the_disk_but_tidying_up() -> None:
    calls = ("os.write", "os.replace", "os.rename", "os.fsync", "os.link", "os.unlink", "os.mkdir")
    found = {
        (path.name, call)
        for path in STORES.glob("*.py")
        for call in calls
        if f"{call}(" in path.read_text("utf-8")
    }
    own = {("disk.py", call) for call in calls}  # `Disk` itself
    assert found - own <= PAST_THE_DISK


def test_every_operation_of_a_life_fails_once(
    make_manager: Make, notices: Notices, tmp_path: Path, record_property: Tell
) -> None:
    """EIO at number 0, 1, 2 …: told at most once, and nothing is lost."""
    counting = Located()
    life(make_manager(directory=tmp_path / "count", disk=counting))
    record_property("faults", len(counting.places))
    for number in range(len(counting.places)):
        notices.clear()
        disk = Located()
        manager = make_manager(directory=tmp_path / str(number), disk=disk)
        disk.fail(errno.EIO, first=number, count=1)
        session = life(manager)
        where = (number, disk.places[number])
        session.add_message("user", "four")
        assert manager.is_stored(session), where
        path = manager.path_of(session)
        assert path is not None
        assert texts(make_manager().load(path)) == ["one", BIG, "two", "three", "four"], where
        told = [n.reason for n in notices if n.reason.startswith("save")]
        assert told in ([], ["save_failed", "save_resumed"]), (where, told)
        manager.close()
