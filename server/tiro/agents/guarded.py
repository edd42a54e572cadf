"""Files from which other programs run something by themselves: to write them is to run commands.

git runs what its own folder names, an editor what a folder's settings name, and Tiro itself does
what its agents and settings say. So a rule that allows to write speaks for them only if it names
them; whatever else it allows, there it asks.
"""

from tiro.tools.command_line import word_set
from tiro.tools.patterns import parts_of

GUARDED = word_set(".git .tiro .vscode .idea .husky .envrc")
"""Names of such files and folders; in any case of letters, as many disks do not tell it."""
WRITERS = ("edit", "write")
"""The keys of rules about writing."""
ASKS = "{rule} ({name} asks until a rule names it)"


def guarded_name(path: str) -> str | None:
    """The first of these names in a path, or None."""
    return next((part for part in parts_of(path.casefold()) if part in GUARDED), None)


def speaks_for(pattern: str, name: str) -> bool:
    """Whether a pattern names such a file or folder."""
    return name in parts_of(pattern.casefold())
