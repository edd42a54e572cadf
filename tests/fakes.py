"""Real objects with the real interfaces, scripted by a test: model, editor, clock, tool."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tiro.errors import EditConflictError
from tiro.models.model import (
    Delta,
    Finished,
    Model,
    ModelFacts,
    ModelRequest,
    TextDelta,
    ToolUseDone,
)
from tiro.models.openai_request import to_wire_request
from tiro.session.messages import Usage
from tiro.tools.editor import Diagnostic, Editor, PermissionAnswer, PermissionRequest
from tiro.tools.tool import Effect, Tool, ToolOutput, ToolRun

Step = Delta | BaseException | asyncio.Event
"""What a scripted model does next: yield, raise, or wait until the event is set."""


class ScriptedModel:
    """Answers the n-th request with the n-th script and records what it was asked."""

    def __init__(
        self,
        *scripts: Sequence[Step],
        name: str = "fake/fake-model",
        facts: ModelFacts | None = None,
    ) -> None:
        self.name = name
        self.facts = facts or ModelFacts(context_window=100_000)
        self.scripts = list(scripts)
        self.requests: list[ModelRequest] = []
        self.closed_streams = 0
        self.is_closed = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Play the next script; one that is missing is an answer of "ok"."""
        self.requests.append(request)
        script = self.scripts.pop(0) if self.scripts else says("ok")
        try:
            for step in script:
                if isinstance(step, asyncio.Event):
                    await step.wait()
                elif isinstance(step, BaseException):
                    raise step
                else:
                    yield step
        finally:
            self.closed_streams += 1

    def wire_request(self, request: ModelRequest) -> dict[str, Any]:
        """As a provider of OpenAI's format would be sent it."""
        return to_wire_request(request)

    async def close(self) -> None:
        """Note that the model was closed."""
        self.is_closed = True


def says(*pieces: str, usage: Usage | None = None) -> list[Step]:
    """The script of a text answer, one delta for each piece."""
    return [*map(TextDelta, pieces), Finished(stop_reason="end_turn", usage=usage)]


def uses(*given: tuple[str, str, dict[str, Any]], usage: Usage | None = None) -> list[Step]:
    """The script of tool uses, given as (id, name, input)."""
    done = [ToolUseDone(id=i, name=n, input=value, raw="") for i, n, value in given]
    return [*done, Finished(stop_reason="tool_use", usage=usage)]


class RecordingEditor:
    """An editor with given roots and buffers that answers every question the same way."""

    def __init__(
        self,
        *roots: Path,
        buffers: dict[Path, str] | None = None,
        answer: PermissionAnswer | None = None,
    ) -> None:
        self.roots = list(roots)
        self.buffers = buffers or {}
        self.answer = answer or PermissionAnswer(decision="reject")
        self.questions: list[PermissionRequest] = []
        self.problems: list[Diagnostic] | None = None
        self.takes_edits = True

    def workspace_roots(self) -> list[Path]:
        """The given roots."""
        return self.roots

    def open_paths(self) -> list[Path]:
        """The paths of the given buffers."""
        return list(self.buffers)

    def open_text(self, path: Path) -> str | None:
        """The text of a given buffer."""
        return self.buffers.get(path)

    def can_edit(self) -> bool:
        """Whether the test wants an editor that takes edits."""
        return self.takes_edits

    async def apply_edit(self, path: Path, old: str, new: str) -> None:
        """Change a given buffer, where it still holds the old text."""
        if self.buffers.get(path) != old:
            raise EditConflictError("The buffer was changed")
        self.buffers[path] = new

    def can_diagnose(self) -> bool:
        """Whether the test has given diagnostics."""
        return self.problems is not None

    async def diagnostics(self, path: Path | None) -> list[Diagnostic] | None:
        """The given diagnostics, all of them."""
        return self.problems

    async def ask_permission(self, request: PermissionRequest) -> PermissionAnswer:
        """Record the question and give the one answer."""
        self.questions.append(request)
        return self.answer


class FixedClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now: datetime = datetime(2025, 2, 21, 22, 30, 15, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        """The time, always aware."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Move the clock; a negative number sets it back."""
        self.now += timedelta(seconds=seconds)


def fake_tool(
    name: str = "fake",
    answer: Callable[[dict[str, Any]], str] = lambda given: f"ran with {given}",
    *,
    effect: Effect = "read",
    permission_key: str = "read",
    calls: list[dict[str, Any]] | None = None,
) -> Tool:
    """A tool that answers by a function and notes its inputs in `calls`."""

    async def run(given: dict[str, Any], _: ToolRun) -> ToolOutput:
        if calls is not None:
            calls.append(given)
        return ToolOutput(content=answer(given))

    return Tool(
        name=name,
        description=f"The fake tool {name}",
        input_schema={"type": "object", "properties": {}},
        effect=effect,
        permission_key=permission_key,
        run=run,
    )


def _keep_the_interfaces(model: ScriptedModel, editor: RecordingEditor) -> tuple[Model, Editor]:
    return model, editor  # only for the type checker: both fakes are what they stand for
