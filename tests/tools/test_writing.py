"""put_text: a file gets a new text in place of the one that was seen, or stays as it is."""

import asyncio
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.fakes import RecordingEditor
from tests.sizes import PATIENCE
from tests.tools.rooms import a_workspace, answer, put
from tiro.errors import EditConflictError, ToolError
from tiro.tools import replacing
from tiro.tools.text import decode_text, encode_text
from tiro.tools.workspace import Workspace
from tiro.tools.writing import current, put_text

CRLF = b"one\r\ntwo\r\nthree\r\n"


class Room:
    """A workspace and what is seen of one file in it."""

    def __init__(self, root: Path, name: str = "f", **buffers: str) -> None:
        self.editor = RecordingEditor(root, buffers={root / n: t for n, t in buffers.items()})
        self.workspace = Workspace(self.editor)
        self.place = self.workspace.locate(name)
        self.seen = asyncio.run(current(self.workspace, self.place))

    def put(self, text: str | None, encoding: str | None = None) -> str | None:
        return asyncio.run(put_text(self.workspace, self.place, self.seen, text, encoding=encoding))

    def edit(self, old: str, new: str) -> str | None:
        assert self.seen is not None
        assert old in self.seen.text
        return self.put(self.seen.text.replace(old, new))


def refused(room: Room, text: str | None, error: type[Exception] = ToolError) -> str:
    """Why a text was not put there; no temporary file may be left."""
    names = sorted(os.listdir(room.place.path.parent)) if room.place.path.parent.exists() else []
    with pytest.raises(error) as raised:
        room.put(text)
    if names:
        assert sorted(os.listdir(room.place.path.parent)) == names
    return str(raised.value)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (CRLF, b"one\r\n2\r\nthree\r\n"),
        (b"one\r\ntwo\nthree\r", b"one\r\n2\nthree\r"),
        (b"one\rtwo\rthree", b"one\r2\rthree"),
        (b"\xef\xbb\xbfone\ntwo", b"\xef\xbb\xbfone\n2"),
        (b"caf\xe9 \x81\r\ntwo\r\n", b"caf\xe9 \x81\r\n2\r\n"),
        ("你好\ntwo\n".encode("gbk"), "你好\n2\n".encode("gbk")),
        ("né\ntwo".encode("utf-16"), "né\n2".encode("utf-16")),
        (
            b"\xfe\xff" + "né\ntwo".encode("utf-16-be"),
            b"\xfe\xff" + "né\n2".encode("utf-16-be"),
        ),
        ("né\ntwo".encode("utf-32"), "né\n2".encode("utf-32")),
        (b"two", b"2"),
        ("\ufefftwo\ufeff".encode("utf-8-sig"), "\ufeff2\ufeff".encode("utf-8-sig")),
    ],
)
def test_b54_only_the_edited_bytes_change(tmp_path: Path, before: bytes, after: bytes) -> None:
    """B54: encoding, byte order mark, line ends and a missing last one are kept."""
    path = put(tmp_path, "f", before)
    assert Room(tmp_path).edit("two", "2") is None
    assert path.read_bytes() == after


LINES = st.lists(st.text(alphabet="aé你\x81\U0001f600 €", max_size=5), min_size=1, max_size=6)
ENDS = st.lists(st.sampled_from(["\n", "\r\n", "\r", ""]), min_size=6, max_size=6)


@hypothesis.given(st.binary(max_size=60))
def test_what_was_decoded_encodes_to_the_same_bytes(data: bytes) -> None:
    """B54: whatever bytes a file holds, and whichever encoding they are guessed to be."""
    found = decode_text(data)
    assert found is None or encode_text(found.text, found.encoding) == data


@hypothesis.given(
    LINES, ENDS, st.integers(0, 5), st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "gb18030"])
)
@hypothesis.settings(
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture], max_examples=30
)
def test_any_edit_of_a_line_changes_its_bytes_only(
    tmp_path: Path, lines: list[str], ends: list[str], index: int, codec: str
) -> None:
    """B54, for any line of any file in any of the encodings."""
    index %= len(lines)
    pieces = [line + end for line, end in zip(lines, ends, strict=False)]
    head, line, tail = "".join(pieces[:index]), lines[index], "".join(pieces[index + 1 :])
    data = (head + "<" + line + ">" + ends[index] + tail).encode(codec)
    path = put(tmp_path, "f", data)
    room = Room(tmp_path)
    assert room.seen is not None
    start, end = room.seen.text.index("<"), room.seen.text.index(">")
    room.put(room.seen.text[:start] + "new" + room.seen.text[end + 1 :])
    mark, old = encode_text("", room.seen.encoding), room.seen.text
    sizes = [
        len(encode_text(part, room.seen.encoding)) - len(mark)
        for part in (old[:start], old[end + 1 :])
    ]
    written = path.read_bytes()
    assert written[: len(mark) + sizes[0]] == data[: len(mark) + sizes[0]]
    assert written[len(written) - sizes[1] :] == data[len(data) - sizes[1] :]
    middle = written[len(mark) + sizes[0] : len(written) - sizes[1]]
    assert mark + middle == encode_text("new", room.seen.encoding)


@pytest.mark.parametrize(
    ("data", "text", "why"),
    [
        (b"caf\xe9 au lait\r\n", "→", "Windows-1252, which has no '→' (line 2)"),
        (b"one\n", "\0", "NUL"),
        (b"one\n", "\ud83d", "UTF-8, which has no '\\ud83d'"),
    ],
)
def test_what_cannot_be_encoded_is_refused(
    tmp_path: Path, data: bytes, text: str, why: str
) -> None:
    """B54: refused, and the file untouched."""
    path = put(tmp_path, "f", data)
    room = Room(tmp_path)
    assert room.seen is not None
    assert why in refused(room, room.seen.text + text)
    assert path.read_bytes() == data


def test_b54_mode_and_links_stay(tmp_path: Path) -> None:
    """B54: a script stays one, and a link stays a link."""
    path = put(tmp_path, "real/f", "two")
    path.chmod(0o4751)
    (tmp_path / "link").symlink_to("real/f")
    Room(tmp_path, "link").edit("two", "2")
    assert (tmp_path / "link").is_symlink()
    assert path.read_text() == "2"
    assert stat.S_IMODE(path.stat().st_mode) == 0o4751
    assert os.listdir(tmp_path / "real") == ["f"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may chown")
def test_the_owner_stays(tmp_path: Path) -> None:
    path = put(tmp_path, "f", "two")
    os.chown(path, 12345, 23456)
    Room(tmp_path).edit("two", "2")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


def test_a_hard_link_outside_keeps_its_text(tmp_path: Path) -> None:
    """B48: a second name may lie outside the workspace; it is not written through."""
    outside = put(tmp_path, "outside", "two")
    (tmp_path / "ws").mkdir()
    os.link(outside, tmp_path / "ws/f")
    told = Room(tmp_path / "ws").edit("two", "2")
    assert told is not None
    assert "hard links" in told
    assert outside.read_text() == "two"
    assert (tmp_path / "ws/f").read_text() == "2"


def test_a_new_file_gets_folders_and_the_umasks_mode(tmp_path: Path) -> None:
    umask = os.umask(0o027)
    try:
        Room(tmp_path, "a/b/new.txt").put("x\n")
    finally:
        os.umask(umask)
    assert (tmp_path / "a/b/new.txt").read_text() == "x\n"
    assert stat.S_IMODE((tmp_path / "a/b/new.txt").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "a/b").stat().st_mode) == 0o750


def test_a_new_file_in_an_encoding(tmp_path: Path) -> None:
    """An undone deletion brings the same bytes back."""
    Room(tmp_path).put("né", "UTF-16-LE with a byte order mark")
    assert (tmp_path / "f").read_bytes() == b"\xff\xfen\0\xe9\0"


def test_a_file_is_removed(tmp_path: Path) -> None:
    path = put(tmp_path, "f", "x")
    Room(tmp_path).put(None)
    assert not path.exists()


@pytest.mark.parametrize(
    ("now", "text"),
    [("git was here", "new"), ("git was here", None), (None, "new"), (None, None)],
)
def test_a_file_that_was_changed_since_is_left_alone(
    tmp_path: Path, now: str | None, text: str | None
) -> None:
    """B55: changed or deleted on the disk between read and edit."""
    path = put(tmp_path, "f", "seen")
    room = Room(tmp_path)
    if now is None:
        path.unlink()
    else:
        path.write_text(now)
    refused(room, text, EditConflictError)
    assert path.exists() == (now is not None)
    assert now is None or path.read_text() == now


def test_a_file_that_became_a_folder_is_left_alone(tmp_path: Path) -> None:
    path = put(tmp_path, "f", "seen")
    room = Room(tmp_path)
    path.unlink()
    path.mkdir()
    assert "a directory, not a file" in refused(room, "new")


def test_a_new_file_never_replaces_one(tmp_path: Path) -> None:
    room = Room(tmp_path)
    path = put(tmp_path, "f", "somebody's")
    assert "exists by now" in refused(room, "new", EditConflictError)
    assert path.read_text() == "somebody's"


def test_a_change_at_the_last_moment_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right before the rename it is looked once more whether the file is the one that was read."""
    path = put(tmp_path, "f", "seen")
    room, write = Room(tmp_path), replacing._write

    def write_late(descriptor: int, data: bytes) -> None:
        write(descriptor, data)
        path.write_text("saved by the user")

    monkeypatch.setattr(replacing, "_write", write_late)
    refused(room, "new", EditConflictError)
    assert path.read_text() == "saved by the user"


def test_a_link_put_in_the_way_leads_nowhere(tmp_path: Path) -> None:
    """B48: a link swapped between check and open."""
    put(tmp_path, "ws/d/f", "seen")
    put(tmp_path, "outside/f", "seen")
    room = Room(tmp_path / "ws", "d/f")
    (tmp_path / "ws/d").rename(tmp_path / "ws/was")
    (tmp_path / "ws/d").symlink_to(tmp_path / "outside")
    with pytest.raises((ToolError, EditConflictError)):
        room.put("new")
    new = Room(tmp_path / "ws", "d/../new")
    assert new.place.root is None, "the link is seen by now"
    assert (tmp_path / "outside/f").read_text() == "seen"


def test_a_read_only_file_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path, "f", "seen")
    path.chmod(0o444)
    assert "read-only" in refused(Room(tmp_path), "new")
    assert path.read_text() == "seen"


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    path = put(tmp_path, "d/f", "seen")
    room = Room(tmp_path, "d/f")
    path.unlink()
    path.parent.rmdir()
    with pytest.raises(EditConflictError, match="no longer there"):
        room.put("new")
    assert not path.parent.exists()


def test_a_file_above_a_new_one(tmp_path: Path) -> None:
    put(tmp_path, "a/b", "a file")
    assert "could not be written" in refused(Room(tmp_path, "a/b/c/new"), "x")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 64 kB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("name", ["f", "new/deep/g"])
def test_a_full_disk_changes_nothing(small_disk: Path, name: str) -> None:
    """B54: the write is atomic, so a file that does not fit is the old one."""
    path = put(small_disk, "f", "seen")
    assert "No space left" in refused(Room(small_disk, name), "x" * 100_000)
    assert path.read_text() == "seen"
    assert os.listdir(small_disk) == ["f"]


def test_an_open_buffer_is_changed_through_the_editor(tmp_path: Path) -> None:
    """B55: unsaved text is respected, and the disk stays as it is."""
    path = put(tmp_path, "f", "A\n")
    room = Room(tmp_path, f="B\ntwo\n")
    told = room.edit("two", "2")
    assert told is not None
    assert "not saved" in told
    assert room.editor.buffers == {path: "B\n2\n"}
    assert path.read_text() == "A\n"


def test_a_buffer_that_moved_on(tmp_path: Path) -> None:
    path = put(tmp_path, "f", "A\n")
    room = Room(tmp_path, f="B\n")
    room.editor.buffers[path] = "C\n"
    refused(room, "new", EditConflictError)
    assert room.editor.buffers == {path: "C\n"}


@pytest.mark.parametrize("live", ["one\ntwo\n", "one\r\ntwo\r\n"])
def test_a_buffer_has_its_own_line_ends(tmp_path: Path, live: str) -> None:
    """Emacs sends a DOS file's buffer with LF, VS Code with CRLF; both hold the same file."""
    path = put(tmp_path, "f", b"one\r\ntwo\r\n")
    room = Room(tmp_path, f=live)
    assert room.seen is not None
    assert room.seen.text == "one\r\ntwo\r\n"
    assert not room.seen.is_unsaved
    room.put("one\r\n2\r\n")
    assert room.editor.buffers == {path: live.replace("two", "2")}


def test_an_editor_that_takes_no_edits(tmp_path: Path) -> None:
    """B55: unsaved text is never written behind; a clean buffer is as good as a closed file."""
    path = put(tmp_path, "f", "A\n")
    unsaved, clean = Room(tmp_path, f="B\n"), Room(tmp_path, f="A\n")
    unsaved.editor.takes_edits = clean.editor.takes_edits = False
    assert "unsaved changes" in refused(unsaved, "new")
    assert path.read_text() == "A\n"
    told = clean.put("new")
    assert told is not None
    assert "has to load it" in told
    assert path.read_text() == "new"


def test_an_unsaved_buffer_is_not_deleted(tmp_path: Path) -> None:
    path = put(tmp_path, "f", "A\n")
    assert "unsaved changes" in refused(Room(tmp_path, f="B\n"), None)
    Room(tmp_path, f="A\n").put(None)
    assert not path.exists()


async def test_the_event_loop_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write waits for the disk in a thread; a cancel leaves a whole file behind."""
    put(tmp_path, "f", "seen")
    room = await asyncio.to_thread(Room, tmp_path)
    loop, waiting = asyncio.get_running_loop(), asyncio.Event()
    go, write = asyncio.Event(), replacing._write

    def write_slowly(descriptor: int, data: bytes) -> None:
        loop.call_soon_threadsafe(waiting.set)
        asyncio.run_coroutine_threadsafe(go.wait(), loop).result(PATIENCE)
        write(descriptor, data)

    monkeypatch.setattr(replacing, "_write", write_slowly)
    writing = asyncio.ensure_future(put_text(room.workspace, room.place, room.seen, "new"))
    await waiting.wait()
    for _ in range(9):  # the second cancel too must not leave the thread behind
        writing.cancel()
        await asyncio.sleep(0)
    assert not writing.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert room.place.path.read_text() == "new"


# --- what a killed process leaves -----------------------------------------------------------------

WRITER = """
import sys, time
from pathlib import Path
from tiro.tools import replacing
def write(descriptor, data):
    print("writing", flush=True)
    time.sleep(600)
replacing._write = write
path = Path(sys.argv[1])
replacing.put_in_place(path.parent, path, b"new", path.stat())
"""


def left_in(folder: Path) -> list[Path]:
    found = [path for path in folder.iterdir() if replacing.is_temporary(path.name)]
    for path in found:
        os.utime(path, (0, 0))  # it was written to long ago
    return found


@pytest.mark.parametrize("how", ["next write", "next start"])
def test_what_a_killed_write_left_goes_and_only_then(tmp_path: Path, how: str) -> None:
    path, other = put(tmp_path, "f", "A"), put(tmp_path, "g", "G")
    mine = put(tmp_path, ".tiro-mine.tmp", "the user's")
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        try:
            assert writer.stdout.readline() == b"writing\n"
            [left] = left_in(tmp_path)
            replacing.sweep(tmp_path)
            Room(tmp_path, name="g").put("G2")
            assert left.exists(), "its process is alive"
            workspace = a_workspace(tmp_path)
            assert left.name not in answer(workspace, "list_files")
            assert left.name not in answer(workspace, "glob", pattern="*")
        finally:
            writer.kill()
            writer.wait()
    if how == "next write":
        Room(tmp_path, name="g").put("G3")
    else:
        replacing.sweep(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([path, other, mine])
    assert path.read_text() == "A"


def test_only_a_file_of_ours_is_swept(tmp_path: Path) -> None:
    name = ".tiro-0123456789abcdef.tmp"
    for folder, make in (
        ("new", lambda path: path.write_text("just begun")),
        ("link", lambda path: path.symlink_to(put(tmp_path, "elsewhere", "x"))),
        ("folder", lambda path: path.mkdir()),
        ("pipe", os.mkfifo),
    ):
        path = tmp_path / folder / name
        path.parent.mkdir()
        make(path)
        replacing.sweep(path.parent)
        assert os.path.lexists(path), folder
    assert (tmp_path / "elsewhere").exists()
    replacing.sweep(tmp_path / "gone")


# --- a buffer that comes or goes meanwhile --------------------------------------------------------


class Fleeting(RecordingEditor):
    """An editor that closes a buffer as soon as its change is made, or somebody looks twice."""

    def open_text(self, path: Path) -> str | None:
        return self.buffers.pop(path, None)


def test_a_buffer_that_is_closed_between_two_looks_is_no_error(tmp_path: Path) -> None:
    workspace = Workspace(Fleeting(tmp_path, buffers={tmp_path / "new": "typed"}))
    seen = asyncio.run(current(workspace, workspace.locate("new")))
    assert seen is not None
    assert (seen.text, seen.is_unsaved) == ("typed", True)
    assert asyncio.run(current(workspace, workspace.locate("new"))) is None


@pytest.mark.parametrize("left", [b"\0binary", None])
def test_a_change_that_the_editor_made_is_never_said_to_have_failed(
    tmp_path: Path, left: bytes | None
) -> None:
    """Its buffer is closed at once, and what lies on the disk cannot be read as text."""
    path = put(tmp_path, "f", "A\n")
    room = Room(tmp_path, f="A\n")

    async def apply_edit(named: Path, old: str, new: str) -> None:
        room.editor.buffers.clear()
        path.unlink()
        if left is not None:
            path.write_bytes(left)

    room.editor.apply_edit = apply_edit  # type: ignore[method-assign,assignment]
    told = room.put("B\n")
    assert told is not None
    assert "read it before the next edit" in told
