"""B53: what a session says is for its owner only, wherever it lies and whatever the umask."""

import contextlib
import stat
from pathlib import Path

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.e2e.talk import add, ask

LONG = "a private line\n" * 10_000


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def check_private(server: Server, before: set[Path]) -> set[str]:
    """All files and directories that were not there before are for their owner only; their ends."""
    made = set(server.home.root.rglob("*")) - before - {server.stderr_path}
    found = {}
    for path in made:
        with contextlib.suppress(FileNotFoundError):  # it was there for a moment only
            found[path] = (path.is_dir(), mode(path))
    assert found
    private = ((True, 0o700), (False, 0o600))
    assert {path: kind for path, kind in found.items() if kind not in private} == {}
    return {path.suffix for path in found}


def use_everything(server: Server, provider: Provider) -> None:
    """A turn, a large value, a copy, an export, a damaged file, a search, another session."""
    provider.script(replies.text("private answer"))
    ask(server, "private question")
    add(server, "user", LONG)
    saved = server.request("tiro/session/save")
    server.request(
        "tiro/session/save", {"path": str(server.home.root / "new" / "er" / "copy.json")}
    )
    Path(saved["path"]).write_text("damaged")
    add(server, "user", "after the damage")
    server.request("tiro/session/save")
    path = str(server.home.root / "exports" / "x.md")
    server.request("tiro/session/export", {"format": "markdown", "path": path})
    server.request("tiro/session/clear")
    add(server, "user", "another session")
    server.request("tiro/session/search", {"query": "private"})
    server.request("tiro/session/list")


@pytest.mark.parametrize("umask", [0o022, 0o000])
def test_b53_all_files_and_directories_of_ours_are_private(
    start: StartServer, provider: Provider, home: Home, umask: int
) -> None:
    """Sessions, journals, large values, copies, exports, set aside files, caches, logs."""
    home.write_config(log={"level": "debug", "file": "tiro.log"})
    before = set(home.root.rglob("*"))
    server = start(umask=umask)
    use_everything(server, provider)
    for _ in range(1000):
        add(server, "user", "journaled")
        if ".journal" in check_private(server, before):
            break  # which is gone after an idle moment, and may be already
    else:
        pytest.fail("no journal was ever seen")
    assert any(".bad-" in path.name for path in home.sessions.iterdir())
    assert server.shutdown() == 0
    check_private(server, before)


def test_b53_a_config_directory_that_is_wide_and_a_link(
    start: StartServer, provider: Provider, home: Home
) -> None:
    """What is the user's keeps its mode; what we make in it is private; wide files are narrowed."""
    real = home.root / "dot files"
    home.config_dir.rename(real)
    home.config_dir.symlink_to(real, target_is_directory=True)
    real.chmod(0o755)
    before = set(home.root.rglob("*"))
    server = start(umask=0)
    add(server, "user", "one")
    saved = Path(server.request("tiro/session/save")["path"])
    check_private(server, before)
    assert mode(real) == 0o755
    server.request("tiro/session/clear")
    saved.chmod(0o644)
    server.request("tiro/session/load", {"path": str(saved)})
    assert mode(saved) == 0o600
