"""How cost grows with the history, from 100 to 100,000 messages: a point for each length.

What must not grow is marked as flat: it touches the window or a page, however long the history is.
All lengths are measured in turn, so that a busy moment hits each of them.
"""

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench import emacs
from tests.bench.deltas import Provider, ask, configured
from tests.bench.row import in_words, timed
from tests.bench.talks import CYCLE, WINDOW, talk, write_session
from tests.bench.wire import Server
from tests.sizes import sized
from tiro.session.provider_view import provider_view
from tiro.stores.manager import SessionManager
from tiro.stores.search import Search

if TYPE_CHECKING:
    from tiro import Session

SIZES = sized(fast=10_000, normal=100_000, long=100_000)
LENGTHS = [length for length in (100, 1_000, 10_000, 100_000) if length <= SIZES]
SESSION_MESSAGES = 100
"""In each session of the directory that is listed and searched."""
LISTED_CHARACTERS = 250
LOOKED = 100
"""Messages of a page."""

Act = Callable[[], object]
Seconds = dict[int, float]


@dataclass(frozen=True)
class Curve:
    """Seconds by the number of messages in the history."""

    what: str
    is_flat: bool
    """Whether it must cost the same however long the history is."""
    seconds: Seconds

    def growth(self) -> float:
        """The cost with the longest history over that with the shortest."""
        return self.seconds[max(self.seconds)] / self.seconds[min(self.seconds)]


def curves() -> list[Curve]:
    """All of them."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as open_things:
        root = Path(folder)
        return [
            *library(root / "library", open_things),
            *wire(root / "wire", open_things),
            *directories(root / "directories", open_things),
            emacs_delta(),
        ]


def table(found: list[Curve]) -> str:
    """The curves as a Markdown table."""
    lengths = sorted(found[0].seconds)
    heads = "".join(f" {length:,} |" for length in lengths)
    lines = [f"| cost with so many messages |{heads} growth | must be flat |"]
    lines.append("|---|" + "--:|" * (len(lengths) + 1) + "---|")
    for curve in found:
        cells = "".join(f" {in_words(curve.seconds[length])} |" for length in lengths)
        flat = "yes" if curve.is_flat else "no"
        lines.append(f"| {curve.what} |{cells} {curve.growth():.2f} x | {flat} |")
    return "\n".join(lines)


def measured(what: str, acts: dict[int, Act], times: int, is_flat: bool, share: int = 1) -> Curve:
    """The lower quartile of each length, all of them measured in turn.

    So what else the machine does counts little. `share`: how often an act does it.
    """
    for act in acts.values():
        act()  # what is made once, such as weights and indexes, is no part of it
    taken: dict[int, list[float]] = {length: [] for length in acts}
    for _ in range(times):
        for length, act in acts.items():
            taken[length].append(timed(act))
    return Curve(what, is_flat, {n: _quartile(seconds) / share for n, seconds in taken.items()})


def _quartile(seconds: list[float]) -> float:
    return sorted(seconds)[len(seconds) // 4]


def library(root: Path, open_things: ExitStack) -> list[Curve]:
    """What happens below the protocol: a session with its files, its window whole or bounded."""
    whole, full = _Kept(root / "whole", lambda _: None), _Kept(root / "full", lambda n: n)
    bounded = _Kept(root / "bounded", lambda _: WINDOW)
    for kept in (whole, full, bounded):
        open_things.callback(kept.close)
    return [
        measured("add, no limit", whole.acts(whole.add), 300, True),
        measured(f"add to a window of {WINDOW}", bounded.acts(bounded.turn), 100, True, CYCLE),
        measured("add to a window that is full", full.acts(full.turn), 100, True, CYCLE),
        measured("save what was added: add and fsync", whole.acts(whole.sync), 60, True),
        measured("save the whole snapshot", whole.acts(whole.save), 5, False),
        measured("load", whole.acts(whole.load), 5, False),
        measured("provider_view of all", whole.acts(whole.view), 5, False),
        measured("search in it while it is live", whole.acts(whole.search), 3, False),
        measured(f"provider_view of {WINDOW}", bounded.acts(bounded.view), 40, True),
    ]


class _Kept:
    """A session of each length, live in a manager of its own."""

    def __init__(self, root: Path, window: Callable[[int], int | None]) -> None:
        self._managers: dict[int, SessionManager] = {}
        self._sessions: dict[int, Session] = {}
        self._searches: dict[int, Search] = {}
        for length in LENGTHS:
            directory = root / str(length)
            directory.mkdir(parents=True)
            rows = [talk(n) for n in range(length)]
            path = write_session(directory / "talk.json", rows, window(length))
            manager = SessionManager(directory, cache_directory=root / f"cache-{length}")
            self._managers[length], self._searches[length] = manager, Search(manager)
            self._sessions[length] = self._managers[length].load(path)

    def acts(self, act: Callable[[int], object]) -> dict[int, Act]:
        """This for each length."""
        return {length: partial(act, length) for length in LENGTHS}

    def add(self, length: int) -> None:
        """Add a message, which is in the journal then."""
        session = self._sessions[length]
        session.append_message(talk(session.next_seq - 1))

    def turn(self, length: int) -> None:
        """Add so many messages that one of them uses a tool."""
        for _ in range(CYCLE):
            self.add(length)

    def sync(self, length: int) -> None:
        """Add a message and wait until it is on the disk itself."""
        manager, session = self._managers[length], self._sessions[length]
        with manager.writing(session):  # which ends with fsync
            self.add(length)

    def save(self, length: int) -> None:
        """Write all of it."""
        self._managers[length].save(self._sessions[length])

    def load(self, length: int) -> None:
        """Read it as another process does."""
        path = self._managers[length].path_of(self._sessions[length])
        assert path is not None
        with SessionManager(path.parent) as reader:
            reader.load(path)

    def view(self, length: int) -> None:
        """Make the messages of a request."""
        session = self._sessions[length]
        provider_view(session.oldest_first(), session.archive_rows)

    def search(self, length: int) -> None:
        """Search it as it is in memory."""
        self._searches[length].find("rareword", 20, [self._sessions[length]])

    def close(self) -> None:
        """Let go of all of them."""
        for length, manager in self._managers.items():
            self._searches[length].close()
            manager.close()


def wire(root: Path, open_things: ExitStack) -> list[Curve]:
    """What an editor waits for: requests to the real server."""
    provider = Provider()
    open_things.callback(provider.close)
    whole, bounded = dict[int, Server](), dict[int, Server]()
    for length in LENGTHS:
        rows = [talk(n) for n in range(length)]
        for servers, window in ((whole, None), (bounded, WINDOW)):
            home = root / f"{length}-{window}"
            path = write_session(home / "tiro" / "sessions" / "talk.json", rows, window)
            servers[length] = configured(home, provider.url)
            open_things.callback(servers[length].end)
            servers[length].request("tiro/session/load", {"path": str(path), "limit": 1})

    def each(servers: dict[int, Server], method: str, **params: object) -> dict[int, Act]:
        return {n: partial(server.request, method, params) for n, server in servers.items()}

    page = {"limit": LOOKED}
    get, size = "tiro/session/get", "tiro/session/contextSize"
    return [
        measured("get of all", each(whole, get), 5, False),
        measured(f"get of a page of {LOOKED}", each(bounded, get, **page), 40, True),
        measured("contextSize of all", each(whole, size), 10, False),
        measured(f"contextSize of a window of {WINDOW}", each(bounded, size), 40, True),
        _prompt(bounded, provider),
    ]


def _prompt(servers: dict[int, Server], provider: Provider) -> Curve:
    """From the editor's prompt to the provider's request, in a window that is bounded."""

    def prompt(server: Server) -> float:
        began = time.perf_counter()
        ask(server, provider)
        return provider.asked - began

    taken = {length: [prompt(server)] for length, server in servers.items()}
    for _ in range(15):
        for length, server in servers.items():
            taken[length].append(prompt(server))
    seconds = {length: _quartile(taken[length][1:]) for length in taken}
    return Curve("prompt, until the provider is asked", is_flat=True, seconds=seconds)


def directories(root: Path, open_things: ExitStack) -> list[Curve]:
    """Lists and searches over so many messages, in sessions of a hundred."""
    lists, searches = dict[int, Act](), dict[int, Act]()
    for length in LENGTHS:
        directory = root / str(length) / "sessions"
        directory.mkdir(parents=True)
        for first in range(0, length, SESSION_MESSAGES):
            rows = [talk(n, LISTED_CHARACTERS) for n in range(first, first + SESSION_MESSAGES)]
            write_session(directory / f"talk-{first}.json", rows)
        manager = SessionManager(directory, cache_directory=root / str(length) / "cache")
        search = Search(manager)
        open_things.callback(manager.close)
        open_things.callback(search.close)
        lists[length] = partial(manager.list, limit=100)
        searches[length] = partial(search.find, "parser 42", 20)
    return [
        measured(f"list of sessions of {SESSION_MESSAGES}", lists, 20, False),
        measured("search in them", searches, 10, False),
    ]


def emacs_delta() -> Curve:
    """A delta in Emacs, drawn, below so many messages."""
    seconds = emacs.delta_seconds(LENGTHS)
    return Curve("Emacs: a delta, drawn", is_flat=True, seconds=seconds)
