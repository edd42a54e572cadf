"""glob and grep: patterns, .gitignore, links, live text, bounds, and their end."""

import asyncio
from pathlib import Path

import pytest

from tests.tools.rooms import TOOLS, a_run, a_workspace, answer, put
from tiro.errors import ToolError
from tiro.tools import search, walk
from tiro.tools.matcher import Matcher


@pytest.fixture
def room(tmp_path: Path) -> Path:
    put(tmp_path, "a.py", "import os\nneedle = 1\n")
    put(tmp_path, "src/b.py", "x = needle\n")
    put(tmp_path, "src/deep/c.ts", "// Needle\n")
    put(tmp_path, "node_modules/n.py", "needle\n")
    put(tmp_path, ".gitignore", "node_modules/\n")
    put(tmp_path, ".git/config", "needle\n")
    put(tmp_path, ".hidden/h.py", "needle\n")
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.py", [".hidden/h.py", "a.py", "src/b.py"]),
        ("**/*.py", [".hidden/h.py", "a.py", "src/b.py"]),
        ("src/*", ["src/b.py"]),
        ("src/**", ["src/b.py", "src/deep/c.ts"]),
        ("**/deep/*.{py,ts}", ["src/deep/c.ts"]),
        ("./src/*.py", ["src/b.py"]),
        ("[ab].py", ["a.py", "src/b.py"]),
        ("A.py", []),
    ],
)
def test_glob(room: Path, pattern: str, expected: list[str]) -> None:
    told = answer(a_workspace(room), "glob", pattern=pattern)
    assert told.split("\n") == (expected or [f"No file matches '{pattern}' in ."])


def test_glob_in_a_folder_is_relative_to_it(room: Path) -> None:
    assert answer(a_workspace(room), "glob", pattern="deep/*", path="src") == "src/deep/c.ts"


def test_glob_finds_links_that_stay_inside_and_new_buffers(room: Path) -> None:
    (room / "in.py").symlink_to("src/b.py")
    (room / "out.py").symlink_to("/etc/passwd")
    (room / "dir.py").symlink_to("src")
    workspace = a_workspace(room, buffers={room / "new.py": ""})
    assert "in.py" in answer(workspace, "glob", pattern="*.py").split("\n")
    assert "new.py" in answer(workspace, "glob", pattern="*.py").split("\n")
    assert answer(workspace, "glob", pattern="{out,dir}.py").startswith("No file")


def test_glob_is_bounded(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MAX_PATHS", 2)
    told = answer(a_workspace(room), "glob", pattern="**").split("\n")
    assert len(told) == 3
    assert "only the first 2 files" in told[-1]


@pytest.mark.parametrize(
    ("pattern", "why"), [("{" + ",".join("ab" * 40) + "}" * 1 + "{a,b}", "too many"), ("", "empty")]
)
def test_glob_pattern_that_cannot_be(room: Path, pattern: str, why: str) -> None:
    assert why in answer(a_workspace(room), "glob", pattern=pattern)


def test_walk_is_bounded_and_says_so(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "MAX_VISITED", 2)
    for name, pattern in (("glob", "**"), ("grep", "x")):
        assert "too many entries" in answer(a_workspace(room), name, pattern=pattern)


def test_grep_shows_files_and_lines(room: Path) -> None:
    assert answer(a_workspace(room), "grep", pattern=r"needle\b").split("\n") == [
        "3 matches in 3 files (5 searched)",
        ".hidden/h.py",
        "  1: needle",
        "a.py",
        "  2: needle = 1",
        "src/b.py",
        "  1: x = needle",
    ]


def test_grep_options(room: Path) -> None:
    told = answer(
        a_workspace(room), "grep", pattern="NEEDLE", path="src", glob="*.ts", ignore_case=True
    )
    assert told == "1 match in 1 file (1 searched)\nsrc/deep/c.ts\n  1: // Needle"


def test_grep_one_file_even_when_it_is_left_out(room: Path) -> None:
    told = answer(a_workspace(room), "grep", pattern="needle", path="node_modules/n.py")
    assert "1 match in 1 file" in told


def test_grep_shows_lines_around_a_match(tmp_path: Path) -> None:
    put(tmp_path, "f", "".join(f"line {i}\n" for i in range(1, 30)))
    told = answer(a_workspace(tmp_path), "grep", pattern=r"line (5|6|20)$", context=1)
    assert told.split("\n")[1:] == [
        "f",
        "  4- line 4",
        "  5: line 5",
        "  6: line 6",
        "  7- line 7",
        "  --",
        "  19- line 19",
        "  20: line 20",
        "  21- line 21",
    ]


def test_grep_is_bounded(tmp_path: Path) -> None:
    put(tmp_path, "f", "x\n" * 500)
    told = answer(a_workspace(tmp_path), "grep", pattern="x", max_matches=3).split("\n")
    assert told[0].startswith("3 matches")
    assert len(told) == 6
    assert "stopped after 3 matches" in told[-1]


def test_grep_stays_below_the_output_limit(tmp_path: Path) -> None:
    put(tmp_path, "f", ("x" * 390 + "\n") * 900)
    told = answer(a_workspace(tmp_path), "grep", pattern="x", max_matches=900)
    assert len(told) < 50_000


def test_grep_cuts_long_lines_around_the_match(tmp_path: Path) -> None:
    put(tmp_path, "min.js", "a" * 50_000 + "needle" + "b" * 50_000)
    line = answer(a_workspace(tmp_path), "grep", pattern="needle").split("\n")[-1]
    assert "needle" in line
    assert line.count("…") == 2
    assert len(line) < 420


def test_grep_does_not_follow_links(room: Path) -> None:
    """B48: not out of the workspace, and nothing is found twice."""
    put(room.parent, "outside/s.py", "needle SECRET")
    (room / "out").symlink_to("../outside")
    (room / "again").symlink_to("src")
    told = answer(a_workspace(room), "grep", pattern="needle")
    assert "SECRET" not in told
    assert "again" not in told


def test_grep_searches_live_text_first(room: Path) -> None:
    """B55: what is open in the editor, saved or not, is what counts."""
    workspace = a_workspace(
        room, buffers={room / "a.py": "changed\r\nhaystack", room / "new.txt": "haystack too"}
    )
    assert answer(workspace, "grep", pattern="needle", glob="a.py").startswith("0 matches")
    told = answer(workspace, "grep", pattern="^haystack")
    assert told.split("\n")[1:] == ["a.py", "  2: haystack", "new.txt", "  1: haystack too"]


def test_grep_does_not_show_what_the_rules_forbid_to_read(room: Path) -> None:
    """M5.7: grep is no way round the ban on .env files."""
    put(room, ".env", "needle=SECRET")
    told = answer(
        a_workspace(room), "grep", pattern="needle", may_read=lambda path: path.name != ".env"
    )
    assert "SECRET" not in told
    assert "1 not searched: the rules do not allow" in told


def test_glob_does_not_name_what_its_rules_leave_out(room: Path) -> None:
    put(room, "secrets/key.txt", "x")
    put(room, "docs/new.txt", "x")
    told = answer(
        a_workspace(room),
        "glob",
        pattern="**/*.txt",
        may_read=lambda path: path.parent.name != "secrets",
    )
    assert "key.txt" not in told
    assert "new.txt" in told


def test_grep_counts_what_it_cannot_search(room: Path) -> None:
    put(room, "bin", b"needle\0")
    assert "1 not searched: binary" in answer(a_workspace(room), "grep", pattern="needle")


def test_grep_finds_text_that_is_not_utf8(tmp_path: Path) -> None:
    put(tmp_path, "l", "naïve café\n".encode("latin-1"))
    assert "naïve café" in answer(a_workspace(tmp_path), "grep", pattern="café")


def test_grep_takes_surrogates_and_nul_in_live_text(tmp_path: Path) -> None:
    """B12."""
    workspace = a_workspace(tmp_path, buffers={tmp_path / "f": "a\ud83d\0needle"})
    assert "1 match" in answer(workspace, "grep", pattern="needle")


@pytest.mark.parametrize("pattern", ["(", "*", "(?P<a>", "a{9999999999}", "["])
def test_grep_with_a_broken_pattern_says_why(room: Path, pattern: str) -> None:
    told = answer(a_workspace(room), "grep", pattern=pattern)
    assert "is no usable regular expression" in told


@pytest.mark.parametrize(
    ("pattern", "glob"), [("x", "x" * 2000), ("x", "{" * 500), ("\ud83d", "\ud83d"), ("\0", "\0")]
)
def test_grep_with_an_odd_pattern_or_glob_answers(room: Path, pattern: str, glob: str) -> None:
    told = answer(a_workspace(room), "grep", pattern=pattern, glob=glob)
    assert "0 matches" in told or "at most 1000 characters" in told


SLOW = "(a+)+$"


def test_slow_pattern_is_given_up(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Matcher(SLOW, ignore_case=False, context=0, seconds=0.5) as matcher:
            await matcher.search(["a" * 60 + "b"])

    with pytest.raises(ToolError, match="takes too long"):
        asyncio.run(scenario())


def test_slow_pattern_blocks_nobody_and_ends_on_cancel(tmp_path: Path) -> None:
    """B43: the loop turns on while the pattern runs, and a cancel ends it at once."""
    put(tmp_path, "f", "a" * 60 + "b")

    async def scenario() -> int:
        task = asyncio.ensure_future(TOOLS["grep"].run({"pattern": SLOW}, run))
        turned = 0
        for _ in range(20):
            await asyncio.sleep(0.01)
            turned += 1
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return turned

    run = a_run(a_workspace(tmp_path))
    assert asyncio.run(scenario()) == 20


@pytest.mark.parametrize("name", ["glob", "grep", "list_files"])
def test_work_in_threads_ends_on_cancel(tmp_path: Path, name: str) -> None:
    """B43: a thread cannot be cancelled, so it looks at the run's event."""
    put(tmp_path, "a/b")
    run = a_run(a_workspace(tmp_path))
    run.cancelled.set()

    async def scenario() -> None:
        await TOOLS[name].run({"pattern": "x"}, run)

    with pytest.raises(ToolError, match="stopped"):
        asyncio.run(scenario())


def test_cancelled_tool_sets_the_event_for_its_thread(tmp_path: Path) -> None:
    run = a_run(a_workspace(tmp_path))

    async def scenario() -> None:
        task = asyncio.ensure_future(TOOLS["list_files"].run({}, run))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert run.cancelled.is_set()
