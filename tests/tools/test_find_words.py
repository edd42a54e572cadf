"""The words of find are read as a real find reads them, or they are not known."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.sizes import PATIENCE, sized
from tiro.tools.find_words import HANDED, Find, find_of
from tiro.tools.readers import only_reads

T = TypeVar("T")
FIND = shutil.which("find") or "find"
RUNS = ("cat", "grep", "touch", "uniq", "{}")
"""The programs that write down how they were run."""

STARTS = [".", "sub", "./sub/", "out", "to-env", "sub/.env", "..", "none"]
ODD_STARTS = ["(x", "!", "-", "--", ",", ";", "x", ")"]
TESTS = [
    *(["-name", "*.txt"], ["-name", "*"], ["-iname", "A*"], ["-name", "?.py"], ["-name", "[ab]*"]),
    *(["-type", "f"], ["-type", "l"], ["-type", "d"], ["-newer", "a.txt"], ["-maxdepth", "1"]),
    *(["-size", "-10k"], ["-mtime", "-1"], ["-perm", "-644"], ["-path", "*sub*"], ["-print"]),
    *(["!", "-name", "*.txt"], ["-o"], ["("], [")"], ["-a"], ["-prune"], ["-true"], ["-depth"]),
]
VALUED = ["-name", "-iname", "-path", "-type", "-newer", "-maxdepth", "-size", "-perm", "-regex"]
VALUES = [
    *("f", "l", "a.txt", "sub/.env", "1", "-exec", "-name", "(", ")", "!", "{}", ";", "+", "cat"),
    *("-o", "--", ""),
]
ODD = [
    *("x", "{}", ";", "+", "", ",", "-not", "-or", "-false", "-quit", "-ls", "-print0", "-delete"),
    *("-L", "-H", "-P", "-D", "-O3", "-follow", "-daystart", "-noleaf", "-d", "-s", "-exec", "--"),
]
WRITERS = [["-fprint", "X"], ["-fls", "X"], ["-fprintf", "X", "%p"], ["-files0-from", "list"]]
INNER = ["cat", "grep", "touch", "uniq", "-n", "X", "sub/.env"]
ODD_INNER = ["{}", "x", "a{}", "-exec", "+", ";", "", "cat"]
ENDS = [["{}", "+"], ["{}", ";"], [";"], ["{}", "x", ";"]]
ODD_ENDS = [["+"], ["{}"], ["{}", "x", "+"], ["{}", "+", "x", ";"], []]


def _mostly(usual: Sequence[T], odd: Sequence[T]) -> st.SearchStrategy[T]:
    return st.integers(0, 9).flatmap(lambda n: st.sampled_from(usual if n else odd))


def _terms() -> st.SearchStrategy[list[str]]:
    command = st.builds(
        lambda verb, words, end: [verb, *words, *end],
        _mostly(["-exec"], ["-execdir", "-ok", "-okdir"]),
        st.lists(_mostly(INNER, ODD_INNER), min_size=1, max_size=3),
        _mostly(ENDS, ODD_ENDS),
    )
    test = st.tuples(st.sampled_from(VALUED), st.sampled_from(VALUES)).map(list)
    odd = st.one_of(test, st.sampled_from(ODD).map(lambda word: [word]), st.sampled_from(WRITERS))
    usual = st.one_of(st.sampled_from(TESTS), command)
    return st.integers(0, 9).flatmap(lambda n: usual if n else odd)


FINDS = st.builds(
    lambda before, starts, terms: [*before, *starts, *(word for term in terms for word in term)],
    _mostly([[], ["-P"]], [["-H"], ["-L"], ["-O1"], ["-D", "exec"]]),
    st.lists(_mostly(STARTS, ODD_STARTS), max_size=2),
    st.lists(_terms(), max_size=4),
)


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with links and odd names, and one of programs that write down their words."""
    top = tmp_path_factory.mktemp("find")
    room = top / "room"
    for name in ("a.txt", "b.py", "sub/c.txt", "sub/.env", "sub/deep/a.txt", "{}", ";", "(x", "-x"):
        (room / name).parent.mkdir(parents=True, exist_ok=True)
        (room / name).write_text("a\n")
    (room / "list").write_text("sub\0")
    (room / "out").symlink_to("../bin")
    (room / "to-env").symlink_to("sub/.env")
    (room / "l.txt").symlink_to("sub/.env")
    (top / "bin").mkdir()
    for name in RUNS:
        program = top / "bin" / name
        written = f'printf "%s\\0" {name} "$@" ""; echo'
        program.write_text(f'#!/bin/sh\n{{ {written}; }} >> "{top}/ran"\n')
        program.chmod(0o755)
    return room


def _ran(room: Path, words: list[str]) -> list[list[str]]:
    """What a real find runs."""
    ran = room.parent / "ran"
    ran.write_text("")
    subprocess.run(
        [FIND, *words],
        cwd=room,
        env={"PATH": str(room.parent / "bin")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
    )
    return [line.split("\0")[:-2] for line in ran.read_text().split("\n")[:-1]]


def _is_of(run: list[str], command: tuple[str, ...]) -> list[str] | None:
    """The files handed over where this command was run with them, or None."""
    if command[0] == HANDED:
        return []  # it is no reader, whatever it is
    if (
        command.count(HANDED) == 1
        and command[-1] == HANDED
        and run[: len(command) - 1] == list(command[:-1])
    ):
        return run[len(command) - 1 :]
    places = [at for at, word in enumerate(command) if word == HANDED]
    handed = [run[at] for at in places if at < len(run)]
    expected = [handed[0] if word == HANDED and handed else word for word in command]
    return handed if run == expected else None


def _may_be_handed(room: Path, find: Find, path: str) -> bool:
    """Whether it is read from the words that this may be handed to a command."""
    starts = find.starts or ["."]
    if path in starts:
        return True  # which is looked at as it is named
    is_below = any(path.startswith(f"{start.rstrip('/')}/") for start in starts)
    is_link = find.finds_files_only and (room / path).is_symlink()
    return is_below and find.may_hand_over(os.path.basename(path)) and not is_link


def _tree(top: Path) -> Iterator[tuple[str, int, int]]:
    for folder, _, names in os.walk(top / "room"):
        for name in names:
            found = os.lstat(f"{folder}/{name}")
            yield f"{folder}/{name}", found.st_size, found.st_mtime_ns


@settings(max_examples=sized(fast=150, normal=400, long=20_000), deadline=None)
@given(FINDS)
def test_find_runs_and_reaches_what_its_words_are_read_to_say(room: Path, words: list[str]) -> None:
    find = find_of(["find", *words])
    if find is None:
        event("not known")
        return
    event("with commands" if find.commands else "without commands")
    before = sorted(_tree(room.parent))
    for run in _ran(room, words):
        handed = [one for _, command in find.commands if (one := _is_of(run, command)) is not None]
        assert any(all(_may_be_handed(room, find, path) for path in one) for one in handed), run
    assert sorted(_tree(room.parent)) == before


WRITING = """
-exec touch X ;
-exec cat {}
-exec cat {} x +
-exec ; -print
-execdir cat {} ;
-ok cat {} ;
-exec uniq {} X ;
-exec {} ;
-exec cat a{} ;
-exec cat {} {} +
-exec cat .env ; -exec touch X ;
-exec cat .env ; -o -exec touch X ;
. -L -print
-L .
-D exec .
-O3 . -delete
-files0-from a
-newermt a
-name x -o -exec rm {} +
-fprint X
-fls X
x -print y
-exec sort -o X {} ;
-exec sed -i s/a/b/ {} +
-exec sh -c x {} ;
-exec find {} -delete ;
-exec git log {} ;
-exec diff {} a ;
-exec timeout 5 touch {} ;
-exec jq {} a ;
""".strip().split("\n")


@pytest.mark.parametrize("words", WRITING)
def test_find_that_may_do_more_than_read(words: str) -> None:
    assert only_reads(["find", *words.split()], deep=True) is None


def test_find_hands_to_readers_only_where_what_it_finds_is_looked_at() -> None:
    words = ["find", "src", "-name", "*.py", "-exec", "grep", "-n", "x", "{}", "+"]
    assert only_reads(words, deep=False) is None
    reading = only_reads(words, deep=True)
    assert reading is not None
    assert (reading.shows, reading.paths) == ("text", ("src",))
    words = ["find", "a", "-newer", "b", "-exec", "cat", "c", "{}", ";"]
    reading = only_reads(words, deep=True)
    assert reading is not None
    assert reading.paths == ("a", "b", "c")
