"""Tool results that may not leave the window and do not fit: they are sent in part."""

import random
from typing import Any

import pytest

from tests.session.histories import result, steered, user, uses
from tiro import Message, Session, provider_view
from tiro.session.meter import IMAGE_TOKENS
from tiro.session.results import NO_ROOM, fitting_rows
from tiro.session.shown import LEAST_TOKENS, staying

WORDS = "some words and more of them "
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


def talk(*contents: Any) -> Session:
    """A prompt, and a step with results of these contents."""
    session = Session()
    session.append_message(user("Look.")).append_message(
        uses(*(str(n) for n in range(len(contents))))
    )
    for n, content in enumerate(contents):
        session.append_message(result(str(n), content))
    return session


def sent(session: Session, missing: int) -> list[Any]:
    return fitting_rows(session, staying(session), -missing).window


def total(session: Session, messages: list[Message]) -> int:
    return sum(session.fork().meter.message(message) for message in messages)


def test_what_fits_is_sent_as_it_is() -> None:
    session = talk(WORDS * 99)
    for free in (None, 0, 5):
        window = fitting_rows(session, staying(session), free).window
        assert [id(m) for m in window] == [id(m) for m in session.oldest_first()]


@pytest.mark.parametrize("seed", range(30))
def test_long_results_give_way_before_short_ones(seed: int) -> None:
    """Together they are as much shorter as it takes; none is shorter than it must be."""
    dice = random.Random(seed)
    sizes = [dice.choice([1, 5, 60, 300, 900]) for _ in range(dice.randint(1, 6))]
    session = talk(*(WORDS * size for size in sizes))
    before = session.snapshot()
    whole = total(session, session.oldest_first())
    least = sum(min(LEAST_TOKENS, session.meter.text(WORDS * size)) for size in sizes) + 40
    missing = dice.randint(1, max(1, whole - least))
    window = sent(session, missing)
    assert total(session, window) <= max(whole - missing, least) + len(sizes)
    cut = [message for message in window[2:] if "left out" in str(message.content)]
    shortest = min(map(session.meter.message, cut), default=whole)
    for size, message in zip(sizes, window[2:], strict=True):
        if message not in cut:
            assert message.content["content"] == WORDS * size
            assert session.meter.message(message) <= shortest * 1.2 + 20
    assert session.snapshot() == before


@pytest.mark.parametrize("spelling", ["block", "parts", "field", "user"])
def test_every_spelling_of_a_result_can_be_cut(spelling: str) -> None:
    """Imported ones too; each stays the answer to its tool use."""
    long = f"FIRST {WORDS * 500} LAST"
    block = {"type": "tool_result", "tool_use_id": "0", "content": long, "is_error": True}
    forms: dict[str, dict[str, Any]] = {
        "block": {"role": "tool", "content": block},
        "parts": {
            "role": "tool",
            "content": [{**block, "content": [{"type": "text", "text": long}]}],
        },
        "field": {"role": "tool", "content": long, "tool_call_id": "0"},
        "user": {"role": "user", "content": [block, {"type": "text", "text": "Go on."}]},
    }
    session = Session().append_message(user("Look.")).append_message(uses("0"))
    session.append_message(forms[spelling])
    whole = total(session, session.oldest_first())
    window = sent(session, 1_000)
    assert total(session, window) <= whole - 1_000
    view = provider_view(window)
    text = str(view[2].content)
    assert view[2].role == "tool"
    assert "FIRST" in text
    assert "LAST" in text
    assert "Ask for a smaller part" in text


def test_an_image_is_sent_whole_or_not_at_all() -> None:
    session = talk([{"type": "text", "text": "A picture."}, IMAGE], WORDS * 2_000)
    (picture, text) = sent(session, 1_000)[2:]
    assert "left out" in str(text.content)
    assert IMAGE in picture.content["content"]
    (picture, text) = sent(session, session.meter.text(WORDS * 2_000) - 100)[2:]
    assert picture.content[0]["content"][1] == {"type": "text", "text": NO_ROOM}
    assert total(session, [picture]) < IMAGE_TOKENS


def test_what_may_leave_the_window_is_not_cut_but_what_is_pinned_is() -> None:
    session = talk(WORDS * 500).append_message(user("And now?"))
    assert "left out" not in str(sent(session, 500))
    session.pin(3)
    assert "left out" in str(sent(session, 500)[2].content)


def test_what_is_said_to_a_running_turn_leaves_its_results_unread() -> None:
    """They are cut, beside the prompt and all that was said since, which stay whole."""
    session = talk(WORDS * 500).append_message(steered()).append_message(steered("and be short"))
    assert staying(session) == {1, 2, 3, 4, 5}
    assert "left out" in str(sent(session, 500)[2].content)
    session.append_message(user("And now?"))
    assert staying(session) == {6}


def test_what_only_stands_in_front_of_a_pin_gives_way_first() -> None:
    """U3.2, U2.8: nobody has pinned it; what is pinned stays whole for longer."""
    session = Session().append_message(user(WORDS * 900)).append_message(uses("0"))
    session.append_message(result("0", WORDS * 90)).append_message(user("And now?"))
    session.pin(3)
    session.set_limit(messages=1)
    session.resize("lite")
    assert [m.seq for m in session.messages] == [2, 3, 4]
    rows = fitting_rows(session, staying(session), -200)
    view = provider_view(*rows)
    assert [m.seq for m in view] == [1, 2, 3, 4]
    assert (
        total(session, view)
        <= total(session, provider_view(*fitting_rows(session, set(), None))) - 200
    )
    assert "left out" in str(view[0].content)
    assert "left out" not in str(view[2].content)
    assert "left out" in str(fitting_rows(session, staying(session), -600).window)
