"""The legal cut (U2): no group is separated, and the newest group always stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.session.histories import any_history, result, says, sound_histories, steered, user, uses
from tiro import Message
from tiro.session.cut import group_ends, legal_cut, unread_group
from tiro.session.messages import tool_results_of, tool_uses_of


def calls_before(messages: list[Message], index: int, tool_use_id: str) -> int | None:
    """The latest message before `index` that makes this tool use."""
    found = None
    for position in range(index):
        if any(use.id == tool_use_id for use in tool_uses_of(messages[position])):
            found = position
    return found


def separated(messages: list[Message], start: int) -> list[int]:
    """The kept results whose tool use was cut away."""
    return [
        index
        for index in range(start, len(messages))
        for answer in tool_results_of(messages[index])
        if (call := calls_before(messages, index, answer.tool_use_id)) is not None and call < start
    ]


@given(any_history, st.integers(0, 16))
def test_cut_of_any_history_separates_no_group(messages: list[Message], start: int) -> None:
    """U2.2, U2.4."""
    cut = legal_cut(messages, start)
    assert separated(messages, cut) == []
    if messages:
        assert cut < len(messages) or start == 0 == cut


@given(sound_histories(), st.integers(0, 40))
def test_cut_keeps_at_most_what_was_wanted(messages: list[Message], start: int) -> None:
    """U2.3 to U2.5: only the newest group may need more room."""
    cut = legal_cut(messages, start)
    if cut < min(start, len(messages) - 1):
        newest = messages[-1]
        answers = {r.tool_use_id for r in tool_results_of(newest)}
        assert answers & {use.id for use in tool_uses_of(messages[cut])}


@given(sound_histories(), st.integers(1, 40))
def test_cut_drops_nothing_but_the_broken_head(messages: list[Message], start: int) -> None:
    """U2.3."""
    cut = legal_cut(messages, start)
    for message in messages[start:cut]:
        assert tool_results_of(message)


@pytest.mark.parametrize(
    ("start", "expected"),
    [(0, 0), (1, 1), (2, 4), (3, 4), (4, 4), (5, 5), (6, 5), (99, 5)],
)
def test_cut_inside_a_group_goes_behind_it(start: int, expected: int) -> None:
    """U2.3, U2.4: behind the group, but never behind the newest message."""
    messages = [user(), uses("a", "b"), result("a"), result("b"), says(), user()]
    assert legal_cut(messages, start) == expected


def test_cut_keeps_the_newest_group_whole_beyond_the_limit() -> None:
    """U2.4."""
    messages = [user(), uses("a", "b", "c"), result("a"), result("b")]
    assert legal_cut(messages, 3) == 1


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        ([], set()),
        ([steered(), steered()], {1, 2, 3}),
        ([user()], set()),  # a turn of its own: they were broken off
        ([steered(), user()], set()),
        ([says(), steered()], set()),
    ],
)
def test_what_is_said_to_a_running_turn_leaves_its_results_unread(
    since: list[Message], expected: set[int]
) -> None:
    """It begins no turn."""
    messages = [user(), uses("a", "b"), result("a"), result("b"), *since]
    assert unread_group(messages) == expected
    assert unread_group(messages[:1]) == unread_group([steered()]) == unread_group([]) == set()


def test_cut_goes_behind_a_late_result() -> None:
    """A result that did not come directly after its tool use moves the cut behind it."""
    messages = [user(), uses("a"), user(), says(), result("a"), user(), says()]
    assert legal_cut(messages, 2) == 5


@pytest.mark.parametrize(
    ("roles", "start", "expected"),
    [
        ("uauaua", 2, 2),  # at a user message
        ("uauaua", 3, 2),  # back to the previous user message
        ("uaaaua", 2, 4),  # none at an index above 0: forward to the next
        ("uaaaaa", 2, 0),  # none either: no cut
        ("uauaua", 6, 6),  # the end is a legal boundary
    ],
)
def test_user_cut_starts_a_turn(roles: str, start: int, expected: int) -> None:
    """U2.6, N2.4, N2.5."""
    messages = [user() if role == "u" else says() for role in roles]
    assert legal_cut(messages, start, "user") == expected


@given(sound_histories(), st.integers(0, 40))
def test_taking_back_leaves_whole_groups(messages: list[Message], end: int) -> None:
    """A rewind inside a tool group takes back the whole group."""
    keep = group_ends(messages, min(end, len(messages)))
    kept, gone = messages[:keep], messages[keep:]
    open_ids = {use.id for m in kept for use in tool_uses_of(m)}
    assert not any(r.tool_use_id in open_ids for m in gone for r in tool_results_of(m))
