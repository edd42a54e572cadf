"""What `AGENTS.md` files tell every agent: those of the workspace and of the folders above it.

The outermost comes first, so that the nearest has the last word. The text as the editor holds it
counts. A workspace that is not trusted gives no instructions.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from tiro.agents.settings_file import UnusableFileError, read_beginning, real_path
from tiro.tools.silent_disk import Patience, SilentDiskError
from tiro.tools.workspace import Workspace

FILE_NAME = "AGENTS.md"
MAX_CHARACTERS = 30_000
"""Of one file; about 8,000 tokens, which every request pays for."""
MAX_TOGETHER = 60_000
"""Of all files; those nearest to the workspace come first."""

HEADING = "## Instructions for this workspace, from {path}"
CUT = "\n\n[Cut here after {shown:,} characters; the file is longer.]"
TOO_MANY = "{path} is left out: the files nearer to the workspace are longer than {most:,} together"
TOO_LONG = "{path} is longer than {most:,} characters; the rest is left out, shorten it"


class Instructions(msgspec.Struct, frozen=True):
    """The text for the system prompt, and what is wrong with the files, a sentence each."""

    text: str = ""
    problems: Sequence[str] = ()


def read_instructions(workspace: Workspace, patience: Patience) -> Instructions:
    """Read all that hold for this workspace. Costs a look at each folder above it."""
    return _asked(patience, lambda: instructions_in(workspace.roots(), workspace.live_text))


def instructions_on_disk(roots: Sequence[Path], patience: Patience) -> Instructions:
    """Those of folders that no editor has opened."""
    return _asked(patience, lambda: instructions_in(roots))


def _asked(patience: Patience, read: Callable[[], Instructions]) -> Instructions:
    try:
        return patience.ask(FILE_NAME, read)
    except SilentDiskError as error:
        return Instructions(problems=[f"{FILE_NAME}{error}; none is taken into account"])


def instructions_in(
    roots: Sequence[Path], live_text: Callable[[Path], str | None] = lambda path: None
) -> Instructions:
    """Those that hold in these folders; `live_text` has what an editor holds of a real path."""
    parts: list[str] = []
    problems: list[str] = []
    left = MAX_TOGETHER
    for path, root in reversed(list(_places(roots))):
        try:
            text = _text(live_text, path, root)
        except UnusableFileError as error:
            problems.append(f"{path}{error}; it is left out")
            continue
        if len(text) > MAX_CHARACTERS:
            problems.append(TOO_LONG.format(path=path, most=MAX_CHARACTERS))
            text = text[:MAX_CHARACTERS] + CUT.format(shown=MAX_CHARACTERS)
        if not text.strip():
            continue
        left -= len(text)
        if left < 0:
            problems.append(TOO_MANY.format(path=path, most=MAX_TOGETHER))
            continue
        parts.append(f"{HEADING.format(path=path)}\n\n{text.strip()}")
    return Instructions("\n\n".join(reversed(parts)), problems)


def _places(roots: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    """Each file that may be there, with the folder that it must not lead out of."""
    seen = set()
    for root in roots:
        for folder in (*reversed(root.parents), root):
            if folder not in seen:
                seen.add(folder)
                yield folder / FILE_NAME, folder


def _text(live_text: Callable[[Path], str | None], path: Path, folder: Path) -> str:
    """What it says, empty when there is none; UnusableFileError where it is not to be read."""
    live = live_text(real_path(path, folder))
    if live is not None:
        return live
    return read_beginning(path, folder) or ""
