"""`tiro sessions import`: files of Tiro and of other programs as sessions, or a look at them."""

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tiro import output
from tiro.arguments import SESSIONS_EXAMPLES, Commands, add_command, existing_file
from tiro.errors import InvalidInputError, TiroError
from tiro.exits import Exit
from tiro.screen_text import counted, flat

if TYPE_CHECKING:
    from tiro.stores.formats.format import Format, Imported

STDIN = "-"
ENDINGS = (".json", ".jsonl", ".yaml", ".yml", ".md", ".org", ".txt")
"""The names of files that are looked at in a directory."""


def add_import(group: Commands) -> None:
    """The command `import`."""
    made = add_command(group, "import", sessions_import, "take over files", SESSIONS_EXAMPLES)
    made.add_argument(
        "file",
        nargs="+",
        help="an export of Tiro or of another program, a directory of them, or `-` for stdin; the"
        " format is found by looking",
    )
    made.add_argument("--format", help="the format, where it is not to be found by looking")
    made.add_argument("--look", action="store_true", help="only say what each is; import nothing")
    made.add_argument("--json", action="store_true", help="print JSON: a list for several files")


def sessions_import(given: argparse.Namespace) -> int:
    """Files as sessions of their own, or what they are; 1 when one of them cannot be read.

    What was not taken over as it stood is told, and a file that cannot be read stops no other.
    """
    from tiro.stores.formats import registry

    chosen = None if given.format is None else registry.named(given.format)
    with _own_folder() as folder:
        words = [_on_stdin(folder) if name == STDIN else name for name in given.file]
        files = list(dict.fromkeys(file for word in words for file in _files(word)))
        is_one = len(words) == 1 and not os.path.isdir(words[0])
        shown = _Shown(folder, is_json=given.json, is_one=is_one)
        if given.look:
            _look_at(files, chosen, shown)
        else:
            from tiro import terminal

            terminal.import_files(files, given.format, None if given.json else 0, shown.show)
        return shown.end()


@contextlib.contextmanager
def _own_folder() -> Iterator[str]:
    """A temporary folder; one that cannot be removed is left, where Python's own never gives up."""
    folder = tempfile.mkdtemp(prefix="tiro-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Shown:
    """What is shown of the files, one after the other."""

    def __init__(self, folder: str, is_json: bool, is_one: bool) -> None:
        """`folder` has what came on stdin."""
        self._folder = folder
        self._is_json = is_json
        self._is_one = is_one
        self._results: list[dict[str, Any]] = []
        self._failed = 0

    def show(self, file: str, result: dict[str, Any] | TiroError) -> None:
        """Show what became of a file: a line, and its notes beside it."""
        if isinstance(result, TiroError):
            if self._is_one:
                raise result
            self._failed += 1
            output.note(f"tiro: {flat(str(result))}")
            return
        if self._is_json:
            self._results.append(result)
        else:
            where = "" if self._is_one else f"{self._named(file)}: "
            output.write(where + _line(result))
        for note in result.get("notes", ()):
            output.note(note if self._is_one else f"{self._named(file)}: {note}")

    def _named(self, file: str) -> str:
        is_stdin = os.path.dirname(file) == self._folder
        return flat(os.path.basename(file) if is_stdin else os.path.relpath(file))

    def end(self) -> int:
        """The end: what is printed at once, and the exit code."""
        if self._is_json:
            output.write_json(self._results[0] if self._is_one else self._results)
        if self._failed:
            output.note(f"{counted(self._failed, 'file')} cannot be read as a session")
        return Exit.FAILED if self._failed else Exit.DONE


def _line(result: dict[str, Any]) -> str:
    what = counted(result["total"], "message")
    if "format" not in result:
        return f"{result['id']}: {what}\n"
    title = f", {flat(result['title'])}" if result["title"] else ""
    return f"{result['format']}, {what}{title}\n"


def _files(word: str) -> Iterator[str]:
    """The files that a word means; InvalidInputError for none."""
    if not os.path.isdir(word):
        yield existing_file(word)
        return
    found = sorted(
        os.path.join(folder, file)
        for folder, _, files in os.walk(os.path.abspath(word))
        for file in files
        if file.lower().endswith(ENDINGS)
    )
    if not found:
        raise InvalidInputError(f"No file in {word!r} has a name in {', '.join(ENDINGS)}")
    yield from found


def _on_stdin(folder: str) -> str:
    """What comes on stdin as a file, which is all that a server is told of it."""
    file = os.path.join(folder, "stdin")
    Path(file).write_bytes(sys.stdin.buffer.read() if sys.stdin else b"")
    return file


def _look_at(files: Sequence[str], chosen: "Format | None", shown: _Shown) -> None:
    from tiro.stores import exports

    for file in files:
        try:
            shown.show(file, _about(file, exports.read_import(Path(file), chosen)))
        except TiroError as error:
            shown.show(file, error)


def _about(file: str, imported: "Imported") -> dict[str, Any]:
    """What a file is."""
    stored, notes = imported.stored, list(imported.notes)
    if imported.others:
        notes.append(f"Older conversations in it: {len(imported.others)}")
    return {
        "file": file,
        "format": imported.format,
        "id": stored.fields["id"],
        "title": stored.fields["title"],
        "total": len(stored.messages) + len(stored.archive),
        **({"notes": notes} if notes else {}),
    }
