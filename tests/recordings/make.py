"""How the recordings of this folder were made: `python -m tests.recordings.make [NAME]…`.

Each is made through the real `tiro serve --record`, below one neutral directory. A recording out of
a bug report needs no function here: `tests/e2e/test_recordings.py` plays every file of this folder.
"""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.e2e.replies import Break, Reply
from tests.e2e.talk import ask, begin_ask

FOLDER = Path(__file__).parent
PLACE = Path("/tmp/tiro-recording")  # it goes into the recording


def main() -> None:
    """Make all recordings anew, or those that are named."""
    for name in sys.argv[1:] or RECORDINGS:
        path = FOLDER / f"{name}.jsonl"
        path.unlink(missing_ok=True)
        shutil.rmtree(PLACE, ignore_errors=True)
        with Provider() as provider:
            home = Home(PLACE, provider)
            RECORDINGS[name](home, provider, path)
        path.chmod(0o644)
    shutil.rmtree(PLACE, ignore_errors=True)


def recording_server(home: Home, path: Path) -> Server:
    """A real server that records into this file."""
    return Server(home, command=[sys.executable, "-m", "tiro", "serve", "--record", str(path)])


def broken_streams(home: Home, provider: Provider, path: Path) -> None:
    """A tool, an answer that is refused once, and two that break off, one by a reset."""
    home.write("notes.txt", "The word is xylophone.\n")
    provider.script(
        replies.tools(("call_1", "read_file", {"path": "notes.txt"}), before="I look. "),
        replies.text("The word is ", "xylophone."),
        replies.error(429, "slow down", [("retry-after", "0")]),
        replies.text("Here ", "I am."),
        Reply([replies.ROLE, replies.text_chunk("Half an "), MIDDLE, Break(reset=True)]),
        Reply([replies.ROLE, replies.text_chunk("A third "), MIDDLE, Break()]),
        replies.text("Whole."),
    )
    with recording_server(home, path) as server:
        server.initialize()
        ask(server, "Which word is in notes.txt?")
        ask(server, "Are you there?")
        begin_ask(server, "And now?").error()
        begin_ask(server, "Again?").error()
        ask(server, "Once more?")
        server.shutdown()


def local_model(home: Home, provider: Provider, path: Path) -> None:
    """The embedded model says hello."""
    cache = home.root / "cache" / "tiro"
    cache.mkdir(parents=True)
    (cache / "models").symlink_to(Path(os.environ["HOME"], ".cache", "tiro", "models"))
    with recording_server(home, path) as server:
        server.initialize()
        ask(server, "Say hello.", timeout=300, model="local/smollm2-135m", agent="plan")
        server.shutdown()


MIDDLE = replies.text_chunk("answer")[:60]
"""A chunk that was cut by whoever sent it."""
RECORDINGS: dict[str, Callable[[Home, Provider, Path], Any]] = {
    "broken-streams": broken_streams,
    "local-model": local_model,
}

if __name__ == "__main__":
    main()
