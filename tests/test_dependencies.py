"""What we depend on: `server/DEPENDENCIES.md` says each one's licence and reason, and is true."""

import json
import re
import sys
import tomllib
from importlib import metadata
from typing import Any

import pytest

from tests.machine import PINS
from tests.test_house import MODULES, ROOT, VSCODE

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PACKAGE = json.loads((VSCODE / "package.json").read_text("utf-8"))
LOCK: dict[str, Any] = json.loads((VSCODE / "package-lock.json").read_text("utf-8"))["packages"]
PARTS = (ROOT / "server" / "DEPENDENCIES.md").read_text("utf-8").split("\n## ")
IMPORT = re.compile(
    r"^ *(?:import ([\w.]+)(?: as \w+)?(?:  #.*)?$|from ([\w.]+) import )", re.MULTILINE
)
IMPORTED_AS = {"pyyaml": "yaml"}

FREE = {
    *("MIT", "ISC", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "Apache-2.0", "BlueOak-1.0.0"),
    *("MPL-2.0", "Python-2.0", "PSF-2.0", "WTFPL", "Artistic-2.0", "CC0-1.0", "CC-BY-3.0"),
}
UNFREE = "node_modules/@vscode/vsce-sign"
SPDX = {
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
"""What licences were called before packages named them by one list."""


def rows(title: str) -> list[list[str]]:
    """The rows of all tables in the part with that title, without their heads."""
    (part,) = [part for part in PARTS if part.startswith(f"{title}\n")]
    lines = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")]
    return [cells for cells in lines if cells[0] not in ("package", "brought along")]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def ranges(title: str) -> dict[str, str]:
    """The packages that we ask for ourselves, and which versions."""
    return {normal(cells[0]): cells[1] for cells in rows(title) if len(cells) == 4}


def licences(title: str) -> dict[str, str]:
    return {normal(cells[0]): cells[-2] for cells in rows(title)}


def wanted(requirements: list[str]) -> dict[str, str]:
    parts = [re.fullmatch(r"([\w.-]+)(.*)", text) for text in requirements]
    return {normal(part[1]): part[2] for part in parts if part}


EXTRAS = PROJECT["project"]["optional-dependencies"]
PYTHON = {title: licences(title) for title in ("The server", "Extras", "Building and testing")}


def test_what_we_ask_for_is_what_the_tables_say() -> None:
    assert ranges("The server") == wanted(PROJECT["project"]["dependencies"])
    assert ranges("Extras") == wanted([*EXTRAS["local"], *EXTRAS["redis"]])
    built_with = PROJECT["build-system"]["requires"]
    assert ranges("Building and testing") == wanted([*built_with, *EXTRAS["dev"]])
    assert EXTRAS.keys() == {"local", "redis", "dev"}


def test_every_package_that_is_installed_has_a_row() -> None:
    pinned = re.findall(r"^([\w.-]+)==", PINS.read_text("utf-8"), re.MULTILINE)
    listed = [name for table in PYTHON.values() for name in table]
    assert sorted(listed) == sorted(map(normal, pinned))
    assert all(cells[-1] for title in PYTHON for cells in rows(title)), "each has a reason"


@pytest.mark.parametrize(
    ("name", "licence"), [row for table in PYTHON.values() for row in table.items()]
)
def test_licence_is_what_the_package_says(name: str, licence: str) -> None:
    about = metadata.metadata(name)
    named = [*about.get_all("License-Expression", []), *about.get_all("License", [])]
    named += [text.split(" :: ")[-1] for text in about.get_all("Classifier", [])]
    said = {SPDX.get(text, text) for text in named}
    assert licence in said
    assert set(licence.split(" OR ")) <= FREE


def test_the_package_imports_what_it_asks_for_and_nothing_else() -> None:
    sources = [path.read_text("utf-8") for path in MODULES]
    found = {name for source in sources for pair in IMPORT.findall(source) for name in pair}
    outside = {name.partition(".")[0] for name in found} - sys.stdlib_module_names - {"tiro", ""}
    asked = {**ranges("The server"), **ranges("Extras")}
    assert outside - {"cattrs"} == {IMPORTED_AS.get(name, name) for name in asked}


def test_the_extension_has_a_row_for_each_of_its_packages() -> None:
    listed = {cells[0]: cells[1] for cells in rows("The VS Code extension")}
    asked = PACKAGE["devDependencies"]
    brought = {cells[0] for cells in rows("The VS Code extension") if "brought along" in cells[2]}
    assert listed.keys() - brought == asked.keys()
    assert not PACKAGE.get("dependencies"), "all that it needs is in its bundle"
    assert listed == {name: LOCK[f"node_modules/{name}"]["license"] for name in listed}


def test_the_extension_is_made_with_free_packages() -> None:
    unfree = {
        path
        for path, about in LOCK.items()
        if path and not set(re.findall(r"[\w.-]+", about["license"])) - {"OR"} <= FREE
    }
    assert {path for path in unfree if not path.startswith(UNFREE)} == set()
