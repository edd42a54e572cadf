"""The places: every call in the package that asks the system for something."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import tiro

PACKAGE = Path(tiro.__path__[0])
HELPERS = ("stores/disk.py", "tools/opening.py", "tools/silent_disk.py")
"""What others do their work on files with: the places are where these are called."""


class Place(NamedTuple):
    """A call: where it stands, and as which one of its name in its function (from 1)."""

    file: str
    function: str
    call: str
    number: int = 1

    def __str__(self) -> str:
        count = f" ({self.number})" if self.number > 1 else ""
        return f"{self.file} `{self.function}` {self.call}{count}"


MODULES = {
    "os": {
        "open", "write", "read", "fsync", "fdatasync", "ftruncate", "replace", "rename", "link",
        "unlink", "remove", "mkdir", "rmdir", "stat", "lstat", "fstat", "scandir", "listdir",
        "readlink", "chmod", "fchmod", "fchown", "utime", "pipe", "dup", "dup2", "getxattr",
        "setxattr", "listxattr", "walk", "fork", "execv",
    },
    "shutil": {"rmtree", "disk_usage", "copyfile", "copy", "move"},
    "tempfile": {"mkdtemp", "mkstemp", "TemporaryDirectory", "TemporaryFile"},
    "subprocess": {"run", "Popen"},
    "asyncio": {"create_subprocess_exec"},
    "socket": {"socketpair", "socket", "create_connection"},
    "fcntl": {"flock"},
    "sqlite3": {"connect"},
    "zipfile": {"ZipFile"},
    "httpx": {"create_ssl_context"},
}  # fmt: skip
"""By module: the functions that can fail for want of the system."""
OF_PATHS = {
    "read_bytes", "read_text", "write_bytes", "write_text", "mkdir", "iterdir", "unlink", "chmod",
    "touch", "is_file", "is_dir", "exists", "symlink_to", "readlink", "samefile", "rglob",
}  # fmt: skip
"""Methods that only paths have, whatever they are called on."""
OF_DISKS = {
    "open", "write", "sync", "truncate", "replace", "link", "unlink", "make_directory",
    "sync_directory",
}  # fmt: skip
PURE = {"is_stale", "signature_of", "is_alive", "in_thread", "watched"}
"""Functions of the helpers that ask for nothing that could fail."""


@cache
def places() -> dict[tuple[str, int, int], Place]:
    """All calls of the package, by file and the line and column of their end."""
    return {at: place for at, place, _ in _calls()}


def place_at(file: str, line: int, column: int) -> Place:
    """The call that ends there, or on that line in front of it; the network has line 0."""
    if not line:
        return Place(file, "any request", "the network")
    before = [at for at in places() if at[:2] == (file, line) and at[2] <= column]
    return places()[max(before)] if before else Place(file, "?", f"line {line}")


@cache
def _by_name() -> dict[str, Place]:
    return {str(place): place for place in places().values()}


def place_named(name: str) -> Place | None:
    """The place with this text; None when the source has it no more."""
    network = place_at("models/transport.py", 0, 0)
    return network if name == str(network) else _by_name().get(name)


@cache
def asking() -> frozenset[Place]:
    """Those that ask the system for something, as far as their names tell it."""
    return frozenset(place for _, place, asks in _calls() if asks)


@cache
def _calls() -> list[tuple[tuple[str, int, int], Place, bool]]:
    found = []
    helpers = {name for file in HELPERS for name in _functions(PACKAGE / file)} - PURE
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(PACKAGE).as_posix()
        tree = ast.parse(path.read_text("utf-8"))
        known = _imported(tree) & helpers
        seen = dict[tuple[str, str], int]()
        for function, call in _in_order(tree, "module"):
            name = ast.unparse(call.func)
            name = name if len(name) < 40 and "\n" not in name else f"….{name.rpartition('.')[2]}"
            number = seen[function, name] = seen.get((function, name), 0) + 1
            at = (file, call.end_lineno or 0, call.end_col_offset or 0)
            asks = file not in HELPERS and _asks(call.func, known)
            found.append((at, Place(file, function, name, number), asks))
    return found


def _in_order(node: ast.AST, function: str) -> Iterator[tuple[str, ast.Call]]:
    """Every call with the function it stands in."""
    for child in ast.iter_child_nodes(node):
        inner = function
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = child.name
        if isinstance(child, ast.Call):
            yield function, child
        yield from _in_order(child, inner)


def _asks(called: ast.expr, helpers: set[str]) -> bool:
    if isinstance(called, ast.Name):
        return called.id == "open" or called.id in helpers
    if not isinstance(called, ast.Attribute):
        return False
    owner = ast.unparse(called.value).rpartition(".")[2]
    if owner == "entry":  # of a folder that is listed: it knows its kind already
        return False
    if called.attr in MODULES.get(owner, ()):
        return True
    if owner.strip("_") == "disk":
        return called.attr in OF_DISKS
    is_database = owner.strip("_") in ("sql", "connect()", "together")
    return called.attr in OF_PATHS or (is_database and called.attr == "execute")


def _imported(tree: ast.Module) -> set[str]:
    return {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        and f"{(node.module or '').removeprefix('tiro.').replace('.', '/')}.py" in HELPERS
        for alias in node.names
    }


def _functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
