"""Which files a `git diff` is about: git itself is asked, where it can run nothing else.

Law: where it is not certain that git takes its words for commits and for paths in the repository,
there is no answer. What it then shows is the text of these files, and of no other.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tiro.session.secrets import KnownSecrets
from tiro.tools.command_line import word_set
from tiro.tools.environment import absolute_path, command_environment, reading_environment
from tiro.tools.git_settings import repository_above, repository_doubt
from tiro.tools.given_options import is_option
from tiro.tools.readers import only_reads

MAX_SECONDS = 2.0
"""Where git takes longer to say it, there is no answer."""

_SAID = word_set("--cached --staged --merge-base")
"""What decides which files they are; other options only leave some out, or show less."""
_SEEKING = re.compile(r"-[A-Za-z0-9]*C|--find-copies")
"""With such an option it may show the text of files that did not change."""
_COMMIT = r"(?:HEAD|@|\w[\w./-]*(?:[~^]\d*)+)"
_COMMITS = re.compile(rf"{_COMMIT}|{_COMMIT}?\.\.\.?{_COMMIT}?", re.ASCII)
"""Whatever a name stands for, git takes these for commits."""


def diffed_paths(words: Sequence[str], folder: Path) -> Sequence[Path] | None:
    """The files whose text `git diff`, run in a folder to only read, shows; None where unsure.

    The folder is a real path. Asks the disk, and waits for git.
    """
    if list(words[:2]) != ["git", "diff"] or only_reads(words, deep=True) is None:
        return None
    tree, rest = repository_above(folder), words[2:]
    front = rest[: rest.index("--")] if "--" in rest else rest
    options = [word for word in front if is_option(word)]
    named = [word for word in front if not is_option(word)]
    paths = [word for word in rest[len(front) :] if word != "--"]
    there = [word for word in named if os.path.lexists(folder / word)]
    is_sure = all(_COMMITS.fullmatch(word) or word in there for word in named)
    if front != rest:
        is_sure = all(map(_COMMITS.fullmatch, named))
    if tree is None or not is_sure or any(map(_SEEKING.match, options)):
        return None
    if not all(_is_in(tree, folder, path) for path in (*paths, *there)):
        return None
    if repository_doubt(folder) is not None:
        return None
    said = [word for word in options if word in _SAID]
    names = _names([*said, *named, *rest[len(front) :]], folder)
    return None if names is None else [tree / name for name in names]


def _is_in(tree: Path, folder: Path, path: str) -> bool:
    """Whether a path, by its name, is one in the repository; with a `:` it may mean anything."""
    return ":" not in path and Path(os.path.normpath(folder / path)).is_relative_to(tree)


def _names(words: Sequence[str], folder: Path) -> list[str] | None:
    """What git calls the files of a diff with these words, or None where it says nothing."""
    environment = reading_environment(command_environment(os.environ, KnownSecrets()))
    git = shutil.which("git", path=absolute_path(environment))
    asked = ("diff", "--name-only", "-z", "--no-renames", "--no-relative", *words)
    try:
        done = subprocess.run(
            [git or "git", *asked],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=MAX_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    if done.returncode != 0:
        return None
    return [name.decode("utf-8", "surrogateescape") for name in done.stdout.split(b"\0") if name]
