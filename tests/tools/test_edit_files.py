"""write_file, edit_file, multi_edit: all of an edit or nothing, never over what was not seen."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.fakes import RecordingEditor
from tests.tools.rooms import a_run, put
from tiro.errors import ToolError
from tiro.session.secrets import KnownSecrets
from tiro.tools import edit_files as edit_files_module
from tiro.tools.edit_files import edit_tools
from tiro.tools.file_text import FileText
from tiro.tools.files import file_tools
from tiro.tools.merge import count_changes
from tiro.tools.tool import Recorded, ToolRun, check_input
from tiro.tools.workspace import Workspace

TOOLS = {tool.name: tool for tool in (*file_tools(), *edit_tools())}


class Recorder:
    """Notes what a ledger would be told."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.recorded = asyncio.Event()

    @contextlib.asynccontextmanager
    async def changing(self, path: Path) -> AsyncIterator[None]:
        self.told.append("begin")
        try:
            yield
        finally:
            self.told.append("end")

    async def record(self, path: Path, before: FileText | None, after: str | None) -> Recorded:
        assert self.told[-1] == "begin"
        self.told.append((path.name, None if before is None else before.text, after))
        self.recorded.set()
        old = "" if before is None else before.text
        return Recorded("e1", *count_changes(old, after or ""))

    async def failed(self, edit_id: str) -> None:
        self.told.append(f"failed {edit_id}")


class Room:
    """A workspace in which one turn works."""

    def __init__(self, root: Path, **buffers: str) -> None:
        self.root = root
        self.editor = RecordingEditor(root, buffers={root / n: t for n, t in buffers.items()})
        self.recorder = Recorder()
        self.run: ToolRun = msgspec.structs.replace(
            a_run(Workspace(self.editor)), edits=self.recorder
        )

    def __call__(self, name: str, between: Callable[[], Any] = lambda: None, **given: Any) -> str:
        """Show the preview, let something happen, run; what the tool answers."""
        return asyncio.run(self._used(name, between, given))

    async def _used(self, name: str, between: Callable[[], Any], given: dict[str, Any]) -> str:
        tool, run = TOOLS[name], msgspec.structs.replace(self.run, notes={})
        try:
            checked = check_input(tool.input_schema, given)
            if tool.preview is not None:
                self.preview = await tool.preview(checked, run)
            between()
            return str((await tool.run(checked, run)).content)
        except ToolError as error:
            return f"ToolError: {error}"

    def text(self, name: str = "f") -> str:
        return (self.root / name).read_bytes().decode()


def test_write_file_makes_a_file_and_its_folders(tmp_path: Path) -> None:
    room = Room(tmp_path)
    assert room("write_file", path="a/b.py", content="x\n") == "a/b.py is made (+1 +0 lines, 1 now)"
    assert room.preview == "--- /dev/null\n+++ b/a/b.py\n@@ -0,0 +1,1 @@\n+x"
    assert room.text("a/b.py") == "x\n"
    assert room.recorder.told == ["begin", ("b.py", None, "x\n"), "end"]


def test_write_file_goes_on_in_its_own_file(tmp_path: Path) -> None:
    """What the model wrote itself it knows."""
    room = Room(tmp_path)
    room("write_file", path="f", content="1\n")
    assert "changed (+2 -1 lines" in room("write_file", path="f", content="2\n3\n")
    assert "changed (+1 -1 lines" in room("edit_file", path="f", old_text="2", new_text="two")
    assert "changed" in room("write_file", path="f", content="end")
    assert "holds this text already" in room("write_file", path="f", content="end")
    assert room.text() == "end"


def test_no_mark_is_written_in_the_place_of_a_secret(tmp_path: Path) -> None:
    """U9.11: the model is shown a mark, and the user's key stays; a mark of their own is text."""
    put(tmp_path, "f", "key: k3y-12345678\nother: [secret]\n")
    room = Room(tmp_path)
    room.run = msgspec.structs.replace(room.run, secrets=KnownSecrets(["k3y-12345678"]))
    room("read_file", path="f")
    refused = [
        room("write_file", path="f", content="key: [secret]\nother: [secret]\nmore: 1\n"),
        room("edit_file", path="f", old_text="key: [secret]\n", new_text="key: x\n"),
        room("edit_file", path="f", old_text="key: k3y-12345678", new_text="key: [secret]"),
    ]
    assert all("holds a secret" in told for told in refused)
    assert room.text() == "key: k3y-12345678\nother: [secret]\n"
    assert "changed" in room("edit_file", path="f", old_text="r: [secret]", new_text="r: x")
    assert "changed" in room("edit_file", path="f", old_text="r: x", new_text="r: y")
    assert room.text() == "key: k3y-12345678\nother: y\n"
    assert "made" in room("write_file", path="new", content="key: [secret]\n")


def test_write_file_replaces_only_what_was_read(tmp_path: Path) -> None:
    """B55: nothing that the model never saw is overwritten."""
    put(tmp_path, "f", "1\n2\n3\n")
    room = Room(tmp_path)
    told = room("write_file", path="f", content="new")
    assert "you have not read all of it" in told
    room("read_file", path="f", end_line=1)
    assert "you have not read all of it" in room("write_file", path="f", content="new")
    room("read_file", path="f", start_line=3)
    assert "you have not read all of it" in room("write_file", path="f", content="new")
    room("read_file", path="f", start_line=2)
    assert "changed" in room("write_file", path="f", content="new")
    assert room.text() == "new"


def test_write_file_keeps_line_ends_and_an_empty_file_is_known(tmp_path: Path) -> None:
    put(tmp_path, "f", "1\r\n2\r\n")
    put(tmp_path, "empty", "")
    room = Room(tmp_path)
    room("read_file", path="f")
    room("write_file", path="f", content="1\n3\n")
    room("write_file", path="empty", content="x\r\n")
    assert (room.text(), room.text("empty")) == ("1\r\n3\r\n", "x\r\n")


@pytest.mark.parametrize("tool", ["write_file", "edit_file", "multi_edit"])
@pytest.mark.parametrize("path", ["../out", "/etc/x", "link/x"])
def test_nothing_is_written_outside(tmp_path: Path, tool: str, path: str) -> None:
    """B48."""
    put(tmp_path, "out", "old")
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/link").symlink_to(tmp_path)
    edit = {"old_text": "old", "new_text": "new"}
    given: dict[str, Any] = {
        "write_file": {"content": "x"},
        "edit_file": edit,
        "multi_edit": {"edits": [edit]},
    }
    room = Room(tmp_path / "ws")
    assert "outside the workspace" in room(tool, path=path, **given[tool])
    assert (room.recorder.told, room.text("../out")) == ([], "old")


@pytest.mark.parametrize(
    ("text", "old", "new", "after"),
    [
        ("a\r\nb\r\nc\r\n", "a\nb\n", "1\n2\n3\n", "1\r\n2\r\n3\r\nc\r\n"),
        ("a\r\nb\nc\r", "a\nb", "a\n2", "a\r\n2\nc\r"),
        ("a\nb\n", "a\r\nb", "1\r\n2", "1\n2\n"),
        ("x=1\r\n# café\r\n", "x=1\n# café", "x=2\n# café", "x=2\r\n# café\r\n"),
        ("\r\n\r\n", "\n\n", "a\nb\n", "a\r\nb\r\n"),
        ("end", "end", "end\n", "end\n"),
    ],
)
def test_edit_file_is_tolerant_of_line_ends(
    tmp_path: Path, text: str, old: str, new: str, after: str
) -> None:
    """B54: old text with LF matches any file, and the new text takes the file's line ends."""
    put(tmp_path, "f", text)
    room = Room(tmp_path)
    assert "is changed" in room("edit_file", path="f", old_text=old, new_text=new)
    assert room.text() == after


def test_edit_file_counts(tmp_path: Path) -> None:
    put(tmp_path, "f", "a\na\n")
    room = Room(tmp_path)
    assert "(lines 1, 2), not 1" in room("edit_file", path="f", old_text="a", new_text="b")
    assert room.text() == "a\na\n"
    room("edit_file", path="f", old_text="a", new_text="b", count=2)
    assert room.text() == "b\nb\n"


def test_a_miss_is_told_before_anybody_is_asked(tmp_path: Path) -> None:
    put(tmp_path, "f", "\tfoo\n")
    room = Room(tmp_path)
    told = room("edit_file", path="f", old_text="    foo\n", new_text="bar\n")
    assert "line 1; the indentation differs" in told
    assert "no 'g'" in room("edit_file", path="g", old_text="x", new_text="y")
    assert not hasattr(room, "preview")
    assert room.recorder.told == []


def test_multi_edit_is_all_or_nothing(tmp_path: Path) -> None:
    put(tmp_path, "f", "one\ntwo\n")
    room = Room(tmp_path)
    edits = [
        {"old_text": "one", "new_text": "1\nthree"},
        {"old_text": "three\ntwo", "new_text": "3"},
    ]
    assert "is changed" in room("multi_edit", path="f", edits=edits)
    assert room.text() == "1\n3\n"
    told = room("multi_edit", path="f", edits=[{"old_text": "1", "new_text": "x"}, edits[1]])
    assert "In edit 2 of 2: `old_text` is not in 'f'" in told
    assert room.text() == "1\n3\n"


@pytest.mark.parametrize("is_open", [True, False])
def test_a_text_that_was_changed_since_it_was_read(tmp_path: Path, is_open: bool) -> None:
    """B55: by git on the disk or by the user in the buffer, also where the old text still fits."""
    path = put(tmp_path, "f", "one\ntwo\n")
    room = Room(tmp_path, **({"f": "one\ntwo\n"} if is_open else {}))

    def change(text: str) -> None:
        if is_open:
            room.editor.buffers[path] = text
        else:
            path.write_text(text)

    room("read_file", path="f")
    change("one\ntwo\nthree\n")
    told = room("edit_file", path="f", old_text="one", new_text="1")
    assert "was changed since you read it" in told
    room("read_file", path="f")
    assert "is changed" in room("edit_file", path="f", old_text="one", new_text="1")
    now = room.editor.buffers[path] if is_open else path.read_text()
    assert now == "1\ntwo\nthree\n"


@pytest.mark.parametrize("is_open", [True, False])
def test_a_text_that_moves_between_question_and_answer(tmp_path: Path, is_open: bool) -> None:
    """B55: the user typed between the proposal and their yes; nothing is lost."""
    path = put(tmp_path, "f", "one\ntwo\n")
    room = Room(tmp_path, **({"f": "one\ntwo\n"} if is_open else {}))

    def typed() -> None:
        if is_open:
            room.editor.buffers[path] = "one\ntwo\nmine\n"
        else:
            path.write_text("one\ntwo\nmine\n")

    told = room("edit_file", typed, path="f", old_text="one", new_text="1")
    assert "was changed meanwhile; nothing was written" in told
    assert (room.editor.buffers[path] if is_open else path.read_text()) == "one\ntwo\nmine\n"
    assert room.recorder.told[-2:] == ["failed e1", "end"]


def test_an_edit_of_an_open_buffer_is_told_as_unsaved(tmp_path: Path) -> None:
    path = put(tmp_path, "f", "A\n")
    room = Room(tmp_path, f="B\n")
    told = room("edit_file", path="f", old_text="B", new_text="C")
    assert told.startswith("f is changed (+1 -1 lines, 1 now); ")
    assert told.endswith("in the open editor buffer, and not saved yet")
    assert room.preview == "--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n-B\n+C"
    assert (room.editor.buffers[path], path.read_text()) == ("C\n", "A\n")


def test_an_edit_with_an_open_outcome_stays_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An undo will look at what is there."""

    async def silent(path: Path, old: str, new: str) -> None:
        raise ToolError("no answer", outcome="unknown")

    room = Room(tmp_path, f="B\n")
    monkeypatch.setattr(room.editor, "apply_edit", silent)
    assert "no answer" in room("edit_file", path="f", old_text="B", new_text="C")
    assert room.recorder.told == ["begin", ("f", "B\n", "C\n"), "end"]


@pytest.mark.parametrize("ticks", range(12))
def test_an_edit_that_was_cancelled_is_recorded_if_it_was_made(tmp_path: Path, ticks: int) -> None:
    """One that did not happen must not come with a redo."""
    room = Room(tmp_path)

    async def cancelled() -> None:
        working = asyncio.create_task(
            room._used("write_file", lambda: None, {"path": "f", "content": "new\n"})
        )
        await room.recorder.recorded.wait()
        await asyncio.sleep(0.001 * ticks)
        working.cancel()
        await asyncio.wait([working])

    asyncio.run(cancelled())
    is_made = (tmp_path / "f").exists()
    assert ("failed e1" in room.recorder.told) == (not is_made)


def test_an_edit_that_was_cancelled_again_and_again_is_no_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = Room(tmp_path)

    async def never(*_: Any, **__: Any) -> None:
        await asyncio.Event().wait()

    async def cancelled() -> None:
        working = asyncio.create_task(
            room._used("write_file", lambda: None, {"path": "f", "content": "new\n"})
        )
        await room.recorder.recorded.wait()
        for _ in range(9):
            working.cancel()
            await asyncio.sleep(0)
        await asyncio.wait([working])

    monkeypatch.setattr(edit_files_module, "put_text", never)
    asyncio.run(cancelled())
    assert "failed e1" in room.recorder.told


def test_a_name_cannot_forge_the_diff(tmp_path: Path) -> None:
    """What the user is shown is what will be done (B49)."""
    room = Room(tmp_path)
    room("write_file", path="x\n@@ -1,1 +1,1 @@\n-typo\u202e\x1b[8m", content="evil\n")
    shown = str(room.preview)
    assert shown.count("\n") == 3
    assert not {"\x1b", "\u202e"} & set(shown)


def test_what_may_not_be_read_is_not_told(tmp_path: Path) -> None:
    put(tmp_path, ".env", "KEY=1\n")
    room = Room(tmp_path)
    room.run = msgspec.structs.replace(room.run, may_read=lambda path: False)
    told = room("edit_file", path=".env", old_text="KEY=2\n", new_text="")
    assert told == "ToolError: `old_text` is not in '.env'; nothing was changed."
