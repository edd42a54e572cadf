"""The agents in files: the user's and the workspaces', read anew when a file changes (M5.11).

A workspace is not trusted: its agents take no name that there is already.
"""

import re
import threading
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from tiro.agents.agent_files import AgentFiles, read_agents
from tiro.agents.agent_info import AgentInfo
from tiro.agents.registry import AgentRegistry
from tiro.tools.silent_disk import Patience, SilentDiskError

NO_DEFAULT = "The default agent {!r} cannot be selected, so {!r} answers; there are {}"
NO_AGENT = (
    "The default agent {!r} cannot be selected, and no other one: all are hidden or subagents;"
    " let one of them be seen"
)

NOT_ASKED = (
    "{}: nothing asks this agent: it is hidden, and what leaves the window is summed up without an"
    " agent; let it be seen to choose it"
)

Stamp = tuple[str, int, int, int]


class AgentFolders:
    """Keeps a registry true to what lies in the folders."""

    def __init__(
        self, directory: Path, roots: Sequence[Path], default: str, patience: Patience | None = None
    ) -> None:
        self.registry = AgentRegistry()
        self.problems: list[str] = []
        """What is wrong with the files, one sentence each."""
        self._own = directory / "agents"
        self._roots = roots
        self._default = default
        self._patience = patience or Patience()
        self._stamps: list[Stamp] | None = None
        self._looking = threading.Lock()
        self.look()

    def look(self) -> list[str]:
        """Read the files anew where one changed; what is wrong now and was not before.

        From any thread: it may wait for a disk, for as long as its patience lasts.
        """
        with self._looking:
            return self._look()

    def _look(self) -> list[str]:
        stamps = sorted(self._stamped())
        if stamps == self._stamps:
            return []
        found = AgentRegistry()
        folders = [(self._own, None), *((_folder_of(root), root) for root in self._roots)]
        files = [(folder, _read(folder, root, self._patience)) for folder, root in folders]
        problems = [*_add_agents(found, files)]
        problems += _choose_default(found, self._default)
        before, self.problems = self.problems, problems
        is_whole = all(here.is_whole for _, here in files)
        self._stamps = stamps if is_whole else None  # the disk may be back, with the same files
        self.registry.adopt(found)
        return [problem for problem in problems if problem not in before]

    def _stamped(self) -> Iterator[Stamp]:
        """What changes with each file, or with another in its place."""
        for folder in (self._own, *map(_folder_of, self._roots)):
            try:
                yield from self._patience.ask(folder, partial(_stamps_in, folder))
            except SilentDiskError:
                yield (str(folder), 0, 0, 0)


def _stamps_in(folder: Path) -> list[Stamp]:
    try:
        return [_stamp(path) for path in folder.glob("*.md")]
    except OSError:  # a disk that fails
        return [(str(folder), 0, 0, 0)]


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError:  # such as a link that leads nowhere
        return (str(path), 0, 0, 0)
    return (str(path), found.st_mtime_ns, found.st_size, found.st_ino)


def _read(folder: Path, root: Path | None, patience: Patience) -> AgentFiles:
    try:
        return patience.ask(folder, lambda: read_agents(folder, root))
    except SilentDiskError as error:
        return AgentFiles([], [f"{folder}{error}; its agents are not there"], is_whole=False)


_LOOKS_LIKE = str.maketrans(
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445"
    "\u0455\u0456\u0458\u0501\u04bb\u04cf\u051b\u051d\u0261\u0131"
    "\u03b1\u03b5\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7\u0578\u057d\u0585"
    "01i",
    "abekmhopctyxsljdhlqwglaelkvoptuxnuooll",
)
"""Letters that are drawn as Latin ones: Cyrillic, two of phonetics, Greek, Armenian; digits."""


def _alike(name: str) -> Callable[[str], bool]:
    """The test for names that a reader may take for this one: only letters and digits count.

    Accents do not, and letters of other alphabets are what they look like.
    """

    def folded(one: str) -> str:
        bare = unicodedata.normalize("NFKD", one).casefold().translate(_LOOKS_LIKE)
        return re.sub(r"[\W_]", "", bare)

    return lambda other: other == name or folded(other) == folded(name)


def _add_agents(agents: AgentRegistry, files: Sequence[tuple[Path, AgentFiles]]) -> Iterator[str]:
    """Register the user's own agents, then those of workspaces; what is wrong with them."""
    (own, found), *others = files
    yield from found.problems
    for agent in found.agents:
        yield from _register(agents, agent, own)
    for folder, here in others:
        yield from here.problems
        for agent in here.agents:
            alike = next(filter(_alike(agent.name), agents.names(hidden=True)), None)
            if alike is None:
                yield from _register(agents, agent, folder)
            else:
                yield (
                    f"{folder / agent.name}.md: there is an agent {alike!r} already; a"
                    " workspace cannot replace it, nor add one that looks like it"
                )


def _choose_default(agents: AgentRegistry, wanted: str) -> list[str]:
    """Make the wanted agent the default, else one that a user may choose (M5.5); what is wrong."""
    names = [agent.name for agent in agents.selectable()]
    chosen = next((name for name in (wanted, agents.default, *names) if name in names), None)
    if chosen is None:
        return [NO_AGENT.format(wanted)]
    agents.set_default(chosen)
    return [] if chosen == wanted else [NO_DEFAULT.format(wanted, chosen, ", ".join(names))]


def _folder_of(root: Path) -> Path:
    return root / ".tiro" / "agents"


def _register(agents: AgentRegistry, agent: AgentInfo, folder: Path) -> Iterator[str]:
    """Add an agent of a file; what keeps it from being one, such as its name, or of use."""
    if agent.hidden and agent.name == "summary":
        yield NOT_ASKED.format(folder / "summary.md")
    try:
        agents.register(agent)
    except ValueError as error:
        yield f"{str(folder / agent.name) + '.md'!r}: {error}; it is not loaded"
