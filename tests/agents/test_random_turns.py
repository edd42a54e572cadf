"""Random scripts, stopped at random moments: the session always stays sound (U3, B03)."""

import asyncio
import contextlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.agents.turns import (
    a_tool,
    a_turn,
    assert_sound,
    assert_well_told,
    events_of,
    finished,
    run,
    told,
)
from tests.fakes import ScriptedModel, says
from tiro.agents.events import TurnEvent
from tiro.agents.permissions import Rules
from tiro.agents.settings import TurnSettings
from tiro.agents.turn import run_turn
from tiro.agents.turn_input import Turn
from tiro.errors import ModelError, ToolError
from tiro.models import model as m
from tiro.session.core import Core
from tiro.session.messages import Usage

TOOLS = [
    a_tool(),
    a_tool("slow", ticks=3),
    a_tool("write", ticks=1, effect="write", permission_key="write"),
    a_tool("bad", error=ToolError("no")),
    a_tool("broken", error=RuntimeError("x")),
    a_tool("empty", output=""),
    a_tool("odd", output="\ud83d\0", ticks=2),
]
RULES = Rules(agent={"write": {"*": "ask"}})

names = st.sampled_from([*(tool.name for tool in TOOLS), "unknown"])
tool_uses = st.builds(
    m.ToolUseDone,
    id=st.sampled_from(["", "a", "b", "c"]),
    name=names,
    input=st.sampled_from([None, {}, {"path": "x"}, {"path": 1}]),
    raw=st.sampled_from(["", "{", "{}"]),
)
texts = st.builds(m.TextDelta, st.sampled_from(["", " ", "\n", "a", "é🙂", "\ud83d"]))
thoughts = st.builds(
    m.ThinkingDelta, st.sampled_from(["", "t"]), st.sampled_from([None, None, "s"])
)
waits = st.just(m.RetryWait(1, 0.0, "busy"))
ends = st.one_of(
    st.builds(
        m.Finished,
        stop_reason=st.sampled_from(["end_turn", "tool_use", "max_tokens", "refusal", "error"]),
        usage=st.sampled_from([None, Usage(1, 2)]),
    ),
    st.builds(ModelError, st.just("failed")),
    st.none(),
)


@st.composite
def scripts(draw: Any) -> list[Any]:
    deltas = draw(st.lists(st.one_of(texts, thoughts, tool_uses, tool_uses, waits), max_size=6))
    end = draw(ends)
    return [*deltas, *([] if end is None else [end])]


class TickingModel(ScriptedModel):
    async def stream(self, request: m.ModelRequest) -> Any:
        async with contextlib.aclosing(super().stream(request)) as deltas:  # type: ignore[type-var]
            async for delta in deltas:
                await asyncio.sleep(0)
                yield delta


def a_random_turn(session: Core, given: list[list[Any]]) -> Turn:
    return a_turn(
        session=session,
        model=TickingModel(*given),
        tools=TOOLS,
        rules=RULES,
        settings=TurnSettings(max_steps=3),
    )


def check_usable(session: Core) -> None:
    assert_sound(session)
    run(a_turn(says("fine"), session=session, prompt="again"))
    assert told(session)[-1] == ("assistant", "fine")


@given(st.lists(scripts(), max_size=4))
def test_any_script_ends_with_one_result_for_each_use(given: list[list[Any]]) -> None:
    session = Core()
    turn = a_random_turn(session, given)
    events = asyncio.run(events_of(turn))
    assert_well_told(turn, events)
    assert finished(events).outcome.steps <= 3
    check_usable(session)


@given(st.lists(scripts(), max_size=4), st.integers(0, 60), st.sampled_from(["event", "task"]))
def test_any_script_can_be_stopped_anywhere(given: list[list[Any]], ticks: int, how: str) -> None:
    session = Core()
    turn = a_random_turn(session, given)

    async def scenario() -> None:
        task = asyncio.create_task(events_of(turn))
        for _ in range(ticks):
            await asyncio.sleep(0)
        if how == "event":
            turn.cancel.set()
        else:
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scenario())
    check_usable(session)


@given(st.lists(scripts(), max_size=3), st.integers(1, 20))
def test_any_script_can_be_left_by_its_reader(given: list[list[Any]], count: int) -> None:
    session = Core()
    turn = a_random_turn(session, given)

    async def scenario() -> list[TurnEvent]:
        seen: list[TurnEvent] = []
        async with contextlib.aclosing(run_turn(turn)) as events:
            async for event in events:
                seen.append(event)
                if len(seen) == count:
                    break
        return seen

    asyncio.run(scenario())
    check_usable(session)
