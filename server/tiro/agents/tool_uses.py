"""The tool uses of one step: judged, asked about, run, and each brought to exactly one result.

The life of a tool use is the table `STATUSES`. Reads that stand side by side run together, whatever
else waits for its turn. The tasks only put what happened into the turn's inbox.
"""

import asyncio
import functools
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeVar

import msgspec

from tiro.agents.calls import Call, call_of
from tiro.agents.events import ToolUse, ToolUseShown, ToolUseStatus, TurnEvent, shown_result
from tiro.agents.gate import Gate, Use
from tiro.agents.permissions import PermissionDecision, Rules
from tiro.agents.record import Record
from tiro.errors import ToolError
from tiro.models.model import ToolUseDone
from tiro.session.json_text import clean
from tiro.session.large import OUTPUT, PARTS
from tiro.session.messages import Message
from tiro.session.secrets import KnownSecrets
from tiro.tools.editor import PermissionAnswer, PermissionRequest
from tiro.tools.long_output import OutputKeeper
from tiro.tools.seen import SeenTexts
from tiro.tools.shell import is_reading
from tiro.tools.silent_disk import Patience, in_thread
from tiro.tools.tool import (
    MAX_OUTPUT_CHARS,
    EditRecorder,
    Tool,
    ToolOutput,
    ToolRun,
    check_input,
    limit_output,
    while_disks_answer,
)

logger = logging.getLogger(__name__)
T = TypeVar("T")

CANCELLED = "Cancelled by the user before it was finished; the outcome is not known to be complete."
NOT_STARTED = "Cancelled by the user before it was started; nothing was run or changed."
BROKEN_OFF = "The answer broke off before this could be run; nothing was run or changed."
REFUSED_ANSWER = "The answer ended in a refusal, so this was not run; nothing was changed."
UNKNOWN_TOOL = "There is no tool {name!r}; nothing was run. The tools are: {tools}."
UNREADABLE_INPUT = (
    "The arguments are no JSON object, so nothing was run: they are not valid, or were truncated."
    " Call the tool again with valid JSON, and with less in one call if it was long. They were:"
    " {raw}"
)
CUT_OFF = (
    "The answer reached its output limit in the middle of this call, so the arguments are"
    " truncated and nothing was run or changed. Call the tool again with less in one call."
)
DENIED = "Not allowed by the rule {rule!r} ({source}); nothing was run or changed."
ANOTHER_AGENT = (
    " That agent may not do it; the user can select another agent, such as build (/agent build)."
)
REJECTED = "The user said no; nothing was run or changed.{message}"
BROKEN_TOOL = "The tool failed unexpectedly ({kind}); its outcome is unknown. Try another way."
NOTHING_RUN = ("nothing was run", "was not run")
"""In these words each of the sentences above says that a tool use has not begun."""
EMPTY_OUTPUT = "(no output)"

COMMANDS = "commands"
"""The mark of a result with what sub-agents have run for it, for who takes back their edits."""
MAX_COMMAND_CHARS = 200
MAX_RAW_SHOWN = 2000
MIN_OUTPUT_CHARS = 3000
MAX_TOGETHER = 8
"""How many reads run at the same time."""

STATUSES: dict[tuple[ToolUseStatus, str], ToolUseStatus] = {
    ("proposed", "run"): "running",
    ("proposed", "fail"): "failed",
    ("proposed", "reject"): "rejected",
    ("proposed", "cancel"): "cancelled",
    ("running", "finish"): "done",
    ("running", "fail"): "failed",
    ("running", "cancel"): "cancelled",
}
"""(status, what happens) → status; the other statuses are final."""


class Moved(msgspec.Struct, frozen=True):
    """Something happened to a tool use; with an output, that is its end."""

    index: int
    what: str
    rule: str | None = None
    output: ToolOutput | None = None
    preview: str | None = None


class AllEnded(msgspec.Struct, frozen=True):
    """No tool use of this answer runs any more."""


class Said(msgspec.Struct, frozen=True):
    """A running tool shows a piece of its output."""

    tool_use_id: str
    text: str


class Told(msgspec.Struct, frozen=True):
    """Something happened in the turn of a sub-agent: an event, or the usage of a request."""

    event: Any


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """What the tool uses need from their turn."""

    agent: str
    tools: dict[str, Tool]
    gate: Gate
    rules_now: Callable[[], Rules]
    record: Record
    ask: Callable[[PermissionRequest], Awaitable[PermissionAnswer]]
    edits: Callable[[str], EditRecorder]
    keep_output: Callable[[], OutputKeeper | None]
    seen: SeenTexts
    patience: Patience
    secrets: KnownSecrets
    put: Callable[[Moved | Said | Told | AllEnded], None]
    max_output_chars: int = MAX_OUTPUT_CHARS


class Leave(msgspec.Struct, frozen=True):
    """What was decided about a tool use; with a refusal, which is told to the model, it ends."""

    rule: str | None = None
    refusal: str | None = None
    preview: str | None = None


class ToolUses:
    """The tool uses of one answer, in call order."""

    def __init__(self, given: Sequence[ToolUseDone], needs: Needs, *, cut_off: bool) -> None:
        self.given = given
        self.statuses: list[ToolUseStatus] = ["proposed"] * len(given)
        self._needs = needs
        self._cut_off = cut_off
        self._cancelled = [threading.Event() for _ in given]
        self._so_far: dict[int, Callable[[], str]] = {}
        self._commands: dict[int, list[str]] = {}
        """What sub-agents have run for a use, but for what only reads."""
        self._asking = asyncio.Lock()
        self._before = len(needs.record.calls)
        """How many calls the turn had made before these."""
        needs.record.calls += [self._call(done) for done in given]

    @property
    def calls(self) -> Sequence[Call]:
        """What is called."""
        return self._needs.record.calls[self._before : self._before + len(self.given)]

    def act(self, moved: Moved) -> Iterator[TurnEvent]:
        """Bring a tool use into its next status; an output is stored as its result."""
        done = self.given[moved.index]
        status = self._move(moved.index, moved.what)
        yield shown_use(done, status, moved.rule, moved.preview)
        if moved.output is not None:
            yield from self._store(moved.index, moved.output)

    def close(self, what: str, text: str) -> Iterator[TurnEvent]:
        """Give each tool use that has no result yet this text as its result, in call order."""
        for event in self._cancelled:
            event.set()
        for index, status in enumerate(self.statuses):
            if not _is_final(status):
                told = self._broken_off(index) if status == "running" and what == "cancel" else text
                yield from self.act(Moved(index, what, None, ToolOutput(told, is_error=True)))

    async def run(self) -> None:
        """Run all of them, as far as they may; what happens goes into the inbox."""
        together = asyncio.Semaphore(MAX_TOGETHER)
        try:
            for batch in self._batches():
                async with asyncio.TaskGroup() as group:
                    for index in batch:
                        group.create_task(self._run_one(index, together))
        finally:
            self._needs.put(AllEnded())

    def _move(self, index: int, what: str) -> ToolUseStatus:
        """Go to the next status; a miss says what was allowed."""
        status = self.statuses[index]
        if (status, what) not in STATUSES:
            allowed = [event for before, event in STATUSES if before == status]
            raise RuntimeError(f"A tool use that is {status} cannot {what}, only {allowed}")
        self.statuses[index] = STATUSES[status, what]
        return self.statuses[index]

    def _broken_off(self, index: int) -> str:
        """What is told of a use that was cancelled while it ran, with its output so far."""
        so_far = self._so_far[index]() if index in self._so_far else ""
        return f"{so_far.rstrip()}\n{CANCELLED}" if so_far.strip() else CANCELLED

    def _hear(self, index: int, event: Any) -> None:
        """Take in what happened in the turn of a sub-agent that works for a use."""
        match event:
            case ToolUse(
                status="running",
                tool_use=ToolUseShown(name="run_command", input={"command": str(command)}),
            ):
                if not is_reading(command):
                    told = self._needs.secrets.text(command[:MAX_COMMAND_CHARS])
                    self._commands.setdefault(index, []).append(told)
        self._needs.put(Told(event))

    def _call(self, done: ToolUseDone) -> Call:
        given = done.raw if done.input is None else done.input
        spelled = self._needs.gate.workspace.spelled
        return call_of(self._needs.tools.get(done.name), done.name, given, spelled)

    def _store(self, index: int, output: ToolOutput) -> Iterator[TurnEvent]:
        """Store the result, cut to what a model should get; a cut one has the whole beside it.

        From here on it goes to the model, the editor and the disk: no known secret is in it.
        """
        done, calls = self.given[index], self._needs.record.calls
        if self.statuses[index] in ("done", "failed"):  # else it was not run, or not to its end
            calls[self._before + index] = calls[self._before + index].brought(output)
        whole = clean(self._needs.secrets.text(output.content)) or EMPTY_OUTPUT
        total = sum(part["chars"] for part in output.whole)
        limit = self._needs.max_output_chars
        content = limit_output(whole, max_chars=limit, total_chars=total)
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": done.id, "content": content}
        if output.images:
            block["content"] = [{"type": "text", "text": content}, *output.images]
        if output.is_error:
            block["is_error"] = True
        message = Message("tool", block).marked(**{COMMANDS: self._commands.get(index)})
        is_cut = content != whole
        if is_cut:
            message = message.marked(**{OUTPUT: whole, PARTS: [*output.whole] or None})
        stored = self._needs.record.store(message)
        seq = stored[0].seq if stored else None
        shown = shown_result(done.id, content, is_error=output.is_error, seq=seq)
        yield msgspec.structs.replace(shown, truncated=shown.truncated or is_cut)
        yield from stored

    def _batches(self) -> Iterator[list[int]]:
        """Neighbouring reads together, everything else alone, in call order.

        A sub-agent may do more than read, and asks for itself.
        """

        def key(index: int) -> int:
            tool = self._needs.tools.get(self.given[index].name)
            is_read = tool is None or (tool.effect == "read" and tool.permission_key != "delegate")
            return -1 if is_read else index

        for _, batch in groupby(range(len(self.given)), key):
            yield list(batch)

    async def _run_one(self, index: int, together: asyncio.Semaphore) -> None:
        leave = Leave()
        try:
            tool, given = self._checked(index)
            use = await self._look(index, tool, given)
            tool_run = self._tool_run(index, use)
            if self._needs.gate.decide(use, self._needs.record.remembered).kind == "ask":
                async with self._asking:  # the answer to another question may settle this one
                    leave = await self._leave(use, given, tool_run)
            else:
                leave = await self._leave(use, given, tool_run)
            if leave.refusal is not None:
                self._end(index, "reject", leave, leave.refusal)
                return
            async with together:
                self._needs.put(Moved(index, "run", leave.rule, preview=leave.preview))
                output = await _on_disks(tool, tool.run(given, tool_run), tool_run)
            what = "fail" if output.is_error else "finish"
            self._needs.put(Moved(index, what, leave.rule, output))
        except ToolError as error:
            self._end(index, "fail", leave, str(error))
        except Exception as error:
            logger.exception("The tool %r failed", self.given[index].name)
            self._end(index, "fail", leave, BROKEN_TOOL.format(kind=type(error).__name__))

    def _end(self, index: int, what: str, leave: Leave, text: str) -> None:
        output = ToolOutput(text, is_error=True)
        self._needs.put(Moved(index, what, leave.rule, output, leave.preview))

    def _checked(self, index: int) -> tuple[Tool, dict[str, Any]]:
        """The tool and its checked input; ToolError says why it cannot run."""
        done = self.given[index]
        if self._cut_off and index == len(self.given) - 1 and _is_incomplete(done):
            raise ToolError(CUT_OFF)
        tool = self._needs.tools.get(done.name)
        if tool is None:
            names = ", ".join(self._needs.tools) or "(none)"
            raise ToolError(UNKNOWN_TOOL.format(name=done.name, tools=names))
        if done.input is None:
            raise ToolError(UNREADABLE_INPUT.format(raw=done.raw[:MAX_RAW_SHOWN]))
        return tool, check_input(tool.input_schema, done.input)

    async def _look(self, index: int, tool: Tool, given: dict[str, Any]) -> Use:
        """What a tool use is about; in a thread where the disk has to be asked."""
        before = self._needs.record.calls[: self._before + index]
        look = functools.partial(self._needs.gate.look, tool, given, before)
        if tool.subject_field is None:
            return look()
        named = _paths_in(tool, given)
        return await while_disks_answer(
            in_thread(look), self._needs.gate.workspace, self._needs.patience, *named
        )

    async def _leave(self, use: Use, given: dict[str, Any], tool_run: ToolRun) -> Leave:
        """Whether it may run, by the rules as they are right now; asks where they say so."""
        gate, tool, record = self._needs.gate, use.tool, self._needs.record
        decision = gate.decide(use, record.remembered)
        if decision.kind == "deny":
            return _denied(decision)
        preview = await _preview(tool, given, tool_run)
        if preview is not None and tool.effect != "execute":  # a command is shown as it will run
            preview = self._needs.secrets.text(preview)
        preview = use.preview(preview)
        if decision.kind == "allow":
            return Leave(decision.rule, None, preview)
        request = PermissionRequest(
            tool_use_id=tool_run.tool_use_id,
            name=tool.name,
            input=given,
            agent=self._needs.agent,
            rule=decision.rule,
            effect=tool.effect,
            always=gate.promises(use, record.remembered),
            preview=preview,
        )
        answer = await self._needs.ask(request)
        if answer.decision == "reject":
            message = f" They say: {answer.message}" if answer.message else ""
            return Leave(decision.rule, REJECTED.format(message=message), preview)
        now = Gate(self._needs.rules_now(), gate.workspace).decide(use, record.remembered)
        if now.kind == "deny":  # while the question was open the user has selected another agent
            return _denied(now, preview)
        if answer.decision == "always":
            record.remember(gate.grants(use, record.remembered))
        return Leave(decision.rule, None, preview)

    def _tool_run(self, index: int, use: Use) -> ToolRun:
        gate, done, loop = self._needs.gate, self.given[index], asyncio.get_running_loop()

        pieces = self._needs.secrets.pieces()

        def on_output(text: str) -> None:
            if not self._cancelled[index].is_set() and (shown := pieces.add(text)):
                loop.call_soon_threadsafe(self._needs.put, Said(done.id, shown))

        return ToolRun(
            tool_use_id=done.id,
            workspace=gate.workspace.held_to(use.places),
            may_read=gate.readable(use, self._needs.record.remembered),
            edits=self._needs.edits(done.id),
            seen=self._needs.seen,
            patience=self._needs.patience,
            secrets=self._needs.secrets,
            on_output=on_output,
            keep_output=self._needs.keep_output,
            on_event=functools.partial(self._hear, index),
            tell_so_far=functools.partial(self._so_far.__setitem__, index),
            max_output_chars=self._needs.max_output_chars,
            cancelled=self._cancelled[index],
        )


async def _preview(tool: Tool, given: dict[str, Any], run: ToolRun) -> str | None:
    return await _on_disks(tool, tool.preview(given, run), run) if tool.preview else None


async def _on_disks(tool: Tool, work: Awaitable[T], run: ToolRun) -> T:
    """The result of what a tool does; one that is about a path waits while its disk answers."""
    if tool.subject_field != "path":
        return await work
    return await while_disks_answer(work, run.workspace, run.patience)


def _paths_in(tool: Tool, given: dict[str, Any]) -> list[str]:
    """What may be a path in an input; of a command line all words that could be one."""
    if tool.subject_field == "path":
        return [given.get("path", ".")]
    words = str(given[tool.subject_field or ""]).split() if tool.effect == "execute" else []
    named = [word.strip("'\"") for word in words if "/" in word and "\0" not in word]
    return [given.get("cwd", "."), *(word for word in named if "://" not in word)]


def _denied(decision: PermissionDecision, preview: str | None = None) -> Leave:
    told = DENIED.format(rule=decision.rule, source=decision.source)
    return Leave(decision.rule, told + ANOTHER_AGENT * decision.is_of_agent(), preview)


def output_chars(context_window: int | None) -> int:
    """How much of a result a model with this window gets: a quarter of it, within bounds."""
    wanted = MAX_OUTPUT_CHARS if context_window is None else context_window  # 4 to a token
    return max(MIN_OUTPUT_CHARS, min(MAX_OUTPUT_CHARS, wanted))


def shown_use(
    done: ToolUseDone,
    status: ToolUseStatus,
    rule: str | None = None,
    preview: str | None = None,
) -> ToolUse:
    """The event of a tool use that came into this status."""
    shown = ToolUseShown(done.id, done.name, done.input or {})
    return ToolUse(tool_use=shown, status=status, rule=rule, preview=preview)


def _is_final(status: ToolUseStatus) -> bool:
    return all(before != status for before, _ in STATUSES)


def _is_incomplete(done: ToolUseDone) -> bool:
    """Whether the arguments may be cut off; an object that could be read is complete."""
    return done.input is None or (not done.input and not done.raw.strip())
