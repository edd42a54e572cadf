"""`build_server`: one client's server, put together; every method, command and LSP feature."""

import functools
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from tiro import __version__
from tiro.protocol import commands, types
from tiro.protocol.closing import Closing
from tiro.protocol.connection import Connection
from tiro.protocol.editor import ClientEditor
from tiro.protocol.elsewhere import Elsewhere
from tiro.protocol.greeting import Greeting
from tiro.protocol.handlers import HANDLERS, Desk
from tiro.protocol.lsp_params import (
    ClientParams,
    CodeActionParams,
    ConfigurationParams,
    ExecuteCommandParams,
    FoldersParams,
)
from tiro.protocol.rpc import LateConverter, TiroProtocol, typed_params
from tiro.protocol.wire import to_wire_changed

if TYPE_CHECKING:
    from tiro.assistant.assistant import Assistant

logger = logging.getLogger(__name__)

TOLD = {
    "save_failed": "The session cannot be saved: {reason}. It goes on in memory and saving is"
    " tried again",
    "save_resumed": "The session is saved again",
    "changed_on_disk": "Another program changed the session's file; the change was taken over",
    "expired": "The session's time is over (`session.ttl_seconds`); a new one has begun",
    "renamed": "The session got another name, since its own was taken",
}
"""What a client hears that does not know `tiro/session/changed`."""

MISSING = (
    "Large texts or images of this session are missing from the folder 'blobs' beside its file;"
    " only their beginnings are left. Put that folder back and load the session again"
)

OpenAssistant = Callable[..., "Assistant"]
"""Makes the assistant, given `editor`, `on_event` and `on_changed`."""


class TiroServer(LanguageServer):
    """pygls' server with our protocol; what pygls would pop up in the editor is logged instead."""

    protocol: TiroProtocol

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log what pygls reports; every request gets its answer elsewhere."""
        logger.error("%s: %s", source.__name__, error)


class Service(NamedTuple):
    """The parts of a server for one client."""

    server: TiroServer
    editor: ClientEditor
    connection: Connection
    assistant: "Assistant"
    greeting: Greeting
    closing: Closing


def build_server(open_assistant: OpenAssistant) -> Service:
    """Put a server together; it is not connected to anything yet."""
    logging.getLogger("pygls").setLevel(logging.WARNING)  # it would log every body at INFO
    late: Any = LateConverter
    server = TiroServer("tiro", __version__, protocol_cls=TiroProtocol, converter_factory=late)
    editor = ClientEditor(server.protocol)
    connection = Connection(server.protocol, editor)

    def changed(notice: Any) -> None:
        wire = to_wire_changed(assistant, notice)
        server.protocol.notify("tiro/session/changed", wire)
        if notice.reason in TOLD and editor.is_stranger:
            editor.say(TOLD[notice.reason].format(**notice.detail))
        if notice.detail.get("missing"):
            editor.say(MISSING)

    assistant = open_assistant(editor=editor, on_event=connection.on_event, on_changed=changed)
    editor.turn_id = lambda: assistant.running_turn_id
    assistant.tell = assistant.edits.tell = editor.say_once
    assistant.say = editor.say
    assistant.memory.on_asking = connection.let_others_go_on
    assistant.turns.beside_others = connection.out_of_order
    desk = Desk(assistant, connection)
    for method in HANDLERS:
        server.feature(method)(_worker(desk, method))
    for command in types.COMMANDS:
        server.command(command)(functools.partial(_execute, desk))
    greeting = Greeting(connection, assistant)
    _register_lsp(server, desk, greeting, Elsewhere(connection, assistant))
    closing = Closing(connection, assistant)
    server.protocol.on_shutdown = closing.close
    return Service(server, editor, connection, assistant, greeting, closing)


def _worker(desk: Desk, method: str) -> Callable[[Any], Any]:
    """The handler of a method, run in its order."""
    handler, facts = HANDLERS[method], types.METHODS[method]

    async def work(params: Any) -> Any:
        return await desk.connection.run(facts, lambda: handler(desk, params))

    return work


async def _execute(desk: Desk, params: ExecuteCommandParams) -> Any:
    async def run(method: str, given: Any) -> Any:
        return await _worker(desk, method)(typed_params(given, types.METHODS[method].params))

    return await commands.execute(desk, run, params)


def _register_lsp(server: TiroServer, desk: Desk, greeting: Greeting, elsewhere: Elsewhere) -> None:
    order, buffers = desk.connection.order, desk.connection.buffers

    @server.feature(lsp.INITIALIZE)
    async def initialize(params: ClientParams) -> Any:
        async with order:
            return await greeting.initialize(params)

    @server.feature(lsp.INITIALIZED)
    async def initialized(params: Any) -> None:
        await greeting.initialized()
        elsewhere.start()

    @server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def configuration(params: ConfigurationParams) -> None:
        async with order:
            await greeting.change_settings(params.settings)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    async def folders(params: FoldersParams) -> None:
        async with order:
            await greeting.change_folders(params)

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION)
    async def code_action(params: CodeActionParams) -> Any:
        return commands.code_actions(desk, params)

    features = server.protocol.fm
    features.add_builtin_feature(lsp.TEXT_DOCUMENT_DID_OPEN, buffers.open)
    features.add_builtin_feature(lsp.TEXT_DOCUMENT_DID_CHANGE, buffers.change)
    features.add_builtin_feature(lsp.TEXT_DOCUMENT_DID_CLOSE, buffers.close)
    for method in (lsp.TEXT_DOCUMENT_DID_SAVE, lsp.SET_TRACE):
        features.add_builtin_feature(method, _heard)


def _heard(params: Any) -> None:
    """Nothing to do: the live text is the truth, and there is one kind of log."""
