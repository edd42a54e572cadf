"""Our JSON-RPC over pygls: whole messages in, exactly one reply for each id.

Law: a request is answered by `_reply` or `refuse`, and by nothing else; what cannot be understood
is refused, never dropped. pygls contributes the registration of handlers, the running of them and
the LSP types; reading, dispatching and writing are ours. These names of pygls (2.1) are private and
are touched in this file only: `_converter`, `_execute_handler`, `_get_handler`, `_request_futures`,
`_register_builtin_features`, `_send_data`.
"""

import asyncio
import itertools
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import msgspec
from lsprotocol import types as lsp
from pygls import exceptions as rpc
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter

from tiro.protocol import types
from tiro.protocol.buffers import DidChangeParams, DidOpenParams, DocumentParams
from tiro.protocol.frames import MAX_OWN_BYTES, encode_body
from tiro.protocol.lsp_params import (
    CancelParams,
    ClientParams,
    CodeActionParams,
    ConfigurationParams,
    ExecuteCommandParams,
    FoldersParams,
    MessageId,
    TraceParams,
)
from tiro.protocol.wire import bounded, shortened, to_wire_error

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from concurrent.futures import Future

    from cattrs import Converter

logger = logging.getLogger(__name__)

State = Literal["new", "running", "shut_down"]
P = TypeVar("P")

CANCELLED = -32800
UNFINISHED = "The server ended before the request was finished; what it does may still come about"

PARAMS: dict[str, type[msgspec.Struct]] = {
    **{name: method.params for name, method in types.METHODS.items()},
    lsp.INITIALIZE: ClientParams,
    lsp.SET_TRACE: TraceParams,
    lsp.CANCEL_REQUEST: CancelParams,
    lsp.TEXT_DOCUMENT_DID_OPEN: DidOpenParams,
    lsp.TEXT_DOCUMENT_DID_CHANGE: DidChangeParams,
    lsp.TEXT_DOCUMENT_DID_CLOSE: DocumentParams,
    lsp.TEXT_DOCUMENT_DID_SAVE: DocumentParams,
    lsp.TEXT_DOCUMENT_CODE_ACTION: CodeActionParams,
    lsp.WORKSPACE_EXECUTE_COMMAND: ExecuteCommandParams,
    lsp.WORKSPACE_DID_CHANGE_CONFIGURATION: ConfigurationParams,
    lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: FoldersParams,
}
"""The params of every method that has some."""

KEPT_WHOLE = {"tiro/session/addMessage"}
"""Methods whose handler gets the params as they came, once their type has been checked."""


class ClientRefusedError(Exception):
    """The client answered a request of ours with an error, or will never answer it."""


class UnreadableAnswerError(ClientRefusedError):
    """The client answered a request of ours in a way that nobody can read."""

    def __init__(self) -> None:
        super().__init__("The client's answer cannot be read")


class LateConverter:
    """pygls' converter, made when somebody asks for it: an ordinary start does without."""

    def __getattr__(self, name: str) -> Any:
        made = default_converter()  # type: ignore[no-untyped-call]  # it is so in pygls
        self.__dict__.update({n: getattr(made, n) for n in ("structure", "unstructure")})
        return getattr(made, name)


class Outlet(Protocol):
    """Where ready bodies go; `frames.FrameWriter` is the real one."""

    def put(self, body: bytes) -> None:
        """Queue one body."""
        ...


class TiroProtocol(LanguageServerProtocol):
    """The connection with one client. All methods are called in the event loop's thread."""

    def __init__(self, server: LanguageServer, converter: "Converter") -> None:
        super().__init__(server, converter)
        self.state: State = "new"
        self.outlet: Outlet | None = None
        self.on_shutdown: Callable[[], Any] | None = None
        self.on_exit: Callable[[int], None] | None = None
        self._keys = itertools.count(1)
        self._incoming: dict[int, MessageId] = {}
        self._initialize_key: int | None = None
        self._shutdown_key: int | None = None
        self._asked: dict[int, asyncio.Future[Any]] = {}

    def _register_builtin_features(self) -> None:
        """Not those of pygls: they type through cattrs, and their documents lose their place."""
        for method, handler in (
            (lsp.SHUTDOWN, self._shut_down),
            (lsp.EXIT, self._exit),
            (lsp.CANCEL_REQUEST, self._cancel_request),
            (lsp.WORKSPACE_EXECUTE_COMMAND, self._execute_command),
        ):
            self.fm.add_builtin_feature(method, handler)

    # --- in ---------------------------------------------------------------------------------------

    def handle_message(self, message: Any) -> None:
        """Take one decoded message: run it, settle an answer, or refuse it with an error."""
        try:
            self._take(message)
        except rpc.JsonRpcException as error:
            self.refuse(message, error)
        except Exception:
            logger.exception("A message could not be handled")
            self.refuse(message, rpc.JsonRpcInternalError("The server failed; its log says why"))

    def refuse(self, message: Any, error: rpc.JsonRpcException) -> None:
        """Answer what cannot be run: under its id if it has a legal one, else under null.

        Where it should have been an answer, nobody waits for that any more.
        """
        fields = message if isinstance(message, dict) else {}
        if "method" not in fields and self.refuse_answer(fields.get("id")):
            return
        is_notification = "id" not in fields and isinstance(fields.get("method"), str)
        if is_notification and fields.get("jsonrpc") == "2.0":
            is_unknown = isinstance(error, rpc.JsonRpcMethodNotFound)
            level = logging.INFO if is_unknown else logging.WARNING
            logger.log(level, "Notification %.99r ignored: %.999s", fields["method"], error.message)
            return
        id_ = fields.get("id")
        self.send_error(id_ if _is_id(id_) else None, types.ErrorObject(error.code, error.message))

    def cancel(self, id_: MessageId) -> None:
        """Cancel the requests with this id; each of them still gets its reply."""
        for key, incoming in tuple(self._incoming.items()):
            if incoming == id_ and type(incoming) is type(id_) and key in self._request_futures:
                self._request_futures[key].cancel()

    def cancel_all(self) -> None:
        """Cancel every request that is still running."""
        for future in self._running(self._incoming.keys() - {self._shutdown_key}):
            future.cancel()

    @property
    def open_requests(self) -> int:
        """How many requests are still to be answered; may be read from any thread."""
        return len(self._incoming)

    async def answered(self, timeout_seconds: float) -> None:
        """Wait until all requests but `shutdown` are answered; what takes longer is cancelled.

        What does not hear of that, since it must not be left half done, is answered all the same.
        """
        for _ in range(2):
            if running := self._running(self._incoming.keys() - {self._shutdown_key}):
                await asyncio.wait(running, timeout=timeout_seconds)
                self.cancel_all()
        await asyncio.sleep(0)  # those that do hear of it say so themselves
        self._give_up(self._incoming.keys() - {self._shutdown_key})

    def give_up(self) -> None:
        """Answer every request that is still open, for there is no more time."""
        self._give_up(tuple(self._incoming))

    def _give_up(self, keys: "Collection[int | None]") -> None:
        for key in keys:
            if key is not None and (id_ := self._incoming.pop(key, None)) is not None:
                self.send_error(id_, types.ErrorObject(CANCELLED, UNFINISHED))

    async def shutdown_answered(self) -> None:
        """Wait until `shutdown` is answered, if it was asked."""
        if running := self._running(self._incoming.keys() & {self._shutdown_key}):
            await asyncio.wait(running)
            await asyncio.sleep(0)  # the answer is sent by a callback of what we waited for

    def _running(self, keys: "Collection[int | None]") -> list[Any]:
        futures: dict[Any, Any] = self._request_futures
        return [futures[key] for key in keys if isinstance(futures.get(key), asyncio.Future)]

    def _take(self, message: Any) -> None:
        check_envelope(message)
        if "method" not in message:
            self._settle(message)
            return
        method, is_request = message["method"], "id" in message
        if not self._is_allowed(method, is_request=is_request):
            return
        try:
            handler = self._get_handler(method)
        except rpc.JsonRpcMethodNotFound as error:
            unknown = rpc.JsonRpcMethodNotFound(f"There is no method {method!r}")
            raise unknown from error
        params = self._typed_params(method, message.get("params"))
        logger.debug("Received %s, id %r", method, message.get("id"))
        if is_request:
            key = next(self._keys)
            self._incoming[key] = message["id"]
            # The state changes before the handler runs: the next message may be here already.
            if method == lsp.INITIALIZE:
                self._initialize_key, self.state = key, "running"
            elif method == lsp.SHUTDOWN:
                self._shutdown_key, self.state = key, "shut_down"
            self._execute_handler(key, handler, partial(self._answer, key), (params,))
        else:
            self._execute_handler(next(self._keys), handler, self._noted, (params,))

    def _is_allowed(self, method: str, *, is_request: bool) -> bool:
        """Whether the method may run in this state; a request that may not is an error."""
        if method == lsp.EXIT or (self.state == "running" and method != lsp.INITIALIZE):
            return True
        if self.state == "new" and method == lsp.INITIALIZE:
            return True
        if not is_request:
            logger.warning("Notification %.99r ignored: the server is %s", method, self.state)
            return False
        if self.state == "new":
            raise rpc.JsonRpcServerNotInitialized("Send 'initialize' first")
        if self.state == "shut_down":
            raise rpc.JsonRpcInvalidRequest("The server is shutting down; send 'exit'")
        raise rpc.JsonRpcInvalidRequest("The server has been initialized already")

    def _typed_params(self, method: str, params: Any) -> Any:
        """The params as the handler wants them; {}, null and missing are the same."""
        params = {} if params is None else params
        if not isinstance(params, dict):
            raise rpc.JsonRpcInvalidParams("The params must be one object - at `$`")
        if kind := PARAMS.get(method):
            typed = typed_params(params, kind)
            return params if method in KEPT_WHOLE else typed
        return params

    # --- answers ----------------------------------------------------------------------------------

    def _answer(self, key: int, future: "Future[Any]") -> None:
        """Reply to a request whose handler is done."""
        self._request_futures.pop(key, None)
        id_ = self._incoming.pop(key, None)
        if id_ is None:
            return  # it was given up
        logger.debug("Answer to id %r", id_)
        if future.cancelled():
            self.send_error(id_, types.ErrorObject(CANCELLED, "The request was cancelled"))
        elif (error := future.exception()) is not None:
            if key == self._initialize_key:
                self.state = "new"
            self.send_error(id_, self._error_object(error))
        else:
            self._reply(id_, future.result())

    def _noted(self, future: "Future[Any]") -> None:
        """A notification's handler is done; nobody waits for it."""
        if not future.cancelled() and (error := future.exception()) is not None:
            logger.warning("A notification failed: %s", self._error_object(error).message)

    def _error_object(self, error: BaseException) -> types.ErrorObject:
        if isinstance(error, rpc.JsonRpcException):
            return types.ErrorObject(error.code, error.message)
        wire = to_wire_error(error)
        if wire.code == types.INTERNAL_ERROR:
            logger.error("A request failed", exc_info=error)
        return wire

    def _reply(self, id_: MessageId, result: Any) -> None:
        try:
            self._send_data({"jsonrpc": "2.0", "id": id_, "result": self._plain(result)})
        except Exception as error:
            self.send_error(id_, self._error_object(error))

    def send_error(self, id_: MessageId | None, error: types.ErrorObject) -> None:
        """Answer a request with an error; None where its id is not known."""
        self._send_data({"jsonrpc": "2.0", "id": id_, "error": bounded(error)})

    # --- out --------------------------------------------------------------------------------------

    def _send_data(self, data: Any) -> None:
        """Encode one message and queue it; never waits for the client."""
        if self.outlet is not None:
            self.outlet.put(encode_body(self._plain(data)))

    def _send_own(self, message: dict[str, Any]) -> None:
        """Send a notification or request of ours, cut for display when it is over 1 MB."""
        if self.outlet is None:
            return
        body = encode_body(message)
        if len(body) > MAX_OWN_BYTES:
            body = shortened(message, MAX_OWN_BYTES)
        self.outlet.put(body)

    def _plain(self, value: Any) -> Any:
        """LSP types of pygls through its converter; everything else is encoded as it is."""
        return self._converter.unstructure(value) if hasattr(value, "__attrs_attrs__") else value

    def notify(self, method: str, params: Any | None = None) -> None:
        """Send a notification."""
        self._send_own({"jsonrpc": "2.0", "method": method, "params": self._plain(params)})

    async def ask(self, method: str, params: Any) -> Any:
        """Send a request and wait for its plain result.

        Raises ClientRefusedError for an error. When the wait is cancelled, the client is told.
        """
        key, future = self._asking()
        self._send_own({"jsonrpc": "2.0", "id": key, "method": method, "params": params})
        try:
            return await future
        except asyncio.CancelledError:
            self.notify(lsp.CANCEL_REQUEST, {"id": key})
            raise
        finally:
            self._asked.pop(key, None)

    def drop_asked(self) -> None:
        """Nobody will answer our requests any more: all of them are refused."""
        for future in self._asked.values():
            if not future.done():
                future.set_exception(ClientRefusedError("The connection is being closed"))

    def refuse_answer(self, id_: Any) -> bool:
        """The answer to this request of ours cannot be read; False where nobody waits for it."""
        future = self._asked.get(id_) if type(id_) is int else None
        if future is None or future.done():
            return False
        future.set_exception(UnreadableAnswerError())
        return True

    def _asking(self) -> "tuple[int, asyncio.Future[Any]]":
        key = next(self._keys)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked[key] = future
        if self.state != "running" or self.outlet is None:
            future.set_exception(ClientRefusedError("There is no client to ask"))
        return key, future

    def _settle(self, message: dict[str, Any]) -> None:
        """Take the client's answer to a request of ours."""
        id_, error = message["id"], message.get("error")
        future = self._asked.get(id_) if type(id_) is int else None
        if future is None or future.done():
            logger.warning("An answer that nobody waits for was ignored")
        elif error is not None:
            future.set_exception(ClientRefusedError(f"The client refused: {error!r:.200}"))
        else:
            future.set_result(message.get("result"))

    # --- LSP --------------------------------------------------------------------------------------

    async def _shut_down(self, params: Any) -> None:
        """End what runs, then answer."""
        if self.on_shutdown is not None:
            await self.on_shutdown()

    def _exit(self, params: Any) -> None:
        """End the process: 0 after `shutdown`, else 1."""
        if self.on_exit is not None:
            self.on_exit(0 if self.state == "shut_down" else 1)

    def _cancel_request(self, params: CancelParams) -> None:
        self.cancel(params.id)

    async def _execute_command(self, params: ExecuteCommandParams) -> Any:
        if (handler := self.fm.commands.get(params.command)) is None:
            why = f"There is no command {params.command!r} - at `$.command`"
            raise rpc.JsonRpcInvalidParams(why)
        return await handler(params)


def typed_params(params: Any, kind: type[P]) -> P:
    """The params as this type; the error for wrong ones says where they are wrong."""
    try:
        return msgspec.convert(params, kind)
    except msgspec.ValidationError as error:
        why = str(error)  # it ends in the JSON path, except for the root
        why += "" if " - at `" in why else " - at `$`"
        raise rpc.JsonRpcInvalidParams(why) from error


def check_envelope(message: Any) -> None:
    """Raise the JSON-RPC error for what is no request, no notification and no answer."""
    if isinstance(message, list):
        raise rpc.JsonRpcInvalidRequest("Batches are not supported; send one message a frame")
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise rpc.JsonRpcInvalidRequest('A message is one object with "jsonrpc": "2.0"')
    if "id" in message and not _is_id(message["id"]):
        if "method" not in message and "error" in message:
            return  # an error about something of ours that the client could not read
        raise rpc.JsonRpcInvalidRequest("An id is an integer or a string")
    if "method" not in message:
        if "id" not in message or not message.keys() & {"result", "error"}:
            raise rpc.JsonRpcInvalidRequest("A request has a method")
    elif not isinstance(message["method"], str):
        raise rpc.JsonRpcInvalidRequest("A method is a string")


def _is_id(value: Any) -> bool:
    return type(value) is int or type(value) is str
