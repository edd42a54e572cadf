"""Files from which other programs run something by themselves: to write them is to run commands.

git runs what its own folder names, an editor what a folder's settings name, another assistant what
its hooks say, and Tiro itself does what its agents and settings say. So a rule that allows to write
speaks for them only if it names them; whatever else it allows, there it asks.
"""

from tiro.tools.command_line import word_set
from tiro.tools.patterns import parts_of

GUARDED = word_set(
    ".git .tiro .vscode .idea .husky .envrc .githooks .pre-commit-config.yaml .dir-locals.el"
    " .devcontainer .devcontainer.json .zed .mise.toml mise.toml .cargo .npmrc .yarnrc.yml"
    " .exrc .nvimrc .nvim.lua .fleet .claude .cursor .gemini .codex .mcp.json lefthook.yml"
)
"""Names of such files and folders; in any case of letters, as many disks do not tell it."""
ENDING = ".code-workspace"
"""What the name of such a file may end in, whatever stands before it."""
WRITERS = ("edit", "write")
"""The keys of rules about writing."""
ASKS = "{rule} ({name} asks until a rule names it)"


def guarded_name(path: str) -> str | None:
    """The first of these names in a path, or None."""
    parts = parts_of(path.casefold())
    return next((part for part in parts if part in GUARDED or part.endswith(ENDING)), None)


def speaks_for(pattern: str, name: str) -> bool:
    """Whether a pattern names such a file or folder."""
    parts = parts_of(pattern.casefold())
    return name in parts or (name.endswith(ENDING) and f"*{ENDING}" in parts)
