"""What `pip install` brings: the wheel, built as pip builds it and used from an empty folder."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.test_house import MODULES, PACKAGE, ROOT
from tiro import __version__


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]
    subprocess.run([*command, str(folder)], cwd=ROOT, capture_output=True, check=True)
    (built,) = folder.glob("*.whl")
    return built


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    python = {name for name in names if name.endswith(".py")}
    assert python == {f"tiro/{path.relative_to(PACKAGE)}" for path in MODULES}
    assert "tiro/py.typed" in names
    assert all(name.startswith("tiro/") for name in names)


def test_wheel_says_who_and_which(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    info = f"tiro-{__version__}.dist-info"
    metadata = archive.read(f"{info}/METADATA").decode()
    assert f"\nVersion: {__version__}\n" in metadata
    assert "\nLicense-Expression: MIT\n" in metadata
    assert "\nProvides-Extra: local\n" in metadata
    assert "tiro = tiro.__main__:main" in archive.read(f"{info}/entry_points.txt").decode()
    assert "The Tiro authors" in archive.read(f"{info}/licenses/LICENSE").decode()


def test_wheel_works_without_the_checkout(wheel: Path, tmp_path: Path) -> None:
    """Nothing at run time looks outside the package."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    code = "import tiro.cli, sys; sys.exit(tiro.cli.main(['doctor']))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert f"Tiro        {__version__}" in done.stdout
    assert "Traceback" not in done.stderr
