"""Path patterns (M5.6) and .gitignore rules, compared with git itself."""

import itertools
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.rooms import a_run, a_workspace, put
from tiro.tools.ignore import Ignore
from tiro.tools.patterns import alternatives, parts_of, path_pattern, with_stars
from tiro.tools.walk import Walk

MATCHES = [
    ("*.env", ".env", True),
    ("*.env", "a/b/prod.env", True),
    ("*.env", "env", False),
    ("*.env.*", ".env.local", True),
    ("src/*", "src/a", True),
    ("src/*", "src/a/b", False),
    ("src/**", "src/a/b", True),
    ("src/**", "src", False),
    ("**/a", "a", True),
    ("**/a", "x/y/a", True),
    ("**/a/**", "x/a/b/c", True),
    ("a/**/b", "a/b", True),
    ("a/**/b", "a/x/y/b", True),
    ("a/**/b", "a/x/y/c", False),
    ("**/x/**/y", "x/x/z/y", True),
    ("/a", "a", True),
    ("/a", "b/a", False),
    ("A", "a", False),
    ("a?c", "abc", True),
    ("a?c", "a/c", False),
    ("[!a]", "b", True),
    ("**", "a/b", True),
    ("a//b/./c", "a/b/c", True),
    ("a.c", "abc", False),
]


@pytest.mark.parametrize(("pattern", "path", "expected"), MATCHES)
def test_pattern(pattern: str, path: str, expected: bool) -> None:
    assert path_pattern(pattern).matches(parts_of(path)) is expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a", ["a"]),
        ("{a,b}.c", ["a.c", "b.c"]),
        ("{a,b}{c,d}", ["ac", "ad", "bc", "bd"]),
        ("x{a,{b,c}}", ["xa", "xb", "xc"]),
        ("{a}", ["{a}"]),
        ("{a,}", ["a", ""]),
    ],
)
def test_alternatives(pattern: str, expected: list[str]) -> None:
    assert sorted(alternatives(pattern)) == sorted(expected)


def test_pattern_never_backtracks_for_long() -> None:
    assert not path_pattern("*a" * 500 + "b").matches(["a" * 4000])
    assert not path_pattern("**/" * 200 + "b").matches(["a"] * 200)


WORDS = st.sampled_from(["a", "b", "ab", "**", "*", "?", "a*", "[ab]", "[!a]", "**b"])


@given(st.lists(WORDS, min_size=1, max_size=5), st.lists(st.sampled_from("ab"), max_size=5))
def test_pattern_means_what_its_slow_definition_says(pattern: list[str], path: list[str]) -> None:
    text = "/" + "/".join(pattern)
    parts = [*pattern, "*"] if pattern[-1] == "**" else pattern
    assert path_pattern(text).matches(path) is slow_match(parts, path)


@given(
    st.lists(WORDS, min_size=1, max_size=4),
    st.lists(st.sampled_from("ab"), max_size=5),
    st.sampled_from(["/", ""]),
)
def test_a_pattern_reaches_what_lies_in_a_folder_that_it_fits(
    words: list[str], path: list[str], start: str
) -> None:
    pattern = path_pattern(start + "/".join(words))
    above = range(len(path), 0 if path else -1, -1)
    found = [pattern.matches(path[:at]) for at in above]
    is_loose = words[-1] not in ("*", "**")
    assert pattern.reaches(path) is (any(found) if is_loose else found[0])


def slow_match(pattern: list[str], path: list[str]) -> bool:
    """The definition, by trying everything."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(slow_match(pattern[1:], path[i:]) for i in range(len(path) + 1))
    return (
        bool(path)
        and path_pattern(f"/{pattern[0]}").matches(path[:1])
        and slow_match(pattern[1:], path[1:])
    )


RULES = {
    "by name": "node_modules\n*.log\n!keep.log\n",
    "anchored": "/build\n/src/*.o\nsub/x\n",
    "folders only": "out/\ndoc/**/gen/\n",
    "taken back inside": "a/*\n!a/b\n",
    "no way back": "a/\n!a/b\n",
    "escapes": "\\#x\n\\!y\nz\\*\n# comment\n\n  \nt \n",
    "classes": "[ab].c\n[^c].d\n[!c].e\n",
    "stars": "**/gen\nsrc/**\n!src/keep\nfoo/**/bar\n",
    "odd": "[\n\\\n/\n!\n//\n***\n",
}
PATHS = [
    *("node_modules/x", "a/node_modules/x", "x.log", "keep.log", "d/keep.log", "build/x"),
    *("a/build", "src/x.o", "src/d/x.o", "sub/x", "d/sub/x", "out", "d/out/x", "doc/gen/x"),
    *("doc/a/b/gen/x", "a/b", "a/c", "a/b2/c", "#x", "!y", "z*", "zz", "t", "a.c", "b.c", "c.c"),
    *("a.d", "c.d", "a.e", "c.e", "x/gen", "src/keep", "foo/bar", "foo/x/y/bar", "[", "x y"),
]


@pytest.mark.parametrize("name", RULES)
def test_ignore_rules_are_those_of_git(tmp_path: Path, name: str) -> None:
    """Every file of a tree, with rules at the top and further down, as `git ls-files` sees it."""
    (tmp_path / ".gitignore").write_text(RULES[name])
    for path in PATHS:
        folders = itertools.accumulate(Path(path).parts[:-1], "{}/{}".format)
        is_free = not any((tmp_path / folder).is_file() for folder in folders)
        if is_free and not (tmp_path / path).is_dir():
            put(tmp_path, path)
    put(tmp_path, "d/.gitignore", "!x.log\nkeep.log\n*.tmp\n")
    put(tmp_path, "d/x.log")
    put(tmp_path, "d/e/y.tmp")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    done = subprocess.run(
        ["git", "ls-files", "-z", "--others", "--exclude-standard"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert sorted(visible(tmp_path)) == sorted(filter(None, done.stdout.split("\0")))


def visible(root: Path) -> list[str]:
    """The files that a walk does not leave out."""
    run = a_run(a_workspace(root))
    entries = Walk(run.workspace, run.workspace.inside("."), run.cancelled)
    return [
        entry.path.relative_to(root).as_posix()
        for entry in entries
        if entry.kind == "file" and not entry.is_left_out
    ]


def test_ignore_without_rules_leaves_nothing_out() -> None:
    assert not Ignore().leaves_out(["a"], is_directory=False)
    assert Ignore().below(0, ["", "# x"]) == Ignore()


@given(st.text("ab*.", max_size=12), st.text("ab.", max_size=12))
def test_a_star_stands_for_any_characters(pattern: str, word: str) -> None:
    slow = ".*".join(map(re.escape, pattern.split("*")))
    assert bool(with_stars(pattern).fullmatch(word)) == bool(re.fullmatch(slow, word))


def test_many_stars_take_no_time() -> None:
    """A name that somebody chose for it took hours: this test would not end."""
    assert with_stars("*a" * 50 + "b").fullmatch("a" * 5_000) is None
