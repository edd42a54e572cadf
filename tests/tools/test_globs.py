"""A `*` stands for the names that shells find, or for none that is certain."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.sizes import PATIENCE
from tiro.tools.command_line import parse_command_line, parse_with_globs
from tiro.tools.globs import UncertainError, expanded_words

SHELLS = [shell for shell in ("sh", "bash", "dash") if shutil.which(shell)]


def words_of(line: str, folder: Path) -> tuple[str, ...]:
    """The words of the last command of a line."""
    found = parse_with_globs(line)
    assert found.unplain is None
    return expanded_words(found, len(found.commands) - 1, folder)


def test_random_patterns_stand_for_what_shells_find(tmp_path: Path) -> None:
    chance = random.Random(48)
    for name in ("a", "ab.c", "b", ".h", "a-b", "d/a", "d/.h", "d/e/ab", "ba/c.c", "a.b/b", "x y"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (tmp_path / "link").symlink_to("d")
    (tmp_path / "broken").symlink_to("nowhere")
    patterns = ["".join(chance.choices("aabcd.*/**-e", k=chance.randint(1, 6))) for _ in range(900)]
    sure = {}
    for pattern in dict.fromkeys(patterns):
        line = parse_with_globs(f"ls {pattern}")
        if line.globs and not pattern.startswith("/"):
            try:
                sure[pattern] = expanded_words(line, 0, tmp_path)[1:]
            except UncertainError:
                continue
    assert len(sure) > 100
    script = "".join(f"printf '<%s>' {pattern}\necho\n" for pattern in sure)
    for shell in SHELLS:
        done = subprocess.run(
            [shell], input=script, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE
        )
        shown = [sorted(one[1:-1].split("><")) for one in done.stdout.split("\n")[:-1]]
        assert shown == [sorted(names) for names in sure.values()]


@pytest.mark.parametrize(
    "line",
    ["ls .*", "ls a//*", "ls nothing && make && ls *", "make | ls *", "cd das* && ls *",
     "make b* && make b*",
     "cp sub *", "cp a *", "python *", "sed -n *", "tar *", "ls -*", "timeout 5 sed *"],
)  # fmt: skip
def test_pattern_that_is_not_certain(tmp_path: Path, line: str) -> None:
    for name in ("a", "b", "dash/-x", "-x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    with pytest.raises(UncertainError):
        words_of(line, tmp_path)


@pytest.mark.parametrize("line", ["*", "a '*'b*", 'a b"c"*', "a **", "a $?*", "a {b,*}", "a ~*"])
def test_pattern_that_no_line_may_have(line: str) -> None:
    assert parse_with_globs(line).unplain


def test_line_with_a_pattern_is_plain_only_for_whoever_looks_it_up() -> None:
    assert parse_command_line("ls *").unplain
    assert parse_with_globs("ls a *b").globs == ((0, 2),)
    assert parse_with_globs("ls '*'").globs == ()
