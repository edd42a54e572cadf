"""The path boundary (B48, product.md's row on paths) and the live text of open buffers (B55)."""

import errno
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.processes import open_files
from tests.tools.rooms import a_workspace, answer, put
from tiro.errors import ToolError
from tiro.tools.workspace import Place, shown_name


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """WS=…/app with a sibling …/app-secret, and links that lead out and in."""
    root = tmp_path / "app"
    put(root, "in.txt", "inside")
    put(root, "sub/deep.txt", "deep")
    put(tmp_path, "app-secret/k", "SECRET")
    put(tmp_path, "outside.txt", "SECRET")
    (root / "l").symlink_to("/etc")
    (root / "f").symlink_to("/etc/passwd")
    (root / "up").symlink_to("..")
    (root / "good").symlink_to("in.txt")
    (root / "gooddir").symlink_to("sub")
    (root / "loop").symlink_to("loop")
    (root / "dangling").symlink_to("../nowhere.txt")
    return root


OUTSIDE = [
    "..",
    "../outside.txt",
    "sub/../../outside.txt",
    "./sub/./../../app-secret/k",
    "../app-secret/k",
    "{root}-secret/k",
    "{root}/../app-secret/k",
    "/etc/passwd",
    "l/passwd",
    "l/../etc/passwd",
    "f",
    "up/outside.txt",
    "up/app-secret/k",
    "gooddir/../../outside.txt",
    "dangling",
    "l/new-file-below-a-link",
    "~",
    "~/.ssh/id_rsa",
    "file:///etc/passwd",
    "FILE:///etc/passwd",
    "file://localhost/etc/passwd",
    "file://{root}/../outside.txt",
    "file://{root}/%2e%2e/outside.txt",
    "file:/etc/passwd",
]


@pytest.mark.parametrize("given", OUTSIDE)
@pytest.mark.parametrize("tool", ["read_file", "list_files", "grep", "glob"])
def test_what_leads_outside_is_refused(room: Path, given: str, tool: str) -> None:
    """B48: refused with the resolved path, never a silent success."""
    pattern: dict[str, Any] = (
        {} if tool.endswith(("file", "files")) else {"pattern": "*" if tool == "glob" else "."}
    )
    path = given.format(root=room)
    told = answer(a_workspace(room), tool, path=path, **pattern)
    assert told.startswith("ToolError: "), told
    assert "is outside the workspace" in told
    assert "SECRET" not in told
    assert "root:" not in told


@pytest.mark.parametrize(
    "given",
    [
        "in.txt",
        "./in.txt",
        "sub/../in.txt",
        "good",
        "{root}/in.txt",
        "file://{root}/in.txt",
        "file://{root}/i%6E.txt",
        "file://{root}/in.txt#L3",
        "up/app/in.txt",
    ],
)
def test_what_stays_inside_is_read(room: Path, given: str) -> None:
    assert "inside" in answer(a_workspace(room), "read_file", path=given.format(root=room))


def test_links_to_folders_that_stay_inside_work(room: Path) -> None:
    assert "deep" in answer(a_workspace(room), "read_file", path="gooddir/deep.txt")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("a\0b", "NUL"),
        ("file:///tmp/%00", "NUL"),
        (" ", "empty"),
        ("x" * 5000, "too long"),
        ("é" * 3000, "too long"),
        ("\ud83d", "half a character"),
        ("file:///tmp/\ud83d", "no valid URI"),
        ("http://example.org/x", "only files"),
        ("untitled://x", "only files"),
        ("file://elsewhere/x", "another machine"),
        ("file://[::1/x", "no valid URI"),
    ],
)
def test_what_is_no_path_is_refused_with_the_reason(room: Path, given: str, why: str) -> None:
    told = answer(a_workspace(room), "read_file", path=given)
    assert "is not a usable path" in told
    assert why in told
    assert len(told) < 500


def test_name_of_more_than_255_bytes_is_not_there(room: Path) -> None:
    assert "too long" in answer(a_workspace(room), "read_file", path="n" * 300)


def test_percent_in_a_plain_path_is_a_percent(room: Path) -> None:
    """B48: `%2e%2e` is a name like any other; only URIs have escapes."""
    put(room, "%2e%2e/x.txt", "percent")
    assert "percent" in answer(a_workspace(room), "read_file", path="%2e%2e/x.txt")
    assert "There is no" in answer(a_workspace(room), "read_file", path="%2e%2e/outside.txt")


def test_missing_file_and_loop_are_told(room: Path) -> None:
    assert "There is no 'x.txt'" in answer(a_workspace(room), "read_file", path="x.txt")
    assert "There is no" in answer(a_workspace(room), "read_file", path="in.txt/x")
    assert answer(a_workspace(room), "read_file", path="loop").startswith("ToolError: 'loop'")


def test_only_regular_files_are_read(room: Path) -> None:
    """A FIFO would block for ever, a device would never end."""
    os.mkfifo(room / "fifo")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(room / "s"))
    try:
        workspace = a_workspace(room)
        assert "named pipe" in answer(workspace, "read_file", path="fifo")
        assert "socket" in answer(workspace, "read_file", path="s")
        assert "directory" in answer(workspace, "read_file", path="sub")
        assert "0 searched" in answer(workspace, "grep", path="fifo", pattern=".")
        assert "a file, not a directory" in answer(workspace, "list_files", path="in.txt")
    finally:
        listener.close()


def test_device_in_an_opened_root_is_refused() -> None:
    assert "device" in answer(a_workspace(Path("/dev")), "read_file", path="null")


def test_unreadable_file_is_told(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "supports_dir_fd", {refuse})
    assert "Permission denied" in answer(a_workspace(room), "read_file", path="in.txt")


@pytest.mark.parametrize(
    ("tool", "more"), [("read_file", {}), ("list_files", {}), ("grep", {"pattern": "x"})]
)
def test_link_swapped_for_a_file_while_it_is_followed_is_told(
    room: Path, monkeypatch: pytest.MonkeyPatch, tool: str, more: dict[str, Any]
) -> None:
    """The system says that a link is none (EINVAL) that was one an instant before."""
    really = os.path.realpath

    def swapped(path: Any, **options: Any) -> Any:
        if os.path.basename(path) == "good":
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return really(path, **options)

    monkeypatch.setattr(os.path, "realpath", swapped)
    told = answer(a_workspace(room), tool, path="good", **more)
    assert "'good' changed while it was opened; nothing was read. Try again" in told


def test_link_swapped_in_after_the_check_leads_nowhere(room: Path) -> None:
    """B48: between check and open somebody puts links in the place of file and folder."""
    workspace = a_workspace(room)
    file, deep = workspace.inside("in.txt"), workspace.inside("sub/deep.txt")
    (room / "in.txt").unlink()
    (room / "in.txt").symlink_to(room.parent / "outside.txt")
    (room / "sub").rename(room / "was")
    (room / "sub").symlink_to(room.parent / "app-secret")
    put(room.parent, "app-secret/deep.txt", "SECRET")
    for place in (file, deep):
        with pytest.raises(ToolError, match=r"changed while it was opened|There is no"):
            workspace.open_file(place)


def test_folder_swapped_for_a_link_is_not_listed(room: Path) -> None:
    workspace = a_workspace(room)
    place = workspace.inside("sub")
    (room / "sub").rename(room / "was")
    (room / "sub").symlink_to("/etc")
    with pytest.raises(ToolError):
        workspace.names_in(place)


def test_without_an_open_folder_every_relative_path_is_told_so() -> None:
    assert "No workspace folder is open" in answer(a_workspace(), "read_file", path="x")
    assert "(none is open)" in answer(a_workspace(), "read_file", path="/etc/passwd")


def test_relative_path_is_looked_for_in_each_root(tmp_path: Path) -> None:
    put(tmp_path, "one/a.txt", "A")
    put(tmp_path, "two/b.txt", "B")
    workspace = a_workspace(tmp_path / "one", tmp_path / "two")
    assert "B" in answer(workspace, "read_file", path="b.txt")
    assert workspace.shown(tmp_path / "one/a.txt") == "a.txt"
    assert workspace.shown(tmp_path / "two/b.txt") == str(tmp_path / "two/b.txt")


def test_root_that_is_a_link_counts_by_where_it_leads(tmp_path: Path) -> None:
    put(tmp_path, "real/a.txt", "A")
    (tmp_path / "link").symlink_to("real")
    workspace = a_workspace(tmp_path / "link")
    assert "A" in answer(workspace, "read_file", path=str(tmp_path / "link/a.txt"))
    assert "A" in answer(workspace, "read_file", path=str(tmp_path / "real/a.txt"))
    assert workspace.roots() == [tmp_path / "real"]


def test_file_name_that_is_not_utf8_is_found_by_what_is_shown(tmp_path: Path) -> None:
    """B12: shown with U+FFFD, and found again under that name."""
    raw = os.fsdecode(b"caf\xe9.txt")
    put(tmp_path, raw, "coffee")
    workspace = a_workspace(tmp_path)
    listed = answer(workspace, "list_files")
    listed.encode("utf-8")
    assert "caf\ufffd.txt" in listed
    assert "coffee" in answer(workspace, "read_file", path="caf\ufffd.txt")
    assert "caf\ufffd.txt" in answer(workspace, "glob", pattern="*.txt")
    assert "caf\ufffd.txt" in answer(workspace, "grep", pattern="coff")
    assert shown_name(raw) == "caf\ufffd.txt"
    put(tmp_path, os.fsdecode(b"caf\xe8.txt"), "tea")
    assert "There is no" in answer(workspace, "read_file", path="caf\ufffd.txt"), "which of two?"


def test_buffers_are_found_by_their_real_path(room: Path) -> None:
    """B55: whatever name of the file the editor or the model uses."""
    workspace = a_workspace(room, buffers={room / "good": "live", Path("/etc/hosts"): "no"})
    assert workspace.live_text(room / "in.txt") == "live"
    assert list(workspace.open_buffers()) == [room / "in.txt"]
    assert "live" in answer(workspace, "read_file", path="in.txt")
    assert "is outside" in answer(workspace, "read_file", path="/etc/hosts")


def test_place_outside_is_never_opened(room: Path) -> None:
    with pytest.raises(AssertionError):
        a_workspace(room).open_file(Place("x", Path("/etc/passwd"), None))


@pytest.fixture
def without_folder_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows: no file can be opened relative to an open folder."""
    monkeypatch.setattr(os, "supports_dir_fd", set())
    monkeypatch.setattr(os, "supports_fd", set())


@pytest.mark.usefixtures("without_folder_descriptors")
def test_boundary_holds_without_folder_descriptors(room: Path) -> None:
    workspace = a_workspace(room)
    assert "inside" in answer(workspace, "read_file", path="in.txt")
    assert "deep.txt" in answer(workspace, "glob", pattern="**")
    assert "is outside the workspace" in answer(workspace, "read_file", path="f")
    os.mkfifo(room / "fifo")
    assert "named pipe" in answer(workspace, "read_file", path="fifo")
    place = workspace.inside("sub/deep.txt")
    (room / "sub").rename(room / "was")
    (room / "sub").symlink_to(room.parent / "app-secret")
    put(room.parent, "app-secret/deep.txt", "SECRET")
    with pytest.raises(ToolError, match="changed while it was opened"):
        workspace.open_file(place)
    (room / "in.txt").unlink()
    with pytest.raises(ToolError):
        workspace.open_file(workspace.inside("in.txt"))


def test_kind_that_changes_between_look_and_open_is_refused(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B48: the file becomes a pipe after the first look; what was opened is looked at again."""
    workspace = a_workspace(room)
    place = workspace.inside("in.txt")
    regular = os.stat(room / "in.txt")
    (room / "in.txt").unlink()
    os.mkfifo(room / "in.txt")
    monkeypatch.setattr(os, "stat", lambda *_, **__: regular)
    before = len(open_files())
    with pytest.raises(ToolError, match="named pipe"):
        workspace.open_file(place)
    assert len(open_files()) == before
