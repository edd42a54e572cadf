"""How the embedded models' package is installed: never by a name on an index that is not ours."""

import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from tiro.models import local_extra

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_the_command_is_for_this_python_and_names_the_package_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Another package is called tiro there; the requirement is that of the metadata."""
    (wanted,) = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]["local"]
    told = tmp_path / "tiro-1.0.dist-info"
    told.mkdir()
    (told / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: tiro\nVersion: 1.0\nRequires-Dist: httpx\n"
        f"Requires-Dist: {wanted}; extra == 'local'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    words = shlex.split(local_extra.install_command())
    assert wanted in words
    assert sys.executable in words
    assert not any(word.startswith("tiro") for word in words)
