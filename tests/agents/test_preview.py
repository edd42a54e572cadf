"""What the user is shown of a tool use: its preview, before the question and in the events."""

import asyncio
from typing import Any

from tests.agents.turns import a_turn, events_of, run, told
from tests.fakes import fake_tool, says, uses
from tiro.agents.events import ToolUse, TurnEvent
from tiro.agents.permissions import Kind, Rules
from tiro.errors import ToolError
from tiro.tools.editor import PermissionAnswer, PermissionRequest
from tiro.tools.tool import Tool, ToolOutput, ToolRun


class Writer:
    """A tool whose run uses what its preview has noted."""

    def __init__(self, fault: str | None = None) -> None:
        self.fault = fault
        self.calls: list[tuple[str, Any]] = []

    async def preview(self, given: dict[str, Any], run: ToolRun) -> str:
        self.calls.append(("preview", run.tool_use_id))
        if self.fault:
            raise ToolError(self.fault)
        run.notes["seen"] = "old"
        return "-old\n+new"

    async def run(self, given: dict[str, Any], run: ToolRun) -> ToolOutput:
        self.calls.append(("run", run.notes["seen"]))
        return ToolOutput("written")

    def tool(self) -> Tool:
        return Tool(
            name="write_it",
            description="",
            input_schema={"type": "object"},
            effect="write",
            permission_key="write",
            run=self.run,
            preview=self.preview,
        )


def check(
    kind: Kind, answer: PermissionAnswer, writer: Writer
) -> tuple[list[PermissionRequest], list[tuple[str, str | None]], str]:
    """What was asked, which events told what, and the result."""
    asked: list[PermissionRequest] = []

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request)
        return answer

    turn = a_turn(
        uses(("c1", "write_it", {})),
        says("x"),
        tools=[writer.tool()],
        rules=Rules(config={"write": kind, "*": "ask"}),
        ask=ask,
    )
    events = run(turn)
    return asked, _shown(events), told(turn.session)[2][1][1]


def _shown(events: list[TurnEvent]) -> list[tuple[str, str | None]]:
    return [(event.status, event.preview) for event in events if isinstance(event, ToolUse)]


def test_question_and_event_show_the_preview_and_the_run_gets_its_notes() -> None:
    writer = Writer()
    asked, shown, result = check("ask", PermissionAnswer("once"), writer)
    assert [request.preview for request in asked] == ["-old\n+new"]
    assert shown == [("proposed", None), ("running", "-old\n+new"), ("done", None)]
    assert writer.calls == [("preview", "c1"), ("run", "old")]
    assert result == "written"


def test_what_needs_no_question_is_shown_too() -> None:
    asked, shown, _ = check("allow", PermissionAnswer("reject"), Writer())
    assert not asked
    assert ("running", "-old\n+new") in shown


def test_rejected_use_shows_what_was_rejected() -> None:
    _, shown, _ = check("ask", PermissionAnswer("reject", "not now"), Writer())
    assert shown == [("proposed", None), ("rejected", "-old\n+new")]


def test_use_whose_preview_fails_is_not_asked_about() -> None:
    writer = Writer("There is no such text")
    asked, shown, result = check("ask", PermissionAnswer("once"), writer)
    assert (asked, result) == ([], "There is no such text")
    assert shown == [("proposed", None), ("failed", None)]


def test_denied_use_is_not_even_looked_at() -> None:
    """A denied file is not read for a preview either."""
    writer = Writer()
    turn = a_turn(
        uses(("c1", "write_it", {})),
        says("x"),
        tools=[writer.tool(), fake_tool()],
        rules=Rules(config={"write": {".never": "allow", "*": "deny"}}),
    )
    asyncio.run(events_of(turn))
    assert writer.calls == []
