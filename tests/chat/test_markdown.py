"""Markdown in a terminal: the same whatever the pieces it comes in, and harmless."""

import re
import sys
from time import process_time

import pytest

from tiro.chat.markdown import MAX_HELD_CHARS, Markdown

BOLD, DIM, ITALIC, CODE, RESET = "\x1b[1m", "\x1b[2m", "\x1b[3m", "\x1b[36m", "\x1b[0m"

ANSWER = """\
# A title with `code`

Some **bold words** and `a = b**c`, 2**3, 3 * 4 and a ` that is alone.
**Bold first**, then ``code with ` in it``. An unclosed **pair and `tick
- one
* two **strong**
  - deeper
10. ten

> quoted
---
```python
def f():
    return "**not bold**" # not a title
```
| a | b |
snake_case_name stays, *slanted words* stand out, and a*b*c, **bold *and* `so`** or an *open one
*It*
"""


def render(*pieces: str, columns: int = 80) -> str:
    markdown = Markdown(lambda: columns)
    return "".join(map(markdown.feed, pieces)) + markdown.end()


def as_seen(shown: str) -> list[tuple[str, str]]:
    """Each character with its colour."""
    seen, style = [], RESET
    for part in re.split(r"(\x1b\[\d*m)", shown):
        if part.startswith("\x1b"):
            style = part
        else:
            seen += [(style, character) for character in part]
    return seen


def check(text: str, shown: str) -> None:
    """What is shown of a line that goes on, and of one that has ended."""
    assert render(text) == shown
    assert render(text + "\n") == shown + "\n"


def test_markup_becomes_colours() -> None:
    check("# Title", f"{BOLD}Title{RESET}")
    check("a **b c** d", f"a {BOLD}b{RESET} {BOLD}c{RESET} d")
    check("a `b**c**` d", f"a {CODE}b**c**{RESET} d")
    check("**x `y` z**", f"{BOLD}x{RESET} {CODE}y{RESET} {BOLD}z{RESET}")
    check("so *it is*, *so*", f"so {ITALIC}it{RESET} {ITALIC}is{RESET}, {ITALIC}so{RESET}")
    check("*it*", f"{ITALIC}it{RESET}")
    check("- one", "• one")
    check("  * one", "  • one")
    check("2. two", "2. two")
    check("> said", f"{DIM}│{RESET} said")
    check("```", f"{DIM}```{RESET}")


@pytest.mark.parametrize(
    "text",
    [
        "2**3 is 8",
        "a * b * c",
        "a*b*c",
        "*a*b",
        "*.py and *.el",
        "** not bold **",
        "an `unclosed",
        "#hashtag",
        "-5",
        "1.5",
        "`",
    ],
)
def test_what_is_no_markup_is_shown_as_it_is(text: str) -> None:
    check(text, text)


def test_code_block_is_left_alone() -> None:
    shown = render("```py\n# no **title**\n\n    x = `y`\n```\n**b**")
    lines = re.sub(r"\x1b\[\d*m", "", shown).split("\n")
    assert lines == ["```py", "# no **title**", "", "    x = `y`", "```", "b"]
    assert f"{CODE}# no **title**" in shown


def test_pieces_do_not_matter() -> None:
    whole = as_seen(render(ANSWER))
    for size in (1, 2, 3, 7, 50):
        pieces = [ANSWER[n : n + size] for n in range(0, len(ANSWER), size)]
        assert as_seen(render(*pieces)) == whole


def test_nothing_of_the_text_is_lost() -> None:
    """Without the colours and the marks that colours stand for, every word is there."""
    shown = re.sub(r"\x1b\[\d*m", "", render(ANSWER, columns=30))
    for word in re.findall(r"\w+", ANSWER):
        assert word in shown


def test_words_are_wrapped_and_items_hang() -> None:
    assert render("one two three four five\n", columns=10) == "one two\nthree four\nfive\n"
    assert render("- one two three\n", columns=9) == "• one two\n  three\n"
    assert render("exactly10.\nmore\n", columns=10) == "exactly10.\nmore\n"
    assert render("aa **bb**cc dd\n", columns=6) == f"aa\n{BOLD}bb{RESET}cc\ndd\n"


def test_wide_characters_take_two_cells() -> None:
    assert render("日本語日本語\n", columns=8) == "日本語日\n本語\n"
    assert render("e\u0301" * 6 + " x\n", columns=8) == "e\u0301" * 6 + " x\n"


def test_escape_sequences_do_not_come_through() -> None:
    """What a model says cannot act on the terminal; what it was can still be read."""
    evil = "\x1b]0;title\x07 \x1b[2J\x9b31m a\rb \u202egnp.exe"
    for text in (evil, f"**{evil}**", f"```\n{evil}\n```", f"# {evil}", f"| {evil} |"):
        shown = re.sub(r"\x1b\[(0|1|2|36)m", "", render(text))
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown)
        assert "␛]0;title" in shown


def test_words_are_shown_while_the_line_goes_on() -> None:
    markdown = Markdown(lambda: 80)
    assert markdown.feed("So far so good") == "So far so"
    assert markdown.feed(", and **bo") == " good, and"
    assert markdown.feed("ld** on") == f" {BOLD}bold{RESET}"


def test_a_delta_costs_the_same_in_a_long_answer() -> None:
    """What is looked at for a delta is bounded, in one endless line of anything too."""
    for text in ("x", "**", "`", " ", "- ", "``", "word **b"):
        markdown = Markdown(lambda: 80)
        for _ in range(3000):
            markdown.feed(text)
        held = [value for value in vars(markdown).values() if isinstance(value, str)]
        assert max(map(len, held)) <= MAX_HELD_CHARS + len(text)
        assert sys.getsizeof(markdown.feed(text)) < 10_000


@pytest.mark.parametrize("mark", ["**", "`", "``"])
def test_a_span_that_is_too_long_is_no_markup(mark: str) -> None:
    """Whether it comes in one piece or in many."""
    for text in (f"{mark}{'a ' * MAX_HELD_CHARS}b{mark} c", f"{mark}{'a' * MAX_HELD_CHARS}b{mark}"):
        assert render(text, columns=1000) == render(*text, columns=1000) == text


@pytest.mark.parametrize(
    "text", ["**a ", "`a ``b ", "**`", "\n", "- ", "**a\n", " ", "**a`b", "_ *", "# "]
)
def test_a_hostile_line_costs_in_proportion_to_its_length(text: str) -> None:
    """In processor time: 8 times the text may cost 30 times as much, and 64 is a square."""

    def cost(times: int) -> float:
        started = process_time()
        render(text * times)
        return process_time() - started

    assert cost(8_000) < 30 * max(0.01, cost(1_000))
