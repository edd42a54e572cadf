"""A disk that does not answer costs a moment, and is told (N: a dead network disk)."""

import threading
from collections.abc import Iterator

import pytest

from tests.sizes import PATIENCE
from tiro.agents.settings_file import UnusableFileError
from tiro.agents.silent_disk import Patience


@pytest.fixture
def back() -> Iterator[threading.Event]:
    """Set when the disk answers again; at the end of the test at the latest."""
    event = threading.Event()
    yield event
    event.set()


def test_what_is_answered_or_raised_is_passed_on() -> None:
    patience = Patience()
    assert patience.ask("a", lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        patience.ask("a", lambda: 1 // 0)


def test_a_silent_disk_is_given_up_and_not_asked_again_until_it_answers(
    back: threading.Event,
) -> None:
    patience = Patience(0.05)
    asked: list[int] = []

    def question() -> str:
        asked.append(1)
        back.wait()
        return "here"

    for _ in range(3):
        with pytest.raises(UnusableFileError, match="does not answer"):
            patience.ask("a", question)
    assert len(asked) == 1
    assert patience.ask("b", lambda: "other") == "other"
    back.set()
    for thread in threading.enumerate():
        if thread.name == "tiro-disk":
            thread.join(PATIENCE)
    assert patience.ask("a", question) == "here"
