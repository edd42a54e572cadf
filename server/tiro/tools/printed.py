"""What a command prints: kept within bounds, shown while it comes, told as text.

The beginning and the end are held, with a mark between them where something was left out; what is
longer is put away whole besides, up to a bound. Shown are the beginning, and after that from time
to time the newest piece, so that neither a flood nor a silence hides that the command goes on.
"""

import asyncio
import codecs
import time
from collections.abc import Callable, Sequence
from typing import Any

from tiro.tools.long_output import LongOutput

MAX_KEPT_BYTES = 4_000_000
"""So much is held: half of it from the beginning, half from the end."""
MAX_SHOWN_CHARS = 256 * 1024
"""So much is shown as it comes; then only samples."""
SAMPLE_CHARS = 1000
SAMPLE_SECONDS = 1.0

LOST = "[of the {total:,} bytes that it printed, {lost:,} in the middle are kept nowhere]"
LEFT_OUT = "\n[… {bytes:,} of {total:,} bytes left out here …]\n"
NOT_SHOWN = "\n[…]\n"


class Printed:
    """The output of one command, as far as it has come; `show` gets pieces of it as text."""

    def __init__(
        self,
        show: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
        whole: LongOutput | None = None,
    ) -> None:
        self.total_bytes = 0
        self._head, self._tail = bytearray(), bytearray()
        self._whole, self._whole_decoder = whole, _decoder()
        self._whole_bytes = 0
        self._show, self._now = show, now
        self._decoder = _decoder()
        self._shown_chars = 0
        self._sample_at = 0.0

    def add(self, data: bytes) -> asyncio.Task[None] | None:
        """Take the next piece; what to wait for before the next one, where too much comes."""
        self.total_bytes += len(data)
        half = MAX_KEPT_BYTES // 2
        room = half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        behind = self._put_away(data) if self.total_bytes > MAX_KEPT_BYTES else None
        if len(self._tail) > 2 * half:
            del self._tail[:-half]
        if self._shown_chars < MAX_SHOWN_CHARS:
            self._show_piece(_plain(self._decoder.decode(data)))
        elif self._now() >= self._sample_at:
            self._sample_at = self._now() + SAMPLE_SECONDS
            self._show(NOT_SHOWN + as_text(_from_character(data[-SAMPLE_CHARS:])))
        return behind

    async def end(self, notes: Sequence[str]) -> tuple[str, tuple[dict[str, Any], ...]]:
        """What is held of it, and where all of it is kept if it is more than that.

        Both end with the notes. To be called once, when nothing more comes.
        """
        held, whole = self.text(), tuple[dict[str, Any], ...]()
        line_end = "" if held[-1:] in ("", "\n") else "\n"
        if self.total_bytes <= MAX_KEPT_BYTES:
            return held + line_end + "\n".join(notes), whole
        lost = max(0, self.total_bytes - MAX_KEPT_BYTES // 2 - self._whole_bytes)
        told = line_end + "\n".join(self._noted(notes, lost))
        if self._whole is not None:
            whole = await self._whole.end(self._last_of_whole(lost) + told)
        if not whole:
            told = line_end + "\n".join(self._noted(notes, self.total_bytes - MAX_KEPT_BYTES))
        return held + told, whole

    def text(self) -> str:
        """All of it, or its beginning and its end."""
        half = MAX_KEPT_BYTES // 2
        left_out = self.total_bytes - len(self._head) - min(half, len(self._tail))
        if not left_out:
            return as_text(self._head + self._tail)
        mark = LEFT_OUT.format(bytes=left_out, total=self.total_bytes)
        head = _plain(_decoder().decode(self._head))  # without half a character at its end
        return head + mark + as_text(_from_character(self._tail[-half:]))

    def _put_away(self, data: bytes) -> asyncio.Task[None] | None:
        """Put the next piece away, or all that came so far when it becomes too long to be held."""
        if self._whole is None or self._whole_bytes == self._whole.max_bytes:
            return None
        piece = data if self._whole_bytes else bytes(self._head + self._tail)
        piece = piece[: self._whole.max_bytes - self._whole_bytes]
        self._whole_bytes += len(piece)
        return self._whole.add(_plain(self._whole_decoder.decode(piece)))

    def _last_of_whole(self, lost: int) -> str:
        """What is still to be put away: of what came after the bound the end."""
        rest = _plain(self._whole_decoder.decode(b"", final=True))
        after = self.total_bytes - self._whole_bytes - lost
        end = self._tail[-after:] if after else b""
        mark = LEFT_OUT.format(bytes=lost, total=self.total_bytes) if lost else ""
        return rest + mark + as_text(_from_character(end) if lost else end)

    def _noted(self, notes: Sequence[str], lost: int) -> Sequence[str]:
        told = LOST.format(total=self.total_bytes, lost=lost)
        return [told, *notes] if lost else notes

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
