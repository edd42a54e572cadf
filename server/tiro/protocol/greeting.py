"""Getting to know the client: initialize, its settings, its workspace folders.

What is wrong with the settings is told once, as a warning; the defaults hold. Nothing a client puts
into its `initializationOptions` keeps it from being served.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import msgspec

from tiro import __version__
from tiro.errors import TiroError
from tiro.protocol import types
from tiro.protocol.commands import CODE_ACTION_KINDS
from tiro.protocol.connection import Connection
from tiro.protocol.lsp_params import ClientParams, FoldersParams

if TYPE_CHECKING:
    from collections.abc import Callable

    from tiro.assistant.assistant import Assistant
    from tiro.config.settings import Settings

logger = logging.getLogger(__name__)

LATEST_SECONDS = 5.0
"""How long a client waits until it is known which session it could go on with."""

SILENT = "{} cannot be read: its disk does not answer; no saved session is offered"


class Greeting:
    """What the client has told us about itself, kept up to date."""

    def __init__(self, connection: Connection, assistant: "Assistant") -> None:
        self._connection, self._assistant = connection, assistant
        self._editor = connection.editor
        self._settings: dict[str, Any] = {}
        self._folders: list[str] = []
        self._is_trusted = True
        self._problems: list[str] = []
        self._warm_up: asyncio.Task[None] | None = None
        self.on_editor: Callable[[int | None], None] = lambda process_id: None
        self.on_settings: Callable[[Settings], list[str]] = lambda settings: []
        """Follows the settings too; gives what is wrong with them, one sentence each."""

    async def initialize(self, client: ClientParams) -> dict[str, Any]:
        """Take over the client's settings and say what we can do."""
        self.on_editor(client.process_id)
        options = self._read_options(client.initialization_options)
        self._editor.meet(client.capabilities, options.features or types.Features())
        self._editor.buffers.encoding = encoding_for(client.capabilities)
        self._settings = options.settings or {}
        self._is_trusted = options.workspace_trusted is not False
        self._folders = folders_of(client)
        await self._configure()
        logger.info("Tiro %s begins to serve process %s", __version__, client.process_id)
        experimental = types.Experimental(
            server_version=__version__,
            methods=sorted(types.METHODS),
            resume=await self._resume(),
        )
        return {
            "capabilities": {
                "positionEncoding": self._editor.buffers.encoding,
                **CAPABILITIES,
                "experimental": {"tiro": experimental},
            },
            "serverInfo": {"name": "tiro", "version": __version__},
        }

    async def initialized(self) -> None:
        """Tell what is wrong, and load in a thread what the first prompt will need."""
        self._tell_problems()
        self._warm_up = asyncio.create_task(self._assistant.warm_up())

    async def change_settings(self, settings: Any) -> None:
        """Take over changed settings, with or without a `tiro` level."""
        inner = settings.get("tiro") if isinstance(settings, dict) else None
        found = inner if isinstance(inner, dict) else settings
        if isinstance(found, dict):
            self._settings = found
            await self._configure()
            self._tell_problems()

    async def change_folders(self, params: FoldersParams) -> None:
        """Take over which workspace folders are open."""
        gone = {folder.uri for folder in params.event.removed}
        kept = [uri for uri in self._folders if uri not in gone]
        added = [folder.uri for folder in params.event.added]
        self._folders = list(dict.fromkeys([*kept, *added]))
        await self._configure()
        self._tell_problems()

    async def _configure(self) -> None:
        self._editor.set_roots(self._folders)
        problems = await self._assistant.configure_client(
            self._settings, self._editor.workspace_roots(), self._is_trusted
        )
        self._problems += problems
        self._problems += self.on_settings(self._assistant.setup.settings)

    def _tell_problems(self) -> None:
        for problem in self._problems:
            self._editor.say_once(problem)
        self._problems = []

    def _read_options(self, given: Any) -> types.InitializationOptions:
        """The options, as far as they can be read."""
        if not isinstance(given, dict):
            return types.InitializationOptions()
        fields: dict[str, Any] = {}
        for name, kind in _OPTIONS.items():
            try:
                fields[name] = msgspec.convert(given.get(name), kind)
            except msgspec.ValidationError as error:
                self._problems.append(f"initializationOptions.{name} is ignored: {error}")
        return msgspec.convert(fields, types.InitializationOptions)

    async def _resume(self) -> types.Resume:
        """What a fresh start offers; with the setting `latest` it is loaded here."""
        setting = self._assistant.setup.settings.session.resume
        latest = await self._latest()
        if setting == "latest" and latest is not None:
            try:
                session = await self._assistant.saved.load(latest=True)
                self._problems += self._assistant.setup.missing(session)
            except TiroError as error:
                self._problems.append(f"The latest session was not loaded: {error}")
        return types.Resume(setting, latest)

    async def _latest(self) -> types.LatestSession | None:
        try:
            async with asyncio.timeout(LATEST_SECONDS):
                row = await self._assistant.saved.latest()
        except TimeoutError:
            self._problems.append(SILENT.format(self._assistant.manager.directory))
            return None
        except (TiroError, OSError):
            return None
        return None if row is None else types.LatestSession(row.id, row.title, row.saved_at)


_OPTIONS: dict[str, Any] = {
    "settings": dict[str, Any] | None,
    "features": types.Features | None,
    "workspaceTrusted": bool | None,
}


CAPABILITIES: dict[str, Any] = {
    "textDocumentSync": {"openClose": True, "change": 2, "save": True},
    "codeActionProvider": {"codeActionKinds": CODE_ACTION_KINDS},
    "executeCommandProvider": {"commands": types.COMMANDS},
    "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}},
}
"""What we can do for any LSP client; documents are synchronised incrementally."""

ENCODINGS = ("utf-8", "utf-16", "utf-32")


def encoding_for(capabilities: dict[str, Any]) -> str:
    """The position encoding: the first that the client offers and we know, else UTF-16."""
    general = capabilities.get("general")
    offered = general.get("positionEncodings") if isinstance(general, dict) else None
    known = [name for name in offered if name in ENCODINGS] if isinstance(offered, list) else []
    return known[0] if known else "utf-16"


def folders_of(client: ClientParams) -> list[str]:
    """The URIs or paths of the folders that are open, the newer spellings first."""
    if client.workspace_folders:
        return [folder.uri for folder in client.workspace_folders]
    root = client.root_uri or client.root_path
    return [root] if root else []
