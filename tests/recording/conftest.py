"""Recorders that write all they have, however busy the machine is."""

import pytest

from tests.sizes import PATIENCE
from tiro.recording import recorder


@pytest.fixture(autouse=True)
def _written_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server's end waits for half a second, and the rest of a secret is waited for for one."""
    monkeypatch.setattr(recorder, "CLOSE_SECONDS", PATIENCE)
    monkeypatch.setattr(recorder, "HOLD_SECONDS", PATIENCE)
