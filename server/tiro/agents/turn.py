"""The loop of a turn: prompt → request → answer → tool uses → next request, told as events.

Law: whatever happens, and wherever it is stopped, every tool use in the session has exactly one
result, nothing that the model wrote is lost, and the last event is `Finished`. When the generator
itself is closed or its task is cancelled, the same is stored without further events.

The tasks of a turn (the hook, the model's stream, the tools, the watch for a cancel) only put items
into its inbox. `_Running.receive` alone acts on them, one after the other and without waiting, by
the table `STATES`; so a stop can come between any two items and never into the middle of one.
"""

import asyncio
import logging
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
)
from typing import Any, Literal, TypeAlias

import msgspec

from tiro.agents import events
from tiro.agents.answer import Answer
from tiro.agents.budget import check_budget
from tiro.agents.events import TurnEvent, TurnOutcome
from tiro.agents.gate import Gate
from tiro.agents.inbox import Inbox
from tiro.agents.prompt import request_size, request_weights
from tiro.agents.record import Record
from tiro.agents.repeats import Repeats
from tiro.agents.tool_uses import (
    BROKEN_OFF,
    BROKEN_TOOL,
    NOT_STARTED,
    REFUSED_ANSWER,
    AllEnded,
    Moved,
    Needs,
    Said,
    Told,
    ToolUses,
    output_chars,
    shown_use,
)
from tiro.agents.turn_input import Turn, request_of, schemas_of, tools_of
from tiro.errors import ContextOverflowError, ModelError, TiroError
from tiro.models.model import (
    BlockDone,
    Delta,
    Finished,
    Progress,
    RetryWait,
    TextDelta,
    ThinkingDelta,
    ToolUseDelta,
    ToolUseDone,
)
from tiro.session.messages import Message, StopReason, Usage, text_of
from tiro.session.meter import ContextSize

logger = logging.getLogger(__name__)

MODEL_BROKE = "The model failed unexpectedly; the log says more, try again"
NO_END = "The answer of the model broke off; try again"

SETTLE_SECONDS = 0.5
"""How long the end of a turn waits for its cancelled tasks; later results are dropped."""

State: TypeAlias = Literal["new", "resizing", "asking", "using", "finished"]

STATES: dict[tuple[State, str], State] = {
    ("new", "start"): "resizing",
    ("resizing", "ask"): "asking",
    ("asking", "overflow"): "resizing",
    ("asking", "use"): "using",
    ("asking", "step"): "resizing",
    ("asking", "stop"): "finished",
    ("using", "step"): "resizing",
    ("using", "stop"): "finished",
    ("resizing", "stop"): "finished",
    ("new", "stop"): "finished",
}
"""(state, what happens) → state of a turn."""


async def run_turn(turn: Turn) -> AsyncGenerator[TurnEvent, None]:
    """Run the turn, and yield what happens until `Finished`.

    Consume it with `contextlib.aclosing`, so that leaving the loop early ends the turn too.
    """
    running = _Running(turn)
    try:
        for event in running.start():
            yield event
        while running.state != "finished":
            await running.inbox.filled()
            while (item := running.inbox.take()) is not None:
                for event in running.receive(item):
                    yield event
    except Exception as error:
        for event in running.receive(_Failed(error)):
            yield event
    finally:
        running.abandon()
        await running.settle()
    yield running.last_event()


class _Ready(msgspec.Struct, frozen=True):
    """The session is ready for the next request."""

    resized: events.Resized | None


class _Failed(msgspec.Struct, frozen=True):
    """The hook or the model's stream raised."""

    error: Exception


class _Cancelled(msgspec.Struct, frozen=True):
    """The user wants the turn to stop."""


_Item: TypeAlias = Delta | Moved | Said | Told | AllEnded | _Ready | _Failed | _Cancelled


class _Running:
    """One turn while it runs: its state, its answer so far, its tasks."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.state: State = "new"
        self.inbox: Inbox[_Item] = Inbox()
        self._record = Record(turn.session, turn.cancel, turn.rules_in)
        self._tools = {tool.name: tool for tool in tools_of(turn)}
        self._schemas = schemas_of(list(self._tools.values()))
        self._answer = Answer()
        self._uses: ToolUses | None = None
        self._open_under: dict[str, events.ToolUse] = {}  # of sub-agents, by the id as it is seen
        self._known_ids: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._steps = 0
        self._is_cut_off = False
        self._cut_off_steps = 0
        self._repeats = Repeats()
        self._has_shrunk = False
        self._weights = (0.0, 0.0, 0.0)
        self._most_output = 0
        self._text = ""
        self._stop_reason: StopReason = "end_turn"
        self._error: TiroError | None = None
        self._acts = self._table()

    # What whoever runs the turn calls

    def start(self) -> list[TurnEvent]:
        """Store the prompt and begin the first step."""
        self._move("start")
        stored = self._record.store(Message("user", self.turn.prompt))
        self._task(self._watch_cancel())
        self._task(self._prepare())
        agent, model = self.turn.agent.name, self.turn.model.name
        return [events.Started(agent, model, self._record.last_seq), *stored]

    def receive(self, item: _Item) -> list[TurnEvent]:
        """Act on one item, all of it at once; after the end of the turn nothing counts any more."""
        if self.state == "finished":
            return []
        return list(self._acts[type(item)](item))

    def abandon(self) -> None:
        """End the turn in silence, wherever it is; what had arrived is stored."""
        while (item := self.inbox.take()) is not None:
            self.receive(item)
        self.receive(_Cancelled())

    async def settle(self) -> None:
        """Give the cancelled tasks a moment to close what they hold."""
        self.inbox.close()
        self._record.close()
        pending = [task for task in self._tasks if not task.done()]
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending, timeout=SETTLE_SECONDS)

    def last_event(self) -> events.Finished:
        """How the turn ended."""
        outcome = TurnOutcome(
            stop_reason=self._stop_reason,
            text=self._text,
            first_seq=self._record.first_seq,
            last_seq=self._record.last_seq,
            steps=self._steps,
            usage=self._record.usage,
        )
        return events.Finished(outcome, self._error)

    # What happens, item by item

    def _table(self) -> dict[type, Callable[[Any], Iterable[TurnEvent]]]:
        return {
            _Ready: self._on_ready,
            TextDelta: self._on_text,
            ThinkingDelta: self._on_thinking,
            ToolUseDelta: lambda _: (),
            ToolUseDone: self._on_tool_use,
            BlockDone: self._on_block,
            RetryWait: lambda item: [events.Retry(item.attempt, item.wait_seconds, item.reason)],
            Progress: lambda item: [events.Progress(item.message, item.fraction)],
            Finished: self._on_answer,
            Moved: lambda item: self._needed_uses().act(item),
            Said: lambda item: [events.ToolOutput(item.tool_use_id, item.text)],
            Told: self._on_told,
            AllEnded: self._on_all_ended,
            _Failed: self._on_failed,
            _Cancelled: lambda _: self._stop("cancelled", NOT_STARTED),
        }

    def _on_ready(self, item: _Ready) -> Iterator[TurnEvent]:
        self._move("ask")
        self._steps += 1
        self._answer, self._text = Answer(), ""
        self._task(self._ask_model())
        if item.resized is not None:
            yield item.resized

    def _on_failed(self, item: _Failed) -> Iterator[TurnEvent]:
        """Stop; but a request that was too long is sent once more, after a resize (U8)."""
        error = item.error
        too_long = error if isinstance(error, ContextOverflowError) else None
        if too_long is not None and self.state == "asking":
            self._count_refused(too_long)
        if (
            too_long is not None
            and self.state == "asking"
            and self._answer.is_empty()
            and not self._has_shrunk
        ):
            self._has_shrunk = True
            self._steps -= 1
            self._move("overflow")
            self._task(self._prepare(too_long))
        else:
            yield from self._stop("error", BROKEN_OFF, error)

    def _on_text(self, delta: TextDelta) -> Iterator[TurnEvent]:
        self._answer.add_text(delta)
        yield events.Text(delta.text)

    def _on_thinking(self, delta: ThinkingDelta) -> Iterator[TurnEvent]:
        self._answer.add_thinking(delta)
        if delta.text:
            yield events.Thinking(delta.text)

    def _on_tool_use(self, delta: ToolUseDone) -> Iterator[TurnEvent]:
        done = self._with_own_id(delta)
        self._answer.add_tool_use(done)
        yield shown_use(done, "proposed")

    def _on_block(self, delta: BlockDone) -> Iterable[TurnEvent]:
        self._answer.add_block(delta)
        return ()

    def _on_answer(self, finished: Finished) -> Iterator[TurnEvent]:
        reason = finished.stop_reason
        if reason in ("error", "cancelled"):
            yield from self._stop("error", BROKEN_OFF, ModelError(MODEL_BROKE))
            return
        yield from self._store_answer()
        self._count(finished.usage)
        yield events.UsageSoFar(self._record.usage, self._size())
        self._is_cut_off = reason == "max_tokens"
        is_cut = self._is_cut_off or self._answer.is_cut_off()
        self._cut_off_steps = self._cut_off_steps + 1 if is_cut else 0
        if self._answer.tool_uses and reason != "refusal":
            self._move("use")
            self._uses = self._tool_uses()
            self._task(self._uses.run())
        elif self._record.has_queued and reason != "refusal":
            yield from self._next_step()
        else:
            yield from self._stop("end_turn" if reason == "tool_use" else reason, REFUSED_ANSWER)

    def _on_told(self, item: Told) -> Iterator[TurnEvent]:
        """Pass on what a sub-agent does, and count what it uses."""
        if isinstance(item.event, Usage):
            self._record.count(item.event)
            yield events.UsageSoFar(self._record.usage, self._size())
            return
        if isinstance(item.event, events.ToolUse):
            self._open_under.pop(item.event.tool_use.id, None)
            if item.event.status in ("proposed", "running"):
                self._open_under[item.event.tool_use.id] = item.event
        yield item.event

    def _on_all_ended(self, _: AllEnded) -> Iterator[TurnEvent]:
        yield from self._needed_uses().close("fail", BROKEN_TOOL.format(kind="it gave no answer"))
        self._repeats.count(self._needed_uses())
        self._uses = None
        if (stuck := self._repeats.too_many()) is not None:
            yield from self._stop("error", BROKEN_OFF, stuck)
        elif self._cut_off_steps > 1 and self._steps < self._max_steps():
            yield from self._stop("max_tokens", NOT_STARTED)
        else:
            yield from self._next_step()

    def _next_step(self) -> Iterator[TurnEvent]:
        """Prepare another request, with what the user has said meanwhile; at the limit stop."""
        if self._steps >= self._max_steps():
            yield from self._stop("max_steps", NOT_STARTED)
            return
        yield from self._record.store_queued()
        self._move("step")
        self._task(self._prepare())

    def _stop(
        self, reason: StopReason, text: str, error: Exception | None = None
    ) -> Iterator[TurnEvent]:
        """End the turn: what had arrived is stored, open tool uses get `text` as their result.

        What the user said too late for another step is stored behind that.
        """
        state = self.state
        self._move("stop")
        self.turn.ended.set()
        self._stop_reason = reason
        if error is not None:
            self._error = error if isinstance(error, TiroError) else _unexpected(error)
        if state == "asking" and reason in ("cancelled", "error"):
            yield from self._store_answer(interrupted=True)
        if state == "asking" and self._answer.tool_uses:
            self._uses = self._tool_uses()
        for use in self._open_under.values():
            yield msgspec.structs.replace(use, status="cancelled")
        if self._uses is not None:
            yield from self._uses.close("cancel", text)
        yield from self._record.store_queued()

    # What is stored

    def _store_answer(self, **marks: Any) -> Iterator[TurnEvent]:
        message = self._answer.take_message()
        if message is not None:
            self._text = text_of(message)
            if self._answer.has_thinking:
                marks["model"] = self.turn.model.name  # no other may be sent it back
            yield from self._record.store(message.marked(**marks) if marks else message)

    def _count(self, usage: Usage | None) -> None:
        if usage is None:
            return
        reported = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        self.turn.session.meter.calibration.observe(self._weights, reported)
        price = self.turn.model.facts.price_per_million
        if usage.cost_usd is None and price is not None:
            usage = msgspec.structs.replace(usage, cost_usd=price.cost_usd(usage))
        self._record.count(usage)
        self.turn.spending.add(usage)
        self.turn.on_usage(usage)

    def _count_refused(self, error: ContextOverflowError) -> None:
        """Let the meter know that a request was larger than the context window."""
        told, facts = error.data, self.turn.model.facts
        most = told.get("tokens") or told.get("context_window") or facts.context_window
        if most is not None:  # some servers count the room for the answer too
            least = most - self._most_output
            self.turn.session.meter.calibration.observe_refusal(self._weights, least)

    # The tasks

    def _task(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(work))

    async def _watch_cancel(self) -> None:
        await self.turn.cancel.wait()
        self.inbox.put(_Cancelled())

    async def _prepare(self, overflow: ContextOverflowError | None = None) -> None:
        try:
            resized = await self.turn.before_step(overflow, self._tell)
            facts, spent = self.turn.model.facts, self.turn.spending.usage
            budget, price = self.turn.settings.budget, facts.price_per_million
            check_budget(budget, spent, self._size().tokens, price)
            self.inbox.put(_Ready(resized))
        except Exception as error:
            self.inbox.put(_Failed(error))

    def _tell(self, text: str) -> None:
        self.inbox.put(Progress(text, None))

    async def _ask_model(self) -> None:
        try:
            turn = self.turn
            self._weights = request_weights(
                turn.session, turn.system, self._schemas, turn.model.facts.context_window
            )
            request = request_of(turn)
            self._most_output = request.max_output_tokens or 0
            await self._read(turn.model.stream(request))
        except Exception as error:
            self.inbox.put(_Failed(error))

    async def _read(self, stream: AsyncIterator[Delta]) -> None:
        """Put the deltas into the inbox, up to the end that every answer has."""
        try:
            async for delta in stream:
                self.inbox.put(delta)
                if isinstance(delta, Finished):
                    return
                await self.inbox.breathe()
            raise ModelError(NO_END, provider=self.turn.model.name.partition("/")[0])
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()

    # Small things

    def _move(self, what: str) -> None:
        """Go to the next state; a miss says what was allowed."""
        if (self.state, what) not in STATES:
            allowed = [event for state, event in STATES if state == self.state]
            raise RuntimeError(f"A turn that is {self.state} cannot {what}, only {allowed}")
        self.state = STATES[self.state, what]

    def _size(self) -> ContextSize:
        window = self.turn.model.facts.context_window
        return request_size(
            self.turn.session, self.turn.system, self._schemas, context_window=window
        )

    def _tool_uses(self) -> ToolUses:
        """The tool uses of the answer, ready to run."""
        needs = Needs(
            agent=self.turn.agent.name,
            tools=self._tools,
            gate=Gate(self.turn.rules, self.turn.workspace),
            rules_now=self.turn.rules_now or (lambda: self.turn.rules),
            record=self._record,
            ask=self.turn.ask,
            edits=self.turn.edits,
            keep_output=self.turn.keep_output,
            seen=self.turn.seen,
            patience=self.turn.patience,
            secrets=self.turn.secrets,
            put=self.inbox.put,
            max_output_chars=output_chars(self.turn.model.facts.context_window),
        )
        return ToolUses(self._answer.tool_uses, needs, cut_off=self._is_cut_off)

    def _needed_uses(self) -> ToolUses:
        assert self._uses is not None, "only a step with tool uses has any that move"
        return self._uses

    def _max_steps(self) -> int:
        limits = (self.turn.settings.max_steps, self.turn.agent.steps)
        return max(1, min(limit for limit in limits if limit is not None))

    def _with_own_id(self, done: ToolUseDone) -> ToolUseDone:
        """Replace an id that is missing or was used in this turn: a result must find its use."""
        name, number = done.id or "call", 1
        while not done.id or done.id in self._known_ids:
            number += 1
            done = msgspec.structs.replace(done, id=f"{name}-{number}")
        self._known_ids.add(done.id)
        return done


def _unexpected(error: Exception) -> TiroError:
    logger.error("A turn broke", exc_info=error)
    return ModelError(MODEL_BROKE)
