"""Other names of a file that rules may speak of: hard links, and links in what a rule names.

A file with several names is looked for among those that rules forbid, as far as a budget lasts: in
the workspace, and where the rules' patterns lead outside. What is not found by then has one name.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from tiro.agents.path_patterns import names_in
from tiro.agents.walks import Budget

MAX_LOOKED_AT = 20_000
"""So many entries of folders are looked at for names of linked files."""

Inode = tuple[int, int]


class OtherNames:
    """The other names of files, for the rules of one agent. Asks the disk."""

    def __init__(
        self,
        patterns: Iterable[str],
        roots: Sequence[Path],
        matters: Callable[[str], bool],
        budget: Budget,
    ) -> None:
        self._roots, self._matters, self._budget = roots, matters, budget
        self._written = {
            head: rest for one in patterns for head, rest in names_in(one, [*map(str, roots)])
        }
        self._links = [
            (Path(real), Path(head))
            for head in self._written
            if (real := os.path.realpath(head)) != head
        ]
        self._linked: dict[Inode, list[Path]] | None = None

    def of(self, path: Path) -> list[Path]:
        """The other names of what has this real path that may matter."""
        led = [
            head / path.relative_to(real) for real, head in self._links if path.is_relative_to(real)
        ]
        inode = inode_of(path)
        if inode is None:
            return led
        if self._linked is None:
            self._linked = self._look()
        return [*led, *(one for one in self._linked.get(inode, ()) if one != path)]

    def _look(self) -> dict[Inode, list[Path]]:
        """The names of files with several that may matter, by file."""
        found: dict[Inode, list[Path]] = {}
        starts = [(Path(head), rest in ("", "**")) for head, rest in self._written.items()]
        for path, _ in starts:
            if (inode := inode_of(path)) is not None:
                found.setdefault(inode, []).append(path)
        waiting = [*starts, *((root, False) for root in self._roots)]
        for path in self._walk(waiting):
            if (inode := inode_of(path)) is not None:
                found.setdefault(inode, []).append(path)
        return found

    def _walk(self, waiting: list[tuple[Path, bool]]) -> Iterator[Path]:
        left, seen = MAX_LOOKED_AT, {path for path, _ in waiting}
        for folder, is_named in waiting:
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        left -= 1
                        if left < 0 or not self._budget.spend():
                            return
                        is_taken = is_named or self._matters(entry.name)
                        if not entry.is_dir(follow_symlinks=False):
                            yield from [Path(entry.path)] if is_taken else []
                        elif (path := Path(entry.path)) not in seen:
                            seen.add(path)
                            waiting.append((path, is_taken))
            except OSError:
                continue


def inode_of(path: Path) -> Inode | None:
    """What tells a file with several names; None for any other."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    is_linked = stat.S_ISREG(status.st_mode) and status.st_nlink > 1
    return (status.st_dev, status.st_ino) if is_linked else None
