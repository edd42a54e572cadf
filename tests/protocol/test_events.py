"""Turn events, protocol section 4: first delta at once, then joined; nothing lost, nothing late."""

import json
import random
from collections.abc import Callable
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.protocol.fakes import Outlet
from tiro.agents import events
from tiro.errors import ModelError
from tiro.protocol import types
from tiro.protocol.events import JOIN_SECONDS, MAX_WAITING_OUTPUT_CHARS, TurnEvents
from tiro.protocol.frames import MAX_OWN_BYTES, encode_body
from tiro.protocol.wire import MAX_RESULT_BYTES, camel, cut_text, displayed, to_wire_event
from tiro.session.messages import Usage
from tiro.session.meter import Meter


class Clock:
    """As much of an event loop as joining needs, with a time that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], None]) -> Any:
        timer = (when, callback)
        self.timers.append(timer)
        clock = self

        class Handle:
            def cancel(self) -> None:
                if timer in clock.timers:
                    clock.timers.remove(timer)

        return Handle()

    def advance(self, seconds: float) -> None:
        self.now += seconds
        for timer in sorted(t for t in self.timers if t[0] <= self.now):
            if timer in self.timers:
                self.timers.remove(timer)
                timer[1]()


class Turn:
    """A turn's events, and what an editor got of them."""

    def __init__(self) -> None:
        self.clock, self.outlet = Clock(), Outlet()
        self.got: list[dict[str, Any]] = []
        self.sizes: list[int] = []
        loop: Any = self.clock
        self.events = TurnEvents(
            "s", "t", send=self._send, when_idle=self.outlet.when_idle, loop=loop
        )

    def _send(self, event: types.Event) -> None:
        body = encode_body(event)
        self.sizes.append(len(body))
        self.got.append(json.loads(body))

    def text(self) -> str:
        return "".join(event["delta"] for event in self.got if event["type"] == "text")

    def kinds(self) -> list[str]:
        return [event["type"] for event in self.got]


STARTED = events.Started(agent="build", model="m", seq=1)
STORED = events.Stored(seq=1, role="user")


def finished(error: Any = None) -> events.Finished:
    reason = "error" if error else "end_turn"
    outcome = events.TurnOutcome(
        stop_reason=reason,  # type: ignore[arg-type]
        text="", first_seq=1, last_seq=1, steps=1, usage=Usage(),
    )  # fmt: skip
    return events.Finished(outcome, error)


def test_the_first_delta_goes_out_at_once_and_later_ones_are_joined() -> None:
    turn = Turn()
    turn.events.add(STARTED)
    for letter in "abc":
        turn.events.add(events.Text(letter))
    assert turn.text() == "a"
    turn.clock.advance(JOIN_SECONDS * 0.6)
    turn.events.add(events.Text("d"))
    assert turn.text() == "a"
    turn.clock.advance(JOIN_SECONDS * 0.6)
    assert [event.get("delta") for event in turn.got] == [None, "a", "bcd"]
    turn.clock.advance(1)
    turn.events.add(events.Text("e"))
    assert turn.text() == "abcde", "after a pause the next one goes out at once again"


def test_numbers_count_what_is_sent_without_gaps() -> None:
    turn = Turn()
    turn.events.add(STARTED)
    for n in range(50):
        turn.events.add(events.Text(str(n)))
        turn.clock.advance(0.01)
    turn.events.add(finished())
    assert [event["n"] for event in turn.got] == list(range(1, len(turn.got) + 1))
    assert {(event["sessionId"], event["turnId"]) for event in turn.got} == {("s", "t")}


def test_an_editor_is_never_buried() -> None:
    """B44: 20,000 deltas of 2 characters in 2 s."""
    turn = Turn()
    for n in range(20_000):
        turn.events.add(events.Text(f"{n % 100:02}"))
        turn.clock.advance(0.0001)
    turn.events.add(finished())
    assert len(turn.got) <= 2 * 31 + 2
    assert len(turn.text()) == 40_000
    assert sum(turn.sizes) < 3 * 40_000


def test_alternating_kinds_do_not_bury_it_either() -> None:
    turn = Turn()
    for n in range(4000):
        delta = events.Text("x") if n % 2 else events.Thinking("y")
        turn.events.add(delta)
        turn.clock.advance(0.0005)
    turn.events.flush()
    assert len(turn.got) <= 2 * 31 + 4
    assert turn.text() == "x" * 2000


def test_other_events_take_waiting_deltas_along_in_order() -> None:
    turn = Turn()
    turn.events.add(STARTED)
    for event in (events.Text("a"), events.Text("b"), STORED, events.Text("c"), finished()):
        turn.events.add(event)
    assert turn.kinds() == ["started", "text", "text", "stored", "text", "finished"]
    assert turn.text() == "abc"


def test_while_the_client_does_not_read_everything_waits_in_one_buffer() -> None:
    turn = Turn()
    turn.events.add(STARTED)
    turn.outlet.is_read = False
    for n in range(10_000):
        turn.events.add(events.Text("x"))
        turn.events.add(events.UsageSoFar(usage=Usage(n, n), context_size=Meter().measure([])))
        turn.clock.advance(0.001)
    assert turn.kinds() == ["started"]
    assert len(turn.outlet.waiting) == 1, "one callback, not one for each event"
    turn.outlet.read_on()
    assert turn.kinds() == ["started", "text", "usage"]
    assert turn.got[-1]["usage"]["inputTokens"] == 9999
    assert turn.text() == "x" * 10_000


def test_the_end_sends_what_waits_although_nobody_reads() -> None:
    turn = Turn()
    turn.outlet.is_read = False
    for event in (STARTED, events.Text("a"), events.Text("b"), finished()):
        turn.events.add(event)
    assert turn.got == []
    turn.events.close()
    assert turn.kinds() == ["started", "text", "finished"]
    turn.events.add(events.Text("late"))
    turn.events.close()
    turn.outlet.read_on()
    turn.clock.advance(1)
    assert turn.kinds() == ["started", "text", "finished"], "nothing of an old turn after its end"


def test_output_of_a_tool_is_bounded_while_nobody_reads() -> None:
    turn = Turn()
    turn.outlet.is_read = False
    for _ in range(2000):
        turn.events.add(events.ToolOutput("c1", "x" * 10_000))
    turn.events.add(events.ToolOutput("c2", "end"))
    turn.events.close()
    assert sum(len(event["delta"]) for event in turn.got) <= MAX_WAITING_OUTPUT_CHARS + 10
    assert turn.got[-1]["toolUseId"] == "c2"


@pytest.mark.parametrize("piece", ["x" * 3_000_000, "\x01" * 1_000_000, "\U0001f642" * 1_000_000])
def test_a_long_delta_goes_out_in_pieces_under_1_mb(piece: str) -> None:
    turn = Turn()
    turn.events.add(events.Text(piece))
    assert turn.text() == piece
    assert max(turn.sizes) <= MAX_OWN_BYTES


DELTAS = st.sampled_from(
    [events.Text("t"), events.Thinking("h"), events.ToolOutput("1", "o"),
     events.ToolOutput("2", "p"), STORED, events.Retry(1, 0.5, "r")]
)  # fmt: skip


@hypothesis.given(st.lists(DELTAS, max_size=40), st.integers(0, 2**32))
def test_no_event_is_lost_or_out_of_order(told: list[Any], seed: int) -> None:
    turn, dice = Turn(), random.Random(seed)
    for event in told:
        turn.events.add(event)
        turn.clock.advance(dice.choice([0.0, 0.01, 0.05]))
        turn.outlet.is_read = False
        if dice.random() < 0.5:
            turn.outlet.read_on()
    turn.events.close()

    def streams(tell: list[Any], key: Callable[[Any], Any]) -> dict[Any, str]:
        """What was said of each kind between two events that are no deltas."""
        found: dict[Any, str] = {}
        part = 0
        for event in tell:
            delta = key(event)[2]
            if delta is None:
                found[part, *key(event)[:2]] = ""
                part += 1
            else:
                found[part, *key(event)[:2]] = found.get((part, *key(event)[:2]), "") + delta
        return found

    given = streams(
        told,
        lambda e: (
            camel(e.__struct_config__.tag),
            getattr(e, "tool_use_id", None), getattr(e, "delta", None)
        ),
    )  # fmt: skip
    got = streams(turn.got, lambda e: (e["type"], e.get("toolUseId"), e.get("delta")))
    assert given == got


# --- each event on the wire -----------------------------------------------------------------------


def wire(event: events.TurnEvent) -> Any:
    fields = json.loads(encode_body(to_wire_event(event, "s", "t", 7)))
    assert (fields.pop("sessionId"), fields.pop("turnId"), fields.pop("n")) == ("s", "t", 7)
    return fields


def test_events_of_an_answer_have_their_fields() -> None:
    assert wire(STARTED) == {"type": "started", "agent": "build", "model": "m", "seq": 1}
    assert wire(events.Text("a")) == {"type": "text", "delta": "a"}
    assert wire(events.Thinking("a")) == {"type": "thinking", "delta": "a"}
    assert wire(STORED) == {"type": "stored", "seq": 1, "role": "user"}
    assert wire(events.Retry(2, 1.5, "429")) == {
        "type": "retry", "attempt": 2, "waitSeconds": 1.5, "reason": "429",
    }  # fmt: skip


def test_events_of_a_tool_use_have_their_fields() -> None:
    shown = events.ToolUseShown("c1", "read_file", {"path": "a", "big": 2**63, "id": -(2**63)})
    assert wire(
        events.ToolUse(tool_use=shown, status="running", rule="read: allow", preview="p")
    ) == {
        "type": "toolUse",
        "toolUse": {
            "id": "c1",
            "name": "read_file",
            "input": {"path": "a", "big": str(2**63), "id": -(2**63)},
        },
        "status": "running",
        "rule": "read: allow",
        "preview": "p",
    }
    assert wire(events.ToolUse(tool_use=shown, status="proposed"))["rule"] is None
    assert wire(events.ToolOutput("c1", "o")) == {
        "type": "toolOutput", "toolUseId": "c1", "delta": "o",
    }  # fmt: skip
    assert wire(events.ToolResult(tool_use_id="c1", is_error=True, content="no")) == {
        "type": "toolResult", "toolUseId": "c1", "isError": True, "content": "no",
        "truncated": False, "seq": None,
    }  # fmt: skip


def test_events_of_the_window_have_their_fields() -> None:
    resized = events.Resized(
        decision={"type": "deep", "reason": "token_budget", "severity": 200}, evicted=3,
        tokens_before=10, tokens_after=5,
    )  # fmt: skip
    assert wire(resized) == {
        "type": "resize",
        "decision": {"type": "deep", "reason": "token_budget", "severity": 200},
        "evicted": 3,
        "tokensBefore": 10,
        "tokensAfter": 5,
        "memoRefused": None,
    }
    size = Meter().measure([])
    used = wire(events.UsageSoFar(usage=Usage(1, 2, 3, 4, 0.5), context_size=size))
    assert used["usage"] == {
        "inputTokens": 1, "outputTokens": 2, "cacheReadTokens": 3, "cacheWriteTokens": 4,
        "costUsd": 0.5,
    }  # fmt: skip
    assert set(used["contextSize"]["breakdown"]) == {
        "system", "tools", "memo", "summary", "user", "assistant", "toolUse", "toolResult",
        "attachments",
    }  # fmt: skip


def test_the_end_of_a_turn_has_its_fields() -> None:
    assert wire(finished()) == {"type": "finished", "stopReason": "end_turn"}
    failed = wire(finished(ModelError("It is down", provider="p", status=500, retryable=True)))
    assert failed == {
        "type": "finished",
        "stopReason": "error",
        "error": {
            "code": -32032,
            "message": "It is down",
            "data": {"kind": "modelFailed", "provider": "p", "status": 500, "retryable": True},
        },
    }


@pytest.mark.parametrize("filler", ["a", "é", "漢", "\U0001f642", "\0", "\ud83d"])
@pytest.mark.parametrize("shift", range(4))
def test_b12_a_result_is_cut_at_a_character(filler: str, shift: int) -> None:
    """B12: a cut inside a character leaves half of it; measured as it is on the wire."""
    text = "x" * shift + filler * 5000
    cut, is_cut = cut_text(text)
    sent = json.loads(encode_body(cut))
    assert is_cut
    assert MAX_RESULT_BYTES - 4 < len(sent.encode()) <= MAX_RESULT_BYTES
    clean = text.replace("\0", "\ufffd").replace("\ud83d", "\ufffd")
    assert clean.startswith(sent)


def test_a_result_that_fits_is_whole() -> None:
    assert cut_text("é" * 2048) == ("é" * 2048, False)
    assert cut_text("é" * 2048 + "a")[1]
    assert cut_text("") == ("", False)


def test_only_integers_that_editors_cannot_read_become_text() -> None:
    value = [2**63 - 1, -(2**63), 2**63, -(2**63) - 1, True, 1.5, {"a": [2**64]}]
    assert displayed(value) == [
        2**63 - 1, -(2**63), str(2**63), str(-(2**63) - 1), True, 1.5, {"a": [str(2**64)]},
    ]  # fmt: skip
