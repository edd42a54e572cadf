"""Replacements: exact, unique or counted; a miss tells where the closest place is and why."""

import hypothesis
import pytest
from hypothesis import strategies as st

from tiro.errors import ToolError
from tiro.tools.matching import Replacement, nearest_place, replaced

TEXT = "def f():\n    return 1\n\n\ndef g():\n\treturn “2”\n"


def why(old: str, new: str = "x", *, text: str = TEXT, count: int = 1) -> str:
    with pytest.raises(ToolError) as raised:
        replaced(text, Replacement(old, new, count), "'f.py'")
    return str(raised.value)


@pytest.mark.parametrize(
    ("old", "count", "after"),
    [("return 1", 1, TEXT.replace("return 1", "x")), ("def ", 2, TEXT.replace("def ", "x"))],
)
def test_exactly_so_many_places_are_replaced(old: str, count: int, after: str) -> None:
    assert replaced(TEXT, Replacement(old, "x", count), "f") == after


def test_a_text_at_several_places_names_them() -> None:
    told = why("def ")
    assert "occurs 2 times in 'f.py' (lines 1, 5), not 1" in told
    assert "`count` 2" in told
    assert "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …" in why("a", text="a\n" * 30)
    assert "occurs 1 times" in why("return 1", count=2)


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("def f():\n  return 1", "line 2; the indentation differs: the file has '    return 1'"),
        ("def g():\n    return “2”", "line 6; the indentation differs: the file has '\\treturn"),
        ('\treturn "2"', "line 6; a quote, dash or space character differs"),
        ("def  f():", "line 1; white space differs"),
        ("def F():\n    return 1", "line 1; upper and lower case differs"),
        ("def f():\n    return 2", "line 2; the text differs: the file has '    return 1', not"),
        ("def h():\n    return 1\n", "line 1; the text differs: the file has 'def f():'"),
        ("    return 1 \n", "line 2; the space at the end differs"),
        ("def ff():", "line 1; the text differs"),
        ("import antigravity", "Nothing in it comes close"),
        ("     1\tdef f():\n     2\t    return 1", "Leave out the line numbers"),
    ],
)
def test_a_miss_tells_what_differs(old: str, said: str) -> None:
    told = why(old)
    assert said in told
    assert "nothing was changed" in told


def test_a_change_that_was_made_before_is_named() -> None:
    assert "there already, in line 2" in why("return 0 # zero", "    return 1\n")


def test_a_miss_keeps_quiet_about_what_may_not_be_read() -> None:
    """M5.7: an edit does not show what the rules keep from the model."""
    with pytest.raises(ToolError) as raised:
        replaced("KEY=1\n", Replacement("KEY=2", "x"), "'.env'", may_show=False)
    assert "KEY=1" not in str(raised.value)


def test_the_same_text_changes_nothing() -> None:
    assert "are the same" in why("def f", "def f")


@hypothesis.given(st.text("ab \t\n'’", max_size=40), st.text("ab \t\n'’", min_size=1, max_size=12))
def test_a_miss_always_has_an_answer(text: str, old: str) -> None:
    if old not in text:
        assert nearest_place(text, Replacement(old, "new"))


def test_a_miss_in_a_large_file_is_told_soon() -> None:
    text = "".join(f"some line {i} with {i * 7919 % 10007}\n" for i in range(50_000))
    assert "line 1;" in nearest_place(text, Replacement("some lime 0 with 0", ""))


def test_a_miss_among_lines_that_are_all_alike_ends() -> None:
    text, old = "x\n" * 200_000, "x\n" * 150_000 + "y"
    assert nearest_place(text, Replacement(old, "new"))
