"""Managers that are closed after their test, and a record of what they told."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tiro.stores import autosave, shelf_upkeep
from tiro.stores.manager import SessionManager
from tiro.stores.notices import Notice


class Notices(list[Notice]):
    """What a manager told, in order."""

    @property
    def reasons(self) -> list[str]:
        """The reasons alone."""
        return [notice.reason for notice in self]


Make = Callable[..., SessionManager]
Tell = Callable[[str, object], None]
"""pytest's `record_property`: how much a test tried, for a row of `tests/trust.py`."""


@pytest.fixture
def idle() -> None:
    """For a test in which the background thread writes what nobody changed for a moment."""


@pytest.fixture(autouse=True)
def _never_idle(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `idle` it waits: between two steps of a test a busy machine is idle long enough."""
    if "idle" not in request.fixturenames:
        monkeypatch.setattr(autosave, "IDLE_SECONDS", 1e6)
        monkeypatch.setattr(autosave, "SYNC_SECONDS", 1e6)
        monkeypatch.setattr(shelf_upkeep, "IDLE_SECONDS", 1e6)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A sessions directory that does not exist yet, on a path with blanks and umlauts."""
    return tmp_path / "Café tables" / "sessions"


@pytest.fixture
def notices() -> Notices:
    """What the managers of this test told."""
    return Notices()


@pytest.fixture
def make_manager(directory: Path, notices: Notices) -> Iterator[Make]:
    """Makes managers on the test's directory."""
    made: list[SessionManager] = []

    def make(**options: Any) -> SessionManager:
        options.setdefault("on_notice", notices.append)
        manager = SessionManager(options.pop("directory", directory), **options)
        made.append(manager)
        return manager

    yield make
    for manager in made:
        manager.close()


@pytest.fixture
def manager(make_manager: Make) -> SessionManager:
    """A manager on the test's directory."""
    return make_manager()
