"""What a system prompt shows of a session: nothing in it can fill the context window."""

import random
from typing import Any

import pytest

from tiro import Session
from tiro.session.shown import ALL_SHARES, SHARE, cut_to, memo_text, room_in, shown, summary_text

ROOM = 1_000
WORDS = "some words and more of them "


def session(memo: Any = None, summary: str = "", *system: str) -> Session:
    made = Session()
    for text in system:
        made.add_message("system", text)
    made.change(memo=memo or {}, summary=summary)
    return made


def tokens(made: Session, text: str) -> int:
    return made.meter.text(text)


def test_what_has_room_is_shown_whole() -> None:
    made = session({"a": 1}, "Earlier.", "Be kind.", "Be brief.")
    found = shown(made, ROOM)
    assert found == shown(made)
    assert found.instructions == "Be kind.\n\nBe brief."
    assert (found.memo, found.summary) == (memo_text({"a": 1}), summary_text("Earlier."))
    assert found.cut == []


@pytest.mark.parametrize("part", ["memo", "summary", "system"])
def test_what_is_too_long_loses_its_middle_and_is_named(part: str) -> None:
    """The rest stays whole, and so does what is stored."""
    text = f"FIRST {WORDS * 900} LAST"
    memo, summary = {"all": text} if part == "memo" else {}, text if part == "summary" else ""
    made = session(memo, summary, "Be kind.", *([text] if part == "system" else []), "Be brief.")
    before = made.snapshot()
    found = shown(made, ROOM)
    texts = {"memo": found.memo, "summary": found.summary, "system": found.instructions}
    assert "FIRST" in texts[part]
    assert "LAST" in texts[part]
    assert "characters left out here" in texts[part]
    assert found.instructions.startswith("Be kind.\n\n")
    assert found.instructions.endswith("\n\nBe brief.")
    assert tokens(made, texts[part]) <= ROOM * (ALL_SHARES if part == "system" else SHARE) + 10
    (told,) = found.cut
    assert ("System message 2" if part == "system" else f"The {part}") in told
    assert made.snapshot() == before


def test_of_many_instructions_the_newest_are_shown() -> None:
    made = session(None, "", *(f"Rule {n}: {WORDS * 3}" for n in range(200)))
    found = shown(made, ROOM)
    assert tokens(made, found.instructions) <= ROOM * ALL_SHARES
    assert "Rule 199" in found.instructions
    assert "Rule 0:" not in found.instructions
    assert any("System message 1 " in told for told in found.cut)


@pytest.mark.parametrize("seed", range(40))
def test_whatever_there_is_a_quarter_stays_for_the_conversation(seed: int) -> None:
    """Any sizes, any script, any window."""
    dice = random.Random(seed)
    text = dice.choice([WORDS, "解析器读取文件", "🙂", "x", "\n", "0123456789abcdef", '"\\'])
    room = dice.choice([100, 1_000, 20_000])

    def some() -> str:
        return text * dice.choice([0, 1, dice.randrange(room * 4)])

    made = session({"a": some()}, some(), *(some() or "x" for _ in range(dice.randrange(5))))
    found = shown(made, room)
    parts = (found.instructions, found.memo, found.summary)
    assert sum(tokens(made, part) for part in parts) <= room * 0.75 + 60  # marks and breaks
    assert bool(found.cut) == (found != shown(made))


@pytest.mark.parametrize("limit", [0, 1, 5, 100])
def test_a_cut_ends_however_little_is_allowed(limit: int) -> None:
    made = Session()
    kept = cut_to("word " * 10_000, limit, made.meter.text)
    assert tokens(made, kept) <= max(limit, 20), "a mark is left at least"


def test_some_room_is_left_however_long_prompt_and_tools_are() -> None:
    assert room_in(8_000, 1_500) == 6_500
    assert room_in(8_000, 7_900) == room_in(8_000, 90_000) == 2_000
