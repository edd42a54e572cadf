"""What a command prints: kept within bounds, shown while it comes, told as text.

The beginning and the end are kept, with a mark between them where something was left out. Shown are
the beginning, and after that from time to time the newest piece, so that neither a flood nor a
silence hides that the command goes on.
"""

import codecs
import time
from collections.abc import Callable

MAX_KEPT_BYTES = 4_000_000
"""Half of it from the beginning, half from the end."""
MAX_SHOWN_CHARS = 256 * 1024
"""So much is shown as it comes; then only samples."""
SAMPLE_CHARS = 1000
SAMPLE_SECONDS = 1.0

LEFT_OUT = "\n[… {bytes:,} of {total:,} bytes left out here …]\n"
NOT_SHOWN = "\n[…]\n"


class Printed:
    """The output of one command, as far as it has come; `show` gets pieces of it as text."""

    def __init__(
        self, show: Callable[[str], None], now: Callable[[], float] = time.monotonic
    ) -> None:
        self.total_bytes = 0
        self._head, self._tail = bytearray(), bytearray()
        self._show, self._now = show, now
        self._decoder = _decoder()
        self._shown_chars = 0
        self._sample_at = 0.0

    def add(self, data: bytes) -> None:
        """Take the next piece."""
        self.total_bytes += len(data)
        half = MAX_KEPT_BYTES // 2
        room = half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * half:
            del self._tail[:-half]
        if self._shown_chars < MAX_SHOWN_CHARS:
            self._show_piece(_plain(self._decoder.decode(data)))
        elif self._now() >= self._sample_at:
            self._sample_at = self._now() + SAMPLE_SECONDS
            self._show(NOT_SHOWN + as_text(_from_character(data[-SAMPLE_CHARS:])))

    def text(self) -> str:
        """All of it, or its beginning and its end."""
        half = MAX_KEPT_BYTES // 2
        left_out = self.total_bytes - len(self._head) - min(half, len(self._tail))
        if not left_out:
            return as_text(self._head + self._tail)
        mark = LEFT_OUT.format(bytes=left_out, total=self.total_bytes)
        head = _plain(_decoder().decode(self._head))  # without half a character at its end
        return head + mark + as_text(_from_character(self._tail[-half:]))

    def _show_piece(self, text: str) -> None:
        if text:
            shown = text[: MAX_SHOWN_CHARS - self._shown_chars]
            self._shown_chars += len(shown)
            self._show(shown)


def as_text(data: bytes | bytearray) -> str:
    """The text of bytes that are UTF-8 where they can be.

    Other bytes are taken for Latin-1, and become U+FFFD where they mean nothing there either.
    """
    return _plain(data.decode("utf-8", "surrogateescape"))


def _decoder() -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("utf-8")("surrogateescape")


def _from_character(data: bytes | bytearray) -> bytes | bytearray:
    """The bytes without what is left of a character that was cut through."""
    return data[next((i for i, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0) :]


def _plain(text: str) -> str:
    return text if text.isascii() else text.translate(_BYTES)


_BYTES = {0xDC00 + byte: "\ufffd" if byte < 0xA0 else chr(byte) for byte in range(0x80, 0x100)}
