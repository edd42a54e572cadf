"""The data of server-sent events out of bytes, without I/O.

Lines end at CR, LF or CRLF and nowhere else, also when a CRLF is cut in two by the network; the
text is UTF-8 whatever a header says, so the data stays bytes here and a JSON reader decodes it.
The names of events are passed over: every provider repeats them inside the data.
"""

MAX_EVENT_BYTES = 16 * 1024 * 1024
"""No provider sends events of this size; beyond it the stream is not what it claims to be."""

_BOM = b"\xef\xbb\xbf"
_BETWEEN = b"\n\ndata: "
_SMALL_TAIL_BYTES = 64 * 1024


class EventTooLargeError(ValueError):
    """An event, or a line without an end, is larger than the limit."""


class EventReader:
    """Feed it chunks as they come and get the events that are complete with each."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._tail: list[bytes] = []  # the pieces of the line that has no end yet
        self._data: list[bytes] = []  # the data lines of the event that has no end yet
        self._held_bytes = 0  # of both together
        self._after_cr = False
        self._at_start = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of each event that this chunk completes, in order."""
        plain = self._feed_plain(chunk)
        if plain is not None:
            return plain
        if self._at_start:
            chunk = self._without_bom(chunk)
        *lines, rest = self._with_line_feeds(chunk).split(b"\n")
        events: list[bytes] = []
        if lines:
            lines[0] = b"".join((*self._tail, lines[0]))
            self._tail = []
            events = self._read_lines(lines)
            self._held_bytes = sum(map(len, self._data))
        if rest:
            self._tail.append(rest)
            self._held_bytes += len(rest)
        if self._held_bytes > self._max_event_bytes:
            raise EventTooLargeError(f"An event is larger than {self._max_event_bytes} bytes")
        return events

    def close(self) -> list[bytes]:
        """The event that the end of the stream completes: servers forget the last blank line."""
        self._at_start = False
        return self.feed(b"\n\n")

    def _feed_plain(self, chunk: bytes) -> list[bytes] | None:
        """As `feed`, many times as fast, for events of one `data: ` line each; None for others."""
        if self._data or self._after_cr or self._held_bytes > _SMALL_TAIL_BYTES:
            return None
        stream = b"".join((*self._tail, chunk))
        if not stream.startswith(b"data: ") or b"\r" in stream:
            return None
        end = stream.rfind(b"\n\n")
        events = stream[6:end].split(_BETWEEN) if end > 0 else []
        rest = stream[end + 2 :] if events else stream
        if b"\n" in rest or stream.count(b"\n") != 2 * len(events):
            return None
        self._at_start = False
        self._tail = [rest] if rest else []
        self._held_bytes = len(rest)
        return events

    def _without_bom(self, chunk: bytes) -> bytes:
        """The chunk without a byte order mark, or nothing while the start may still be one."""
        start = b"".join((*self._tail, chunk))
        self._tail = []
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._tail = [start] if start else []
            return b""
        self._at_start = False
        return start.removeprefix(_BOM)

    def _with_line_feeds(self, chunk: bytes) -> bytes:
        """The chunk with every line end made LF; the LF of a CRLF that was cut in two is gone."""
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" not in chunk:
            return chunk
        self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _read_lines(self, lines: list[bytes]) -> list[bytes]:
        """Whole lines in, the events that a blank line completes out."""
        events = []
        for line in lines:
            if line.startswith(b"data: "):
                self._data.append(line[6:])
            elif not line:
                if self._data:
                    events.append(b"\n".join(self._data))
                    self._data = []
            else:
                self._read_field(line)
        return events

    def _read_field(self, line: bytes) -> None:
        """A line that is not the usual one; comments and fields of no use to us are passed over."""
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
