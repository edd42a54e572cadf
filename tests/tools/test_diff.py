"""Line ends that are kept, and diffs that another program can read."""

import re
import shutil
import subprocess
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from tiro.tools.diff import differing, keep_line_ends, unified_diff
from tiro.tools.text import plain_lines

MIXED = "one\r\ntwo\nthree\rfour\r\n"


@pytest.mark.parametrize(
    ("text", "like", "kept"),
    [
        ("1\ntwo\nthree\nfour\n", MIXED, "1\r\ntwo\nthree\rfour\r\n"),
        ("one\ntwo\nnew\nthree\nfour\n", MIXED, "one\r\ntwo\nnew\nthree\rfour\r\n"),
        ("one\nthree\nfour\n", MIXED, "one\r\nthree\rfour\r\n"),
        ("one\ntwo\nthree\nfour", MIXED, "one\r\ntwo\nthree\rfour"),
        ("0\none\ntwo\nthree\nfour\n", MIXED, "0\r\none\r\ntwo\nthree\rfour\r\n"),
        ("a\r\nb\n", "x\r\n", "a\r\nb\r\n"),
        ("a\nb\n", "x\ry", "a\rb\r"),
        ("a\r\nb\n", "no line end", "a\r\nb\n"),
        ("", MIXED, ""),
        ("\n\n", "a\rb\nc\n", "\r\r"),
    ],
)
def test_each_line_keeps_its_end(text: str, like: str, kept: str) -> None:
    """B54: also in a file of mixed line ends only the edited lines change."""
    assert keep_line_ends(text, like) == kept


@hypothesis.given(*[st.text("ab\r\n", max_size=20)] * 2)
def test_line_ends_are_all_that_changes(text: str, like: str) -> None:
    """No line comes or goes, also where CR and LF would meet."""
    assert plain_lines(keep_line_ends(plain_lines(text), like)) == plain_lines(text)
    assert keep_line_ends(plain_lines(like), like) == like


@hypothesis.given(*[st.lists(st.sampled_from("abc"), max_size=12)] * 2)
def test_only_what_differs_is_named(old: list[str], new: list[str]) -> None:
    made, reached = list(old), 0
    for first, last, new_first, new_last in reversed(list(differing(old, new))):
        made[first:last] = new[new_first:new_last]
        assert old[first:last] != new[new_first:new_last]
        reached = first
    assert made == new
    assert reached >= 0


def test_a_whole_path_has_one_slash_behind_its_side() -> None:
    assert unified_diff("/tmp/f", "a", "b").split("\n")[:2] == ["--- a/tmp/f", "+++ b/tmp/f"]


def test_a_diff_shows_context_and_places() -> None:
    old = "".join(f"{i}\n" for i in range(1, 31))
    new = old.replace("\n5\n", "\nfive\n").replace("\n30\n", "\n30\nmore")
    assert unified_diff("a/f.py", old, new).split("\n") == [
        "--- a/a/f.py", "+++ b/a/f.py",
        "@@ -2,7 +2,7 @@", " 2", " 3", " 4", "-5", "+five", " 6", " 7", " 8",
        "@@ -28,3 +28,4 @@", " 28", " 29", " 30", "+more", "\\ No newline at end of file",
    ]  # fmt: skip


def test_a_new_file_is_all_plus() -> None:
    assert unified_diff("n", None, "a\nb\n") == "--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+a\n+b"


def test_only_what_nobody_reads_is_cut_with_a_mark() -> None:
    """What a user says yes to is shown whole: a thousand long lines are no reason to cut."""
    text = "".join(f"{n} " + "x" * 300 + "\n" for n in range(1000)) + "y" * 15_000
    told = unified_diff("n", None, text)
    assert told.count("\n+") == 1002
    assert "cut" not in told
    told = unified_diff("n", None, "line\n" * 100_000)
    shown = told.count("\n+line")
    assert len(told) < 410_000
    assert f"[The diff is cut here: {100_000 - shown:,} more lines" in told
    assert "[line cut, 30,000 characters]" in unified_diff("n", None, "x" * 30_000)


@pytest.mark.skipif(shutil.which("patch") is None, reason="the program patch is not there")
@hypothesis.settings(
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture], max_examples=15
)
@hypothesis.given(*[st.lists(st.sampled_from("abcdefg"), max_size=25)] * 2, st.booleans())
def test_patch_understands_it(tmp_path: Path, old: list[str], new: list[str], ends: bool) -> None:
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (old, new))
    after = after if ends else after.removesuffix("\n")
    if before == after or not before or not after:
        return
    (tmp_path / "f").write_text(before)
    diff = unified_diff("f", before, after) + "\n"
    assert re.match(r"--- a/f\n\+\+\+ b/f\n@@", diff)
    command = ["patch", "-s", "-p1", "-d", str(tmp_path)]
    subprocess.run(command, input=diff, text=True, check=True, capture_output=True)
    assert (tmp_path / "f").read_text() == after
