"""Providers and servers for the end-to-end tests: one shared pair a module, more on request."""

import contextlib
import functools
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e import command, warm
from tests.e2e.client import TIRO, RpcError, Server
from tests.e2e.command import Tiro
from tests.e2e.home import SERVER, Home
from tests.e2e.provider import Provider
from tests.e2e.tmux import Chat
from tests.e2e.warm import WarmProcess

StartServer = Callable[..., Server]
Piped = Callable[..., subprocess.CompletedProcess[str]]
Tell = Callable[[str, object], None]
"""pytest's `record_property`: how much a test tried, for a row of `tests/trust.py`."""


@pytest.fixture(scope="module")
def module_provider() -> Iterator[Provider]:
    with Provider() as running:
        yield running


@pytest.fixture
def provider(module_provider: Provider) -> Iterator[Provider]:
    """The strict provider of this module, clean; a test that made it refuse anything fails."""
    module_provider.reset()
    yield module_provider
    assert module_provider.refused == []


@pytest.fixture(scope="module")
def shared_server(
    module_provider: Provider,
    tmp_path_factory: pytest.TempPathFactory,
    warmth: WarmProcess | None,
) -> Iterator[Server]:
    home = Home(tmp_path_factory.mktemp("shared") / "home", module_provider)
    with Server(home, warm=warmth) as running:
        running.initialize()
        yield running


@pytest.fixture
def server(shared_server: Server, provider: Provider) -> Iterator[Server]:
    """The running server of this module with a new session and an empty workspace."""
    shared_server.request("tiro/session/clear")
    shared_server.forget()
    yield shared_server
    shared_server.reset_handlers()
    if shared_server.process.poll() is None:
        shared_server.resume_reading()
        with contextlib.suppress(RpcError):  # what a test broke must not hide what it found
            shared_server.request("tiro/turn/cancel")
    shared_server.check()


@pytest.fixture
def home(provider: Provider, tmp_path: Path) -> Home:
    """A home of this test's own, configured for the provider."""
    return Home(tmp_path / "home", provider)


@pytest.fixture(scope="session")
def warm_process() -> Iterator[WarmProcess | None]:
    """The process that further servers are forked from, where that is possible."""
    if not warm.is_possible():
        yield None
        return
    process = WarmProcess(str(SERVER))
    yield process
    process.close()


@pytest.fixture(scope="module")
def warmth(request: pytest.FixtureRequest) -> WarmProcess | None:
    """None where this module says REAL_PROCESSES = True: what it tests begins with the start."""
    if getattr(request.module, "REAL_PROCESSES", False):
        return None
    process: WarmProcess | None = request.getfixturevalue("warm_process")
    return process


@pytest.fixture
def tiro(home: Home, warmth: WarmProcess | None) -> Tiro:
    """Run `tiro` with these words to its end: `tiro("ask", "-", given="What?")`."""
    return functools.partial(command.run, home, warm=warmth)


@pytest.fixture
def chat(home: Home) -> Iterator[Chat]:
    """A chat in a terminal of its own: `chat.start()`."""
    one = Chat(home)
    yield one
    one.close()


@pytest.fixture
def piped(tiro: Tiro) -> Piped:
    """A chat that reads a pipe: `piped("first\\nsecond\\n")`."""
    return lambda given, *words: tiro("chat", *words, given=given)


@pytest.fixture
def start(home: Home, warmth: WarmProcess | None) -> Iterator[StartServer]:
    """Start servers of this test's own: `start()`, or `start(initialize=False, env=…)`."""
    running: list[Server] = []

    def start_server(*, initialize: bool = True, at: Home | None = None, **given: object) -> Server:
        hello = {k: given.pop(k) for k in ("settings", "roots", "features") if k in given}
        if tuple(given.get("command", TIRO))[: len(TIRO)] == TIRO:  # type: ignore[arg-type]
            given["warm"] = warmth
        one = Server(at or home, **given)  # type: ignore[arg-type]  # passed through as given
        running.append(one)
        if initialize:
            one.initialize(**hello)
        return one

    yield start_server
    for one in running:
        one.close()
    for one in running:
        one.check()
