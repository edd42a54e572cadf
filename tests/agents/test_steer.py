"""What the user says while a turn runs: part of the next step, never lost, never in a tool pair."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agents.test_random_turns import a_random_turn, check_usable, scripts
from tests.agents.turns import a_tool, a_turn, assert_sound, events_of, finished, run, told
from tests.fakes import ScriptedModel, says, uses
from tiro.agents.events import Stored, Text, ToolResult, TurnEvent
from tiro.agents.settings import TurnSettings
from tiro.agents.turn import run_turn
from tiro.agents.turn_input import Turn
from tiro.errors import ModelError
from tiro.models import model as m
from tiro.session.core import Core
from tiro.session.queued import queue, queued


def steered(
    turn: Turn, when: Callable[[TurnEvent], bool], *said: str, cancel: bool = False
) -> list[TurnEvent]:
    """Run a turn to its end; say this as soon as such an event has come."""

    async def scenario() -> list[TurnEvent]:
        seen: list[TurnEvent] = []
        waiting = list(said)
        async for event in run_turn(turn):
            seen.append(event)
            if waiting and when(event):
                while waiting:
                    queue(turn.session, waiting.pop(0))
                if cancel:
                    turn.cancel.set()
        return seen

    events = asyncio.run(scenario())
    assert queued(turn.session) == []
    assert_sound(turn.session)
    return events


def is_text(event: TurnEvent) -> bool:
    return isinstance(event, Text)


def is_result(event: TurnEvent) -> bool:
    return isinstance(event, ToolResult)


def sent(turn: Turn, number: int) -> list[tuple[str, Any]]:
    """Role and text of a request's messages; a result is its tool use's id."""
    assert isinstance(turn.model, ScriptedModel)
    rows = []
    for message in turn.model.requests[number].messages:
        block = message.content[0] if isinstance(message.content, list) else message.content
        assert isinstance(block, dict)
        rows.append((message.role, block.get("text") or block.get("tool_use_id") or block["id"]))
    return rows


def test_said_while_the_first_step_uses_tools_it_comes_behind_the_results() -> None:
    turn = a_turn(
        uses(("a", "look", {}), ("b", "look", {})),
        says("done"),
        tools=[a_tool()],
    )
    events = steered(turn, is_result, "use tabs", "and no semicolons")
    assert told(turn.session) == [
        ("user", "go"),
        ("assistant", turn.session.oldest_first()[1].content),
        ("tool", ("a", "seen", False)),
        ("tool", ("b", "seen", False)),
        ("user", "use tabs"),
        ("user", "and no semicolons"),
        ("assistant", "done"),
    ]
    assert sent(turn, 1)[2:] == [
        ("tool", "a"),
        ("tool", "b"),
        ("user", "use tabs"),
        ("user", "and no semicolons"),
    ]
    stored = [event.role for event in events if isinstance(event, Stored)]
    assert stored == ["user", "assistant", "tool", "tool", "user", "user", "assistant"]
    assert finished(events).outcome.last_seq == 7


def test_said_while_the_last_answer_streams_the_turn_goes_on_for_it() -> None:
    turn = a_turn(says("the an", "swer"), says("in German: ja"))
    events = steered(turn, is_text, "in German, please")
    outcome = finished(events).outcome
    assert (outcome.stop_reason, outcome.steps, outcome.text) == ("end_turn", 2, "in German: ja")
    assert told(turn.session) == [
        ("user", "go"),
        ("assistant", "the answer"),
        ("user", "in German, please"),
        ("assistant", "in German: ja"),
    ]


def test_an_empty_answer_goes_on_too() -> None:
    turn = a_turn([m.TextDelta(" "), m.Finished("end_turn")], says("yes"))
    assert finished(steered(turn, is_text, "well?")).outcome.text == "yes"
    assert told(turn.session) == [("user", "go"), ("user", "well?"), ("assistant", "yes")]


def test_at_max_steps_it_is_stored_and_no_further_request_is_made() -> None:
    settings = TurnSettings(max_steps=1)
    turn = a_turn(says("one"), says("two"), settings=settings)
    events = steered(turn, is_text, "more")
    assert finished(events).outcome.stop_reason == "max_steps"
    assert finished(events).outcome.last_seq == 3
    assert told(turn.session) == [("user", "go"), ("assistant", "one"), ("user", "more")]
    turn = a_turn(uses(("a", "look", {})), says("two"), tools=[a_tool()], settings=settings)
    steered(turn, is_result, "more")
    assert [role for role, _ in told(turn.session)] == ["user", "assistant", "tool", "user"]


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (m.Finished("refusal"), "refusal"),
        (m.Finished("error"), "error"),
        (ModelError("failed"), "error"),
    ],
)
def test_where_the_turn_cannot_go_on_it_is_stored_last(end: Any, reason: str) -> None:
    turn = a_turn([m.TextDelta("half"), end], says("never"))
    events = steered(turn, is_text, "and then?")
    assert finished(events).outcome.stop_reason == reason
    assert told(turn.session)[-1] == ("user", "and then?")
    assert isinstance(turn.model, ScriptedModel)
    assert len(turn.model.requests) == 1
    again = a_turn(says("here"), session=turn.session, prompt="again")
    run(again)
    assert sent(again, 0)[-2:] == [("user", "and then?"), ("user", "again")]


def test_a_cancel_after_it_leaves_it_in_the_session() -> None:
    """B43: every use has its result, then comes what the user said."""
    never = asyncio.Event()
    turn = a_turn([*says("I loo")[:1], never])
    events = steered(turn, is_text, "stop that", cancel=True)
    assert finished(events).outcome.stop_reason == "cancelled"
    assert told(turn.session) == [("user", "go"), ("assistant", "I loo"), ("user", "stop that")]
    turn = a_turn(uses(("a", "look", {})), tools=[a_tool(), a_tool("slow", waits=never)])
    steered(turn, is_result, "stop", cancel=True)
    assert [role for role, _ in told(turn.session)] == ["user", "assistant", "tool", "user"]


def test_an_ended_turn_says_so_before_its_last_event() -> None:
    """Else a text could be taken that nobody stores any more."""
    turn = a_turn(says("x"))
    events = asyncio.run(events_of(turn, stop_after=2))
    assert turn.ended.is_set()
    assert len(events) == 2


@given(st.lists(scripts(), max_size=4), st.lists(st.integers(0, 60), min_size=1, max_size=3))
def test_whatever_happens_nothing_that_was_said_is_lost(
    given: list[list[Any]], moments: list[int]
) -> None:
    """U4, B03: at any moment of any script, also where the turn is cancelled."""
    session = Core()
    turn = a_random_turn(session, given)
    said: list[str] = []

    async def scenario() -> None:
        task = asyncio.create_task(events_of(turn))
        for tick in range(max(moments) + 1):
            await asyncio.sleep(0)
            for number, moment in enumerate(moments):
                if moment == tick and not turn.ended.is_set():
                    said.append(f"steer {number}")
                    queue(session, said[-1])
        if len(moments) == 2:
            turn.cancel.set()
        await asyncio.gather(task)

    asyncio.run(scenario())
    kept = [m.content for m in session.oldest_first() if m.role == "user"]
    assert kept[:1] == ["go"]
    assert kept[1:] == said
    check_usable(session)
