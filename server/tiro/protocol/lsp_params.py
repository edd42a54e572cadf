"""The params of the LSP methods that we read ourselves: as much of them as we use."""

from typing import Any, TypeAlias

import msgspec

from tiro.protocol import types
from tiro.protocol.buffers import DocumentId

MessageId: TypeAlias = int | str


class CancelParams(msgspec.Struct, frozen=True):
    """`$/cancelRequest`."""

    id: MessageId


class TraceParams(msgspec.Struct, frozen=True):
    """`$/setTrace`."""

    value: str


class ExecuteCommandParams(msgspec.Struct, frozen=True, rename="camel"):
    """`workspace/executeCommand`."""

    command: str
    arguments: list[Any] | None = None
    work_done_token: int | str | None = None


class ConfigurationParams(msgspec.Struct, frozen=True, rename="camel"):
    """`workspace/didChangeConfiguration`."""

    settings: Any = None


class CodeActionContext(msgspec.Struct, frozen=True, rename="camel"):
    """What the editor knows about the place of a code action."""

    diagnostics: list[dict[str, Any]] = []
    only: list[str] | None = None


class CodeActionParams(msgspec.Struct, frozen=True, rename="camel"):
    """`textDocument/codeAction`."""

    text_document: DocumentId
    range: types.Range
    context: CodeActionContext = CodeActionContext()


class WorkspaceFolder(msgspec.Struct, frozen=True, rename="camel"):
    """A folder that is open."""

    uri: str


class FoldersChanged(msgspec.Struct, frozen=True, rename="camel"):
    """Which folders came and went."""

    added: list[WorkspaceFolder] = []
    removed: list[WorkspaceFolder] = []


class FoldersParams(msgspec.Struct, frozen=True, rename="camel"):
    """`workspace/didChangeWorkspaceFolders`."""

    event: FoldersChanged


class ClientParams(msgspec.Struct, frozen=True, rename="camel"):
    """As much of `initialize` as we use."""

    capabilities: dict[str, Any]
    process_id: int | None = None
    root_uri: str | None = None
    root_path: str | None = None
    workspace_folders: list[WorkspaceFolder] | None = None
    initialization_options: Any = None
