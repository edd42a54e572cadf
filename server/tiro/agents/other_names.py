"""Other names of a file that rules may speak of: hard links, and links in what a rule names.

A file with several names is looked for among those that rules forbid, up to a number of entries: in
the workspace, and where the rules' patterns lead outside. What is not among these has one name.
"""

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tiro.agents.path_patterns import names_in

MAX_LOOKED_AT = 20_000
"""So many entries of folders are looked at for names of linked files, however long that takes."""

Inode = tuple[int, int]


class OtherNames:
    """The other names of files, for the rules of one agent. Asks the disk."""

    def __init__(
        self,
        patterns: Iterable[str],
        roots: Sequence[Path],
        matters: Callable[[str], bool],
    ) -> None:
        self._roots, self._matters = roots, matters
        heads = {head for one in patterns for head in names_in(one, [*map(str, roots)])}
        self._heads = sorted(heads)
        self._links = [
            (Path(real), Path(head))
            for head in self._heads
            if (real := os.path.realpath(head)) != head
        ]
        self._names: dict[int, list[str]] | None = None

    def of(self, path: Path) -> list[Path]:
        """The other names of what has this real path that a rule may mean."""
        links = ((real, head) for real, head in self._links if path.is_relative_to(real))
        led = [head / path.relative_to(real) for real, head in links]
        inode = inode_of(path)
        if inode is None:
            return led
        if self._names is None:
            self._names = self._look()
        others = (Path(name) for name in self._names.get(inode[1], ()) if name != str(path))
        meant = (one for one in others if any(map(self._matters, one.parts)))
        return [*led, *(one for one in meant if inode_of(one) == inode)]

    def may_have(self, entry: os.DirEntry[str]) -> bool:
        """Whether what lies in a folder may have another name; no more is asked than its status."""
        if any(entry.path.startswith(str(real)) for real, _ in self._links):
            return True
        try:
            return (
                entry.is_file(follow_symlinks=False)
                and entry.stat(follow_symlinks=False).st_nlink > 1
            )
        except OSError:
            return False

    def _look(self) -> dict[int, list[str]]:
        """The names of all files, by their number on their disk."""
        found: dict[int, list[str]] = {}
        for head in self._heads:
            if (inode := inode_of(Path(head))) is not None:
                found.setdefault(inode[1], []).append(head)
        left, waiting = MAX_LOOKED_AT, dict.fromkeys([*self._heads, *map(str, self._roots)])
        while waiting:
            folder = next(iter(waiting))
            del waiting[folder]
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        left -= 1
                        if left < 0:
                            return found
                        if entry.is_dir(follow_symlinks=False):
                            waiting[entry.path] = None
                        else:
                            found.setdefault(entry.inode(), []).append(entry.path)
            except OSError:
                continue
        return found


def inode_of(path: Path) -> Inode | None:
    """What tells a file with several names; None for any other."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    is_linked = stat.S_ISREG(status.st_mode) and status.st_nlink > 1
    return (status.st_dev, status.st_ino) if is_linked else None
