"""What holds for every test: no network but loopback, a home and a config directory of its own."""

import asyncio
import gc
import inspect
import ipaddress
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests.run import ADDRESSES, SECRETS, hear_signals
from tests.sizes import PATIENCE, SECONDS, SIZE, sized

hypothesis.settings.register_profile(
    "tiro",
    max_examples=sized(fast=25, normal=100, long=1000),
    deadline=None,  # never fail by wall time
    derandomize="TIRO_FUZZ" not in os.environ,  # the same run twice gives the same answer
    database=None,
    suppress_health_check=[
        hypothesis.HealthCheck.too_slow,
        hypothesis.HealthCheck.function_scoped_fixture,
    ],
)
hypothesis.settings.load_profile("tiro")

ROOT = Path(__file__).resolve().parents[1]
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


def pytest_configure() -> None:
    """Some tests end by a signal what they start, and the tests may be a job of `&`."""
    hear_signals()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With --long a test takes as long as it takes; only one that hangs is ended."""
    if SIZE == "long":
        for item in items:
            item.add_marker(pytest.mark.timeout(SECONDS), append=False)


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the person who runs the tests is read or written: a fresh home for each test."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TIRO_CONFIG_DIR", str(home / "tiro"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT / "server"), str(ROOT))))
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in (*SECRETS, *ADDRESSES, *PROXIES, *(proxy.lower() for proxy in PROXIES)):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def config_dir(_own_home: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A config directory that this test may look into."""
    directory = tmp_path / "config"
    monkeypatch.setenv("TIRO_CONFIG_DIR", str(directory))
    return directory


@pytest.fixture(autouse=True, scope="session")
def _only_loopback() -> Iterator[None]:
    """A connection to anything but this machine is an error at once."""
    patch = pytest.MonkeyPatch()
    for name in ("connect", "connect_ex"):
        patch.setattr(socket.socket, name, _guarded(getattr(socket.socket, name)))
    yield
    patch.undo()


def _guarded(connect: Any) -> Any:
    def guarded(self: socket.socket, address: Any, /) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            assert _is_loopback(address[0]), f"a test may not connect to {address!r}"
        return connect(self, address)

    return guarded


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def pytest_collection_finish() -> None:
    """Thousands of collected tests are there to the end: nobody need look for garbage in them."""
    gc.collect()
    gc.freeze()


def _patience() -> float:
    return SECONDS if SIZE == "long" else PATIENCE


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run `async def` tests, each in a fresh event loop."""
    test: Any = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    given = pyfuncitem.funcargs
    names = inspect.signature(test).parameters
    asyncio.run(asyncio.wait_for(test(**{name: given[name] for name in names}), _patience()))
    return True
