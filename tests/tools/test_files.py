"""read_file and list_files: ranges, encodings, limits, live text."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.tools.rooms import a_workspace, answer, put
from tiro.tools import file_text


def test_read_file_numbers_the_lines_and_heads_them_with_the_facts(tmp_path: Path) -> None:
    put(tmp_path, "a.py", "one\ntwo\n")
    told = answer(a_workspace(tmp_path), "read_file", path="a.py")
    assert told == "a.py (lines 1-2 of 2, UTF-8)\n     1\tone\n     2\ttwo"


@pytest.mark.parametrize(
    ("given", "lines", "has_more"),
    [
        ({"start_line": 2}, "2-4", False),
        ({"end_line": 2}, "1-2", False),
        ({"start_line": 2, "end_line": 3}, "2-3", False),
        ({"start_line": 4, "end_line": 99}, "4-4", False),
    ],
)
def test_read_file_range(tmp_path: Path, given: dict[str, Any], lines: str, has_more: bool) -> None:
    put(tmp_path, "a", "1\n2\n3\n4\n")
    told = answer(a_workspace(tmp_path), "read_file", path="a", **given)
    assert f"lines {lines} of 4" in told
    assert ("More" in told) == has_more


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"start_line": 5}, "only 4 lines"),
        ({"start_line": 3, "end_line": 2}, "is before"),
        ({"start_line": 0}, "at least 1"),
        ({"start_line": "2"}, "must be of type integer"),
        ({"lines": 3}, "`lines` is unknown"),
    ],
)
def test_read_file_range_that_cannot_be(tmp_path: Path, given: dict[str, Any], why: str) -> None:
    put(tmp_path, "a", "1\n2\n3\n4\n")
    assert why in answer(a_workspace(tmp_path), "read_file", path="a", **given)


def test_read_file_says_where_to_go_on(tmp_path: Path) -> None:
    put(tmp_path, "long", "".join(f"{i}\n" for i in range(1, 5001)))
    told = answer(a_workspace(tmp_path), "read_file", path="long")
    assert told.endswith("[More: this was up to line 2,000 of 5,000. Go on with start_line 2001.]")
    rest = answer(a_workspace(tmp_path), "read_file", path="long", start_line=4001)
    assert "More" not in rest
    assert rest.endswith("  5000\t5000")


def test_read_file_stays_below_the_output_limit(tmp_path: Path) -> None:
    put(tmp_path, "wide", ("x" * 1000 + "\n") * 100)
    told = answer(a_workspace(tmp_path), "read_file", path="wide")
    assert len(told) < 50_000
    assert "Go on with start_line" in told


def test_read_file_cuts_a_very_long_line(tmp_path: Path) -> None:
    put(tmp_path, "min.js", "x" * 100_000)
    told = answer(a_workspace(tmp_path), "read_file", path="min.js")
    assert "[line cut, 100,000 characters]" in told
    assert len(told) < 3000


def test_read_file_empty(tmp_path: Path) -> None:
    put(tmp_path, "e", "")
    assert answer(a_workspace(tmp_path), "read_file", path="e") == "e (empty, UTF-8)"


@pytest.mark.parametrize(
    ("data", "facts", "text"),
    [
        ("café".encode(), "UTF-8", "café"),
        (b"\xef\xbb\xbfx", "UTF-8 with a byte order mark", "x"),
        ("né".encode("utf-16"), "UTF-16-LE with a byte order mark", "né"),
        ("né".encode("utf-32"), "UTF-32-LE with a byte order mark", "né"),
        ("café au lait".encode("latin-1"), "Windows-1252, a guess", "café au lait"),
        ("cafétéria naïve".encode("latin-1"), "Windows-1252, a guess", "cafétéria naïve"),
        ("你好,世界".encode("gbk"), "GB18030, a guess", "你好,世界"),
        (b"a\r\nb\r\n", "UTF-8, with CRLF line ends", "     2\tb"),
        (b"a\rb", "UTF-8, with CR line ends", "     2\tb"),
        (b"\x1b[31mred", "UTF-8", "\x1b[31mred"),
        ("\u2028x\x0cy\n".encode(), "lines 1-1 of 1", "\u2028x\x0cy"),
    ],
)
def test_read_file_names_the_encoding(tmp_path: Path, data: bytes, facts: str, text: str) -> None:
    """B54, B29: as editors count lines, and never with a silent replacement."""
    put(tmp_path, "f", data)
    told = answer(a_workspace(tmp_path), "read_file", path="f")
    assert facts in told.split("\n")[0]
    assert text in told


@pytest.mark.parametrize("data", [b"\x7fELF\0\0", b"PNG\0", b"\xff\xfea", b"a" * 5000 + b"\0"])
def test_read_file_refuses_binary(tmp_path: Path, data: bytes) -> None:
    put(tmp_path, "b", data)
    told = answer(a_workspace(tmp_path), "read_file", path="b")
    assert "no text but binary data" in told


def test_read_file_refuses_what_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_text, "MAX_FILE_BYTES", 1000)
    put(tmp_path, "big", "x" * 1001)
    assert "Search it with grep" in answer(a_workspace(tmp_path), "read_file", path="big")


def test_read_file_by_the_rules(tmp_path: Path) -> None:
    """M5.7: what the rules forbid is refused in the tool too, by the real path."""
    put(tmp_path, ".env", "KEY=1")
    (tmp_path / "x").symlink_to(".env")
    told = answer(
        a_workspace(tmp_path), "read_file", path="x", may_read=lambda path: path.name != ".env"
    )
    assert "The rules do not allow" in told


@pytest.mark.parametrize(
    ("saved", "live", "is_unsaved"),
    [("A\n", "B\n", True), ("A\n", "A\n", False), (None, "new\n", True), (b"\0", "t", True)],
)
def test_read_file_prefers_the_buffer_and_says_so(
    tmp_path: Path, saved: str | bytes | None, live: str, is_unsaved: bool
) -> None:
    """B55: the editor's text, also of a file that is not saved yet."""
    if saved is not None:
        put(tmp_path, "a.txt", saved)
    workspace = a_workspace(tmp_path, buffers={tmp_path / "a.txt": live})
    told = answer(workspace, "read_file", path="a.txt")
    assert f"1\t{live.strip()}" in told
    assert ("unsaved text of the open editor buffer" in told) == is_unsaved


def test_list_files_shows_kinds_and_marks_what_is_left_out(tmp_path: Path) -> None:
    put(tmp_path, "b/c.txt")
    put(tmp_path, "a.txt")
    put(tmp_path, ".gitignore", "out/\n*.log\n")
    put(tmp_path, "out/x")
    put(tmp_path, "x.log")
    put(tmp_path, ".git/config")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("a.txt")
    (tmp_path / "away").symlink_to("/etc")
    assert answer(a_workspace(tmp_path), "list_files").split("\n") == [
        "./",
        ".git/ (left out by .gitignore)",
        ".gitignore",
        "a.txt",
        "away -> outside the workspace",
        "b/",
        "link -> a.txt",
        "out/ (left out by .gitignore)",
        "pipe (no regular file)",
        "x.log (left out by .gitignore)",
    ]


def test_list_files_to_a_depth(tmp_path: Path) -> None:
    put(tmp_path, "a/b/c/d.txt")
    told = answer(a_workspace(tmp_path), "list_files", path="a", depth=2)
    assert told == "a/\nb/\nb/c/"


def test_list_files_shows_new_buffers(tmp_path: Path) -> None:
    workspace = a_workspace(tmp_path, buffers={tmp_path / "new.py": "x", tmp_path / "a/n.py": ""})
    assert answer(workspace, "list_files") == "./\nnew.py (open in the editor, not saved yet)"


def test_list_files_of_an_empty_folder(tmp_path: Path) -> None:
    assert answer(a_workspace(tmp_path), "list_files") == "./ (empty)"


def test_list_files_is_bounded(tmp_path: Path) -> None:
    for index in range(510):
        put(tmp_path, f"{index:03}")
    told = answer(a_workspace(tmp_path), "list_files").split("\n")
    assert len(told) == 502
    assert "only the first 500 entries" in told[-1]
