"""When the settings of a repository could make a git that only reads run something (B49)."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tiro.tools.git_index import followed_files, submodules_of
from tiro.tools.git_settings import READING_HOOKS, followed_paths, repository_doubt


def git(folder: Path, *words: str) -> str:
    names = ("-c", "user.email=a@b", "-c", "user.name=n", "-c", "protocol.file.allow=always")
    done = subprocess.run(
        ["git", *names, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with one commit."""
    folder = (tmp_path / "ws").resolve()
    (folder / "sub").mkdir(parents=True)
    (folder / "a").write_text("a\n")
    git(folder, "init", "-q")
    git(folder, "add", "a")
    git(folder, "commit", "-qm", "one")
    return folder


def configure(tree: Path, text: str) -> None:
    with (tree / ".git/config").open("a") as file:
        file.write(text)


def test_ordinary_repository_raises_no_doubt(tree: Path) -> None:
    git(tree, "remote", "add", "origin", "https://example.org/x.git")
    git(tree, "config", "branch.main.merge", "refs/heads/main")
    git(tree, "config", "user.name", "somebody")
    assert (repository_doubt(tree), repository_doubt(tree / "sub")) == (None, None)


def test_setting_that_every_command_gets_otherwise_raises_none(tree: Path) -> None:
    """Husky and large repositories have them; the environment of a command overrides both."""
    configure(tree, "[core]\n\thooksPath = .husky/_\n\tfsmonitor = true\n")
    assert repository_doubt(tree) is None


@pytest.mark.parametrize("place", [".git/hooks", ".husky/_"])
def test_hook_that_would_run_raises_a_doubt(tree: Path, place: str) -> None:
    configure(tree, "[core]\n\thooksPath = .husky/_\n")
    (tree / place).mkdir(parents=True, exist_ok=True)
    (tree / place / "post-index-change").write_text("x")
    assert place in (repository_doubt(tree, READING_HOOKS) or "")
    assert repository_doubt(tree, ["pre-commit"]) is None


def test_folder_without_a_repository_raises_none(tmp_path: Path) -> None:
    assert repository_doubt(tmp_path.resolve()) is None


SETTINGS = [
    ('[filter "e"]\n\tclean = x\n', "sets filter.e.clean"),
    ('[diff "e"]\n\ttextconv = x\n', "sets diff.e.textconv"),
    ("[Core]\n\tHooksPath = ~/x\n", "sets core.hookspath"),
    ("[core]\n\tsshCommand = x\n", "sets core.sshcommand"),
    ("[core]\n\tworktree = /\n", "sets core.worktree"),
    ("[gpg]\n\tprogram = x\n", "sets gpg.program"),
    ("[log]\n\tshowSignature\n", "sets log.showsignature"),
    ("[include]\n\tpath = x\n", "sets include.path"),
    ('[includeIf "gitdir:/"]\n\tpath = x\n', "sets includeif.gitdir:/.path"),
    ("[extensions]\n\tpartialClone = o\n", "sets extensions.partialclone"),
    ('[remote "o"]\n\tuploadpack = x\n', "sets remote.o.uploadpack"),
    ('[remote "o"]\n\tpromisor = true\n', "sets remote.o.promisor"),
    ("[core] fsmonitor = x\n", "unusual"),
    ("[user]\n\tname = a\\\n[core]\n", "unusual"),
    ("[diff.e]\n\ttextconv = x\n", "unusual"),
    ("[user]\n\tname = a\r[core]\n", "unusual"),
    ("[user]\n\tname = a\x0b\n", "unusual"),
]
"""What is written into a file of settings, and what is told of it."""


def test_setting_that_is_not_known_is_named(tree: Path) -> None:
    before = (tree / ".git/config").read_text()
    for text, told in SETTINGS:
        (tree / ".git/config").write_bytes((before + text).encode())
        doubt = repository_doubt(tree / "sub")
        assert doubt is not None, text
        assert told in doubt
        assert str(tree / ".git/config") in doubt


def test_settings_of_one_working_tree_count(tree: Path) -> None:
    (tree / ".git/config.worktree").write_text("[core]\n\tpager = x\n")
    assert "sets core.pager" in (repository_doubt(tree) or "")


def test_another_working_tree_is_where_git_says(tree: Path) -> None:
    other = tree.parent / "other"
    git(tree, "worktree", "add", "-q", str(other))
    assert repository_doubt(other) is None
    configure(tree, '[filter "e"]\n\tclean = x\n')
    assert "sets filter.e.clean" in (repository_doubt(other) or "")


def test_file_or_link_to_a_repository_elsewhere_is_doubted(tree: Path) -> None:
    for name in ("file", "link", "common"):
        (tree.parent / name).mkdir()
    (tree.parent / "file/.git").write_text(f"gitdir: {tree}/.git\n")
    (tree.parent / "link/.git").symlink_to(tree / ".git")
    git(tree.parent / "common", "init", "-q")
    (tree.parent / "common/.git/commondir").write_text(f"{tree}/.git\n")
    for name in ("file", "link", "common"):
        assert "elsewhere" in (repository_doubt(tree.parent / name) or ""), name


def test_repository_without_a_git_folder_is_doubted(tree: Path) -> None:
    git(tree, "init", "-q", "--bare", "sub/bare")
    assert "without a folder of its own" in (repository_doubt(tree / "sub/bare/refs") or "")


def empty(data: Path) -> None:
    """No file at all."""


def only_a_head(data: Path) -> None:
    (data / "HEAD").write_text("ref: refs/heads/main\n")


def odd_head(data: Path) -> None:
    whole(data)
    (data / "HEAD").write_text("nonsense\n")


def no_refs(data: Path) -> None:
    whole(data)
    (data / "refs").rmdir()


def whole(data: Path) -> None:
    only_a_head(data)
    for name in ("objects", "refs"):
        (data / name).mkdir()


@pytest.mark.parametrize("make", [empty, only_a_head, odd_head, no_refs])
def test_folder_that_git_passes_over_hides_no_repository_above(
    tree: Path, make: Callable[[Path], None]
) -> None:
    """B49: git goes on upwards, to settings and files that were not looked at."""
    configure(tree, '[filter "e"]\n\tclean = ./evil.sh\n')
    (tree / "sub/.git").mkdir()
    make(tree / "sub/.git")
    assert git(tree / "sub", "rev-parse", "--show-toplevel").strip() == str(tree)
    assert repository_doubt(tree / "sub")
    with pytest.raises(ValueError, match=r"sub/\.git"):
        list(followed_paths(tree / "sub"))


def test_whole_repository_within_another_is_looked_at_alone(tree: Path) -> None:
    configure(tree, '[filter "e"]\n\tclean = ./evil.sh\n')
    (tree / "sub/.git").mkdir()
    whole(tree / "sub/.git")
    assert git(tree / "sub", "rev-parse", "--show-toplevel").strip() == str(tree / "sub")
    assert repository_doubt(tree / "sub") is None


def test_settings_of_submodules_count(tree: Path) -> None:
    git(tree.parent, "clone", "-q", str(tree), "part")
    git(tree, "submodule", "add", "-q", str(tree.parent / "part"), "lib/part")
    assert submodules_of(tree / ".git") == ["lib/part"]
    assert (repository_doubt(tree), repository_doubt(tree / "lib/part")) == (None, None)
    git(tree / "lib/part", "config", "core.fsmonitor", "x")
    assert "sets core.fsmonitor" in (repository_doubt(tree) or "")
    git(tree / "lib/part", "config", "--unset", "core.fsmonitor")
    git(tree / "lib/part", "config", "filter.e.clean", "x")
    assert "sets filter.e.clean" in (repository_doubt(tree) or "")


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_index_lists_all_that_git_follows(tree: Path, version: str) -> None:
    for name in ("b", "sub/ä", "sub/deep/er", "sub/deep/file", "z" * 200):
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text("x")
    git(tree, "add", "-A")
    if version == "3":
        (tree / "later").write_text("x")
        git(tree, "add", "-N", "later")
    git(tree, "update-index", "--index-version", version)
    listed = git(tree, "ls-files", "-z").split("\0")[:-1]
    assert followed_files(tree / ".git") == listed


def test_index_that_is_not_understood_is_doubted(tree: Path) -> None:
    git(tree, "update-index", "--split-index")
    assert repository_doubt(tree) is not None


def test_file_that_never_ends_is_not_read(tree: Path) -> None:
    (tree / ".git/config").unlink()
    os.mkfifo(tree / ".git/config")
    assert "unusual" in (repository_doubt(tree) or "")
