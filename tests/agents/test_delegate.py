"""An agent gives a task to another one (M5.2, M5.9, U8)."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.agents.turns import a_tool, assert_sound, finished, run, statuses, told
from tests.fakes import RecordingEditor, ScriptedModel, says, uses
from tiro.agents import events
from tiro.agents.agent_info import AgentInfo
from tiro.agents.delegate import NAME
from tiro.agents.settings import TurnBudget, TurnSettings
from tiro.agents.tool_uses import COMMANDS
from tiro.agents.turn import run_turn
from tiro.agents.turn_input import Turn, offered_tools
from tiro.assistant.new_turn import Means
from tiro.assistant.setup import Setup
from tiro.errors import BudgetExceededError, ModelError
from tiro.models.model import TextDelta
from tiro.session.messages import Usage
from tiro.session.session import Session
from tiro.tools.editor import PermissionAnswer
from tiro.tools.tool import Tool
from tiro.tools.workspace import Workspace


def a_task(agent: str = "explore", task: str = "find it", id: str = "d1") -> tuple[str, str, Any]:
    return (id, NAME, {"agent": agent, "task": task})


class Case:
    """A turn of a real setup in a real folder, with a scripted model."""

    def __init__(
        self,
        root: Path,
        *scripts: Any,
        agent: str = "build",
        tools: list[Tool] | None = None,
        answer: PermissionAnswer | None = None,
        agents: tuple[AgentInfo, ...] = (),
        turn: TurnSettings | None = None,
    ) -> None:
        (root / "a.txt").write_text("alpha\n")
        self.setup = Setup.load(root / "config", [root], {})
        self.setup.tools = [*self.setup.tools, *(tools or [])]
        if turn is not None:
            self.setup.settings = msgspec.structs.replace(self.setup.settings, turn=turn)
        for info in agents:
            self.setup.agents.register(info)
        self.model = ScriptedModel(*scripts)
        self.session = Session(self.setup.session_settings())
        self.editor = RecordingEditor(root, answer=answer)
        info = self.setup.agents.needed(agent)
        means = Means(setup=self.setup, workspace=Workspace(self.editor), editor=self.editor)
        self.turn: Turn = means.turn(self.session, "go", info, self.model)

    def run(self) -> list[events.TurnEvent]:
        return run(self.turn)


def test_the_other_agent_works_in_a_window_of_its_own(tmp_path: Path) -> None:
    """It is given the task alone, and the caller's window grows by its last answer alone."""
    case = Case(
        tmp_path,
        uses(a_task(task="what is in a.txt?")),
        uses(("c1", "read_file", {"path": "a.txt"})),
        says("alpha ", "is in it"),
        says("It holds alpha."),
    )
    happened = case.run()
    own, other, _, after = case.model.requests
    assert [m.role for m in other.messages] == ["user"]
    assert "what is in a.txt?" in str(other.messages[0].content)
    assert other.system == case.setup.agents.needed("explore").prompt != own.system
    assert told(case.session)[1:] == [
        ("assistant", told(case.session)[1][1]),
        ("tool", ("d1", "alpha is in it", False)),
        ("assistant", "It holds alpha."),
    ]
    assert len(after.messages) == 3
    assert finished(happened).outcome.text == "It holds alpha."


def test_what_it_does_is_seen_under_the_tool_use_it_works_for(tmp_path: Path) -> None:
    """Also where the model gives both the same id."""
    case = Case(
        tmp_path,
        uses(a_task(id="call_1")),
        uses(("call_1", "read_file", {"path": "a.txt"})),
        says("found"),
        says("done"),
    )
    happened = case.run()
    inner = [e for e in happened if isinstance(e, events.ToolUse) and e.parent_tool_use_id]
    assert [(e.tool_use.id, e.status) for e in inner] == [
        ("call_1/call_1", "proposed"),
        ("call_1/call_1", "running"),
        ("call_1/call_1", "done"),
    ]
    assert {e.parent_tool_use_id for e in inner} == {"call_1"}
    assert statuses(happened, "call_1") == ["proposed", "running", "done"]
    shown = [e for e in happened if isinstance(e, events.ToolOutput) and e.tool_use_id == "call_1"]
    assert "".join(e.delta for e in shown) == "found"
    results = [e for e in happened if isinstance(e, events.ToolResult)]
    assert [e.tool_use_id for e in results] == ["call_1/call_1", "call_1"]
    assert results[0].seq is None  # it is no message of this session


def test_who_can_be_called_and_who_can_call(tmp_path: Path) -> None:
    """M5.2, M5.3, M5.9: general and explore, the user's own subagents; a task is not given on."""
    own = AgentInfo(name="reviewer", description="Reviews", mode="all")
    case = Case(tmp_path, uses(a_task("general")), says("x"), says("y"), agents=(own,))
    case.run()
    offers = [{tool.name: tool for tool in request.tools} for request in case.model.requests]
    names = offers[0][NAME].input_schema["properties"]["agent"]["enum"]
    assert names == ["general", "explore", "reviewer"]
    assert NAME not in offers[1]
    assert {"read_file", "grep"} <= set(offers[1])
    for name in ("explore", "general", "title", "summary", "compaction"):
        assert NAME not in [t.name for t in case.setup.tools_of(case.setup.agents.needed(name))]


def test_explore_that_reads_the_same_again_and_again_is_stopped_and_told_why(
    tmp_path: Path,
) -> None:
    """M5.6, M5.9: a loop of `explore` is denied as all it has no rule for; nobody is asked."""
    again = [uses((f"c{at}", "read_file", {"path": "a.txt"})) for at in range(7)]
    case = Case(tmp_path, uses(a_task()), *again, says("so be it"))
    happened = case.run()
    inner = [e for e in happened if isinstance(e, events.ToolResult) and "/" in e.tool_use_id]
    assert [e.is_error for e in inner] == [False, False] + [True] * 5
    assert "the same call for the third time in a row" in inner[2].content
    assert case.editor.questions == []
    _, (_, text, is_error) = told(case.session)[2]
    assert is_error
    assert "made the same calls 5 times" in text


@pytest.mark.parametrize("agent", ["build", "nobody"])
def test_another_name_is_refused_and_nothing_is_run(tmp_path: Path, agent: str) -> None:
    case = Case(tmp_path, uses(a_task(agent)), says("so I do it"))
    case.run()
    _, (_, text, is_error) = told(case.session)[2]
    assert is_error
    assert "`agent` must be one of" in text
    assert len(case.model.requests) == 2


def write_tool(starts: list[str]) -> Tool:
    return a_tool("write_it", effect="write", permission_key="edit", starts=starts)


def test_it_may_do_nothing_that_its_caller_may_not(tmp_path: Path) -> None:
    """M5.9: general may edit, but not for plan."""
    starts: list[str] = []
    tool = msgspec.structs.replace(write_tool(starts), subject_field="path")
    case = Case(
        tmp_path,
        uses(a_task("general")),
        uses(("w1", "write_it", {"path": "a.txt"})),
        says("refused"),
        says("done"),
        agent="plan",
        tools=[tool],
        answer=PermissionAnswer("once"),
    )
    happened = case.run()
    assert statuses(happened, "d1/w1") == ["proposed", "rejected"]
    assert not starts
    assert not case.editor.questions


def test_the_user_is_asked_in_its_name_and_always_holds_in_the_session(tmp_path: Path) -> None:
    """M5.6: one answer for the rest of the session, whoever works."""
    starts: list[str] = []
    case = Case(
        tmp_path,
        uses(a_task("general", id="d1")),
        uses(("w1", "write_it", {})),
        says("did it"),
        uses(("w2", "write_it", {})),
        says("done"),
        tools=[write_tool(starts)],
        answer=PermissionAnswer("always"),
    )
    case.run()
    assert [(q.agent, q.tool_use_id) for q in case.editor.questions] == [("general", "d1/w1")]
    assert starts == ["w1", "w2"]
    assert case.session.rules


def test_what_it_uses_is_part_of_the_turn(tmp_path: Path) -> None:
    used = Usage(input_tokens=100, output_tokens=10)
    case = Case(
        tmp_path,
        uses(a_task(), usage=used),
        says("found", usage=used),
        says("done", usage=used),
    )
    happened = case.run()
    assert finished(happened).outcome.usage.tokens() == 330
    assert case.session.usage.tokens() == 330
    assert finished(happened).outcome.steps == 2


def test_the_budget_of_the_turn_holds_for_both(tmp_path: Path) -> None:
    """U8: the request that would pass it is not sent, whoever makes it."""
    used = Usage(input_tokens=4000, output_tokens=1000)
    case = Case(
        tmp_path,
        uses(a_task(), usage=used),
        uses(("c1", "read_file", {"path": "a.txt"}), usage=used),
        says("never asked"),
        turn=TurnSettings(budget=TurnBudget(tokens=10_500)),
    )
    happened = case.run()
    assert len(case.model.requests) == 2
    assert isinstance(finished(happened).error, BudgetExceededError)
    _, (_, text, is_error) = told(case.session)[2]
    assert is_error
    assert "budget" in text


def test_its_failure_is_a_result_that_the_caller_can_act_on(tmp_path: Path) -> None:
    case = Case(
        tmp_path,
        uses(a_task()),
        [TextDelta("half of"), ModelError("The provider fell over")],
        says("then I look myself"),
    )
    case.run()
    _, (_, text, is_error) = told(case.session)[2]
    assert is_error
    assert "The provider fell over" in text
    assert "half of" in text
    assert told(case.session)[-1] == ("assistant", "then I look myself")


def test_a_cancel_ends_both(tmp_path: Path) -> None:
    """B01: each tool use has one result, and the model of the other agent is let go."""
    never = asyncio.Event()

    async def cancelled() -> Case:
        case = Case(tmp_path, uses(a_task()), [TextDelta("I "), never])
        async with contextlib.aclosing(run_turn(case.turn)) as happened:
            async for event in happened:
                if isinstance(event, events.ToolOutput):
                    case.turn.cancel.set()
        assert isinstance(event, events.Finished)
        assert event.outcome.stop_reason == "cancelled"
        return case

    case = asyncio.run(cancelled())
    assert_sound(case.session)
    assert case.model.closed_streams == 2


def commands_of(case: Case) -> list[str] | None:
    """What the one result of a task says that was run for it."""
    (result,) = [row for row in case.session.newest_first if row.role == "tool"]
    found: list[str] | None = result.marks().get(COMMANDS)
    return found


def test_its_commands_stay_named_when_its_window_is_gone(tmp_path: Path) -> None:
    """B51: an undo of the turn tells them, but for what only reads and what did not run."""
    lines = ["touch x", "ls", "touch ../y", "touch x"]
    worker = AgentInfo(
        name="worker",
        description="Works",
        mode="subagent",
        permission={"external_directory": "deny"},
    )
    case = Case(
        tmp_path,
        uses(a_task("worker")),
        *(uses((f"c{at}", "run_command", {"command": line})) for at, line in enumerate(lines)),
        says("done"),
        says("done"),
        agents=(worker,),
        answer=PermissionAnswer("once"),
    )
    case.run()
    assert commands_of(case) == ["touch x", "touch x"]


def test_a_task_without_commands_names_none(tmp_path: Path) -> None:
    case = Case(tmp_path, uses(a_task()), says("found"), says("done"))
    case.run()
    assert commands_of(case) is None


def test_a_command_that_a_cancel_ends_is_named_too(tmp_path: Path) -> None:
    async def cancelled() -> Case:
        line = {"command": "touch x && sleep 300"}
        script = uses(a_task("general")), uses(("c1", "run_command", line))
        case = Case(tmp_path, *script, answer=PermissionAnswer("once"))
        async with contextlib.aclosing(run_turn(case.turn)) as happened:
            async for event in happened:
                match event:
                    case events.ToolUse(status="running", parent_tool_use_id="d1"):
                        case.turn.cancel.set()
        return case

    assert commands_of(asyncio.run(cancelled())) == ["touch x && sleep 300"]


def test_two_tasks_run_one_after_the_other(tmp_path: Path) -> None:
    """Each may write and ask, and each counts against the one budget."""
    case = Case(
        tmp_path,
        uses(a_task(id="d1", task="one"), a_task(id="d2", task="two")),
        says("first"),
        says("second"),
        says("done"),
    )
    case.run()
    results = [row[1] for row in told(case.session) if row[0] == "tool"]
    assert [text for _, text, _ in results] == ["first", "second"]


def test_the_meter_counts_the_tool(tmp_path: Path) -> None:
    """What is sent is what is measured (M5.10, U8)."""
    case = Case(tmp_path, says("x"))
    case.run()
    sent = [tool.name for tool in case.model.requests[0].tools]
    assert [t.name for t in case.setup.tools_of(case.setup.agents.needed("build"))] == sent
    assert offered_tools(case.turn.tools, case.turn.rules)[-1].name == NAME
