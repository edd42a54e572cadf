"""Every recording of `tests/recordings`, played through the real server: the editor hears the same.

A bug report becomes a test by putting its recording into that folder.
"""

from pathlib import Path

import pytest

from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.played import configure, heard_now, heard_then, play_editor
from tests.sizes import PATIENCE
from tiro.recording.exchanges import read_recording
from tiro.recording.replay import Replay

FOLDER = Path(__file__).parents[1] / "recordings"
FILES = {"broken-streams": {"notes.txt": "The word is xylophone.\n"}}
"""What lay in the workspace when it was recorded."""


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.jsonl")), ids=lambda path: path.stem)
def test_editor_hears_what_was_recorded(path: Path, home: Home, start: StartServer) -> None:
    recording = read_recording(path)
    with Replay(path, fast=True, hold_seconds=PATIENCE) as replay:
        configure(home, replay)
        for name, text in FILES.get(path.stem, {}).items():
            home.write(name, text)
        server = start(initialize=False)
        play_editor(recording, server)
        assert heard_now(recording, server) == heard_then(recording)
        assert replay.left == 0
        assert not [note for note in replay.notes if "used up" in note]
        server.check()
