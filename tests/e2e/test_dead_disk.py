"""A workspace on a disk that answers no more: the server goes on, says so, and ends when told."""

from pathlib import Path

from tests.e2e.client import Server
from tests.e2e.home import SERVER, Home

HANGING = """
import os, sys, threading

DEAD = {dead!r}

def wait(path, *_, **__):
    if isinstance(path, (str, os.PathLike)) and os.fspath(path).startswith(DEAD):
        threading.Event().wait()

def hanging(call):
    return lambda path=".", *a, **k: (wait(path), call(path, *a, **k))[1]

for name in ("open", "stat", "lstat", "scandir", "listdir", "readlink", "mkdir"):
    setattr(os, name, hanging(getattr(os, name)))
sys.addaudithook(lambda event, args: wait(args[0]) if event == "open" else None)
"""
"""What a mount behind a dead network does, for one process: each call waits for ever."""


def test_a_workspace_on_a_dead_disk_holds_up_nobody(tmp_path: Path) -> None:
    """initialize, status and shutdown are answered; what could not be read is told."""
    dead = tmp_path / "dead"
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(HANGING.format(dead=str(dead)))
    paths = f"{tmp_path / 'site'}:{SERVER}"
    with Server(Home(tmp_path / "home"), env={"PYTHONPATH": paths}) as server:
        server.initialize(roots=[dead / "project"])
        said = server.wait_notification(
            "window/showMessage", lambda params: "does not answer" in params["message"]
        )
        assert ".tiro/config.yaml" in said["message"]
        problems = server.request("tiro/status")["problems"]
        assert sum("does not answer" in problem for problem in problems) == 3
        assert server.request("tiro/session/addMessage", {"role": "user", "content": "x"})["stored"]
        assert server.request("tiro/agents/list")["default"] == "build"
        assert server.shutdown() == 0
