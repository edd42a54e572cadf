"""The turn as a table of scripts: what the model says, what is stored, what is told."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

from tests.agents.turns import (
    AGENT,
    a_tool,
    a_turn,
    assert_sound,
    events_of,
    finished,
    run,
    statuses,
    told,
)
from tests.fakes import RecordingEditor, ScriptedModel, Step, says, uses
from tiro.agents.agent_info import AgentInfo
from tiro.agents.events import (
    MAX_END_BYTES,
    MAX_SHOWN_BYTES,
    Finished,
    Progress,
    Resized,
    Retry,
    Started,
    Stored,
    Text,
    Thinking,
    ToolOutput,
    ToolResult,
    ToolUse,
    TurnEvent,
    UsageSoFar,
    shown_result,
)
from tiro.agents.permissions import Rules
from tiro.agents.prompt import build_request
from tiro.agents.settings import TurnSettings
from tiro.agents.tool_uses import (
    BROKEN_OFF,
    CANCELLED,
    CUT_OFF,
    EMPTY_OUTPUT,
    NOT_STARTED,
    REFUSED_ANSWER,
)
from tiro.agents.turn import STATES, run_turn
from tiro.agents.turn_input import Turn
from tiro.errors import ContextOverflowError, ModelError, ToolError
from tiro.models import model as m
from tiro.models.model import ModelFacts, Price, TextDelta, ThinkingDelta, ToolUseDone
from tiro.session.changes import Clear
from tiro.session.core import Core
from tiro.session.history import edit
from tiro.session.messages import Message, StopReason, Usage, tool_results_of
from tiro.tools.editor import PermissionAnswer, PermissionRequest
from tiro.tools.tool import Tool, ToolRun
from tiro.tools.tool import ToolOutput as Output
from tiro.tools.workspace import Workspace


def ends(reason: Any, usage: Usage | None = None) -> m.Finished:
    return m.Finished(stop_reason=reason, usage=usage)


def use(tool_use_id: str, name: str = "look", raw: str = "{}", **given: Any) -> ToolUseDone:
    return ToolUseDone(id=tool_use_id, name=name, input=given, raw=raw)


def unreadable(tool_use_id: str, raw: str) -> ToolUseDone:
    return ToolUseDone(id=tool_use_id, name="look", input=None, raw=raw)


USE_C1 = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
LOOKED = ("tool", ("c1", "seen", False))

SCRIPTS: dict[str, tuple[list[list[Step]], str, str, list[tuple[str, Any]]]] = {
    "a text answer": (
        [says("Hel", "lo")],
        "end_turn",
        "Hello",
        [("assistant", "Hello")],
    ),
    "an empty answer stores nothing": ([[ends("end_turn")]], "end_turn", "", []),
    "a blank answer stores nothing (B36)": ([says("\n\n", "  ")], "end_turn", "", []),
    "thinking only is stored as such": (
        [[ThinkingDelta("hm"), ThinkingDelta("m", "sig"), ends("end_turn")]],
        "end_turn",
        "",
        [("assistant", [{"type": "thinking", "thinking": "hmm", "signature": "sig"}])],
    ),
    "thinking that is blank but signed goes back as it came (B35)": (
        [[ThinkingDelta("", "sig"), TextDelta("x"), ends("end_turn")]],
        "end_turn",
        "x",
        [
            (
                "assistant",
                [
                    {"type": "thinking", "thinking": "", "signature": "sig"},
                    {"type": "text", "text": "x"},
                ],
            )
        ],
    ),
    "thinking and text keep their order": (
        [[ThinkingDelta("a"), TextDelta("b"), ThinkingDelta("c"), ends("end_turn")]],
        "end_turn",
        "b",
        [
            (
                "assistant",
                [
                    {"type": "thinking", "thinking": "a"},
                    {"type": "text", "text": "b"},
                    {"type": "thinking", "thinking": "c"},
                ],
            )
        ],
    ),
    "a block of no type is kept beside the text": (
        [[TextDelta("a"), m.BlockDone({"x": 1}), TextDelta("b"), ends("end_turn")]],
        "end_turn",
        "a\nb",
        [
            (
                "assistant",
                [{"type": "text", "text": "a"}, {"x": 1}, {"type": "text", "text": "b"}],
            )
        ],
    ),
    "a tool use, its result, and the answer": (
        [[TextDelta("I look."), use("c1"), ends("tool_use")], says("Seen.")],
        "end_turn",
        "Seen.",
        [
            ("assistant", [{"type": "text", "text": "I look."}, USE_C1]),
            LOOKED,
            ("assistant", "Seen."),
        ],
    ),
    "a tool use counts, whatever the stop reason says": (
        [[use("c1"), ends("end_turn")], says("Seen.")],
        "end_turn",
        "Seen.",
        [("assistant", [USE_C1]), LOOKED, ("assistant", "Seen.")],
    ),
    "the output limit": (
        [[TextDelta("Hal"), ends("max_tokens")]],
        "max_tokens",
        "Hal",
        [("assistant", "Hal")],
    ),
    "a refusal": ([[TextDelta("No."), ends("refusal")]], "refusal", "No.", [("assistant", "No.")]),
    "a refusal runs no tool": (
        [[use("c1"), ends("refusal")]],
        "refusal",
        "",
        [("assistant", [USE_C1]), ("tool", ("c1", REFUSED_ANSWER, True))],
    ),
    "the tool_use reason without a tool use": (
        [[TextDelta("Hm"), ends("tool_use")]],
        "end_turn",
        "Hm",
        [("assistant", "Hm")],
    ),
    "an empty answer after a tool ends with no text": (
        [[TextDelta("I look."), use("c1"), ends("tool_use")], [ends("end_turn")]],
        "end_turn",
        "",
        [("assistant", [{"type": "text", "text": "I look."}, USE_C1]), LOOKED],
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_turn_stores_what_the_script_says(name: str) -> None:
    scripts, stop_reason, text, stored = SCRIPTS[name]
    turn = a_turn(*scripts, tools=[a_tool()])
    outcome = finished(run(turn)).outcome
    assert told(turn.session) == [("user", "go"), *stored]
    assert (outcome.stop_reason, outcome.text) == (stop_reason, text)
    assert (outcome.first_seq, outcome.last_seq) == (1, 1 + len(stored))


def test_events_of_a_text_answer_in_order() -> None:
    events = run(a_turn(says("Hel", "lo", usage=Usage(3, 2))))
    assert [type(event) for event in events] == [
        Started,
        Stored,
        Text,
        Stored,
        UsageSoFar,
        Finished,
    ]
    assert events[0] == Started("build", "fake/fake-model", 1)
    assert events[1] == Stored(1, "user")
    assert events[2] == Text("Hello")  # what waits together is joined
    assert events[3] == Stored(2, "assistant")


def test_prompt_with_blocks_is_stored_verbatim() -> None:
    blocks = [{"type": "text", "text": "x"}, {"type": "odd", "z": 1, "a": [None]}]
    turn = a_turn(says("ok"), prompt=blocks)
    run(turn)
    assert turn.session.oldest_first()[0].content == blocks


def test_retry_and_progress_are_told() -> None:
    script: list[Step] = [m.Progress("Loading", 0.5), m.RetryWait(1, 2.0, "busy"), *says("ok")]
    events = run(a_turn(script))
    assert Progress("Loading", 0.5) in events
    assert Retry(1, 2.0, "busy") in events


def test_signature_delta_without_text_tells_nothing() -> None:
    events = run(a_turn([ThinkingDelta("a"), ThinkingDelta("", "s"), *says("ok")]))
    assert [event for event in events if isinstance(event, Thinking)] == [Thinking("a")]


# Tool uses


@pytest.mark.parametrize(
    ("done", "told_to_the_model"),
    [
        (use("c1", "nope"), "There is no tool 'nope'"),
        (unreadable("c1", '{"path": '), 'They were: {"path": '),
        (use("c1", path=5), "`path` must be of type string, not integer"),
        (use("c1", raw="", path="\0"), "NUL"),
    ],
    ids=["unknown tool", "unreadable arguments (B31 vii)", "wrong type", "unusable path"],
)
def test_bad_tool_use_fails_with_a_result_to_act_on(done: Any, told_to_the_model: str) -> None:
    starts: list[str] = []
    tool = a_tool(starts=starts, subject_field="path")
    turn = a_turn([done, ends("tool_use")], says("Sorry"), tools=[tool])
    events = run(turn)
    _, content, is_error = told(turn.session)[2][1]
    assert told_to_the_model in content
    assert is_error
    assert statuses(events, "c1") == ["proposed", "failed"]
    assert not starts
    assert finished(events).outcome.text == "Sorry"


def test_unreadable_arguments_are_stored_as_an_empty_input() -> None:
    turn = a_turn([unreadable("c1", "{"), ends("tool_use")], says("x"), tools=[a_tool()])
    run(turn)
    assert told(turn.session)[1] == ("assistant", [USE_C1])


@pytest.mark.parametrize(
    ("last", "is_run"),
    [
        (unreadable("c2", '{"path": "a'), False),
        (ToolUseDone(id="c2", name="look", input={}, raw=" "), False),
        (ToolUseDone(id="c2", name="look", input={}, raw="{}"), True),
        (use("c2", path="a"), True),
    ],
)
def test_call_cut_off_by_the_output_limit_is_not_run(last: ToolUseDone, is_run: bool) -> None:
    """B32: incomplete arguments never reach a tool, the complete call before them does."""
    starts: list[str] = []
    turn = a_turn(
        [use("c1"), last, ends("max_tokens")], says("Again"), tools=[a_tool(starts=starts)]
    )
    run(turn)
    assert starts == (["c1", "c2"] if is_run else ["c1"])
    if not is_run:
        assert ("tool", ("c2", CUT_OFF, True)) in told(turn.session)


@pytest.mark.parametrize("told_as", ["max_tokens", "end_turn", "tool_use"])
def test_second_answer_cut_off_in_a_row_ends_the_turn(told_as: StopReason) -> None:
    """B32: at most one automatic retry, also where the server does not say that it cut."""
    cut: list[Step] = [unreadable("c1", "{"), ends(told_as)]
    turn = a_turn(cut, cut, cut, tools=[a_tool()])
    outcome = finished(run(turn)).outcome
    assert (outcome.stop_reason, outcome.steps) == ("max_tokens", 2)
    results = [content for role, content in told(turn.session) if role == "tool"]
    assert all("truncated" in text for _, text, _ in results)


def test_arguments_that_are_only_wrong_may_be_corrected_more_than_once() -> None:
    wrong: list[Step] = [unreadable("c1", "path=a"), ends("tool_use")]
    outcome = finished(run(a_turn(wrong, wrong, wrong, says("ok"), tools=[a_tool()]))).outcome
    assert (outcome.stop_reason, outcome.steps) == ("end_turn", 4)


@pytest.mark.parametrize(
    ("deltas", "blocks"),
    [
        ([ThinkingDelta("a", "s"), TextDelta("b")], "thinking text"),
        ([m.BlockDone({"type": "redacted_thinking", "data": "=="}), TextDelta("b")],
         "redacted_thinking text"),
        ([m.BlockDone({"type": "novel", "x": [1]}), TextDelta("b")], "novel text"),
        ([ThinkingDelta("a"), ThinkingDelta("", ""), ThinkingDelta("b", "s")], "thinking thinking"),
    ],
)  # fmt: skip
def test_thinking_is_kept_as_it_came_with_the_model_it_came_from(
    deltas: list[Step], blocks: str
) -> None:
    """B35: only that model may be sent it back; other blocks need no such mark."""
    turn = a_turn([*deltas, ends("end_turn")], says("next"))
    run(turn)
    stored = turn.session.oldest_first()[-1]
    assert [block["type"] for block in stored.content] == blocks.split()  # type: ignore[index]
    assert stored.marks().get("model") == ("fake/fake-model" if "thinking" in blocks else None)
    view = build_request(turn.session, turn.model, turn.agent, "").messages
    kept = [block for block in stored.content if block["type"] != "novel"]  # type: ignore[index]
    assert view[-1].content == kept
    assert view[-1].marks() == stored.marks()
    edit(turn.session, stored.seq or 0, stored.content)
    assert "model" not in turn.session.oldest_first()[-1].marks()


@pytest.mark.parametrize(
    ("tool", "status", "content", "is_error"),
    [
        (a_tool(output=""), "done", EMPTY_OUTPUT, False),
        (a_tool(output="bad", is_error=True), "failed", "bad", True),
        (a_tool(error=ToolError("Try b")), "failed", "Try b", True),
        (a_tool(output="\ud83d x"), "done", "\ufffd x", False),
    ],
    ids=["no output (B36)", "error output", "ToolError", "lone surrogate (B12)"],
)
def test_tool_result(tool: Tool, status: str, content: str, is_error: bool) -> None:
    turn = a_turn([use("c1"), ends("tool_use")], says("x"), tools=[tool])
    events = run(turn)
    assert told(turn.session)[2] == ("tool", ("c1", content, is_error))
    assert statuses(events, "c1") == ["proposed", "running", status]
    assert ToolResult(tool_use_id="c1", is_error=is_error, content=content, seq=3) in events


@pytest.mark.parametrize("error", [RuntimeError("secret /path"), asyncio.CancelledError()])
def test_tool_that_breaks_tells_no_detail(error: BaseException, caplog: Any) -> None:
    turn = a_turn([use("c1"), ends("tool_use")], says("x"), tools=[a_tool(error=error)])
    events = run(turn)
    _, content, is_error = told(turn.session)[2][1]
    assert is_error
    assert "secret" not in content
    assert statuses(events, "c1")[-1] == "failed"


def test_long_output_is_cut_for_the_model_more_for_events_and_kept_whole() -> None:
    """U9.10: the whole stays beside what the model gets, where no request takes it from."""
    output = "é" * 30_000 + "end" * 10_000
    turn = a_turn([use("c1"), ends("tool_use")], says("x"), tools=[a_tool(output=output)])
    events = run(turn)
    _, content, _ = told(turn.session)[2][1]
    assert content.startswith("é" * 16_000)
    assert content.endswith("end" * 10_000)
    assert "10,000 of 60,000 characters are left out" in content
    stored = next(row for row in turn.session.oldest_first() if row.role == "tool")
    assert stored.marks()["output"] == output
    assert isinstance(turn.model, ScriptedModel)
    (sent,) = tool_results_of(turn.model.requests[-1].messages[-1])
    assert sent.content == content
    shown = next(event for event in events if isinstance(event, ToolResult))
    assert shown.truncated
    assert shown.content == "é" * (MAX_SHOWN_BYTES // 2)
    assert shown.end.endswith("endend")


@pytest.mark.parametrize("ahead", range(4))
def test_shown_result_is_cut_at_a_character(ahead: int) -> None:
    """B12: a 4-byte character at every position of both cuts."""
    text = "a" * ahead + "🙂" * 2000 + "b" * ahead + "\n[exit code 1]"
    shown = shown_result("c", text, is_error=False)
    assert text.startswith(shown.content)
    assert text.endswith(shown.end)
    assert MAX_SHOWN_BYTES - 4 < len(shown.content.encode()) <= MAX_SHOWN_BYTES
    assert MAX_END_BYTES - 4 < len(shown.end.encode()) <= MAX_END_BYTES
    assert shown.left_out == len(text) - len(shown.content) - len(shown.end)
    assert shown.truncated


@pytest.mark.parametrize("more", range(6))
def test_both_ends_of_a_shown_result_never_overlap(more: int) -> None:
    text = "a" * MAX_SHOWN_BYTES + "b" * more
    shown = shown_result("c", text, is_error=False)
    assert (shown.content + shown.end, shown.left_out) == (text, 0)
    assert shown.truncated == (more > 0)


def test_reads_run_together_and_results_come_as_they_are_there() -> None:
    slow, starts = asyncio.Event(), list[str]()
    tools = [
        a_tool("slow", waits=slow, starts=starts),
        a_tool("fast", starts=starts),
    ]
    script: list[Step] = [use("c1", "slow"), use("c2", "fast"), ends("tool_use")]
    turn = a_turn(script, says("x"), tools=tools)

    async def watch() -> list[TurnEvent]:
        seen: list[TurnEvent] = []
        async with contextlib.aclosing(run_turn(turn)) as events:
            async for event in events:
                seen.append(event)
                if isinstance(event, ToolResult) and event.tool_use_id == "c2":
                    slow.set()
        return seen

    seen = asyncio.run(watch())
    assert sorted(starts) == ["c1", "c2"]
    assert [role_and_id(row) for row in told(turn.session)[2:4]] == ["c2", "c1"]
    assert finished(seen).outcome.stop_reason == "end_turn"
    request = turn.model.requests[1]  # type: ignore[attr-defined]
    ids = [tool_results_of(row)[0].tool_use_id for row in request.messages[2:4]]
    assert ids == ["c1", "c2"], "the request has them in call order (U3.3)"


def role_and_id(row: tuple[str, Any]) -> str:
    assert row[0] == "tool"
    return str(row[1][0])


def test_what_is_no_read_runs_alone_and_in_order() -> None:
    running, most = 0, 0
    order: list[str] = []

    async def run_it(_: dict[str, Any], run: ToolRun) -> Output:
        nonlocal running, most
        running += 1
        most = max(most, running)
        order.append(run.tool_use_id)
        await asyncio.sleep(0)
        running -= 1
        return Output("done")

    tool = a_tool("act", effect="write", run=run_it)
    uses_: list[Step] = [use(f"c{i}", "act") for i in range(5)]
    run(a_turn([*uses_, ends("tool_use")], says("x"), tools=[tool]))
    assert (most, order) == (1, ["c0", "c1", "c2", "c3", "c4"])


def test_output_of_a_running_tool_is_told() -> None:
    async def run_it(_: dict[str, Any], run: ToolRun) -> Output:
        await asyncio.to_thread(run.on_output, "half ")
        return Output("half way")

    turn = a_turn([use("c1"), ends("tool_use")], says("x"), tools=[a_tool(run=run_it)])
    events = run(turn)
    assert ToolOutput("c1", "half ") in events


def test_ids_that_are_missing_or_taken_are_replaced() -> None:
    """B31: some servers give no id, or the same id to every call."""
    turn = a_turn(
        [use(""), use("c"), use("c"), ends("tool_use")],
        [use("c"), ends("tool_use")],
        says("x"),
        tools=[a_tool()],
    )
    run(turn)
    ids = [row[1][0] for row in told(turn.session) if row[0] == "tool"]
    assert len(set(ids)) == 4


@pytest.mark.parametrize("name", ["look", "no_such_tool"])
def test_a_model_that_repeats_what_does_not_work_is_stopped(name: str) -> None:
    """B32: the same call is not retried without end; other calls between begin the count anew."""
    tool = a_tool(error=ToolError("No"))
    good = a_tool("good")
    steps = [uses((f"c{n}", name, {"path": "x"})) for n in range(20)]
    steps[4] = uses(("other", name, {"path": "y"}))
    steps[6] = uses(("c6", name, {"path": "x"}), ("g6", "good", {}))
    turn = a_turn(*steps, tools=[tool, good])
    events = run(turn)
    last = finished(events)
    assert last.outcome.stop_reason == "error"
    assert "5 times in a row" in str(last.error)
    assert last.outcome.steps == 7 + 5


def test_a_failing_call_beside_one_that_works_is_no_loop() -> None:
    steps = [uses((f"c{n}", "no", {}), (f"g{n}", "good", {})) for n in range(8)]
    events = run(a_turn(*steps, says("done"), tools=[a_tool("good")]))
    assert finished(events).outcome.text == "done"


def test_long_turn_ends_at_max_steps_without_another_request() -> None:
    scripts: list[list[Step]] = [[use("c"), ends("tool_use")] for _ in range(9)]
    turn = a_turn(*scripts, tools=[a_tool()], settings=TurnSettings(max_steps=3))
    outcome = finished(run(turn)).outcome
    assert (outcome.stop_reason, outcome.steps) == ("max_steps", 3)
    assert len(turn.model.requests) == 3  # type: ignore[attr-defined]


@pytest.mark.parametrize(("steps", "expected"), [(1, 1), (9, 3), (None, 3)])
def test_steps_of_the_agent_only_lower_the_limit(steps: int | None, expected: int) -> None:
    scripts: list[list[Step]] = [[use("c"), ends("tool_use")] for _ in range(9)]
    agent = AgentInfo(name="a", steps=steps)
    turn = a_turn(*scripts, tools=[a_tool()], agent=agent, settings=TurnSettings(max_steps=3))
    assert finished(run(turn)).outcome.steps == expected


# Permissions


def test_denied_tool_use_is_rejected_and_names_the_rule() -> None:
    rules = Rules(agent={"read": [("*.env", "deny"), ("*", "allow")]}, agent_name="mine")
    starts: list[str] = []
    tool = a_tool(starts=starts, subject_field="path")
    turn = a_turn(
        [use("c1", path="a/.env"), ends("tool_use")], says("x"), tools=[tool], rules=rules
    )
    events = run(turn)
    assert statuses(events, "c1") == ["proposed", "rejected"]
    said = told(turn.session)[2][1][1]
    assert "'read: *.env deny' (agent mine)" in said
    assert "the user can select another agent" in said
    assert not starts


def test_rule_holds_for_where_a_path_leads(tmp_path: Path) -> None:
    """M5.7: a link that has another name is no way round the ban."""
    (tmp_path / ".env").write_text("KEY=1")
    (tmp_path / "readme").symlink_to(".env")
    turn = a_turn(
        [use("c1", path="readme"), ends("tool_use")],
        says("x"),
        tools=[a_tool(subject_field="path")],
        rules=Rules(default={"read": [("*.env", "deny"), ("*", "allow")]}),
        workspace=Workspace(RecordingEditor(tmp_path)),
    )
    assert statuses(run(turn), "c1") == ["proposed", "rejected"]


def test_tool_that_is_always_denied_is_not_offered() -> None:
    """M5.10."""
    turn = a_turn(says("x"), tools=[a_tool()], rules=Rules(agent={"read": "deny"}))
    run(turn)
    assert turn.model.requests[0].tools == []  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("answer", "is_run", "content"),
    [
        (PermissionAnswer("once"), True, "seen"),
        (PermissionAnswer("always"), True, "seen"),
        (PermissionAnswer("reject"), False, "nothing was run or changed."),
        (PermissionAnswer("reject", "not now"), False, "They say: not now"),
    ],
)
def test_b04_question_to_the_user(answer: PermissionAnswer, is_run: bool, content: str) -> None:
    """B04: a rejection is a result with the user's words, and the turn goes on."""
    asked: list[PermissionRequest] = []

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request)
        return answer

    turn = a_turn(
        [use("c1", path="a"), ends("tool_use")],
        [use("c2", path="a"), ends("tool_use")],
        says("x"),
        tools=[a_tool(subject_field="path")],
        rules=Rules(config={"read": "ask"}),
        ask=ask,
    )
    events = run(turn)
    assert content in told(turn.session)[2][1][1]
    assert statuses(events, "c1")[1:] == (["running", "done"] if is_run else ["rejected"])
    assert len(asked) == (1 if answer.decision == "always" else 2)
    assert (asked[0].name, asked[0].agent, asked[0].rule) == ("look", "build", "read: ask")


# Limits, usage, errors


def test_hook_runs_before_each_request_and_is_told() -> None:
    resized = Resized(decision={"type": "lite"}, evicted=1, tokens_before=9, tokens_after=5)
    calls = 0

    async def before_step(*_: object) -> Resized | None:
        nonlocal calls
        calls += 1
        return resized if calls == 2 else None

    turn = a_turn(
        [use("c"), ends("tool_use")], says("x"), tools=[a_tool()], before_step=before_step
    )
    events = run(turn)
    assert calls == 2
    assert events.count(resized) == 1


def test_usage_is_summed_over_steps_and_into_the_session() -> None:
    session = Core()
    facts = ModelFacts(1000, None, Price(input=1.0, output=2.0))
    model = ScriptedModel(
        uses(("c", "look", {}), usage=Usage(10, 5)), says("x", usage=Usage(20, 7)), facts=facts
    )
    events = run(a_turn(session=session, model=model, tools=[a_tool()]))
    usage = finished(events).outcome.usage
    assert (usage.input_tokens, usage.output_tokens) == (30, 12)
    assert usage.cost_usd == pytest.approx(54e-6)
    assert session.usage == usage
    sizes = [event.context_size for event in events if isinstance(event, UsageSoFar)]
    assert len(sizes) == 2
    assert sizes[0].tokens < sizes[1].tokens
    assert sizes[0].context_window == 1000


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ModelError("The provider failed", status=500), ModelError),
        (ContextOverflowError("Too long", tokens=9), ContextOverflowError),
        (ValueError("a bug"), ModelError),
    ],
)
def test_failure_keeps_what_had_arrived(error: Exception, expected: type, caplog: Any) -> None:
    """B30, B33: partial text is kept and marked, the error told, no tool of it run."""
    starts: list[str] = []
    turn = a_turn(
        [TextDelta("Hal"), use("c1"), TextDelta("f"), error], tools=[a_tool(starts=starts)]
    )
    events = run(turn)
    last = finished(events)
    assert isinstance(last.error, expected)
    assert (last.outcome.stop_reason, last.outcome.text) == ("error", "Hal\nf")
    message = turn.session.oldest_first()[1]
    assert message.metadata == {"tiro": {"interrupted": True}}
    assert told(turn.session)[2] == ("tool", ("c1", BROKEN_OFF, True))
    assert statuses(events, "c1") == ["proposed", "cancelled"]
    assert not starts
    assert "a bug" not in str(last.error)


def test_failure_before_anything_arrived_stores_only_the_prompt() -> None:
    turn = a_turn([ModelError("No")])
    assert finished(run(turn)).outcome.text == ""
    assert told(turn.session) == [("user", "go")]


def test_stream_without_an_end_is_a_failure() -> None:
    """B30: a connection that closes early is no finished answer."""
    turn = a_turn([TextDelta("Hal")])
    last = finished(run(turn))
    assert isinstance(last.error, ModelError)
    assert turn.session.oldest_first()[1].marks() == {"interrupted": True}


def test_nothing_after_the_end_of_an_answer_counts() -> None:
    script: list[Step] = [*says("ok"), TextDelta("late"), ModelError("late")]
    turn = a_turn(script)
    assert finished(run(turn)).outcome.text == "ok"


def test_failing_hook_ends_the_turn_with_its_error() -> None:
    async def before_step(*_: object) -> Resized | None:
        raise ModelError("No room")

    turn = a_turn(says("x"), before_step=before_step)
    last = finished(run(turn))
    assert str(last.error) == "No room"
    assert last.outcome.steps == 0


def test_failed_turn_leaves_a_usable_session() -> None:
    session = Core()
    run(a_turn([TextDelta("a"), use("c1"), ModelError("x")], session=session, tools=[a_tool()]))
    run(a_turn(says("b"), session=session, prompt="again", tools=[a_tool()]))
    assert told(session)[-1] == ("assistant", "b")


# The request


def test_request_holds_view_prompt_tools_and_agent_settings() -> None:
    session = Core()
    session.append(Message("user", "before"))
    session.append(Message("system", "Be kind."))
    session.memo = {"fact": 1, "last_resize": {"type": "lite"}}
    session.summary = "Earlier."
    agent = AgentInfo(name="a", temperature=0.5, top_p=0.9)
    turn = a_turn(
        says("x"),
        session=session,
        agent=agent,
        tools=[a_tool()],
        settings=TurnSettings(max_output_tokens=77),
    )
    run(turn)
    request = turn.model.requests[0]  # type: ignore[attr-defined]
    assert request.model == "fake-model"
    assert [row.role for row in request.messages] == ["user", "user"]
    assert request.system.startswith("You are a test.\n\nBe kind.\n\n## Session Memo\n\n")
    assert request.system.endswith("\n\nEarlier.")
    assert "last_resize" not in request.system
    assert [tool.name for tool in request.tools] == ["look"]
    assert (request.temperature, request.top_p, request.max_output_tokens) == (0.5, 0.9, 77)


def test_many_deltas_are_joined_and_none_is_lost() -> None:
    pieces = [f"{i} " for i in range(20_000)]
    turn = a_turn(says(*pieces))
    events = run(turn)
    assert finished(events).outcome.text == "".join(pieces)
    assert len(events) < 2000


# The tables


def test_every_state_can_stop() -> None:
    for state in {state for state, _ in STATES} - {"finished"}:
        assert STATES[state, "stop"] == "finished"


# Cancel

FULL: list[list[Step]] = [
    [m.RetryWait(1, 0.0, "busy"), ThinkingDelta("hm"), TextDelta("I "), TextDelta("look"),
     use("c1"), use("c2", "slow"), use("c3", "nope"), ends("tool_use", Usage(1, 1))],
    [TextDelta("More"), use("c4", "act"), use("c5", "act"), ends("tool_use")],
    [TextDelta("Do"), TextDelta("ne"), ends("end_turn")],
]  # fmt: skip


class TickingModel(ScriptedModel):
    """Lets the loop turn before each delta, so that a cancel can come anywhere."""

    async def stream(self, request: m.ModelRequest) -> Any:
        async with contextlib.aclosing(super().stream(request)) as deltas:  # type: ignore[type-var]
            async for delta in deltas:
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                yield delta


async def _ticking_hook(*_: object) -> None:
    await asyncio.sleep(0)


def a_full_turn(session: Core) -> Turn:
    tools = [
        a_tool(ticks=1),
        a_tool("slow", ticks=6),
        a_tool("act", ticks=2, effect="write", permission_key="write"),
    ]
    return a_turn(
        session=session, model=TickingModel(*FULL), tools=tools, before_step=_ticking_hook
    )


def check_after(turn: Turn) -> None:
    """A turn that was stopped anywhere leaves a session that the next turn can use."""
    session = turn.session
    assert_sound(session)
    rows = told(session)
    assert rows[0] == ("user", "go")
    partial = [row for row in session.oldest_first() if row.marks().get("interrupted")]
    assert len(partial) <= 1
    before = len(rows)
    again = a_turn(says("fine"), session=session, prompt="again")
    run(again)
    assert told(session)[before:] == [("user", "again"), ("assistant", "fine")]


async def wait_for_ticks(ticks: int) -> None:
    for _ in range(ticks):
        await asyncio.sleep(0)


@pytest.mark.parametrize("ticks", range(0, 140, 2))
def test_b03_cancel_at_every_moment_leaves_one_result_for_each_use(ticks: int) -> None:
    """B43, B03: before the first byte, in the stream, in a tool, in a wait, between steps."""
    turn = a_full_turn(Core())

    async def scenario() -> list[TurnEvent]:
        async def cancel() -> None:
            await wait_for_ticks(ticks)
            turn.cancel.set()

        task = asyncio.create_task(cancel())
        events = await events_of(turn)
        task.cancel()
        return events

    events = asyncio.run(scenario())
    outcome = finished(events).outcome
    assert outcome.stop_reason in ("cancelled", "end_turn")
    if outcome.stop_reason == "end_turn":
        assert told(turn.session)[-1] == ("assistant", "Done")
        assert not turn.session.oldest_first()[-1].marks()
    check_after(turn)
    last = {e.tool_use.id: e.status for e in events if isinstance(e, ToolUse)}
    assert not {"proposed", "running"} & set(last.values())


@pytest.mark.parametrize("ticks", range(1, 140, 3))
def test_cancelled_task_leaves_the_same_clean_session(ticks: int) -> None:
    """`$/cancelRequest`, shutdown: CancelledError anywhere instead of the cancel event."""
    turn = a_full_turn(Core())

    async def scenario() -> None:
        task = asyncio.create_task(events_of(turn))
        await wait_for_ticks(ticks)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scenario())
    check_after(turn)


@pytest.mark.parametrize("stop_after", range(1, 30))
def test_reader_that_leaves_early_ends_the_turn(stop_after: int) -> None:
    turn = a_full_turn(Core())
    events = asyncio.run(events_of(turn, stop_after=stop_after))
    check_after(turn)
    assert len(events) == stop_after


def test_reader_that_leaves_early_keeps_real_results() -> None:
    """B03: c2 had ended in the same moment as c1, whose result made the reader leave."""
    turn = a_turn([use("c1"), use("c2"), ends("tool_use")], tools=[a_tool()])

    async def scenario() -> None:
        async with contextlib.aclosing(run_turn(turn)) as events:
            async for event in events:
                if isinstance(event, ToolResult):
                    break

    asyncio.run(scenario())
    assert told(turn.session)[2:] == [
        ("tool", ("c1", "seen", False)),
        ("tool", ("c2", "seen", False)),
    ]


def test_fault_of_our_own_stores_the_answer_once_and_ends_the_turn(caplog: Any) -> None:
    class BadPrice:
        def cost_usd(self, _: Usage) -> float:
            raise ZeroDivisionError

    facts = ModelFacts(None, None, BadPrice())  # type: ignore[arg-type]
    model = ScriptedModel(says("ok", usage=Usage(1, 1)), facts=facts)
    turn = a_turn(model=model)
    assert isinstance(finished(asyncio.run(events_of(turn))).error, ModelError)
    assert told(turn.session) == [("user", "go"), ("assistant", "ok")]


def test_b03_cancel_keeps_real_results_and_drops_late_ones() -> None:
    """B03: c1 done, c2 running and stubborn, c3 behind it and not started."""
    release, started = asyncio.Event(), asyncio.Event()
    starts, over = list[str](), list[str]()

    async def stubborn(_: dict[str, Any], run: ToolRun) -> Output:
        starts.append(run.tool_use_id)
        started.set()
        with contextlib.suppress(asyncio.CancelledError):
            await release.wait()
        assert run.cancelled.is_set(), "work in threads looks at this"
        await wait_for_ticks(5)
        over.append(run.tool_use_id)
        return Output("late")

    act = a_tool("act", run=stubborn, effect="execute")
    script: list[Step] = [use("c1"), use("c2", "act"), use("c3", "act"), ends("tool_use")]
    turn = a_turn(script, tools=[a_tool(), act])

    async def scenario() -> list[TurnEvent]:
        async def cancel() -> None:
            await started.wait()
            turn.cancel.set()

        task = asyncio.create_task(cancel())
        events = await events_of(turn)
        await task
        return events

    events = asyncio.run(scenario())
    assert told(turn.session)[2:] == [
        ("tool", ("c1", "seen", False)),
        ("tool", ("c2", CANCELLED, True)),
        ("tool", ("c3", NOT_STARTED, True)),
    ]
    assert (starts, over) == (["c2"], ["c2"]), "the late end happened, and changed nothing"
    assert statuses(events, "c3") == ["proposed", "cancelled"]


def test_cancel_does_not_wait_for_a_model_that_does_not_stop() -> None:
    """B43: at most a second, whatever an adapter does."""

    class Stubborn(ScriptedModel):
        async def stream(self, request: m.ModelRequest) -> Any:
            yield TextDelta("Ha")
            while not released.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await released.wait()
            yield TextDelta("late")

    released = asyncio.Event()
    turn = a_turn(model=Stubborn())

    async def scenario() -> list[TurnEvent]:
        seen: list[TurnEvent] = []
        async with contextlib.aclosing(run_turn(turn)) as events:
            async for event in events:
                seen.append(event)
                if isinstance(event, Text):
                    turn.cancel.set()
        released.set()
        for _ in range(10):
            await asyncio.sleep(0)
        return seen

    assert finished(asyncio.run(scenario())).outcome.text == "Ha"
    assert told(turn.session) == [("user", "go"), ("assistant", "Ha")]


def test_cancel_in_mid_stream_keeps_the_text_marked() -> None:
    turn = a_turn([TextDelta("Ha"), TextDelta("lf"), asyncio.Event()])

    async def scenario() -> list[TurnEvent]:
        seen: list[TurnEvent] = []
        async with contextlib.aclosing(run_turn(turn)) as events:
            async for event in events:
                seen.append(event)
                if isinstance(event, Text):
                    turn.cancel.set()
        return seen

    outcome = finished(asyncio.run(scenario())).outcome
    assert (outcome.stop_reason, outcome.text) == ("cancelled", "Half")
    message = turn.session.oldest_first()[-1]
    assert (message.content, message.marks()) == ("Half", {"interrupted": True})
    assert turn.model.closed_streams == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("script", [[asyncio.Event()], [TextDelta("\n\n"), asyncio.Event()]])
def test_cancel_before_any_text_stores_only_the_prompt(script: list[Step]) -> None:
    """B36: only blank text had arrived."""
    turn = a_turn(script)

    async def scenario() -> None:
        asyncio.get_running_loop().call_later(0.01, turn.cancel.set)
        await events_of(turn)

    asyncio.run(scenario())
    assert told(turn.session) == [("user", "go")]


def test_cancel_while_the_user_is_asked() -> None:
    """B43 iv."""

    async def ask(_: PermissionRequest) -> PermissionAnswer:
        turn.cancel.set()
        await asyncio.Event().wait()
        raise AssertionError

    turn = a_turn(
        [use("c1"), ends("tool_use")],
        tools=[a_tool()],
        rules=Rules(agent={"read": "ask"}),
        ask=ask,
    )
    assert finished(run(turn)).outcome.stop_reason == "cancelled"
    assert told(turn.session)[2] == ("tool", ("c1", NOT_STARTED, True))


def test_cancel_in_the_hook() -> None:
    async def before_step(*_: object) -> None:
        turn.cancel.set()
        await asyncio.Event().wait()

    turn = a_turn(says("x"), before_step=before_step)
    outcome = finished(run(turn)).outcome
    assert (outcome.stop_reason, outcome.steps) == ("cancelled", 0)


def test_cancel_that_was_there_before_the_start() -> None:
    turn = a_turn(says("x"))

    async def scenario() -> list[TurnEvent]:
        turn.cancel.set()
        return await events_of(turn)

    assert finished(asyncio.run(scenario())).outcome.stop_reason == "cancelled"


@pytest.mark.parametrize("ticks", range(0, 120, 6))
def test_cleared_session_takes_nothing_of_the_turn(ticks: int) -> None:
    """B62: clear in the middle, wherever it falls."""
    session = Core()
    turn = a_full_turn(session)

    async def scenario() -> list[TurnEvent]:
        async def clear() -> None:
            await wait_for_ticks(ticks)
            if session.newest_first:
                session.commit(Clear(keep_memo=False, at=session.stamp()))

        task = asyncio.create_task(clear())
        events = await events_of(turn)
        await task
        return events

    events = asyncio.run(scenario())
    if finished(events).outcome.stop_reason == "cancelled":
        assert told(session) == []


def test_turn_of_an_agent_is_named() -> None:
    events = run(a_turn(says("x"), agent=AgentInfo(name="plan")))
    assert events[0] == Started("plan", "fake/fake-model", 1)
    assert AGENT.name == "build"
