"""The commands that print API keys."""

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.talk import until
from tests.sizes import PATIENCE
from tiro.errors import ModelNotConfiguredError
from tiro.models.key_command import KeyCommand


def processes() -> str:
    return subprocess.run(["ps", "ax"], capture_output=True, text=True, check=True).stdout


def test_key_command_as_list_and_as_string() -> None:
    assert KeyCommand(["printf", "%s\n%s", "$HOME key ", "second"]).run() == "$HOME key"
    assert KeyCommand("printf key; echo error >&2").run() == "key"


def test_key_command_does_not_get_our_stdin() -> None:
    """B50: over stdio that is the channel; here it is a pipe that never ends."""
    reader, writer = os.pipe()
    ours = os.dup(0)
    os.dup2(reader, 0)
    try:
        assert KeyCommand("cat; echo k", seconds=5).run() == "k"
    finally:
        os.dup2(ours, 0)
        for descriptor in (reader, writer, ours):
            os.close(descriptor)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["/nowhere/pass"], "could not be started (No such file or directory)"),
        ("echo SECRET; exit 3", "failed with exit code 3"),
        ("true", "printed nothing"),
        ("echo SECRET; sleep 60.MARK", "took longer than 0.3 seconds"),
        ("exec >&-; sleep 63.MARK", "took longer than 0.3 seconds"),
        ("sleep 64.MARK & echo SECRET", "took longer than 0.3 seconds"),
        ("sleep 65.MARK & yes SECRET.MARK", "printed more than 8,192 bytes"),
        ("(sleep 61.MARK & echo SECRET; sleep 62.MARK)", "took longer than 0.3 seconds"),
    ],
)
def test_key_command_that_fails_tells_no_output(command: Any, told: str) -> None:
    if isinstance(command, str):
        command = command.replace("MARK", str(os.getpid()))  # others run this test too
    with pytest.raises(ModelNotConfiguredError) as raised:
        KeyCommand(command, seconds=0.3).run()
    assert told in str(raised.value)
    assert "SECRET" not in str(raised.value)
    until(lambda: not re.search(rf"(sleep 6\d|yes SECRET)\.{os.getpid()}\b", processes()))


def test_key_command_may_print_notes_below_the_key() -> None:
    assert KeyCommand(["printf", "%s\\n%s", "key", "n" * 8000]).run() == "key"


def test_a_command_that_was_told_to_end_does_not_begin_any_more(tmp_path: Path) -> None:
    """B42: its thread may come late to it."""
    command = KeyCommand(["touch", str(tmp_path / "began")])
    command.end()
    with pytest.raises(ModelNotConfiguredError, match="not started any more"):
        command.run()
    assert not (tmp_path / "began").exists()


def test_a_command_is_ended_from_another_thread_and_more_than_once(tmp_path: Path) -> None:
    pipe = tmp_path / "key"
    os.mkfifo(pipe)
    command = KeyCommand(["cat", str(pipe)])
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(command.run)
        with pipe.open("w"):  # it reads by now
            command.end()
            command.end()
            with pytest.raises(ModelNotConfiguredError):
                running.result(PATIENCE)
    command.end()
