"""Three texts merged by lines: what is kept, what is refused, and what always holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiro.tools.merge import (
    conflicting_lines,
    count_changes,
    lines_now,
    match_lines,
    merge_texts,
)

LINES = st.lists(st.sampled_from("abcde{}"), max_size=12)
TEXTS = st.tuples(LINES, st.booleans()).map(lambda t: "\n".join(t[0]) + "\n" * t[1])
ANY_TEXTS = st.text(alphabet="ab\r\n", max_size=20)
NUMBERED = [f"{number}\n" for number in range(30)]


def check(base: str, ours: str, theirs: str, expected: str | None) -> None:
    """Lines are given as single characters."""
    sides = ["".join(f"{line}\n" for line in side) for side in (base, ours, theirs)]
    merged = merge_texts(*sides)
    assert (merged if merged is None else merged.replace("\n", "")) == expected


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "expected"),
    [
        ("abcde", "aXcde", "abcYe", "aXcYe"),
        ("abcde", "Xabcde", "abcdeY", "XabcdeY"),
        ("abcde", "acde", "abce", "ace"),
        ("abcde", "aXcYe", "aXcde", "aXcYe"),
        ("{}{}{}", "{a}{}{}", "{}{}{b}", "{a}{}{b}"),
        ("abcde", "abXde", "abYde", None),
        ("abcde", "aXcde", "abYde", "aXYde"),
        ("abcde", "aXcde", "abYcde", "aXYcde"),
        ("abcde", "abXde", "abYcde", "abYXde"),
        ("abcde", "acde", "abYcde", "aYcde"),
        ("abcde", "aXYcde", "abde", "aXYde"),
        ("abcde", "aXYde", "abZcde", None),
        ("abcde", "aXYde", "abcZe", "aXYZe"),
        ("abcde", "abXcde", "abYcde", None),
        ("abcde", "ade", "abXde", None),
        ("", "X", "Y", None),
    ],
)
def test_what_overlaps_is_refused_and_all_else_kept(
    base: str, ours: str, theirs: str, expected: str | None
) -> None:
    check(base, ours, theirs, expected)
    check(base, theirs, ours, expected)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "expected"),
    [
        ("a\nb\nc\nd\n", "a\r\nb\r\nc\r\nX\r\n", "Y\nb\nc\nd\n", "Y\r\nb\r\nc\r\nX\r\n"),
        ("a\nb\nc\nd\n", "a\nb\nc\nX\n", "a\r\nb\r\nc\r\nd\r\n", "a\r\nb\r\nc\r\nX\n"),
        ("a\nb", "a\nb\nX\n", "a\nY", "a\nY\nX\n"),
        ("a\nb\nc", "a\nb\nc\n", "X\nb\nc", "X\nb\nc\n"),
        ("a\nb\nc\n", "a\nb\nc", "a\nb\nc\nX\n", "a\nb\nc\nX\n"),
        ("a\nb\nc", "a\nX\nb\nc", "a\nb\nc\n", "a\nX\nb\nc\n"),
    ],
)
def test_line_ends_are_merged_line_by_line_and_ours_win(
    base: str, ours: str, theirs: str, expected: str | None
) -> None:
    assert merge_texts(base, ours, theirs) == expected


@given(base=ANY_TEXTS, other=ANY_TEXTS)
def test_what_only_one_side_changed_is_what_that_side_has(base: str, other: str) -> None:
    assert merge_texts(base, base, other) == other
    assert merge_texts(base, other, base) == other
    assert merge_texts(base, other, other) == other


@given(base=TEXTS, ours=TEXTS, theirs=TEXTS)
def test_it_does_not_matter_who_is_who(base: str, ours: str, theirs: str) -> None:
    """But for line ends, where ours win."""
    one, other = merge_texts(base, ours, theirs), merge_texts(base, theirs, ours)
    assert (one and one.splitlines()) == (other and other.splitlines())


@given(base=LINES, ours=LINES, theirs=LINES)
def test_no_line_is_lost_that_the_other_side_did_not_take_out(
    base: list[str], ours: list[str], theirs: list[str]
) -> None:
    """Ours has lines of its own, each of which is to be found in the result."""
    own = [f"own {number}" for number in range(len(ours))]
    mine = [line for pair in zip(ours, own, strict=True) for line in pair]
    merged = merge_texts(*("".join(f"{line}\n" for line in side) for side in (base, mine, theirs)))
    if merged is not None:
        assert [line for line in merged.splitlines() if line in own] == own


@given(base=ANY_TEXTS, ours=ANY_TEXTS, theirs=ANY_TEXTS)
def test_no_line_end_makes_one_line_of_two(base: str, ours: str, theirs: str) -> None:
    merged = merge_texts(base, ours, theirs)
    if merged is not None:
        longest = max(map(len, "\n".join((base, ours, theirs)).replace("\r", "\n").split("\n")))
        assert all(len(line) <= longest for line in merged.replace("\r", "\n").split("\n"))


@given(
    places=st.lists(st.integers(0, 29), min_size=2, max_size=6, unique=True).filter(
        lambda found: min(b - a for a, b in zip(sorted(found), sorted(found)[1:], strict=False)) > 1
    ),
    kinds=st.lists(st.sampled_from(["change", "remove", "insert"]), min_size=6, max_size=6),
)
def test_edits_with_a_line_between_them_all_survive(places: list[int], kinds: list[str]) -> None:
    sides = [list(NUMBERED), list(NUMBERED)]
    both = list(NUMBERED)
    for number, (place, kind) in enumerate(zip(places, kinds, strict=False)):
        line = {"change": f"new {place}\n", "remove": "", "insert": f"new {place}\n{place}\n"}[kind]
        sides[number % 2][place] = line
        both[place] = line
    assert merge_texts("".join(NUMBERED), *map("".join, sides)) == "".join(both)


def test_the_lines_that_keep_texts_from_being_merged_are_told() -> None:
    """Of ours, counted from 0; where ours only took lines out, the place where they were."""
    base = [f"{number}\n" for number in range(9)]
    ours = ["0\n", "new\n", "mine\n", "also mine\n", *base[2:5], *base[6:], "9\n"]
    theirs = ["0\n", "theirs\n", *base[2:5], "five\n", *base[6:]]
    texts = ["".join(side) for side in (base, ours, theirs)]
    assert conflicting_lines(*texts) == [range(1, 4), range(7, 7)]
    assert conflicting_lines(texts[0], texts[1], texts[0]) == []


def test_lines_are_found_again_in_what_a_text_became() -> None:
    before, now = "a\nb\nc\nd\n", "new\nb\nother\nd\n"
    assert lines_now(range(3), before, now) == range(1, 2)
    assert lines_now(range(1, 4), before, now) == range(1, 4)
    assert not lines_now(range(1), before, now)


SMALL = st.integers(0, 2)


@given(
    pairs=st.lists(st.tuples(*[SMALL] * 4, st.booleans()), min_size=1, max_size=4),
)
def test_edits_that_only_adjoin_all_survive(pairs: list[tuple[int, int, int, int, bool]]) -> None:
    """Lines of one side, then at once lines of the other; two insertions at one place conflict."""
    sides: list[list[str]] = [["0\n"], ["0\n"]]
    base, both, is_clear = ["0\n"], ["0\n"], True
    for number, (gone, their_gone, added, their_added, is_other) in enumerate(pairs):
        sides.reverse() if is_other else None
        old = [
            [f"{number}.{side}.{n}\n" for n in range((gone, their_gone)[side])] for side in (0, 1)
        ]
        new = [
            [f"new {number}.{side}.{n}\n" for n in range((added, their_added)[side])]
            for side in (0, 1)
        ]
        kept = [f"kept {number}\n"]
        base += old[0] + old[1] + kept
        sides[0] += new[0] + old[1] + kept
        sides[1] += old[0] + new[1] + kept
        both += new[0] + new[1] + kept
        is_clear = is_clear and (gone + their_gone > 0 or not (added and their_added))
    merged = merge_texts(*map("".join, (base, *sides)))
    assert merged == ("".join(both) if is_clear else None)


@given(old=LINES, new=LINES)
def test_matched_lines_are_equal_and_in_order(old: list[str], new: list[str]) -> None:
    places = match_lines(old, new)
    found = [place for place in places if place >= 0]
    assert found == sorted(set(found))
    assert all(old[i] == new[place] for i, place in enumerate(places) if place >= 0)


@given(old=LINES, new=LINES)
def test_changes_are_counted_as_lines(old: list[str], new: list[str]) -> None:
    added, removed = count_changes("\n".join(old), "\n".join(new))
    lines = (len("\n".join(side).splitlines()) for side in (new, old))
    assert added - removed == next(lines) - next(lines)


def test_a_large_file_of_equal_lines_is_merged_where_little_differs() -> None:
    """No line holds the place of any other one; the shortest difference is found all the same."""
    base = "x\n" * 20_000
    ours = "x\n" * 5_000 + "mine\n" + "x\n" * 15_000
    theirs = "x\n" * 15_000 + "other\n" + "x\n" * 5_000
    assert merge_texts(base, ours, theirs) == (
        "x\n" * 5_000 + "mine\n" + "x\n" * 10_000 + "other\n" + "x\n" * 5_000
    )


def test_what_would_take_too_long_to_compare_is_a_conflict_and_nothing_else() -> None:
    base = "x\n" * 1_000
    ours = "".join("x\n" * 10 + f"mine {number}\n" for number in range(100))
    theirs = "x\n" * 505 + "other\n" + "x\n" * 495
    assert merge_texts(base, ours, theirs) is None
