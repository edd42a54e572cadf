"""What a system prompt shows of a session: nothing in it can fill the context window."""

import random
import re
from typing import Any

import pytest

from tiro import Session
from tiro.session.dialogue import cut_to
from tiro.session.shown import (
    ALL_SHARES,
    LEAST_ANSWER,
    SHARE,
    free_in,
    memo_text,
    room_in,
    shown,
    summary_text,
)

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
    (told,) = found.cut
    assert re.match(r"1[89]\d system messages, the first of them message 1, are too long", told)


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


# --- giving way ---


@pytest.mark.parametrize("free", [-50, 0, 130, 300, 500])
def test_memo_and_summary_give_way_where_less_is_free(free: int) -> None:
    """Short standing instructions do not; what is not shown whole is named once."""
    made = session({"a": WORDS * 40}, f"FIRST {WORDS * 40} LAST", "Be kind.")
    found = shown(made, ROOM, free)
    parts = (found.instructions, found.memo, found.summary)
    assert sum(tokens(made, part) for part in parts) <= max(free, tokens(made, "Be kind."))
    assert found.instructions == "Be kind."
    assert ("FIRST" in found.summary, "LAST" in found.summary) == (free > 100,) * 2
    assert [told.split(" has no room")[0] for told in found.cut] == (
        ["The memo", "The summary"] if free < 500 else []
    )


@pytest.mark.parametrize(("free", "whole"), [(-50, 0), (0, 0), (160, 1), (205, 2)])
def test_system_messages_give_way_too_where_less_is_free(free: int, whole: int) -> None:
    """After memo and summary, long ones before short ones, told in one sentence (U3.9)."""
    rules = [f"FIRST {WORDS * 20} LAST", f"Rule: {WORDS * 12}"]
    made = session({"a": WORDS * 40}, "", *rules)
    found = shown(made, ROOM, free)
    assert tokens(made, found.instructions + found.memo) <= max(free, 60) + 2
    assert sum(rule in found.instructions for rule in rules) == whole
    assert found.instructions != ""
    sentences = [told.split(" no room")[0] for told in found.cut]
    assert sentences == ["System messages have", "The memo has"][whole == 2 :]


def test_the_shorter_one_gives_way_last() -> None:
    made = session({"a": 1}, WORDS * 40)
    found = shown(made, ROOM, 150)
    assert found.memo == memo_text({"a": 1})
    assert 100 < tokens(made, found.memo + found.summary) <= 151
    (told,) = found.cut
    assert told.startswith("The summary has no room")


def test_what_is_free_is_what_nobody_else_needs() -> None:
    """U2.4, U2.8: pins, the newest prompt, the newest group; or a draft in place of the latter."""
    made, window = Session(), 10_000
    assert free_in(made, None, 500) is None
    made.add_message("user", "pinned").pin(1)
    made.add_message("user", WORDS * 200).add_message("assistant", WORDS * 100)
    free = window * (1 - LEAST_ANSWER)
    pinned, old, answer = (made.meter.message(m) for m in made.messages)
    assert free_in(made, window, 500) == free - 500 - pinned - old - answer
    made.add_message("user", "new")
    new = made.meter.message(made.messages[-1])
    use = {"type": "tool_use", "id": "a", "name": "x", "input": {}}
    made.add_message("assistant", [use]).add_tool_result("a", WORDS)
    group = sum(made.meter.message(m) for m in made.messages[-2:])
    assert free_in(made, window, 500) == free - 500 - pinned - new - group
    assert free_in(made, window, 500, WORDS) == free - 500 - pinned - tokens(made, WORDS)
    made.most_tokens = 4_000
    assert free_in(made, window, 500) == 3_500 - pinned - new - group
    assert free_in(made, None, 500) == 3_500 - pinned - new - group


@pytest.mark.parametrize("limit", [0, 1, 5, 100])
def test_a_cut_ends_however_little_is_allowed(limit: int) -> None:
    made = Session()
    kept = cut_to("word " * 10_000, limit, made.meter.text)
    assert tokens(made, kept) <= max(limit, 20), "a mark is left at least"


def test_some_room_is_left_however_long_prompt_and_tools_are() -> None:
    assert room_in(8_000, 1_500) == 6_500
    assert room_in(8_000, 7_900) == room_in(8_000, 90_000) == 2_000
