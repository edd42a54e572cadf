"""The strict local provider: a real HTTP server on 127.0.0.1 that says exactly what a test scripts.

It records every request and answers in the order of its script. STRICT is the default: a request
that a real provider would refuse gets 400 and lands in `refused`, and the script does not move on.
It speaks the OpenAI style at /v1/chat/completions and the Anthropic style at /v1/messages.
It runs in a thread of its own, so it serves threads, asyncio tests and child processes alike.
"""

import asyncio
import itertools
import json
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

from tests.e2e import anthropic_contract, anthropic_replies, contract, replies
from tests.e2e.anthropic_contract import Given
from tests.e2e.replies import Break, Endless, Hold, Pause, Reply, Step
from tests.sizes import PATIENCE

API_KEY = "sk-e2e-c0ffee5ec4e7"
MODEL = "fake-model"
POLL_SECONDS = 0.005
LINGER_SECONDS = 2 * PATIENCE


@dataclass
class Recorded:
    """One request as it arrived, and what became of its answer."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    arrived: float = field(default_factory=time.monotonic)
    faults: list[str] = field(default_factory=list)
    status: int = 0
    sent: list[tuple[float, int]] = field(default_factory=list)
    answered: threading.Event = field(default_factory=threading.Event)
    closed: threading.Event = field(default_factory=threading.Event)

    @property
    def body(self) -> Any:
        """The parsed body."""
        return json.loads(self.raw)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages without the system prompt."""
        return [m for m in self.body["messages"] if m["role"] not in ("system", "developer")]

    @property
    def is_anthropic(self) -> bool:
        """Whether it came in the Anthropic style."""
        return self.path.partition("?")[0].endswith("/messages")

    @property
    def system(self) -> str:
        """The text of the system messages."""
        if self.is_anthropic:
            return "\n".join(block["text"] for block in self.body.get("system", []))
        found = [
            m["content"] for m in self.body["messages"] if m["role"] in ("system", "developer")
        ]
        return "\n".join(item if isinstance(item, str) else json.dumps(item) for item in found)

    @property
    def tool_names(self) -> list[str]:
        """The names of the tools that were offered."""
        return [tool.get("function", tool)["name"] for tool in self.body.get("tools", [])]

    def closed_by_client(self, timeout: float = PATIENCE) -> bool:
        """Wait for the client to close this connection before its answer was complete."""
        return self.closed.wait(timeout)


Answer = Callable[[Recorded], Reply]


class Provider:
    """A scripted provider; use it as a context manager."""

    def __init__(self, *, strict: bool = True, api_key: str | None = API_KEY) -> None:
        self.strict = strict
        self.api_key = api_key
        self.requests: list[Recorded] = []
        self.given: list[Given] = []
        """What it signed in the Anthropic style, which it takes back unchanged or not at all."""
        self.model_names = [MODEL]
        self.models_answer: Reply | None = None
        """What it says instead of a list of its models."""
        self._script: deque[Reply] = deque()
        self._otherwise: Answer = _ok
        self._changed = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="provider", daemon=True)
        self.port = 0

    # What a test says and asks

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping = True
        self._loop.call_soon_threadsafe(self._finish.set)
        self._thread.join(PATIENCE)

    @property
    def base_url(self) -> str:
        """The base URL of the OpenAI style."""
        return f"{self.root_url}/v1"

    @property
    def root_url(self) -> str:
        """The base URL of the Anthropic style."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def chats(self) -> list[Recorded]:
        """The chat requests so far, the refused ones included."""
        return [request for request in list(self.requests) if request.method == "POST"]

    @property
    def last(self) -> Recorded:
        """The newest chat request."""
        return self.chats[-1]

    @property
    def refused(self) -> list[str]:
        """Every fault that the strict checks found, with the number of its request."""
        return [f"{n}: {fault}" for n, r in enumerate(self.chats) for fault in r.faults]

    def script(self, *given: Reply) -> None:
        """Add replies to the end of the script."""
        self._script.extend(given)

    def unscript(self) -> None:
        """Forget what is left of the script."""
        self._script.clear()

    @property
    def scripted(self) -> int:
        """How many scripted replies are still unused."""
        return len(self._script)

    def otherwise(self, answer: Answer) -> None:
        """Set what answers when the script is empty (a short text, unless told)."""
        self._otherwise = answer

    def reset(self) -> None:
        """Forget requests, script and switches; a shared provider is clean for the next test."""
        self._script.clear()
        self._otherwise = _ok
        self.requests.clear()
        self.given.clear()
        self.model_names = [MODEL]
        self.models_answer = None
        self.strict = True

    def wait_for(self, count: int, timeout: float = PATIENCE) -> Recorded:
        """Wait until that many chat requests have arrived; give the newest of them."""
        with self._changed:
            done = self._changed.wait_for(lambda: len(self.chats) >= count, timeout)
        assert done, f"{len(self.chats)} chat requests arrived, not {count}"
        return self.chats[count - 1]

    # The server in its thread

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._finish = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._finish.wait()
        server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        connection = _Connection(reader, writer)
        try:
            await self._talk(connection)
        except (ConnectionError, asyncio.CancelledError, TimeoutError):
            pass  # The client or the test ended it; a handler that raises would only be logged.
        finally:
            self._tasks.discard(task)
            if connection.listening is not None:
                connection.listening.cancel()
            writer.close()

    async def _talk(self, connection: "_Connection") -> None:
        while (request := await connection.request()) is not None:
            reply = self._choose(request)
            with self._changed:
                self.requests.append(request)
                self._changed.notify_all()
            request.status = reply.status
            given = _given_in(request, reply)
            self.given.append(given)
            alive = await self._answer(connection, request, reply)
            given.is_whole = given.is_whole and not request.closed.is_set()
            request.answered.set()
            if not alive:
                return

    def _choose(self, request: Recorded) -> Reply:
        if self.api_key is not None and _key_of(request) != self.api_key:
            return _refusal(request, 401, "Incorrect API key provided")
        path = request.path.partition("?")[0]
        if request.method == "GET" and path.endswith("/models"):
            return self._models()
        if request.method != "POST" or not path.endswith(("/chat/completions", "/v1/messages")):
            return replies.error(404, f"Invalid URL ({request.method} {request.path})")
        if self.strict:
            request.faults = _header_faults(request) + self._body_faults(request)
            if request.faults:
                return _refusal(request, 400, request.faults[0])
        if self._script:
            return self._script.popleft()
        if self._otherwise is _ok and request.is_anthropic:
            return anthropic_replies.text("ok")
        return self._otherwise(request)

    def _body_faults(self, request: Recorded) -> list[str]:
        if request.is_anthropic:
            return anthropic_contract.anthropic_faults(request.raw, self.given)
        return contract.openai_faults(request.raw)

    def _models(self) -> Reply:
        if self.models_answer is not None:
            return self.models_answer
        rows = [
            {"id": name, "object": "model", "created": 1700000000, "owned_by": "local"}
            for name in self.model_names
        ]
        body = json.dumps({"object": "list", "data": rows}).encode()
        return Reply([body], headers=[("content-type", "application/json")], framing="length")

    async def _answer(self, connection: "_Connection", request: Recorded, reply: Reply) -> bool:
        """Send one reply; False when the connection is over afterwards."""
        has_head = False
        for step in reply.steps:
            if isinstance(step, Break):
                connection.end(reset=step.reset)
                return False
            if isinstance(step, bytes | Endless) and not has_head:
                connection.head(reply)
                has_head = True
            if not await self._take(connection, request, step, reply):
                request.closed.set()
                return False
        if not has_head:
            connection.head(reply)
        if reply.framing == "chunked":
            connection.writer.write(b"0\r\n\r\n")
        await connection.writer.drain()
        return reply.framing != "close"

    async def _take(
        self, connection: "_Connection", request: Recorded, step: Step, reply: Reply
    ) -> bool:
        if isinstance(step, bytes):
            request.sent.append((time.monotonic(), len(step)))
            return await connection.send(step, chunked=reply.framing == "chunked")
        if isinstance(step, Endless):
            while not self._stopping and await self._take(connection, request, step.data, reply):
                pass
            return False
        if isinstance(step, Hold):
            step.reached.set()
        until = time.monotonic() + (step.seconds if isinstance(step, Pause) else LINGER_SECONDS)
        while time.monotonic() < until and not self._stopping:
            if isinstance(step, Hold) and step.released.is_set():
                return True
            if not await connection.alive(POLL_SECONDS):
                return False
        return True


def _ok(_: Recorded) -> Reply:
    return replies.text("ok")


def _header_faults(request: Recorded) -> list[str]:
    kind = request.headers.get("content-type", "")
    if kind.split(";")[0].strip() != "application/json":
        return [f"Unsupported content type: {kind!r}. This API accepts 'application/json'"]
    if request.is_anthropic and request.headers.get("anthropic-version") != "2023-06-01":
        return ["anthropic-version: header is required"]
    return []


def _key_of(request: Recorded) -> str | None:
    """The key as each style sends it; the list of models is the same for both."""
    bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
    key = request.headers.get("x-api-key")
    return key if request.is_anthropic else key or bearer


def _refusal(request: Recorded, status: int, message: str) -> Reply:
    if request.is_anthropic:
        return anthropic_replies.error(status, message)
    code = "invalid_api_key" if status == 401 else "invalid_request_error"
    return replies.error(status, message, code=code)


def _given_in(request: Recorded, reply: Reply) -> Given:
    """What a reply signs, up to where it breaks."""
    if not request.is_anthropic or reply.status != 200:
        return Given("")
    steps = itertools.takewhile(lambda step: not isinstance(step, Break), reply.steps)
    raw = b"".join(step for step in steps if isinstance(step, bytes))
    return anthropic_contract.given_in(str(request.body.get("model")), raw)


class _Connection:
    """One HTTP/1.1 connection that always listens, so that it sees the client go at once."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.buffer = b""
        self.listening: asyncio.Task[bytes] | None = None

    async def alive(self, seconds: float) -> bool:
        """Listen for that long; False when the client has closed."""
        if self.listening is None:
            self.listening = asyncio.create_task(self.reader.read(1 << 20))
        if seconds:
            await asyncio.wait({self.listening}, timeout=seconds)
        else:
            await asyncio.sleep(0)
        if not self.listening.done():
            return True
        task, self.listening = self.listening, None
        try:
            received = task.result()
        except ConnectionError:
            return False  # closed with bytes of ours unread
        self.buffer += received
        return bool(received)

    async def request(self) -> Recorded | None:
        """Read one request; None when the client has closed instead."""
        while b"\r\n\r\n" not in self.buffer:
            if not await self.alive(LINGER_SECONDS):
                return None
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {k.strip().lower(): v.strip() for k, _, v in (x.partition(":") for x in lines)}
        length = int(headers.get("content-length", "0"))
        while len(self.buffer) < length:
            if not await self.alive(LINGER_SECONDS):
                return None
        raw, self.buffer = self.buffer[:length], self.buffer[length:]
        return Recorded(method, path, headers, raw)

    def head(self, reply: Reply) -> None:
        """Write the status line and headers, unless the steps hold them."""
        if reply.framing == "raw":
            return
        lines = [f"HTTP/1.1 {reply.status} Scripted", *(f"{k}: {v}" for k, v in reply.headers)]
        if reply.framing == "chunked":
            lines.append("transfer-encoding: chunked")
        elif reply.framing == "length":
            size = sum(len(step) for step in reply.steps if isinstance(step, bytes))
            lines.append(f"content-length: {size}")
        else:
            lines.append("connection: close")
        self.writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())

    async def send(self, piece: bytes, *, chunked: bool) -> bool:
        """Write one piece as one chunk (b"" is none); False when the client has closed."""
        self.writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked and piece else piece)
        try:
            await self.writer.drain()
        except ConnectionError:
            return False
        return await self.alive(0)

    def end(self, *, reset: bool) -> None:
        """Close in the middle of an answer."""
        if reset:
            linger = struct.pack("ii", 1, 0)  # closing without waiting is a reset
            peer = self.writer.get_extra_info("socket")
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.writer.transport.abort()
        else:
            self.writer.close()
