"""Find the configuration files, read them, merge them with what an editor sets.

Precedence, highest first: the editor's settings, `<workspace>/.tiro/config.yaml`,
`<config dir>/config.yaml`, the addresses in the environment, the defaults.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tiro.agents.settings_file import UnusableFileError, read_settings
from tiro.agents.wording import first, named
from tiro.config.directories import config_directory
from tiro.config.merge import Merge, Source, in_environment
from tiro.config.settings import ADDRESSES, BUILT_IN_PROVIDERS, Settings
from tiro.tools.silent_disk import Patience, SilentDiskError

FILE_NAME = "config.yaml"
WORKSPACE_FILE = Path(".tiro", FILE_NAME)


class Config(msgspec.Struct, frozen=True):
    """The settings, what is wrong with their sources, and the files that are there."""

    settings: Settings
    problems: list[str]
    files: list[Path]
    is_broken: bool = False
    """A file is there that cannot be read at all; the first problem says which and why."""
    named_providers: frozenset[str] = frozenset()
    """All that are configured, also those that are left out because something is wrong."""


def load(
    directory: Path | None = None,
    workspace_roots: Sequence[Path] = (),
    editor_settings: Mapping[str, Any] | None = None,
    patience: Patience | None = None,
) -> Config:
    """Read everything, merge it, and report what is wrong; never raises for what a user wrote.

    A file whose disk does not answer is one that cannot be read.
    """
    merge, patience = Merge(), patience or Patience()
    merge.take(Source("the defaults", {"providers": BUILT_IN_PROVIDERS}))
    for name, variable in ADDRESSES.items():
        if address := in_environment(variable):
            given = {"providers": {name: {"base_url": address}}}
            merge.take(Source(f"{variable} in the environment", given))
    main = (directory or config_directory()) / FILE_NAME
    places = [(main, None), *((root / WORKSPACE_FILE, root) for root in reversed(workspace_roots))]
    files = [path for path, root in places if _take_file(path, root, merge, patience)]
    if editor_settings:
        merge.take(Source("The editor's settings", dict(editor_settings)))
    settings = merge.settings()
    problems, named = first([*merge.broken, *merge.problems]), frozenset(merge.named_providers)
    return Config(settings, problems, files, bool(merge.broken), named)


def _take_file(path: Path, root: Path | None, merge: Merge, patience: Patience) -> bool:
    """Merge one file, or tell why it cannot be used; False when there is none."""
    is_workspace = root is not None
    try:
        found = patience.ask(path, lambda: read_settings(path, root))
    except UnusableFileError as error:
        _tell_broken(path, str(error), error.text, is_workspace, merge)
        return True
    except SilentDiskError as error:
        _tell_broken(path, str(error), None, is_workspace, merge)
        return True
    if found is None:
        return False
    for key in found.repeated:
        where = f"{path}, line {found.lines[key]}: {'.'.join(map(named, key))}"
        told = f"{where} is given twice; this one holds"
        if key[0] == "permission":
            merge.cannot_read(f"all of {path.name}", is_workspace)
            told += ", and until one is gone everything asks"
        merge.problems.append(told)
    merge.take(Source(str(path), found.tree, found.lines, is_workspace))
    return True


def _tell_broken(
    path: Path, error: str, text: str | None, is_workspace: bool, merge: Merge
) -> None:
    """Note a file that cannot be read: it may forbid something, and say who hears a prompt."""
    why = f"{path}{error}"
    told = f"{why}; the whole file is ignored"
    if text is None or "permission" in text:
        merge.cannot_read(path.name, is_workspace)
        told += ", and as it may forbid something, everything asks"
    source = Source(str(path), {}, is_workspace=is_workspace)
    decides = "model" if is_workspace else "providers"
    if text is None or "model" in text or "providers" in text:
        told += f"; {merge.doubt(source, (decides,), why)}"
    merge.broken.append(told)
