"""One client's requests in their order, and its turns from start to answer.

Law: requests that touch the session run one after another, in the order in which they arrived. A
turn is part of that order until it has started, and what asks a model until it asks; from then on
they run beside it. While a turn waits for its model, others go on, and then it takes its place
again. Nothing of a turn is sent after its answer, and its answer comes before that of the request
that ended it.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from tiro.agents import events
from tiro.protocol import types
from tiro.protocol.editor import ClientEditor
from tiro.protocol.events import TurnEvents
from tiro.protocol.rpc import TiroProtocol
from tiro.session.finished import finished

if TYPE_CHECKING:
    from tiro.assistant.turns import Turns

logger = logging.getLogger(__name__)

LAST_WAIT_SECONDS = 5.0
"""How long a cancelled turn may take to end by itself."""

T = TypeVar("T")
Told: TypeAlias = "asyncio.Queue[events.Progress | None]"
"""What is told of long work; None is its end."""


class Run:
    """One `tiro/turn/start` request."""

    def __init__(self) -> None:
        self.started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_over = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.is_in_order = False
        self.waiting: asyncio.Task[Any] | None = asyncio.current_task()
        """The request itself, while it waits for its order."""
        self.events: TurnEvents | None = None
        self.task: asyncio.Task[Any] | None = None


class Place:
    """The place that a request has in the order, until it leaves it."""

    def __init__(self, order: asyncio.Lock) -> None:
        self._order: asyncio.Lock | None = order

    def leave(self) -> None:
        """Let those behind it go on; once."""
        order, self._order = self._order, None
        if order is not None:
            order.release()


PLACE: ContextVar[Place | None] = ContextVar("PLACE", default=None)
"""The place of the request for which this task, or the one that started it, may ask a model."""


class Connection:
    """The order of requests and the running turns of one client."""

    def __init__(self, protocol: TiroProtocol, editor: ClientEditor) -> None:
        self.protocol, self.editor = protocol, editor
        self.when_idle: Callable[[Callable[[], None]], bool] = lambda callback: True
        self.has_room: Callable[[], bool] = lambda: True
        self.buffers = editor.buffers
        self.order = asyncio.Lock()
        self._asks = asyncio.Lock()
        self.is_closing = False
        self._unstarted: set[Run] = set()
        self._runs: set[Run] = set()
        self._starting: Run | None = None
        self._by_turn: dict[str, TurnEvents] = {}
        self._progress: Told | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    # --- what the assistant tells -------------------------------------------------------------

    def on_event(self, running: Any, n: int, event: events.TurnEvent) -> None:
        """Pass on what a turn tells; what cannot be shown must not stop the turn."""
        try:
            self._pass_on(running, event)
        except Exception:
            logger.exception("An event could not be shown")

    def _pass_on(self, running: Any, event: events.TurnEvent) -> None:
        turn_id = running.turn_id
        if isinstance(event, events.Progress):
            self._report(event)
            return
        if isinstance(event, events.Started) and self._starting is not None:
            turn_events = TurnEvents(
                running.session.id, turn_id, send=self._send_event, when_idle=self.when_idle
            )
            self._by_turn[turn_id] = self._starting.events = turn_events
            if not self._starting.started.done():
                self._starting.started.set_result(None)
        self._end_progress()
        if (turn := self._by_turn.get(turn_id)) is not None:
            turn.add(event)

    def _send_event(self, event: types.Event) -> None:
        if self.editor.features.turn_events is not False:
            self.protocol.notify("tiro/turn/event", event)

    # --- order --------------------------------------------------------------------------------

    async def run(self, method: types.Method, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a request as its method says; what must not be left half done is finished."""
        if not method.is_ordered:
            return await work()
        if method.asks_a_model:
            return await self._run_asking(work)
        async with self.order:
            await self._room()
            return await (work() if method.is_cancellable else finished(work()))

    async def _run_asking(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run what may ask a model, in order until it does; one of them after the other."""
        async with self._asks:
            await self.order.acquire()
            place = Place(self.order)
            token = PLACE.set(place)
            try:
                await self._room()
                return await work()
            finally:
                PLACE.reset(token)
                place.leave()

    def let_others_go_on(self) -> None:
        """A model is asked, which may take minutes: the request that needs it leaves the order.

        What asks in the background is in no order.
        """
        if (place := PLACE.get()) is not None:
            place.leave()

    async def requests_before(self) -> None:
        """Wait for the requests that came before, without making later ones wait."""
        async with self.order:
            await self._room()

    async def _room(self) -> None:
        """Wait while the client leaves far too much unread, or its answers would fill the memory.

        Only whoever asks and asks and never reads comes to wait here.
        """
        while not self.has_room():
            has_read = asyncio.Event()
            if not self.when_idle(has_read.set):
                await has_read.wait()

    async def run_turn(
        self, start: Callable[[], Coroutine[Any, Any, T]], cancelled: Callable[[], T]
    ) -> T:
        """Run a turn: in order until it has started. Cancelling the request stops the turn.

        One that was cancelled before it started has the result `cancelled`.
        """
        run = Run()
        self._unstarted.add(run)
        try:
            if not await self._is_its_turn(run):
                return cancelled()
            run.is_in_order = True
            try:
                if run.cancelled.is_set() or self.is_closing:
                    return cancelled()
                self._runs.add(run)
                self._starting = run
                turn = run.task = asyncio.create_task(start())
                try:
                    waited_for: set[asyncio.Future[Any]] = {turn, run.started}
                    await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
                except asyncio.CancelledError:
                    await _stop(turn)
                    raise
                finally:
                    self._unstarted.discard(run)
            finally:
                self._leave_order(run)
            try:
                return await asyncio.shield(turn)
            except asyncio.CancelledError:
                await _stop(turn)
                if run.cancelled.is_set():
                    return cancelled()
                raise
        finally:
            self._close(run)

    async def out_of_order(self, work: Awaitable[T]) -> T:
        """Let others go on while the turn that is starting waits for this; then it is in order.

        Where the work fails or is cancelled, the turn stays out of the order.
        """
        run = self._starting
        assert run is not None
        self._leave_order(run)
        result = await work
        await self.order.acquire()
        run.is_in_order, self._starting = True, run
        return result

    def _leave_order(self, run: Run) -> None:
        if run.is_in_order:
            run.is_in_order, self._starting = False, None
            self.order.release()

    async def _is_its_turn(self, run: Run) -> bool:
        """Take the order, unless the turn is cancelled while it waits for it."""
        try:
            return await self.order.acquire()
        except asyncio.CancelledError:
            if not run.cancelled.is_set():
                raise
            return False
        finally:
            run.waiting = None

    async def cancel_turn(self, turns: "Turns", turn_id: str | None = None) -> bool:
        """Stop the running turn, without an id also what is about to start; whether there was one.

        The assistant does not know of a turn that waits for its order or for another process.
        """
        unstarted = set() if turn_id else self._unstarted.copy()
        if turns.running is not None:
            unstarted.discard(self._starting)  # it runs, only its first event is still to come
        for run in unstarted:
            run.cancelled.set()
            if (task := run.waiting or run.task) is not None:
                task.cancel()
        is_cancelled = await turns.cancel(turn_id) or bool(unstarted)
        for run in unstarted:
            await run.is_over.wait()
        return is_cancelled

    async def turns_started(self) -> None:
        """Wait until every turn that was asked for has started, or has ended without."""
        await self.requests_before()
        for run in tuple(self._unstarted):
            await asyncio.wait({run.started})

    async def turns_answered(self) -> None:
        """Wait until every turn that runs now has been answered."""
        for run in tuple(self._runs):
            await run.is_over.wait()

    def _close(self, run: Run) -> None:
        self._end_progress()
        if run.events is not None:
            run.events.close()
            self._by_turn.pop(run.events.turn_id, None)
        self._unstarted.discard(run)
        self._runs.discard(run)
        if not run.started.done():
            run.started.set_result(None)
        run.is_over.set()

    # --- progress -----------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def progress(self, title: str) -> AsyncIterator[Callable[[str, float], None]]:
        """Show work from its first report on, until the block ends; any thread may report."""
        loop = asyncio.get_running_loop()
        shown: Told | None = None
        is_over = False

        def report(message: str, fraction: float) -> None:
            loop.call_soon_threadsafe(show, events.Progress(message, fraction))

        def show(event: events.Progress) -> None:
            nonlocal shown
            if not is_over:
                shown = shown or self._begin_progress(title)
                shown.put_nowait(event)

        try:
            yield report
        finally:
            is_over = True
            if shown is not None:
                shown.put_nowait(None)

    def _report(self, event: events.Progress) -> None:
        """Show long work, such as the loading of a local model, until the turn goes on."""
        if self._progress is None:
            self._progress = self._begin_progress("Tiro")
        self._progress.put_nowait(event)

    def _begin_progress(self, title: str) -> "Told":
        told: Told = asyncio.Queue()
        task = asyncio.create_task(self._show_progress(title, told))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return told

    def _end_progress(self) -> None:
        """What was not shown by now is outdated: it must not come after what ended it."""
        if self._progress is not None:
            while not self._progress.empty():
                self._progress.get_nowait()
            self._progress.put_nowait(None)
            self._progress = None

    async def _show_progress(self, title: str, told: "Told") -> None:
        async with self.editor.progress(title) as report:
            while (event := await told.get()) is not None:
                report(event.message, event.fraction)


async def _stop(turn: "asyncio.Task[Any]") -> None:
    """End a turn whose request was cancelled; the assistant leaves a clean session behind."""
    turn.cancel()
    await asyncio.wait({turn}, timeout=LAST_WAIT_SECONDS)
    if turn.done() and not turn.cancelled() and (error := turn.exception()) is not None:
        logger.info("A cancelled turn ended with %s", type(error).__name__)
