"""Turn events on their way to the editor: joined, never too many, never out of order.

The first delta goes out at once. Later ones that wait together are joined for up to 33 ms, and for
as long as the client leaves frames unread; other events go out as soon as they are next. `n` is
given when an event is sent, so the editor sees 1, 2, 3 … without gaps.
"""

import asyncio
from collections.abc import Callable, Iterator

import msgspec

from tiro.agents import events
from tiro.protocol import types
from tiro.protocol.wire import to_wire_event

JOIN_SECONDS = 0.033
MAX_DELTA_CHARS = 128 * 1024
"""A delta of this length is under 1 MB, however its characters are escaped."""

MAX_WAITING_OUTPUT_CHARS = 256 * 1024
"""What is kept of a tool's output while the client does not read; the model sees all of it."""

CUT = "\n[… cut …]\n"


class TurnEvents:
    """The events of one turn; all methods are called in the event loop's thread.

    `send` queues one event. `when_idle(callback)` says whether the client has read everything;
    where it has not, the callback is called once it has.
    """

    def __init__(
        self,
        session_id: str | None,
        turn_id: str,
        *,
        send: Callable[[types.Event], None],
        when_idle: Callable[[Callable[[], None]], bool],
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.session_id, self.turn_id = session_id, turn_id
        self._send, self._when_idle = send, when_idle
        self._loop = loop or asyncio.get_running_loop()
        self._waiting: list[_Waiting] = []
        self._sent = 0
        self._ready_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._waits_for_idle = False
        self._is_closed = False

    def add(self, event: events.TurnEvent) -> None:
        """Take what the turn tells; it goes out now or a little later."""
        if self._is_closed:
            return
        if isinstance(event, events.Text | events.Thinking | events.ToolOutput):
            self._join(event)
        else:
            if isinstance(event, events.UsageSoFar):
                self._waiting = [w for w in self._waiting if not isinstance(w.event, type(event))]
            self._waiting.append(_Waiting(event))
        self._pump()

    def flush(self) -> None:
        """Send everything now, whether the client reads or not: the turn will be answered next."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        for item in waiting:
            for event in item.events():
                self._sent += 1
                self._send(to_wire_event(event, self.session_id, self.turn_id, self._sent))
                if item.pieces:
                    self._ready_at = max(self._ready_at, self._loop.time()) + JOIN_SECONDS

    def close(self) -> None:
        """Send what waits and take nothing more: whatever still comes is of an old turn."""
        if not self._is_closed:
            self.flush()
            self._is_closed = True

    def _join(self, event: "events.Text | events.Thinking | events.ToolOutput") -> None:
        for item in reversed(self._waiting):
            if isinstance(item.event, events.UsageSoFar):
                continue  # a figure that only grows may as well come after the text
            if not item.pieces:
                break
            if item.takes(event):
                item.add(event.delta)
                return
        self._waiting.append(_Waiting(event, [event.delta]))

    def _pump(self) -> None:
        """Send what waits, if the client reads and it is not too early for another delta."""
        if not self._waiting or self._waits_for_idle:
            return
        if not self._when_idle(self._idle):
            self._waits_for_idle = True
        elif self._loop.time() >= self._ready_at or not all(w.pieces for w in self._waiting):
            self.flush()
        elif self._timer is None:
            self._timer = self._loop.call_at(self._ready_at, self._timed)

    def _idle(self) -> None:
        self._waits_for_idle = False
        self._pump()

    def _timed(self) -> None:
        self._timer = None
        self._pump()


class _Waiting:
    """One event that waits, or several deltas that will go out as one."""

    def __init__(self, event: events.TurnEvent, pieces: list[str] | None = None) -> None:
        self.event = event
        self.pieces = pieces or []
        self._chars = sum(map(len, self.pieces))

    def takes(self, event: events.TurnEvent) -> bool:
        """Whether a delta continues this one."""
        if type(event) is not type(self.event):
            return False
        return getattr(event, "tool_use_id", None) == getattr(self.event, "tool_use_id", None)

    def add(self, delta: str) -> None:
        """Join one more delta; of a tool's output only head and tail are kept in the end."""
        self.pieces.append(delta)
        self._chars += len(delta)
        if isinstance(self.event, events.ToolOutput) and self._chars > MAX_WAITING_OUTPUT_CHARS:
            text = "".join(self.pieces)
            half = MAX_WAITING_OUTPUT_CHARS // 4
            self.pieces = [text[:half] + CUT + text[-half:]]
            self._chars = len(self.pieces[0])

    def events(self) -> Iterator[events.TurnEvent]:
        """The events to send: mostly one, more for a delta that is too long for one frame."""
        if not isinstance(self.event, events.Text | events.Thinking | events.ToolOutput):
            yield self.event
            return
        text = "".join(self.pieces)
        for start in range(0, len(text), MAX_DELTA_CHARS):
            piece = text[start : start + MAX_DELTA_CHARS]
            yield msgspec.structs.replace(self.event, delta=piece)
