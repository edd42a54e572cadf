"""What tools and turns may ask of an editor, declared here and given by whoever talks to one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec


class PermissionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The question whether a tool use may run."""

    tool_use_id: str
    name: str
    input: dict[str, Any]
    agent: str
    rule: str
    effect: Literal["read", "write", "execute", "network"]
    always: Sequence[str] = ()
    """The rules that the answer "always" would add, in words; none: the next one is asked again."""
    preview: str | None = None


class PermissionAnswer(msgspec.Struct, frozen=True):
    """The user's answer; a client that is gone or answers with an error means `reject`."""

    decision: Literal["once", "always", "reject"]
    message: str | None = None


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    """A problem that an editor shows in a file."""

    path: Path
    """The file, as the editor names it."""
    line: int
    """From 0."""
    column: int
    """From 0, in units of the editor."""
    severity: Literal["error", "warning", "information", "hint"]
    message: str
    source: str | None = None
    code: str | None = None


class Editor(Protocol):
    """What tools and turns may ask of an editor.

    What is not `async` is called from any thread and answers from memory.
    """

    def workspace_roots(self) -> list[Path]:
        """The folders that are open, as the editor names them."""
        ...

    def open_paths(self) -> list[Path]:
        """The files that are open in the editor, as it names them; they need not exist."""
        ...

    def open_text(self, path: Path) -> str | None:
        """The live text of an open buffer (a path of `open_paths`), or None when it is not open."""
        ...

    def can_edit(self) -> bool:
        """Whether `apply_edit` can change an open buffer."""
        ...

    async def apply_edit(self, path: Path, old: str, new: str) -> None:
        """Change the live text of an open buffer from `old` to `new`, as one step to undo.

        Raises EditConflictError when the text is no longer `old`, and ToolError when the editor
        does not take the change; nothing is changed then, unless the error's data says that the
        `outcome` is unknown.
        """
        ...

    def can_diagnose(self) -> bool:
        """Whether `diagnostics` can be asked at all."""
        ...

    async def diagnostics(self, path: Path | None) -> list[Diagnostic] | None:
        """The problems it shows in this file, or in all; None when it does not tell."""
        ...

    async def ask_permission(self, request: PermissionRequest) -> PermissionAnswer:
        """Ask the user; never raises, except when it is cancelled."""
        ...
