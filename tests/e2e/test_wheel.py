"""What `pip install` brings: wheel and sdist, built as pip does it, used from an empty folder."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.e2e.talk import ask, view
from tests.test_house import MODULES, PACKAGE, ROOT
from tiro import __version__

DATA = {"py.typed", *(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.md"))} | {
    str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.jinja")
}


def build(target: str, source: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory"]
    subprocess.run([*command, str(folder)], cwd=source, capture_output=True, check=True)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, unpacked."""
    folder = tmp_path_factory.mktemp("source")
    with tarfile.open(build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = folder.iterdir()
    return unpacked


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel's files and nothing else."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def files(folder: Path) -> set[Path]:
    """All but what Python itself writes beside its sources."""
    return {path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"}


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = {name for name in contents(wheel) if ".dist-info/" not in name}
    ours = {str(path.relative_to(PACKAGE)) for path in MODULES} | DATA
    assert names == {f"tiro/{name}" for name in ours}


def test_sdist_holds_what_the_wheel_is_made_of(wheel: Path, source: Path, tmp_path: Path) -> None:
    assert contents(build("wheel", source, tmp_path)) == contents(wheel)
    top = {"server", "LICENSE", "README.md", "PKG-INFO", "pyproject.toml", ".gitignore"}
    assert {path.name for path in source.iterdir()} == top
    kinds = {path.suffix or path.name for path in files(source / "server")}
    assert kinds == {".py", ".md", ".png", ".jinja", ".typed"}


def test_wheel_says_who_and_which(wheel: Path) -> None:
    found = contents(wheel)
    info = f"tiro-{__version__}.dist-info"
    metadata = found[f"{info}/METADATA"].decode()
    lines = metadata.partition("\n\n")[0].splitlines()
    assert f"Version: {__version__}" in lines
    assert "License-Expression: MIT" in lines
    assert "Requires-Python: >=3.11" in lines
    extras = {line.partition(": ")[2] for line in lines if line.startswith("Provides-Extra")}
    assert extras == {"dev", "local", "redis"}
    assert "tiro = tiro.__main__:main" in found[f"{info}/entry_points.txt"].decode()
    assert "The Tiro authors" in found[f"{info}/licenses/LICENSE"].decode()


def test_wheel_works_without_the_checkout(site: Path, tmp_path: Path) -> None:
    """Nothing at run time looks outside the package."""
    env = {**os.environ, "PYTHONPATH": str(site)}
    code = "import tiro.cli, sys; sys.exit(tiro.cli.main(['doctor']))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert f"Tiro        {__version__}" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks into /proc")
def test_its_programs_and_prompts_are_in_the_wheel_and_nothing_is_written_there(
    site: Path, home: Home, provider: Provider
) -> None:
    """A turn that searches and runs a command starts the programs that are run by their path."""
    home.write("a.txt", "one needle\n")
    provider.script(
        replies.tools(
            ("c1", "grep", {"pattern": "n.edle"}),
            ("c2", "run_command", {"command": "tr '\\0' ' ' < /proc/$PPID/cmdline"}),
        ),
        replies.text("done"),
    )
    before = files(site)
    with Server(home, env={"PYTHONPATH": str(site)}) as server:
        server.on_request("tiro/permission/request", lambda _: {"decision": "once"})
        server.initialize()
        ask(server, "look")
        found, keeper = [m["content"] for m in view(server)["messages"] if m["role"] == "tool"]
        server.shutdown()
    assert "one needle" in str(found)
    assert str(site / "tiro" / "tools" / "command_keeper.py") in str(keeper)
    assert provider.requests[0].system
    assert files(site) == before
