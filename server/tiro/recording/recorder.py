"""A recording as it is made: one file, one thread that strains and writes, no waiting for others.

Law: whoever records only puts into a queue. Lines are written whole, in the order of their times;
the first error of the disk ends the recording with one warning, and changes nothing else.
"""

import contextlib
import itertools
import logging
import os
import platform
import queue
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tiro import __version__
from tiro.errors import StorageError
from tiro.recording.lines import (
    FORMAT,
    AnyLine,
    Chunk,
    End,
    Ending,
    Header,
    MessageIn,
    MessageOut,
    Request,
    RequestEnd,
    Response,
    encode_line,
    json_payload,
    payload,
)
from tiro.recording.strainer import Secrets, Strainer
from tiro.session.secrets import REDACTED

logger = logging.getLogger(__name__)

HOLD_SECONDS = 1.0
"""How long what may be the start of a secret waits for its rest."""
MAX_WAITING_BYTES = 64 * 1024 * 1024
"""With more than this unwritten the recording ends."""
BATCH_BYTES = 256 * 1024
CLOSE_SECONDS = 0.5
MAX_TEXTS = 64
"""How many texts are put together at a time; the rest of an older one counts as a new one."""

SHOWN_HEADERS = frozenset(
    {"accept", "accept-encoding", "anthropic-version", "content-type", "user-agent"}
)
"""The headers of a request whose values are written down; all others may be secret."""
_SECRET_HEADER = re.compile(r"auth|cookie|secret|signature|(^|-)(api-?key|key|token)($|-)", re.I)

MakeLine = Callable[[float, bytes], AnyLine]


class _Entry:
    """A line on its way; those of a stream wait until their bytes are settled."""

    def __init__(self, at: float, data: bytes, make: MakeLine, stream: "_Stream | None") -> None:
        self.at, self.data, self.make, self.stream = at, data, make, stream
        self.size = len(data)
        self.is_settled = stream is None


class _Stream:
    """Bytes that belong together, and the entries that hold their pieces."""

    def __init__(self, secrets: Secrets) -> None:
        self._strainer = Strainer(secrets)
        self._waiting: deque[_Entry] = deque()

    def add(self, entry: _Entry) -> None:
        self._waiting.append(entry)
        self._strainer.feed(entry.data)
        self._settle(self._strainer.take())

    def finish(self) -> None:
        """Wait for nothing that could still come."""
        self._settle(self._strainer.take_all())

    def _settle(self, pieces: list[bytes]) -> None:
        for piece in pieces:
            entry = self._waiting.popleft()
            entry.data, entry.is_settled = piece, True


class Recorder:
    """Writes a recording; its methods may be called from any thread and never wait."""

    def __init__(
        self, path: Path, *, protocol: int, max_waiting_bytes: int = MAX_WAITING_BYTES
    ) -> None:
        """Make the file, for its owner only; StorageError when that cannot be done."""
        self._path = path
        self._began = time.monotonic()
        self._secrets = Secrets()
        self._numbers = itertools.count(1)
        self._queue: queue.SimpleQueue[_Entry | None] = queue.SimpleQueue()
        self._entries: deque[_Entry] = deque()
        self._counting = threading.Lock()
        self._waiting_bytes = 0
        self._max_waiting_bytes = max_waiting_bytes
        self._written_bytes = 0
        self._why_over = ""
        self._is_over = False
        self._in, self._out = _Stream(self._secrets), _Stream(self._secrets)
        self._texts: dict[str, _Stream] = {}
        self._fd = _make_file(path)
        header = Header(
            ms=0.0,
            format=FORMAT,
            tiro=__version__,
            protocol=protocol,
            platform=f"{platform.system()} {platform.machine()}",
            python=platform.python_version(),
        )
        try:
            self._write(encode_line(header))
        except OSError as error:
            os.close(self._fd)
            raise _unwritable(path, error) from error
        self._thread = threading.Thread(target=self._run, name="tiro-recorder", daemon=True)
        self._thread.start()

    def keep_out(self, secrets: Iterable[str]) -> None:
        """Let none of these values into the file from now on."""
        self._secrets.add(secrets)

    def received(self, body: bytes) -> None:
        """The editor has sent this message."""
        self._put(body, lambda ms, data: MessageIn(ms=ms, **json_payload(data)), self._in)

    def sent(self, body: bytes, text: str = "") -> None:
        """A message goes to the editor; `text` tells of which text it brings a piece, if of one."""
        stream = self._stream_of(text) if text else self._out
        self._put(body, lambda ms, data: MessageOut(ms=ms, **json_payload(data)), stream)

    def asked(
        self,
        *,
        provider: str,
        api: str,
        base_url: str,
        method: str,
        url: str,
        headers: Sequence[tuple[str, str]],
        body: bytes,
    ) -> "RecordedAnswer":
        """A provider is asked; the addresses are bare, and what follows is told to the result."""
        n = next(self._numbers)
        shown = [(k, v if k.lower() in SHOWN_HEADERS else REDACTED) for k, v in headers]

        def line(ms: float, data: bytes) -> Request:
            return Request(
                ms=ms,
                n=n,
                provider=provider,
                api=api,
                base_url=self._text(base_url),
                method=method,
                url=self._text(url),
                headers=[(name, self._text(value)) for name, value in shown],
                **json_payload(self._secrets.strained(data)),
            )

        self._put(body, line)
        return RecordedAnswer(self, n)

    def close(self) -> None:
        """Write what is there, for a moment at most, and end the file."""
        self._put(b"", lambda ms, _: End(ms=ms))
        self._queue.put(None)
        self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            logger.warning(
                "The end of the recording %r may be missing: not all was written in %g s",
                str(self._path),
                CLOSE_SECONDS,
            )

    # --- called by exchanges ------------------------------------------------------------------

    def _put(self, data: bytes, make: MakeLine, stream: _Stream | None = None) -> None:
        if self._is_over:
            return
        with self._counting:
            self._waiting_bytes += len(data)
        self._queue.put(_Entry(time.monotonic(), data, make, stream))
        if self._waiting_bytes > self._max_waiting_bytes:
            self._is_over, self._why_over = True, "the disk is too slow for it"
            self._queue.put(None)

    def _stream_of(self, text: str) -> _Stream:
        with self._counting:
            stream = self._texts.pop(text, None) or _Stream(self._secrets)
            self._texts[text] = stream
            if len(self._texts) > MAX_TEXTS:
                del self._texts[next(iter(self._texts))]
        return stream

    def _text(self, text: str) -> str:
        return self._secrets.strained(text.encode("utf-8", "replace")).decode("utf-8", "replace")

    # --- in the thread ------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while self._take():
                self._write(self._ready())
            self._finish()
            self._write(self._ready())
            if self._why_over:
                self._give_up(self._why_over)
        except OSError as error:
            self._give_up(error.strerror or str(error))
        except Exception as error:
            self._give_up(f"it met a fault of its own ({type(error).__name__})")
        finally:
            os.close(self._fd)

    def _take(self) -> bool:
        """Take what is in the queue, waiting for something; False at the end."""
        size = 0
        try:
            entry = self._queue.get(timeout=HOLD_SECONDS / 2 if self._entries else None)
            while entry is not None:
                self._add(entry)
                size += entry.size
                if size > BATCH_BYTES:
                    break
                entry = self._queue.get_nowait()
        except queue.Empty:
            self._settle_old()
            return True
        self._settle_old()
        return entry is not None

    def _add(self, entry: _Entry) -> None:
        self._entries.append(entry)
        if entry.stream is not None:
            entry.stream.add(entry)

    def _settle_old(self) -> None:
        """Nothing waits for ever for the rest of what may be a secret."""
        latest = time.monotonic() - HOLD_SECONDS
        for entry in self._entries:
            if entry.at > latest:
                return
            if entry.stream is not None and not entry.is_settled:
                entry.stream.finish()

    def _finish(self) -> None:
        for entry in self._entries:
            if entry.stream is not None and not entry.is_settled:
                entry.stream.finish()

    def _ready(self) -> bytes:
        """The lines that can be written now, in the order of their times."""
        lines = []
        while self._entries and self._entries[0].is_settled:
            entry = self._entries.popleft()
            with self._counting:
                self._waiting_bytes -= entry.size
            ms = round(1000 * (entry.at - self._began), 3)
            lines.append(encode_line(entry.make(ms, entry.data)))
        return b"".join(lines)

    def _write(self, lines: bytes) -> None:
        view = memoryview(lines)
        while view:
            view = view[os.write(self._fd, view) :]
        self._written_bytes += len(lines)

    def _give_up(self, why: str) -> None:
        """Say once that the recording is over, and leave a file of whole lines."""
        self._is_over = True
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, self._written_bytes)
        logger.warning("The recording %r ends here: %s", str(self._path), why)


class RecordedAnswer:
    """What follows one request."""

    def __init__(self, recorder: Recorder, n: int) -> None:
        self._recorder, self._n = recorder, n
        self._stream = _Stream(recorder._secrets)
        self._is_over = False

    def answered(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """The head of the answer is here."""
        recorder = self._recorder

        def line(ms: float, _: bytes) -> Response:
            shown = [(name, recorder._text(_shown(name, value))) for name, value in headers]
            return Response(ms=ms, n=self._n, status=status, headers=shown)

        recorder._put(b"", line)

    def received(self, data: bytes) -> None:
        """A piece of the body is here."""
        n = self._n
        self._recorder._put(data, lambda ms, it: Chunk(ms=ms, n=n, **payload(it)), self._stream)

    def ended(self, how: Ending, error: str = "") -> None:
        """It is over; the first word on this counts."""
        if self._is_over:
            return
        self._is_over = True

        def line(ms: float, _: bytes) -> RequestEnd:
            return RequestEnd(ms=ms, n=self._n, how=how, error=error)

        self._recorder._put(b"", line)


def _shown(name: str, value: str) -> str:
    """A header of an answer; one that may hold a secret or a query does not show it."""
    if name.lower() == "location":
        return value.partition("?")[0].rpartition("@")[2]
    return REDACTED if _SECRET_HEADER.search(name) else value


def _make_file(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_BINARY", 0)
    try:
        return os.open(path, flags, 0o600)
    except FileExistsError as error:
        raise StorageError(
            f"There is a file {str(path)!r} already; give --record another name"
        ) from error
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> StorageError:
    return StorageError(f"The recording {str(path)!r} cannot be written: {error.strerror}")
