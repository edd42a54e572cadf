"""Edits undone and redone: exactly, merged, or not at all (Deliver 5)."""

import asyncio
import contextlib
import errno
import os
import stat
import threading
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.fakes import RecordingEditor
from tests.sizes import PATIENCE
from tests.stores.faults import FaultyDisk
from tests.tools.editing import AT, Editing, run
from tests.tools.rooms import a_run, put
from tiro.errors import EditConflictError, InvalidInputError, StorageError, ToolError
from tiro.session.edits import Made
from tiro.stores import ledger as ledger_module
from tiro.tools import undo
from tiro.tools.diagnostics import diagnostics_tools
from tiro.tools.edit_files import edit_tools
from tiro.tools.shell import shell_tools
from tiro.tools.undo import Edits
from tiro.tools.workspace import Workspace
from tiro.tools.writing import current

LINES = "".join(f"line {n}\n" for n in range(10))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def editing(root: Path) -> Editing:
    return again(root)


def again(root: Path) -> Editing:
    """As another process, or the next one, sees it all."""
    return Editing(root, root.parent / "config" / "edits")


def conflict(editing: Editing, id: str | None = None, *, turn: str | None = None) -> list[str]:
    """The files for which an undo is refused; nothing may have been touched."""
    before = {path: path.read_bytes() for path in editing.root.rglob("*") if path.is_file()}
    buffers, states = dict(editing.editor.buffers), editing.states()
    with pytest.raises(EditConflictError) as raised:
        editing.undo(id, turn=turn)
    after = {path: path.read_bytes() for path in editing.root.rglob("*") if path.is_file()}
    assert (after, editing.editor.buffers, editing.states()) == (before, buffers, states)
    assert all(path in str(raised.value) for path in raised.value.data["paths"])
    return [Path(path).name for path in raised.value.data["paths"]]


# --- exactly --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"one\ntwo\n",
        b"one\r\ntwo\r\n",
        b"one\r\ntwo\nthree\rtwo",
        b"\xef\xbb\xbfone\ntwo",
        "caf\u00e9\ntwo\n".encode("latin-1"),
        "\u4f60\u597d\ntwo\n".encode("gbk"),
        "n\u00e9\ntwo".encode("utf-16"),
        b"two",
        b"",
    ],
)
def test_undo_and_redo_give_back_every_byte_and_the_mode(root: Path, data: bytes) -> None:
    """B54 holds for undo too, and after a restart."""
    path = put(root, "f", data)
    path.chmod(0o751)
    editing = again(root)
    text = editing.text("f")
    assert text is not None
    id = editing.edit("f", text.replace("two", "2") + "more\n")
    edited = path.read_bytes()
    assert edited != data
    assert again(root).undo(id) == ["f"]
    assert path.read_bytes() == data
    assert again(root).redo(id) == ["f"]
    assert path.read_bytes() == edited
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


MIXED = b"/* \xe9t\xe9 */\nint a;\r\n\xff\xfe\x81\rcr\xc3\xa9e\n"
"""A line in Latin-1, one that is no text, one in UTF-8; line ends of all kinds."""


@pytest.mark.parametrize(
    ("data", "start", "end"),
    [
        (b"caf\xe9\n", 0, 5),
        (b"/* \xe9t\xe9 */\nint a;\nint b;\n// cr\xe9\xe9e\n", 0, 10),
        (MIXED, 0, 10),
        (MIXED, 0, 23),
        (MIXED, 19, 23),
        ("\u65e5\u672c\n\u8a9e\r".encode("shift-jis"), 0, 5),
        ("\u65e5\u672c\nn\u00e9\n".encode("gb18030"), 5, 9),
        ("\u65e5\u672c\nn\u00e9\n".encode("gb18030"), 0, 9),
    ],
)
def test_undo_gives_back_every_byte_though_the_edit_makes_another_encoding_likely(
    root: Path, data: bytes, start: int, end: int
) -> None:
    """What is left may be ASCII, UTF-8, or look like Chinese: nobody but us touched the file."""
    put(root, "f", data)
    text = again(root).text("f")
    assert text is not None
    lines = text.splitlines(keepends=True)
    kept = [n for n in range(len(lines)) if not start <= len("".join(lines[:n]).encode()) < end]
    first = again(root).edit("f", "".join(lines[n] for n in kept) + "new\n", turn="t1")
    edited = (root / "f").read_bytes()
    second = again(root).edit("f", f"{again(root).text('f')}more\n", turn="t2")
    again(root).undo(second)
    assert (root / "f").read_bytes() == edited
    for _ in range(2):
        again(root).undo(first)
        assert (root / "f").read_bytes() == data
        again(root).redo(first)
        assert (root / "f").read_bytes() == edited


@pytest.mark.parametrize("mine", [b"mine", b"\xc3\xa9", b"\xe9", b"\xe9\xe9", b"\xff\x81\x30"])
@pytest.mark.parametrize("theirs", ["caf\u00e9", "cr\u00e9\u00e9e", "\u00c3\u00a9"])
def test_the_bytes_that_the_user_wrote_elsewhere_stay(root: Path, mine: bytes, theirs: str) -> None:
    """In whatever encoding; those of the edit come back as they were."""
    data = b"one\n" + theirs.encode("latin-1") + b"\nthree\nfour \xe9\nfive\n"
    put(root, "f", data)
    text = again(root).text("f")
    assert text is not None
    id = again(root).edit("f", text.replace(text.split("\n")[1], "plain"), turn="t")
    put(root, "f", (root / "f").read_bytes().replace(b"four \xe9\n", mine + b"\n"))
    now = (root / "f").read_bytes()
    again(root).undo(id)
    assert (root / "f").read_bytes() == data.replace(b"four \xe9\n", mine + b"\n")
    again(root).redo(id)
    assert (root / "f").read_bytes() == now


def test_a_turn_in_whose_midst_another_encoding_became_likely_is_undone(root: Path) -> None:
    """Also with a line that the user wrote meanwhile, in the encoding of that moment."""
    put(root, "f", b"caf\xe9\ntwo\nthree\n")
    again(root).replace("f", "caf\u00e9", "cafe")
    again(root).replace("f", "two", "2")
    put(root, "f", (root / "f").read_bytes() + b"mine \xc3\xa9\n")
    again(root).replace("f", "three", "3")
    assert again(root).undo(turn="t") == ["f"]
    assert (root / "f").read_bytes() == b"caf\xe9\ntwo\nthree\nmine \xc3\xa9\n"
    assert again(root).redo(turn="t") == ["f"]
    assert (root / "f").read_bytes() == b"cafe\n2\n3\nmine \xc3\xa9\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_file_that_the_user_has_saved_in_another_encoding_stays_in_that(
    root: Path, encoding: str
) -> None:
    put(root, "f", b"\xe9t\xe9\ntwo\nna\xefve\nfour\ncaf\xe9\n")
    id = again(root).replace("f", "caf\u00e9", "tea")
    put(root, "f", "\u00e9t\u00e9\ntwo\nna\u00efve\nfour\ntea\n".encode(encoding))
    again(root).undo(id)
    assert (root / "f").read_bytes() == "\u00e9t\u00e9\ntwo\nna\u00efve\nfour\ncaf\u00e9\n".encode(
        encoding
    )


def test_an_edit_of_an_open_buffer_is_undone_in_the_file_that_the_editor_has_saved(
    root: Path,
) -> None:
    """The editor knows the encoding; we took it for another one."""
    data = b"// cr\xe9\xe9e\nint a;\nint b;\n// \xe9\xe9\n"
    path, editing = put(root, "f", data), again(root)
    editing.open("f", data.decode("latin-1"))
    id = editing.edit("f", data.decode("latin-1").replace("cr\u00e9\u00e9e", "made"))
    put(root, "f", editing.editor.buffers.pop(path).encode("latin-1"))
    again(root).undo(id)
    assert path.read_bytes() == data


def test_a_buffer_that_is_closed_or_opened_meanwhile_gets_no_bytes_of_the_other(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file was worked out byte for byte, and then the editor shows its text."""
    data = b"/* \xe9t\xe9 */\n// cr\xe9\xe9e\n"
    path = put(root, "f", data)
    id = again(root).replace("f", "/* \u00e9t\u00e9 */", "none")
    editing, work_out = again(root), Edits._work_out

    async def open_meanwhile(self: Edits, *given: Any) -> Any:
        changes = await work_out(self, *given)
        editing.open("f", path.read_bytes().decode("latin-1"))
        return changes

    monkeypatch.setattr(Edits, "_work_out", open_meanwhile)
    editing.undo(id)
    assert editing.editor.buffers[path] == data.decode("latin-1")


def test_bytes_that_cannot_be_reached_any_more_are_refused(root: Path) -> None:
    """Another version of Python may read an encoding otherwise."""
    put(root, "f", "\u4f60\ntwo\n".encode("gb18030"))
    id = again(root).replace("f", "\u4f60", "you")
    ledger = root.parent / "config/edits/ledger.jsonl"
    made = msgspec.json.decode(ledger.read_bytes())
    ledger.write_bytes(msgspec.json.encode(made | {"before_bytes": "0" * 64}) + b"\n")
    with pytest.raises(EditConflictError, match="byte for byte") as raised:
        again(root).undo(id)
    assert raised.value.data["paths"] == [str(root / "f")]
    assert (root / "f").read_bytes() == b"you\ntwo\n"


def test_an_edit_that_an_older_version_has_recorded_is_undone(root: Path) -> None:
    put(root, "f", b"caf\xe9\n")
    id = again(root).replace("f", "caf\u00e9", "cafe")
    ledger = root.parent / "config/edits/ledger.jsonl"
    made = msgspec.json.decode(ledger.read_bytes())
    del made["before_bytes"], made["after_bytes"]
    ledger.write_bytes(msgspec.json.encode(made) + b"\n")
    again(root).undo(id)
    assert (root / "f").read_bytes() == b"caf\xe9\n"


@pytest.mark.parametrize("again_in", ["the same process", "the next one"])
def test_an_edit_goes_on_in_the_encoding_in_which_the_one_before_began(
    root: Path, again_in: str
) -> None:
    """What is left of a file after an edit does not make it another encoding."""
    put(root, "f", b"/* \xe9t\xe9 */\nint a;\n// cr\xe9\xe9e\n")
    put(root, "g", b"caf\xe9\n")
    editing = again(root)
    editing.replace("f", "/* \u00e9t\u00e9 */", "none")
    editing.replace("g", "caf\u00e9", "cafe")
    editing = editing if again_in == "the same process" else again(root)
    editing.replace("f", "none", "\u00e0")
    editing.replace("g", "cafe", "th\u00e9")
    assert editing.bytes("f") == b"\xe0\nint a;\n// cr\xe9\xe9e\n"
    assert editing.bytes("g") == b"th\xe9\n"
    put(root, "g", "caf\u00e9\n".encode())
    editing.replace("g", "caf\u00e9", "th\u00e9")
    assert editing.bytes("g") == "th\u00e9\n".encode()


def test_a_turn_is_undone_as_a_whole_from_its_last_edit_to_its_first(editing: Editing) -> None:
    put(editing.root, "a", "a\n")
    put(editing.root, "b", "b\n")
    editing.edit("a", "a2\n", turn="t1")
    editing.edit("a", "a3\n", turn="t2")
    editing.edit("b", "b3\n", turn="t2")
    editing.edit("a", "a4\n", turn="t2")
    assert editing.undo(turn="t2") == ["a", "b"]
    assert (editing.bytes("a"), editing.bytes("b")) == (b"a2\n", b"b\n")
    assert editing.states() == ["undone", "undone", "undone", "made"]
    assert editing.redo(turn="t2") == ["a", "b"]
    assert (editing.bytes("a"), editing.bytes("b")) == (b"a4\n", b"b3\n")
    assert editing.states() == ["made"] * 4


def test_each_file_of_a_turn_is_changed_in_one_step(editing: Editing) -> None:
    """Two edits of a buffer are one step of the editor's own undo."""
    steps = []

    class Counting(RecordingEditor):
        async def apply_edit(self, path: Path, old: str, new: str) -> None:
            steps.append(new)
            await super().apply_edit(path, old, new)

    editing.editor = Counting(editing.root)
    editing.workspace = Workspace(editing.editor)
    editing.edits = Edits(editing.ledger, editing.workspace, lambda: AT)
    put(editing.root, "a", "a\n")
    editing.open("a", "unsaved\n")
    editing.edit("a", "unsaved\ntwo\n")
    editing.edit("a", "unsaved\ntwo\nthree\n")
    steps.clear()
    assert editing.undo(turn="t") == ["a"]
    assert steps == ["unsaved\n"]
    assert editing.bytes("a") == b"a\n"


def test_what_is_undone_already_is_nothing_to_do(editing: Editing) -> None:
    """Also when the user has since written the very same change by hand."""
    put(editing.root, "a", "a\n")
    id = editing.edit("a", "b\n")
    assert editing.redo(id) == []
    assert editing.undo(id) == ["a"]
    put(editing.root, "a", "b\n")
    assert editing.undo(id) == editing.undo(turn="t") == []
    assert editing.bytes("a") == b"b\n"
    assert editing.redo(id) == ["a"]
    assert editing.bytes("a") == b"b\n"


def test_an_edit_that_never_happened_is_undone_by_doing_nothing(editing: Editing) -> None:
    """It was recorded, and then the process was killed, or the write refused."""
    put(editing.root, "a", "a\n")
    place = editing.workspace.locate("a")
    seen = run(current(editing.workspace, place))
    run(editing.edits.recorder("t", "s", "c").record(place.path, seen, "never\n"))
    run(editing.edits.recorder("t", "s", "c").record(place.path.with_name("x"), None, "never\n"))
    editing.undo(turn="t")
    assert editing.bytes("a") == b"a\n"
    assert sorted(path.name for path in editing.root.iterdir()) == ["a"]
    assert editing.states() == ["undone", "undone"]


def test_a_failed_edit_is_not_listed_and_cannot_be_redone(editing: Editing) -> None:
    put(editing.root, "a", "a\n").chmod(0o444)
    with pytest.raises(ToolError, match="read-only"):
        editing.edit("a", "b\n")
    assert editing.listed() == []
    assert editing.undo(turn="t") == editing.redo(turn="t") == []
    assert editing.bytes("a") == b"a\n"


def test_what_is_not_known_or_not_said_is_refused_in_plain_words(editing: Editing) -> None:
    put(editing.root, "a", "a\n")
    id = editing.edit("a", "b\n")
    for given in ({}, {"id": id, "turn": "t"}):
        with pytest.raises(InvalidInputError, match="Give either"):
            editing.undo(**given)
    with pytest.raises(InvalidInputError, match="no edit 'x'"):
        editing.undo("x")
    with pytest.raises(InvalidInputError, match="turn 'x'"):
        editing.redo(turn="x")


def test_an_edit_says_who_made_it_where_and_how_much_it_changed(editing: Editing) -> None:
    put(editing.root, "a", "1\n2\n3\n")
    editing.edit("a", "1\n3\nnew\nnew\n", turn="t7")
    [edit] = editing.listed()
    made = edit.made
    assert (made.turn_id, made.session_id, made.tool_use_id) == ("t7", "s", "c")
    assert (made.path, made.at) == (str(editing.root / "a"), AT)
    assert (made.added, made.removed) == (2, 1)


# --- merged, or not at all ------------------------------------------------------------------------


def test_what_the_user_wrote_elsewhere_stays(editing: Editing) -> None:
    put(editing.root, "a", LINES)
    id = editing.replace("a", "line 2\n", "edited 2\nedited 2b\n")
    put(editing.root, "a", editing.bytes("a").replace(b"line 7\n", b"mine\nline 7\n"))
    assert editing.undo(id) == ["a"]
    assert editing.text("a") == LINES.replace("line 7\n", "mine\nline 7\n")
    assert editing.redo(id) == ["a"]
    assert editing.text("a") == (
        LINES.replace("line 7\n", "mine\nline 7\n").replace("line 2\n", "edited 2\nedited 2b\n")
    )


@pytest.mark.parametrize(
    ("mine", "left"),
    [
        ("line 1\nmine\nedited 2\nline 3\n", "line 1\nmine\nline 2\nline 3\n"),
        ("line 1\nedited 2\nmine\nline 3\n", "line 1\nline 2\nmine\nline 3\n"),
        ("mine\nedited 2\nmine too\n", "mine\nline 2\nmine too\n"),
        ("edited 2\nline 3\n", "line 2\nline 3\n"),
    ],
)
def test_what_the_user_wrote_beside_it_stays(editing: Editing, mine: str, left: str) -> None:
    """A line that only adjoins the edit is in nobody's way."""
    put(editing.root, "a", LINES)
    id = editing.replace("a", "line 2\n", "edited 2\n")
    edited = LINES.replace("line 2", "edited 2")
    now = edited.replace("line 1\nedited 2\nline 3\n", mine)
    put(editing.root, "a", now)
    assert editing.undo(id) == ["a"]
    assert editing.text("a") == LINES.replace("line 1\nline 2\nline 3\n", left)
    assert editing.redo(id) == ["a"]
    assert editing.text("a") == now


def test_a_conflict_names_the_lines_as_they_are_now_and_what_else_can_be_done(
    editing: Editing,
) -> None:
    """Also where later edits of the turn, which moved the lines, are undone before."""
    put(editing.root, "a", LINES)
    editing.replace("a", "line 8\n", "eight\n")
    put(editing.root, "a", f"mine\n{editing.text('a')}")
    other = editing.replace("a", "line 2\n", "two\ntwo b\n")
    text = editing.text("a")
    assert text is not None
    put(editing.root, "a", text.replace("eight\n", "eight by me\n"))
    with pytest.raises(EditConflictError) as raised:
        editing.undo(turn="t")
    path = str(editing.root / "a")
    assert f"overlaps with it in line 11 of {path}, so no file was touched" in str(raised.value)
    edits = [edit.made.id[:8] for edit in run(editing.edits.newest_first())]
    ways = f"undo the turn's other edits one by one (tiro edits undo ID, with {', '.join(edits)})"
    assert str(raised.value).endswith(f"by hand, or {ways}")
    assert raised.value.data["lines"] == {path: [[11, 11]]}
    assert editing.undo(other) == ["a"]


def test_one_file_that_touches_leaves_the_whole_turn_as_it_is(editing: Editing) -> None:
    for name in ("a", "b", "c"):
        put(editing.root, name, LINES)
        editing.replace(name, "line 2\n", "edited 2\n")
    editing.open("c")
    put(editing.root, "b", editing.bytes("b").replace(b"edited 2", b"edited 2, and by me"))
    assert conflict(editing, turn="t") == ["b"]
    put(editing.root, "b", editing.bytes("b").replace(b", and by me", b""))
    assert sorted(editing.undo(turn="t")) == ["a", "b", "c"]


def test_unsaved_text_is_merged_in_the_buffer_and_the_disk_stays(editing: Editing) -> None:
    """B55: the buffer is the truth."""
    put(editing.root, "a", LINES)
    editing.open("a")
    id = editing.replace("a", "line 2\n", "edited 2\n")
    path = editing.root / "a"
    editing.editor.buffers[path] += "typed\n"
    assert editing.undo(id) == ["a"]
    assert editing.editor.buffers[path] == LINES + "typed\n"
    assert editing.bytes("a") == LINES.encode()


def test_an_earlier_edit_is_undone_under_a_later_one(editing: Editing) -> None:
    put(editing.root, "a", LINES)
    first = editing.replace("a", "line 2\n", "first\n")
    later = editing.replace("a", "line 7\n", "later\n")
    assert editing.undo(first) == ["a"]
    assert editing.text("a") == LINES.replace("line 7\n", "later\n")
    assert editing.undo(later) == ["a"]
    assert editing.text("a") == LINES
    assert editing.redo(first) == editing.redo(later) == ["a"]
    assert editing.text("a") == LINES.replace("line 7\n", "later\n").replace("line 2\n", "first\n")


def test_an_edit_that_a_later_one_builds_on_names_that_one(editing: Editing) -> None:
    put(editing.root, "a", LINES)
    first = editing.replace("a", "line 2\n", "first\n", turn="t1")
    later = editing.replace("a", "first\n", "first, later\n", turn="t2")
    with pytest.raises(EditConflictError, match="undo the later edits") as raised:
        editing.undo(first)
    assert raised.value.data["later"] == [later]
    assert f"(tiro edits undo ID, with {later[:8]})" in str(raised.value)
    assert editing.undo(later) == editing.undo(first) == ["a"]
    assert editing.text("a") == LINES


@pytest.mark.parametrize("now", [None, "directory", b"\0binary"])
def test_a_file_that_is_something_else_by_now_is_left_alone(
    editing: Editing, now: str | bytes | None
) -> None:
    path = put(editing.root, "a", LINES)
    id = editing.replace("a", "line 2\n", "edited\n")
    path.unlink()
    if now == "directory":
        path.mkdir()
    elif isinstance(now, bytes):
        path.write_bytes(now)
    assert conflict(editing, id) == ["a"]


def test_a_folder_that_became_a_link_is_not_followed(editing: Editing, tmp_path: Path) -> None:
    """B48: also where the file is outside of the folders that are open by now."""
    put(editing.root, "sub/a", "a\n")
    id = editing.edit("sub/a", "b\n")
    (editing.root / "sub").rename(tmp_path / "elsewhere")
    (editing.root / "sub").symlink_to(tmp_path / "elsewhere")
    for roots in ([editing.root], []):
        editing.editor.roots = roots
        with pytest.raises(EditConflictError):
            editing.undo(id)
    assert (tmp_path / "elsewhere/a").read_bytes() == b"b\n"


def test_it_works_from_an_editor_that_has_another_folder_open(editing: Editing) -> None:
    put(editing.root, "a", "a\n")
    id = editing.edit("a", "b\n")
    other = again(editing.root)
    other.editor.roots = [editing.root.parent / "config"]
    assert other.undo(id) == ["a"]
    assert editing.bytes("a") == b"a\n"


def test_a_file_whose_name_is_no_text_is_undone(editing: Editing) -> None:
    path = editing.root / os.fsdecode(b"caf\xe9")
    path.write_text("a\n")
    id = editing.edit(str(path), "b\n")
    assert "\ufffd" in editing.listed()[0].made.path
    again(editing.root).undo(id)
    assert path.read_text() == "a\n"


# --- files that are made --------------------------------------------------------------------------


def test_a_file_that_was_made_goes_with_its_empty_folders_and_comes_back(editing: Editing) -> None:
    (editing.root / "there").mkdir()
    id = editing.edit("there/x/y/new", "caf\u00e9\n", encoding="UTF-16-LE with a byte order mark")
    path = editing.root / "there/x/y/new"
    path.chmod(0o750)
    data = path.read_bytes()
    assert editing.undo(id) == ["there/x/y/new"]
    assert list((editing.root / "there").iterdir()) == []
    assert again(editing.root).redo(id) == ["there/x/y/new"]
    assert path.read_bytes() == data
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert again(editing.root).undo(turn="t") == ["there/x/y/new"]
    assert list((editing.root / "there").iterdir()) == []


def test_a_folder_made_for_two_files_goes_with_the_last_of_them(
    editing: Editing, tmp_path: Path
) -> None:
    """Whichever was changed again."""
    for name in ("o/a", "o/b"):
        editing.edit(name, "1\n")
    editing.edit("o/a", "2\n")
    editing.undo(turn="t")
    assert not (editing.root / "o").exists()


def test_a_folder_with_something_else_in_it_stays(editing: Editing) -> None:
    editing.edit("x/y/new", "text\n")
    put(editing.root, "x/mine", "mine")
    assert editing.undo(turn="t") == ["x/y/new"]
    assert [path.name for path in (editing.root / "x").iterdir()] == ["mine"]


def test_a_made_file_that_somebody_changed_is_not_deleted(editing: Editing) -> None:
    id = editing.edit("new", LINES)
    put(editing.root, "new", LINES + "mine\n")
    assert conflict(editing, id) == ["new"]
    put(editing.root, "new", LINES)
    editing.open("new", LINES + "typed\n")
    assert conflict(editing, id) == ["new"]
    editing.open("new", LINES)
    assert editing.undo(id) == ["new"]


def test_a_made_file_is_not_made_over_another_one(editing: Editing) -> None:
    id = editing.edit("new", LINES)
    editing.undo(id)
    put(editing.root, "new", "mine\n")
    with pytest.raises(EditConflictError):
        editing.redo(id)
    assert editing.bytes("new") == b"mine\n"


def test_a_file_that_was_made_and_edited_in_one_turn_goes_and_comes_as_it_was(
    editing: Editing,
) -> None:
    editing.edit("new", "one\n")
    editing.edit("new", "one\ntwo\n")
    assert editing.undo(turn="t") == ["new"]
    assert not (editing.root / "new").exists()
    assert editing.redo(turn="t") == ["new"]
    assert editing.bytes("new") == b"one\ntwo\n"


def test_a_deleted_file_comes_back_as_it_was(editing: Editing) -> None:
    path = put(editing.root, "old", "caf\u00e9\r\n".encode("latin-1"))
    path.chmod(0o640)
    id = editing.edit("old", None)
    assert not path.exists()
    assert again(editing.root).undo(id) == ["old"]
    assert path.read_bytes() == "caf\u00e9\r\n".encode("latin-1")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


# --- what fails, and what happens at the same time ------------------------------------------------


def test_what_fails_midway_says_what_is_done_and_doing_it_again_does_the_rest(
    editing: Editing,
) -> None:
    for name in ("a", "b", "c"):
        put(editing.root, name, "old\n")
        editing.edit(name, "new\n")
    (editing.root / "b").chmod(0o444)
    with pytest.raises(StorageError, match="is done already") as raised:
        editing.undo(turn="t")
    assert raised.value.data["path"] == str(editing.root / "b")
    assert raised.value.data["done"] == [str(editing.root / "c")]
    assert [editing.bytes(name) for name in "abc"] == [b"new\n", b"new\n", b"old\n"]
    (editing.root / "b").chmod(0o644)
    assert again(editing.root).undo(turn="t") == ["b", "a"]
    assert [editing.bytes(name) for name in "abc"] == [b"old\n"] * 3


class Typing(RecordingEditor):
    """A user who types between the reading and the writing of a buffer, so many times."""

    def __init__(self, root: Path, times: int) -> None:
        super().__init__(root)
        self.times = times

    async def apply_edit(self, path: Path, old: str, new: str) -> None:
        if self.times:
            self.times -= 1
            self.buffers[path] += "typed\n"
        await super().apply_edit(path, old, new)


@pytest.mark.parametrize(("times", "is_undone"), [(1, True), (2, True), (3, False)])
def test_what_is_typed_in_the_last_moment_is_merged_too(
    root: Path, times: int, is_undone: bool
) -> None:
    path = put(root, "a", LINES)
    id = again(root).replace("a", "line 2\n", "edited\n")
    editing = again(root)
    editing.editor = Typing(root, times)
    editing.workspace = Workspace(editing.editor)
    editing.edits = Edits(editing.ledger, editing.workspace, lambda: AT)
    editing.open("a")
    if is_undone:
        assert editing.undo(id) == ["a"]
        assert editing.editor.buffers[path] == LINES + "typed\n" * times
    else:
        with pytest.raises(EditConflictError, match="keeps changing"):
            editing.undo(id)
        assert "edited\n" in editing.editor.buffers[path]


def test_an_undo_waits_for_the_tool_that_changes_the_file(
    editing: Editing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undo, "PATIENCE_SECONDS", PATIENCE)
    put(editing.root, "a", "a\n")
    id = editing.edit("a", "b\n")

    async def work() -> list[str]:
        seen = []
        recorder = editing.edits.recorder("t2", "s", "c")
        async with recorder.changing(editing.root / "a"):
            undoing = asyncio.create_task(editing.edits.undo(id))
            for _ in range(20):
                await asyncio.sleep(0)
                await asyncio.to_thread(lambda: None)
            seen.append(editing.bytes("a").decode())
        await undoing
        return [*seen, editing.bytes("a").decode()]

    assert run(work()) == ["b\n", "a\n"]


def test_an_undo_does_not_wait_long_for_a_silent_editor(
    editing: Editing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tool use of a running turn holds the file; the user hears so, and nothing was done."""
    monkeypatch.setattr(undo, "PATIENCE_SECONDS", 0.0)
    put(editing.root, "a", "a\n")
    put(editing.root, "b", "a\n")
    ids = [editing.edit(name, "b\n") for name in "ab"]

    async def work() -> None:
        recorder = editing.edits.recorder("t2", "s", "c")
        async with recorder.changing(editing.root / "a"):
            with pytest.raises(EditConflictError, match="A running turn is changing") as raised:
                await editing.edits.undo(turn_id="t")
            assert raised.value.data["paths"] == [str(editing.root / "a")]
        assert ids
        await editing.edits.undo(turn_id="t")

    run(work())
    assert [editing.bytes(name) for name in "ab"] == [b"a\n", b"a\n"]


def test_what_the_editor_refuses_is_a_conflict_with_its_reason(editing: Editing) -> None:
    """And what the disk refuses is a failed store, with the name of the error."""
    path = put(editing.root, "a", "a\n")
    id = editing.edit("a", "b\n")
    editing.open("a")

    async def apply_edit(named: Path, old: str, new: str) -> None:
        raise ToolError("The editor did not take the change of 'a' (it is read-only)")

    editing.editor.apply_edit = apply_edit  # type: ignore[method-assign,assignment]
    with pytest.raises(EditConflictError, match="it is read-only") as refused:
        editing.undo(id)
    assert refused.value.data["paths"] == [str(path)]
    del editing.editor.buffers[path]
    path.chmod(0o444)
    with pytest.raises(StorageError) as failed:
        editing.undo(id)
    assert (failed.value.data["errno"], failed.value.data["path"]) == ("EACCES", str(path))


def test_a_silent_editor_is_told_as_such_and_asking_again_finishes(editing: Editing) -> None:
    path = put(editing.root, "a", "a\n")
    id = editing.edit("a", "b\n")
    editing.open("a")

    async def apply_edit(named: Path, old: str, new: str) -> None:
        editing.editor.buffers[path] = new
        raise ToolError("no answer", outcome="unknown")

    editing.editor.apply_edit = apply_edit  # type: ignore[method-assign,assignment]
    with pytest.raises(EditConflictError, match="did not say whether it changed"):
        editing.undo(id)
    assert editing.undo(id) == ["a"]
    assert (editing.editor.buffers[path], editing.states()) == ("a\n", ["undone"])


def test_two_servers_that_undo_one_turn_at_once_do_it_once(root: Path) -> None:
    """What the user wrote since is merged by the first; the second finds it done."""
    put(root, "a", LINES)
    again(root).replace("a", "line 2\n", "edited\nand more\n")
    put(root, "a", LINES.replace("line 2\n", "edited\nand more\n") + "mine\n")
    servers = [again(root) for _ in range(4)]

    async def work() -> list[list[Path]]:
        return await asyncio.gather(*(one.edits.undo(turn_id="t") for one in servers))

    assert sorted(map(len, run(work()))) == [0, 0, 0, 1]
    assert servers[0].bytes("a").decode() == LINES + "mine\n"


def test_a_made_folder_whose_name_is_no_text_goes_too(editing: Editing) -> None:
    """No byte of a path is lost in the ledger (U9.11)."""
    name = os.fsdecode(b"made\xff/in\xfe/a")
    id = editing.edit(name, "a\n")
    again(editing.root).undo(id)
    assert os.listdir(os.fsencode(editing.root)) == []
    again(editing.root).redo(id)
    assert (editing.root / name).read_text() == "a\n"


def test_the_event_loop_never_asks_the_disk(
    editing: Editing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that does not answer stops one tool use, not the server."""
    asked: list[str] = []
    for name in ("open", "lstat", "stat", "scandir", "listdir", "readlink", "mkdir", "unlink"):
        real = getattr(os, name)

        def ask(given: Any, *args: Any, real: Any = real, **kwargs: Any) -> Any:
            with contextlib.suppress(RuntimeError):
                asyncio.get_running_loop()
                asked.append(str(given))
            return real(given, *args, **kwargs)

        monkeypatch.setattr(os, name, ask)
    put(editing.root, "a", "a\n")
    editing.open("a")
    editing.editor.problems = []
    tools = {tool.name: tool for tool in (*edit_tools(), *shell_tools(), *diagnostics_tools())}
    uses: list[tuple[str, dict[str, Any]]] = [
        ("write_file", {"path": "new/b", "content": "b\n"}),
        ("edit_file", {"path": "a", "old_text": "a", "new_text": "b"}),
        ("run_command", {"command": "true", "cwd": "new"}),
        ("diagnostics", {"path": "a"}),
    ]

    async def work() -> None:
        asked.clear()
        for name, given in uses:
            used = a_run(editing.workspace)
            used = msgspec.structs.replace(used, edits=editing.edits.recorder("t", "s", "c"))
            await tools[name].run(given, used)
        await editing.edits.undo(turn_id="t")
        await editing.edits.redo(turn_id="t")
        await editing.edits.next_turn("undone", "s")

    run(work())
    assert [one for one in asked if str(editing.root) in one] == []


def test_a_change_that_cannot_be_recorded_is_not_made(root: Path) -> None:
    disk = FaultyDisk()
    editing = Editing(root, root.parent / "config" / "edits", disk)
    put(root, "a", "a\n")
    disk.fail(errno.ENOSPC, only="write")
    with pytest.raises(ToolError, match=r"could not be undone later; nothing was changed.*space"):
        editing.edit("a", "b\n")
    assert editing.bytes("a") == b"a\n"
    disk.heal()
    assert editing.listed() == []
    editing.undo(editing.edit("a", "b\n"))
    assert editing.bytes("a") == b"a\n"


def test_a_record_nobody_waits_for_any_more_is_no_edit(editing: Editing) -> None:
    path = put(editing.root, "a", "a\n")

    async def work() -> None:
        recorder = editing.edits.recorder("t", "s", "c")
        recording = asyncio.create_task(recorder.record(path, None, "b\n"))
        await asyncio.sleep(0)
        recording.cancel()
        with pytest.raises(asyncio.CancelledError):
            await recording

    run(work())
    assert [edit.state for edit in editing.ledger.edits()] == ["failed"]


@pytest.mark.parametrize("cancels", [1, 2, 3])
def test_a_record_that_is_cancelled_again_and_again_is_no_edit(
    editing: Editing, monkeypatch: pytest.MonkeyPatch, cancels: int
) -> None:
    path = put(editing.root, "a", "a\n")
    is_recording, may_go_on, add = threading.Event(), threading.Event(), editing.ledger.add

    def slow(made: Made, texts: Mapping[str, str]) -> None:
        is_recording.set()
        may_go_on.wait(PATIENCE)
        add(made, texts)

    monkeypatch.setattr(editing.ledger, "add", slow)

    async def work() -> None:
        recorder = editing.edits.recorder("t", "s", "c")
        await cancelled(recorder.record(path, None, "b\n"), is_recording, cancels, may_go_on.set)

    run(work())
    assert [edit.state for edit in editing.ledger.edits()] == ["failed"]


@pytest.mark.parametrize("cancels", [1, 2, 3])
def test_an_undo_that_is_cancelled_while_it_waits_for_another_process_lets_the_next_one_in(
    editing: Editing, monkeypatch: pytest.MonkeyPatch, cancels: int
) -> None:
    put(editing.root, "a", "a\n")
    id = editing.edit("a", "b\n")
    is_waiting, claim = threading.Event(), editing.ledger.claim

    def told() -> Callable[[], None]:
        is_waiting.set()
        return claim()

    release = again(editing.root).ledger.claim()
    monkeypatch.setattr(editing.ledger, "claim", told)
    run(cancelled(editing.edits.undo(id), is_waiting, cancels, release))
    monkeypatch.setattr(ledger_module, "LOCK_SECONDS", 0.0)
    assert again(editing.root).undo(id) == ["a"]


async def cancelled(
    work: Coroutine[Any, Any, object],
    has_begun: threading.Event,
    cancels: int,
    let_go: Callable[[], object],
) -> None:
    """Cancel so often what waits for a thread, and only then let the thread go on."""
    task = asyncio.ensure_future(work)
    assert await asyncio.to_thread(has_begun.wait, PATIENCE)
    for _ in range(cancels):
        task.cancel()
        for _ in range(3):
            await asyncio.sleep(0)
    let_go()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_an_undo_that_cannot_be_noted_is_done_all_the_same(root: Path) -> None:
    disk = FaultyDisk()
    editing = Editing(root, root.parent / "config" / "edits", disk)
    put(root, "a", "a\n")
    id = editing.edit("a", "b\n")
    disk.fail(errno.ENOSPC)
    assert editing.undo(id) == ["a"]
    assert editing.states() == ["undone"]
    assert again(root).states() == ["made"]
    assert again(root).undo(id) == ["a"]
    assert editing.bytes("a") == b"a\n"


def test_an_edit_whose_text_is_lost_is_left_alone(editing: Editing) -> None:
    put(editing.root, "a", "a\n")
    id = editing.edit("a", "b\n")
    for path in (editing.ledger.path.parent / "texts").iterdir():
        path.unlink()
    with pytest.raises(StorageError, match="missing or damaged"):
        editing.undo(id)
    assert editing.bytes("a") == b"b\n"


@pytest.mark.parametrize("typed", ["", "typed since\n"])
def test_a_process_that_died_before_its_note_leaves_nothing_to_do(root: Path, typed: str) -> None:
    """Also where single edits of the turn touch: the file is where all of them together lead."""
    disk = FaultyDisk()
    editing = Editing(root, root.parent / "config" / "edits", disk)
    put(root, "a", "one\ntwo\nthree\nfour\n")
    editing.replace("a", "two", "2")
    editing.replace("a", "three", "3")
    disk.fail(errno.ENOSPC)
    editing.undo(turn="t")
    put(root, "a", editing.bytes("a") + typed.encode())
    assert again(root).undo(turn="t") == ["a"]
    assert editing.bytes("a") == b"one\ntwo\nthree\nfour\n" + typed.encode()


def test_a_file_whose_making_was_broken_off_is_no_obstacle(editing: Editing) -> None:
    """A kill between its name and its text leaves it empty: there is nothing in it to lose."""
    id = editing.edit("made/new", "text\n")
    put(editing.root, "made/new", "")
    assert editing.undo(id) == ["made/new"]
    assert not (editing.root / "made").exists()
    put(editing.root, "made/new", "")
    assert editing.redo(id) == ["made/new"]
    assert editing.bytes("made/new") == b"text\n"
