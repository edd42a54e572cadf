"""The provider's side of a recording, played by a real HTTP server on this machine.

Each request gets the next unused answer that was recorded for its method and path: status, headers
and chunks as they came, with the recorded pauses, and the same end; where Tiro itself had left,
by a cancel say, this client gets some time to leave too, then an error that says so. A request is
answered also when it differs from the recorded one, and the difference is told. Afterwards the
answer is 410.
"""

import contextlib
import difflib
import json
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from tiro.errors import StorageError
from tiro.recording.exchanges import RecordedExchange, read_recording
from tiro.recording.lines import Response

USED_UP = "The recording is used up: it holds no further answer to"
LEFT = "Answer {number} goes no further, Tiro did not wait for its end when it was recorded"
"""A cancel is the usual reason; others are a silence too long, and what Tiro cannot read."""
BROKEN_OFF = "Answer {number} goes no further, the recording breaks off in it"
MAX_DIFF_LINES = 20
MAX_TOLD_LINES = 60
"""So many lines of differences are told in all; then it is said only that there are some."""
HOLD_SECONDS = 1.0
LOOK_SECONDS = 0.1
"""How often somebody who waits looks whether the replay has been closed."""

_OWN_HEADERS = frozenset({"content-length", "content-encoding", "transfer-encoding", "connection"})
"""What tells how a body is framed; the framing is ours, of the recorded kind."""


class Replay:
    """A running replay; a context manager.

    `on_note` hears in a sentence what differs from the recording, from any thread; the sentences
    are kept in `notes`. Where Tiro left an answer before its end, this client gets
    `hold_seconds` to do the same.
    """

    def __init__(
        self,
        path: Path,
        *,
        port: int = 0,
        fast: bool = False,
        provider: str | None = None,
        hold_seconds: float = HOLD_SECONDS,
        on_note: Callable[[str], None] = lambda note: None,
    ) -> None:
        """Read the recording; errors as of `read_recording`, and as of `Recording.of_provider`."""
        self.recording = read_recording(path)
        self.exchanges = self.recording.of_provider(provider)
        self.notes: list[str] = []
        self.is_fast = fast
        self.hold_seconds = hold_seconds
        self.closing = threading.Event()
        self._port = port
        self._left = list(self.exchanges)
        self._lines_to_tell = MAX_TOLD_LINES
        self._lock = threading.Lock()
        self._on_note = on_note

    def __enter__(self) -> Self:
        """Listen; StorageError when the port cannot be had."""
        try:
            self._server = _Server(self, self._port)
        except OSError as error:
            raise StorageError(f"Port {self._port} cannot be used: {error.strerror}") from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(LOOK_SECONDS,), name="tiro-replay", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def base_url(self) -> str:
        """What a provider's `base_url` is to be set to."""
        recorded = self.exchanges[0].request.base_url.partition("://")[2].partition("/")
        return f"http://127.0.0.1:{self._server.server_port}{recorded[1]}{recorded[2]}"

    @property
    def left(self) -> int:
        """How many recorded answers have not been asked for."""
        return len(self._left)

    def choose(self, method: str, path: str, body: bytes) -> RecordedExchange | None:
        """The answer to this request, which is used up by it; None when there is no more."""
        with self._lock:
            fitting = [one for one in self._left if one.request.method == method]
            named = [one for one in fitting if one.path == path]
            if not named and any(one.path == path for one in self.exchanges):
                fitting = []
            chosen = next(iter(named or fitting), None)
            if chosen is not None:
                self._left.remove(chosen)
        if chosen is None:
            self.note(f"{USED_UP} {method} {path}")
            return None
        number = self.exchanges.index(chosen) + 1
        if chosen.path != path:
            self.note(f"Request {number} was recorded for {chosen.path}, not {path}")
        if difference := diff(chosen.request.data, body):
            self._tell_difference(number, difference)
        return chosen

    def left_early(self, exchange: RecordedExchange) -> str:
        """Tell that this client has to be sent away where Tiro had left; the sentence."""
        sentence = LEFT if exchange.end else BROKEN_OFF
        told = sentence.format(number=self.exchanges.index(exchange) + 1)
        self.note(told)
        return told

    def note(self, text: str) -> None:
        """Tell a difference."""
        self.notes.append(text)
        self._on_note(text)

    def _tell_difference(self, number: int, difference: str) -> None:
        """The lines that differ, while there are few: a long talk sends the same ones each time."""
        with self._lock:
            self._lines_to_tell -= len(difference.splitlines())
            is_short = self._lines_to_tell >= 0
        told = f"Request {number} differs from the recorded one"
        self.note(f"{told}:\n{difference}" if is_short else told)


def diff(recorded: bytes, sent: bytes) -> str:
    """A short unified diff of two bodies, JSON as JSON; empty when they say the same."""
    lines = list(
        difflib.unified_diff(
            _lines_of(recorded), _lines_of(sent), "recorded", "sent", n=1, lineterm=""
        )
    )
    if len(lines) > MAX_DIFF_LINES:
        more = len(lines) - MAX_DIFF_LINES
        lines = [*lines[:MAX_DIFF_LINES], f"… and {more} lines more"]
    return "\n".join(line if len(line) <= 200 else f"{line[:199]}…" for line in lines)


def _lines_of(body: bytes) -> list[str]:
    text = body.decode("utf-8", "replace")
    with contextlib.suppress(ValueError):
        text = json.dumps(json.loads(text), indent=1, sort_keys=True, ensure_ascii=False)
    return text.splitlines()


class _GoneError(Exception):
    """The client has left, or the replay is closed."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, replay: Replay, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Player)
        self.replay = replay

    def shutdown_request(self, request: Any) -> None:
        """Close without a farewell, so that a reset stays one."""
        self.close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves in the middle is nothing to tell."""


class _Player(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        """Play the answer."""
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        exchange = self.server.replay.choose(self.command, self.path, body)
        try:
            if exchange is None:
                self._refuse(f"{USED_UP} {self.command} {self.path}")
            else:
                self._play(exchange)
        except (_GoneError, OSError):
            self.close_connection = True

    do_POST = do_GET  # noqa: N815  # the names are the library's

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing; what matters is told by the replay."""

    def _refuse(self, sentence: str) -> None:
        body = json.dumps({"error": {"message": sentence}}).encode()
        self.send_response_only(410)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _play(self, exchange: RecordedExchange) -> None:
        at = exchange.request.ms
        is_chunked = False
        if (response := exchange.response) is not None:
            self._wait(response.ms - at)
            at, is_chunked = response.ms, self._head(exchange, response)
        for chunk in exchange.chunks:
            self._wait(chunk.ms - at)
            at, data = chunk.ms, chunk.data
            if data:  # a piece may have held nothing but the end of a secret
                self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data) if is_chunked else data)
        self._end(exchange, at, is_chunked)

    def _head(self, exchange: RecordedExchange, response: Response) -> bool:
        """Send status and headers; whether the body is framed in chunks."""
        headers = [(name.lower(), value) for name, value in response.headers]
        given = dict(headers)
        self.send_response_only(response.status)
        for name, value in headers:
            if name not in _OWN_HEADERS:
                self.send_header(name, value)
        is_chunked = "chunked" in given.get("transfer-encoding", "")
        if is_chunked:
            self.send_header("transfer-encoding", "chunked")
        elif "content-length" in given:
            self.send_header("content-length", str(_length(exchange, given["content-length"])))
        else:
            self.send_header("connection", "close")
        self.end_headers()
        return is_chunked

    def _end(self, exchange: RecordedExchange, at: float, is_chunked: bool) -> None:
        """End as it ended then; where nobody knows what would have come, nothing more comes."""
        if exchange.end is not None:
            self._wait(exchange.end.ms - at)
        match exchange.how:
            case "complete":
                if is_chunked:
                    self.wfile.write(b"0\r\n\r\n")
            case "closed" | "silent":
                self._watch_client(self.server.replay.hold_seconds)
                self._send_away(exchange, is_chunked)
            case "reset":
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.close_connection = True
            case "cut" | "unreachable":
                self.close_connection = True

    def _send_away(self, exchange: RecordedExchange, is_chunked: bool) -> None:
        """Say why nothing more comes, so that a client neither waits nor asks for it once more."""
        sentence = self.server.replay.left_early(exchange)
        self.close_connection = True
        if exchange.response is None:
            self._refuse(sentence)
        elif is_chunked:
            error = json.dumps({"type": "error", "error": {"message": sentence}})
            data = f"\n\nevent: error\ndata: {error}\n\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _wait(self, ms: float) -> None:
        """The recorded pause; a client that leaves ends it."""
        if not self.server.replay.is_fast:
            self._watch_client(ms / 1000)

    def _watch_client(self, seconds: float) -> None:
        """Wait so long; what comes meanwhile can only be the client's farewell, which ends it."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self.server.replay.closing.is_set():
                raise _GoneError
            if select.select([self.connection], [], [], min(left, LOOK_SECONDS))[0]:
                raise _GoneError


def _length(exchange: RecordedExchange, promised: str) -> int:
    """The length to promise: secrets that were taken out have changed that of the body."""
    length = sum(len(chunk.data) for chunk in exchange.chunks)
    if exchange.how == "complete":
        return length
    return max(length + 1, int(promised) if promised.isdecimal() else 0)
