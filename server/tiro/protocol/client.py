"""A small client of our own protocol: it starts a server as a child and talks to it over pipes.

async with await Client.start() as client:
    async for event in client.ask("What does this do?"):
        ...
"""

import asyncio
import contextlib
import itertools
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from tiro.protocol.frames import FrameParser, decode_body, encode_body, frame

SERVE = (sys.executable, "-m", "tiro", "serve")
END_SECONDS = 3.0
LIFE_SECONDS = 10.0
"""After so long a silence a sign of life is asked for."""
MAX_SILENCES = 3
"""So many in a row, and the server counts as dead."""
SIGN_OF_LIFE = "$/signOfLife"
"""No server knows it; the protocol has each one say so at once, whatever else it is doing."""
FEATURES = {"permissionRequest": True, "turnEvents": True}

log = logging.getLogger(__name__)


class RemoteError(Exception):
    """The server answered a request with an error; its text is the server's."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(str(error.get("message", "")))
        self.code = int(error.get("code", 0))
        data = error.get("data")
        self.data: dict[str, Any] = data if isinstance(data, dict) else {}
        self.kind: str | None = self.data.get("kind")


class ServerGoneError(Exception):
    """The server has ended; nothing more will be answered."""


class ServerSilentError(ServerGoneError):
    """The server is there, and for long has said nothing at all."""


OnNotification = Callable[[str, Any], None]
OnRequest = Callable[[str, Any], Awaitable[Any]]


async def _refuse(method: str, params: Any) -> Any:
    raise NotImplementedError(method)


class Client:
    """One server process and the conversation with it.

    `on_notification(method, params)` hears everything the server tells; `on_request` answers what
    it asks, such as permission requests. Both run in the event loop that started the client.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        on_notification: OnNotification | None = None,
        on_request: OnRequest | None = None,
    ) -> None:
        self.process = process
        self._on_notification = on_notification or (lambda method, params: None)
        self._on_request = on_request or _refuse
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self.signs_of_life = 0
        """How often something came from the server."""
        self.is_silent = False
        """Whether the server was given up; it is still to be closed."""
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(
        cls,
        command: Sequence[str] = SERVE,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stderr: int | None = None,
        on_notification: OnNotification | None = None,
        on_request: OnRequest | None = None,
    ) -> Self:
        """Start a server; `initialize` is still to be sent."""
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            env=None if env is None else dict(env),
            cwd=cwd,
            start_new_session=True,  # a Ctrl-C in our terminal is ours to handle
        )
        return cls(process, on_notification, on_request)

    async def initialize(
        self,
        *,
        settings: Mapping[str, Any] | None = None,
        workspace_roots: Sequence[str] = (),
        capabilities: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Greet the server; its result."""
        folders = [{"uri": uri, "name": os.path.basename(uri)} for uri in workspace_roots]
        params = {
            "processId": os.getpid(),
            "rootUri": workspace_roots[0] if workspace_roots else None,
            "workspaceFolders": folders,
            "capabilities": dict(capabilities or {}),
            "initializationOptions": {"settings": dict(settings or {}), "features": FEATURES},
        }
        result: dict[str, Any] = await self.request("initialize", params)
        self.notify("initialized", {})
        return result

    async def request(self, method: str, params: Any = None) -> Any:
        """Send a request and wait for its result, for as long as the server gives signs of life.

        Raises RemoteError for an error, ServerGoneError when the server ends first, and
        ServerSilentError when it has hung. Cancelling the wait sends `$/cancelRequest`.
        """
        id_ = next(self._ids)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[id_] = answer
        self._send({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})
        if self._reading.done():
            self._give_up()
        try:
            return await self._while_alive(answer)
        except asyncio.CancelledError:
            self.notify("$/cancelRequest", {"id": id_})
            raise
        finally:
            self._waiting.pop(id_, None)

    async def _while_alive(self, answer: asyncio.Future[Any]) -> Any:
        silences, heard = 0, self.signs_of_life
        while not (await asyncio.wait({answer}, timeout=LIFE_SECONDS))[0]:
            silences = silences + 1 if heard == self.signs_of_life else 0
            heard = self.signs_of_life
            if silences == MAX_SILENCES:
                self.is_silent = True
                seconds = round(LIFE_SECONDS * MAX_SILENCES)
                raise ServerSilentError(f"The server gave no sign of life for {seconds} seconds")
            self._send({"jsonrpc": "2.0", "id": next(self._ids), "method": SIGN_OF_LIFE})
        return answer.result()

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def cancel(self) -> bool:
        """Cancel the running turn; whether there was one."""
        result = await self.request("tiro/turn/cancel", {})
        return bool(result["cancelled"])

    async def close(self) -> int:
        """Say goodbye, unless nobody listens, and wait for the end; the exit code of the server."""
        if self.is_silent:
            await self.kill()
        with contextlib.suppress(ServerGoneError, RemoteError, TimeoutError):
            await asyncio.wait_for(self.request("shutdown"), END_SECONDS)
            self.notify("exit")
        return await self._ended()

    async def kill(self) -> None:
        """End the server at once, as a crash would."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await self._ended()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def _ended(self) -> int:
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            code = await asyncio.wait_for(self.process.wait(), END_SECONDS)
        except TimeoutError:
            self.process.kill()
            code = await self.process.wait()
        await asyncio.wait({self._reading})
        return code

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        if not self.process.stdin.is_closing():
            self.process.stdin.write(frame(encode_body(message)))

    async def _read(self) -> None:
        assert self.process.stdout is not None
        parser = FrameParser()
        try:
            while data := await self.process.stdout.read(1 << 16):
                self.signs_of_life += 1
                for body in parser.feed(data):
                    self._take(decode_body(body))
        except OSError as error:  # as if it had been closed: what waits is told
            log.warning("The server's answers cannot be read: %s", error.strerror)
        finally:
            self._give_up()

    def _give_up(self) -> None:
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(ServerGoneError("The server has ended"))

    def _take(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            self._settle(message)
        elif "id" in message:
            task = asyncio.create_task(self._answer(message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._on_notification(message["method"], message.get("params"))

    def _settle(self, message: dict[str, Any]) -> None:
        id_ = message.get("id")
        answer = self._waiting.get(id_) if isinstance(id_, int) else None
        if answer is None or answer.done():
            return
        if "error" in message:
            answer.set_exception(RemoteError(message["error"]))
        else:
            answer.set_result(message.get("result"))

    async def _answer(self, message: dict[str, Any]) -> None:
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            reply["result"] = await self._on_request(message["method"], message.get("params"))
        except NotImplementedError:
            reply["error"] = {"code": -32601, "message": "There is no such method here"}
        except Exception as error:
            reply["error"] = {"code": -32603, "message": str(error)}
        self._send(reply)
