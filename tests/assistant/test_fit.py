"""Making a request fit: how long a reply waits for the memo, and what stands in the way."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

import pytest
from msgspec.structs import replace

from tiro import Message, Session, provider_view
from tiro.agents.prompt import request_size, rows_sent
from tiro.assistant.fit import Fitting, budget_of
from tiro.assistant.memo_upkeep import Upkeep
from tiro.assistant.pins import check_edit
from tiro.errors import ContextOverflowError, InvalidInputError
from tiro.session.core import Core
from tiro.session.meter import ContextSize
from tiro.session.shown import memo_text, summary_text

WINDOW = 2_000
WORDS = "some words and more of them "


class GatedModel:
    """Writes a memo when its gate is open; counts how often it was asked, and given up."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.asked = self.given_up = 0

    async def write(self, messages: Sequence[Any]) -> str:
        self.asked += 1
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        return json.dumps({"memo": {"times": self.asked}})


class Talk:
    """A session whose memo this model writes, turn by turn."""

    def __init__(self) -> None:
        self.session, self.model = Session({"session.mode": "memo"}), GatedModel()
        self.session.handlers = replace(self.session.handlers, memo_model=self.model.write)
        self.told: list[str] = []
        self.failures: list[str] = []
        self.upkeep = Upkeep(self.writing, lambda: None, self.has_read)

    def has_read(self, _: Core, why: str | None) -> None:
        if why is not None:
            self.failures.append(why)

    def writing(self, _: Core) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def size(self) -> ContextSize:
        return request_size(self.session, "", context_window=WINDOW)

    async def turn(self, wait: float = 60.0, told_after: float = 60.0) -> None:
        """A turn that has to resize, up to its request."""
        for _ in range(10):
            self.session.add_message("user", WORDS * 40)
        fitting = Fitting(self.session, self.size, 0.75, self.session.next_seq - 1)
        fitting.wait_seconds, fitting.tell_seconds = wait, told_after
        resized = await fitting.fitted(None, self.told.append)
        assert resized is not None
        assert resized.evicted > 0
        assert resized.memo_refused is None
        assert self.size().tokens < WINDOW


def test_a_memo_that_is_too_slow_is_read_after_the_turn() -> None:
    """N4.6: the turn goes on with the old one; none waits again before it has been read once."""

    async def run() -> None:
        talk = Talk()
        await talk.turn(wait=0)
        assert (talk.model.asked, talk.model.given_up) == (1, 1)
        assert talk.session.memo_cursor == 0
        await talk.turn()  # would wait for ever
        assert talk.model.asked == 1
        talk.upkeep.start(talk.session)
        talk.model.gate.set()
        await _until(lambda: talk.session.memo_cursor == 20)
        asked = talk.model.asked
        assert talk.session.memo["times"] == asked
        assert talk.session.memo["last_resize"]["type"] == "deep"
        await talk.turn()
        assert talk.session.memo["times"] == asked + 1
        assert talk.session.memo_cursor > 20
        await talk.upkeep.close()

    asyncio.run(run())


def test_a_turn_in_the_middle_of_the_reading_does_not_undo_it() -> None:
    """What a resize tells in the memo about itself is no other memo."""

    async def run() -> None:
        talk = Talk()
        await talk.turn(wait=0)
        talk.upkeep.start(talk.session)
        await _until(lambda: talk.model.asked == 2)
        await talk.turn()
        talk.model.gate.set()
        await _until(lambda: talk.session.memo_cursor == 20)
        assert talk.session.memo["times"] == talk.model.asked
        await talk.upkeep.close()

    asyncio.run(run())


def test_a_background_reading_ends_and_is_told() -> None:
    async def run() -> None:
        talk = Talk()
        await talk.turn(wait=0)
        talk.upkeep.most_seconds = 0
        talk.upkeep.start(talk.session)
        await _until(lambda: bool(talk.failures))
        assert "no whole answer" in talk.failures[0]
        assert talk.session.memo_cursor == 0
        await talk.turn()
        assert talk.model.asked == 2, "it is still too slow for a reply"

    asyncio.run(run())


def test_the_user_is_told_what_a_reply_waits_for() -> None:
    async def run() -> None:
        talk = Talk()
        turn = asyncio.ensure_future(talk.turn(told_after=0))
        await _until(lambda: bool(talk.told))
        assert not turn.done()
        talk.model.gate.set()
        await turn
        assert len(talk.told) == 1
        assert "memo" in talk.told[0]
        talk.told.clear()
        await talk.turn()
        assert talk.told == []

    asyncio.run(run())


@pytest.mark.parametrize("told_after", [0.0, 60.0])
def test_who_cancels_what_waits_for_the_memo_does_not_wait_again(told_after: float) -> None:
    """Once told what it waits for; one that is cancelled before may have had other reasons."""

    async def run() -> None:
        talk = Talk()
        turn = asyncio.ensure_future(talk.turn(told_after=told_after))
        await _until(lambda: bool(talk.told) if told_after == 0 else talk.model.asked == 1)
        turn.cancel()
        await asyncio.wait([turn])
        assert talk.session.memo_is_slow == (told_after == 0)
        talk.model.gate.set()
        await talk.turn()
        assert talk.model.asked == (1 if told_after == 0 else 2)

    asyncio.run(run())


def test_why_a_memo_was_refused_is_told_once() -> None:
    """Until another reason comes, or it worked in between."""
    answers = ["no JSON", "no JSON", '{"memo": {"a": 1}}', "no JSON"]

    async def write(messages: Sequence[Any]) -> str:
        return answers.pop(0)

    session = Session({"session.mode": "memo"})
    session.handlers = replace(session.handlers, memo_model=write)

    def size() -> ContextSize:
        return request_size(session, "", context_window=WINDOW)

    def refused() -> str | None:
        for _ in range(10):
            session.add_message("user", WORDS * 40)
        fitting = Fitting(session, size, 0.75, session.next_seq - 1)
        resized = asyncio.run(fitting.fitted())
        assert resized is not None
        return resized.memo_refused

    told = [refused() for _ in range(4)]
    assert [reason is None for reason in told] == [False, True, True, False]
    assert "no JSON object" in (told[0] or "")


# --- what a provider says about its window ---


@pytest.mark.parametrize(
    ("told", "left"),
    [
        ({"tokens": 1_900, "context_window": 100}, range(14, 20)),  # no model has that
        ({"tokens": 10**9, "context_window": 2_000}, range(4, 10)),  # nor is so much sent
        ({"tokens": 3_000, "context_window": 1_500}, range(7, 14)),
        ({}, range(14, 20)),
    ],
)
def test_one_refusal_does_not_empty_the_window(told: dict[str, Any], left: range) -> None:
    """B20: a window and a count that cannot be are not believed; a quarter goes in any case."""
    session = Session()
    for n in range(40):
        session.add_message("user", f"{n} {WORDS * 5}")

    def size() -> ContextSize:
        return request_size(session, "", context_window=WINDOW)

    fitting = Fitting(session, size, None, session.next_seq - 1)
    error = ContextOverflowError("Too long", **told)
    asyncio.run(fitting.fitted(error))
    assert len(session.messages) in left


# --- memo and summary give way ---


def remembering(words: int) -> Session:
    """A session with memo and summary at their caps, and a prompt of so many tokens."""
    session = Session()
    session.change(memo={"all": WORDS * 48}, summary=WORDS * 48)
    session.add_message("user", "word " * words)
    return session


def fitted(session: Session, overflow: ContextOverflowError | None = None) -> ContextSize:
    """The size of the next request, made to fit."""

    def size() -> ContextSize:
        return request_size(session, "", context_window=WINDOW)

    asyncio.run(Fitting(session, size, 0.75, session.next_seq - 1).fitted(overflow))
    return size()


@pytest.mark.parametrize(("words", "shown"), [(100, 1), (1_300, 0.9), (1_700, 0.2), (1_790, 0)])
def test_a_prompt_that_fits_by_itself_is_sent(words: int, shown: float) -> None:
    """U2.4, U8.2: with what room there is for memo and summary, down to none."""
    session = remembering(words)
    found = fitted(session)
    memory = found.breakdown.memo + found.breakdown.summary
    assert found.tokens <= WINDOW * 0.9
    whole = session.meter.text(memo_text(session.memo) + summary_text(session.summary))
    assert memory == pytest.approx(whole * shown, abs=whole * 0.08)


def test_what_was_refused_is_sent_with_less_of_memo_and_summary() -> None:
    """Where no message can leave; when nothing of them is left either, it was the prompt."""
    session = remembering(1_100)
    refused = ContextOverflowError("Too long")
    before = fitted(session)
    after = fitted(session, refused)
    assert after.tokens <= before.tokens * 0.75
    assert after.breakdown.user == before.breakdown.user
    while after.breakdown.memo + after.breakdown.summary:
        after = fitted(session, refused)
    with pytest.raises(ContextOverflowError, match="Too long"):
        fitted(session, refused)


# --- pins ---


@pytest.mark.parametrize("words", [100, 1_300, 1_700])
def test_a_prompt_that_fits_beside_no_system_message_is_sent(words: int) -> None:
    """U2.4, U8.2: they are shown as far as there is room."""
    session = Session()
    for _ in range(4):
        session.add_message("system", WORDS * 100)
    session.add_message("user", "word " * words)
    assert fitted(session).tokens <= WINDOW * 0.95
    assert session.messages[-1].content == "word " * words


@pytest.mark.parametrize("words", [1_700, 5_000, 20_000])
def test_what_is_only_put_in_front_of_a_pin_is_bounded(words: int) -> None:
    """U3.2, U2.8: nothing is refused for it, the budget holds and what was said since stays."""
    session = Session()
    session.add_message("user", f"FIRST {'word ' * words} LAST").add_message("assistant", "short")
    session.pin(2)
    for n in range(4):
        session.add_message("user", f"question {n}").add_message("assistant", f"answer {n}")
    session.add_message("user", "And now?")
    found = fitted(session)
    assert found.tokens <= WINDOW * 0.75
    view = request_rows(session)
    assert view[0].seq == 1
    assert "FIRST" in str(view[0].content)
    assert "characters left out here" in str(view[0].content)
    assert view[1].seq == 2
    before = [message.seq for message in session.messages]
    session.add_message("assistant", "this").add_message("user", "And then?")
    fitted(session)
    assert [message.seq for message in session.messages][: len(before)] == before
    assert session.full()[0].content == f"FIRST {'word ' * words} LAST"


def request_rows(session: Session) -> list[Message]:
    """The messages of the next request."""
    return provider_view(*rows_sent(session, "", (), WINDOW))


def test_what_is_too_long_all_the_same_says_what_takes_the_room() -> None:
    session = Session()
    session.add_message("system", WORDS * 100).add_message("user", "word " * 3_000)
    with pytest.raises(
        ContextOverflowError, match=r"\(what was said last 2,9.*system prompt \d\d,"
    ):
        fitted(session)


def pinned() -> Session:
    session = Session()
    for _ in range(2):
        session.add_message("user", WORDS * 230)
        session.pin(session.next_seq - 1)
    session.add_message("user", "and now?")
    return session


def test_pins_over_the_window_are_named_with_what_they_take() -> None:
    """U2.8: the error says which to let go."""
    session = pinned()

    def size() -> ContextSize:
        return request_size(session, "", context_window=WINDOW)

    fitting = Fitting(session, size, 0.75, 3)
    with pytest.raises(ContextOverflowError, match=r"pinned messages take 2,.* \(messages 1, 2\)"):
        asyncio.run(fitting.fitted())
    with pytest.raises(ContextOverflowError, match=r"Too long; pinned messages take") as caught:
        asyncio.run(fitting.fitted(ContextOverflowError("Too long", tokens=5_000)))
    assert caught.value.data["tokens"] == 5_000


def test_an_edited_message_that_is_pinned_may_not_pass_the_cap() -> None:
    """U2.8: growing it counts as pinning; shrinking it is always allowed."""
    session = pinned()
    budget = budget_of(request_size(session, "", context_window=WINDOW), 0.75)
    with pytest.raises(InvalidInputError, match="more than half"):
        check_edit(session, 1, WORDS * 231, budget)
    check_edit(session, 1, WORDS * 229, budget)
    check_edit(session, 3, WORDS * 900, budget)
    check_edit(session, 1, WORDS * 231, None)


async def _until(condition: Any) -> None:
    """Let the tasks run until it holds."""
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came")
