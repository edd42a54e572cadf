"""Frames: bytes in from a reader thread, bytes out through a writer thread, values ↔ bytes.

Nothing here waits on the event loop, and the loop never waits on anything here: a client that
does not read fills the writer's queue, not the loop. By itself this module knows no method and
no message; `rpc.py` does. It imports little, so that `keep_stdout` can run before anything heavy.
"""

import collections
import json
import operator
import os
import re
import select
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from tiro.session import json_text

MAX_BODY_BYTES = 64 * 1024 * 1024
"""A longer Content-Length is taken for garbage."""

MAX_HEADER_BYTES = 8 * 1024
MAX_NESTING = 200
MAX_OWN_BYTES = 1_000_000
"""No notification and no request of ours is larger than this."""

MAX_WAITING_BYTES = 64 * 1024 * 1024
"""With more than this unread by the client, no further message is taken from it."""

CHUNK_BYTES = 256 * 1024


class BrokenFrameError(Exception):
    """A header block without a usable Content-Length: the stream cannot be trusted any more."""


class Stdio(NamedTuple):
    """The two descriptors that carry frames."""

    read_fd: int
    write_fd: int


def keep_stdio() -> Stdio:
    """Keep stdin and stdout for frames. Call it once, before anything heavy is imported."""
    return Stdio(keep_stdin(), keep_stdout())


def keep_stdout() -> int:
    """Keep fd 1 for frames under a private number and let fd 1 be stderr from now on.

    Whatever prints afterwards (a library, a child process, C code) cannot get between the frames.
    """
    frames_fd = os.dup(1)
    os.set_inheritable(frames_fd, False)
    try:
        os.dup2(2, 1)
    except OSError:  # started without a stderr
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
    sys.stdout = sys.stderr
    return frames_fd


def keep_stdin() -> int:
    """Keep fd 0 for frames under a private number; fd 0 is empty for everybody else."""
    frames_fd = os.dup(0)
    os.set_inheritable(frames_fd, False)
    with open(os.devnull, "rb") as empty:
        os.dup2(empty.fileno(), 0)
    return frames_fd


class FrameParser:
    """Bytes in any pieces → whole bodies. No I/O."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._body_bytes: int | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take what has arrived and give the bodies that are complete now.

        Raises BrokenFrameError; the parser is of no use after that.
        """
        self._buffer += data
        while True:
            if self._body_bytes is None and not self._take_header():
                return
            length = self._body_bytes or 0
            if len(self._buffer) < length:
                return
            body = bytes(memoryview(self._buffer)[:length])
            del self._buffer[:length]
            self._body_bytes = None
            yield body

    def _take_header(self) -> bool:
        """Read one header block, when all of it is here."""
        found = _HEADER_END.search(self._buffer, 0, MAX_HEADER_BYTES)
        if found is None:
            if len(self._buffer) >= MAX_HEADER_BYTES:
                raise BrokenFrameError("The header block does not end")
            return False
        block = bytes(memoryview(self._buffer)[: found.start()])
        del self._buffer[: found.end()]
        self._body_bytes = content_length(block)
        return True


_HEADER_END = re.compile(rb"(?:^|\n)\r?\n")
"""The empty line after the headers; some clients end their lines with LF only."""


def content_length(block: bytes) -> int:
    """The Content-Length of a header block; raises BrokenFrameError when it has no usable one."""
    lengths = set()
    for line in block.split(b"\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            lengths.add(value.strip())
    value = lengths.pop() if len(lengths) == 1 else b""
    if not value.isdigit() or len(value) > 20 or int(value) > MAX_BODY_BYTES:
        raise BrokenFrameError("The header block has no usable Content-Length")
    return int(value)


def decode_body(body: bytes) -> Any:
    """The value of a body; raises ValueError for what is no JSON or is nested too deeply.

    Strictly first; lone surrogates and non-finite numbers are cleaned away by the second look.
    """
    try:
        value = _decode(body)
    except RecursionError as error:
        raise ValueError("The message is nested too deeply") from error
    brackets = body.count(b"[") + body.count(b"{")
    if brackets > MAX_NESTING and json_text.is_nested_deeper(value, MAX_NESTING):
        raise ValueError("The message is nested too deeply")
    return value


def answered_id(body: bytes) -> int | None:
    """Which request of ours a body answers that cannot be decoded; None where it is no answer."""
    depth, name = 0, b""
    fields: dict[bytes, bytes] = {}
    for word in map(operator.itemgetter(0), _WORDS.finditer(body)):
        if word[:1] in b"[{":
            depth += len(word)
        elif word[:1] in b"]}":
            depth -= len(word)
        elif depth == 1 and word == b",":
            name = b""
        elif depth == 1 and word != b":":
            fields[name or word] = word if name else b""
            name = name or word
    id = fields.get(b'"id"', b"")
    return int(id) if id.isdigit() and len(id) < 20 and b'"method"' not in fields else None


_WORDS = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[{]++|[\]}]++|[:,]|[^\s"\[\]{}:,]++', re.DOTALL)
"""The words of JSON, brackets of one direction together; a string may lack its end."""


def _decode(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return json_text.clean(json.loads(body.decode("utf-8")))


def encode_body(value: Any) -> bytes:
    """Strict JSON for every client: lone surrogates and U+0000 become U+FFFD, NaN null.

    msgspec refuses the surrogates itself; only what shows one of the two is looked at closely.
    """
    try:
        body = _ENCODER.encode(value)
        if _NUL not in body:
            return body
    except (UnicodeEncodeError, ValueError, OverflowError):
        pass
    plain = clean_text(json_text.clean(msgspec.to_builtins(value, enc_hook=str)))
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()


_ENCODER = msgspec.json.Encoder(enc_hook=str)
_NUL = b"\\u0000"


def clean_text(value: Any) -> Any:
    """A copy with U+FFFD for every U+0000: Emacs loses a whole message that holds one."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, dict):
        return {clean_text(key): clean_text(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_text(item) for item in value]
    return value


def frame(body: bytes) -> bytes:
    """A body with its header."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class FrameWriter:
    """A thread with a queue of ready frames: `put` never blocks, whatever the client does.

    Law: frames go out whole and in the order they were put. After the first write error nothing
    more is written and `on_error` has been called once, in the writer's thread.
    """

    def __init__(
        self,
        fd: int,
        *,
        on_error: Callable[[OSError], None],
        on_body: Callable[[bytes], None] = lambda body: None,
    ) -> None:
        self._fd, self._on_error, self._on_body = fd, on_error, on_body
        self._frames: collections.deque[bytes] = collections.deque()
        self._changed = threading.Condition()
        self._waiting_bytes = 0
        self._idle_callbacks: list[Callable[[], None]] = []
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="tiro-writer", daemon=True)
        self._thread.start()

    def when_idle(self, callback: Callable[[], None]) -> bool:
        """Whether all that was put has been handed to the operating system.

        If not, the callback is called once, in the writer's thread, when it has.
        """
        with self._changed:
            if self._waiting_bytes:
                self._idle_callbacks.append(callback)
            return self._waiting_bytes == 0

    def put(self, body: bytes) -> None:
        """Queue one body, which `on_body` hears; after a write error or `close` it is dropped."""
        self._on_body(body)
        data = frame(body)
        with self._changed:
            if self._closed:
                return
            self._frames.append(data)
            self._waiting_bytes += len(data)
            self._changed.notify_all()

    def has_room(self, timeout_seconds: float) -> bool:
        """Whether the client leaves not too much unread, or does so within this time."""
        if self._waiting_bytes <= MAX_WAITING_BYTES:
            return True
        with self._changed:
            return self._changed.wait_for(
                lambda: self._closed or self._waiting_bytes <= MAX_WAITING_BYTES, timeout_seconds
            )

    def close(self, timeout_seconds: float) -> None:
        """Write what is queued, for at most so long, and end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(timeout_seconds)

    def _run(self) -> None:
        while data := self._next():
            try:
                write_all(self._fd, data)
            except OSError as error:
                self._fail(error)
                return
            with self._changed:
                self._waiting_bytes -= len(data)
                self._changed.notify_all()
                callbacks: list[Callable[[], None]] = []
                if self._waiting_bytes == 0:
                    callbacks, self._idle_callbacks = self._idle_callbacks, []
            for callback in callbacks:
                callback()

    def _next(self) -> bytes:
        """Wait for frames and take as many as make one good write; b"" at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._frames or self._closed)
            taken, size = [], 0
            while self._frames and size < CHUNK_BYTES:
                taken.append(self._frames.popleft())
                size += len(taken[-1])
        return taken[0] if len(taken) == 1 else b"".join(taken)

    def _fail(self, error: OSError) -> None:
        with self._changed:
            self._closed = True
            self._frames.clear()
            self._waiting_bytes = 0
            self._changed.notify_all()
        self._on_error(error)


def write_all(fd: int, data: bytes) -> None:
    """Write all of it, also to a descriptor that somebody has made non-blocking."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view[:CHUNK_BYTES]) :]
        except BlockingIOError:
            select.select([], [fd], [])


def read_some(fd: int) -> bytes:
    """Read what is there, waiting for the first byte; b"" at the end of the stream."""
    while True:
        try:
            return os.read(fd, CHUNK_BYTES)
        except BlockingIOError:
            select.select([fd], [], [])
        except OSError:
            return b""


def is_hung_up(fd: int) -> bool:
    """Whether nobody writes to this descriptor any more, although there may be more to read."""
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(fd, getattr(select, "POLLRDHUP", 0))
    return bool(poll.poll(0))


class FrameReader:
    """A thread that reads, frames and decodes; all callbacks run in that thread.

    `on_body` gets each body as it came, then `on_message` its decoded value, or `on_unreadable` the
    one that is no JSON; `on_end` is called once, with the error when the stream can no longer
    be trusted.
    """

    def __init__(
        self,
        fd: int,
        *,
        on_message: Callable[[Any], None],
        on_unreadable: Callable[[bytes], None],
        on_end: Callable[[BrokenFrameError | None], None],
        on_body: Callable[[bytes], None] = lambda body: None,
    ) -> None:
        self._fd = fd
        self._on_body = on_body
        self._on_message, self._on_unreadable = on_message, on_unreadable
        self._on_end = on_end
        self._thread = threading.Thread(target=self._run, name="tiro-reader", daemon=True)

    def start(self) -> None:
        """Start reading."""
        self._thread.start()

    def _run(self) -> None:
        parser = FrameParser()
        try:
            while data := read_some(self._fd):
                for body in parser.feed(data):
                    self._take(body)
        except BrokenFrameError as error:
            self._on_end(error)
        else:
            self._on_end(None)

    def _take(self, body: bytes) -> None:
        self._on_body(body)
        try:
            value = decode_body(body)
        except ValueError:
            self._on_unreadable(body)
        else:
            self._on_message(value)
